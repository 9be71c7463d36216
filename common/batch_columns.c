/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_columns.c - decodes the codes of a chunk of rows, with one loop per column
 *
 * In most chunks, the predictions of a column are all correct, and the chunk has no codes for it.
 * Each loop is compiled twice: with codes and without.
 */
#include "common/batch_decoder.h"

#include <errno.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

#define WITH_AND_WITHOUT_CODES(column)                                                             \
	static int decode_##column(struct hr_decoder *d, uint32_t first, uint32_t end,             \
				   const uint64_t *codes, struct hr__model_task *at)               \
	{                                                                                          \
		return codes != NULL ? column##_rows(d, first, end, codes, at)                     \
				     : column##_rows(d, first, end, NULL, at);                     \
	}

ALWAYS_INLINE uint64_t code_at(const uint64_t *codes, uint32_t k)
{
	return codes != NULL ? codes[k] : 0;
}

/* Returns the end of the run of rows of one task. If a task begins here, resets its model. */
static uint32_t run_end(const struct hr_decoder *d, uint32_t row, uint32_t end,
			struct hr__model_task *at)
{
	uint32_t task = d->task[row];

	if (row == 0 || d->task[row - 1] != task)
		hr__model_next_task(at);
	return d->task_end[task] < end ? d->task_end[task] : end;
}

ALWAYS_INLINE int start_rows(struct hr_decoder *d, uint32_t first, uint32_t end,
			     const uint64_t *codes, struct hr__model_task *at)
{
	unsigned unused = (64 - 8 * d->columns[HR_COL_START].width) & 63; /* width 0: no codes */
	const uint64_t *dur = d->dur_ns;
	uint64_t *start = d->start_ns;

	for (uint32_t i = first; i < end;) {
		uint32_t stop = run_end(d, i, end, at);
		uint64_t now = d->base_ns + at->end_ns;

		for (; i < stop; i++) {
			now += (uint64_t)((int64_t)(code_at(codes, i - first) << unused) >> unused);
			start[i] = now;
			now += dur[i];
		}
		at->end_ns = now - d->base_ns;
	}
	return 0;
}
WITH_AND_WITHOUT_CODES(start)

static int decode_dur(struct hr_decoder *d, uint32_t first, uint32_t end, const uint64_t *codes,
		      struct hr__model_task *at)
{
	size_t bytes = (end - first) * sizeof(d->dur_ns[0]);

	(void)at;
	if (codes != NULL)
		memcpy(d->dur_ns + first, codes, bytes);
	else
		memset(d->dur_ns + first, 0, bytes);
	return 0;
}

ALWAYS_INLINE int op_rows(struct hr_decoder *d, uint32_t first, uint32_t end, const uint64_t *codes,
			  struct hr__model_task *at)
{
	uint16_t *next = d->model.next_op, *to = d->op;

	for (uint32_t i = first; i < end;) {
		uint32_t stop = run_end(d, i, end, at);
		uint16_t op = at->op;

		for (; i < stop; i++) {
			uint16_t code = (uint16_t)code_at(codes, i - first), expected = next[op];

			if (code != 0) {
				expected = hr__swap_op(code, expected);
				if (expected >= HR_OP_MAX)
					return -EBADMSG;
				next[op] = expected;
			}
			op = expected;
			to[i] = op;
		}
		at->op = op;
	}
	return 0;
}
WITH_AND_WITHOUT_CODES(op)

/*
 * Decodes the files of rows. Code 0: the previous row's file. Code 1: the next new file. Other
 * codes: the distance to the first use of the file.
 */
ALWAYS_INLINE int file_rows(struct hr_decoder *d, uint32_t first, uint32_t end,
			    const uint64_t *codes, struct hr__model_task *at)
{
	uint32_t known = d->files_known, n_files = d->n_files, index = at->file;
	uint32_t *local = d->local, *to = d->file;
	const uint32_t *files = d->files;

	for (uint32_t i = first; i < end; i++) {
		uint32_t back = (uint32_t)code_at(codes, i - first);

		if (back == 1)
			index = known++;
		else if (back > 1)
			index = known + 1 - back;
		/* also if the first row refers to a previous file, or `back` is too large */
		if (index >= known || known > n_files)
			return -EBADMSG;
		local[i] = index;
		to[i] = files[index];
	}
	d->files_known = known;
	at->file = index;
	return 0;
}
WITH_AND_WITHOUT_CODES(file)

ALWAYS_INLINE int asked_rows(struct hr_decoder *d, uint32_t first, uint32_t end,
			     const uint64_t *codes, struct hr__model_task *at)
{
	struct hr__model *model = &d->model;
	const uint16_t *ops = d->op;
	uint64_t *to = d->asked;

	for (uint32_t i = first; i < end;) {
		uint32_t stop = run_end(d, i, end, at);
		uint16_t previous = at->op;

		for (; i < stop; i++) {
			uint64_t *asked = hr__asked_entry(model, previous, ops[i]);
			uint64_t code = code_at(codes, i - first);

			if (code != 0)
				*asked += hr__unzigzag(code);
			to[i] = *asked;
			previous = ops[i];
		}
		at->op = previous;
	}
	return 0;
}
WITH_AND_WITHOUT_CODES(asked)

ALWAYS_INLINE int flags_rows(struct hr_decoder *d, uint32_t first, uint32_t end,
			     const uint64_t *codes, struct hr__model_task *at)
{
	struct hr__model_op *ops = d->model.ops;
	const uint16_t *op = d->op;
	uint32_t *to = d->flags;

	(void)at;
	for (uint32_t i = first; i < end; i++) {
		uint32_t *flags = &ops[op[i]].flags, code = (uint32_t)code_at(codes, i - first);

		if (code != 0)
			*flags += hr__unzigzag32(code);
		to[i] = *flags;
	}
	return 0;
}
WITH_AND_WITHOUT_CODES(flags)

ALWAYS_INLINE int ret_rows(struct hr_decoder *d, uint32_t first, uint32_t end,
			   const uint64_t *codes, struct hr__model_task *at)
{
	struct hr__model_op *ops = d->model.ops;
	const uint16_t *op_of = d->op;
	const uint64_t *asked = d->asked;
	const uint32_t *flags = d->flags;
	int64_t *to = d->ret;

	for (uint32_t i = first; i < end;) {
		uint32_t stop = run_end(d, i, end, at);
		struct hr__model_task now = *at;

		for (; i < stop; i++) {
			struct hr__model_op *op = &ops[op_of[i]];
			int64_t expected = hr__expect_ret(op, &now, asked[i], flags[i]);
			int64_t ret =
			    hr__uncode(code_at(codes, i - first), expected, HR_RET_NONE, false);

			to[i] = ret;
			hr__saw_ret(op, &now, asked[i], flags[i], ret);
		}
		*at = now;
	}
	return 0;
}
WITH_AND_WITHOUT_CODES(ret)

/*
 * Rows of one file are often adjacent. The file's model stays in `now`, and is stored when a row of
 * another file follows, so that a row does not wait for the store of the previous row.
 */
ALWAYS_INLINE struct hr__model_file *
turn_to(struct hr__model_file *file, struct hr__model_file *current, struct hr__model_file *now)
{
	if (file != current) {
		*current = *now;
		*now = *file;
	}
	return file;
}

ALWAYS_INLINE int offset_rows(struct hr_decoder *d, uint32_t first, uint32_t end,
			      const uint64_t *codes, struct hr__model_task *at)
{
	struct hr__model_op *ops = d->model.ops;
	struct hr__model_file *files = d->model.files, *file = &files[d->local[first]], now = *file;
	const uint32_t *local = d->local, *task = d->task, *flags = d->flags;
	const uint16_t *op_of = d->op;
	const uint64_t *asked = d->asked;
	const int64_t *ret = d->ret;
	int64_t *to = d->offset;

	(void)at;
	for (uint32_t i = first; i < end; i++) {
		struct hr__model_op *op = &ops[op_of[i]];
		int64_t expected, offset;

		file = turn_to(&files[local[i]], file, &now);
		expected = hr__expect_offset(&now, task[i] + 1, asked[i], ret[i]);
		offset =
		    hr__uncode(code_at(codes, i - first), expected, HR_OFFSET_NONE, op->no_offset);
		to[i] = offset;
		hr__saw_offset(op, &now, task[i] + 1, asked[i], ret[i], flags[i], offset);
	}
	*file = now;
	return 0;
}
WITH_AND_WITHOUT_CODES(offset)

ALWAYS_INLINE int fd_rows(struct hr_decoder *d, uint32_t first, uint32_t end, const uint64_t *codes,
			  struct hr__model_task *at)
{
	struct hr__model_op *ops = d->model.ops;
	struct hr__model_file *files = d->model.files, *file = &files[d->local[first]], now = *file;
	const uint32_t *local = d->local;
	const uint16_t *op_of = d->op;
	int32_t *to = d->fd;

	for (uint32_t i = first; i < end;) {
		uint32_t stop = run_end(d, i, end, at), task = d->task[i] + 1;
		struct hr__model_task last = *at;

		for (; i < stop; i++) {
			struct hr__model_op *op = &ops[op_of[i]];
			int64_t fd;

			file = turn_to(&files[local[i]], file, &now);
			fd = hr__uncode(code_at(codes, i - first), hr__expect_fd(&now, &last, task),
					-1, op->no_fd);
			if (fd != (int32_t)fd)
				return -EBADMSG;
			to[i] = (int32_t)fd;
			hr__saw_fd(op, &now, &last, task, (int32_t)fd);
		}
		*at = last;
	}
	*file = now;
	return 0;
}
WITH_AND_WITHOUT_CODES(fd)

ALWAYS_INLINE int file2_rows(struct hr_decoder *d, uint32_t first, uint32_t end,
			     const uint64_t *codes, struct hr__model_task *at)
{
	struct hr__model_op *ops = d->model.ops;
	const uint16_t *op_of = d->op;
	const uint32_t *file = d->file;
	uint32_t *to = d->file2;

	(void)at;
	for (uint32_t i = first; i < end; i++) {
		struct hr__model_op *op = &ops[op_of[i]];
		int64_t file2 =
		    hr__uncode(code_at(codes, i - first), (int64_t)file[i] + 1, 0, !op->some_file2);

		if (file2 != (uint32_t)file2)
			return -EBADMSG;
		to[i] = (uint32_t)file2;
		op->some_file2 = file2 != 0;
	}
	return 0;
}
WITH_AND_WITHOUT_CODES(file2)

ALWAYS_INLINE int bits_rows(struct hr_decoder *d, uint32_t first, uint32_t end,
			    const uint64_t *codes, struct hr__model_task *at)
{
	uint16_t *to = d->bits;

	(void)at;
	for (uint32_t i = first; i < end; i++)
		to[i] = (uint16_t)code_at(codes, i - first);
	return 0;
}
WITH_AND_WITHOUT_CODES(bits)

hr__decode_fn *const hr__decoders[HR_COL_END_] = {
    [HR_COL_START] = decode_start, [HR_COL_DUR] = decode_dur,	    [HR_COL_OP] = decode_op,
    [HR_COL_FILE] = decode_file,   [HR_COL_OFFSET] = decode_offset, [HR_COL_ASKED] = decode_asked,
    [HR_COL_RET] = decode_ret,	   [HR_COL_FD] = decode_fd,	    [HR_COL_FLAGS] = decode_flags,
    [HR_COL_FILE2] = decode_file2, [HR_COL_BITS] = decode_bits,
};
