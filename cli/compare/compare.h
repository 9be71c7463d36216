/* SPDX-License-Identifier: Apache-2.0 */
/* compare.h - `headrace compare`: its sides, its conditions and its answers */
#ifndef HEADRACE_CLI_COMPARE_COMPARE_H
#define HEADRACE_CLI_COMPARE_COMPARE_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/query/query.h"
#include "common/text.h"
#include "compare/compare.h"

/* The runs of one side, with their memory. */
struct hr_compare_runs {
	struct hr_compare_run runs[HR_COMPARE_RUNS];
	size_t n;
	struct hr_answer_rows rows[HR_COMPARE_RUNS]; /* answers of the stores */
	struct hr_measure *measures[HR_COMPARE_RUNS];
	size_t n_stores;
	char *operand; /* the names of the stores and jobs */
};

/*
 * Reads the runs of `operand`: STORE[#JOB][,STORE[#JOB]]... Without #JOB, all jobs of a store are
 * runs. Reports failures, as those of `headrace <command>`. Returns an exit status.
 */
int hr_compare_read(const char *command, const char *operand, struct hr_compare_runs *ret);
/* Returns how a run ended, for example "killed"; NULL: as it should, or not known. */
const char *hr_compare_bad_end(const struct hr_compare_run *run);

void hr_compare_runs_done(struct hr_compare_runs *r);

/* ---- conditions ---- */

/* "input_wait > +5%": holds if the change is larger, and larger than its noise. */
struct hr_gate {
	const char *text;
	int quantity; /* enum hr_quantity; -1: the sum of a measure of files */
	const char *measure;
	bool less;
	double limit; /* seconds or, if `percent`, percent of side A; of a measure: its unit */
	bool percent;
	/* the result */
	double a, b, noise;
	bool holds;
};

/* Reads a condition. Returns false after it has reported a mistake. */
bool hr_gate_parse(const char *text, struct hr_gate *ret);
void hr_gate_check(struct hr_gate *g, const struct hr_comparison *c);

/* ---- answers ---- */

struct hr_compare_answer {
	const struct hr_comparison *comparison;
	const struct hr_compare_runs *runs; /* of both sides */
	const struct hr_gate *gates;
	size_t n_gates;
};

/* The first line (malloc'ed): which side is slower, by how much. NULL: no memory. */
char *hr_compare_verdict(const struct hr_compare_answer *a);

/* The quantities that the answers show: those of at least 1 % of the run. */
bool hr_compare_shows(const struct hr_comparison *c, enum hr_quantity quantity);

#define HR_COMPARE_LINE 256u
/* The settings that differ; "": none. */
void hr_compare_settings_text(const struct hr_comparison *c, char to[HR_COMPARE_LINE]);
/* The largest change, if it can be chance; "": there is none. */
void hr_compare_unsure_text(const struct hr_comparison *c, char to[HR_COMPARE_LINE]);

/* "+12 %"; "-" if A is 0 */
struct hr_human hr_compare_change(const struct hr_difference *d);

void hr_compare_text(const struct hr_compare_answer *a, FILE *to);
void hr_compare_json(const struct hr_compare_answer *a, FILE *to);
void hr_compare_markdown(const struct hr_compare_answer *a, FILE *to);
void hr_compare_junit(const struct hr_compare_answer *a, FILE *to);

#endif
