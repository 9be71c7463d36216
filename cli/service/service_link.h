/* SPDX-License-Identifier: Apache-2.0 */
/* service_link.h - one request to the headraced of this node (proto/control.proto) */
#ifndef HEADRACE_CLI_SERVICE_SERVICE_LINK_H
#define HEADRACE_CLI_SERVICE_SERVICE_LINK_H

#include <stdbool.h>

#include "daemon/control/control.h"

/* Returns the path of --socket (`option`, may be NULL), of HEADRACE_CONTROL, or the default. */
const char *hr_service_socket(const char *option);

/* Called for each answer except the last one (`take` of hr_control_request). */
typedef void hr_service_answer(void *arg, Headrace__Control *m);

/*
 * Sends a request (control.h) to the socket of hr_service_socket, and waits for the answer without
 * a time limit. Reports a failure. Returns the exit status of the command.
 */
int hr_service_request(const char *option, hr_control_kind kind, const ProtobufCMessage *body,
		       hr_service_answer *answer, void *arg);

/*
 * Like hr_service_request, but uses the connection `fd` (hr_control_connect), and closes it.
 * Returns 0, or -errno after it has reported the failure (-EREMOTEIO: headraced refused the
 * request).
 */
int hr_service_request_over(int fd, hr_control_kind kind, const ProtobufCMessage *body,
			    hr_service_answer *answer, void *arg);

/*
 * Asks the headraced at `socket` for its jobs, and waits at most timeout_ms for the connection and
 * for each answer. Returns 0 or -errno: -ETIMEDOUT, if it does not answer.
 */
int hr_service_status(const char *socket, unsigned timeout_ms, hr_service_answer *answer,
		      void *arg);

/* Returns whether r, a result of hr_control_connect, means that no service runs. */
bool hr_service_is_absent(int r);

/* Reports that hr_control_connect failed with r. Returns r. */
int hr_service_report_absent(const char *socket, int r);

#endif
