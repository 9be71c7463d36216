/* SPDX-License-Identifier: Apache-2.0 */
/* hr_busy(): the table function around busy.h. */
#include <stdlib.h>

#include "query/intervals/busy_table.h"
#include "common/ops.h"

#define DEFAULT_BY "rank"

enum column {
	CLUSTER,
	JOB,
	ATTEMPT,
	NODE,
	PROC,
	RANK,
	WORKER,
	CLASS,
	BUSY_NS,
	DUR_NS,
	COUNT,
	FIRST_NS,
	LAST_NS,
	COLUMNS
};

static const struct hr_sql_column columns[COLUMNS] = {
    {"cluster", HR_SQL_VARCHAR}, {"job", HR_SQL_VARCHAR},   {"attempt", HR_SQL_BIGINT},
    {"node", HR_SQL_VARCHAR},	 {"proc", HR_SQL_UBIGINT},  {"rank", HR_SQL_BIGINT},
    {"worker", HR_SQL_BIGINT},	 {"class", HR_SQL_VARCHAR}, {"busy_ns", HR_SQL_BIGINT},
    {"dur_ns", HR_SQL_BIGINT},	 {"count", HR_SQL_BIGINT},  {"first_ns", HR_SQL_BIGINT},
    {"last_ns", HR_SQL_BIGINT},
};
static const struct hr_sql_table table = {"busy", columns, COLUMNS, COLUMNS};

static const char *const parameters[] = {"by", "scope", "rank", NULL};

/* ---- what is asked for -------------------------------------------------------------- */

static bool parse_by(const char *text, unsigned *ret)
{
	static const struct {
		const char *name;
		unsigned by;
	} names[] = {
	    {"node", HR_BUSY_NODE},   {"proc", HR_BUSY_NODE | HR_BUSY_PROC},
	    {"rank", HR_BUSY_RANK},   {"worker", HR_BUSY_WORKER},
	    {"class", HR_BUSY_CLASS},
	};

	*ret = 0;
	for (size_t n; *(text += strspn(text, ", ")) != '\0'; text += n) {
		size_t i = 0;

		n = strcspn(text, ", ");
		while (i < sizeof(names) / sizeof(names[0]) &&
		       (strlen(names[i].name) != n || strncmp(names[i].name, text, n) != 0))
			i++;
		if (i == sizeof(names) / sizeof(names[0]))
			return false;
		*ret |= names[i].by;
	}
	return true;
}

static void busy_scan_bind(duckdb_bind_info info)
{
	char *by = hr__busy_parameter(info, "by");
	struct hr_busy_asked *a = calloc(1, sizeof(*a));

	hr__table_bind(info, &table);
	if (a == NULL)
		hr_duckdb.bind_set_error(info, "out of memory");
	else if (!parse_by(by != NULL ? by : DEFAULT_BY, &a->by))
		hr_duckdb.bind_set_error(
		    info,
		    "hr_busy: `by` is a list of node, proc, rank, worker, class: 'rank, class'");
	else
		hr__busy_bind(info, "hr_busy", a);
	hr_duckdb.bind_set_bind_data(info, a, free);
	hr_duckdb.free(by);
}

/* ---- rows --------------------------------------------------------------------------- */

static void put_class(struct hr_query_out *out, size_t k, unsigned class, unsigned by)
{
	const char *name = by & HR_BUSY_CLASS ? hr_class_name((uint8_t) class) : NULL;

	hr__out_text(out, k, hr__string(name, name != NULL ? strlen(name) : 0), name == NULL);
}

static void busy_scan_put(const struct hr_busy_use *use, const void *data, unsigned column,
			  size_t k, struct hr_query_out *out)
{
	const struct hr_busy_row *row = data;

	switch (column) {
	case CLUSTER:
		hr__out_text(out, k, row->st->cluster, false);
		break;
	case JOB:
		hr__out_text(out, k, row->st->job, false);
		break;
	case ATTEMPT:
		hr__out_number(out, k, row->st->s->attempt, false);
		break;
	case NODE:
		hr__out_text(out, k, row->st->node, !(use->by & HR_BUSY_NODE));
		break;
	case PROC:
		hr__out_number(out, k, row->proc, row->proc == 0);
		break;
	case RANK:
		hr__out_number(out, k, (uint64_t)row->rank, row->rank < 0);
		break;
	case WORKER:
		hr__out_number(out, k, (uint64_t)row->worker, row->worker < 0);
		break;
	case CLASS:
		put_class(out, k, row->class, use->by);
		break;
	case BUSY_NS:
		hr__out_number(out, k, row->busy_ns, false);
		break;
	case DUR_NS:
		hr__out_number(out, k, row->dur_ns, false);
		break;
	case COUNT:
		hr__out_number(out, k, row->count, false);
		break;
	case FIRST_NS:
		hr__out_number(out, k, (uint64_t)row->first_ns, false);
		break;
	default:
		hr__out_number(out, k, (uint64_t)row->last_ns, false);
	}
}

static int busy_scan_start(struct hr_busy_use *use, const void *asked)
{
	const struct hr_busy_asked *a = asked;

	use->by = a->by;
	return hr__busy_new(use->q, a, NULL, &use->busy);
}

static size_t rows(const struct hr_busy_use *use, const void **ret)
{
	const struct hr_busy_row *list;
	size_t n = hr__busy_rows(use->busy, &list);

	*ret = list;
	return n;
}

static void busy_scan_init(duckdb_init_info info)
{
	static const struct hr_busy_table busy = {COLUMNS, sizeof(struct hr_busy_row),
						  busy_scan_start, rows, busy_scan_put};

	hr__busy_table_init(info, &busy);
}

int hr__busy_register(struct hr_query *q)
{
	static const struct hr_table_function busy = {busy_scan_bind, busy_scan_init,
						      hr__busy_table_init_worker,
						      hr__busy_table_scan, parameters};

	return hr__table_register(q, "hr_busy", q, &busy);
}
