/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/service/service_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "daemon/control/requests.h"

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

static int refused(const struct hr_message *m)
{
	char text[1024] = "it did not say why";
	int64_t code = hr_message_get_int(m, "code", EPROTO);

	hr_message_get(m, "text", text, sizeof(text));
	hr_report("headraced: %s", text);
	/* Its own word that there is no such job is none that there is no headraced. */
	if (code == ENOENT || code == ECONNREFUSED)
		return -EREMOTEIO;
	return code > 0 && code < 4096 ? -(int)code : -EPROTO;
}

int hr_service_ask_over(int fd, struct hr_message *request, hr_service_answer *answer, void *arg)
{
	int r = hr_control_ask(fd, -1, request, answer, arg);

	close(fd);
	if (r == -EREMOTEIO)
		return refused(request);
	if (r < 0)
		hr_report("headraced went away before it had answered: %s", strerrordesc_np(-r));
	return r;
}

int hr_service_ask(const char *socket, struct hr_message *request, hr_service_answer *answer,
		   void *arg)
{
	int fd = -1, r = hr_control_connect(socket, &fd);

	return r < 0 ? hr_service_none(socket, r) : hr_service_ask_over(fd, request, answer, arg);
}

int hr_service_exit(int r)
{
	if (r == 0)
		return EXIT_SUCCESS;
	return r == -ENOENT || r == -ECONNREFUSED ? HR_EXIT_NO_SERVICE : EXIT_FAILURE;
}
