/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin.h - `headrace-collector close-job` and `remove-job`
 *
 * Both change a stream only while they hold the lock of the stream, so a collector may run at the
 * same time. If root calls them, they take the rights of the store's owner (admin.c). They print
 * results to stdout and failures to stderr, and return the exit status.
 */
#ifndef HEADRACE_COLLECTOR_ADMIN_H
#define HEADRACE_COLLECTOR_ADMIN_H

/* Closes the unfinished streams of the job on `node`, or on all nodes if `node` is NULL. */
int hr_admin_close_job(const char *store, const char *job, const char *node);

/* Like retention, removes the data of the job, but keeps the marks of its streams. */
int hr_admin_remove_job(const char *store, const char *job);

#endif
