/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assembly.h - makes frames from the bytes of a connection
 *
 * The part of conn.c that needs no socket, so that tests and a fuzzer can call it. One thread. The
 * connection owns the assembly; hr_assembly_frame passes a whole frame to its caller.
 *
 *      between --(16 bytes)--> buffer of its size --(last byte, CRC)--> whole --(_frame)--> between
 *
 * Large frames are not copied: the caller reads into hr_assembly_tail() and calls
 * hr_assembly_grown().
 */
#ifndef HEADRACE_NET_ASSEMBLY_H
#define HEADRACE_NET_ASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/frame.h"

struct hr_assembly {
	size_t limit; /* largest frame, with header; a change applies to the next header */
	uint8_t header[HR_FRAME_HDR_BYTES];
	uint8_t *frame; /* NULL until the header is complete */
	size_t have, want;
	bool control;
};

void hr_assembly_init(struct hr_assembly *a, size_t limit);
void hr_assembly_done(struct hr_assembly *a);

/*
 * Adds bytes up to the end of a frame; *ret_taken is their number. 1: the frame is whole, so get it
 * with hr_assembly_frame. 0: more bytes are needed. After -E2BIG (from the header on), -EBADMSG and
 * -ENOMEM, the connection must be closed.
 */
int hr_assembly_take(struct hr_assembly *a, const uint8_t *buf, size_t bytes, size_t *ret_taken);

/* Returns memory for the rest of the current frame, and its length. NULL between frames. */
uint8_t *hr_assembly_tail(struct hr_assembly *a, size_t *ret_bytes);
int hr_assembly_grown(struct hr_assembly *a, size_t bytes); /* result as of hr_assembly_take */

/* Returns the whole frame, malloc'ed, and starts the next. */
uint8_t *hr_assembly_frame(struct hr_assembly *a, size_t *ret_bytes, bool *ret_control);

/* True: a frame is incomplete, so the end of the connection is an error. */
bool hr_assembly_within(const struct hr_assembly *a);

#endif
