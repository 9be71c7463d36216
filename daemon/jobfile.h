/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobfile.h - what a node writes down when a job starts: the JobEvent, and where its journal lies
 *
 * Pure functions of configuration, environment and user database; loop thread, before others run.
 */
#ifndef HEADRACE_DAEMON_JOBFILE_H
#define HEADRACE_DAEMON_JOBFILE_H

#include "daemon/node.h"

/* The job's packed JobEvent; malloc'ed. */
int hr_job_pack(const struct hr_node_config *config, uint64_t start_ns, uint8_t **ret,
		size_t *ret_bytes);

/* "journal" in the stream's folder; malloc'ed, NULL when memory is out. */
char *hr_journal_path(const struct hr_writer *w);

/*
 * Makes that name a symbolic link to a file in `dir` (when the store lies on a network file system), unless it exists
 * already. 0 or -errno.
 */
int hr_journal_redirect(const char *path, const char *dir, const struct hr_stream_id *id);

/* Removes the journal, and what it links to. */
void hr_journal_unlink(const char *path);

#endif
