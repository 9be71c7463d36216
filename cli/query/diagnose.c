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

enum { OPT_JOB = 256, OPT_JSON, OPT_TOP, OPT_BEST, OPT_RANK, OPT_FROM, OPT_TO };

const struct hr_option hr_diagnose_option_table[] = {
    {"job", OPT_JOB, "JOB", "only this job", HR_VALUES_OTHER},
    {"rank", OPT_RANK, "N", "only this rank (default: the mean of all)", HR_VALUES_OTHER},
    {"from", OPT_FROM, "SECONDS", "skip the first SECONDS of the job; -N: only its last N seconds",
     HR_VALUES_OTHER},
    {"to", OPT_TO, "SECONDS", "skip what comes after SECONDS; -N: skip the last N seconds",
     HR_VALUES_OTHER},
    {"top", OPT_TOP, "N", "at most N causes of each job (default: 5)", HR_VALUES_OTHER},
    {"json", OPT_JSON, NULL, "print JSON instead of text", NULL},
    {"help", 'h', NULL, "print this text", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

const struct hr_option hr_what_if_option_table[] = {
    {"best", OPT_BEST, NULL, "find the fewest workers, at most 3 % slower than the best", NULL},
    {"job", OPT_JOB, "JOB", "only this job", HR_VALUES_OTHER},
    {"json", OPT_JSON, NULL, "print JSON instead of text", NULL},
    {"help", 'h', NULL, "print this text", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

/* Words of `headrace what-if` that are no stores: NAME=VALUE, or the name alone. */
#define PERSISTENT "persistent"
static const char *const settings[] = {"workers", "prefetch", "cores", "io",	     "batch",
				       "mount",	  "cached",   "reads", "checkpoint", PERSISTENT};

/* Arguments for `headrace query`: options and stores, then the query and its arguments. */
struct words {
	char **list;
	int n, stores;
	char **settings; /* arguments of the query */
	int n_settings;
	const char *query;
	char given[4][64]; /* arguments of `diagnose`: top, rank, from, to */
	int n_given;
};

static void add(struct words *w, const char *word)
{
	w->list[w->n++] = (char *)word;
}

/* The last value of an option counts. */
static void give(struct words *w, const char *name, const char *value)
{
	size_t n = strlen(name);
	int i = 0;

	while (i < w->n_given && (strncmp(w->given[i], name, n) != 0 || w->given[i][n] != '='))
		i++;
	snprintf(w->given[i], sizeof(w->given[i]), "%s=%s", name, value);
	w->n_given += i == w->n_given;
}

static bool is_setting(const char *word)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		size_t n = strlen(settings[i]);

		if (strncmp(word, settings[i], n) == 0 && (word[n] == '=' || word[n] == ':'))
			return true;
	}
	return strcmp(word, PERSISTENT) == 0;
}

/* If `settings` is NULL, all words are stores. */
static void take_word(struct words *w, char *word)
{
	if (w->settings == NULL || !is_setting(word)) {
		add(w, word);
		w->stores++;
	} else if (strcmp(word, PERSISTENT) == 0) {
		w->settings[w->n_settings++] = (char *)PERSISTENT "=true";
	} else {
		word[strcspn(word, "=:")] = '=';
		w->settings[w->n_settings++] = word;
	}
}

/* Reads all arguments. `json`: query for --json. 0: continue; 1: *ret_status is the result. */
static int take_arguments(struct hr_options *o, struct words *w, const char *command,
			  const char *json, int *ret_status)
{
	*ret_status = HR_EXIT_USAGE;
	for (;;) {
		int id = hr_option_next(o);

		switch (id) {
		case HR_OPTION_END:
			if (o->next < o->argc) {
				take_word(w, o->argv[o->next++]);
				continue;
			}
			if (w->stores > 0)
				return 0;
			hr_report("no store given" HR_HINT "`headrace %s STORE`: the folder that "
				  "`headrace run` created, or a collector",
				  command);
			return 1;
		case OPT_JOB:
			add(w, "--job");
			add(w, o->value);
			break;
		case OPT_TOP:
			give(w, "top", o->value);
			break;
		case OPT_RANK:
			give(w, "rank", o->value);
			break;
		case OPT_FROM:
			give(w, "from", o->value);
			break;
		case OPT_TO:
			give(w, "to", o->value);
			break;
		case OPT_BEST:
			w->settings[w->n_settings++] = (char *)"best=true";
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
}

int hr_diagnose_main(int argc, char **argv)
{
	struct hr_options o = {
	    .table = hr_diagnose_option_table, .argv = argv, .argc = argc, .next = 1};
	/* Each argument becomes two words at most. */
	struct words w = {.list = calloc(2 * (size_t)argc + 8, sizeof(*w.list)),
			  .query = "diagnosis"};
	int status = EXIT_FAILURE;

	if (w.list == NULL)
		return status;
	add(&w, "query");
	if (take_arguments(&o, &w, "diagnose", "diagnose", &status) == 0) {
		add(&w, w.query);
		for (int i = 0; i < w.n_given; i++)
			add(&w, w.given[i]);
		status = hr_query_main(w.n, w.list);
	}
	free(w.list);
	return status;
}

static int ask_what_if(struct words *w)
{
	if (w->n_settings == 0) {
		hr_report("no setting given" HR_HINT
			  "for example workers=4, or --best to try settings; "
			  "`headrace what-if --help` lists them");
		return HR_EXIT_USAGE;
	}
	add(w, w->query);
	for (int i = 0; i < w->n_settings; i++)
		add(w, w->settings[i]);
	return hr_query_main(w->n, w->list);
}

int hr_what_if_main(int argc, char **argv)
{
	struct hr_options o = {
	    .table = hr_what_if_option_table, .argv = argv, .argc = argc, .next = 1};
	struct words w = {.list = calloc(3 * (size_t)argc + 4, sizeof(*w.list)),
			  .settings = calloc((size_t)argc, sizeof(*w.settings)),
			  .query = "forecast"};
	int status = EXIT_FAILURE;

	if (w.list != NULL && w.settings != NULL) {
		add(&w, "query");
		if (take_arguments(&o, &w, "what-if", "what-if", &status) == 0)
			status = ask_what_if(&w);
	}
	free(w.list);
	free(w.settings);
	return status;
}
