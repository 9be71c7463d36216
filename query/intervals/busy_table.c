/* SPDX-License-Identifier: Apache-2.0 */
/* The table functions hr_busy() and hr_during(), which add up all events before their first row. */
#include <errno.h>
#include <stdlib.h>

#include "query/intervals/during.h"
#include "query/tables/each.h"
#include "query/tables/rows.h"

/* ---- parameters ---- */

enum { WHAT, SCOPE, RANK };
static const char *const busy_parameters[] = {"by", "scope", "rank", NULL};
static const char *const during_parameters[] = {"kind", "scope", "rank", NULL};

static uint32_t by_of(const char *word, size_t n)
{
	static const struct {
		const char *name;
		uint32_t by;
	} names[] = {
	    {"node", HR_BUSY_NODE},   {"proc", HR_BUSY_NODE | HR_BUSY_PROC},
	    {"rank", HR_BUSY_RANK},   {"worker", HR_BUSY_WORKER},
	    {"class", HR_BUSY_CLASS},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i].name) == n && memcmp(names[i].name, word, n) == 0)
			return names[i].by;
	return 0;
}

static uint32_t kind_of(const char *word, size_t n)
{
	uint32_t kind = hr_region_kind_by_name(word, n);

	return kind != 0 ? 1u << kind : 0;
}

/* Parses a list of words, and unites their bits. `text` NULL: `absent`. False: a wrong word. */
static bool parse_list(const char *text, const char *absent,
		       uint32_t (*bits_of)(const char *word, size_t n), uint32_t *ret)
{
	text = text != NULL ? text : absent;
	*ret = 0;
	for (size_t n; *(text += strspn(text, ", ")) != '\0'; text += n) {
		uint32_t bits;

		n = strcspn(text, ", ");
		bits = bits_of(text, n);
		if (bits == 0)
			return false;
		*ret |= bits;
	}
	return true;
}

static bool parse_by(const char *text, uint32_t *ret)
{
	return parse_list(text, "rank", by_of, ret);
}

static bool parse_kinds(const char *text, uint32_t *ret)
{
	return parse_list(text, "step", kind_of, ret);
}

static bool parse_scope(const char *text, enum hr_busy_scope *ret)
{
	static const char *const names[] = {
	    [HR_BUSY_ALL] = "all", [HR_BUSY_DATA] = "data", [HR_BUSY_RUNTIME] = "runtime"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], text != NULL ? text : "all") == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

/* Parses a rank. `text` NULL: any rank. False: `text` is not a rank. */
static bool parse_rank(const char *text, int32_t *ret)
{
	char *end;
	long rank;

	*ret = HR_BUSY_ANY_RANK;
	if (text == NULL)
		return true;
	errno = 0;
	rank = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || rank < 0 || rank > INT32_MAX)
		return false;
	*ret = (int32_t)rank;
	return true;
}

static const char *busy_check(const char *const *p)
{
	struct hr_busy_args a;

	if (!parse_by(p[WHAT], &a.by))
		return "hr_busy: `by` must be a list of node, proc, rank, worker, class, for "
		       "example 'rank, class'";
	if (!parse_scope(p[SCOPE], &a.scope))
		return "hr_busy: `scope` must be data, runtime or all";
	return parse_rank(p[RANK], &a.rank) ? NULL : "hr_busy: `rank` must be a number from 0 up";
}

static const char *during_check(const char *const *p)
{
	struct hr_busy_args a;
	uint32_t kinds;

	if (!parse_kinds(p[WHAT], &kinds))
		return "hr_during: `kind` must be a list of kinds of regions, for example "
		       "'step, input_wait'";
	if (!parse_scope(p[SCOPE], &a.scope))
		return "hr_during: `scope` must be data, runtime or all";
	return parse_rank(p[RANK], &a.rank) ? NULL : "hr_during: `rank` must be a number from 0 up";
}

/* ---- all events ---- */

static int busy_run(void *busy, size_t thread)
{
	struct hr_busy_worker *w = hr__busy_worker_new();
	int r = w != NULL ? hr__busy_work(busy, w) : -ENOMEM;

	(void)thread;
	hr__busy_worker_free(w);
	return r < 0 ? r : 0;
}

static int add_up(struct hr_busy *b, unsigned threads)
{
	size_t n = hr__busy_batches(b);

	return hr_each(threads, n < threads ? n : threads, busy_run, b);
}

/* ---- hr_busy() ---- */

static int busy_gather(struct hr_rows *rows, uint64_t want)
{
	const char *const *p = rows->parameters;
	const struct hr_busy_row *list;
	struct hr_busy_args a = {0};
	struct hr_busy *busy;
	int r;

	(void)want;
	(void)parse_by(p[WHAT], &a.by);
	(void)parse_scope(p[SCOPE], &a.scope);
	(void)parse_rank(p[RANK], &a.rank);
	rows->of_job = !(a.by & HR_BUSY_NODE);
	r = hr__busy_new(rows->q, &a, NULL, &busy);
	if (r < 0)
		return r;
	rows->data = busy;
	r = add_up(busy, rows->q->threads);
	rows->n = hr__busy_rows(busy, &list);
	return r;
}

static void busy_done(struct hr_rows *rows)
{
	hr__busy_free(rows->data);
}

static const void *busy_row(const struct hr_rows *rows, size_t row)
{
	const struct hr_busy_row *list;

	hr__busy_rows(rows->data, &list);
	return &list[row];
}

const struct hr_row_kind hr_busy_kind = {
    .table = HR_TABLE_BUSY,
    .all = true,
    .parameters = busy_parameters,
    .check = busy_check,
    .gather = busy_gather,
    .done = busy_done,
    .row = busy_row,
};

/* ---- hr_during() ---- */

struct during_rows {
	struct hr_busy *busy;
	struct hr_during *during; /* owned by `busy` */
	const struct hr_during_row *list;
};

static int during_gather(struct hr_rows *rows, uint64_t want)
{
	struct during_rows *d = calloc(1, sizeof(*d));
	const char *const *p = rows->parameters;
	struct hr_busy_args a = {.by = HR_BUSY_RANK};
	uint32_t kinds;
	int r;

	(void)want;
	rows->data = d;
	if (d == NULL)
		return -ENOMEM;
	(void)parse_kinds(p[WHAT], &kinds);
	(void)parse_scope(p[SCOPE], &a.scope);
	(void)parse_rank(p[RANK], &a.rank);
	r = hr__during_new(rows->q, kinds, a.rank, &d->during);
	if (r == 0)
		r = hr__busy_new(rows->q, &a, d->during, &d->busy);
	if (r == 0)
		r = add_up(d->busy, rows->q->threads);
	if (r == 0)
		rows->n = hr__during_rows(d->during, &d->list);
	return r;
}

static void during_done(struct hr_rows *rows)
{
	struct during_rows *d = rows->data;

	if (d != NULL)
		hr__busy_free(d->busy);
	free(d);
}

static const void *during_row(const struct hr_rows *rows, size_t row)
{
	const struct during_rows *d = rows->data;
	const struct hr_during_row *at = &d->list[row];
	const struct hr_during_sums *sums = hr__during_sums(d->during, at->key);
	const struct hr_during_sums *from = &sums[at->from], *to = &sums[at->to];
	const struct hr_qstream *st = &rows->q->streams[at->stream];
	const struct hr_region *g = &at->region;
	/* Short regions that were added up have no position in time, so their sums are NULL. */
	bool known = g->count <= 1;

	rows->made->during = (struct hr_during_region){
	    .of = {.st = st},
	    .proc = hr_stream_proc(st->s, g->proc),
	    .rank = hr__busy_keys(d->busy)->list[at->key].rank,
	    .tid = g->tid,
	    .kind = hr_region_kind_name(g->kind),
	    .depth = g->depth,
	    .open = g->open,
	    .count = g->count,
	    .start_ns = at->start_ns,
	    .dur_ns = g->dur_ns,
	    .step = g->step,
	    .epoch = g->epoch,
	    .ops = known ? to->ops - from->ops : UINT64_MAX,
	    .bytes_read = known ? to->bytes_read - from->bytes_read : UINT64_MAX,
	    .bytes_written = known ? to->bytes_written - from->bytes_written : UINT64_MAX,
	    .io_ns = known ? to->io_ns - from->io_ns : UINT64_MAX,
	    .busy_ns = known ? to->busy_ns - from->busy_ns : UINT64_MAX,
	};
	return &rows->made->during;
}

const struct hr_row_kind hr_during_kind = {
    .table = HR_TABLE_DURING,
    .all = true,
    .many = true,
    .parameters = during_parameters,
    .check = during_check,
    .gather = during_gather,
    .done = during_done,
    .row = during_row,
};
