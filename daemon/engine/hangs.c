/* SPDX-License-Identifier: Apache-2.0 */
/* What processes have done for much longer than usual: marks `hang` (proto/args.def). */
#include <string.h>

#include "common/json_part.h"
#include "daemon/engine/fold.h"
#include "proto/args.h"

static void copy_text(const struct hr_json_part *args, const char *key, char *to, size_t size)
{
	struct hr_json_part value;
	size_t n = 0;

	if (hr_json_part_find(args->p, args->n, key, &value) && value.type == HR_JSON_STRING &&
	    value.n < size)
		n = hr_json_part_text(&value, to);
	to[n] = '\0';
}

void hr__hang_note(struct hr_engine *e, struct hr_proc *p, uint64_t at_ns, const void *args,
		   size_t bytes)
{
	struct hr_json_part all = {.p = args, .n = bytes}, since;
	int64_t ns;

	if (!hr_json_part_find(args, bytes, HR_ARGS_SINCE_NS, &since) ||
	    !hr_json_part_int(&since, &ns) || ns <= 0 || (uint64_t)ns >= at_ns)
		return;
	e->hanging += p->hang.since_ns == 0;
	p->hang.since_ns = at_ns - (uint64_t)ns;
	p->hang.at_ns = at_ns;
	copy_text(&all, HR_ARGS_IN, p->hang.work, sizeof(p->hang.work));
	p->hang.line[0] = '\0';
	if (!e->privacy) /* file names may be hidden */
		copy_text(&all, HR_ARGS_LINE, p->hang.line, sizeof(p->hang.line));
}

void hr__hang_end(struct hr_engine *e, struct hr_proc *p)
{
	e->hanging -= p->hang.since_ns > 0;
	p->hang.since_ns = 0;
}

void hr__hang_region(struct hr_engine *e, struct hr_proc *p, const struct hr_region *g)
{
	bool ends = g->kind == HR_REGION_STEP || g->kind == HR_REGION_INPUT_WAIT ||
		    g->kind == HR_REGION_FETCH ||
		    (g->kind == HR_REGION_RANGE && strcmp(p->hang.work, "group") == 0);

	if (ends && !g->open && g->start_ns + g->dur_ns > p->hang.at_ns)
		hr__hang_end(e, p);
}

static bool is_worker(const struct hr_proc *p)
{
	return strcmp(p->hang.work, "fetch") == 0;
}

static bool is_waiting(const struct hr_proc *p)
{
	return strcmp(p->hang.work, "wait") == 0;
}

/*
 * Returns which of two training processes more probably keeps the others waiting. One that waits
 * for a batch does not wait for another rank, and one in a step may.
 */
static const struct hr_proc *of_both(const struct hr_proc *a, const struct hr_proc *b)
{
	if (is_waiting(a) != is_waiting(b))
		return is_waiting(a) ? a : b;
	return b->hang.since_ns < a->hang.since_ns ? b : a;
}

/* Returns the worker of this rank that has prepared a batch for the longest time. NULL: none. */
static const struct hr_proc *worker_of(const struct hr_engine *e, const struct hr_proc *trainer)
{
	const struct hr_proc *found = NULL;

	for (const struct hr_proc *p = e->first; p; p = p->next)
		if (p->hang.since_ns > 0 && is_worker(p) &&
		    p->id.rank_plus1 == trainer->id.rank_plus1 &&
		    (!found || p->hang.since_ns < found->hang.since_ns))
			found = p;
	return found;
}

void hr_engine_hang(const struct hr_engine *e, struct hr_job_hang *ret)
{
	const struct hr_proc *trainer = NULL, *culprit;

	*ret = (struct hr_job_hang){0};
	for (const struct hr_proc *p = e->hanging > 0 ? e->first : NULL; p; p = p->next) {
		if (p->hang.since_ns == 0 || is_worker(p))
			continue;
		ret->processes++;
		if (is_waiting(p) && e->now_ns > p->hang.since_ns)
			ret->wait_ns += e->now_ns - p->hang.since_ns;
		trainer = trainer ? of_both(trainer, p) : p;
	}
	if (!trainer)
		return;
	culprit = is_waiting(trainer) ? worker_of(e, trainer) : NULL;
	if (!culprit)
		culprit = trainer;
	ret->since_ns = trainer->hang.since_ns;
	ret->pid = (uint32_t)culprit->id.pid;
	ret->rank_plus1 = culprit->id.rank_plus1;
	ret->worker_plus1 = culprit->id.worker_plus1;
	memcpy(ret->line, culprit->hang.line, sizeof(ret->line));
}
