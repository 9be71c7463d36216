/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary/summary_finding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "query/diagnosis/findings.h"
#include "query/query.h"

/* number of events that headrace reads in about a second */
#define EVENTS_MAX 20000000u

static char *copy(const char *text, int *error)
{
	char *to = text != NULL && *text != '\0' ? strdup(text) : NULL;

	if (text != NULL && *text != '\0' && to == NULL)
		*error = -ENOMEM;
	return to;
}

static uint64_t to_ns(double seconds)
{
	return (uint64_t)(seconds * 1e9);
}

/* Returns the largest finding of the last attempt. An attempt lists its largest finding first. */
static const struct hr_finding *largest(const struct hr_findings *all)
{
	const struct hr_finding *best = NULL;

	for (size_t i = 0; i < all->n; i++)
		if (best == NULL || all->list[i].st->s->attempt > best->st->s->attempt)
			best = &all->list[i];
	return best;
}

static int take(struct hr_summary_finding *to, const struct hr_finding *f)
{
	int error = 0;

	if (f == NULL)
		return 0;
	*to = (struct hr_summary_finding){.meaning = copy(hr_finding_meaning(f->cause), &error),
					  .object = copy(f->object, &error),
					  .whose = copy(f->whose, &error),
					  .evidence = copy(f->evidence, &error),
					  .action = copy(f->action, &error),
					  .lost_ns = to_ns(f->lost),
					  .wall_ns = to_ns(f->wall),
					  .gain_low_ns = to_ns(f->gain_low),
					  .gain_high_ns = to_ns(f->gain_high)};
	return error;
}

void hr_loop_add_life(struct hr_summary_loop *l, const struct hr_part_sums *sums)
{
	for (unsigned phase = 0; phase <= HR_PHASE_END; phase++) {
		for (unsigned part = 0; part < HR_PART_END; part++) {
			uint64_t ns = sums->ns[phase][part];

			l->wait_ns += hr_part_waits(part) ? ns : 0;
			l->loop_ns += hr_phase_loops(phase) ? ns : 0;
		}
	}
}

/* Replaces the wait times, which hr_loop_add summed up from regions, by those of the diagnosis. */
static void take_loops(struct hr_summary *s, const struct hr_diagnosis *d)
{
	for (size_t i = 0; i < s->n_who; i++) {
		struct hr_summary_loop *l = &s->who[i].loop;

		if (s->who[i].worker >= 0 || l->waits == 0)
			continue;
		l->wait_ns = 0;
		for (size_t k = 0; k < d->lives.n; k++)
			if (d->lives.list[k].rank == s->who[i].rank)
				hr_loop_add_life(l, &d->sums[k]);
	}
}

static bool trains(const struct hr_summary *s)
{
	for (size_t i = 0; i < s->n_who; i++)
		if (s->who[i].loop.waits > 0 || s->who[i].loop.steps > 0)
			return true;
	return false;
}

int hr_summary_diagnose(struct hr_summary *s, const struct hr_catalog *catalog)
{
	struct hr_query *q;
	struct hr_diagnosis d;
	struct hr_findings all = {0};
	int r;

	if (!trains(s) || s->events > EVENTS_MAX)
		return 0;
	r = hr_query_new_without_sql(catalog, &q);
	if (r < 0)
		return r;
	r = hr_diagnosis_make(q, &HR_SCOPE_ALL, &d);
	if (r == 0) {
		take_loops(s, &d);
		r = hr_findings_make(&d, &all);
	}
	if (r == 0)
		r = take(&s->finding, largest(&all));
	hr_findings_done(&all);
	hr_diagnosis_done(&d);
	hr_query_free(q);
	return r;
}

void hr_summary_finding_free(struct hr_summary_finding *f)
{
	free(f->meaning);
	free(f->object);
	free(f->whose);
	free(f->evidence);
	free(f->action);
}

void hr_summary_finding_print(const struct hr_summary *s, const char *store, FILE *out)
{
	const struct hr_summary_finding *f = &s->finding;

	if (f->meaning == NULL)
		return;
	if (f->lost_ns == 0) {
		fprintf(out, "  diagnosis %s: %s\n", f->meaning, f->evidence);
		return;
	}
	fprintf(out, "  diagnosis largest loss %s of %s (%.0f %%): %s\n",
		hr_text_duration(f->lost_ns).s, hr_text_duration(f->wall_ns).s,
		100.0 * (double)f->lost_ns / (double)f->wall_ns, f->meaning);
	if (f->whose != NULL || f->object != NULL)
		fprintf(out, "  where     %s%s%s\n", f->whose != NULL ? f->whose : "",
			f->whose != NULL && f->object != NULL ? ": " : "",
			f->object != NULL ? f->object : "");
	if (f->action != NULL)
		fprintf(out, "  do        %s\n", f->action);
	if (f->gain_high_ns > 0 && f->gain_low_ns < f->wall_ns / 100)
		fprintf(out, "  saves     up to %s\n", hr_text_duration(f->gain_high_ns).s);
	else if (f->gain_high_ns > 0)
		fprintf(out, "  saves     %s to %s\n", hr_text_duration(f->gain_low_ns).s,
			hr_text_duration(f->gain_high_ns).s);
	fprintf(out, "  why       headrace diagnose %s\n", store);
}
