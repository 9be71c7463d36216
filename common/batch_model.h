/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_model.h - predictions of the next row of a batch, for encoder and decoder
 *
 * A code is the difference between a value and its prediction from earlier rows. Encoder and
 * decoder process the same rows in the same order, and so have the same model. The code of a
 * correctly predicted value is 0, so most byte planes are constant.
 *
 * Owner     One encoder or decoder, and one thread. The model is reset for each batch.
 *
 * The model is part of the store format, so a changed prediction needs a new store version.
 * Predictions never use the table of operations, because later versions extend that table.
 */
#ifndef HEADRACE_COMMON_BATCH_MODEL_H
#define HEADRACE_COMMON_BATCH_MODEL_H

#include <stdbool.h>
#include <string.h>

#include "common/batch.h"

#define HR__CHUNK_ROWS 2048u /* the codes of so many rows fit into the CPU's first two caches */
#define HR__MAX_PLANES 8u

/* How a plane is stored. The first byte of Column.planes[i] has this value. */
enum hr__plane_how { HR__PLANE_CONSTANT = 0, HR__PLANE_RAW = 1, HR__PLANE_ZSTD = 2 };

/* The largest number of planes of each column, by enum hr_column. */
static const uint8_t hr__column_width[HR_COL_END_] = {
    [HR_COL_START] = 8,	 [HR_COL_DUR] = 8,   [HR_COL_OP] = 2,	[HR_COL_FILE] = 4,
    [HR_COL_OFFSET] = 8, [HR_COL_ASKED] = 8, [HR_COL_RET] = 8,	[HR_COL_FD] = 5,
    [HR_COL_FLAGS] = 4,	 [HR_COL_FILE2] = 5, [HR_COL_BITS] = 2,
};

struct hr__model_op {
	int64_t ret;
	uint32_t flags;
	bool no_offset; /* the last row of this op had no offset */
	bool no_fd;
	bool some_file2;
	bool items;	   /* the last `ret` counted items of `flags` bytes each */
	uint8_t spare[16]; /* makes the size a power of two, for fast access by index */
};
_Static_assert(sizeof(struct hr__model_op) == 32, "shift instead of multiplication");

/* Columns are decoded separately, so each field has its own task. A task is index + 1; 0: none. */
struct hr__model_file {
	int64_t position; /* never negative */
	int32_t fd;
	uint16_t position_task;
	uint16_t fd_task;
};
_Static_assert(HR_BATCH_TASKS < UINT16_MAX, "a task number fits 16 bits");

#define HR__ASKED_ENTRIES 1024u

struct hr__model {
	struct hr__model_op ops[HR_OP_MAX];
	uint16_t next_op[HR_OP_MAX];		      /* the op that last followed this op */
	uint64_t asked[HR__ASKED_ENTRIES];	      /* index: hr__asked_entry() */
	struct hr__model_file files[HR_BATCH_EVENTS]; /* index: number of the file in the batch */
};

/* The part of the model that belongs to one task. It is zero at the first row of a task. */
struct hr__model_task {
	uint64_t end_ns;
	uint32_t file; /* batch-local index of the previous row's file, even of another task */
	uint16_t op;
	int32_t fd;
	bool was_short; /* the last transfer was short: expects the next read at the end */
};

/* Keeps `files`, because an entry is cleared when a file gets its index. */
static inline void hr__model_reset(struct hr__model *m)
{
	memset(m->ops, 0, sizeof(m->ops));
	memset(m->next_op, 0, sizeof(m->next_op));
	memset(m->asked, 0, sizeof(m->asked));
}

static inline void hr__model_next_task(struct hr__model_task *t)
{
	*t = (struct hr__model_task){.file = t->file};
}

static inline uint64_t hr__zigzag(uint64_t v)
{
	return v << 1 ^ -(v >> 63);
}

static inline uint64_t hr__unzigzag(uint64_t v)
{
	return v >> 1 ^ -(v & 1);
}

static inline uint32_t hr__zigzag32(uint32_t v)
{
	return v << 1 ^ -(v >> 31);
}

static inline uint32_t hr__unzigzag32(uint32_t v)
{
	return v >> 1 ^ -(v & 1);
}

/*
 * Returns the code of a value that is near `expected`, or of the value `none`, which is far from
 * it. To get a small code, `none` takes the code of a rare value near `expected`. If `expect_none`
 * is set, it takes the code of `expected`. The value that had this code gets an unused code. Unless
 * `expected` is `none`, each value has exactly one code.
 */
#define HR__NONE_SLOT INT64_C(0x4001)

static inline uint64_t hr__code(int64_t value, int64_t expected, int64_t none, bool expect_none)
{
	uint64_t e = (uint64_t)expected, slot = (uint64_t)value;

	if (value == none)
		slot = expect_none ? e : e - HR__NONE_SLOT;
	else if (expect_none && slot == e)
		slot = e - HR__NONE_SLOT;
	else if (slot == e - HR__NONE_SLOT)
		slot = (uint64_t)none;
	return hr__zigzag(slot - e);
}

static inline int64_t hr__uncode(uint64_t code, int64_t expected, int64_t none, bool expect_none)
{
	uint64_t e = (uint64_t)expected, slot;

	if (code == 0)
		return expect_none ? none : expected;
	slot = hr__unzigzag(code) + e;
	if (slot == e - HR__NONE_SLOT)
		return expect_none ? expected : none;
	if (slot == (uint64_t)none)
		return (int64_t)(e - HR__NONE_SLOT);
	return (int64_t)slot;
}

/* Exchanges the codes of op 0 and of the expected op, which last followed the previous op. */
static inline uint16_t hr__swap_op(uint16_t op, uint16_t expected)
{
	return op == expected ? 0 : op == 0 ? expected : op;
}

/* Returns the entry with the size that this op last requested after the same previous op. */
static inline uint64_t *hr__asked_entry(struct hr__model *m, uint16_t previous_op, uint16_t op)
{
	return &m->asked[(previous_op * 31u + op) % HR__ASKED_ENTRIES];
}

/* Returns the result of a call that moves all requested bytes or items. */
static inline int64_t hr__full_ret(const struct hr__model_op *op, uint64_t asked, uint32_t flags)
{
	if (asked > INT64_MAX)
		return 0;
	return op->items && flags > 1 ? (int64_t)(asked / flags) : (int64_t)asked;
}

static inline int64_t hr__expect_ret(const struct hr__model_op *op, const struct hr__model_task *t,
				     uint64_t asked, uint32_t flags)
{
	if (asked == HR_ASKED_NONE)
		return op->ret;
	return t->was_short ? 0 : hr__full_ret(op, asked, flags);
}

static inline void hr__saw_ret(struct hr__model_op *op, struct hr__model_task *t, uint64_t asked,
			       uint32_t flags, int64_t ret)
{
	if (asked == HR_ASKED_NONE) {
		if (ret != HR_RET_NONE)
			op->ret = ret;
		return;
	}
	if (ret > 0)
		op->items = flags > 1 && (uint64_t)ret <= asked / flags;
	t->was_short = ret > 0 && ret < hr__full_ret(op, asked, flags);
}

/* Returns the expected fd: the last fd of this file in this task or, without one, of this task. */
static inline int32_t hr__expect_fd(const struct hr__model_file *f, const struct hr__model_task *t,
				    uint32_t task)
{
	return f->fd_task == task ? f->fd : t->fd;
}

static inline void hr__saw_fd(struct hr__model_op *op, struct hr__model_file *f,
			      struct hr__model_task *t, uint32_t task, int32_t fd)
{
	op->no_fd = fd == -1;
	if (fd == -1)
		return;
	f->fd_task = (uint16_t)task;
	f->fd = fd;
	t->fd = fd;
}

/* Returns the expected offset: the file's position in this task. For a call without size: `ret`. */
static inline int64_t hr__expect_offset(const struct hr__model_file *f, uint32_t task,
					uint64_t asked, int64_t ret)
{
	if (asked == HR_ASKED_NONE)
		return ret > 0 ? ret : 0;
	return f->position_task == task ? f->position : 0;
}

static inline void hr__saw_offset(struct hr__model_op *op, struct hr__model_file *f, uint32_t task,
				  uint64_t asked, int64_t ret, uint32_t flags, int64_t offset)
{
	uint64_t bytes = (uint64_t)ret;

	op->no_offset = offset == HR_OFFSET_NONE;
	if (op->no_offset || ret < 0)
		return;
	if (asked == HR_ASKED_NONE) {
		f->position = ret;
	} else if (ret == 0) {
		f->position = 0; /* at the end of the file, expects the next read at its start */
	} else {
		if (flags > 1 && bytes <= asked / flags)
			bytes *= flags;
		f->position = (int64_t)(((uint64_t)offset + bytes) & INT64_MAX);
	}
	f->position_task = (uint16_t)task;
}

#endif
