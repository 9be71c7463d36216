/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_decode.c - columns to rows, from bytes that nobody vouches for
 *
 * One loop per column, so that only what is wanted is computed. A loop joins the planes of a chunk
 * of rows into codes, and turns codes into values with the same model as the encoder. Arrays are
 * indexed only by ops below HR_OP_MAX, batch-local files below n_files and tasks below n_tasks, all
 * checked where they are decoded.
 */
#include "common/batch_planes.h"

#include <errno.h>
#include <stdlib.h>

struct column {
	unsigned width;
	struct hr__plane planes[HR__MAX_PLANES];
};

struct hr_decoder {
	ZSTD_DCtx *zstd;
	uint32_t room; /* rows that the arrays hold */
	uint32_t count;
	uint32_t n_files;
	uint32_t n_tasks;
	uint64_t base_ns;

	uint8_t
	    *planes; /* (HR_COL_END_ - 1) * HR__MAX_PLANES of `room` bytes, used from the start */
	uint32_t planes_used;
	uint32_t *files; /* stream ids by batch-local index */
	uint32_t *local; /* batch-local index of each row */
	uint32_t *task;
	uint64_t *start_ns;
	uint64_t *dur_ns;
	uint16_t *op;
	uint32_t *file;
	int64_t *offset;
	uint64_t *asked;
	int64_t *ret;
	int32_t *fd;
	uint32_t *flags;
	uint32_t *file2;
	uint16_t *bits;

	struct column columns[HR_COL_END_];
	uint64_t codes[HR__CHUNK_ROWS];
	struct hr_task tasks[HR_BATCH_TASKS];
	uint32_t task_end[HR_BATCH_TASKS]; /* row behind the task's last */
	struct hr__model model;
	struct hr__model_task cursor;
	uint32_t files_known; /* by the file column so far */
};

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
	free(d->files);
	free(d->local);
	free(d->task);
	free(d->start_ns);
	free(d->dur_ns);
	free(d->op);
	free(d->file);
	free(d->offset);
	free(d->asked);
	free(d->ret);
	free(d->fd);
	free(d->flags);
	free(d->file2);
	free(d->bits);
}

void hr_decoder_free(struct hr_decoder *d)
{
	if (!d)
		return;
	free_arrays(d);
	ZSTD_freeDCtx(d->zstd);
	free(d);
}

/* Untouched arrays cost address space only. */
static int reserve(struct hr_decoder *d, uint32_t rows)
{
	uint32_t n = 1024;

	if (rows <= d->room)
		return 0;
	while (n < rows)
		n *= 2;
	free_arrays(d);
	d->planes = malloc((size_t)(HR_COL_END_ - 1) * HR__MAX_PLANES * n);
	d->files = malloc(n * sizeof(*d->files));
	d->local = malloc(n * sizeof(*d->local));
	d->task = malloc(n * sizeof(*d->task));
	d->start_ns = malloc(n * sizeof(*d->start_ns));
	d->dur_ns = malloc(n * sizeof(*d->dur_ns));
	d->op = malloc(n * sizeof(*d->op));
	d->file = malloc(n * sizeof(*d->file));
	d->offset = malloc(n * sizeof(*d->offset));
	d->asked = malloc(n * sizeof(*d->asked));
	d->ret = malloc(n * sizeof(*d->ret));
	d->fd = malloc(n * sizeof(*d->fd));
	d->flags = malloc(n * sizeof(*d->flags));
	d->file2 = malloc(n * sizeof(*d->file2));
	d->bits = malloc(n * sizeof(*d->bits));
	d->room = d->planes && d->files && d->local && d->task && d->start_ns && d->dur_ns &&
			  d->op && d->file && d->offset && d->asked && d->ret && d->fd &&
			  d->flags && d->file2 && d->bits
		      ? n
		      : 0;
	return d->room ? 0 : -ENOMEM;
}

/* ---- header -------------------------------------------------------------------------------------
 */

static int take_tasks(struct hr_decoder *d, const Headrace__EventBatch *msg)
{
	size_t n = msg->n_task_rows;
	uint32_t row = 0;

	if (n == 0 || n > HR_BATCH_TASKS || msg->n_task_proc != n || msg->n_task_tid != n)
		return -EBADMSG;
	for (uint32_t t = 0; t < n; t++) {
		uint32_t rows = msg->task_rows[t];

		if (rows == 0 || rows > d->count - row)
			return -EBADMSG;
		d->tasks[t] = (struct hr_task){.proc = msg->task_proc[t], .tid = msg->task_tid[t]};
		for (uint32_t end = row + rows; row < end; row++)
			d->task[row] = t;
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

/* A column that another one's prediction needs is decoded too. Unknown columns are a later
 * version's: left. */
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
	struct column *c = &d->columns[msg->id];

	if (c->width > 0 || msg->width == 0 || msg->width > hr__column_width[msg->id] ||
	    msg->n_planes != msg->width)
		return -EBADMSG;
	for (unsigned p = 0; p < msg->width; p++) {
		uint8_t *room = d->planes + (size_t)d->planes_used * d->room;
		int r = hr__plane_unpack(d->zstd, &msg->planes[p], d->count, room, &c->planes[p]);

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
		d->columns[c].width = 0;
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

/* ---- columns ------------------------------------------------------------------------------------
 */

/*
 * Each function decodes rows [first, end), whose codes were joined; `cursor` carries the model on
 * from chunk to chunk.
 */
typedef int decode_fn(struct hr_decoder *d, uint32_t first, uint32_t end);

/* End of the run of rows that belong to the task of `row`; a task that begins here finds a fresh
 * model. */
static uint32_t run_end(struct hr_decoder *d, uint32_t row, uint32_t end)
{
	uint32_t task = d->task[row];

	if (row == 0 || d->task[row - 1] != task)
		hr__model_next_task(&d->cursor);
	return d->task_end[task] < end ? d->task_end[task] : end;
}

static int decode_start(struct hr_decoder *d, uint32_t first, uint32_t end)
{
	unsigned unused = 64 - 8 * d->columns[HR_COL_START].width;
	const uint64_t *code = d->codes;

	for (uint32_t i = first; i < end;) {
		uint32_t stop = run_end(d, i, end);
		uint64_t at = d->cursor.end_ns;

		for (; i < stop; i++) {
			uint64_t gap = unused == 64 ? 0 : *code << unused;

			at += (uint64_t)((int64_t)gap >> (unused & 63));
			d->start_ns[i] = d->base_ns + at;
			at += d->dur_ns[i];
			code++;
		}
		d->cursor.end_ns = at;
	}
	return 0;
}

static int decode_dur(struct hr_decoder *d, uint32_t first, uint32_t end)
{
	memcpy(d->dur_ns + first, d->codes, (end - first) * sizeof(d->dur_ns[0]));
	return 0;
}

static int decode_op(struct hr_decoder *d, uint32_t first, uint32_t end)
{
	const uint64_t *codes = d->codes;
	uint16_t *next = d->model.next_op;

	for (uint32_t i = first; i < end;) {
		uint32_t stop = run_end(d, i, end);
		uint16_t op = d->cursor.op;

		for (; i < stop; i++) {
			uint16_t code = (uint16_t)*codes++, expected = next[op];

			if (code != 0) { /* else the model stays as it is */
				expected = hr__swap_op(code, expected);
				if (expected >= HR_OP_MAX)
					return -EBADMSG;
				next[op] = expected;
			}
			op = expected;
			d->op[i] = op;
		}
		d->cursor.op = op;
	}
	return 0;
}

static int decode_file(struct hr_decoder *d, uint32_t first, uint32_t end)
{
	uint32_t known = d->files_known, index = d->cursor.file;
	const uint64_t *code = d->codes;

	for (uint32_t i = first; i < end; i++) {
		uint64_t back = *code++;

		if (back == 1)
			index = known++;
		else if (back > 1)
			index = (uint32_t)(known + 1 - back);
		/* Also true for the first row's "as before" and for a step back past the first
		 * file. */
		if (index >= known || known > d->n_files)
			return -EBADMSG;
		d->local[i] = index;
		d->file[i] = d->files[index];
	}
	d->files_known = known;
	d->cursor.file = index;
	return 0;
}

static int decode_asked(struct hr_decoder *d, uint32_t first, uint32_t end)
{
	const uint64_t *code = d->codes;

	for (uint32_t i = first; i < end;) {
		uint32_t stop = run_end(d, i, end);

		for (; i < stop; i++) {
			uint64_t *asked = hr__asked_entry(&d->model, d->cursor.op, d->op[i]);

			if (*code != 0)
				*asked += hr__unzigzag(*code);
			code++;
			d->cursor.op = d->op[i];
			d->asked[i] = *asked;
		}
	}
	return 0;
}

static int decode_flags(struct hr_decoder *d, uint32_t first, uint32_t end)
{
	const uint64_t *code = d->codes;

	for (uint32_t i = first; i < end; i++) {
		struct hr__model_op *op = &d->model.ops[d->op[i]];

		if (*code != 0)
			op->flags += hr__unzigzag32((uint32_t)*code);
		code++;
		d->flags[i] = op->flags;
	}
	return 0;
}

static int decode_ret(struct hr_decoder *d, uint32_t first, uint32_t end)
{
	const uint64_t *code = d->codes;

	for (uint32_t i = first; i < end;) {
		uint32_t stop = run_end(d, i, end);

		for (; i < stop; i++) {
			struct hr__model_op *op = &d->model.ops[d->op[i]];
			uint64_t asked = d->asked[i];
			uint32_t flags = d->flags[i];
			int64_t expected = hr__expect_ret(op, &d->cursor, asked, flags);

			d->ret[i] = hr__uncode(*code++, expected, HR_RET_NONE, false);
			hr__saw_ret(op, &d->cursor, asked, flags, d->ret[i]);
		}
	}
	return 0;
}

static int decode_offset(struct hr_decoder *d, uint32_t first, uint32_t end)
{
	const uint64_t *code = d->codes;

	for (uint32_t i = first; i < end; i++) {
		struct hr__model_op *op = &d->model.ops[d->op[i]];
		struct hr__model_file *file = &d->model.files[d->local[i]];
		uint32_t task = d->task[i] + 1;
		int64_t expected = hr__expect_offset(file, task, d->asked[i], d->ret[i]);

		d->offset[i] = hr__uncode(*code++, expected, HR_OFFSET_NONE, op->no_offset);
		hr__saw_offset(op, file, task, d->asked[i], d->ret[i], d->flags[i], d->offset[i]);
	}
	return 0;
}

static int decode_fd(struct hr_decoder *d, uint32_t first, uint32_t end)
{
	const uint64_t *code = d->codes;

	for (uint32_t i = first; i < end;) {
		uint32_t stop = run_end(d, i, end), task = d->task[i] + 1;

		for (; i < stop; i++) {
			struct hr__model_op *op = &d->model.ops[d->op[i]];
			struct hr__model_file *file = &d->model.files[d->local[i]];
			int32_t expected = hr__expect_fd(file, &d->cursor, task);
			int64_t fd = hr__uncode(*code++, expected, -1, op->no_fd);

			if (fd < INT32_MIN || fd > INT32_MAX)
				return -EBADMSG;
			d->fd[i] = (int32_t)fd;
			hr__saw_fd(op, file, &d->cursor, task, (int32_t)fd);
		}
	}
	return 0;
}

static int decode_file2(struct hr_decoder *d, uint32_t first, uint32_t end)
{
	const uint64_t *code = d->codes;

	for (uint32_t i = first; i < end; i++) {
		struct hr__model_op *op = &d->model.ops[d->op[i]];
		int64_t file2 = hr__uncode(*code++, (int64_t)d->file[i] + 1, 0, !op->some_file2);

		if (file2 < 0 || file2 > UINT32_MAX)
			return -EBADMSG;
		d->file2[i] = (uint32_t)file2;
		op->some_file2 = file2 != 0;
	}
	return 0;
}

static int decode_bits(struct hr_decoder *d, uint32_t first, uint32_t end)
{
	for (uint32_t i = 0; i < end - first; i++)
		d->bits[first + i] = (uint16_t)d->codes[i];
	return 0;
}

static int decode_column(struct hr_decoder *d, unsigned column)
{
	static decode_fn *const decoders[HR_COL_END_] = {
	    [HR_COL_START] = decode_start,   [HR_COL_DUR] = decode_dur,
	    [HR_COL_OP] = decode_op,	     [HR_COL_FILE] = decode_file,
	    [HR_COL_OFFSET] = decode_offset, [HR_COL_ASKED] = decode_asked,
	    [HR_COL_RET] = decode_ret,	     [HR_COL_FD] = decode_fd,
	    [HR_COL_FLAGS] = decode_flags,   [HR_COL_FILE2] = decode_file2,
	    [HR_COL_BITS] = decode_bits,
	};
	const struct column *c = &d->columns[column];
	bool constant = true;

	for (unsigned p = 0; p < c->width; p++)
		constant &= !c->planes[p].data;
	d->cursor = (struct hr__model_task){0};
	for (uint32_t first = 0; first < d->count;) {
		uint32_t n = d->count - first;
		int r;

		if (n > HR__CHUNK_ROWS)
			n = HR__CHUNK_ROWS;
		if (first == 0 || !constant)
			hr__planes_join(c->planes, c->width, first, n, d->codes);
		r = decoders[column](d, first, first + n);
		if (r < 0)
			return r;
		first += n;
	}
	return 0;
}

int hr_batch_decode(struct hr_decoder *d, const Headrace__EventBatch *msg, uint32_t want,
		    struct hr_columns *ret)
{
	/* A column comes after those that it depends on. */
	static const uint8_t order[] = {HR_COL_DUR,   HR_COL_START, HR_COL_OP,	HR_COL_FILE,
					HR_COL_ASKED, HR_COL_FLAGS, HR_COL_RET, HR_COL_OFFSET,
					HR_COL_FD,    HR_COL_FILE2, HR_COL_BITS};
	uint32_t needed = with_dependencies(want);
	int r;

	if (msg->count == 0 || msg->count > HR_BATCH_EVENTS)
		return -EBADMSG;
	r = reserve(d, msg->count);
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
	for (size_t i = 0; i < sizeof(order) && r == 0; i++)
		if (needed & HR_COL_BIT(order[i]))
			r = decode_column(d, order[i]);
	if (r < 0)
		return r;
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
