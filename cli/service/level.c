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

enum { OPT_FOR = 256 };

struct level_request {
	const char *operands[2], *socket; /* JOB, LEVEL */
	int n;
	uint64_t for_ns;
};

const struct hr_option hr_level_option_table[] = {
    {"for", OPT_FOR, "TIME", "restore the previous level after TIME (default: never)",
     HR_VALUES_OTHER},
    {"socket", HR_OPTION_TEXT(struct level_request, socket), "PATH",
     "control socket (default: /run/headrace/control.sock)", NULL},
    HR_OPTIONS_END,
};

static int set_level(const struct level_request *q)
{
	Headrace__JobRequest request = HEADRACE__JOB_REQUEST__INIT;
	int to = hr_level_parse(q->operands[1]);

	if (to < 0) {
		struct hr_near near = hr_near(q->operands[1]);

		hr_near_add_list(&near, "counters trace");
		hr_report("the level must be counters or trace, not %s", hr_near_text(&near).s);
		return HR_EXIT_USAGE;
	}
	request.job = hr_control_text(q->operands[0]);
	request.has_level = true;
	request.level = (uint32_t)to;
	request.for_ms = q->for_ns / 1000000;
	return hr_service_request(q->socket, HR_CONTROL(SET_LEVEL), &request.base, NULL, NULL);
}

static int take_argument(void *self, int id, const char *value)
{
	struct level_request *q = self;

	if (id == OPT_FOR)
		return hr_option_time("for", "a time such as 60s or 5m", value, &q->for_ns);
	if (q->n == 2) {
		hr_report("too many arguments: headrace level JOB counters|trace");
		return -1;
	}
	q->operands[q->n++] = value;
	return 0;
}

int hr_level_main(int argc, char **argv)
{
	struct level_request q = {0};
	int status;

	if (!hr_arguments(argc, argv, hr_level_option_table, take_argument, &q, &status))
		return status;
	if (q.n == 2)
		return set_level(&q);
	hr_report("no %s given: headrace level JOB counters|trace [--for TIME]" HR_HINT
		  "`headrace status` lists jobs",
		  q.n == 0 ? "job" : "level");
	return HR_EXIT_USAGE;
}
