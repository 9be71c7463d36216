/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin.h - what an administrator can do to a job in the store: `headrace-collector close-job`,
 * `remove-job`
 *
 * Purpose   Changes a stream only while it holds the stream's lock, like a collector and its
 *           retention. So it works with or without a running collector, and never on a stream that
 *           a daemon has open.
 * Who       Users that may write into the store. Root becomes the store's owner meanwhile, so that
 *           the collector can read the files.
 * Threads   A tool's only one.
 */
#ifndef HEADRACE_COLLECTOR_ADMIN_H
#define HEADRACE_COLLECTOR_ADMIN_H

/* Print on stdout what was done and on stderr what was not. Return the exit status. */

/* Marks the job's streams that have not ended, or only those of one node (NULL: all), as closed. */
int hr_admin_close_job(const char *store, const char *job, const char *node);

/* Removes the job's data; its marks stay, as after retention. */
int hr_admin_remove_job(const char *store, const char *job);

#endif
