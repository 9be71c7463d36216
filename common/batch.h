/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.h - encodes events as columns, and decodes them (EventBatch of proto/headrace.proto)
 *
 * One thread reuses an encoder, or a decoder, for many batches of at most HR_BATCH_EVENTS events.
 * The encoder sorts rows by task, and keeps their order within a task. It replaces each value by
 * its difference from a prediction by the task's previous rows, and splits a column into byte
 * planes. Each plane is constant, raw, or zstd level 1. docs/storage.md describes the differences
 * and has measured sizes.
 */
#ifndef HEADRACE_COMMON_BATCH_H
#define HEADRACE_COMMON_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "common/event.h"
#include "proto/headrace.pb-c.h"

#define HR_BATCH_EVENTS 65536u
#define HR_BATCH_TASKS	4096u

struct hr_encoder;
int hr_encoder_new(struct hr_encoder **ret);
void hr_encoder_free(struct hr_encoder *e);

/*
 * Fills `msg` from n events in the order of completion (and calls headrace__event_batch__init).
 * `msg` refers to memory of the encoder, which is valid until the next call. Errors: -EINVAL (n or
 * task out of range), -ENOMEM.
 */
int hr_batch_encode(struct hr_encoder *e, const struct hr_event *events, size_t n,
		    const struct hr_task *tasks, size_t n_tasks, Headrace__EventBatch *msg);

/* Columns that a reader can request. `want` has bit N for column N. */
enum hr_column {
	HR_COL_START = 1,
	HR_COL_DUR = 2,
	HR_COL_OP = 3,
	HR_COL_FILE = 4,
	HR_COL_OFFSET = 5,
	HR_COL_ASKED = 6,
	HR_COL_RET = 7,
	HR_COL_FD = 8,
	HR_COL_FLAGS = 9,
	HR_COL_FILE2 = 10,
	HR_COL_BITS = 11,
	HR_COL_END_
};
#define HR_COL_BIT(c) (1u << (c))
#define HR_COL_ALL    ((1u << HR_COL_END_) - 2u)

/* Decoded columns. NULL: not requested. The decoder owns the memory until its next call. */
struct hr_columns {
	uint32_t count;
	const uint32_t *task; /* index in `tasks`; always decoded */
	const struct hr_task *tasks;
	uint32_t n_tasks;
	const uint64_t *start_ns;
	const uint64_t *dur_ns;
	const uint16_t *op;
	const uint32_t *file;
	const int64_t *offset;
	const uint64_t *asked;
	const int64_t *ret;
	const int32_t *fd;
	const uint32_t *flags;
	const uint32_t *file2;
	const uint16_t *bits;
};

struct hr_decoder;
int hr_decoder_new(struct hr_decoder **ret);
void hr_decoder_free(struct hr_decoder *d);

/*
 * Decodes the columns of `want`, and the columns that these need. Returns -EBADMSG and no partial
 * result if the message, which may be hostile, contradicts itself.
 */
int hr_batch_decode(struct hr_decoder *d, const Headrace__EventBatch *msg, uint32_t want,
		    struct hr_columns *ret);

#endif
