/* SPDX-License-Identifier: Apache-2.0 */
/* The tables `processes` and `levels`, whose rows are messages of a stream. */
#include <errno.h>
#include <stdlib.h>

#include "common/rows.h"
#include "query/tables/rows.h"

/* ---- processes ---- */

/* Processes of an added stream that its recorded stream has, too, are one process. */
static int processes_gather(struct hr_rows *rows, uint64_t want)
{
	const struct hr_stream *s = rows->st->s;
	const struct hr_process **list = malloc((s->n_processes + (size_t)1) * sizeof(*list));

	(void)want;
	rows->data = list;
	if (list == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_processes; i++)
		if (s->added_to == NULL || s->processes[i].msg->same_as == 0)
			list[rows->n++] = &s->processes[i];
	return 0;
}

static const void *processes_row(const struct hr_rows *rows, size_t row)
{
	const struct hr_process *const *list = rows->data;

	return list[row]->msg;
}

static uint64_t processes_proc(const struct hr_rows *rows, size_t row)
{
	const Headrace__Process *p = processes_row(rows, row);

	return p->proc;
}

static duckdb_string_t command_line(struct hr_query *q, const Headrace__Process *p)
{
	size_t n = p->cmdline.len;
	char *copy;

	while (n > 0 && p->cmdline.data[n - 1] == '\0')
		n--;
	copy = hr_pool_get(&q->pool, n);
	if (copy == NULL || n == 0)
		return hr_string(NULL, 0);
	for (size_t i = 0; i < n; i++)
		copy[i] = (char)(p->cmdline.data[i] == '\0' ? ' ' : p->cmdline.data[i]);
	return hr_string_of(&q->pool, copy, n);
}

static void excluded_cells(struct hr_query *q, const Headrace__Process *p, bool text,
			   struct hr_cell *c)
{
	char *patterns = hr_excluded_text(p, &c->u);

	if (text)
		hr__cell_text(c, hr__string_copy(&q->pool, patterns));
	free(patterns);
}

static void processes_cell(const struct hr_rows *rows, size_t row, unsigned column,
			   struct hr_cell *c)
{
	const Headrace__Process *p = processes_row(rows, row);

	switch (column) {
	case HR_PROCESSES_cmdline:
		hr__cell_text(c, command_line(rows->q, p));
		break;
	case HR_PROCESSES_exec_of:
		hr__cell_nonzero(c, hr_stream_proc(rows->st->s, p->exec_of));
		break;
	case HR_PROCESSES_parent_proc:
		hr__cell_nonzero(c, hr_stream_proc(rows->st->s, p->parent_proc));
		break;
	case HR_PROCESSES_first_cpu:
		hr__cell_nonzero(c, p->cpus);
		c->u = p->first_cpu;
		break;
	default:
		excluded_cells(rows->q, p, column == HR_PROCESSES_excluded, c);
	}
}

const struct hr_row_kind hr__processes_kind = {
    .table = HR_TABLE_PROCESSES,
    .gather = processes_gather,
    .proc = processes_proc,
    .row = processes_row,
    .cell = processes_cell,
};

/* ---- levels ---- */

static int frames_new(struct hr_rows *rows, int body_case, struct hr_frames **ret)
{
	rows->data = calloc(1, sizeof(struct hr_frames));
	*ret = rows->data;
	return *ret == NULL ? -ENOMEM : hr_frames_read(rows->q, rows->st, body_case, *ret);
}

static void frames_done(struct hr_rows *rows)
{
	if (rows->data != NULL)
		hr_frames_free(rows->data);
	free(rows->data);
}

static bool same_span(const Headrace__Levels *a, const Headrace__Levels *b)
{
	return a->start_ns == b->start_ns && strcmp(a->level, b->level) == 0;
}

/*
 * A message for each time with one level is stored when the time begins and when it ends. Moves the
 * last message of each time to the front, and returns their number.
 */
static size_t levels_merge(Headrace__Frame **list, size_t n)
{
	size_t spans = 0;

	for (size_t i = 0; i < n; i++) {
		Headrace__Frame *new = list[i];
		size_t k = 0;

		while (k < spans && !same_span(list[k]->levels, new->levels))
			k++;
		list[i] = list[k];
		list[k] = new;
		spans += k == spans;
	}
	return spans;
}

static int levels_gather(struct hr_rows *rows, uint64_t want)
{
	struct hr_frames *f;
	int r = frames_new(rows, HEADRACE__FRAME__BODY_LEVELS, &f);

	(void)want;
	if (r == 0)
		rows->n = levels_merge(f->list, f->n);
	return r;
}

static const void *levels_row(const struct hr_rows *rows, size_t row)
{
	const struct hr_frames *f = rows->data;

	return f->list[row]->levels;
}

const struct hr_row_kind hr__levels_kind = {
    .table = HR_TABLE_LEVELS,
    .gather = levels_gather,
    .done = frames_done,
    .row = levels_row,
};
