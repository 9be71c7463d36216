/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - rows of tables.def from the frames of streams
 *
 * Purpose   Each row has its own stream, generation and frame, so rows of many streams share a
 *           block.
 * Owner     A store thread of the collector.
 * Threads   One at a time.
 */
#ifndef HEADRACE_CLICKHOUSE_ROWS_H
#define HEADRACE_CLICKHOUSE_ROWS_H

#include "clickhouse/block.h"
#include "common/batch.h"
#include "proto/headrace.pb-c.h"

/* Where frames come from: the values of the common columns. */
struct hr_ch_origin {
	const char *cluster, *job, *node;
	uint32_t attempt;
	uint16_t day; /* days since 1970 */
	uint64_t stream, generation;
	int64_t uid; /* owner of the job; -1: not yet known */
	/*
	 * From the first Clock, so that partial sums of a window have the same time. 0: not yet
	 * known
	 */
	int64_t real_minus_boot_ns;
	bool by_node;
};

struct hr_ch_rows {
	struct hr_ch_block blocks[HR_CH_TABLES];
	struct hr_decoder *decoder;
};

int hr_ch_rows_init(struct hr_ch_rows *r); /* 0 or -ENOMEM */
void hr_ch_rows_done(struct hr_ch_rows *r);
void hr_ch_rows_clear(struct hr_ch_rows *r); /* keeps the memory */
size_t hr_ch_rows_count(const struct hr_ch_rows *r);
size_t hr_ch_rows_bytes(const struct hr_ch_rows *r);

/*
 * Adds the rows of a frame: `packed` goes into `frames` at `stored_ns`, and `msg` is the same
 * frame, unpacked and untrusted, which this changes. -EBADMSG: the content contradicts itself, so
 * only `frames` has it. -ENOMEM: rows are missing; clear all blocks.
 */
int hr_ch_rows_add(struct hr_ch_rows *r, struct hr_ch_origin *o, Headrace__Frame *msg,
		   const uint8_t *packed, size_t bytes, int64_t stored_ns);

/* Adds the common columns of n rows, and counts the rows. The caller adds the other columns. */
void hr_ch_rows_begin(struct hr_ch_block *b, const struct hr_ch_origin *o, uint64_t seq, size_t n);

#endif
