/* SPDX-License-Identifier: Apache-2.0 */
/* batch_decode.c - decodes the untrusted columns of a batch of events (loops: batch_columns.c) */
#include "common/batch_decoder.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int hr_decoder_new(struct hr_decoder **ret)
{
	struct hr_decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->zstd = ZSTD_createDCtx();
	if (!d->zstd) {
		free(d);
		return -ENOMEM;
	}
	*ret = d;
	return 0;
}

static void free_arrays(struct hr_decoder *d)
{
	free(d->planes);
#define FREE(type, name) free(d->name);
	HR__DECODER_ARRAYS(FREE)
#undef FREE
}

void hr_decoder_free(struct hr_decoder *d)
{
	if (!d)
		return;
	free_arrays(d);
	ZSTD_freeDCtx(d->zstd);
	free(d);
}

/* Allocates all arrays. An array that is never used costs only address space. */
static int batch_decode_reserve(struct hr_decoder *d, uint32_t rows)
{
	uint32_t n = 1024;
	bool complete;

	if (rows <= d->room)
		return 0;
	while (n < rows)
		n *= 2;
	free_arrays(d);
	d->planes = malloc((size_t)(HR_COL_END_ - 1) * HR__MAX_PLANES * n);
	complete = d->planes != NULL;
#define MAKE(type, name) complete &= (d->name = malloc(n * sizeof(*d->name))) != NULL;
	HR__DECODER_ARRAYS(MAKE)
#undef MAKE
	d->room = complete ? n : 0;
	return d->room ? 0 : -ENOMEM;
}

static int take_tasks(struct hr_decoder *d, const Headrace__EventBatch *msg)
{
	size_t n = msg->n_task_rows;
	uint32_t row = 0, *task = d->task;

	if (n == 0 || n > HR_BATCH_TASKS || msg->n_task_proc != n || msg->n_task_tid != n)
		return -EBADMSG;
	for (uint32_t t = 0; t < n; t++) {
		uint32_t rows = msg->task_rows[t];

		if (rows == 0 || rows > d->count - row)
			return -EBADMSG;
		d->tasks[t] = (struct hr_task){.proc = msg->task_proc[t], .tid = msg->task_tid[t]};
		for (uint32_t end = row + rows; row < end; row++)
			task[row] = t;
		d->task_end[t] = row;
	}
	d->n_tasks = (uint32_t)n;
	return row == d->count ? 0 : -EBADMSG;
}

static int take_files(struct hr_decoder *d, const Headrace__EventBatch *msg)
{
	uint32_t id = 0;

	if (msg->n_files == 0 || msg->n_files > d->count)
		return -EBADMSG;
	d->n_files = (uint32_t)msg->n_files;
	for (uint32_t i = 0; i < d->n_files; i++) {
		id += hr__unzigzag32(msg->files[i]);
		d->files[i] = id;
	}
	return 0;
}

/* Removes unknown columns, and adds columns that the prediction of another column needs. */
static uint32_t with_dependencies(uint32_t want)
{
	static const uint32_t needs[HR_COL_END_] = {
	    [HR_COL_START] = HR_COL_BIT(HR_COL_DUR),
	    [HR_COL_ASKED] = HR_COL_BIT(HR_COL_OP),
	    [HR_COL_OFFSET] = HR_COL_BIT(HR_COL_OP) | HR_COL_BIT(HR_COL_FILE) |
			      HR_COL_BIT(HR_COL_ASKED) | HR_COL_BIT(HR_COL_RET) |
			      HR_COL_BIT(HR_COL_FLAGS),
	    [HR_COL_RET] =
		HR_COL_BIT(HR_COL_OP) | HR_COL_BIT(HR_COL_ASKED) | HR_COL_BIT(HR_COL_FLAGS),
	    [HR_COL_FD] = HR_COL_BIT(HR_COL_OP) | HR_COL_BIT(HR_COL_FILE),
	    [HR_COL_FLAGS] = HR_COL_BIT(HR_COL_OP),
	    [HR_COL_FILE2] = HR_COL_BIT(HR_COL_OP) | HR_COL_BIT(HR_COL_FILE),
	};
	uint32_t all = want & HR_COL_ALL;

	for (unsigned c = 1; c < HR_COL_END_; c++)
		if (want & HR_COL_BIT(c))
			all |= needs[c];
	return all;
}

static int take_column(struct hr_decoder *d, const Headrace__Column *msg)
{
	struct hr__column *c = &d->columns[msg->id];

	if (c->width > 0 || msg->width == 0 || msg->width > hr__column_width[msg->id] ||
	    msg->n_planes != msg->width)
		return -EBADMSG;
	for (unsigned p = 0; p < msg->width; p++) {
		uint8_t *room = d->planes + (size_t)d->planes_used * d->room;
		int r;

		assert(d->planes_used < (HR_COL_END_ - 1) * HR__MAX_PLANES);
		r = hr__plane_unpack(d->zstd, &msg->planes[p], d->count, room, &c->planes[p]);
		if (r < 0)
			return r;
		if (c->planes[p].data == room)
			d->planes_used++;
	}
	c->width = msg->width;
	return 0;
}

static int take_columns(struct hr_decoder *d, const Headrace__EventBatch *msg, uint32_t want)
{
	d->planes_used = 0;
	for (unsigned c = 1; c < HR_COL_END_; c++)
		d->columns[c] = (struct hr__column){0};
	for (size_t i = 0; i < msg->n_columns; i++) {
		const Headrace__Column *column = msg->columns[i];
		int r;

		if (column->id == 0 || column->id >= HR_COL_END_ ||
		    !(want & HR_COL_BIT(column->id)))
			continue;
		r = take_column(d, column);
		if (r < 0)
			return r;
	}
	return 0;
}

static int decode_chunk(struct hr_decoder *d, unsigned column, uint32_t first, uint32_t n)
{
	struct hr__column *c = &d->columns[column];
	bool some = hr__planes_join(c->planes, c->width, first, n, d->codes);

	return hr__decoders[column](d, first, first + n, some ? d->codes : NULL, &c->at);
}

static int decode_columns(struct hr_decoder *d, uint32_t needed)
{
	/* The order in which columns are decoded: a column follows those that it needs. */
	static const uint8_t order[] = {HR_COL_DUR,   HR_COL_START, HR_COL_OP,	HR_COL_FILE,
					HR_COL_ASKED, HR_COL_FLAGS, HR_COL_RET, HR_COL_OFFSET,
					HR_COL_FD,    HR_COL_FILE2, HR_COL_BITS};

	for (uint32_t first = 0, n; first < d->count; first += n) {
		n = d->count - first < HR__CHUNK_ROWS ? d->count - first : HR__CHUNK_ROWS;
		for (size_t i = 0; i < sizeof(order); i++) {
			int r = 0;

			if (needed & HR_COL_BIT(order[i]))
				r = decode_chunk(d, order[i], first, n);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

int hr_batch_decode(struct hr_decoder *d, const Headrace__EventBatch *msg, uint32_t want,
		    struct hr_columns *ret)
{
	uint32_t needed = with_dependencies(want);
	int r;

	if (msg->count == 0 || msg->count > HR_BATCH_EVENTS)
		return -EBADMSG;
	r = batch_decode_reserve(d, msg->count);
	if (r < 0)
		return r;
	d->count = msg->count;
	d->base_ns = msg->base_ns;
	d->files_known = 0;
	if (take_tasks(d, msg) < 0 || take_files(d, msg) < 0)
		return -EBADMSG;
	r = take_columns(d, msg, needed);
	hr__model_reset(&d->model);
	if (needed & (HR_COL_BIT(HR_COL_OFFSET) | HR_COL_BIT(HR_COL_FD)))
		memset(d->model.files, 0, d->n_files * sizeof(d->model.files[0]));
	if (r == 0)
		r = decode_columns(d, needed);
	if (r < 0)
		return r;
	assert(d->task_end[d->n_tasks - 1] == d->count && d->files_known <= d->n_files);
	*ret = (struct hr_columns){
	    .count = d->count,
	    .task = d->task,
	    .tasks = d->tasks,
	    .n_tasks = d->n_tasks,
	    .start_ns = want & HR_COL_BIT(HR_COL_START) ? d->start_ns : NULL,
	    .dur_ns = want & HR_COL_BIT(HR_COL_DUR) ? d->dur_ns : NULL,
	    .op = want & HR_COL_BIT(HR_COL_OP) ? d->op : NULL,
	    .file = want & HR_COL_BIT(HR_COL_FILE) ? d->file : NULL,
	    .offset = want & HR_COL_BIT(HR_COL_OFFSET) ? d->offset : NULL,
	    .asked = want & HR_COL_BIT(HR_COL_ASKED) ? d->asked : NULL,
	    .ret = want & HR_COL_BIT(HR_COL_RET) ? d->ret : NULL,
	    .fd = want & HR_COL_BIT(HR_COL_FD) ? d->fd : NULL,
	    .flags = want & HR_COL_BIT(HR_COL_FLAGS) ? d->flags : NULL,
	    .file2 = want & HR_COL_BIT(HR_COL_FILE2) ? d->file2 : NULL,
	    .bits = want & HR_COL_BIT(HR_COL_BITS) ? d->bits : NULL,
	};
	return 0;
}
