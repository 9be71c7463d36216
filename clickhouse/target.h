/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - the address of a database of ClickHouse
 *
 *      clickhouse://[USER@]HOST[:PORT]/DATABASE[?OPTION=VALUE&...]
 *
 *      HOST+HOST      replicas of a shard: the first one that answers is used
 *      HOST,HOST      shards: each stream is in one of them
 *
 * PORT is that of the HTTP interface: 8123 or, with tls=yes, 8443. Options: `tls=yes`; `ca`, `cert`
 * and `key` name PEM files; `password_file` names a file whose first line is the password of USER.
 * A password is not part of the address, because addresses appear in lists of processes and logs.
 *
 * Plain data; any thread.
 */
#ifndef HEADRACE_CLICKHOUSE_TARGET_H
#define HEADRACE_CLICKHOUSE_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"

#define HR_CH_HOSTS_MAX 64u

struct hr_ch_host {
	const char *url; /* "http://host:8123" */
	unsigned shard;
};

struct hr_ch_target {
	struct hr_arena memory;			  /* of all texts */
	struct hr_ch_host hosts[HR_CH_HOSTS_MAX]; /* in the order of their shards */
	size_t n_hosts;
	unsigned n_shards;
	const char *database;
	/* NULL: not given */
	const char *user, *password;
	const char *ca, *cert, *key;
};

/* Whether a text can be the name of a database or cluster: letters, digits and _. */
bool hr_ch_is_name(const char *text);

/* Whether a text begins with "clickhouse://". */
bool hr_ch_target_is(const char *text);

/*
 * Parses an address, and reads the file of the password. *ret_error (malloc'ed) explains what is
 * wrong, and what is valid. Call hr_ch_target_done in all cases. Returns 0, -EINVAL, -ENOMEM, or
 * the error of the file.
 */
int hr_ch_target_parse(const char *text, struct hr_ch_target *ret, char **ret_error);
void hr_ch_target_done(struct hr_ch_target *t);

#endif
