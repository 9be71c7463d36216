/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/side.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

#define PIECES 10

/* ---- runs ---- */

double hr_compare_run_sum(const struct hr_compare_run *run, const char *measure, const char *name)
{
	double sum = 0;

	for (size_t i = 0; i < run->n; i++) {
		const struct hr_measure *m = &run->list[i];

		if (strcmp(m->measure, measure) == 0 &&
		    (name == NULL || (m->name != NULL && strcmp(m->name, name) == 0)))
			sum += m->value;
	}
	return sum;
}

double hr_compare_run_value(const struct hr_compare_run *run, const char *measure, const char *name)
{
	for (size_t i = 0; i < run->n; i++)
		if (strcmp(run->list[i].measure, measure) == 0 && run->list[i].name != NULL &&
		    strcmp(run->list[i].name, name) == 0)
			return run->list[i].value;
	return -1;
}

const char *hr_compare_run_state(const struct hr_compare_run *run)
{
	for (size_t i = 0; i < run->n; i++)
		if (strcmp(run->list[i].measure, "state") == 0)
			return run->list[i].name;
	return NULL;
}

/* Returns whether the run has rows of the measure. */
static bool run_has(const struct hr_compare_run *run, const char *measure)
{
	for (size_t i = 0; i < run->n; i++)
		if (strcmp(run->list[i].measure, measure) == 0)
			return true;
	return false;
}

/* ---- sides ---- */

/* The mean of a measure over the training processes of a run. */
static double per_process(const struct hr_compare_run *run, const char *measure)
{
	double processes = hr_compare_run_sum(run, "processes", NULL);

	return processes > 0 ? hr_compare_run_sum(run, measure, NULL) / processes : 0;
}

double hr_side_per_process(const struct hr_compare_side *side, const char *measure)
{
	double sum = 0;

	for (size_t i = 0; i < side->n; i++)
		sum += per_process(&side->runs[i], measure);
	return sum / (double)side->n;
}

double hr_compare_run_work(const struct hr_compare_run *run, bool samples)
{
	double batch = hr_compare_run_value(run, "setting", "batch_size");

	if (!samples)
		return per_process(run, "steps");
	return batch > 0 ? batch * hr_compare_run_sum(run, "steps", NULL) : 0;
}

double hr_compare_run_scale(const struct hr_compare_run *run, const struct hr_compare_scale *scale)
{
	double own = scale != NULL ? hr_compare_run_work(run, scale->samples) : 0;

	return own > 0 && scale->work > 0 ? scale->work / own : 1;
}

double hr_side_sum(const struct hr_compare_side *side, const char *measure,
		   const struct hr_compare_scale *scale)
{
	double sum = 0;

	for (size_t i = 0; i < side->n; i++)
		sum += hr_compare_run_sum(&side->runs[i], measure, NULL) *
		       hr_compare_run_scale(&side->runs[i], scale);
	return sum / (double)side->n;
}

double hr_side_setting(const struct hr_compare_side *side, const char *name)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < side->n; i++) {
		double value = hr_compare_run_value(&side->runs[i], "setting", name);

		if (value < 0)
			continue;
		sum += value;
		n++;
	}
	return n > 0 ? sum / (double)n : -1;
}

bool hr_side_has(const struct hr_compare_side *side, const char *measure)
{
	for (size_t i = 0; i < side->n; i++)
		if (!run_has(&side->runs[i], measure))
			return false;
	return side->n > 0;
}

/* ---- quantities ---- */

static bool is_part(const struct hr_measure *m)
{
	return strcmp(m->measure, "part_s") == 0 && m->phase != NULL && m->name != NULL;
}

/* Seconds of each quantity in a run, per process; and in each piece of its steps. */
struct run_quantities {
	double seconds[HR_QUANTITIES];
	double pieces[HR_QUANTITIES][PIECES];
};

/* Starts of workers are not spread over the pieces: these do not show by how much runs differ. */
static void add_row(struct run_quantities *q, const struct hr_measure *m, double factor)
{
	bool spread = m->piece >= 0 && m->piece < PIECES &&
		      !hr_quantity_has(HR_QUANTITY_workers, m->phase, m->name);

	for (unsigned i = 0; i < HR_QUANTITIES; i++) {
		if (!hr_quantity_has(i, m->phase, m->name))
			continue;
		q->seconds[i] += m->value * factor;
		if (spread)
			q->pieces[i][m->piece] += m->value * factor;
	}
}

static void sum_run(const struct hr_compare_run *run, const struct hr_compare_scale *to,
		    bool trains, struct run_quantities *ret)
{
	double processes = hr_compare_run_sum(run, "processes", NULL),
	       scale = hr_compare_run_scale(run, to);

	*ret = (struct run_quantities){0};
	if (!trains) {
		ret->seconds[HR_QUANTITY_wall] = hr_compare_run_sum(run, "job_s", NULL);
		return;
	}
	for (size_t i = 0; i < run->n; i++)
		if (is_part(&run->list[i]))
			add_row(ret, &run->list[i],
				(run->list[i].phase[0] == 't' ? scale : 1) / processes);
}

/* Variance of a sum of pieces, from the spread of the pieces. */
static double variance_of_sum(const double *pieces)
{
	double mean = 0, squares = 0;

	for (int i = 0; i < PIECES; i++)
		mean += pieces[i] / PIECES;
	for (int i = 0; i < PIECES; i++)
		squares += (pieces[i] - mean) * (pieces[i] - mean);
	return PIECES * squares / (PIECES - 1);
}

static void sum_quantities(const struct hr_compare_side *side, const struct run_quantities *runs,
			   struct hr_compare_sample *ret)
{
	double n = (double)side->n;

	for (unsigned i = 0; i < HR_QUANTITIES; i++) {
		struct hr_compare_sample *s = &ret[i];

		*s = (struct hr_compare_sample){.n = (unsigned)side->n};
		for (size_t k = 0; k < side->n; k++)
			s->mean += runs[k].seconds[i] / n;
		for (size_t k = 0; k < side->n && n > 1; k++)
			s->variance += (runs[k].seconds[i] - s->mean) *
				       (runs[k].seconds[i] - s->mean) / (n - 1);
		s->freedom = n - 1;
		if (side->n == 1 && strcmp(hr_quantity_rows[i].phases, "t") == 0 &&
		    i != HR_QUANTITY_workers && run_has(&side->runs[0], "steps")) {
			s->variance = variance_of_sum(runs[0].pieces[i]);
			s->freedom = PIECES - 1;
		}
	}
}

/* ---- ranks ---- */

static int by_rank(const void *a, const void *b)
{
	const struct hr_rank_means *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

static struct hr_rank_means *rank_at(struct hr_side_means *m, int64_t rank)
{
	struct hr_rank_means key = {.rank = rank};

	return m->n_ranks > 0 ? bsearch(&key, m->ranks, m->n_ranks, sizeof(key), by_rank) : NULL;
}

/* Makes one element for each rank. */
static void join_equal_ranks(struct hr_side_means *m)
{
	size_t kept = 0;

	qsort(m->ranks, m->n_ranks, sizeof(*m->ranks), by_rank);
	for (size_t i = 0; i < m->n_ranks; i++) {
		if (kept > 0 && m->ranks[kept - 1].rank == m->ranks[i].rank)
			m->ranks[kept - 1].processes += m->ranks[i].processes;
		else
			m->ranks[kept++] = m->ranks[i];
	}
	m->n_ranks = kept;
}

static int find_ranks(const struct hr_compare_side *side, struct hr_side_means *ret)
{
	size_t room = 0;

	for (size_t i = 0; i < side->n; i++)
		for (size_t k = 0; k < side->runs[i].n; k++) {
			const struct hr_measure *m = &side->runs[i].list[k];

			if (strcmp(m->measure, "processes") != 0)
				continue;
			if (!hr_array_reserve(ret->ranks, ret->n_ranks, room))
				return -ENOMEM;
			ret->ranks[ret->n_ranks++] =
			    (struct hr_rank_means){.rank = m->rank, .processes = m->value};
		}
	if (ret->n_ranks > 0)
		join_equal_ranks(ret);
	return 0;
}

static void sum_ranks(const struct hr_compare_side *side, const struct hr_compare_scale *to,
		      struct hr_side_means *ret)
{
	for (size_t i = 0; i < side->n; i++) {
		const struct hr_compare_run *run = &side->runs[i];
		double scale = hr_compare_run_scale(run, to);

		for (size_t k = 0; k < run->n; k++) {
			const struct hr_measure *m = &run->list[k];
			struct hr_rank_means *r = is_part(m) ? rank_at(ret, m->rank) : NULL;

			for (unsigned q = 0; r != NULL && q < HR_QUANTITIES; q++)
				if (hr_quantity_has(q, m->phase, m->name))
					r->seconds[q] += m->value / r->processes *
							 (m->phase[0] == 't' ? scale : 1);
		}
	}
}

int hr_side_means(const struct hr_compare_side *side, const struct hr_compare_scale *scale,
		  bool trains, struct hr_side_means *ret)
{
	struct run_quantities *runs = calloc(side->n, sizeof(*runs));

	*ret = (struct hr_side_means){0};
	if (runs == NULL || (trains && find_ranks(side, ret) < 0)) {
		free(runs);
		hr_side_means_done(ret);
		return -ENOMEM;
	}
	for (size_t i = 0; i < side->n; i++)
		sum_run(&side->runs[i], scale, trains, &runs[i]);
	sum_quantities(side, runs, ret->quantities);
	sum_ranks(side, scale, ret);
	free(runs);
	return 0;
}

void hr_side_means_done(struct hr_side_means *m)
{
	free(m->ranks);
	*m = (struct hr_side_means){0};
}
