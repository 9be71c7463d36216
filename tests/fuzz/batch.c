/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packed EventBatch into the decoder: all columns at once, then some alone. What decodes is
 * encoded and decoded once more, and must be the same.
 */
#include <stdlib.h>
#include <string.h>

#include "common/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct hr_event row(const struct hr_columns *c, uint32_t i)
{
	return (struct hr_event){
	    .start_ns = c->start_ns[i],
	    .dur_ns = c->dur_ns[i],
	    .offset = c->offset[i],
	    .ret = c->ret[i],
	    .asked = c->asked[i],
	    .file = c->file[i],
	    .file2 = c->file2[i],
	    .task = c->task[i],
	    .flags = c->flags[i],
	    .fd = c->fd[i],
	    .op = c->op[i],
	    .bits = c->bits[i],
	};
}

static void again(const struct hr_columns *c, struct hr_decoder *d, struct hr_encoder *e)
{
	struct hr_event *events = malloc(c->count * sizeof(*events));
	Headrace__EventBatch msg;
	struct hr_columns second;

	if (!events)
		return;
	for (uint32_t i = 0; i < c->count; i++)
		events[i] = row(c, i);
	if (hr_batch_encode(e, events, c->count, c->tasks, c->n_tasks, &msg) < 0)
		abort();
	if (hr_batch_decode(d, &msg, HR_COL_ALL, &second) < 0)
		abort();
	for (uint32_t i = 0; i < c->count; i++) {
		struct hr_event ev = row(&second, i);

		if (memcmp(&ev, &events[i], sizeof(ev)) != 0)
			abort();
	}
	free(events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct hr_decoder *d;
	static struct hr_encoder *e;
	Headrace__EventBatch *msg;
	struct hr_columns c;

	if (!d && (hr_decoder_new(&d) < 0 || hr_encoder_new(&e) < 0))
		abort();
	msg = headrace__event_batch__unpack(NULL, bytes, data);
	if (!msg)
		return 0;
	if (hr_batch_decode(d, msg, HR_COL_ALL, &c) == 0)
		again(&c, d, e);
	for (unsigned column = 1; column < HR_COL_END_; column++)
		(void)hr_batch_decode(d, msg, HR_COL_BIT(column), &c);
	headrace__event_batch__free_unpacked(msg, NULL);
	return 0;
}
