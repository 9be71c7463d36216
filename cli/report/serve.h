/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.h - the page of a report in a browser, with new data each second while its job runs
 *
 * An HTTP server on the loopback address, for one user: each path contains a random token, which
 * only the user's terminal shows. It answers GET requests, and changes nothing.
 *
 *      browser --GET /TOKEN/data--> server --once a second--> child: `headrace report --json STORE`
 *
 * The child reads the store, so that headraced has nothing to do. It runs only while a browser asks
 * for data, and no more after its job has ended.
 */
#ifndef HEADRACE_CLI_REPORT_SERVE_H
#define HEADRACE_CLI_REPORT_SERVE_H

/*
 * Serves until SIGINT or SIGTERM. `job`: NULL: the newest one. `port`: 0: any port. `tries`: how
 * often to read the store, each second, until it has the job; a job that has just begun needs
 * some. Returns an exit status.
 */
int hr_report_serve(const char *store, const char *job, unsigned port, unsigned tries);

#endif
