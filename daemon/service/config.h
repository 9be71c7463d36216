/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - the configuration of the node service: one table for the file, the flags, --help and
 * the man page
 *
 * The caller owns the structure, which owns its texts until hr_config_done().
 */
#ifndef HEADRACE_DAEMON_SERVICE_CONFIG_H
#define HEADRACE_DAEMON_SERVICE_CONFIG_H

#include "common/config.h"

#define HR_SERVICE_CONFIG_FILE "/etc/headrace/headraced.conf"
/* Maximum bytes of `runtime`, so that the paths of its sockets fit into an address. */
#define HR_SERVICE_PATH_MOST 60u

/* The order is that of the choices of the configuration key `unregistered`. */
enum hr_unregistered { HR_UNREGISTERED_RECORD, HR_UNREGISTERED_REFUSE };

struct hr_service_config {
	char *runtime;
	char *cluster, *node;
	char *spool;
	uint64_t spool_bytes;
	char *collectors;
	char *tls_cert, *tls_key, *tls_ca;
	unsigned probes;
	unsigned level; /* enum hr_level - HR_LEVEL_COUNTERS */
	unsigned unregistered;
	unsigned policy; /* enum hr_policy */
	char *policy_partitions, *policy_users;
	unsigned paths, command_lines; /* daemon/base/privacy.h */
	uint64_t paths_keep;
	char *privacy_key;
	char *operators;
	char *metrics;
	uint64_t metrics_jobs;
	uint64_t max_jobs, max_jobs_per_user;
	uint64_t max_sessions;
	uint64_t max_ring_bytes;
	uint64_t max_user_sessions, max_node_sessions;
	uint64_t max_user_ring_bytes, max_node_ring_bytes;
	uint64_t max_size_bytes;
	uint64_t idle_end_ms;
};

extern const struct hr_config_key hr_service_keys[];
extern const size_t hr_service_n_keys;

/* Checks keys, also for contradictions. Passes each mistake to `report`. True: there is none. */
bool hr_service_config_check(const struct hr_service_config *c, void (*report)(const char *text));

/* Sets defaults that depend on the machine. Call it for a configuration without mistakes. */
void hr_service_config_settle(struct hr_service_config *c);

/* Checks files, users and groups. Passes each mistake to `report`. True: there is none. */
bool hr_service_check(const struct hr_service_config *c, void (*report)(const char *text));

#endif
