/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbered.h - reads that tests count one by one: the number of each is its offset
 *
 * All functions in a cmocka test.
 */
#ifndef HEADRACE_TESTS_DAEMON_NUMBERED_H
#define HEADRACE_TESTS_DAEMON_NUMBERED_H

#include <stdint.h>

#include "client.h"
#include "nodes.h"

#define NUMBERED_PATHS 50u /* files, 64 reads each in turn */

/* Names file i. */
void numbered_announce(struct hr_ring_hdr *ring, unsigned i);

/* Reads number from..to-1 of 100 bytes, a third of them in ring 1. */
void numbered_reads(const struct client *c, uint64_t from, uint64_t to);

void numbered_pause_us(unsigned us);

/* seen[i]: how often number i was found. */
void numbered_each_once(const uint8_t *seen, uint64_t n, unsigned seed);

/* Reads the store and removes it. All `events` are there, each once. */
void numbered_check(struct nodes *n, uint64_t events, struct nodes_sums *sums);

#endif
