/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measurements of stores: each run is a point. Its parameters are those settings and labels of the
 * runs that differ between them.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/compare/compare.h"
#include "cli/model/model.h"
#include "common/array.h"
#include "common/near.h"

/* A setting or label that could be a parameter. */
struct candidate {
	const char *measure, *key; /* of the rows that have its value */
	const char *name;	   /* of the parameter */
	double *values;		   /* of each run; -1: a run has none */
};

struct stores {
	struct hr_compare_runs *list; /* of each operand */
	size_t n_operands;
	const struct hr_compare_run **runs;
	size_t n, room;
	struct candidate *candidates;
	size_t n_candidates, candidates_room;
};

/* ---- candidates ---- */

static bool is_label(const char *measure)
{
	return strcmp(measure, "label") == 0;
}

/*
 * Adds a candidate, unless some run has no value; of a label, reports this run. Returns 0 or
 * -ENOMEM.
 */
static int candidate_add(struct stores *s, const char *measure, const char *key, const char *name)
{
	struct candidate c = {measure, key, name, calloc(s->n, sizeof(*c.values))};

	if (c.values == NULL ||
	    !hr_array_reserve(s->candidates, s->n_candidates, s->candidates_room)) {
		free(c.values);
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->n; i++) {
		c.values[i] = hr_compare_run_value(s->runs[i], measure, key);
		if (!(c.values[i] >= 0)) {
			if (is_label(measure))
				hr_report(
				    "the label %s is no parameter: %s (job %s) does not have it, "
				    "or its value is no number",
				    name, s->runs[i]->store, s->runs[i]->job);
			free(c.values);
			return 0;
		}
	}
	s->candidates[s->n_candidates++] = c;
	return 0;
}

/* Whether a run before `run` has the label. */
static bool is_label_of_earlier(const struct stores *s, size_t run, const char *name)
{
	for (size_t i = 0; i < run; i++)
		if (hr_compare_run_value(s->runs[i], "label", name) >= 0)
			return true;
	return false;
}

static int candidates_find(struct stores *s)
{
	static const char *const settings[][2] = {{"ranks", "ranks"},
						  {"nodes", "nodes"},
						  {"num_workers", "workers"},
						  {"batch_size", "batch"},
						  {"prefetch_factor", "prefetch"}};
	int r = 0;

	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings) && r == 0; i++)
		r = candidate_add(s, "setting", settings[i][0], settings[i][1]);
	for (size_t i = 0; i < s->n && r == 0; i++)
		for (size_t k = 0; k < s->runs[i]->n && r == 0; k++) {
			const struct hr_measure *m = &s->runs[i]->list[k];

			if (is_label(m->measure) && !is_label_of_earlier(s, i, m->name))
				r = candidate_add(s, "label", m->name, m->name);
		}
	return r;
}

static bool varies(const struct stores *s, const struct candidate *c)
{
	for (size_t i = 1; i < s->n; i++)
		if (c->values[i] != c->values[0])
			return true;
	return false;
}

/* Whether two candidates differ between the same runs: for example, two ranks on each node. */
static bool is_same_split(const struct stores *s, const struct candidate *a,
			  const struct candidate *b)
{
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = i + 1; k < s->n; k++)
			if ((a->values[i] == a->values[k]) != (b->values[i] == b->values[k]))
				return false;
	return true;
}

/* Whether the list --over has the candidate: by its name or, for a label, as label:NAME. */
static bool is_named(const struct candidate *c, const char *over)
{
	for (const char *at = over; at != NULL && *at != '\0'; at += strspn(at, ",")) {
		size_t n = strcspn(at, ",");
		const char *name = at;

		if (is_label(c->measure) &&
		    strncmp(at, HR_MODEL_LABEL, strlen(HR_MODEL_LABEL)) == 0)
			name += strlen(HR_MODEL_LABEL);
		at += n;
		if (strlen(c->name) == (size_t)(at - name) &&
		    strncmp(c->name, name, (size_t)(at - name)) == 0)
			return true;
	}
	return false;
}

/*
 * Chooses the parameters: the named candidates, then all others that vary for themselves. Returns
 * their number, or -1 after a report.
 */
static int parameters_choose(const struct stores *s, const char *over,
			     const struct candidate *chosen[HR_MODEL_PARAMETERS])
{
	unsigned n = 0;

	for (int named = 1; named >= 0; named--)
		for (size_t i = 0; i < s->n_candidates; i++) {
			const struct candidate *c = &s->candidates[i];
			bool wanted = is_named(c, over) == (named == 1) && (named || varies(s, c));

			for (unsigned k = 0; k < n && wanted; k++)
				wanted = !is_same_split(s, c, chosen[k]) || named;
			if (!wanted)
				continue;
			if (n == HR_MODEL_PARAMETERS) {
				hr_report("the runs differ in more than %u parameters, among them "
					  "%s, %s, %s and %s" HR_HINT
					  "model fewer runs, for example those of one batch size",
					  HR_MODEL_PARAMETERS, chosen[0]->name, chosen[1]->name,
					  chosen[2]->name, c->name);
				return -1;
			}
			chosen[n++] = c;
		}
	if (n > 0)
		return (int)n;
	hr_report(
	    "no number of ranks, nodes or workers, batch size or label that all %zu runs have "
	    "differs between them" HR_HINT "record at least five runs that differ in one of "
	    "them; `headrace run --label NAME=NUMBER` adds a parameter",
	    s->n);
	return -1;
}

/* ---- measurements ---- */

struct point {
	struct hr_measurements *to;
	double at[HR_MODEL_PARAMETERS];
};

static int add(struct point *p, const char *region, const char *metric, double value)
{
	return hr_measurements_add(p->to, region, metric, p->at, value);
}

/* Durations of the parts of a step, and of what happens once in a run. */
static int add_quantities(struct point *p, const struct hr_compare_run *run)
{
	struct hr_compare_side side = {run, 1};
	double steps = hr_side_per_process(&side, "steps");
	struct hr_side_means means;
	char region[128];
	int r = hr_side_means(&side, 0, hr_side_has(&side, "processes"), &means);

	for (unsigned i = 0; i < HR_QUANTITIES && r == 0; i++) {
		bool step = strcmp(hr_quantity_rows[i].phases, "t") == 0;
		const char *name = hr_quantity_rows[i].name;

		if (step && !(steps > 0))
			continue;
		if (i == HR_QUANTITY_loop)
			snprintf(region, sizeof(region), "step");
		else
			snprintf(region, sizeof(region), "%s->%s", step ? "step" : "run", name);
		r = add(p, region, "time_s", means.quantities[i].mean / (step ? steps : 1));
	}
	hr_side_means_done(&means);
	return r;
}

/* Operations and bytes of a step, of all ranks; without steps, of the run. */
static int add_counters(struct point *p, const struct hr_compare_run *run)
{
	static const char *const measures[] = {"opens",	 "reads",	  "bytes_read",
					       "writes", "bytes_written", "meta_ops"};
	struct hr_compare_side side = {run, 1};
	double steps = hr_side_per_process(&side, "steps");
	int r = 0;

	for (size_t i = 0; i < sizeof(measures) / sizeof(*measures) && r == 0; i++)
		r = add(p, steps > 0 ? "step" : "run", measures[i],
			hr_compare_run_sum(run, measures[i], NULL) / (steps > 0 ? steps : 1));
	return r;
}

/* Mean duration and number of the regions with each name. */
static int add_regions(struct point *p, const struct hr_compare_run *run)
{
	char region[1024];
	int r = 0;

	for (size_t i = 0; i < run->n && r == 0; i++) {
		const struct hr_measure *m = &run->list[i];
		bool first = strcmp(m->measure, "regions") == 0 && m->name != NULL;
		double n, s;

		for (size_t k = 0; k < i && first; k++) /* a row for each rank */
			first = strcmp(run->list[k].measure, "regions") != 0 ||
				run->list[k].name == NULL ||
				strcmp(run->list[k].name, m->name) != 0;
		if (!first)
			continue;
		n = hr_compare_run_sum(run, "regions", m->name);
		s = hr_compare_run_sum(run, "region_s", m->name);
		snprintf(region, sizeof(region), "region->%s", m->name);
		r = add(p, region, "time_s", n > 0 ? s / n : 0);
		if (r == 0)
			r = add(p, region, "count", n);
	}
	return r;
}

/* Removes what no run has: a part of a step in which no time was spent. */
static void zeros_remove(struct hr_measurements *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->n; i++) {
		bool zero = true;

		for (size_t k = 0; k < m->series[i].n; k++)
			for (size_t v = 0; v < m->series[i].points[k].n; v++)
				zero = zero && m->series[i].points[k].values[v] == 0;
		if (zero)
			hr_series_done(&m->series[i]);
		else
			m->series[kept++] = m->series[i];
	}
	m->n = kept;
}

static int measurements_add(const struct stores *s, const char *over, struct hr_measurements *to)
{
	const struct candidate *chosen[HR_MODEL_PARAMETERS];
	int n = parameters_choose(s, over, chosen), r = 0;

	if (n < 0)
		return -1;
	for (int i = 0; i < n && r >= 0; i++)
		r = hr_measurements_parameter(to, chosen[i]->name, strlen(chosen[i]->name), true);
	for (size_t i = 0; i < s->n && r >= 0; i++) {
		struct point p = {.to = to};

		for (int k = 0; k < n && r >= 0; k++) {
			r = hr_measurements_parameter(to, chosen[k]->name, strlen(chosen[k]->name),
						      false);
			if (r >= 0)
				p.at[r] = chosen[k]->values[i];
		}
		if (r >= 0)
			r = add_quantities(&p, s->runs[i]);
		if (r >= 0)
			r = add_counters(&p, s->runs[i]);
		if (r >= 0)
			r = add_regions(&p, s->runs[i]);
	}
	if (r < 0)
		hr_report("cannot model the runs: %s", strerrordesc_np(-r));
	zeros_remove(to);
	return r < 0 ? -1 : 0;
}

/* ---- stores ---- */

enum hr_model_operand hr_model_operand(const char *operand)
{
	struct stat st;

	if (stat(operand, &st) == 0)
		return S_ISDIR(st.st_mode) ? HR_MODEL_STORE : HR_MODEL_FILE;
	return strpbrk(operand, ",#:") != NULL ? HR_MODEL_STORE : HR_MODEL_MISSING;
}

/* Reads the runs of all operands. Returns an exit status. */
static int runs_read(struct stores *s, const char *const *operands, size_t n)
{
	int status = EXIT_SUCCESS;

	s->list = calloc(n, sizeof(*s->list));
	if (s->list == NULL)
		return EXIT_FAILURE;
	for (size_t i = 0; i < n && status == EXIT_SUCCESS; i++) {
		status = hr_compare_read("model", operands[i], &s->list[i]);
		s->n_operands++;
		for (size_t k = 0; k < s->list[i].n && status == EXIT_SUCCESS; k++) {
			const struct hr_compare_run *run = &s->list[i].runs[k];

			if (hr_compare_bad_end(run) != NULL) {
				hr_report("%s (job %s) is left out: it is %s", run->store, run->job,
					  hr_compare_bad_end(run));
				continue;
			}
			if (!hr_array_reserve(s->runs, s->n, s->room))
				status = EXIT_FAILURE;
			else
				s->runs[s->n++] = &s->list[i].runs[k];
		}
	}
	return status;
}

static void stores_done(struct stores *s)
{
	for (size_t i = 0; i < s->n_operands; i++)
		hr_compare_runs_done(&s->list[i]);
	for (size_t i = 0; i < s->n_candidates; i++)
		free(s->candidates[i].values);
	free(s->candidates);
	free(s->list);
	free(s->runs);
}

int hr_model_stores_read(const char *const *operands, size_t n, const char *over,
			 struct hr_model_input *to)
{
	struct stores s = {0};
	int status = runs_read(&s, operands, n);

	if (status == EXIT_SUCCESS && s.n == 0) {
		hr_report("no whole run");
		status = EXIT_FAILURE;
	}
	if (status == EXIT_SUCCESS)
		status =
		    candidates_find(&s) == 0 && measurements_add(&s, over, &to->measurements) == 0
			? EXIT_SUCCESS
			: EXIT_FAILURE;
	to->of_runs = true;
	stores_done(&s);
	return status;
}
