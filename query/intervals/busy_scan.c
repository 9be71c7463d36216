/* SPDX-License-Identifier: Apache-2.0 */
/* The table function hr_busy(). */
#include <stddef.h>
#include <stdlib.h>

#include "query/intervals/busy_table.h"
#include "common/ops.h"

#define DEFAULT_BY "rank"

static const char *const parameters[] = {"by", "scope", "rank", NULL};

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
	struct hr_busy_args *a = calloc(1, sizeof(*a));

	hr_table_bind(info, HR_TABLE_BUSY);
	if (a == NULL)
		hr_duckdb.bind_set_error(info, "out of memory");
	else if (!parse_by(by != NULL ? by : DEFAULT_BY, &a->by))
		hr_duckdb.bind_set_error(info, "hr_busy: `by` must be a list of node, proc, rank, "
					       "worker, class, for example 'rank, class'");
	else
		hr__busy_bind(info, "hr_busy", a);
	hr_duckdb.bind_set_bind_data(info, a, free);
	hr_duckdb.free(by);
}

static const size_t row_numbers[HR_BUSY_END] = {
#define N(name) [HR_BUSY_##name] = offsetof(struct hr_busy_row, name)
    N(busy_ns), N(dur_ns), N(count), N(first_ns), N(last_ns)
#undef N
};

static void busy_scan_cell(const struct hr_busy_use *use, const void *data, unsigned column,
			   struct hr_cell *c)
{
	const struct hr_busy_row *row = data;

	switch (column) {
	case HR_STREAM_cluster:
	case HR_STREAM_job:
	case HR_STREAM_attempt:
	case HR_STREAM_node:
		hr_stream_cell(row->st, column, c);
		c->null = column == HR_STREAM_node && !(use->by & HR_BUSY_NODE);
		break;
	case HR_BUSY_proc:
		c->u = row->proc;
		c->null = row->proc == 0;
		break;
	case HR_BUSY_rank:
		c->i = row->rank;
		c->null = row->rank < 0;
		break;
	case HR_BUSY_worker:
		c->i = row->worker;
		c->null = row->worker < 0;
		break;
	case HR_BUSY_class:
		hr_cell_constant(c, use->by & HR_BUSY_CLASS ? hr_class_name(row->class) : NULL);
		break;
	default:
		c->u = *(const uint64_t *)((const char *)data + row_numbers[column]);
	}
}

static int busy_scan_start(struct hr_busy_use *use, const void *args)
{
	const struct hr_busy_args *a = args;

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

int hr_busy_register(struct hr_query *q)
{
	static const struct hr_busy_table busy = {HR_TABLE_BUSY, sizeof(struct hr_busy_row),
						  busy_scan_start, rows, busy_scan_cell};

	return hr__busy_table_register(q, "hr_busy", busy_scan_bind, parameters, &busy);
}
