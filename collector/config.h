/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - the keys of the configuration, in one table for file, flags, --help and man page
 *
 * The caller owns the structure. The texts in the structure are valid until hr_config_done().
 */
#ifndef HEADRACE_COLLECTOR_CONFIG_H
#define HEADRACE_COLLECTOR_CONFIG_H

#include "common/config.h"

#define HR_COLLECTOR_CONFIG_FILE "/etc/headrace/collector.conf"

/* same order as the choices of the key `plain` */
enum hr_plain { HR_PLAIN_NO, HR_PLAIN_LOOPBACK, HR_PLAIN_YES };

/* same order as the choices of the key `alert_format` */
enum hr_alert_format { HR_ALERT_FORMAT_JSON, HR_ALERT_FORMAT_MANAGER };

struct hr_collector_config {
	char *store;
	char *sink;
	char *listen;
	char *tls_cert, *tls_key, *tls_ca;
	unsigned plain; /* enum hr_plain */
	bool munge;
	char *munge_socket;
	char *operators;
	char *metrics;
	char *alerts; /* rules, with commas between them (alert_rules.h) */
	char *alert_command;
	char *alert_url;
	unsigned alert_format; /* enum hr_alert_format */
	uint64_t retention_age_ms;
	uint64_t retention_size_bytes;
	uint64_t forget_after_ms;
	uint64_t query_memory_bytes;
	uint64_t query_time_ms;
	uint64_t query_threads;
	uint64_t query_at_once;
	uint64_t query_per_caller;
	char *query_spill;
	uint64_t query_spill_bytes;
	uint64_t max_connections;
	uint64_t new_streams_per_user;
	uint64_t max_frame_bytes;
	uint64_t window_bytes;
	uint64_t memory_bytes;
	uint64_t ping_ms;
	uint64_t silent_after_ms;
};

extern const struct hr_config_key hr_collector_keys[];
extern const size_t hr_collector_n_keys;

/* Checks keys against each other. Returns false after it has reported each mistake. */
bool hr_collector_config_check(const struct hr_collector_config *c,
			       void (*report)(const char *text));

#endif
