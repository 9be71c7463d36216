/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary/summary_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

/* ---- lives ----------------------------------------------------------------------------------- */

int hr_lives_add(struct hr_lives *lives, const struct hr_life *life)
{
	if (!hr_array_reserve(lives->list, lives->n, lives->room))
		return -ENOMEM;
	lives->list[lives->n++] = *life;
	return 0;
}

static int by_part(const struct hr_life *x, int rank, int worker)
{
	if (x->rank != rank)
		return x->rank < rank ? -1 : 1;
	return x->worker < worker ? -1 : x->worker > worker;
}

static int by_part_and_start(const void *a, const void *b)
{
	const struct hr_life *x = a, *y = b;
	int r = by_part(x, y->rank, y->worker);

	return r != 0 ? r : x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Returns the time in which at least one of the n processes was alive. They are sorted by start. */
static uint64_t summary_lives_length(const struct hr_life *list, size_t n, uint64_t now_ns)
{
	uint64_t sum = 0, until = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t start = list[i].start_ns > until ? list[i].start_ns : until;
		uint64_t end = list[i].end_ns != 0 ? list[i].end_ns : now_ns;

		if (end <= start)
			continue;
		sum += end - start;
		until = end;
	}
	return sum;
}

void hr_lives_sum(struct hr_lives *lives, uint64_t now_ns, struct hr_summary_who *who, size_t n)
{
	size_t at = 0;

	if (lives->n > 0)
		qsort(lives->list, lives->n, sizeof(*lives->list), by_part_and_start);
	while (at < lives->n) {
		const struct hr_life *first = &lives->list[at];
		size_t same = 1;

		while (at + same < lives->n &&
		       by_part(&lives->list[at + same], first->rank, first->worker) == 0)
			same++;
		for (size_t i = 0; i < n; i++)
			if (who[i].rank == first->rank && who[i].worker == first->worker)
				who[i].life_ns = summary_lives_length(first, same, now_ns);
		at += same;
	}
}

void hr_lives_done(struct hr_lives *lives)
{
	free(lives->list);
	*lives = (struct hr_lives){0};
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
	const struct hr_summary_who *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->worker < y->worker ? -1 : x->worker > y->worker;
}

static bool is_missing(const struct hr_summary *s, int rank)
{
	for (size_t i = 0; i < s->n_who; i++)
		if (s->who[i].rank == rank)
			return false;
	return true;
}

static bool is_deselected(const struct hr_summary *s, int rank)
{
	for (size_t i = 0; i < s->n_who; i++)
		if (s->who[i].rank == rank && s->who[i].deselected)
			return true;
	return false;
}

/* Returns a list of the ranks below n for which is() is true: "3 7-9"; NULL: none. */
static char *rank_list(const struct hr_summary *s, int n,
		       bool (*is)(const struct hr_summary *s, int rank))
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (out == NULL)
		return NULL;
	for (int rank = 0; rank < n && bytes < 512; rank++) {
		int last = rank;

		if (!is(s, rank))
			continue;
		while (last + 1 < n && is(s, last + 1))
			last++;
		fprintf(out, "%s%d", ftell(out) > 0 ? " " : "", rank);
		if (last > rank)
			fprintf(out, "-%d", last);
		rank = last;
		fflush(out);
	}
	fclose(out);
	if (bytes == 0) {
		free(text);
		text = NULL;
	}
	return text;
}

void hr_ranks_count(struct hr_summary *s, uint32_t world)
{
	if (world > s->ranks_expected)
		s->ranks_expected = world;
	if (s->n_who > 0)
		qsort(s->who, s->n_who, sizeof(*s->who), by_rank);
	for (size_t i = 0; i < s->n_who; i++) {
		s->workers += s->who[i].worker >= 0;
		s->ranks += s->who[i].rank >= 0 && (i == 0 || s->who[i].rank != s->who[i - 1].rank);
	}
	s->ranks_missing = rank_list(s, (int)s->ranks_expected, is_missing);
	s->ranks_deselected =
	    rank_list(s, s->n_who > 0 ? s->who[s->n_who - 1].rank + 1 : 0, is_deselected);
}

/* ---- signals --------------------------------------------------------------------------------- */

/* Returns the entry of a signal, and adds a new one. NULL: no memory. */
static struct hr_summary_killed *find_row(struct hr_summary *s, const char *signal)
{
	struct hr_summary_killed *list;
	char *name;

	for (size_t i = 0; i < s->n_killed; i++)
		if (strcmp(s->killed[i].signal, signal) == 0)
			return &s->killed[i];
	list = realloc(s->killed, (s->n_killed + 1) * sizeof(*list));
	if (list == NULL)
		return NULL;
	s->killed = list;
	name = strdup(signal);
	if (name == NULL)
		return NULL;
	list[s->n_killed] = (struct hr_summary_killed){.signal = name};
	return &list[s->n_killed++];
}

int hr_ends_add(struct hr_summary *s, const struct hr_process *process)
{
	struct hr_summary_killed *row;
	uint32_t i;

	if (strncmp(process->msg->exit, "SIG", 3) != 0)
		return 0;
	row = find_row(s, process->msg->exit);
	if (row == NULL)
		return -ENOMEM;
	i = row->processes++;
	if (i < HR_KILLED_NAMED) {
		row->first[i].rank = process->rank;
		row->first[i].worker = process->worker;
		row->first[i].pid = process->msg->pid;
	}
	return 0;
}

const char *hr_ends_signal(int number, char *out, size_t bytes)
{
	const char *name = sigabbrev_np(number);

	if (name != NULL)
		snprintf(out, bytes, "SIG%s", name);
	else
		snprintf(out, bytes, "SIG%d", number);
	return out;
}

void hr_ends_free(struct hr_summary *s)
{
	for (size_t i = 0; i < s->n_killed; i++)
		free(s->killed[i].signal);
	free(s->killed);
}
