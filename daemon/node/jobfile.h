/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobfile.h - what a node writes when a job starts: the JobEvent, and the journal's file
 *
 * Loop thread, before other threads start, because hr_job_pack reads the environment.
 */
#ifndef HEADRACE_DAEMON_NODE_JOBFILE_H
#define HEADRACE_DAEMON_NODE_JOBFILE_H

#include "daemon/node/node.h"

/* Makes the packed JobEvent of the job (malloc'ed). Returns 0 or -errno. */
int hr_job_pack(const struct hr_node_config *config, uint64_t start_ns, uint8_t **ret,
		size_t *ret_bytes);

/*
 * The journal is the file "journal" in the stream's folder. If the store is on a network, "journal"
 * is a symbolic link to "<dir>/headrace-<instance>.journal"; other links are refused. Both
 * functions open the file for reading and writing, and return a descriptor or -errno. -ELOOP:
 * "journal" is neither a regular file nor such a link to one; -EPERM: hr_store_is_own refuses the
 * file of the link. If the file is absent, hr_journal_make makes it, in `dir` with a link if `dir`
 * is not NULL.
 */
int hr_journal_file(int stream_dir_fd, uint64_t instance);
int hr_journal_make(int stream_dir_fd, uint64_t instance, const char *dir);

/* Removes the journal. If it is a link, also removes the file to which it points. */
void hr_journal_unlink(int stream_dir_fd, uint64_t instance);

#endif
