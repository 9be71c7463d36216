/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.h - the page of a report in a browser, with new data each second while its job runs
 *
 * An HTTP server on the loopback address, for one user: each path contains a random token, which
 * only the user's terminal shows. It answers only GET requests.
 *
 *      browser --GET /TOKEN/data--> server --once a second--> child: `headrace report --json STORE`
 *
 * The child reads the store, so it causes no work for headraced. The server starts a child only if
 * a browser requests data, and not after the job has ended.
 */
#ifndef HEADRACE_CLI_REPORT_SERVE_H
#define HEADRACE_CLI_REPORT_SERVE_H

/*
 * Serves until SIGINT or SIGTERM. `job` NULL: the newest job. `port` 0: any port. `tries`: how
 * often a child may read the store, once a second, until the store has the job. Returns an exit
 * status.
 */
int hr_report_serve(const char *store, const char *job, unsigned port, unsigned tries);

#endif
