/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary/summary_ranks.h"

#include <stdio.h>
#include <stdlib.h>

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
