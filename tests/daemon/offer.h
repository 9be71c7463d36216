/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offer.h - maps that a client makes and offers, when the daemon does not answer
 *
 * Made right, as the shim makes them; a test may change anything in one before it is sent. The map stays mapped: the test's
 * to unmap.
 */
#ifndef HEADRACE_TESTS_DAEMON_OFFER_H
#define HEADRACE_TESTS_DAEMON_OFFER_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>

#include "nodes.h"
#include "proto/abi.h"

#define OFFER_SEALS	 (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define OFFER_BYTES	 hr_map_bytes(HR_MAP_RINGS, HR_OFFER_SLOTS_LOG2)
#define OFFER_MORE_BYTES hr_map_bytes(HR_MAP_RINGS, HR_RING_SLOTS_LOG2)

struct offer {
	struct hr_hello hello, message;
	size_t message_bytes;
	int fds[2];
	unsigned n_fds;
	struct hr_map_hdr *map;
};

extern bool offer_tsc; /* the daemon's clock, known before the first is made */

void offer_make(struct offer *o, uint64_t token, uint64_t parent);
void offer_make_more(struct offer *o, uint64_t token); /* of a session that there is */

/* A connection to the socket. */
int offer_knock(const char *path);
/* Returns when the daemon has read all that was sent before. */
void offer_ping(const char *path);
/* Waits until the daemon has read what was sent by this connection. */
void offer_read_await(int fd);

/* The offer alone. -errno. */
int offer_send_message(int fd, const struct offer *o);

/* Hello and offer at once, to a daemon that is stopped; closes the descriptors. */
void offer_send_by(int fd, struct offer *o);
void offer_send(const struct nodes *n, struct offer *o);

/* Reads of a byte at [from, to), as records of its first ring. */
void offer_reads(struct offer *o, uint64_t from, uint64_t to);

#endif
