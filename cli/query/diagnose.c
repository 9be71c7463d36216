/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace diagnose, headrace what-if: `headrace query` with the named queries `diagnosis` and
 * `forecast` (text), or `diagnose` and `what-if` (other formats).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/query/query.h"
#include "cli/stores.h"

enum { OPT_JOB = 256, OPT_TOP, OPT_BEST, OPT_RANK, OPT_FROM, OPT_TO };

const struct hr_option hr_diagnose_option_table[] = {
    {"job", OPT_JOB, "JOB", "only this job", HR_VALUES_OTHER},
    {"rank", OPT_RANK, "N", "only this rank (default: the mean of all)", HR_VALUES_OTHER},
    {"from", OPT_FROM, "SECONDS", "skip the first SECONDS of the job; -N: only its last N seconds",
     HR_VALUES_OTHER},
    {"to", OPT_TO, "SECONDS", "skip what comes after SECONDS; -N: skip the last N seconds",
     HR_VALUES_OTHER},
    {"top", OPT_TOP, "N", "at most N causes of each job (default: 5)", HR_VALUES_OTHER},
    HR_OPTIONS_FORMAT("text json csv"),
    {"help", 'h', NULL, "print this text", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

const struct hr_option hr_what_if_option_table[] = {
    {"best", OPT_BEST, NULL, "find the fewest workers with a time within 3 % of the shortest",
     NULL},
    {"job", OPT_JOB, "JOB", "only this job", HR_VALUES_OTHER},
    HR_OPTIONS_FORMAT("text json csv"),
    {"help", 'h', NULL, "print this text", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

/* `headrace what-if` takes settings, as NAME=VALUE. The setting `persistent` needs no value. */
#define PERSISTENT "persistent"
#define SETTINGS   "workers prefetch batch persistent cores io mount cached reads checkpoint"

/* The arguments of `headrace query`: words[0] is the name of the query. */
struct words {
	struct hr_query_request request;
	bool settings;	   /* true: `headrace what-if`, whose operands may be settings */
	char given[4][64]; /* arguments of `diagnose`: top, rank, from, to */
	int n_given;
};

static void add_store(struct words *w, const char *store)
{
	w->request.stores[w->request.n_stores++] = store;
}

static void add_word(struct words *w, const char *word)
{
	w->request.words[w->request.n_words++] = (char *)word;
}

/* Stores the value of an option, which replaces an earlier value of the same option. */
static void give(struct words *w, const char *name, const char *value)
{
	size_t n = strlen(name);
	int i = 0;

	while (i < w->n_given && (strncmp(w->given[i], name, n) != 0 || w->given[i][n] != '='))
		i++;
	snprintf(w->given[i], sizeof(w->given[i]), "%s=%s", name, value);
	w->n_given += i == w->n_given;
}

/* Reports a word that is neither a setting nor a path. `name`: the word up to `=`. */
static void report_no_setting(const char *name, bool with_value)
{
	struct hr_near near = hr_near(name);

	hr_near_add_list(&near, SETTINGS);
	if (!with_value)
		hr_stores_near(&near);
	hr_report("no setting%s %s%s", with_value ? "" : " or store", hr_near_text(&near).s,
		  near.best[0] == '\0' ? HR_HINT "the settings are " SETTINGS : "");
}

/* Adds the word as a setting or as a store. Returns false after it has reported a mistake. */
static bool take_setting(struct words *w, char *word)
{
	char name[HR_NEAR_BYTES], list[] = SETTINGS, *at = list, *known;
	size_t n = strcspn(word, "=:");
	bool path = access(word, F_OK) == 0;

	snprintf(name, sizeof(name), "%.*s", (int)n, word);
	while ((known = strsep(&at, " ")) != NULL && strcmp(known, name) != 0)
		;
	if (strcmp(word, PERSISTENT) == 0) {
		add_word(w, PERSISTENT "=true");
	} else if (known != NULL && word[n] != '\0') {
		word[n] = '=';
		add_word(w, word);
	} else if (path || strchr(name, '/') != NULL || hr_address_is(word)) {
		add_store(w, word);
	} else if (known != NULL) {
		hr_report("%s needs a value: %s=...", name, name);
		return false;
	} else {
		report_no_setting(name, word[n] != '\0');
		return false;
	}
	return true;
}

/*
 * `query` is the query for text, `rows` that for other formats. Returns 0 to continue, or 1 to end
 * with *ret_status.
 */
static int take_arguments(struct hr_options *o, struct words *w, const char *query,
			  const char *rows, int *ret_status)
{
	bool text;

	*ret_status = HR_EXIT_USAGE;
	for (;;) {
		int id = hr_option_next(o);

		switch (id) {
		case HR_OPTION_END:
			if (o->next >= o->argc)
				return 0;
			if (!w->settings)
				add_store(w, o->argv[o->next++]);
			else if (!take_setting(w, o->argv[o->next++]))
				return 1;
			break;
		case OPT_JOB:
			w->request.job = o->value;
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
			add_word(w, "best=true");
			break;
		case HR_OPTION_FORMAT:
			hr_ask_format(o->value, &w->request.format);
			text = w->request.format == HR_FORMAT_TEXT;
			w->request.words[0] = (char *)(text ? query : rows);
			break;
		case 'h':
			*ret_status = hr_command_help(rows);
			return 1;
		default:
			return 1;
		}
	}
}

/* Allocates room for the stores and words of `argc` arguments. False: no memory. */
static bool words_init(struct words *w, int argc, const char *query)
{
	w->request.stores = calloc((size_t)argc + 1, sizeof(*w->request.stores));
	w->request.words = calloc((size_t)argc + 5, sizeof(*w->request.words));
	if (w->request.stores == NULL || w->request.words == NULL)
		return false;
	add_word(w, query);
	return true;
}

int hr_diagnose_main(int argc, char **argv)
{
	struct hr_options o = {
	    .table = hr_diagnose_option_table, .argv = argv, .argc = argc, .next = 1};
	struct words w = {0};
	int status = EXIT_FAILURE;

	if (words_init(&w, argc, "diagnosis") &&
	    take_arguments(&o, &w, "diagnosis", "diagnose", &status) == 0) {
		for (int i = 0; i < w.n_given; i++)
			add_word(&w, w.given[i]);
		status = hr_query_answer(&w.request);
	}
	hr_request_done(&w.request);
	return status;
}

int hr_what_if_main(int argc, char **argv)
{
	struct hr_options o = {
	    .table = hr_what_if_option_table, .argv = argv, .argc = argc, .next = 1};
	struct words w = {.settings = true};
	int status = EXIT_FAILURE;

	if (words_init(&w, argc, "forecast") &&
	    take_arguments(&o, &w, "forecast", "what-if", &status) == 0) {
		if (w.request.n_words > 1) {
			status = hr_query_answer(&w.request);
		} else {
			hr_report("no setting given" HR_HINT "for example workers=4, or --best to "
				  "try settings; the settings are " SETTINGS);
			status = HR_EXIT_USAGE;
		}
	}
	hr_request_done(&w.request);
	return status;
}
