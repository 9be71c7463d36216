/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobfile.h - what a node writes down when a job starts: the JobEvent, and where its journal lies
 *
 * Pure functions of configuration, environment and user database; loop thread, before others run.
 */
#ifndef HEADRACE_DAEMON_NODE_JOBFILE_H
#define HEADRACE_DAEMON_NODE_JOBFILE_H

#include "daemon/node/node.h"

/* The job's packed JobEvent; malloc'ed. */
int hr_job_pack(const struct hr_node_config *config, uint64_t start_ns, uint8_t **ret,
		size_t *ret_bytes);

/*
 * The journal is the file "journal" in the stream's folder. When the store lies on a network file system, that name is a
 * symbolic link to "<dir>/headrace-<instance>.journal" instead, and no link to any other name is followed. Both open it for
 * reading and writing: a descriptor or -errno. -ELOOP: neither a regular file nor such a link to one; -EPERM: the link leads to a
 * file that hr_store_is_own refuses. hr_journal_make makes it when it is absent, with a link into `dir` unless that is NULL.
 */
int hr_journal_file(int stream_dir_fd, uint64_t instance);
int hr_journal_make(int stream_dir_fd, uint64_t instance, const char *dir);

/* Removes the journal, and what its link leads to. */
void hr_journal_unlink(int stream_dir_fd, uint64_t instance);

#endif
