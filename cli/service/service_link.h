/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_link.h - one question to the headraced of this node (daemon/control/requests.h)
 *
 * Owner     The caller. Threads: one.
 */
#ifndef HEADRACE_CLI_SERVICE_SERVICE_LINK_H
#define HEADRACE_CLI_SERVICE_SERVICE_LINK_H

#include "daemon/control/control.h"

#define HR_EXIT_NO_SERVICE 69 /* as sysexits' EX_UNAVAILABLE */

/* The socket that --socket, else HEADRACE_CONTROL names, else the usual one. */
const char *hr_service_socket(const char *option);

/* Takes each answer but the last, in order; NULL: they do not matter. */
typedef void hr_service_answer(void *arg, const struct hr_message *m);

/*
 * Sends `request` (its memory serves for the answers, too) and waits, for ever if need be. 0; or -errno after saying why:
 * -ENOENT and -ECONNREFUSED where there is no service, else what it answered.
 */
int hr_service_ask(const char *socket, struct hr_message *request, hr_service_answer *answer,
		   void *arg);

/* The same over a connection (hr_control_connect), which it closes; and what hr_service_ask says where there is none: returns r. */
int hr_service_ask_over(int fd, struct hr_message *request, hr_service_answer *answer, void *arg);
int hr_service_none(const char *socket, int r);

/* The exit status for what hr_service_ask returned. */
int hr_service_exit(int r);

#endif
