/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assembly.h - bytes of a connection become frames
 *
 * Purpose   The part of conn.c that needs no socket, so that it can be fed by tests and by a fuzzer.
 * Owner     The connection. A whole frame belongs to whoever takes it.
 * Threads   One.
 *
 *      between frames --(16 bytes)--> a buffer as long as the header says --(the last byte, CRC)--> whole --(_frame)--> between
 *
 * Large frames are not copied: the caller reads into hr_assembly_tail() and says how much came with hr_assembly_grown().
 */
#ifndef HEADRACE_NET_ASSEMBLY_H
#define HEADRACE_NET_ASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/frame.h"

struct hr_assembly {
	size_t limit; /* largest frame, header included; from the next header on */
	uint8_t header[HR_FRAME_HDR_BYTES];
	uint8_t *frame; /* NULL until the header is whole */
	size_t have, want;
	bool control;
};

void hr_assembly_init(struct hr_assembly *a, size_t limit);
void hr_assembly_done(struct hr_assembly *a);

/*
 * Takes bytes up to the end of a frame; *ret_taken is how many. 1: it is whole, fetch it with hr_assembly_frame; 0: all taken,
 * more are needed; -E2BIG as soon as the header shows it, -EBADMSG, -ENOMEM: the connection is of no use any more.
 */
int hr_assembly_take(struct hr_assembly *a, const uint8_t *buf, size_t bytes, size_t *ret_taken);

/* Where the next bytes of the frame under way belong, and how many it lacks; NULL between frames. */
uint8_t *hr_assembly_tail(struct hr_assembly *a, size_t *ret_bytes);
int hr_assembly_grown(struct hr_assembly *a, size_t bytes); /* returns as hr_assembly_take */

/* Hands over the frame that is whole, malloc'ed; begins the next. */
uint8_t *hr_assembly_frame(struct hr_assembly *a, size_t *ret_bytes, bool *ret_control);

/* Has part of a frame come? Then an end of the connection is an error. */
bool hr_assembly_within(const struct hr_assembly *a);

#endif
