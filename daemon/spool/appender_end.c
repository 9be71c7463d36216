/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a stream on a full disk: stores the frames that fit, and the number of lost
 * operations.
 *
 * No journal will be replayed again, so frames may get new numbers. Names are first, then sums,
 * then events, because totals are more useful than events and need less room.
 */
#include "daemon/spool/appender_internal.h"

#include <errno.h>
#include <stdlib.h>

enum turn { NAMES, SUMS, EVENTS, ENDINGS };

static enum turn turn_of(const struct hr_out *o)
{
	switch (o->frame.body_case) {
	case HEADRACE__FRAME__BODY_PROCESSES:
	case HEADRACE__FRAME__BODY_PATHS:
		return NAMES;
	case HEADRACE__FRAME__BODY_EVENTS:
		return EVENTS;
	case HEADRACE__FRAME__BODY_JOB:
	case HEADRACE__FRAME__BODY_LEVELS:
	case HEADRACE__FRAME__BODY_STREAM_END:
		return ENDINGS;
	default:
		return SUMS;
	}
}

static int renumber(struct hr_out *o, uint64_t seq)
{
	Headrace__Frame *msg;
	uint8_t *packed;
	size_t bytes;
	int r;

	if (o->frame.seq == seq)
		return 0;
	r = hr_frame_unpack(o->packed, o->packed_bytes, &msg);
	if (r)
		return r;
	msg->seq = seq;
	/* The columns of a batch of events are already compressed. */
	r = hr_frame_pack(msg, msg->body_case != HEADRACE__FRAME__BODY_EVENTS, &packed, &bytes);
	headrace__frame__free_unpacked(msg, NULL);
	if (r)
		return r;
	free(o->packed);
	o->packed = packed;
	o->packed_bytes = bytes;
	o->frame.seq = seq;
	return 0;
}

static int appender_end_store(struct hr_appender *a, struct hr_out *o, bool ending)
{
	int r = hr__appender_pack(a, o);

	if (!r)
		r = renumber(o, hr_writer_mark(a->writer) + 1);
	if (r)
		return r;
	return ending ? hr_writer_append_last(a->writer, o->packed, o->packed_bytes)
		      : hr__appender_append(a, o);
}

/*
 * Adds the rows of a Loss frame that did not fit to the sums in `lost`: one row per reason, because
 * these few rows fit.
 */
static void take_losses(struct hr_losses *lost, const struct hr_out *o)
{
	Headrace__Frame *msg;

	if (o->frame.body_case != HEADRACE__FRAME__BODY_LOSS || !o->packed ||
	    hr_frame_unpack(o->packed, o->packed_bytes, &msg))
		return;
	for (size_t i = 0; i < msg->loss->n_rows; i++) {
		const Headrace__LossRow *row = msg->loss->rows[i];
		int reason = hr_loss_by_name(row->reason);

		if (reason >= 0)
			hr_losses_add(lost, &(struct hr_loss){.reason = (uint32_t)reason,
							      .count = row->count,
							      .bytes = row->bytes,
							      .dur_ns = row->dur_ns});
	}
	headrace__frame__free_unpacked(msg, NULL);
}

static int store_losses(struct hr_appender *a, const struct hr_losses *lost)
{
	Headrace__LossRow rows[HR_LOSS_REASONS], *pointers[HR_LOSS_REASONS];
	Headrace__Loss loss = HEADRACE__LOSS__INIT;
	struct hr_out o = {.frame = HEADRACE__FRAME__INIT};
	int r;

	for (uint32_t i = 0; i < lost->n; i++) {
		pointers[i] = &rows[i];
		headrace__loss_row__init(&rows[i]);
		rows[i].reason = (char *)hr_loss_name(lost->v[i].reason);
		rows[i].count = lost->v[i].count;
		rows[i].bytes = lost->v[i].bytes;
		rows[i].dur_ns = lost->v[i].dur_ns;
	}
	loss.n_rows = lost->n;
	loss.rows = pointers;
	o.frame.body_case = HEADRACE__FRAME__BODY_LOSS;
	o.frame.loss = &loss;
	o.frame.seq = hr_writer_mark(a->writer) + 1;
	r = appender_end_store(a, &o, true);
	free(o.packed);
	return r;
}

/* Stores the frames of one turn. If a frame does not fit, adds what it contains to `lost`. */
static void appender_end_take_turn(struct hr_appender *a, enum turn turn, struct hr_losses *lost)
{
	for (struct hr_out *o = a->kept.first; o; o = o->next) {
		if (o->retire_gen || turn_of(o) != turn ||
		    appender_end_store(a, o, turn == ENDINGS) == 0)
			continue;
		if (o->absence.count)
			hr_losses_add(lost, &o->absence);
		else
			take_losses(lost, o);
	}
}

void hr_appender_settle(struct hr_appender *a, struct hr_given_up *ret)
{
	struct hr_losses lost = {0};
	struct hr_out *o;

	for (enum turn turn = NAMES; turn <= EVENTS; turn++)
		appender_end_take_turn(a, turn, &lost);
	*ret = (struct hr_given_up){.reported = true};
	for (uint32_t i = 0; i < lost.n; i++) {
		if (lost.v[i].reason != HR_LOSS_STORE_FULL)
			continue;
		ret->count = lost.v[i].count;
		ret->bytes = lost.v[i].bytes;
	}
	if (lost.n)
		ret->reported = store_losses(a, &lost) == 0;
	appender_end_take_turn(a, ENDINGS, &lost);
	hr_losses_done(&lost);
	while ((o = hr_out_list_pop(&a->kept)))
		hr_out_free(o, a->pool);
}
