/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/causes.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/text.h"

double hr_log_ratio(double a, double b)
{
	return a > 0 && b > 0 ? log(b / a) : 0;
}

double hr_causes_sum(const struct hr_causes_search *s, int side, const char *measure)
{
	return hr_side_sum(&s->sides[side], measure, NULL, s->scale);
}

struct hr_compare_cause *hr_compare_cause_add(struct hr_causes_search *s,
					      enum hr_compare_cause_id id,
					      enum hr_quantity quantity, double seconds)
{
	struct hr_comparison *c = s->to;
	const struct hr_difference *whole = &c->quantities[HR_QUANTITY_wall];
	struct hr_compare_cause *cause;

	if (!c->quantities[quantity].differs ||
	    fabs(seconds) < HR_COMPARE_LEAST * fmax(whole->a, whole->b))
		return NULL;
	if (!hr_array_reserve(c->causes, c->n_causes, c->causes_room)) {
		s->failed = true;
		return NULL;
	}
	cause = &c->causes[c->n_causes++];
	*cause = (struct hr_compare_cause){
	    .id = id, .seconds = seconds, .noise = c->quantities[quantity].noise};
	return cause;
}

char *hr_compare_cause_text(struct hr_causes_search *s, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	s->failed |= text == NULL;
	return text;
}

/* "computing: 12.3 s instead of 10.1 s" */
static char *instead(struct hr_causes_search *s, enum hr_quantity quantity)
{
	const struct hr_difference *d = &s->to->quantities[quantity];

	return hr_compare_cause_text(s, "%s: %s instead of %s", hr_quantity_rows[quantity].name,
				     hr_compare_seconds(d->b).s, hr_compare_seconds(d->a).s);
}

void hr_compare_cause_add_simple(struct hr_causes_search *s, enum hr_compare_cause_id id,
				 enum hr_quantity quantity)
{
	struct hr_compare_cause *cause = hr_compare_cause_add(s, id, quantity, s->left[quantity]);

	if (cause == NULL)
		return;
	cause->what =
	    hr_compare_cause_text(s, "%s", hr_compare_cause_meaning(id, s->left[quantity]));
	cause->evidence = instead(s, quantity);
}

/* ---- ranks ---- */

/* The mean of a quantity over all ranks but one. */
static double mean_of_others(const struct hr_side_means *m, size_t but, enum hr_quantity quantity)
{
	double sum = 0;

	for (size_t i = 0; i < m->n_ranks; i++)
		if (i != but)
			sum += m->ranks[i].seconds[quantity];
	return sum / (double)(m->n_ranks - 1);
}

/* Finds the rank for which the others wait. Returns false if no rank waits much less. */
static bool find_slow_rank(const struct hr_side_means *m, size_t *ret)
{
	size_t least = 0;

	if (m->n_ranks < 2)
		return false;
	for (size_t i = 1; i < m->n_ranks; i++)
		if (m->ranks[i].seconds[HR_QUANTITY_stall] <
		    m->ranks[least].seconds[HR_QUANTITY_stall])
			least = i;
	*ret = least;
	return m->ranks[least].seconds[HR_QUANTITY_stall] <
	       0.5 * mean_of_others(m, least, HR_QUANTITY_stall);
}

/* By how much the rank took longer than the others in a quantity. */
static double excess(const struct hr_side_means *m, size_t rank, enum hr_quantity quantity)
{
	if (rank >= m->n_ranks || m->n_ranks < 2)
		return 0;
	return m->ranks[rank].seconds[quantity] - mean_of_others(m, rank, quantity);
}

/* Time in which ranks waited for a slow one, and the time that the slow one took longer. */
static void explain_stall(struct hr_causes_search *s)
{
	double stall = s->left[HR_QUANTITY_stall], most = 0;
	int slower = stall > 0 ? HR_COMPARE_B : HR_COMPARE_A;
	const struct hr_side_means *m = &s->means[slower], *other = &s->means[!slower];
	enum hr_quantity why = HR_QUANTITY_compute;
	struct hr_compare_cause *cause;
	size_t rank = 0;
	bool slow = find_slow_rank(m, &rank);

	for (unsigned i = 0; slow && i < HR_QUANTITIES; i++) {
		double more = excess(m, rank, i) - excess(other, rank, i);

		if (hr_quantity_rows[i].level == HR_LEVEL_LEAF && i != HR_QUANTITY_stall &&
		    more > most) {
			most = more;
			why = i;
		}
	}
	if (!slow || most <= 0) {
		cause = hr_compare_cause_add(s, HR_WHY_stall, HR_QUANTITY_stall, stall);
		if (cause != NULL)
			cause->what = instead(s, HR_QUANTITY_stall);
		return;
	}
	most *= (stall > 0 ? 1 : -1) / (double)m->n_ranks; /* its share in the mean of all ranks */
	cause = hr_compare_cause_add(s, HR_WHY_slow_rank, HR_QUANTITY_stall, stall + most);
	if (cause == NULL)
		return;
	s->left[why] -= most;
	s->left[HR_QUANTITY_stall] = 0;
	cause->what =
	    hr_compare_cause_text(s, "rank %lld %s slower than the others, which waited for it: %s",
				  (long long)m->ranks[rank].rank,
				  stall > 0 ? "was" : "was no longer", hr_quantity_rows[why].name);
	cause->evidence = hr_compare_cause_text(
	    s, "%s: rank %lld %s, the others %s; waiting for other ranks: %s instead of %s",
	    stall > 0 ? "B" : "A", (long long)m->ranks[rank].rank,
	    hr_compare_seconds(m->ranks[rank].seconds[why]).s,
	    hr_compare_seconds(mean_of_others(m, rank, why)).s,
	    hr_compare_seconds(s->to->quantities[HR_QUANTITY_stall].b).s,
	    hr_compare_seconds(s->to->quantities[HR_QUANTITY_stall].a).s);
}

/* ---- workers ---- */

static const enum hr_quantity of_batches[] = {
    HR_QUANTITY_read,	  HR_QUANTITY_metadata,	   HR_QUANTITY_write,	HR_QUANTITY_batch_cpu,
    HR_QUANTITY_core,	  HR_QUANTITY_sleep,	   HR_QUANTITY_network, HR_QUANTITY_lock,
    HR_QUANTITY_handover, HR_QUANTITY_unknown_wait};

#define N_OF_BATCHES (sizeof(of_batches) / sizeof(*of_batches))

/*
 * With fewer workers, or with more work for each batch, the training waits longer. The shares of
 * both are those of their logarithms, because waits depend on work per worker.
 */
static void explain_workers(struct hr_causes_search *s)
{
	const struct hr_compare_setting *workers = &s->to->settings[0];
	double fetches[HR_COMPARE_SIDES], work[HR_COMPARE_SIDES], waits = 0, share, fewer, more;
	struct hr_compare_cause *cause;

	if (workers->a < 0 || workers->b < 0 || fabs(workers->a - workers->b) < 0.5)
		return;
	for (int i = 0; i < HR_COMPARE_SIDES; i++) {
		fetches[i] = hr_causes_sum(s, i, "fetches");
		work[i] = fetches[i] > 0 ? hr_causes_sum(s, i, "fetch_s") / fetches[i] : 0;
	}
	for (size_t i = 0; i < N_OF_BATCHES; i++)
		waits += s->left[of_batches[i]];
	fewer = hr_log_ratio(fmax(workers->b, 1), fmax(workers->a, 1));
	more = hr_log_ratio(work[HR_COMPARE_A], work[HR_COMPARE_B]);
	if (fewer == 0) /* batches made by the training thread, or by one worker */
		fewer = workers->a > workers->b ? 0.5 : -0.5;
	if (fewer * waits <= 0)
		return;
	share = more * waits > 0 ? fewer / (fewer + more) : 1;
	cause = hr_compare_cause_add(s, HR_WHY_workers, HR_QUANTITY_input_wait, share * waits);
	if (cause == NULL)
		return;
	for (size_t i = 0; i < N_OF_BATCHES; i++)
		s->left[of_batches[i]] *= 1 - share;
	cause->what = hr_compare_cause_text(s, "%s: %.3g instead of %.3g",
					    hr_compare_cause_meaning(HR_WHY_workers, waits),
					    workers->b, workers->a);
	if (work[HR_COMPARE_A] > 0 && work[HR_COMPARE_B] > 0)
		cause->evidence = hr_compare_cause_text(
		    s, "a batch took a worker %s instead of %s; waiting for data: %s instead of %s",
		    hr_compare_seconds(work[HR_COMPARE_B]).s,
		    hr_compare_seconds(work[HR_COMPARE_A]).s,
		    hr_compare_seconds(s->to->quantities[HR_QUANTITY_input_wait].b).s,
		    hr_compare_seconds(s->to->quantities[HR_QUANTITY_input_wait].a).s);
}

/* ---- checkpoints ---- */

static void explain_checkpoints(struct hr_causes_search *s)
{
	double seconds = s->left[HR_QUANTITY_checkpoint], sign = seconds > 0 ? 1 : -1;
	double n[HR_COMPARE_SIDES], bytes[HR_COMPARE_SIDES], count, size, time;
	const struct hr_difference *d = &s->to->quantities[HR_QUANTITY_checkpoint];
	enum hr_compare_cause_id id = HR_WHY_checkpoint_speed;
	struct hr_compare_cause *cause;

	for (int i = 0; i < HR_COMPARE_SIDES; i++) {
		n[i] = hr_side_sum(&s->sides[i], "checkpoints", NULL, NULL);
		bytes[i] = hr_side_sum(&s->sides[i], "checkpoint_bytes", NULL, NULL);
	}
	count = sign * hr_log_ratio(n[HR_COMPARE_A], n[HR_COMPARE_B]);
	time = sign * hr_log_ratio(d->a, d->b) - count;
	size = n[HR_COMPARE_A] > 0 && n[HR_COMPARE_B] > 0
		   ? sign * hr_log_ratio(bytes[HR_COMPARE_A] / n[HR_COMPARE_A],
					 bytes[HR_COMPARE_B] / n[HR_COMPARE_B])
		   : 0;
	if ((n[HR_COMPARE_A] > 0) != (n[HR_COMPARE_B] > 0) || (count > size && count > time - size))
		id = HR_WHY_checkpoint_count;
	else if (size > time - size)
		id = HR_WHY_checkpoint_size;
	cause = hr_compare_cause_add(s, id, HR_QUANTITY_checkpoint, seconds);
	if (cause == NULL)
		return;
	cause->what = hr_compare_cause_text(s, "%s", hr_compare_cause_meaning(id, seconds));
	cause->evidence = hr_compare_cause_text(
	    s, "%.4g checkpoints (%s) took %s; in A %.4g (%s) took %s", n[HR_COMPARE_B],
	    hr_text_size((uint64_t)bytes[HR_COMPARE_B]).s, hr_compare_seconds(d->b).s,
	    n[HR_COMPARE_A], hr_text_size((uint64_t)bytes[HR_COMPARE_A]).s,
	    hr_compare_seconds(d->a).s);
}

void hr_causes_find(struct hr_causes_search *s)
{
	static const struct {
		enum hr_compare_cause_id id;
		enum hr_quantity quantity;
	} simple[] = {
	    {HR_WHY_start, HR_QUANTITY_start},
	    {HR_WHY_validation, HR_QUANTITY_validation},
	    {HR_WHY_outside, HR_QUANTITY_outside},
	    {HR_WHY_batch_cpu, HR_QUANTITY_batch_cpu},
	    {HR_WHY_cores, HR_QUANTITY_core},
	    {HR_WHY_sleep, HR_QUANTITY_sleep},
	    {HR_WHY_network, HR_QUANTITY_network},
	    {HR_WHY_lock, HR_QUANTITY_lock},
	    {HR_WHY_worker_life, HR_QUANTITY_workers},
	    {HR_WHY_handover, HR_QUANTITY_handover},
	    {HR_WHY_unknown_wait, HR_QUANTITY_unknown_wait},
	    {HR_WHY_compute, HR_QUANTITY_compute},
	};

	explain_stall(s);
	explain_workers(s);
	hr_causes_of_files(s);
	explain_checkpoints(s);
	for (size_t i = 0; i < sizeof(simple) / sizeof(*simple); i++)
		hr_compare_cause_add_simple(s, simple[i].id, simple[i].quantity);
}
