/* SPDX-License-Identifier: Apache-2.0 */
/* headrace level - changes the level of a running job of this node's service. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/service/service_link.h"
#include "common/level.h"
#include "common/near.h"
#include "common/text.h"

enum { OPT_FOR = 256, OPT_SOCKET };

const struct hr_option hr_level_option_table[] = {
    {"for", OPT_FOR, "TIME", "restore the previous level after TIME (default: never)",
     HR_VALUES_OTHER},
    {"socket", OPT_SOCKET, "PATH", "control socket (default: /run/headrace/control.sock)", NULL},
    {"help", 'h', NULL, "print this text", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

static int set_level(const char *job, const char *level, uint64_t for_ns, const char *socket)
{
	Headrace__JobRequest request = HEADRACE__JOB_REQUEST__INIT;
	int to = hr_level_parse(level);

	if (to < 0) {
		struct hr_near near = hr_near(level);

		hr_near_add_list(&near, "counters trace");
		hr_report("the level must be counters or trace, not %s", hr_near_text(&near).s);
		return HR_EXIT_USAGE;
	}
	request.job = hr_control_text(job);
	request.has_level = true;
	request.level = (uint32_t)to;
	request.for_ms = for_ns / 1000000;
	return hr_service_request(socket, HR_CONTROL(SET_LEVEL), &request.base, NULL, NULL);
}

int hr_level_main(int argc, char **argv)
{
	struct hr_options o = {
	    .table = hr_level_option_table, .argc = argc, .argv = argv, .next = 1};
	const char *operands[2] = {NULL, NULL}, *socket = NULL;
	uint64_t for_ns = 0;
	int n = 0, id;

	/* Options may also follow the operands: `level 7 trace --for 60s`. */
	while (o.next < argc) {
		id = hr_option_next(&o);
		if (id == HR_OPTION_BAD)
			return HR_EXIT_USAGE;
		if (id == 'h')
			return hr_command_help("level");
		if (id == OPT_SOCKET) {
			socket = o.value;
		} else if (id == OPT_FOR) {
			if (hr_option_time("for", "a time such as 60s or 5m", o.value, &for_ns) < 0)
				return HR_EXIT_USAGE;
		} else if (id == HR_OPTION_END && o.next < argc) {
			if (n == 2) {
				hr_report("too many arguments: headrace level JOB counters|trace");
				return HR_EXIT_USAGE;
			}
			operands[n++] = argv[o.next++];
		}
	}
	if (n < 2) {
		hr_report("no %s given: headrace level JOB counters|trace [--for TIME]" HR_HINT
			  "`headrace status` lists jobs",
			  n == 0 ? "job" : "level");
		return HR_EXIT_USAGE;
	}
	return set_level(operands[0], operands[1], for_ns, socket);
}
