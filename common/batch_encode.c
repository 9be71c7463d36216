/* SPDX-License-Identifier: Apache-2.0 */
#include "common/batch_planes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define OPS_BYTES     (HR_OP_MAX / 8)
#define PREFETCH_ROWS 8u /* consecutive rows of a task can be far apart in the caller's array */

struct file_slot {
	uint32_t id;
	uint32_t index; /* UINT32_MAX: the slot is free */
};

/* Members that are pointers have arrays that grow with the largest batch. */
struct hr_encoder {
	ZSTD_CCtx *zstd;
	size_t room; /* the arrays have room for so many rows */
	uint32_t *order;
	struct file_slot *slots; /* hash table; its size is a power of two >= 2 * room */
	uint32_t *files;
	uint8_t *planes; /* HR_COL_END_ - 1 columns of HR__MAX_PLANES */
	uint8_t *arena;
	uint32_t slot_mask; /* size of the used part of `slots` - 1 */
	uint32_t n_files;

	struct hr_op_info ops[HR_OP_MAX]; /* a copy, because hr_op_info() is a slow call */
	struct hr__splitter columns[HR_COL_END_];
	uint64_t codes[HR_COL_END_][HR__CHUNK_ROWS];
	struct hr__model model;

	uint32_t task_first[HR_BATCH_TASKS + 1];
	uint64_t task_proc[HR_BATCH_TASKS];
	uint32_t task_tid[HR_BATCH_TASKS];
	uint32_t task_rows[HR_BATCH_TASKS];
	uint8_t ops_seen[OPS_BYTES];
	Headrace__Column column_msg[HR_COL_END_];
	Headrace__Column *column_list[HR_COL_END_];
	ProtobufCBinaryData plane_list[HR_COL_END_][HR__MAX_PLANES];
};

int hr_encoder_new(struct hr_encoder **ret)
{
	struct hr_encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->zstd = ZSTD_createCCtx();
	if (!e->zstd) {
		free(e);
		return -ENOMEM;
	}
	ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_compressionLevel, 1);
	ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_contentSizeFlag, 0); /* EventBatch.count has it */
	for (unsigned op = 0; op < HR_OP_MAX; op++)
		e->ops[op] = *hr_op_info((uint16_t)op);
	*ret = e;
	return 0;
}

static void free_arrays(struct hr_encoder *e)
{
	free(e->order);
	free(e->slots);
	free(e->files);
	free(e->planes);
	free(e->arena);
}

void hr_encoder_free(struct hr_encoder *e)
{
	if (!e)
		return;
	free_arrays(e);
	ZSTD_freeCCtx(e->zstd);
	free(e);
}

/* The sizes of planes and arena are those of the worst case. Unused pages take no memory. */
static int batch_encode_reserve(struct hr_encoder *e, size_t n)
{
	size_t room = 1024, all_planes = (size_t)(HR_COL_END_ - 1) * HR__MAX_PLANES;

	if (n <= e->room)
		return 0;
	while (room < n)
		room *= 2;
	free_arrays(e);
	e->order = malloc(room * sizeof(*e->order));
	e->slots = malloc(2 * room * sizeof(*e->slots));
	e->files = malloc(room * sizeof(*e->files));
	e->planes = malloc(all_planes * (room + 1));
	e->arena = malloc(all_planes * (room + 1));
	e->room = e->order && e->slots && e->files && e->planes && e->arena ? room : 0;
	return e->room ? 0 : -ENOMEM;
}

/* Checks the events. Stores the number of rows of each task in task_first[task + 1]. */
static int survey(struct hr_encoder *e, const struct hr_event *events, size_t n, size_t n_tasks,
		  Headrace__EventBatch *msg)
{
	uint64_t first = UINT64_MAX, last = 0, moved = 0;
	uint32_t classes = 0;

	memset(e->task_first, 0, (n_tasks + 1) * sizeof(e->task_first[0]));
	memset(e->ops_seen, 0, sizeof(e->ops_seen));
	for (size_t i = 0; i < n; i++) {
		const struct hr_event *ev = &events[i];
		const struct hr_op_info *op;
		uint64_t end, bytes;

		if (ev->task >= n_tasks || ev->op >= HR_OP_MAX)
			return -EINVAL;
		op = &e->ops[ev->op];
		bytes = hr_bytes_moved(op->bytes_rule, ev->ret, ev->asked, ev->flags);
		moved += bytes == UINT64_MAX ? 0 : bytes;
		end = ev->start_ns + ev->dur_ns;
		if (end < ev->start_ns)
			end = UINT64_MAX;
		first = ev->start_ns < first ? ev->start_ns : first;
		last = end > last ? end : last;
		classes |= 1u << op->class;
		e->ops_seen[ev->op / 8] |= (uint8_t)(1u << ev->op % 8);
		e->task_first[ev->task + 1]++;
	}
	msg->count = (uint32_t)n;
	msg->base_ns = first;
	msg->last_ns = last;
	msg->classes = classes;
	msg->bytes_moved = moved;
	msg->ops.data = e->ops_seen;
	msg->ops.len = OPS_BYTES;
	while (msg->ops.len > 0 && e->ops_seen[msg->ops.len - 1] == 0)
		msg->ops.len--;
	return 0;
}

/* Lists the tasks that have rows. Sorts the rows by task, and keeps their order within a task. */
static void sort_rows(struct hr_encoder *e, const struct hr_event *events, size_t n,
		      const struct hr_task *tasks, size_t n_tasks, Headrace__EventBatch *msg)
{
	size_t used = 0;

	for (size_t t = 0; t < n_tasks; t++) {
		uint32_t rows = e->task_first[t + 1];

		if (rows) {
			e->task_proc[used] = tasks[t].proc;
			e->task_tid[used] = tasks[t].tid;
			e->task_rows[used++] = rows;
		}
		e->task_first[t + 1] += e->task_first[t];
	}
	for (size_t i = 0; i < n; i++)
		e->order[e->task_first[events[i].task]++] = (uint32_t)i;
	assert(e->task_first[n_tasks - 1] == n); /* each row has its place in `order` */
	msg->task_proc = e->task_proc;
	msg->task_tid = e->task_tid;
	msg->task_rows = e->task_rows;
	msg->n_task_proc = msg->n_task_tid = msg->n_task_rows = used;
}

static void files_start(struct hr_encoder *e, size_t n)
{
	uint32_t slots = 64;

	while (slots < 2 * n)
		slots *= 2;
	memset(e->slots, 0xff, slots * sizeof(e->slots[0]));
	e->slot_mask = slots - 1;
	e->n_files = 0;
}

/* Returns the index of a file in the batch. A new file gets the next index. */
static uint32_t file_index(struct hr_encoder *e, uint32_t id)
{
	uint32_t at = (id * UINT32_C(2654435769)) >> 7 & e->slot_mask;

	for (;; at = (at + 1) & e->slot_mask) {
		struct file_slot *s = &e->slots[at];

		if (s->index == UINT32_MAX) {
			assert(e->n_files < e->room);
			*s = (struct file_slot){.id = id, .index = e->n_files};
			e->files[e->n_files] = id;
			e->model.files[e->n_files] = (struct hr__model_file){0};
			return e->n_files++;
		}
		if (s->id == id)
			return s->index;
	}
}

/* The code of a file. 0: the previous row's. 1: a new one. Else: how far back its first use is. */
static uint64_t file_code(struct hr_encoder *e, struct hr__model_task *t, uint32_t id)
{
	uint32_t known = e->n_files, index;

	if (known > 0 && e->files[t->file] == id)
		return 0;
	index = file_index(e, id);
	t->file = index;
	return index == known ? 1 : known - index + 1;
}

static void encode_row(struct hr_encoder *e, const struct hr_event *ev, uint32_t task,
		       struct hr__model_task *t, uint64_t base_ns, uint32_t row)
{
	struct hr__model_op *op = &e->model.ops[ev->op];
	uint16_t *next_op = &e->model.next_op[t->op];
	uint64_t(*codes)[HR__CHUNK_ROWS] = e->codes;
	uint64_t start_ns = ev->start_ns - base_ns;
	uint64_t *asked = hr__asked_entry(&e->model, t->op, ev->op);
	struct hr__model_file *file;

	codes[HR_COL_START][row] = start_ns - t->end_ns;
	codes[HR_COL_DUR][row] = ev->dur_ns;
	t->end_ns = start_ns + ev->dur_ns;

	codes[HR_COL_OP][row] = hr__swap_op(ev->op, *next_op);
	*next_op = ev->op;
	t->op = ev->op;

	codes[HR_COL_FILE][row] = file_code(e, t, ev->file);
	file = &e->model.files[t->file];
	codes[HR_COL_ASKED][row] = hr__zigzag(ev->asked - *asked);
	*asked = ev->asked;
	codes[HR_COL_FLAGS][row] = hr__zigzag32(ev->flags - op->flags);
	op->flags = ev->flags;

	codes[HR_COL_RET][row] =
	    hr__code(ev->ret, hr__expect_ret(op, t, ev->asked, ev->flags), HR_RET_NONE, false);
	hr__saw_ret(op, t, ev->asked, ev->flags, ev->ret);

	codes[HR_COL_OFFSET][row] =
	    hr__code(ev->offset, hr__expect_offset(file, task, ev->asked, ev->ret), HR_OFFSET_NONE,
		     op->no_offset);
	hr__saw_offset(op, file, task, ev->asked, ev->ret, ev->flags, ev->offset);

	codes[HR_COL_FD][row] = hr__code(ev->fd, hr__expect_fd(file, t, task), -1, op->no_fd);
	hr__saw_fd(op, file, t, task, ev->fd);

	codes[HR_COL_FILE2][row] = hr__code(ev->file2, (int64_t)ev->file + 1, 0, !op->some_file2);
	op->some_file2 = ev->file2 != 0;
	codes[HR_COL_BITS][row] = ev->bits;
}

static void split_chunk(struct hr_encoder *e, uint32_t rows)
{
	for (unsigned c = 1; c < HR_COL_END_; c++)
		hr__splitter_add(&e->columns[c], e->codes[c], rows);
}

static void encode_rows(struct hr_encoder *e, const struct hr_event *events,
			const Headrace__EventBatch *msg)
{
	struct hr__model_task t = {0};
	uint32_t done = 0, in_chunk = 0;

	for (uint32_t task = 0; task < msg->n_task_rows; task++) {
		uint32_t end = done + msg->task_rows[task];

		hr__model_next_task(&t);
		for (; done < end; done++) {
			if (done + PREFETCH_ROWS < msg->count)
				__builtin_prefetch(&events[e->order[done + PREFETCH_ROWS]]);
			encode_row(e, &events[e->order[done]], task + 1, &t, msg->base_ns,
				   in_chunk++);
			if (in_chunk == HR__CHUNK_ROWS) {
				split_chunk(e, in_chunk);
				in_chunk = 0;
			}
		}
	}
	assert(done == msg->count);
	split_chunk(e, in_chunk);
}

/* Returns the width in bytes. The codes of gaps between rows are signed. */
static unsigned column_width(const struct hr__splitter *s, unsigned column)
{
	uint64_t seen = column == HR_COL_START ? s->seen_signed << 1 : s->seen;
	unsigned width = 0;

	for (; seen; seen >>= 8)
		width++;
	return width;
}

/* Packs the columns, except those whose codes are all zero. */
static void pack_columns(struct hr_encoder *e, Headrace__EventBatch *msg)
{
	uint8_t *arena = e->arena;

	msg->columns = e->column_list;
	for (unsigned c = 1; c < HR_COL_END_; c++) {
		Headrace__Column *column = &e->column_msg[c];

		headrace__column__init(column);
		column->id = c;
		column->width = column_width(&e->columns[c], c);
		assert(column->width <= hr__column_width[c]); /* wider ones are not decoded */
		column->n_planes = column->width;
		column->planes = e->plane_list[c];
		arena += hr__splitter_pack(&e->columns[c], e->zstd, column->width, arena,
					   column->planes);
		if (column->width > 0)
			e->column_list[msg->n_columns++] = column;
	}
	assert((size_t)(arena - e->arena) <=
	       (size_t)(HR_COL_END_ - 1) * HR__MAX_PLANES * (e->room + 1));
}

static void list_files(struct hr_encoder *e, Headrace__EventBatch *msg)
{
	uint32_t previous = 0;

	for (uint32_t i = 0; i < e->n_files; i++) {
		uint32_t id = e->files[i];

		e->files[i] = hr__zigzag32(id - previous);
		previous = id;
	}
	msg->files = e->files;
	msg->n_files = e->n_files;
}

int hr_batch_encode(struct hr_encoder *e, const struct hr_event *events, size_t n,
		    const struct hr_task *tasks, size_t n_tasks, Headrace__EventBatch *msg)
{
	int r;

	headrace__event_batch__init(msg);
	if (n == 0 || n > HR_BATCH_EVENTS || n_tasks > HR_BATCH_TASKS)
		return -EINVAL;
	r = batch_encode_reserve(e, n);
	if (r < 0)
		return r;
	r = survey(e, events, n, n_tasks, msg);
	if (r < 0)
		return r;
	sort_rows(e, events, n, tasks, n_tasks, msg);
	files_start(e, n);
	hr__model_reset(&e->model);
	for (unsigned c = 1; c < HR_COL_END_; c++)
		hr__splitter_start(&e->columns[c],
				   e->planes + (size_t)(c - 1) * HR__MAX_PLANES * (n + 1), n);
	encode_rows(e, events, msg);
	pack_columns(e, msg);
	list_files(e, msg);
	return 0;
}
