/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet.h - what all jobs do now, from the messages Now of their nodes (proto/wire.proto)
 *
 * Purpose   Keeps the last Now of each open stream, as rates per second, and adds up those of a job
 *           for `headrace top` and `headrace status`. Nothing of it is stored.
 * Owner     The peers. The code that opens a stream also removes it.
 * Threads   The loop.
 * Memory    About 1 KiB for each stream; at most 64 KiB, whatever a peer sends.
 */
#ifndef HEADRACE_COLLECTOR_FLEET_H
#define HEADRACE_COLLECTOR_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "proto/wire.pb-c.h"

struct hr_fleet_stream;

/* Zeroed memory is a fleet without streams. */
struct hr_fleet {
	struct hr_fleet_stream *first;
};

/* Adds a stream without a Now. NULL: no memory. */
struct hr_fleet_stream *hr_fleet_add(struct hr_fleet *f, const Headrace__Open *open);
void hr_fleet_remove(struct hr_fleet_stream *s); /* accepts NULL */

/* Replaces the last Now of the stream. Returns 0, -EINVAL (impossible numbers) or -ENOMEM. */
int hr_fleet_take(struct hr_fleet_stream *s, const Headrace__Now *now, uint64_t now_ms);

/* Notes that a frame of the stream arrived: its node is not silent. Accepts NULL. */
void hr_fleet_note_frame(struct hr_fleet_stream *s, uint64_t now_ms);

/* Whose jobs an answer has, and how much of each. */
struct hr_fleet_view {
	bool all;
	uint32_t uid;	  /* else: only jobs of this user */
	size_t max_jobs;  /* the first ones in the order of the Look */
	size_t max_stuck; /* operations of a job that have not returned */
};

/*
 * Makes the answer to a Look. Its memory is in `memory`; texts are those of the streams. The caller
 * adds what it knows about the collector. Returns 0; -EINVAL: unknown Look.by; -ENOMEM.
 */
int hr_fleet_look(const struct hr_fleet *f, const Headrace__Look *look,
		  const struct hr_fleet_view *view, uint64_t now_ms, struct hr_arena *memory,
		  Headrace__Fleet *ret);

#endif
