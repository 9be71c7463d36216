/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_reader.h - reads batches of events of a stream, and decodes their columns
 *
 * Owner     The caller. Zeroed memory is a reader that has read nothing.
 * Threads   One thread at a time uses a reader. Any number of readers may read a stream.
 * Lifetime  *ret refers to memory of the reader, which is valid until its next batch.
 * Errors    -EBADMSG: the batch is damaged, or exceeds HR_BATCH_EVENTS or HR_BATCH_TASKS, or the
 *           frame is no batch. -EIO; -ENOMEM. Then *ret is unchanged. The reader remains usable.
 */
#ifndef HEADRACE_STORE_BATCH_READER_H
#define HEADRACE_STORE_BATCH_READER_H

#include "common/batch.h"
#include "store/store.h"

struct hr_batch_reader {
	struct hr_decoder *decoder; /* 1 to 12 MiB; NULL before the first batch */
	Headrace__Frame *frame;	    /* the message of hr_batch_load; NULL: none */
};
void hr_batch_reader_done(struct hr_batch_reader *r);

/* Reads a batch, and decodes the columns of `want` (bits HR_COL_BIT()). */
int hr_batch_read(struct hr_batch_reader *r, const struct hr_stream *s,
		  const struct hr_batch_ref *ref, uint32_t want, struct hr_columns *ret);

/*
 * Reads a batch and decodes nothing, for callers that may not need the columns. If they do, they
 * pass r->decoder and *ret to hr_batch_decode.
 */
int hr_batch_load(struct hr_batch_reader *r, const struct hr_stream *s,
		  const struct hr_batch_ref *ref, const Headrace__EventBatch **ret);

/*
 * Returns the columns of `want`, but not HR_COL_FLAGS if no operation of the batch counts items,
 * as fread does. Then hr_bytes_moved does not use `flags`.
 */
uint32_t hr_batch_needed(const struct hr_batch_ref *ref, uint32_t want);

#endif
