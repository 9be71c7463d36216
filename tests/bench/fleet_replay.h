/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_replay.h - the frames of a recorded node, which each simulated node sends at the same pace
 *
 * Owner     The caller; one thread. After an error, the functions print it and end the program.
 */
#ifndef HEADRACE_TESTS_BENCH_FLEET_REPLAY_H
#define HEADRACE_TESTS_BENCH_FLEET_REPLAY_H

#include <stddef.h>
#include <stdint.h>

struct hr_conn;

struct fleet_frame {
	uint8_t *buf; /* with header */
	size_t bytes;
	uint64_t seq;
	uint64_t due_ns; /* after the first one */
};

struct fleet_record {
	struct fleet_frame *frames;
	size_t n;
	uint64_t last_ns;   /* due_ns of the last one */
	uint64_t bytes;	    /* of all */
	uint64_t processes; /* in all */
};

/* Loads the only stream of a store. */
void fleet_record_load(struct fleet_record *r, const char *store);

/* A node that sends the record. */
struct fleet_player {
	size_t window_bytes, in_flight; /* limit of what is sent and not acknowledged */
	size_t next, acked; /* frames: the next one to be sent; how many are acknowledged */
	uint64_t began_ns;  /* CLOCK_MONOTONIC; 0: not yet */
	double *ack_s;	    /* of each frame, from when it was due to its Ack */
};

void fleet_player_init(struct fleet_player *p, const struct fleet_record *r);

/* Sends the frames that are due and fit into the window. The caller has got Opened. */
void fleet_player_turn(struct fleet_player *p, const struct fleet_record *r, struct hr_conn *conn,
		       uint64_t now_ns);

/* An Ack has arrived. */
void fleet_player_acked(struct fleet_player *p, const struct fleet_record *r, uint64_t seq,
			uint64_t now_ns);

#endif
