/* SPDX-License-Identifier: Apache-2.0 */
#include "query/prune/prune.h"

#include <stdlib.h>
#include <string.h>

#include "proto/abi.h"

_Static_assert(HR_PRUNE_OPS == HR_OP_MAX, "the bitmap of ops covers all ids");

void hr_prune_init(struct hr_prune *p)
{
	*p = (struct hr_prune){
	    .start_ns = {INT64_MIN, INT64_MAX},
	    .end_ns = {INT64_MIN, INT64_MAX},
	};
	memset(p->ops, 0xff, sizeof(p->ops));
}

static void set_done(struct hr_prune_set *s)
{
	for (unsigned i = 0; i < HR_PRUNE_VALUES; i++)
		free(s->text[i]);
}

void hr_prune_done(struct hr_prune *p)
{
	set_done(&p->cluster);
	set_done(&p->job);
	set_done(&p->node);
	set_done(&p->path);
}

/* Whether the set may contain the text. Names with escaped bytes are rare, and always match. */
static bool has_text(const struct hr_prune_set *set, const char *text)
{
	if (!set->known)
		return true;
	for (const char *c = text; *c != '\0'; c++) {
		if (*c < ' ' || *c > '~' || *c == '\\')
			return true;
	}
	for (unsigned i = 0; i < set->n; i++) {
		if (strcmp(set->text[i], text) == 0)
			return true;
	}
	return false;
}

static bool has_number(const struct hr_prune_set *set, int64_t number)
{
	if (!set->known)
		return true;
	for (unsigned i = 0; i < set->n; i++) {
		if (set->number[i] == number)
			return true;
	}
	return false;
}

bool hr_prune_stream(const struct hr_prune *p, const struct hr_stream *s)
{
	return has_text(&p->cluster, s->cluster) && has_text(&p->job, s->job) &&
	       has_text(&p->node, s->node);
}

static bool process_matches(const struct hr_prune *p, const struct hr_stream *s, uint64_t proc)
{
	const struct hr_process *process = hr_stream_process(s, proc);
	bool of_process = p->pid.known || p->rank.known || p->local_rank.known || p->worker.known;

	if (!has_number(&p->proc, (int64_t)hr_stream_proc(s, proc)))
		return false;
	if (process == NULL)
		return !of_process; /* all these columns are NULL for an unknown process */
	return has_number(&p->pid, process->msg->pid) && has_number(&p->rank, process->rank) &&
	       has_number(&p->local_rank, process->local_rank) &&
	       has_number(&p->worker, process->worker);
}

static bool ops_meet(const struct hr_prune *p, const struct hr_batch_ref *b)
{
	if (!p->ops_known || b->ops_bytes == 0)
		return true;
	for (uint32_t i = 0; i < b->ops_bytes && i < HR_PRUNE_OPS / 8; i++) {
		if (b->ops[i] & (uint8_t)(p->ops[i / 8] >> (i % 8 * 8)))
			return true;
	}
	return false;
}

bool hr_prune_batch(const struct hr_prune *p, const struct hr_stream *s,
		    const struct hr_batch_ref *b)
{
	int64_t first = hr_stream_real_ns(s, b->base_ns);
	int64_t last = hr_stream_real_ns(s, b->last_ns);

	if (first > p->start_ns.max || last < p->start_ns.min || first > p->end_ns.max ||
	    last < p->end_ns.min)
		return false;
	if (!ops_meet(p, b))
		return false;
	for (uint32_t i = 0; i < b->n_procs; i++) {
		if (process_matches(p, s, b->procs[i]))
			return true;
	}
	return b->n_procs == 0;
}
