/* SPDX-License-Identifier: Apache-2.0 */
/* query_process.h - what a query's process needs: a folder to spill to, an environment, a pipe */
#ifndef HEADRACE_COLLECTOR_QUERY_PROCESS_H
#define HEADRACE_COLLECTOR_QUERY_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "proto/wire.pb-c.h"

/* Makes a folder for one process, with mode 0700. *ret is malloc'ed, also on failure. */
int hr_query_spill_make(const char *parent, uint64_t number, char **ret);
void hr_query_spill_remove(const char *path);

/* Removes folders of ended collectors. The name of a folder contains the pid of its collector. */
void hr_query_spill_clean(const char *parent);

/*
 * Starts `exe query-worker FD` with a copy of `child_fd`, which the caller closes. If *ret_handle
 * is true, the caller must close `process`, even on failure. Returns 0 or -errno.
 */
int hr_query_spawn(uv_loop_t *loop, const char *exe, int child_fd, uv_exit_cb exited,
		   uv_process_t *process, bool *ret_handle);

/* Returns why the process ended without an answer, as text (malloc'ed). NULL: no memory. */
char *hr_query_exit_text(int64_t status, int signal);

#endif
