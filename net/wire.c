/* SPDX-License-Identifier: Apache-2.0 */
#include "net/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/frame.h"

int hr_wire_pack(const Headrace__Wire *msg, uint8_t **ret_buf, size_t *ret_bytes)
{
	size_t bytes = headrace__wire__get_packed_size(msg);
	uint8_t *buf;

	if (bytes > HR_WIRE_MAX_BYTES)
		return -E2BIG;
	buf = malloc(HR_FRAME_HDR_BYTES + bytes);
	if (!buf)
		return -ENOMEM;
	headrace__wire__pack(msg, buf + HR_FRAME_HDR_BYTES);
	*ret_buf = hr_frame_seal(buf, bytes, HR_FRAME_CONTROL);
	*ret_bytes = HR_FRAME_HDR_BYTES + bytes;
	return 0;
}

int hr_wire_unpack(const uint8_t *frame, size_t bytes, Headrace__Wire **ret)
{
	struct hr_frame_hdr h;
	Headrace__Wire *msg;

	if (bytes < sizeof(h) || bytes - sizeof(h) > HR_WIRE_MAX_BYTES)
		return -EBADMSG;
	memcpy(&h, frame, sizeof(h));
	if (h.flags != HR_FRAME_CONTROL || h.length != bytes - sizeof(h))
		return -EBADMSG;
	msg = headrace__wire__unpack(NULL, h.length, frame + sizeof(h));
	if (!msg)
		return -EBADMSG;
	*ret = msg;
	return 0;
}

void hr_wire_sanitize(char *text, bool lines)
{
	for (unsigned char *c = (unsigned char *)text; *c; c++) {
		if (lines && (*c == '\n' || *c == '\t'))
			continue;
		if (*c < 0x20 || *c == 0x7f)
			*c = '?';
		else if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
			c[0] = c[1] = '?';
	}
}
