/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin.h - `headrace-collector close-job` and `remove-job`
 *
 * They change a stream only while they hold its lock, so a collector may run. They run as the
 * store's owner (admin.c), print results to stdout and failures to stderr, and return the exit
 * status.
 */
#ifndef HEADRACE_COLLECTOR_ADMIN_H
#define HEADRACE_COLLECTOR_ADMIN_H

/* Closes the job's streams that have not ended, on all nodes (NULL) or on one. */
int hr_admin_close_job(const char *store, const char *job, const char *node);

/* Removes the job's data. Marks stay, as after retention. */
int hr_admin_remove_job(const char *store, const char *job);

#endif
