/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary/summary_loops.h"

#include "common/text.h"

void hr_loop_add(struct hr_summary_loop *loop, const struct hr_region *region)
{
	uint64_t end_ns = region->start_ns + region->dur_ns;

	if (region->kind != HR_REGION_INPUT_WAIT && region->kind != HR_REGION_STEP &&
	    region->kind != HR_REGION_EPOCH)
		return;
	if (loop->from_ns == 0 || region->start_ns < loop->from_ns)
		loop->from_ns = region->start_ns;
	if (end_ns > loop->to_ns)
		loop->to_ns = end_ns;
	if (region->open)
		return;
	if (region->kind == HR_REGION_INPUT_WAIT) {
		loop->waits += region->count;
		loop->wait_ns += region->dur_ns;
	} else if (region->kind == HR_REGION_STEP) {
		loop->steps += region->count;
		loop->step_ns += region->dur_ns;
	}
}

static double share(const struct hr_summary_who *who)
{
	const struct hr_summary_loop *l = &who->loop;
	uint64_t ns = l->loop_ns != 0 ? l->loop_ns : l->to_ns - l->from_ns;

	return ns > 0 ? (double)l->wait_ns / (double)ns : 0;
}

void hr_loops_print(const struct hr_summary *s, const char *store, FILE *out)
{
	const struct hr_summary_who *least = NULL, *most = NULL;
	struct hr_summary_loop all = {0};
	size_t n = 0;

	for (size_t i = 0; i < s->n_who; i++) {
		const struct hr_summary_who *who = &s->who[i];

		if (who->loop.waits == 0)
			continue;
		n++;
		least = !least || share(who) < share(least) ? who : least;
		most = !most || share(who) > share(most) ? who : most;
		all.wait_ns += who->loop.wait_ns;
		all.steps += who->loop.steps;
		all.step_ns += who->loop.step_ns;
	}
	if (!n)
		return;
	fputs("  waited    ", out);
	if (n > 1)
		fprintf(out, "%.1f to ", share(least) * 100);
	fprintf(out, "%.1f %% of the training loop for data", share(most) * 100);
	fprintf(out, " (%s%s)", hr_text_duration(all.wait_ns).s,
		n > 1 ? ", summed over ranks" : "");
	if (n > 1)
		fprintf(out, ", highest in rank %d", most->rank);
	if (all.steps)
		fprintf(out, "; %s step%s of %s", hr_text_count(all.steps).s,
			all.steps == 1 ? "" : "s", hr_text_duration(all.step_ns / all.steps).s);
	if (s->finding.meaning == NULL)
		fprintf(out, ": headrace diagnose %s", store);
	fputc('\n', out);
}
