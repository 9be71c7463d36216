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
	size_t limit; /* largest frame, with header; a change affects the next header */
	uint8_t header[HR_FRAME_HDR_BYTES];
	uint8_t *frame;
	size_t have, want;
	bool control;
};

void hr_assembly_init(struct hr_assembly *a, size_t limit);
void hr_assembly_done(struct hr_assembly *a);

/*
 * Adds bytes, at most to the end of a frame. *ret_taken: number of added bytes. Returns 1 if the
 * frame is whole (get it with hr_assembly_frame), or 0 if more bytes are needed. After -E2BIG
 * (returned when the header is complete), -EBADMSG or -ENOMEM, close the connection.
 */
int hr_assembly_take(struct hr_assembly *a, const uint8_t *buf, size_t bytes, size_t *ret_taken);

/* Returns memory for the rest of the current frame, and its size. NULL between two frames. */
uint8_t *hr_assembly_tail(struct hr_assembly *a, size_t *ret_bytes);
int hr_assembly_grown(struct hr_assembly *a, size_t bytes);

/* Returns the whole frame, malloc'ed. The next byte begins a new frame. */
uint8_t *hr_assembly_frame(struct hr_assembly *a, size_t *ret_bytes, bool *ret_control);

/* Whether a frame is incomplete, so that the end of the connection would be an error. */
bool hr_assembly_within(const struct hr_assembly *a);

#endif
