/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobfile.h - what a node writes when a job starts: the JobEvent, and the journal's file
 *
 * For the loop thread, before other threads start: hr_job_pack reads the environment.
 */
#ifndef HEADRACE_DAEMON_NODE_JOBFILE_H
#define HEADRACE_DAEMON_NODE_JOBFILE_H

#include "daemon/node/node.h"

/* The job's packed JobEvent; malloc'ed. */
int hr_job_pack(const struct hr_node_config *config, uint64_t start_ns, uint8_t **ret,
		size_t *ret_bytes);

/*
 * The journal is the file "journal" in the stream's folder. If the store is on a network, it is a
 * symbolic link to "<dir>/headrace-<instance>.journal"; no other link is followed. Both functions
 * open it for reading and writing: a descriptor or -errno. -ELOOP: no regular file, and no such
 * link to one; -EPERM: hr_store_is_own refuses the link's file. hr_journal_make makes it if absent,
 * with a link into `dir` (NULL: none).
 */
int hr_journal_file(int stream_dir_fd, uint64_t instance);
int hr_journal_make(int stream_dir_fd, uint64_t instance, const char *dir);

/* Removes the journal, and its link's file. */
void hr_journal_unlink(int stream_dir_fd, uint64_t instance);

#endif
