/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which processes share a row of hr_busy(). */
#include <errno.h>
#include <stdlib.h>

#include "query/intervals/busy_internal.h"

/*
 * A process, or all processes of a stream that it does not describe. Fields by which hr_busy() does
 * not group are empty.
 */
struct key_entry {
	const struct hr_qstream *st;
	const char *node;
	uint64_t proc;
	int32_t rank, worker;
	uint32_t stream;
	size_t process; /* index in hr_busy_keys.key_of */
};

bool hr__busy_stream_has(const struct hr_stream *s, int32_t rank)
{
	if (rank == HR_BUSY_ANY_RANK)
		return true;
	for (uint32_t i = 0; i < s->n_processes; i++)
		if (s->processes[i].rank == rank)
			return true;
	return false;
}

/* A batch that lists no processes may contain any process. */
bool hr__busy_batch_has(const struct hr_stream *s, const struct hr_batch_ref *b, int32_t rank)
{
	if (rank == HR_BUSY_ANY_RANK || b->n_procs == 0)
		return true;
	for (uint32_t i = 0; i < b->n_procs; i++) {
		const struct hr_process *p = hr_stream_process(s, b->procs[i]);

		if (p != NULL && p->rank == rank)
			return true;
	}
	return false;
}

static int compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int compare_keys(const struct key_entry *x, const struct key_entry *y)
{
	const struct hr_stream *s = x->st->s, *t = y->st->s;
	int r = strcmp(s->cluster, t->cluster);

	r = r != 0 ? r : strcmp(s->job, t->job);
	r = r != 0 ? r : compare_numbers(s->attempt, t->attempt);
	r = r != 0 ? r : strcmp(x->node, y->node);
	r = r != 0 ? r : compare_numbers((int64_t)x->proc, (int64_t)y->proc);
	r = r != 0 ? r : compare_numbers(x->rank, y->rank);
	return r != 0 ? r : compare_numbers(x->worker, y->worker);
}

static int busy_keys_compare(const void *a, const void *b)
{
	const struct key_entry *x = a, *y = b;
	int r = compare_keys(x, y);

	return r != 0 ? r : compare_numbers(x->stream, y->stream);
}

static int32_t rank_of(const struct hr_process *p, const struct hr_busy_args *args)
{
	int32_t rank = p != NULL && p->rank >= 0 ? p->rank : -1;

	if (args->rank != HR_BUSY_ANY_RANK && rank != args->rank)
		return HR_BUSY_OTHER_RANK;
	return args->by & HR_BUSY_RANK ? rank : -1;
}

static size_t add_stream(struct key_entry *to, size_t process, const struct hr_query *q,
			 uint32_t stream, const struct hr_busy_args *args)
{
	const struct hr_qstream *st = &q->streams[stream];
	unsigned by = args->by;

	for (uint32_t i = 0; i <= st->s->n_processes; i++) {
		const struct hr_process *p = i < st->s->n_processes ? &st->s->processes[i] : NULL;

		*to++ = (struct key_entry){
		    .st = st,
		    .node = by & HR_BUSY_NODE ? st->s->node : "",
		    .proc =
			p != NULL && by & HR_BUSY_PROC ? hr_stream_proc(st->s, p->msg->proc) : 0,
		    .rank = rank_of(p, args),
		    .worker = p != NULL && by & HR_BUSY_WORKER && p->worker >= 0 ? p->worker : -1,
		    .stream = stream,
		    .process = process + i,
		};
	}
	return process + st->s->n_processes + 1;
}

static void busy_keys_number(struct hr_busy_keys *k, const struct key_entry *entries, size_t n)
{
	uint32_t n_streams = 0;

	for (size_t i = 0; i < n; i++) {
		const struct key_entry *e = &entries[i];
		bool new = i == 0 || compare_keys(&entries[i - 1], e) != 0;
		struct hr_busy_key *key = &k->list[new ? k->n++ : k->n - 1];

		if (new)
			*key = (struct hr_busy_key){.st = e->st,
						    .proc = e->proc,
						    .rank = e->rank,
						    .worker = e->worker,
						    .first_stream = n_streams};
		if (new || entries[i - 1].stream != e->stream) {
			k->streams[n_streams++] = e->stream;
			key->n_streams++;
		}
		k->key_of[e->process] = (uint32_t)(k->n - 1);
	}
}

int hr__busy_keys_make(struct hr_busy_keys *k, const struct hr_query *q,
		       const struct hr_busy_args *args, const bool *used)
{
	struct key_entry *entries;
	size_t n = 0;

	for (size_t i = 0; i < q->n_streams; i++)
		n += used[i] ? q->streams[i].s->n_processes + 1 : 0;
	entries = malloc((n + 1) * sizeof(*entries));
	k->list = malloc((n + 1) * sizeof(*k->list));
	k->streams = malloc((n + 1) * sizeof(*k->streams));
	k->key_of = malloc((n + 1) * sizeof(*k->key_of));
	k->first_process = calloc(q->n_streams + 1, sizeof(*k->first_process));
	if (entries == NULL || k->list == NULL || k->streams == NULL || k->key_of == NULL ||
	    k->first_process == NULL) {
		free(entries);
		return -ENOMEM;
	}
	n = 0;
	for (uint32_t i = 0; i < q->n_streams; i++) {
		k->first_process[i] = n;
		if (used[i])
			n = add_stream(entries + n, n, q, i, args);
	}
	if (n > 0)
		qsort(entries, n, sizeof(*entries), busy_keys_compare);
	busy_keys_number(k, entries, n);
	free(entries);
	return 0;
}

void hr__busy_keys_done(struct hr_busy_keys *k)
{
	free(k->list);
	free(k->streams);
	free(k->first_process);
	free(k->key_of);
}

uint32_t hr__busy_key(const struct hr_busy_keys *k, const struct hr_query *q, uint32_t stream,
		      uint64_t proc)
{
	const struct hr_stream *s = q->streams[stream].s;
	const struct hr_process *p = hr_stream_process(s, proc);
	size_t process = p != NULL ? (size_t)(p - s->processes) : s->n_processes;

	return k->key_of[k->first_process[stream] + process];
}
