/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_decoder.h - internals of a decoder
 *
 * batch_decode.c decodes a chunk of rows at a time, column after column, so that the values for the
 * next column's predictions are in the CPU's cache. Each decoded index of an array is checked: ops
 * below HR_OP_MAX, batch-local files below n_files, tasks below n_tasks.
 */
#ifndef HEADRACE_COMMON_BATCH_DECODER_H
#define HEADRACE_COMMON_BATCH_DECODER_H

#include "common/batch_planes.h"

struct hr__column {
	unsigned width;
	struct hr__plane planes[HR__MAX_PLANES];
	struct hr__model_task at; /* the model, which is not reset between chunks */
};

/*
 * X(type, name): arrays of `room` values. files: ids in the stream, by batch-local index; local:
 * batch-local index of each row; task: index in `tasks` of each row; the others: decoded columns.
 */
#define HR__DECODER_ARRAYS(X)                                                                      \
	X(uint32_t *, files)                                                                       \
	X(uint32_t *, local)                                                                       \
	X(uint32_t *, task)                                                                        \
	X(uint64_t *, start_ns)                                                                    \
	X(uint64_t *, dur_ns)                                                                      \
	X(uint16_t *, op)                                                                          \
	X(uint32_t *, file)                                                                        \
	X(int64_t *, offset)                                                                       \
	X(uint64_t *, asked)                                                                       \
	X(int64_t *, ret)                                                                          \
	X(int32_t *, fd)                                                                           \
	X(uint32_t *, flags)                                                                       \
	X(uint32_t *, file2)                                                                       \
	X(uint16_t *, bits)

struct hr_decoder {
	ZSTD_DCtx *zstd;
	uint32_t room; /* the arrays have room for so many rows */
	uint32_t count;
	uint32_t n_files;
	uint32_t n_tasks;
	uint64_t base_ns;

	/* room for (HR_COL_END_ - 1) * HR__MAX_PLANES planes of `room` bytes */
	uint8_t *planes;
	uint32_t planes_used;
#define HR__MEMBER(type, name) type name;
	HR__DECODER_ARRAYS(HR__MEMBER)
#undef HR__MEMBER

	struct hr__column columns[HR_COL_END_];
	uint64_t codes[HR__CHUNK_ROWS];
	struct hr_task tasks[HR_BATCH_TASKS];
	uint32_t task_end[HR_BATCH_TASKS]; /* one past the task's last row */
	struct hr__model model;
	uint32_t files_known; /* number of different files in the rows so far */
};

/*
 * Decodes rows [first, end) of a column, after the columns that it needs. If `codes` is NULL, all
 * codes are zero. Returns 0 or -EBADMSG.
 */
typedef int hr__decode_fn(struct hr_decoder *d, uint32_t first, uint32_t end, const uint64_t *codes,
			  struct hr__model_task *at);
extern hr__decode_fn *const hr__decoders[HR_COL_END_];

#endif
