/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - packs and unpacks Wire messages, which proto/wire.proto describes. Any thread. */
#ifndef HEADRACE_NET_WIRE_H
#define HEADRACE_NET_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire.pb-c.h"

#define HR_WIRE_VERSION	     1u		  /* version of the protocol in this build */
#define HR_WIRE_VERSION_MIN  1u		  /* oldest version that this build supports */
#define HR_WIRE_MAX_BYTES    (1u << 20)	  /* size limit of a control message */
#define HR_WIRE_OUTPUT_BYTES (256u << 10) /* size limit of Output.data */
#define HR_WIRE_SECRET_BYTES 16u
#define HR_WIRE_PORT	     4747

/* Makes a message with one body, in the caller's block: HR_WIRE(NOTE, note, &body). */
#define HR_WIRE(name, member, pointer)                                                             \
	(&(Headrace__Wire){.base = PROTOBUF_C_MESSAGE_INIT(&headrace__wire__descriptor),           \
			   .body_case = HEADRACE__WIRE__BODY_##name,                               \
			   .member = (pointer)})

/* Packs a message into a control frame. *ret_buf is malloc'ed. Returns 0, -ENOMEM or -E2BIG. */
int hr_wire_pack(const Headrace__Wire *msg, uint8_t **ret_buf, size_t *ret_bytes);

/*
 * Unpacks a control frame that hr_frame_check_any accepted. Free it with
 * headrace__wire__free_unpacked(msg, NULL). -EBADMSG: no control frame, or broken; -ENOMEM.
 */
int hr_wire_unpack(const uint8_t *frame, size_t bytes, Headrace__Wire **ret);

/*
 * Replaces control bytes in a text of the peer by '?', also C1 in UTF-8, so that it is safe for a
 * terminal. If `lines`, keeps line ends and tabs.
 */
void hr_wire_sanitize(char *text, bool lines);

#endif
