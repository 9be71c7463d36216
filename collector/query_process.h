/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_process.h - what a query's process is made of: a folder to spill to, an environment, a pipe
 *
 * Threads   The loop's.
 */
#ifndef HEADRACE_COLLECTOR_QUERY_PROCESS_H
#define HEADRACE_COLLECTOR_QUERY_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "proto/wire.pb-c.h"

/* A folder below `parent` that no other process uses, 0700. *ret is malloc'ed, also when it could not be made. */
int hr_query_spill_make(const char *parent, uint64_t number, char **ret);
void hr_query_spill_remove(const char *path);

/* Removes what a collector that was killed has left: folders whose pid is of no process that could use them. */
void hr_query_spill_clean(const char *parent);

/*
 * `exe query-worker FD`, FD being `child_fd`, which stays the caller's. -ENOMEM: `process` is untouched, and *ret_handle false; else
 * it is a handle to be closed, whatever came of it.
 */
int hr_query_spawn(uv_loop_t *loop, const char *exe, int child_fd, uv_exit_cb exited,
		   uv_process_t *process, bool *ret_handle);

/* How it ended without an answer, for people; malloc'ed. NULL: no memory. */
char *hr_query_exit_text(int64_t status, int signal);

/* NULL: no memory. */
Headrace__Query *hr_query_copy(const Headrace__Query *query);

#endif
