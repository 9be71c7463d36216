/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.h - frames of streams, and stores to look into, for the tests of the collector
 *
 * Every function asserts its own success. Single-threaded. Frames are malloc'ed and the caller's.
 */
#ifndef HEADRACE_TESTS_COLLECTOR_FRAMES_H
#define HEADRACE_TESTS_COLLECTOR_FRAMES_H

#include "tests/store/help.h"

struct frame {
	uint8_t *buf;
	size_t bytes;
};

struct frame
frame_loss(uint64_t seq); /* one row of count `seq`: which frame is where can be told */
struct frame frame_job(uint64_t seq, uint32_t uid);
struct frame frame_end(uint64_t seq);
struct frame frame_start(uint64_t seq, const struct hr_stream_id *id);
struct frame frame_newer(uint64_t seq); /* of a kind that this build does not know */
struct frame frame_index(uint64_t seq);
struct frame frame_garbage(void);		     /* well framed, and no message */
struct frame frame_bulk(uint64_t seq, size_t bytes); /* that large, in spite of zstd */
struct frame frame_bomb(uint64_t seq, size_t rows);  /* small, and large when unpacked */

/* Whether daemons send frames of this kind: the collector makes stream starts and footers. */
bool frame_is_sent(uint32_t kind);

/* The stream that the store has: frames 1 to `last`, each once, Loss rows at their places, no problems. */
void frames_check(const char *store, const char *job, const char *node, uint64_t last);

/* The same frames from another seq on: those before are gone (retention). Returns the first. */
uint64_t frames_first(const char *store, const char *job, const char *node, uint64_t *ret_last);

/* The file `state` of the job's only stream. 0 or its error. */
struct hr_stream_state;
int frames_state(const char *store, const char *job, struct hr_stream_state *ret);

#endif
