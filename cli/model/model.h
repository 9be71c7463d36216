/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - the parts of `headrace model`
 *
 *      files -> measurements (input) -> one answer for each region and metric -> text, JSON, CSV
 *
 * Owner     The caller owns the structures; the _done functions free what they contain.
 * Threads   One.
 */
#ifndef HEADRACE_CLI_MODEL_MODEL_H
#define HEADRACE_CLI_MODEL_MODEL_H

#include <stdio.h>

#include "cli/cli.h"
#include "model/forecast.h"
#include "model/points.h"
#include "model/search.h"

/* A parameter that is a label of the runs may be named with this prefix. */
#define HR_MODEL_LABEL "label:"

/* What to model, wherever it comes from. */
struct hr_model_input {
	struct hr_measurements measurements;
	bool of_runs; /* read from stores, not from a file */
};

struct hr_model_request {
	const char
	    *over;	/* names of parameters, with commas; NULL: those that have several values */
	const char *at; /* NAME=VALUE, with commas; NULL: four times the largest point */
	const char *region; /* globs; NULL: all */
	const char *metric;
	enum hr_space space;
	double cores; /* of each process, for the cost */
};

/* One region and metric. */
struct hr_model_answer {
	const struct hr_series *series;
	struct hr_axes axes;
	struct hr_model_samples samples;
	struct hr_model model; /* Extra-P's */
	struct hr_forecast forecast;
	double at[HR_MODEL_PARAMETERS]; /* the point of the forecast, in the order of the axes */
	const char *names[HR_MODEL_PARAMETERS];	    /* escaped names of the axes */
	const char *all_names[HR_MODEL_PARAMETERS]; /* escaped names of all parameters */
};

struct hr_model_answers {
	struct hr_model_answer *list; /* times first; of each, the largest forecast first */
	size_t n, room;
	char *names[HR_MODEL_PARAMETERS]; /* escaped names of all parameters */
	unsigned n_names;
	double cores;
	enum hr_space space;
	size_t short_series; /* regions and metrics with too few points */
	char *short_reason;  /* why the first of them has no model; NULL: none */
};

enum hr_model_operand {
	HR_MODEL_FILE,	 /* measurements */
	HR_MODEL_STORE,	 /* stores, or a collector */
	HR_MODEL_MISSING /* neither */
};
enum hr_model_operand hr_model_operand(const char *operand);

/*
 * Reads runs of stores (hr_compare_read). `over`: names of parameters, or NULL. Returns an exit
 * status, after a report if it is not EXIT_SUCCESS.
 */
int hr_model_stores_read(const char *const *operands, size_t n, const char *over,
			 struct hr_model_input *to);

/* Whether the request selects a series. */
bool hr_model_selects(const struct hr_model_request *r, const struct hr_series *s);

/* Models the selected series. Returns an exit status, after a report if it is not EXIT_SUCCESS. */
int hr_model_answer(const struct hr_model_input *input, const struct hr_model_request *r,
		    struct hr_model_answers *ret);
void hr_model_answers_done(struct hr_model_answers *a);

/* Returns the unit that the name of a metric ends with, after a blank: " s" for "read_s"; "". */
const char *hr_model_unit(const struct hr_series *s);

/* Whether the metric is a time: its name ends with _s, _ms, _us or _ns, or is "time" or "runtime". */
bool hr_model_is_time(const struct hr_series *s);

/* Whether a model has a speed-up, efficiency and cost: of a time over a number of processes. */
bool hr_model_has_scaling(const struct hr_model_answer *a);

/* Returns the answer as a sentence (malloc'ed); NULL: there is none, or no memory. */
char *hr_model_sentence(const struct hr_model_answer *a);

/*
 * Writes a page with a picture of each model of one parameter. Returns 0 or -errno; -EINVAL: all
 * models have several parameters.
 */
int hr_model_page(const struct hr_model_answers *a, FILE *out);

void hr_model_print_text(const struct hr_model_answers *a, FILE *out);
void hr_model_print_json(const struct hr_model_answers *a, FILE *out);
void hr_model_print_csv(const struct hr_model_answers *a, FILE *out);

#endif
