/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - the shim's side of a session, for tests; and a store for descriptors that survives the daemon
 *
 * client_fdstore_* stand in for common/fdstore.c: a daemon (a child of the test) sends descriptors to the test, which gives
 * them to the next daemon.
 */
#ifndef HEADRACE_TESTS_DAEMON_CLIENT_H
#define HEADRACE_TESTS_DAEMON_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/abi.h"

struct client {
	uint64_t token;
	uint8_t *maps[HR_SESSION_MAPS];
	unsigned n_maps;
	const struct hr_node_page *page;
	bool tsc;
};

/* One message to the daemon and its answer. 0, or the answer's -errno, or -ECONNRESET when there was none. */
int client_talk(const char *socket, const void *message, size_t bytes, struct hr_ack *ret,
		int fds[2]);

int client_attach(struct client *c, const char *socket, uint32_t flags, uint64_t parent,
		  const char *const *env);
int client_more_rings(struct client *c, const char *socket);
void client_detach(struct client *c);

struct hr_ring_hdr *client_ring(const struct client *c, unsigned map, unsigned ring);
uint64_t client_ticks(const struct client *c);

/* Commits slots to a ring; waits for room. */
void client_commit(struct hr_ring_hdr *ring, const struct hr_record *slots, unsigned n);

/* Reads of a byte at each offset of [from, to) in one file. */
void client_reads(const struct client *c, struct hr_ring_hdr *ring, uint64_t from, uint64_t to);

void client_fdstore_init(void);	  /* in the test, before daemons are forked */
void client_fdstore_gather(void); /* takes what daemons sent */
void client_fdstore_clear(void);
size_t client_fdstore_count(void);

#endif
