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

enum { OPT_TOP = 256, OPT_BEST, OPT_RANK, OPT_FROM, OPT_TO };

/* The arguments of `headrace query`: words[0] is the name of the query. */
struct words {
	struct hr_query_request request;
	const char *query; /* the query for text */
	const char *rows;  /* the query for other formats, which is also the name of the command */
	bool settings;	   /* true: `headrace what-if`, whose operands may be settings */
	char given[4][64]; /* arguments of `diagnose`: top, rank, from, to */
	int n_given;
};

#define TEXT(member) HR_OPTION_TEXT(struct words, member)

const struct hr_option hr_diagnose_option_table[] = {
    {"job", TEXT(request.job), "JOB", "only this job", HR_VALUES_OTHER},
    {"rank", OPT_RANK, "N", "only this rank (default: the mean of all)", HR_VALUES_OTHER},
    {"from", OPT_FROM, "SECONDS", "skip the first SECONDS of the job; -N: only its last N seconds",
     HR_VALUES_OTHER},
    {"to", OPT_TO, "SECONDS", "skip what comes after SECONDS; -N: skip the last N seconds",
     HR_VALUES_OTHER},
    {"top", OPT_TOP, "N", "at most N causes of each job (default: 5)", HR_VALUES_OTHER},
    HR_OPTIONS_FORMAT("text json csv"),
    HR_OPTIONS_END,
};

const struct hr_option hr_what_if_option_table[] = {
    {"best", OPT_BEST, NULL, "find the fewest workers with a time within 3 % of the shortest",
     NULL},
    {"job", TEXT(request.job), "JOB", "only this job", HR_VALUES_OTHER},
    HR_OPTIONS_FORMAT("text json csv"),
    HR_OPTIONS_END,
};

/* `headrace what-if` takes settings, as NAME=VALUE. The setting `persistent` needs no value. */
#define PERSISTENT "persistent"
#define SETTINGS   "workers prefetch batch persistent cores io mount cached reads checkpoint"

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

static int take_argument(void *self, int id, const char *value)
{
	struct words *w = self;
	bool text;

	switch (id) {
	case OPT_TOP:
		give(w, "top", value);
		return 0;
	case OPT_RANK:
		give(w, "rank", value);
		return 0;
	case OPT_FROM:
		give(w, "from", value);
		return 0;
	case OPT_TO:
		give(w, "to", value);
		return 0;
	case OPT_BEST:
		add_word(w, "best=true");
		return 0;
	case HR_OPTION_FORMAT:
		hr_ask_format(value, &w->request.format);
		text = w->request.format == HR_FORMAT_TEXT;
		w->request.words[0] = (char *)(text ? w->query : w->rows);
		return 0;
	default: /* an operand */
		if (w->settings)
			return take_setting(w, (char *)value) ? 0 : -1;
		add_store(w, value);
		return 0;
	}
}

/* Allocates room for the stores and words of `argc` arguments. False: no memory. */
static bool words_init(struct words *w, int argc)
{
	w->request.stores = calloc((size_t)argc + 1, sizeof(*w->request.stores));
	w->request.words = calloc((size_t)argc + 5, sizeof(*w->request.words));
	if (w->request.stores == NULL || w->request.words == NULL)
		return false;
	add_word(w, w->query);
	return true;
}

int hr_diagnose_main(int argc, char **argv)
{
	struct words w = {.query = "diagnosis", .rows = "diagnose"};
	int status = EXIT_FAILURE;

	if (words_init(&w, argc) &&
	    hr_arguments(argc, argv, hr_diagnose_option_table, take_argument, &w, &status)) {
		for (int i = 0; i < w.n_given; i++)
			add_word(&w, w.given[i]);
		status = hr_query_answer(&w.request);
	}
	hr_request_done(&w.request);
	return status;
}

int hr_what_if_main(int argc, char **argv)
{
	struct words w = {.query = "forecast", .rows = "what-if", .settings = true};
	int status = EXIT_FAILURE;

	if (words_init(&w, argc) &&
	    hr_arguments(argc, argv, hr_what_if_option_table, take_argument, &w, &status)) {
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
