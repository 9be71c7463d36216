/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_collector.h - the smallest collector that can be wrong in every way: stores frames with hr_writer, acknowledges them,
 * and does what its options say besides
 *
 * Threads   One of its own; the functions are for the test's.
 */
#ifndef HEADRACE_TESTS_UPLINK_FAKE_COLLECTOR_H
#define HEADRACE_TESTS_UPLINK_FAKE_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_options {
	const char *store;
	uint16_t port; /* 0: any */
	unsigned seed;
	unsigned drop_per_mille;   /* of frames: ends the connection, the frame not stored */
	unsigned forget_per_mille; /* of frames: stores it, ends the connection before the Ack */
	unsigned gap_per_mille;	   /* of frames: leaves it out, and says gap to the next ones */
	unsigned full_per_mille;   /* of frames: says full */
	unsigned ack_every;	   /* frames; 0: each */
	unsigned ack_late_ms;
	unsigned ping_ms; /* 0: 1000 */
	/* what it promises, and the uplink waits for; 0: 100 s, more than a slow machine needs */
	uint32_t promised_ms;
	uint64_t window_bytes; /* 0: 1 MiB */
	bool never_opens;      /* does not answer Open */
	bool never_acks;
	bool silent;	     /* after HelloAck it says nothing at all */
	bool mute;	     /* does not even say HelloAck */
	bool no_skip;	     /* never goes on behind what it lacks */
	uint32_t version;    /* in HelloAck; 0: as it must be */
	const char *refusal; /* reason of a Refusal instead of HelloAck */
	const char *nack;    /* reason of a Nack to each Open, with this mark */
	uint64_t nack_mark;
	uint64_t opened_ahead; /* added to the mark in Opened */
};

struct fake;

struct fake *fake_start(const struct fake_options *options);
void fake_stop(struct fake *f); /* its streams are sealed */

struct fake_seen {
	uint16_t port;
	unsigned connections, hellos, opens, pongs, refused; /* `refused`: wrong secret */
	uint64_t frames, doubles;     /* that came; of these such as it had already */
	uint64_t most_in_flight;      /* bytes received and not acknowledged */
	uint64_t first_seq, last_seq; /* of the last Open */
	uint32_t switches;	      /* Use messages */
};
void fake_look(struct fake *f, struct fake_seen *ret);

#endif
