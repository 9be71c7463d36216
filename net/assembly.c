/* SPDX-License-Identifier: Apache-2.0 */
#include "net/assembly.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/wire.h"

void hr_assembly_init(struct hr_assembly *a, size_t limit)
{
	*a = (struct hr_assembly){.limit = limit};
}

void hr_assembly_done(struct hr_assembly *a)
{
	free(a->frame);
	a->frame = NULL;
}

/* Call it when the header is complete, or if its first bytes are wrong. */
static int begin_frame(struct hr_assembly *a)
{
	uint32_t flags = 0;
	size_t want = 0;
	int r = hr_frame_check_any(a->header, a->have, a->limit, &want, &flags);

	if (r < 0 && r != -EAGAIN)
		return r;
	if (a->have < HR_FRAME_HDR_BYTES)
		return 0;
	a->control = flags & HR_FRAME_CONTROL;
	if (a->control && want > HR_FRAME_HDR_BYTES + (size_t)HR_WIRE_MAX_BYTES)
		return -E2BIG;
	if (a->control && flags != HR_FRAME_CONTROL)
		return -EBADMSG;
	a->frame = malloc(want);
	if (!a->frame)
		return -ENOMEM;
	memcpy(a->frame, a->header, HR_FRAME_HDR_BYTES);
	a->want = want;
	return hr_assembly_grown(a, 0);
}

int hr_assembly_take(struct hr_assembly *a, const uint8_t *buf, size_t bytes, size_t *ret_taken)
{
	size_t header = 0, body;
	int r;

	*ret_taken = 0;
	if (!a->frame) {
		header = HR_FRAME_HDR_BYTES - a->have;
		if (header > bytes)
			header = bytes;
		memcpy(a->header + a->have, buf, header);
		a->have += header;
		*ret_taken = header;
		r = begin_frame(a);
		if (r != 0 || !a->frame)
			return r;
	}
	body = a->want - a->have;
	if (body > bytes - header)
		body = bytes - header;
	memcpy(a->frame + a->have, buf + header, body);
	*ret_taken = header + body;
	return hr_assembly_grown(a, body);
}

uint8_t *hr_assembly_tail(struct hr_assembly *a, size_t *ret_bytes)
{
	if (!a->frame)
		return NULL;
	*ret_bytes = a->want - a->have;
	return a->frame + a->have;
}

int hr_assembly_grown(struct hr_assembly *a, size_t bytes)
{
	uint32_t flags;
	size_t whole;
	int r;

	a->have += bytes;
	if (a->have < a->want)
		return 0;
	/* The header was below the limit when it was complete. The limit may be lower now. */
	r = hr_frame_check_any(a->frame, a->have, SIZE_MAX, &whole, &flags);
	return r < 0 ? r : 1;
}

uint8_t *hr_assembly_frame(struct hr_assembly *a, size_t *ret_bytes, bool *ret_control)
{
	uint8_t *frame = a->frame;

	*ret_bytes = a->want;
	*ret_control = a->control;
	hr_assembly_init(a, a->limit);
	return frame;
}

bool hr_assembly_within(const struct hr_assembly *a)
{
	return a->have > 0;
}
