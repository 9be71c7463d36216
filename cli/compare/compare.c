/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace compare: what differs between two sides of runs, and why. It asks each store for its
 * measures (query/named/measures.sql), and compares these (compare/compare.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/compare/compare.h"
#include "common/outfile.h"

enum { OPT_FAIL_ON = 256 };

#define EXIT_FAILED 3 /* a condition of --fail-on holds */

const struct hr_option hr_compare_option_table[] = {
    {"fail-on", OPT_FAIL_ON, "CONDITION",
     "exit with status 3 if the condition holds, for example 'input_wait > +5%'; may be repeated",
     HR_VALUES_OTHER},
    HR_OPTIONS_FORMAT("text json markdown junit"),
    {"output", 'o', "FILE", "write the answer to FILE (default: standard output)", NULL},
    HR_OPTIONS_END,
};

#define GATES 32u

struct compare_request {
	const char *operands[HR_COMPARE_SIDES];
	size_t n_operands;
	const char *output;
	void (*write)(const struct hr_compare_answer *a, FILE *to);
	struct hr_gate gates[GATES];
	size_t n_gates;
};

static void take_format(struct compare_request *r, const char *name)
{
	static const struct {
		const char *name;
		void (*write)(const struct hr_compare_answer *a, FILE *to);
	} formats[] = {{"text", hr_compare_text},
		       {"json", hr_compare_json},
		       {"markdown", hr_compare_markdown},
		       {"junit", hr_compare_junit}};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (strcmp(formats[i].name, name) == 0)
			r->write = formats[i].write;
}

static int take_argument(void *self, int id, const char *value)
{
	struct compare_request *r = self;

	switch (id) {
	case OPT_FAIL_ON:
		if (r->n_gates < GATES)
			return hr_gate_parse(value, &r->gates[r->n_gates++]) ? 0 : -1;
		hr_report("--fail-on: more than %u conditions", GATES);
		return -1;
	case HR_OPTION_FORMAT:
		take_format(r, value);
		return 0;
	case 'o':
		r->output = strcmp(value, "-") == 0 ? NULL : value;
		return 0;
	default: /* an operand */
		if (r->n_operands < HR_COMPARE_SIDES)
			r->operands[r->n_operands] = value;
		r->n_operands++;
		return 0;
	}
}

static bool check_operands(const struct compare_request *r)
{
	if (r->n_operands == HR_COMPARE_SIDES)
		return true;
	hr_report("compare needs two sides, A and B" HR_HINT
		  "headrace compare A1,A2 B1,B2, with several runs of a side separated by commas");
	return false;
}

/* Writes the answer. Returns 0 or -errno. */
static int write_answer(const struct compare_request *r, const struct hr_compare_answer *a)
{
	struct hr_outfile file;
	FILE *to;
	int err;

	if (r->output == NULL) {
		r->write(a, stdout);
		return fflush(stdout) != 0 || ferror(stdout) ? -errno : 0;
	}
	to = hr_outfile_open(&file, r->output, &err);
	if (to == NULL)
		return err;
	r->write(a, to);
	return hr_outfile_close(&file, to, true);
}

/* Reports runs that failed or were killed, or still run. Returns whether there are any. */
static bool report_bad_ends(const struct hr_compare_runs *runs)
{
	bool any = false;

	for (int side = 0; side < HR_COMPARE_SIDES; side++)
		for (size_t i = 0; i < runs[side].n; i++) {
			const struct hr_compare_run *run = &runs[side].runs[i];
			const char *state = hr_compare_bad_end(run);

			if (state == NULL)
				continue;
			hr_report("warning: %s (job %s) is %s: its durations are not those of a "
				  "whole run",
				  run->store, run->job, state);
			any = true;
		}
	return any;
}

/* Reports the conditions that hold. Returns whether there are any. */
static bool check_gates(struct compare_request *r, const struct hr_comparison *c)
{
	bool any = false;

	for (size_t i = 0; i < r->n_gates; i++) {
		hr_gate_check(&r->gates[i], c);
		if (r->gates[i].holds && r->output != NULL)
			hr_report("the condition holds: %s", r->gates[i].text);
		any |= r->gates[i].holds;
	}
	return any;
}

static int compare_runs(struct compare_request *r, const struct hr_compare_runs *runs)
{
	struct hr_compare_side sides[HR_COMPARE_SIDES] = {
	    {runs[HR_COMPARE_A].runs, runs[HR_COMPARE_A].n},
	    {runs[HR_COMPARE_B].runs, runs[HR_COMPARE_B].n}};
	struct hr_comparison c;
	struct hr_compare_answer answer = {&c, runs, r->gates, r->n_gates};
	bool failed = false, bad = report_bad_ends(runs);
	int err = hr_compare(sides, &c);

	if (err == 0) {
		failed = check_gates(r, &c);
		err = write_answer(r, &answer);
		hr_comparison_done(&c);
	}
	if (err == 0 && bad && !failed && r->n_gates > 0) {
		hr_report("the conditions cannot be checked: not all runs are whole");
		return EXIT_FAILURE;
	}
	if (err == 0)
		return failed ? EXIT_FAILED : EXIT_SUCCESS;
	hr_report("cannot write the comparison%s%s: %s", r->output != NULL ? " to " : "",
		  r->output != NULL ? r->output : "", strerrordesc_np(-err));
	return EXIT_FAILURE;
}

int hr_compare_main(int argc, char **argv)
{
	struct compare_request r = {.write = hr_compare_text};
	struct hr_compare_runs *runs = calloc(HR_COMPARE_SIDES, sizeof(*runs));
	int status = EXIT_FAILURE;

	if (runs != NULL &&
	    hr_arguments(argc, argv, hr_compare_option_table, take_argument, &r, &status)) {
		status = HR_EXIT_USAGE;
		if (check_operands(&r))
			status = hr_compare_read("compare", r.operands[HR_COMPARE_A],
						 &runs[HR_COMPARE_A]);
		if (status == EXIT_SUCCESS)
			status = hr_compare_read("compare", r.operands[HR_COMPARE_B],
						 &runs[HR_COMPARE_B]);
		if (status == EXIT_SUCCESS)
			status = compare_runs(&r, runs);
	}
	for (int i = 0; runs != NULL && i < HR_COMPARE_SIDES; i++)
		hr_compare_runs_done(&runs[i]);
	free(runs);
	return status;
}
