/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.h - the inside of the ingest bench: frames made beforehand, and many daemons played by one thread
 */
#ifndef HEADRACE_TESTS_BENCH_INGEST_H
#define HEADRACE_TESTS_BENCH_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Frames 2 to n + 1 of a stream, as they lie in a spool. Frames do not say whose they are: all players send the same. */
struct bench_frames {
	uint8_t *bytes;
	size_t *offsets; /* n + 1 of them */
	uint32_t *events;
	size_t n;
};

/* At least `events` of the generator, in batches of `batch` (rollups, paths and all). 0 or -errno. */
int bench_frames_make(struct bench_frames *f, uint64_t events, uint32_t batch);
void bench_frames_done(struct bench_frames *f);

struct bench_play {
	const char *address;
	const struct bench_frames *frames;
	unsigned connections;
	double rate;	  /* frames a second of each; 0: as fast as the window lets them */
	unsigned seconds; /* with a rate; else until all frames are acknowledged */
};

struct bench_result {
	double seconds; /* from the first frame to the last Ack */
	uint64_t frames, events, bytes;
	double *latency_s; /* of each frame; sorted; free() */
	size_t n_latency;
};

/* Plays it. `begun` is called when all streams are open. 0 or -errno, having said why. */
int bench_play(const struct bench_play *play, void (*begun)(void *self), void *self,
	       struct bench_result *ret);

double bench_now_s(void);

#endif
