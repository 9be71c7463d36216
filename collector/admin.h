/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin.h - `headrace-collector close-job` and `remove-job`
 *
 * Both change a stream only under the stream's lock, so they work while a collector runs. Root
 * becomes the store's owner, so that the collector can read the files. Results go to stdout,
 * failures to stderr; the functions return the exit status.
 */
#ifndef HEADRACE_COLLECTOR_ADMIN_H
#define HEADRACE_COLLECTOR_ADMIN_H

/* Closes the job's streams that have not ended, on all nodes (NULL) or on one. */
int hr_admin_close_job(const char *store, const char *job, const char *node);

/* Removes the job's data; as after retention, its marks stay. */
int hr_admin_remove_job(const char *store, const char *job);

#endif
