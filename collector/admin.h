/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin.h - `headrace-collector close-job` and `remove-job`
 *
 * Both commands lock each stream before they change it, so a collector may run at the same time. If
 * root runs them, they take the rights of the owner of the store. They return the exit status.
 */
#ifndef HEADRACE_COLLECTOR_ADMIN_H
#define HEADRACE_COLLECTOR_ADMIN_H

/* Closes the unfinished streams of the job on `node`, or on all nodes if `node` is NULL. */
int hr_admin_close_job(const char *store, const char *job, const char *node);

/* Removes the data of the job. As with retention, the file `state` of each stream stays. */
int hr_admin_remove_job(const char *store, const char *job);

#endif
