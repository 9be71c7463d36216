/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.h - the node service: records all users' jobs; each job has a recording process (worker)
 *
 * Purpose   Owns the two sockets that all users may connect to, finds the job of each process, and
 *           starts, restarts and ends the workers. The service itself reads no ring and writes
 *           no frame.
 *
 *      shim ----hello----> shim.sock     headraced service
 *                                          | accept queue (passfd.h), retained by systemd: accepted connections
 *                                          | peeks at the hello: job by cgroup or environment, user by SO_PEERCRED
 *                                          | passes the connection (SCM_RIGHTS) with the hello unread
 *                                          v hand-off queue of the job's worker
 *                                        headraced job (worker.h): hr_node of one job, its stream in the spool, its uplink
 *      headrace job begin ---> control.sock       | channel (proto/control.proto): level, end; status, ended, sending
 *      headrace status                            | NOTIFY_SOCKET: memfds of sessions, to the service (kept.h) and to systemd
 *
 *      killed                       what retains its state
 *      a worker                     the service: memfds of sessions and the hand-off queue, for the next worker
 *      the service; systemd then    systemd: sockets, queues and memfds; RUNTIME/jobs/KEY.conf has the jobs
 *      kills its workers, too
 *
 *      RUNTIME/                     /run/headrace, 0755
 *          shim.sock control.sock   0666: the kernel reports each client's uid
 *          jobs/KEY.conf            0600: configuration of the job's worker (private.h), its standard input; KEY: 16 hex digits
 *
 *      job   starting --READY--> running --end, or idle (if unregistered)--> ending --ended--> draining --exit--> forgotten
 *              ^----- killed -----+                                            +---- killed: restarted to end ----+
 *
 * Owner     main(). Threads: one, with a libuv loop.
 */
#ifndef HEADRACE_DAEMON_SERVICE_SERVICE_H
#define HEADRACE_DAEMON_SERVICE_SERVICE_H

/*
 * The command `headraced service`. Runs until SIGTERM or SIGINT; SIGHUP reloads the configuration.
 * Returns the exit status.
 */
int hr_service_main(int argc, char **argv);

#endif
