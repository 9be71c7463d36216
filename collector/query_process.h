/* SPDX-License-Identifier: Apache-2.0 */
/* query_process.h - starts the process of a query, with a folder for temporary files */
#ifndef HEADRACE_COLLECTOR_QUERY_PROCESS_H
#define HEADRACE_COLLECTOR_QUERY_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "proto/wire.pb-c.h"

/* Makes a folder for one process, with mode 0700. The caller frees *ret, even after a failure. */
int hr_query_spill_make(const char *parent, uint64_t number, char **ret);
void hr_query_spill_remove(const char *path);

/* Removes folders of collectors that do not run; the name of a folder contains the pid. */
void hr_query_spill_clean(const char *parent);

/*
 * Starts `exe query-worker FD`, where FD is a copy of `child_fd`. The caller closes `child_fd` and,
 * if *ret_handle is true, `process`, even on failure. Returns 0 or -errno.
 */
int hr_query_spawn(uv_loop_t *loop, const char *exe, int child_fd, uv_exit_cb exited,
		   uv_process_t *process, bool *ret_handle);

/* Returns a text: why the process ended without an answer (malloc'ed). NULL: no memory. */
char *hr_query_exit_text(int64_t status, int signal);

#endif
