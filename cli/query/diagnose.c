/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace diagnose, headrace what-if: `headrace query` with the named queries `diagnosis` and
 * `forecast` (text), or `diagnose` and `what-if` (JSON).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"

enum { OPT_JOB = 256, OPT_JSON, OPT_TOP, OPT_BEST };

const struct hr_option hr_diagnose_option_table[] = {
    {"job", OPT_JOB, "JOB", "only this job", HR_VALUES_OTHER},
    {"top", OPT_TOP, "N", "at most N causes of each job (default: 5)", HR_VALUES_OTHER},
    {"json", OPT_JSON, NULL, "print JSON instead of text", NULL},
    {"help", 'h', NULL, "print this text", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

const struct hr_option hr_what_if_option_table[] = {
    {"best", OPT_BEST, NULL, "try settings, and show the cheapest within 3 % of the best one",
     NULL},
    {"job", OPT_JOB, "JOB", "only this job", HR_VALUES_OTHER},
    {"json", OPT_JSON, NULL, "print JSON instead of text", NULL},
    {"help", 'h', NULL, "print this text", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

/* Words of `headrace what-if` that are no stores: NAME=VALUE. */
static const char *const settings[] = {"workers", "prefetch",	"cores",
				       "io",	  "persistent", "checkpoint"};

/* What `headrace query` gets: its options, the stores, the query and its arguments. */
struct words {
	char **list;
	int n;
	const char *query;
	char *arguments[16]; /* of the query */
	int n_arguments;
	char top[32];
};

static void add(struct words *w, const char *word)
{
	w->list[w->n++] = (char *)word;
}

static void add_argument(struct words *w, const char *word)
{
	if (w->n_arguments < (int)(sizeof(w->arguments) / sizeof(w->arguments[0])))
		w->arguments[w->n_arguments++] = (char *)word;
}

/* Reads the options. `json`: the query with --json. 0: continue; 1: *ret_status is the result. */
static int take_options(struct hr_options *o, struct words *w, const char *command,
			const char *json, int *ret_status)
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
			snprintf(w->top, sizeof(w->top), "top=%s", o->value);
			break;
		case OPT_BEST:
			add_argument(w, "best=true");
			break;
		case OPT_JSON:
			add(w, "--format");
			add(w, "json");
			w->query = json;
			break;
		case 'h':
			*ret_status = hr_command_help(command);
			return 1;
		default:
			return 1;
		}
	}
	if (o->next < o->argc)
		return 0;
	hr_report("no store given" HR_HINT "`headrace %s STORE`: the folder that `headrace "
		  "run` created, or a collector",
		  command);
	return 1;
}

static int ask(struct words *w)
{
	add(w, w->query);
	for (int i = 0; i < w->n_arguments; i++)
		add(w, w->arguments[i]);
	return hr_query_main(w->n, w->list);
}

/* Each argument becomes two words at most. */
static bool words_init(struct words *w, int argc, const char *query)
{
	*w =
	    (struct words){.list = calloc(2 * (size_t)argc + 32, sizeof(*w->list)), .query = query};
	if (w->list != NULL)
		add(w, "query");
	return w->list != NULL;
}

int hr_diagnose_main(int argc, char **argv)
{
	struct hr_options o = {
	    .table = hr_diagnose_option_table, .argv = argv, .argc = argc, .next = 1};
	int status = EXIT_FAILURE;
	struct words w;

	if (!words_init(&w, argc, "diagnosis"))
		return status;
	strcpy(w.top, "top=5");
	add_argument(&w, w.top);
	if (take_options(&o, &w, "diagnose", "diagnose", &status) == 0) {
		while (o.next < argc)
			add(&w, argv[o.next++]);
		status = ask(&w);
	}
	free(w.list);
	return status;
}

static bool is_setting(const char *word)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		size_t n = strlen(settings[i]);

		if (strncmp(word, settings[i], n) == 0 && word[n] == '=')
			return true;
	}
	return false;
}

int hr_what_if_main(int argc, char **argv)
{
	struct hr_options o = {
	    .table = hr_what_if_option_table, .argv = argv, .argc = argc, .next = 1};
	int status = EXIT_FAILURE;
	struct words w;

	if (!words_init(&w, argc, "forecast"))
		return status;
	if (take_options(&o, &w, "what-if", "what-if", &status) == 0) {
		for (; o.next < argc; o.next++) {
			if (strcmp(argv[o.next], "persistent") == 0)
				add_argument(&w, "persistent=true");
			else if (is_setting(argv[o.next]))
				add_argument(&w, argv[o.next]);
			else
				add(&w, argv[o.next]);
		}
		if (w.n_arguments > 0) {
			status = ask(&w);
		} else {
			hr_report("no setting given" HR_HINT
				  "for example workers=4, or --best to try settings; "
				  "`headrace what-if --help` lists them");
			status = HR_EXIT_USAGE;
		}
	}
	free(w.list);
	return status;
}
