/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_link.h - one request to the headraced of this node (proto/control.proto)
 *
 * Owner     The caller. Threads: one.
 */
#ifndef HEADRACE_CLI_SERVICE_SERVICE_LINK_H
#define HEADRACE_CLI_SERVICE_SERVICE_LINK_H

#include "daemon/control/control.h"

#define HR_EXIT_NO_SERVICE 69 /* as sysexits' EX_UNAVAILABLE */

/* The socket that --socket, else HEADRACE_CONTROL names, else the usual one. */
const char *hr_service_socket(const char *option);

/* Takes each answer but the last, in order; as `take` of hr_control_ask. */
typedef void hr_service_answer(void *arg, Headrace__Control *m);

/*
 * Sends a request (control.h) and waits without a limit for the answers. 0; or -errno, reported: -ENOENT and -ECONNREFUSED where
 * there is no service, -EREMOTEIO when it refuses.
 */
int hr_service_ask(const char *socket, hr_control_kind kind, const ProtobufCMessage *body,
		   hr_service_answer *answer, void *arg);

/* The same over a connection (hr_control_connect), which it closes; and what hr_service_ask says where there is none: returns r. */
int hr_service_ask_over(int fd, hr_control_kind kind, const ProtobufCMessage *body,
			hr_service_answer *answer, void *arg);
int hr_service_none(const char *socket, int r);

/* The exit status for what hr_service_ask returned. */
int hr_service_exit(int r);

#endif
