/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - one attached process: its maps, and reading its rings
 *
 * Purpose   The only code that reads what clients write. Positions are the daemon's; all in shared
 *           memory (slots, head, cells, counters) is copied and bounded, and may change between two
 *           reads.
 * Owner     The attach thread (or recovery) makes it; then the drain thread owns it.
 * Lifetime  Until the process is gone and its rings are read, or the job ends.
 */
#ifndef HEADRACE_DAEMON_SESSION_SESSION_H
#define HEADRACE_DAEMON_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/journal/entry.h"
#include "proto/abi.h"

#define HR_SESSION_RINGS (HR_SESSION_MAPS * HR_MAP_RINGS)

struct hr_ring_view {
	struct hr_ring_hdr *hdr;
	struct hr_record *slots;
	uint64_t n_slots;
	uint64_t tail;	     /* ours; hdr->tail is for the client */
	uint64_t stalled_at; /* index of an uncommitted slot that blocks */
	uint64_t stalled_ns; /* since when; 0: none does */
	uint64_t torn_to;    /* uncommitted slots below this index are skipped */
	uint64_t lost_seen;  /* lost_total when the counters were last journaled */
	uint64_t lost_count; /* the sum of the counters then */
	uint64_t last_end;   /* ticks: the end of the last operation that was read */
};

/* The client can change the header, so the sealed size gives the geometry. */
struct hr_map {
	struct hr_map_hdr *hdr; /* NULL: none */
	uint64_t inode;		/* of its memfd */
	uint32_t slots_log2;
};

/*
 * For probes (feed.h): operations that the shim records although no cell shows them, between the
 * two times; in thread `tid`, or, for an offer, in all threads.
 */
struct hr_probed {
	uint64_t image;	      /* of bpf/probe.h; 0: no probes */
	uint64_t began_ticks; /* 0: nothing */
	uint64_t covered_ticks;
	int32_t tid;
	bool offered;
};

struct hr_session {
	struct hr_session *next;
	uint64_t proc;
	uint64_t token;
	pid_t pid;
	bool dead;  /* the process has ended */
	bool later; /* attached after the death of a process that is not finished yet */
	/* it cannot ring the doorbell: it has that of an earlier daemon, or none (offered) */
	bool deaf;
	bool asleep; /* deselected: its level stays off */
	char exit[16];
	struct hr_probed probed;
	uint64_t since_ns;    /* hr_boot_ns() when it was made */
	uint64_t hello_ticks; /* when the process sent its hello, according to the client */
	uint64_t started_ns;  /* start of the process, on that clock; 0: not read yet */
	uint64_t strays_seen; /* stray_total when they were last journaled */
	uint64_t strays_count;
	uint64_t excluded_seen[HR_EXCLUDED_KINDS];
	uint32_t n_maps;
	struct hr_map maps[HR_SESSION_MAPS];
	struct hr_ring_view rings[HR_SESSION_RINGS]; /* index: map * HR_MAP_RINGS + ring */
};

int hr_session_new(uint64_t proc, uint64_t token, pid_t pid, struct hr_session **ret);
void hr_session_free(struct hr_session *s); /* unmaps; accepts NULL */

/*
 * Maps a memfd, which may be anything: HR_MAP_RINGS rings of HR_RING_SLOTS_LOG2 to
 * HR_OFFER_SLOTS_LOG2 slots, of sealed size. The caller keeps the descriptor. -EINVAL: no such map.
 */
int hr_map_open(int fd, struct hr_map *ret);
void hr_map_close(struct hr_map *map); /* accepts one that was never opened */

/* Name of a map's descriptor in the descriptor store; daemon/node/kept_maps.c parses it. */
#define HR_MAP_NAME_BYTES 64u
void hr_map_name(uint64_t proc, uint32_t index, char ret[HR_MAP_NAME_BYTES]);

static inline uint64_t hr_map_size(const struct hr_map *map)
{
	return hr_map_bytes(HR_MAP_RINGS, map->slots_log2);
}

/* Takes over a map whose rings are at position 0; -ENOSPC: there are too many. */
int hr_session_add_map(struct hr_session *s, const struct hr_map *map);

static inline uint32_t hr_session_rings(const struct hr_session *s)
{
	return s->n_maps * HR_MAP_RINGS;
}

/* Whether the ring has slots to read: committed, or reserved. */
bool hr_ring_has_slots(const struct hr_ring_view *r);

/* Whether a ring is more than half full: the reader must not sleep. */
bool hr_ring_half_full(const struct hr_ring_view *r);

/*
 * Slots that can be read now: committed or torn, of operations that ended by `limit`. At most
 * `most`, but at least one record: a control record or a pair is never split. `gone`: the owner is
 * dead, and commits no more. *ret_end: the end of the last operation if `most` was reached, else
 * UINT64_MAX.
 */
uint32_t hr_ring_ready(struct hr_ring_view *r, uint64_t limit, uint32_t most, bool gone,
		       uint64_t now_ns, uint64_t *ret_end);

/* Whether an operation ended after that, or its rings are not read to the end. */
bool hr_session_active_after(const struct hr_session *s, uint64_t ticks);

/* Copies n slots from tail; an uncommitted one becomes all zero. */
void hr_ring_copy(const struct hr_ring_view *r, uint32_t n, struct hr_record *to);

/* n slots are in the journal: the client may reuse them, and wakes if it waits. */
void hr_ring_consumed(struct hr_ring_view *r, uint32_t n);

/* Non-zero rows of lost[], if any has changed since the last call; at most HR_OP_MAX. */
uint32_t hr_ring_lost(struct hr_ring_view *r, struct hr_lost_row *rows);

/* The same for strays: ops from HR_LOST_STRAYS on. */
uint32_t hr_session_strays(struct hr_session *s, struct hr_lost_row *rows);

/*
 * Checks such rows, the session's latest. If a client counts more than the node can have done since
 * the process began, one row is left, which the engine refuses as hostile. Returns how many are
 * left.
 */
uint32_t hr_session_check_lost(struct hr_session *s, struct hr_lost_row *rows, uint32_t n,
			       uint64_t now_ns);

/* Opens that default excludes left out, checked as above; false: unchanged. */
bool hr_session_excluded(struct hr_session *s, uint64_t ret_total[HR_EXCLUDED_KINDS]);

void hr_ring_cells(const struct hr_ring_view *r, struct hr_inflight *ret_inflight,
		   struct hr_aggregate *ret_aggregate);

/* Open regions: of the ring's thread, outermost first; of the process. Returns how many. */
uint32_t hr_ring_regions(const struct hr_ring_view *r, struct hr_region_cell *cells);
uint32_t hr_ring_deeper(const struct hr_ring_view *r); /* those without a cell */
uint32_t hr_session_spans(const struct hr_session *s, struct hr_region_cell *cells);
/* Short regions of the thread that are in no record yet. */
uint32_t hr_ring_shorts(const struct hr_ring_view *r, struct hr_region_short *cells);

/* Slots of all its rings, bytes of all its maps. */
uint64_t hr_session_slots(const struct hr_session *s);
uint64_t hr_session_bytes(const struct hr_session *s);

/* Sets the level in all maps; off while the process sleeps. */
void hr_session_set_level(struct hr_session *s, uint32_t level);
/* Sets what threads may combine (abi.h), in all maps. */
void hr_session_set_short(struct hr_session *s, uint64_t ticks);

#endif
