/* SPDX-License-Identifier: Apache-2.0 */
#include "query/tables/sums.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"

static int sums_compare(const void *a, const void *b)
{
	const struct hr_sums_entry *x = a, *y = b;

	for (unsigned i = 0; i < 3; i++) {
		if (x->key[i] != y->key[i])
			return x->key[i] < y->key[i] ? -1 : 1;
	}
	return 0;
}

int hr_sums_add(struct hr_query_sums *s, uint64_t a, uint64_t b, uint64_t c, const void *msg)
{
	int r = hr_array_reserve(s->entries, s->n, s->size) ? 0 : -ENOMEM;

	if (r == 0)
		s->entries[s->n++] = (struct hr_sums_entry){{a, b, c}, msg};
	return r;
}

int hr_sums_group(struct hr_rows *rows)
{
	struct hr_query_sums *s = rows->data;
	size_t runs = 0;

	if (s->n > 1)
		qsort(s->entries, s->n, sizeof(*s->entries), sums_compare);
	s->starts = malloc((s->n + 1) * sizeof(*s->starts));
	if (s->starts == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++) {
		if (i == 0 || sums_compare(&s->entries[i - 1], &s->entries[i]) != 0)
			s->starts[runs++] = i;
	}
	s->starts[runs] = s->n;
	rows->n = runs;
	return 0;
}

int hr_sums_new(struct hr_rows *rows, int body_case, struct hr_query_sums **ret)
{
	struct hr_query_sums *s = calloc(1, sizeof(*s));
	int r;

	if (s == NULL)
		return -ENOMEM;
	rows->data = s;
	r = hr_frames_read(rows->q, rows->st, body_case, &s->frames);
	if (r == 0)
		*ret = s;
	return r;
}

void hr_sums_done(struct hr_rows *rows)
{
	struct hr_query_sums *s = rows->data;

	if (s == NULL)
		return;
	hr_frames_free(&s->frames);
	free(s->entries);
	free(s->starts);
	free(s);
}

const struct hr_sums_entry *hr_sums_run(const struct hr_rows *rows, size_t row, size_t *ret_n)
{
	const struct hr_query_sums *s = rows->data;

	*ret_n = s->starts[row + 1] - s->starts[row];
	return &s->entries[s->starts[row]];
}

const void *hr_sums_first(const struct hr_rows *rows, size_t row)
{
	size_t n;

	return hr_sums_run(rows, row, &n)->msg;
}

uint64_t hr_sums_proc(const struct hr_rows *rows, size_t row)
{
	size_t n;

	return hr_sums_run(rows, row, &n)->key[0];
}

/* Adds a histogram of pairs (bin, count). Ignores bins out of range. */
static void hist_add(uint64_t *hist, const uint64_t *pairs, size_t n)
{
	for (size_t i = 0; i + 1 < n; i += 2) {
		if (pairs[i] < HR_HIST_BINS)
			hist[pairs[i]] += pairs[i + 1];
	}
}

void hr__sums_cell(const struct hr_rows *rows, size_t row, const struct hr_sql_column *column,
		   struct hr_cell *c)
{
	uint64_t sum = 0, max = 0, min = 0;
	size_t n;
	const struct hr_sums_entry *e = hr_sums_run(rows, row, &n);

	for (size_t i = 0; i < n; i++) {
		const char *msg = e[i].msg;
		const void *at = msg + column->offset;
		uint64_t v;

		if (column->from == HR_FROM_HIST) {
			hist_add(c->hist, *(uint64_t *const *)(msg + column->list),
				 *(const size_t *)at);
			continue;
		}
		v = *(const uint64_t *)at;
		sum += v;
		max = v > max ? v : max;
		min = v != 0 && (min == 0 || v < min) ? v : min;
	}
	if (column->from == HR_FROM_FIRST || column->from == HR_FROM_LAST)
		hr__cell_wall(c, rows->st, column->from == HR_FROM_FIRST ? min : max);
	else
		c->u = column->from == HR_FROM_MAX ? max : sum;
}
