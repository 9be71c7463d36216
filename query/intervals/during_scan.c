/* SPDX-License-Identifier: Apache-2.0 */
/* The table function hr_during(). */
#include <errno.h>
#include <stdlib.h>

#include "query/intervals/busy_table.h"
#include "query/intervals/during.h"

#define DEFAULT_KIND "step"

/* The estimated number of rows. With a small estimate, DuckDB would join by nested loops. */
#define GUESSED_ROWS 1000000u

static const char *const parameters[] = {"kind", "scope", "rank", NULL};

struct args {
	uint32_t kinds;
	struct hr_busy_args busy;
};

/* ---- parameters ---- */

static uint32_t during_scan_kind_of(const char *text, size_t n)
{
	for (uint32_t kind = 1; kind < 32; kind++) {
		const char *name = hr_region_kind_name(kind);

		if (name != NULL && strlen(name) == n && memcmp(name, text, n) == 0)
			return kind;
	}
	return 0;
}

static bool parse_kinds(const char *text, uint32_t *ret)
{
	*ret = 0;
	for (size_t n; *(text += strspn(text, ", ")) != '\0'; text += n) {
		uint32_t kind;

		n = strcspn(text, ", ");
		kind = during_scan_kind_of(text, n);
		if (kind == 0)
			return false;
		*ret |= 1u << kind;
	}
	return true;
}

static void during_scan_bind(duckdb_bind_info info)
{
	char *kind = hr__busy_parameter(info, "kind");
	struct args *a = calloc(1, sizeof(*a));

	hr_table_bind(info, HR_TABLE_DURING);
	hr_duckdb.bind_set_cardinality(info, GUESSED_ROWS, false);
	if (a == NULL)
		hr_duckdb.bind_set_error(info, "out of memory");
	else if (!parse_kinds(kind != NULL ? kind : DEFAULT_KIND, &a->kinds))
		hr_duckdb.bind_set_error(info, "hr_during: `kind` must be a list of kinds of "
					       "regions, for example 'step, input_wait'");
	else if (hr__busy_bind(info, "hr_during", &a->busy))
		a->busy.by = HR_BUSY_RANK;
	hr_duckdb.bind_set_bind_data(info, a, free);
	hr_duckdb.free(kind);
}

/* ---- rows ---- */

static void region_cell(const struct hr_busy_use *use, const struct hr_during_row *row,
			unsigned column, struct hr_cell *c)
{
	const struct hr_region *g = &row->region;

	switch (column) {
	case HR_DURING_proc:
		c->u = hr_stream_proc(use->q->streams[row->stream].s, g->proc);
		c->null = c->u == 0;
		break;
	case HR_DURING_rank:
		c->i = hr__busy_keys(use->busy)->list[row->key].rank;
		c->null = c->i < 0;
		break;
	case HR_DURING_tid:
		c->u = g->tid;
		c->null = g->tid == 0;
		break;
	case HR_DURING_kind:
		hr_cell_constant(c, hr_region_kind_name(g->kind));
		break;
	case HR_DURING_depth:
		c->u = g->depth;
		break;
	case HR_DURING_open:
		c->u = g->open;
		break;
	case HR_DURING_count:
		c->u = g->count;
		break;
	case HR_DURING_start_ns:
		c->i = row->start_ns;
		break;
	case HR_DURING_dur_ns:
		c->u = g->dur_ns;
		break;
	default:
		c->u = column == HR_DURING_step ? g->step : g->epoch;
		c->null = c->u == HR_REGION_UNKNOWN;
	}
}

/* Short regions that were added up have no position in time, so their sums are NULL. */
static void sum_cell(const struct hr_busy_use *use, const struct hr_during_row *row,
		     unsigned column, struct hr_cell *c)
{
	const struct hr_during_sums *sums = hr__during_sums(use->during, row->key);
	const struct hr_during_sums *from = &sums[row->from], *to = &sums[row->to];

	c->null = row->region.count > 1;
	switch (column) {
	case HR_DURING_ops:
		c->u = to->ops - from->ops;
		break;
	case HR_DURING_bytes_read:
		c->u = to->bytes_read - from->bytes_read;
		break;
	case HR_DURING_bytes_written:
		c->u = to->bytes_written - from->bytes_written;
		break;
	case HR_DURING_io_ns:
		c->u = to->io_ns - from->io_ns;
		break;
	default:
		c->u = to->busy_ns - from->busy_ns;
	}
}

static void during_scan_cell(const struct hr_busy_use *use, const void *data, unsigned column,
			     struct hr_cell *c)
{
	const struct hr_during_row *row = data;

	if (column < HR_STREAM_END)
		hr_stream_cell(&use->q->streams[row->stream], column, c);
	else if (column < HR_DURING_ops)
		region_cell(use, row, column, c);
	else
		sum_cell(use, row, column, c);
}

static int during_scan_start(struct hr_busy_use *use, const void *args)
{
	const struct args *a = args;
	struct hr_during_args regions = {.kinds = a->kinds, .rank = a->busy.rank};
	struct hr_during *during;

	if (hr__during_new(use->q, &regions, &during) < 0)
		return -ENOMEM;
	use->during = during;
	return hr__busy_new(use->q, &a->busy, during, &use->busy);
}

static size_t rows(const struct hr_busy_use *use, const void **ret)
{
	const struct hr_during_row *list;
	size_t n = hr__during_rows(use->during, &list);

	*ret = list;
	return n;
}

int hr_during_register(struct hr_query *q)
{
	static const struct hr_busy_table during = {HR_TABLE_DURING, sizeof(struct hr_during_row),
						    during_scan_start, rows, during_scan_cell};

	return hr__busy_table_register(q, "hr_during", during_scan_bind, parameters, &during);
}
