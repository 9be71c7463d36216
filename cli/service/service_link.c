/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/service/service_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

const char *hr_service_socket(const char *option)
{
	const char *variable = getenv("HEADRACE_CONTROL");

	if (option)
		return option;
	return variable && variable[0] != '\0' ? variable : HR_SERVICE_CONTROL;
}

int hr_service_none(const char *socket, int r)
{
	hr_report("no headraced answers at %s: %s", socket, strerrordesc_np(-r));
	if (r == -ENOENT || r == -ECONNREFUSED)
		hr_report(
		    "`systemctl start headraced` starts the service of this node, where it is "
		    "installed; `headrace run -- CMD` records without one");
	return r;
}

int hr_service_ask_over(int fd, hr_control_kind kind, const ProtobufCMessage *body,
			hr_service_answer *answer, void *arg)
{
	char *refusal = NULL;
	int r = hr_control_ask(fd, -1, kind, body, answer, arg, &refusal);

	close(fd);
	if (refusal)
		hr_report("headraced: %s", refusal);
	else if (r < 0)
		hr_report("headraced closed the connection before it answered: %s",
			  strerrordesc_np(-r));
	free(refusal);
	return r;
}

int hr_service_ask(const char *socket, hr_control_kind kind, const ProtobufCMessage *body,
		   hr_service_answer *answer, void *arg)
{
	int fd = -1, r = hr_control_connect(socket, &fd);

	return r < 0 ? hr_service_none(socket, r)
		     : hr_service_ask_over(fd, kind, body, answer, arg);
}

int hr_service_exit(int r)
{
	if (r == 0)
		return EXIT_SUCCESS;
	return r == -ENOENT || r == -ECONNREFUSED ? HR_EXIT_NO_SERVICE : EXIT_FAILURE;
}
