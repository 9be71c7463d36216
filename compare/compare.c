/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "compare/causes.h"

#define SAME_WORK 0.005

/* ---- ranks ---- */

double hr_compare_rank_own(const struct hr_rank_means *m)
{
	return m->seconds[HR_QUANTITY_loop] - m->seconds[HR_QUANTITY_stall];
}

/* Joins the ranks of both sides. Processes without a rank are left out. Returns 0 or -ENOMEM. */
static int ranks_find(const struct hr_side_means means[HR_COMPARE_SIDES],
		      struct hr_compare_ranks *ret)
{
	const struct hr_side_means *a = &means[HR_COMPARE_A], *b = &means[HR_COMPARE_B];
	size_t i = 0, k = 0;

	*ret = (struct hr_compare_ranks){
	    .list = calloc(a->n_ranks + b->n_ranks + 1, sizeof(*ret->list)),
	};
	if (ret->list == NULL)
		return -ENOMEM;
	while (i < a->n_ranks || k < b->n_ranks) {
		bool in_a =
		    i < a->n_ranks && (k == b->n_ranks || a->ranks[i].rank <= b->ranks[k].rank);
		int64_t rank = in_a ? a->ranks[i].rank : b->ranks[k].rank;
		struct hr_compare_rank *to = &ret->list[ret->n];

		to->rank = rank;
		if (in_a)
			to->side[HR_COMPARE_A] = a->ranks[i++];
		if (k < b->n_ranks && b->ranks[k].rank == rank)
			to->side[HR_COMPARE_B] = b->ranks[k++];
		if (rank >= 0)
			ret->n++;
		else
			*to = (struct hr_compare_rank){0};
	}
	return 0;
}

static void ranks_done(struct hr_compare_ranks *r)
{
	free(r->list);
	*r = (struct hr_compare_ranks){0};
}

/* ---- the comparison ---- */

static void compare_quantities(const struct hr_side_means *side_a,
			       const struct hr_side_means *side_b,
			       struct hr_difference ret[HR_QUANTITIES])
{
	double whole = fmax(side_a->quantities[HR_QUANTITY_wall].mean,
			    side_b->quantities[HR_QUANTITY_wall].mean);

	for (unsigned i = 0; i < HR_QUANTITIES; i++) {
		const struct hr_compare_sample *a = &side_a->quantities[i],
					       *b = &side_b->quantities[i];
		struct hr_difference *d = &ret[i];

		*d = (struct hr_difference){
		    .a = a->mean,
		    .b = b->mean,
		    .noise = hr_noise(a, b, whole, hr_quantity_rows[i].level == HR_LEVEL_LEAF)};
		d->differs = fabs(d->b - d->a) > fmax(d->noise, HR_COMPARE_LEAST * whole);
	}
}

static void compare_settings(const struct hr_compare_side *sides, struct hr_comparison *c)
{
	static const char *const names[HR_COMPARE_SETTINGS] = {
	    "num_workers", "prefetch_factor", "persistent_workers", "batch_size", "ranks", "nodes"};

	for (unsigned i = 0; i < HR_COMPARE_SETTINGS; i++)
		c->settings[i] = (struct hr_compare_setting){
		    names[i],
		    hr_side_setting(&sides[HR_COMPARE_A], names[i]),
		    hr_side_setting(&sides[HR_COMPARE_B], names[i]),
		};
}

static int by_seconds(const void *a, const void *b)
{
	double x = fabs(((const struct hr_compare_cause *)a)->seconds);
	double y = fabs(((const struct hr_compare_cause *)b)->seconds);

	return (x < y) - (x > y);
}

static int find_causes(const struct hr_compare_side *sides, const struct hr_side_means *means,
		       const struct hr_compare_scale *scale, struct hr_comparison *c)
{
	struct hr_causes_search s = {.sides = sides, .means = means, .scale = scale, .to = c};

	for (unsigned i = 0; i < HR_QUANTITIES; i++)
		s.left[i] = c->quantities[i].b - c->quantities[i].a;
	hr_causes_find(&s);
	if (c->n_causes > 0)
		qsort(c->causes, c->n_causes, sizeof(*c->causes), by_seconds);
	if (c->n_causes > 0 && fabs(c->unsure.seconds) <= fabs(c->causes[0].seconds))
		c->unsure = (struct hr_compare_unsure){0};
	return s.failed ? -ENOMEM : 0;
}

static double mean_work(const struct hr_compare_side *side, bool samples)
{
	double sum = 0;

	for (size_t i = 0; i < side->n; i++) {
		double work = hr_compare_run_work(&side->runs[i], samples);

		if (!(work > 0))
			return 0;
		sum += work;
	}
	return sum / (double)side->n;
}

/* The work of side A: in samples if both sides know theirs, else in steps. */
static struct hr_compare_scale scale_of(const struct hr_compare_side *sides)
{
	struct hr_compare_scale scale = {.samples = mean_work(&sides[HR_COMPARE_A], true) > 0 &&
						    mean_work(&sides[HR_COMPARE_B], true) > 0};

	scale.work = mean_work(&sides[HR_COMPARE_A], scale.samples);
	return scale;
}

static void set_work(const struct hr_compare_side *sides, const struct hr_compare_scale *scale,
		     struct hr_comparison *c)
{
	c->samples = scale->samples;
	for (int i = 0; i < HR_COMPARE_SIDES && scale->work > 0; i++)
		c->work[i] = mean_work(&sides[i], scale->samples);
	c->scaled =
	    c->work[HR_COMPARE_A] > 0 && c->work[HR_COMPARE_B] > 0 &&
	    fabs(c->work[HR_COMPARE_B] - c->work[HR_COMPARE_A]) > SAME_WORK * c->work[HR_COMPARE_A];
}

int hr_compare(const struct hr_compare_side sides[HR_COMPARE_SIDES], struct hr_comparison *ret)
{
	struct hr_side_means means[HR_COMPARE_SIDES] = {0}, measured = {0};
	bool trains = hr_side_has(&sides[HR_COMPARE_A], "processes") &&
		      hr_side_has(&sides[HR_COMPARE_B], "processes");
	struct hr_compare_scale scale = trains ? scale_of(sides) : (struct hr_compare_scale){0};
	int r = 0;

	*ret = (struct hr_comparison){.trains = trains};
	for (int i = 0; i < HR_COMPARE_SIDES && r == 0; i++)
		r = hr_side_means(&sides[i], &scale, trains, &means[i]);
	if (r == 0)
		r = hr_side_means(&sides[HR_COMPARE_B], NULL, trains, &measured);
	if (r == 0)
		r = hr_kinds_find(sides, &scale, &ret->kinds);
	if (r == 0)
		r = ranks_find(means, &ret->ranks);
	if (r == 0) {
		for (int i = 0; i < HR_COMPARE_SIDES; i++) {
			ret->steps[i] = hr_side_per_process(&sides[i], "steps");
			ret->epochs[i] = hr_side_per_process(&sides[i], "epochs");
		}
		set_work(sides, &scale, ret);
		compare_quantities(&means[HR_COMPARE_A], &means[HR_COMPARE_B], ret->quantities);
		compare_quantities(&means[HR_COMPARE_A], &measured, ret->measured);
		compare_settings(sides, ret);
		r = find_causes(sides, means, &scale, ret);
	}
	for (int i = 0; i < HR_COMPARE_SIDES; i++)
		hr_side_means_done(&means[i]);
	hr_side_means_done(&measured);
	if (r < 0)
		hr_comparison_done(ret);
	return r;
}

void hr_comparison_done(struct hr_comparison *c)
{
	for (size_t i = 0; i < c->n_causes; i++) {
		free(c->causes[i].what);
		free(c->causes[i].evidence);
	}
	free(c->causes);
	hr_kinds_done(&c->kinds);
	ranks_done(&c->ranks);
	*c = (struct hr_comparison){0};
}
