/* SPDX-License-Identifier: Apache-2.0 */
#include "store/batch_reader.h"

#include <errno.h>

#include "common/ops.h"

static void frame_free(struct hr_batch_reader *r)
{
	if (r->frame)
		headrace__frame__free_unpacked(r->frame, NULL);
	r->frame = NULL;
}

void hr_batch_reader_done(struct hr_batch_reader *r)
{
	hr_decoder_free(r->decoder);
	frame_free(r);
}

int hr_batch_load(struct hr_batch_reader *r, const struct hr_stream *s,
		  const struct hr_batch_ref *ref, const Headrace__EventBatch **ret)
{
	int error;

	frame_free(r);
	if (!r->decoder && hr_decoder_new(&r->decoder) < 0)
		return -ENOMEM;
	error = hr_stream_read(s, ref->frame, &r->frame);
	if (error < 0)
		return error;
	if (r->frame->body_case != HEADRACE__FRAME__BODY_EVENTS)
		return -EBADMSG;
	*ret = r->frame->events;
	return 0;
}

int hr_batch_read(struct hr_batch_reader *r, const struct hr_stream *s,
		  const struct hr_batch_ref *ref, uint32_t want, struct hr_columns *ret)
{
	const Headrace__EventBatch *msg;
	int error = hr_batch_load(r, s, ref, &msg);

	if (error == 0)
		error = hr_batch_decode(r->decoder, msg, want, ret);
	frame_free(r); /* the columns do not refer to the message */
	return error;
}

uint32_t hr_batch_needed(const struct hr_batch_ref *ref, uint32_t want)
{
	if (ref->ops_bytes == 0) /* unknown */
		return want;
	for (uint16_t op = 0; op < HR_OP_MAX && op / 8u < ref->ops_bytes; op++)
		if ((ref->ops[op / 8] >> (op % 8) & 1) &&
		    hr_op_info(op)->bytes_rule == HR_BYTES_ITEMS)
			return want;
	return want & ~HR_COL_BIT(HR_COL_FLAGS);
}
