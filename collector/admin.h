/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin.h - what an administrator does to a job in the store: `headrace-collector close-job`, `remove-job`
 *
 * Purpose   A stream's lock is all that it takes: who holds it may change the stream, be it a collector, its retention, or this. So
 *           it works beside a collector that runs and without one, and never on a stream that a daemon has open.
 * Who       Whoever may write into the store. Root becomes the store's owner for as long as it takes, lest the collector find files
 *           that it cannot read.
 * Threads   A tool's only one.
 */
#ifndef HEADRACE_COLLECTOR_ADMIN_H
#define HEADRACE_COLLECTOR_ADMIN_H

/* Says on stdout what was done and on stderr what was not. Return the exit status. */

/* Nothing more is expected of the job's streams, or of those of one node (NULL: all) that have not ended. */
int hr_admin_close_job(const char *store, const char *job, const char *node);

/* The job's data goes; its marks stay, as retention leaves them. */
int hr_admin_remove_job(const char *store, const char *job);

#endif
