/* SPDX-License-Identifier: Apache-2.0 */
/* hr_during(): the table function around during.h. */
#include <errno.h>
#include <stdlib.h>

#include "query/intervals/busy_table.h"
#include "query/intervals/during.h"

#define DEFAULT_KIND "step"

/* How many rows there are is not known before they are read. Taken for few, they would be joined by nested loops. */
#define GUESSED_ROWS 1000000u

enum column {
	CLUSTER,
	JOB,
	ATTEMPT,
	NODE,
	PROC,
	RANK,
	TID,
	KIND,
	DEPTH,
	OPEN,
	COUNT,
	START_NS,
	DUR_NS,
	STEP,
	EPOCH,
	OPS,
	BYTES_READ,
	BYTES_WRITTEN,
	IO_NS,
	BUSY_NS,
	TRAIN_BUSY_NS,
	MADE_NS,
	MADE_BUSY_NS,
	PROCESS,
	COLUMNS
};

static const struct hr_sql_column columns[COLUMNS] = {
    {"cluster", HR_SQL_VARCHAR}, {"job", HR_SQL_VARCHAR},	  {"attempt", HR_SQL_BIGINT},
    {"node", HR_SQL_VARCHAR},	 {"proc", HR_SQL_UBIGINT},	  {"rank", HR_SQL_BIGINT},
    {"tid", HR_SQL_BIGINT},	 {"kind", HR_SQL_VARCHAR},	  {"depth", HR_SQL_BIGINT},
    {"open", HR_SQL_BIGINT},	 {"count", HR_SQL_BIGINT},	  {"start_ns", HR_SQL_BIGINT},
    {"dur_ns", HR_SQL_BIGINT},	 {"step", HR_SQL_BIGINT},	  {"epoch", HR_SQL_BIGINT},
    {"ops", HR_SQL_BIGINT},	 {"bytes_read", HR_SQL_BIGINT},	  {"bytes_written", HR_SQL_BIGINT},
    {"io_ns", HR_SQL_BIGINT},	 {"busy_ns", HR_SQL_BIGINT},	  {"train_busy_ns", HR_SQL_BIGINT},
    {"made_ns", HR_SQL_BIGINT},	 {"made_busy_ns", HR_SQL_BIGINT}, {"process", HR_SQL_UBIGINT},
};
static const struct hr_sql_table table = {"during", columns, COLUMNS, COLUMNS};

static const char *const parameters[] = {"kind", "scope", "rank", NULL};

/* What a statement asks for. */
struct asked {
	uint32_t kinds;
	struct hr_busy_asked busy;
};

/* ---- what is asked for -------------------------------------------------------------- */

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
	struct asked *a = calloc(1, sizeof(*a));

	hr__table_bind(info, &table);
	hr_duckdb.bind_set_cardinality(info, GUESSED_ROWS, false);
	if (a == NULL)
		hr_duckdb.bind_set_error(info, "out of memory");
	else if (!parse_kinds(kind != NULL ? kind : DEFAULT_KIND, &a->kinds))
		hr_duckdb.bind_set_error(
		    info, "hr_during: `kind` is a list of kinds of regions: 'step, input_wait'");
	else if (hr__busy_bind(info, "hr_during", &a->busy))
		a->busy.by = HR_BUSY_RANK;
	hr_duckdb.bind_set_bind_data(info, a, free);
	hr_duckdb.free(kind);
}

/* ---- rows --------------------------------------------------------------------------- */

static void put_stream(const struct hr_busy_use *use, const struct hr_during_row *row,
		       enum column column, size_t k, struct hr_query_out *out)
{
	const struct hr_qstream *st = &use->q->streams[row->stream];

	if (column == ATTEMPT)
		hr__out_number(out, k, st->s->attempt, false);
	else
		hr__out_text(out, k,
			     column == CLUSTER ? st->cluster
			     : column == JOB   ? st->job
					       : st->node,
			     false);
}

static void put_region(const struct hr_busy_use *use, const struct hr_during_row *row,
		       enum column column, size_t k, struct hr_query_out *out)
{
	const struct hr_busy_keys *keys = hr__busy_keys(use->busy);
	const struct hr_region *g = &row->region;
	const char *kind = hr_region_kind_name(g->kind);
	uint64_t proc;

	switch (column) {
	case PROC:
		proc = hr_stream_proc(use->q->streams[row->stream].s, g->proc);
		hr__out_number(out, k, proc, proc == 0);
		break;
	case RANK:
		hr__out_number(out, k, (uint64_t)keys->list[row->key].rank,
			       keys->list[row->key].rank < 0);
		break;
	case TID:
		hr__out_number(out, k, g->tid, g->tid == 0);
		break;
	case KIND:
		hr__out_text(out, k, hr__string(kind, strlen(kind)), false);
		break;
	case DEPTH:
		hr__out_number(out, k, g->depth, false);
		break;
	case OPEN:
		hr__out_number(out, k, g->open, false);
		break;
	case COUNT:
		hr__out_number(out, k, g->count, false);
		break;
	case START_NS:
		hr__out_number(out, k, (uint64_t)row->start_ns, false);
		break;
	case DUR_NS:
		hr__out_number(out, k, g->dur_ns, false);
		break;
	default:
		hr__out_number(out, k, column == STEP ? g->step : g->epoch,
			       (column == STEP ? g->step : g->epoch) == HR_REGION_UNKNOWN);
	}
}

/* A stream counts its processes from 1. */
static uint64_t process_of(const struct hr_during_row *row)
{
	return (uint64_t)row->stream << 40 | (row->region.proc & ((UINT64_C(1) << 40) - 1));
}

/* Of several regions that were added up it is not known. */
static void put_sum(const struct hr_busy_use *use, const struct hr_during_row *row,
		    enum column column, size_t k, struct hr_query_out *out)
{
	const struct hr_during_sums *sums = hr__during_sums(use->during, row->key);
	const struct hr_during_sums *from = &sums[row->from], *to = &sums[row->to];
	uint64_t value;

	switch (column) {
	case OPS:
		value = to->ops - from->ops;
		break;
	case BYTES_READ:
		value = to->bytes_read - from->bytes_read;
		break;
	case BYTES_WRITTEN:
		value = to->bytes_written - from->bytes_written;
		break;
	case IO_NS:
		value = to->io_ns - from->io_ns;
		break;
	case BUSY_NS:
		value = to->busy_ns[0] - from->busy_ns[0];
		break;
	case TRAIN_BUSY_NS:
		value = to->busy_ns[1] - from->busy_ns[1];
		break;
	case MADE_NS:
		value = to->made_ns - from->made_ns;
		break;
	default:
		value = to->made_busy_ns - from->made_busy_ns;
	}
	hr__out_number(out, k, value, row->region.count > 1);
}

static void during_scan_put(const struct hr_busy_use *use, const void *data, unsigned column,
			    size_t k, struct hr_query_out *out)
{
	const struct hr_during_row *row = data;

	if (column <= NODE)
		put_stream(use, row, column, k, out);
	else if (column < OPS)
		put_region(use, row, column, k, out);
	else if (column == PROCESS)
		hr__out_number(out, k, process_of(row), false);
	else
		put_sum(use, row, column, k, out);
}

static int during_scan_start(struct hr_busy_use *use, const void *asked)
{
	const struct asked *a = asked;
	struct hr_during_asked regions = {.kinds = a->kinds, .rank = a->busy.rank};
	struct hr_during *during;

	for (unsigned i = 0; i < use->n_columns; i++)
		regions.made |= use->columns[i] == MADE_NS || use->columns[i] == MADE_BUSY_NS;
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

static void during_scan_init(duckdb_init_info info)
{
	static const struct hr_busy_table during = {COLUMNS, sizeof(struct hr_during_row),
						    during_scan_start, rows, during_scan_put};

	hr__busy_table_init(info, &during);
}

int hr__during_register(struct hr_query *q)
{
	static const struct hr_table_function during = {during_scan_bind, during_scan_init,
							hr__busy_table_init_worker,
							hr__busy_table_scan, parameters};

	return hr__table_register(q, "hr_during", q, &during);
}
