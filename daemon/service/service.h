/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.h - headraced as the service of a node: many jobs of many users, one worker process each
 *
 * Purpose   Owns the two sockets that everybody may reach, knows which job a process belongs to, and starts, restarts and ends
 *           the workers that record. It reads no ring, writes no frame, and holds nothing that a worker's death could lose.
 *
 *      shim ----hello----> shim.sock     headraced service
 *                                          | accept queue (passfd.h), retained by systemd: accepted connections
 *                                          | peeks at the hello: job by cgroup or environment, user by SO_PEERCRED
 *                                          | hands the connection on (SCM_RIGHTS), unread
 *                                          v hand-off queue: another one, of the job's worker
 *                                        headraced job (worker.h): hr_node of one job, its stream in the spool, its uplink
 *      headrace job begin ---> control.sock       | channel: level, end; stats, ended, sent
 *      headrace status                            | NOTIFY_SOCKET: memfds of sessions (kept.h), and to systemd's store
 *
 *      killed                       kept by
 *      a worker                     the service: its memfds, its place in the hand-off queue; it is started again
 *      the service (and by systemd its workers)   systemd: sockets, queues and memfds; RUNTIME/jobs/KEY.conf says which jobs there are
 *
 *      RUNTIME/                     /run/headrace, 0755
 *          shim.sock control.sock   0666: who is who is the kernel's word
 *          jobs/KEY.conf            0600: what the worker of a job is told on its standard input (private.h); KEY = 16 hex digits
 *
 *      job   starting --READY--> running --end, or idle (nobody announced it)--> ending --ended--> draining --exit--> forgotten
 *              ^----- killed -----+                                                +---- killed: started again to end ----+
 *
 * Owner     main(). Threads: one, with a libuv loop.
 */
#ifndef HEADRACE_DAEMON_SERVICE_SERVICE_H
#define HEADRACE_DAEMON_SERVICE_SERVICE_H

#include "daemon/service/config.h"

/*
 * Runs until SIGTERM or SIGINT. Returns the exit status; failures go to standard error. SIGHUP reads the configuration anew from
 * where it came.
 */
int hr_service_run(const struct hr_config_source *from, struct hr_service_config *config);

/* `headraced service [OPTION...]` */
int hr_service_main(int argc, char **argv);

#endif
