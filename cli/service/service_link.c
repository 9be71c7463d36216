/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/service/service_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

const char *hr_service_socket(const char *option)
{
	const char *variable = hr_getenv("HEADRACE_CONTROL");

	if (option)
		return option;
	return variable ? variable : HR_SERVICE_CONTROL;
}

bool hr_service_is_absent(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED;
}

int hr_service_report_absent(const char *socket, int r)
{
	static const char hint[] =
	    HR_HINT "`systemctl start headraced` starts an installed service; "
		    "`headrace run -- CMD` records without one";

	hr_report("cannot connect to headraced at %s: %s%s", socket, strerrordesc_np(-r),
		  hr_service_is_absent(r) ? hint : "");
	return r;
}

int hr_service_request_over(int fd, hr_control_kind kind, const ProtobufCMessage *body,
			    hr_service_answer *answer, void *arg)
{
	char *refusal = NULL;
	int r = hr_control_request(fd, -1, kind, body, answer, arg, &refusal);

	close(fd);
	if (refusal)
		hr_report("headraced: %s", refusal);
	else if (r < 0)
		hr_report("headraced closed the connection before it answered: %s",
			  strerrordesc_np(-r));
	free(refusal);
	return r;
}

int hr_service_status(const char *socket, unsigned timeout_ms, hr_service_answer *answer, void *arg)
{
	int fd = -1, r = hr_control_connect_within(socket, timeout_ms, &fd);

	if (r < 0)
		return r == -EAGAIN ? -ETIMEDOUT : r;
	r = hr_control_request(fd, (int)timeout_ms, HR_CONTROL(GET_STATUS), NULL, answer, arg,
			       NULL);
	close(fd);
	return r;
}

int hr_service_request(const char *option, hr_control_kind kind, const ProtobufCMessage *body,
		       hr_service_answer *answer, void *arg)
{
	const char *socket = hr_service_socket(option);
	int fd = -1, r = hr_control_connect(socket, &fd);

	r = r < 0 ? hr_service_report_absent(socket, r)
		  : hr_service_request_over(fd, kind, body, answer, arg);
	if (r == 0)
		return EXIT_SUCCESS;
	return hr_service_is_absent(r) ? HR_EXIT_NO_SERVICE : EXIT_FAILURE;
}
