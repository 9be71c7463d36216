/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary/summary_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

static void take_earlier(uint64_t *to, uint64_t ns)
{
	if (ns != 0 && (*to == 0 || ns < *to))
		*to = ns;
}

static void take_later(uint64_t *to, uint64_t ns)
{
	if (ns > *to)
		*to = ns;
}

void hr_run_part_see(struct hr_run_part *part, uint64_t wall_ns)
{
	take_earlier(&part->first_ns, wall_ns);
	take_later(&part->last_ns, wall_ns);
}

void hr_run_part_join(struct hr_run_part *to, const struct hr_run_part *from)
{
	take_earlier(&to->start_ns, from->start_ns);
	take_later(&to->end_ns, from->end_ns);
	take_earlier(&to->first_ns, from->first_ns);
	take_later(&to->last_ns, from->last_ns);
	to->running = to->running || from->running;
	to->unfinished = to->unfinished || from->unfinished;
	to->killed = to->killed || from->killed;
	to->failed = to->failed || from->failed;
}

uint64_t hr_run_part_start(const struct hr_run_part *part)
{
	return part->start_ns != 0 ? part->start_ns : part->first_ns;
}

uint64_t hr_run_part_end(const struct hr_run_part *part)
{
	bool open = part->running || part->unfinished || part->end_ns == 0;

	return open && part->last_ns > part->end_ns ? part->last_ns : part->end_ns;
}

static uint64_t span_ns(const struct hr_run_part *part)
{
	uint64_t start_ns = hr_run_part_start(part), end_ns = hr_run_part_end(part);

	return end_ns > start_ns ? end_ns - start_ns : 0;
}

static const char *state(const struct hr_run_part *part)
{
	if (part->running)
		return "running";
	if (part->unfinished)
		return "unfinished";
	if (part->killed)
		return "killed";
	return part->failed ? "failed" : "ended";
}

int hr_runs_add(struct hr_runs *runs, const struct hr_run_part *stream)
{
	if (!hr_array_reserve(runs->list, runs->n, runs->room))
		return -ENOMEM;
	runs->list[runs->n++] = *stream;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	uint64_t x = hr_run_part_start(a), y = hr_run_part_start(b);

	return x < y ? -1 : x > y;
}

int hr_runs_take(struct hr_runs *runs, struct hr_summary *s, struct hr_run_part *ret_job)
{
	struct hr_run_part last = {0};

	*ret_job = (struct hr_run_part){0};
	if (runs->n > 0)
		qsort(runs->list, runs->n, sizeof(*runs->list), by_start);
	for (size_t i = 0; i < runs->n; i++) {
		const struct hr_run_part *stream = &runs->list[i];

		if (s->runs == 0 ||
		    (!ret_job->running && hr_run_part_start(stream) > hr_run_part_end(ret_job))) {
			last = (struct hr_run_part){0};
			s->runs++;
		}
		hr_run_part_join(&last, stream);
		hr_run_part_join(ret_job, stream);
	}
	s->span_ns = span_ns(ret_job);
	s->run_span_ns = span_ns(&last);
	s->state = strdup(state(ret_job));
	s->run_state = strdup(state(&last));
	return s->state != NULL && s->run_state != NULL ? 0 : -ENOMEM;
}

void hr_runs_done(struct hr_runs *runs)
{
	free(runs->list);
	*runs = (struct hr_runs){0};
}
