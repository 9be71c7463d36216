/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach_internal.h - the attach thread's own state, shared by attach.c (hellos, connections) and attach_client.c (who is in)
 */
#ifndef HEADRACE_DAEMON_ATTACH_INTERNAL_H
#define HEADRACE_DAEMON_ATTACH_INTERNAL_H

#include <pthread.h>

#include "daemon/attach.h"
#include "daemon/map64.h"
#include "daemon/ringpool.h"

#define GUESTS_MOST	1024u /* connections that have not said hello */
#define GUEST_NS	UINT64_C(1000000000)
#define JOURNAL_WAIT_NS UINT64_C(20000000)
#define MAP_BYTES	hr_map_bytes(HR_MAP_RINGS, HR_RING_SLOTS_LOG2)

/* epoll data: a kind in the upper bits, then a descriptor or an index. */
#define EV_LISTEN  (UINT64_C(1) << 32)
#define EV_STOP	   (UINT64_C(2) << 32)
#define EV_GUEST   (UINT64_C(3) << 32)
#define EV_PIDFD   (UINT64_C(4) << 32)
#define EV_KIND(d) ((d) & ~UINT64_C(0xffffffff))

struct client {
	uint64_t proc;
	uint64_t token;
	pid_t pid;
	int pidfd; /* -1: unused slot */
	uint32_t n_maps;
};

struct guest {
	int fd; /* -1: unused slot */
	uint64_t since_ns;
};

struct hr_attach {
	struct hr_attach_config c;
	pthread_t thread;
	bool running;
	int listen_fd, epoll_fd, stop_fd;
	struct hr_ringpool pool;
	uint64_t next_proc;
	uint64_t ring_bytes;
	struct guest guests[GUESTS_MOST];
	unsigned n_guests;
	uint8_t *message;     /* HR_HELLO_MAX_BYTES + 1 */
	pthread_mutex_t lock; /* clients, for hr_attach_pids */
	struct client *clients;
	uint32_t n, room, live;
	struct hr_map64 by_pid, by_token;
};

/* By pid or token; NULL: not attached. */
struct client *hr__client_by(struct hr_attach *a, const struct hr_map64 *map, uint64_t key);

/* Takes pidfd over on success. */
int hr__client_add(struct hr_attach *a, const struct client *c);

bool hr__client_dead(const struct client *c);

/* Forgets client i and tells the drain thread. */
void hr__client_gone(struct hr_attach *a, uint32_t i, const char *exit);

/* Adds a descriptor to the epoll set; `data`: EV_*. */
int hr__attach_watch(struct hr_attach *a, int fd, uint64_t data);

#endif
