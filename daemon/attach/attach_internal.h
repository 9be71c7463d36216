/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach_internal.h - the attach thread's own state, shared by attach.c (connections),
 * attach_handshake.c (hellos and answers), attach_offer.c (maps that clients made), attach_client.c
 * (attached processes) and attach_lost.c (processes that are not recorded)
 */
#ifndef HEADRACE_DAEMON_ATTACH_ATTACH_INTERNAL_H
#define HEADRACE_DAEMON_ATTACH_ATTACH_INTERNAL_H

#include <pthread.h>
#include <sys/socket.h>

#include "daemon/attach/attach.h"
#include "common/map64.h"
#include "common/procfs.h"
#include "daemon/session/ringpool.h"

#define PENDING_MOST HR_PAGE_PENDING
#define MAP_BYTES    hr_map_bytes(HR_MAP_RINGS, HR_RING_SLOTS_LOG2)

/* epoll data: the kind in the upper bits, then a descriptor or an index. */
#define EV_LISTEN  (UINT64_C(1) << 32)
#define EV_STOP	   (UINT64_C(2) << 32)
#define EV_PENDING (UINT64_C(3) << 32)
#define EV_PIDFD   (UINT64_C(4) << 32)
#define EV_KIND(d) ((d) & ~UINT64_C(0xffffffff))

struct attach_client {
	uint64_t proc;
	uint64_t token;
	uint64_t bytes; /* size of the client's maps */
	pid_t pid;
	int pidfd;	/* -1: the element is unused */
	uint32_t image; /* of its hello */
	uint32_t n_maps;
	uint64_t last_inode; /* inode of the map that was added last */
};

/* A process that exited before its offer was read. Its children may still attach. */
struct exited {
	struct attach_client was; /* the client before its exit, with pidfd -1 */
	bool replaced;		  /* after an exec, the same process has attached again */
};

struct pending_attach {
	int fd; /* -1: the element is unused */
	uint64_t since_ns;
	uint8_t *notice; /* a notice (HR_HELLO_EXEC) whose program has not started; NULL: none */
	uint32_t notice_bytes;
};

struct hr_attach {
	struct hr_attach_config c;
	/* The clock's fitted line at the start. The drain thread updates the clock's own line. */
	struct hr_clock_line line;
	pthread_t thread;
	bool running;
	int listen_fd; /* the listening socket, or the reading end of the hand-off queue */
	int epoll_fd, stop_fd;
	struct hr_ringpool pool;
	bool takeover;	     /* as in the configuration; false after the first connection */
	uint64_t ring_bytes; /* size of all rings; protected by `lock` */
	uint64_t served;     /* number of connections taken from the hand-off queue; atomic */
	struct pending_attach pending[PENDING_MOST];
	unsigned n_pending;
	bool accept_failed; /* a connection waits that could not be accepted */
	unsigned n_orphans;
	uint64_t orphans_until_ns; /* until when clients may connect again (attach_lost.c) */
	uint8_t *message;	   /* buffer of HR_HELLO_MAX_BYTES + 1 bytes */
	pthread_mutex_t lock;	   /* for `clients` and `ring_bytes`, which other threads read */
	struct attach_client *clients;
	uint32_t n, room, live;
	struct hr_map64 by_pid, by_token;
	struct exited *exited; /* in the order in which they had connected */
	uint32_t n_exited, room_exited;
};

struct offer {
	int fd; /* -1: no offer */
	uint64_t token;
	struct hr_map map;
};

struct handshake {
	const struct pending_attach *pending;
	struct ucred cred;
	struct hr_hello hello;
	const uint8_t *message;
	uint32_t bytes;
	bool offered;
	struct offer offer; /* valid until a session takes its map */
	struct hr_procstat stat;
	int pidfd;	/* -1: the process has exited, or the list of clients owns the pidfd */
	uint64_t ticks; /* time of the hello or, after an offer, of the offer */
	uint64_t exec_of;
	/* The session that the drain thread gets after the answer; NULL: none. */
	struct hr_session *session;
	/* Index of the client that ended by an exec; UINT32_MAX: none. */
	uint32_t replaces;
};

/* Flags for recv. With a hand-off queue, messages stay in the socket until they are processed. */
static inline int hr__attach_read_flags(const struct hr_attach *a)
{
	return a->c.node->handoff_fd > 0 ? MSG_DONTWAIT | MSG_PEEK : MSG_DONTWAIT;
}

/* attach_handshake.c: processes the message in a->message, and answers it. */
void hr__handshake(struct hr_attach *a, const struct pending_attach *g, uint32_t bytes);

/* attach_lost.c: reserves an entry, and takes the journal's lock. NULL: the journal stays full. */
#define HR__JOURNAL_WAIT_NS UINT64_C(20000000)
void *hr__journal_reserve(struct hr_attach *a, uint64_t bytes, uint64_t wait_ns);

/*
 * Journals the loss of a process. Call it before the connection is closed, or its place in the node
 * page is given up: after a kill, the next daemon then counts the process, too. pid 0: unknown.
 */
void hr__attach_lose(struct hr_attach *a, enum hr_loss_reason reason, pid_t pid, uint32_t image);

/*
 * Orphans are connections that a killed daemon had accepted and not journaled.
 * They are lost, with any offer in them. A client that still waits connects again within a second.
 * Each other orphan is counted as missed.
 */
/* Accepts the next connection for an unused element. Returns its descriptor, or -1 and errno. */
int hr__pending_accept(struct hr_attach *a, const struct pending_attach *g);
/* Call it when the process is journaled or the connection is closed. */
void hr__pending_forget(struct hr_attach *a, const struct pending_attach *g);
/* Returns whether an orphan occupies this element, so that a new connection must not use it. */
bool hr__orphan_has(const struct hr_attach *a, const struct pending_attach *g);
/* Finds the orphans of the previous daemon, before the first connection is accepted. */
void hr__orphans_find(struct hr_attach *a);
/*
 * Call it when a process connects: then the process is no orphan. `again`: an earlier connection of
 * it was closed without an answer, so it can be the orphan without a pid.
 */
void hr__orphan_came(struct hr_attach *a, pid_t pid, bool again);
void hr__orphans_missed(struct hr_attach *a);

/*
 * attach_offer.c: stops reading from fd, and takes an offer that has arrived. Returns 0, with the
 * offered map in ret->fd (-1: no offer), or -EINVAL: the offer is invalid.
 */
int hr__offer_take(struct hr_attach *a, int fd, const struct hr_hello *hello, struct offer *ret);
/*
 * Refuses an offer: sets the level of its map to off, so that the shim stops, and closes the map.
 * Also accepts the result of a failed hr__offer_take.
 */
void hr__offer_refuse(struct offer *o);
/* Closes the descriptor of an offer whose map a session has taken. */
void hr__offer_drop(struct offer *o);
/* Returns when the client made the offer, or the current time if that time is impossible. */
uint64_t hr__offer_ticks(const struct hr_attach *a, const struct hr_hello *hello);
/*
 * Returns whether the process with this pid started after the offer. Then another process made the
 * offer.
 */
bool hr__offer_outlived(const struct hr_attach *a, uint64_t offer_ticks, uint64_t start_time);

/* attach_client.c: finds a client by pid or token. Returns NULL if it is not attached. */
struct attach_client *hr__client_by(struct hr_attach *a, const struct hr_map64 *map, uint64_t key);

/* Adds a client. After a success, the list of clients owns the pidfd. */
int hr__client_add(struct hr_attach *a, const struct attach_client *c);

/*
 * Removes exited clients, except `proc` and client `replaced`. Returns the number of exits in
 * `ret`.
 */
size_t hr__clients_end(struct hr_attach *a, uint64_t proc, uint32_t replaced,
		       struct hr_drain_end ret[HR_DRAIN_ENDS]);

/* Removes client i. `exit` NULL: the process has ended; this function reads its exit status. */
void hr__client_gone(struct hr_attach *a, uint32_t i, const char *exit);

/* Keeps the session of an exited process, because children may attach. Without memory, ends it. */
void hr__exited_add(struct hr_attach *a, const struct attach_client *was);
struct exited *hr__exited_by_pid(struct hr_attach *a, pid_t pid); /* the last one; NULL: none */
/* Finds the owner of a token, attached or exited; NULL: none. */
struct attach_client *hr__token_owner(struct hr_attach *a, uint64_t token);
void hr__exited_end(struct hr_attach *a);

/* Watches fd with epoll. `data`: EV_*. */
int hr__attach_watch(struct hr_attach *a, int fd, uint64_t data);

#endif
