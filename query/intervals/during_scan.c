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

static void put_stream(const struct hr_busy_use *use, const struct hr_during_row *row,
		       unsigned column, size_t k, struct hr_query_out *out)
{
	const struct hr_qstream *st = &use->q->streams[row->stream];

	if (column == HR_STREAM_attempt)
		hr_out_number(out, k, st->s->attempt, false);
	else
		hr_out_text(out, k,
			    column == HR_STREAM_cluster ? st->cluster
			    : column == HR_STREAM_job   ? st->job
						     : st->node,
			    false);
}

static void put_region(const struct hr_busy_use *use, const struct hr_during_row *row,
		       unsigned column, size_t k, struct hr_query_out *out)
{
	const struct hr_busy_keys *keys = hr__busy_keys(use->busy);
	const struct hr_region *g = &row->region;
	const char *kind = hr_region_kind_name(g->kind);
	uint64_t proc;

	switch (column) {
	case HR_DURING_proc:
		proc = hr_stream_proc(use->q->streams[row->stream].s, g->proc);
		hr_out_number(out, k, proc, proc == 0);
		break;
	case HR_DURING_rank:
		hr_out_number(out, k, (uint64_t)keys->list[row->key].rank,
			      keys->list[row->key].rank < 0);
		break;
	case HR_DURING_tid:
		hr_out_number(out, k, g->tid, g->tid == 0);
		break;
	case HR_DURING_kind:
		hr_out_text(out, k, hr_string(kind, strlen(kind)), false);
		break;
	case HR_DURING_depth:
		hr_out_number(out, k, g->depth, false);
		break;
	case HR_DURING_open:
		hr_out_number(out, k, g->open, false);
		break;
	case HR_DURING_count:
		hr_out_number(out, k, g->count, false);
		break;
	case HR_DURING_start_ns:
		hr_out_number(out, k, (uint64_t)row->start_ns, false);
		break;
	case HR_DURING_dur_ns:
		hr_out_number(out, k, g->dur_ns, false);
		break;
	default:
		hr_out_number(out, k, column == HR_DURING_step ? g->step : g->epoch,
			      (column == HR_DURING_step ? g->step : g->epoch) == HR_REGION_UNKNOWN);
	}
}

/* Short regions that were added up have no position in time, so their sums are NULL. */
static void put_sum(const struct hr_busy_use *use, const struct hr_during_row *row,
		    unsigned column, size_t k, struct hr_query_out *out)
{
	const struct hr_during_sums *sums = hr__during_sums(use->during, row->key);
	const struct hr_during_sums *from = &sums[row->from], *to = &sums[row->to];
	uint64_t value;

	switch (column) {
	case HR_DURING_ops:
		value = to->ops - from->ops;
		break;
	case HR_DURING_bytes_read:
		value = to->bytes_read - from->bytes_read;
		break;
	case HR_DURING_bytes_written:
		value = to->bytes_written - from->bytes_written;
		break;
	case HR_DURING_io_ns:
		value = to->io_ns - from->io_ns;
		break;
	default:
		value = to->busy_ns - from->busy_ns;
	}
	hr_out_number(out, k, value, row->region.count > 1);
}

static void during_scan_put(const struct hr_busy_use *use, const void *data, unsigned column,
			    size_t k, struct hr_query_out *out)
{
	const struct hr_during_row *row = data;

	if (column <= HR_STREAM_node)
		put_stream(use, row, column, k, out);
	else if (column < HR_DURING_ops)
		put_region(use, row, column, k, out);
	else
		put_sum(use, row, column, k, out);
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
	static const struct hr_busy_table during = {HR_DURING_END, sizeof(struct hr_during_row),
						    during_scan_start, rows, during_scan_put};

	return hr__busy_table_register(q, "hr_during", during_scan_bind, parameters, &during);
}
