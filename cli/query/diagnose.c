/* SPDX-License-Identifier: Apache-2.0 */
/* headrace diagnose: `headrace query` with the named queries `diagnosis` (text) and `diagnose`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"

enum { OPT_JOB = 256, OPT_JSON, OPT_TOP };

const struct hr_option hr_diagnose_option_table[] = {
    {"job", OPT_JOB, "JOB", "only this job", HR_VALUES_OTHER},
    {"top", OPT_TOP, "N", "at most N causes of each job (default: 5)", HR_VALUES_OTHER},
    {"json", OPT_JSON, NULL, "print JSON instead of text", NULL},
    {"help", 'h', NULL, "print this text", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

/* What `headrace query` gets: its options, the stores, the query and its argument. */
struct words {
	char **list;
	int n;
};

static void add(struct words *w, const char *word)
{
	w->list[w->n++] = (char *)word;
}

/* Reads the options into `w`. 0: continue; 1: *ret_status is the result. */
static int take_options(struct hr_options *o, struct words *w, const char **ret_query, char *top,
			size_t room, int *ret_status)
{
	int id;

	*ret_status = HR_EXIT_USAGE;
	while ((id = hr_option_next(o)) != HR_OPTION_END) {
		switch (id) {
		case OPT_JOB:
			add(w, "--job");
			add(w, o->value);
			break;
		case OPT_TOP:
			snprintf(top, room, "top=%s", o->value);
			break;
		case OPT_JSON:
			add(w, "--format");
			add(w, "json");
			*ret_query = "diagnose";
			break;
		case 'h':
			*ret_status = hr_command_help("diagnose");
			return 1;
		default:
			return 1;
		}
	}
	if (o->next < o->argc)
		return 0;
	hr_report("no store given" HR_HINT "`headrace diagnose STORE`: the folder that `headrace "
		  "run` created, or a collector");
	return 1;
}

int hr_diagnose_main(int argc, char **argv)
{
	struct hr_options o = {
	    .table = hr_diagnose_option_table, .argv = argv, .argc = argc, .next = 1};
	/* Each argument becomes two words at most. */
	struct words w = {.list = calloc(2 * (size_t)argc + 4, sizeof(*w.list))};
	const char *query = "diagnosis";
	char top[32] = "top=5";
	int status = EXIT_FAILURE;

	if (w.list == NULL)
		return status;
	add(&w, "query");
	if (take_options(&o, &w, &query, top, sizeof(top), &status) == 0) {
		while (o.next < argc)
			add(&w, argv[o.next++]);
		add(&w, query);
		add(&w, top);
		status = hr_query_main(w.n, w.list);
	}
	free(w.list);
	return status;
}
