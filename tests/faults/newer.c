/* SPDX-License-Identifier: Apache-2.0 */
/*
 * newer.c - what this release says, as a later one would: linked with --wrap=hr_wire_pack
 *
 * Each message has a field more, in itself and in its body, and is followed by one of a kind that is not known yet. The other side
 * has to ignore all of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/wire.h"

int newer_pack(const Headrace__Wire *msg, uint8_t **ret_buf,
	       size_t *ret_bytes) __asm__("__wrap_hr_wire_pack");
int plain_pack(const Headrace__Wire *msg, uint8_t **ret_buf,
	       size_t *ret_bytes) __asm__("__real_hr_wire_pack");

static uint8_t seven[] = {7};
static ProtobufCMessageUnknownField field = {
    .tag = 900, .wire_type = PROTOBUF_C_WIRE_TYPE_VARINT, .len = sizeof(seven), .data = seven};

static void add_field(ProtobufCMessage *to)
{
	to->n_unknown_fields = 1;
	to->unknown_fields = &field;
}

/* Puts the bytes behind those of *buf, and frees them. */
static int join(uint8_t **buf, size_t *bytes, uint8_t *more, size_t more_bytes)
{
	uint8_t *both = realloc(*buf, *bytes + more_bytes);

	if (both) {
		memcpy(both + *bytes, more, more_bytes);
		*buf = both;
		*bytes += more_bytes;
	} else {
		free(*buf);
	}
	free(more);
	return both ? 0 : -ENOMEM;
}

int newer_pack(const Headrace__Wire *msg, uint8_t **ret_buf, size_t *ret_bytes)
{
	Headrace__Wire newer = *msg, strange = HEADRACE__WIRE__INIT;
	ProtobufCMessage *body = (ProtobufCMessage *)msg->hello; /* or whichever it is */
	uint8_t *buf, *more;
	size_t bytes, more_bytes;
	int r;

	add_field(&newer.base);
	add_field(body);
	r = plain_pack(&newer, &buf, &bytes);
	body->n_unknown_fields = 0;
	body->unknown_fields = NULL;
	if (r < 0)
		return r;
	add_field(&strange.base);
	r = plain_pack(&strange, &more, &more_bytes);
	if (r < 0) {
		free(buf);
		return r;
	}
	r = join(&buf, &bytes, more, more_bytes);
	if (r < 0)
		return r;
	*ret_buf = buf;
	*ret_bytes = bytes;
	return 0;
}
