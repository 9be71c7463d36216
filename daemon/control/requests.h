/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requests.h - what people and hooks say to the service of a node, at control.sock
 *
 * Messages are control.h's; one request for a connection, answered by any number of messages, of which the last is `over` or
 * `error`. Who asks is the kernel's word (SO_PEERCRED).
 *
 *      request                              answers
 *      status                               status  version pid uptime_ms node spool_bytes ... refused unplaced
 *                                           job     id user ... (one each, of those that the caller may see)
 *                                           over
 *      begin  job uid [scheduler name attempt level ranks local_ranks ranks_expected nodes_expected probes cgroup]
 *                                           over                      root alone; when it is being recorded
 *      end    job [attempt uid state linger_ms drain_ms]
 *                                           ended, sending..., sent (worker.h), over      root alone;
 *                                           with uid also that user's unannounced job of that name
 *      killed job [attempt uid]             over                      root alone: a signal ended its script, and an end in the
 *                                                                     state `ended` is to be one in the state `killed`
 *      level  job [attempt] level [for_ms]  over                      the job's owner, operators and root
 *      live   job [attempt in_flight_ns]    the connection goes to the job's process, which answers as live_link.h
 *                                           says                      the job's owner, operators and root
 *      any                                  error   text code         code: a positive errno
 *
 * Without `attempt` the latest is meant. Unknown keys are ignored.
 */
#ifndef HEADRACE_DAEMON_CONTROL_REQUESTS_H
#define HEADRACE_DAEMON_CONTROL_REQUESTS_H

#define HR_SERVICE_VERSION 1
#define HR_SERVICE_CONTROL "/run/headrace/control.sock"

#endif
