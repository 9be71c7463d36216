/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - one attached process: its maps, and reading its rings
 *
 * Purpose   The only code that reads what clients write. It keeps its own positions. Shared memory
 *           (slots, head, cells, counters) may have any value and may change between two reads, so
 *           this code copies and bounds each value.
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
	uint64_t tail;	     /* the next slot to read; hdr->tail is a copy for the client */
	uint64_t stalled_at; /* index of the uncommitted slot that stops the reader */
	uint64_t stalled_ns; /* since when this slot stops the reader; 0: no slot does */
	uint64_t torn_to;    /* uncommitted slots below this index are torn, and skipped */
	uint64_t lost_seen;  /* lost_total when the counters were last journaled */
	uint64_t lost_count; /* sum of the counters when they were last journaled */
	uint64_t last_end;   /* latest end of an operation that was read, in ticks */
};

/* The geometry comes from the memfd's sealed size, because the client can change the header. */
struct hr_map {
	struct hr_map_hdr *hdr;
	uint64_t inode;
	uint32_t slots_log2;
};

/*
 * For probes (feed.h): from began_ticks to covered_ticks, the shim records operations that no cell
 * shows: operations of thread `tid` or, if `offered`, of all threads.
 */
struct hr_probed {
	uint64_t image;	      /* id of the struct hr_image (bpf/probe.h); 0: no probes */
	uint64_t began_ticks; /* 0: no such operations */
	uint64_t covered_ticks;
	int32_t tid;
	bool offered;
};

struct hr_session {
	struct hr_session *next;
	uint64_t proc;
	uint64_t token;
	pid_t pid;
	bool dead;
	bool later; /* attached after the death of a process whose session is open */
	/*
	 * The client cannot ring the doorbell: it has no node page, or the page of an earlier
	 * daemon.
	 */
	bool deaf;
	bool asleep; /* the job does not record its rank, so the level stays off */
	char exit[16];
	struct hr_probed probed;
	uint64_t since_ns;    /* hr_boot_ns() when the session was made */
	uint64_t hello_ticks; /* when the client sent its hello, in ticks of its clock */
	uint64_t started_ns;  /* start of the process (hr_boot_ns()); 0: not known yet */
	uint64_t strays_seen; /* stray_total when it was last journaled */
	uint64_t strays_count;
	uint64_t excluded_seen[HR_EXCLUDED_KINDS];
	uint32_t n_maps;
	struct hr_map maps[HR_SESSION_MAPS];
	struct hr_ring_view rings[HR_SESSION_RINGS]; /* index: map * HR_MAP_RINGS + ring */
};

int hr_session_new(uint64_t proc, uint64_t token, pid_t pid, struct hr_session **ret);
void hr_session_free(struct hr_session *s); /* also unmaps the maps; accepts NULL */

/*
 * Maps a memfd of sealed size, with HR_MAP_RINGS rings of HR_RING_SLOTS_LOG2 to HR_OFFER_SLOTS_LOG2
 * slots. The caller keeps the descriptor, which may be of any kind. -EINVAL: it is no such memfd.
 */
int hr_map_open(int fd, struct hr_map *ret);
void hr_map_close(struct hr_map *map); /* accepts a zeroed struct */

/* Makes the name of a map's retained descriptor, which daemon/node/kept_maps.c parses. */
#define HR_MAP_NAME_BYTES 64u
void hr_map_name(uint64_t proc, uint32_t index, char ret[HR_MAP_NAME_BYTES]);

static inline uint64_t hr_map_size(const struct hr_map *map)
{
	return hr_map_bytes(HR_MAP_RINGS, map->slots_log2);
}

/* Adds a map whose rings are empty; the session then owns it. -ENOSPC: there are too many maps. */
int hr_session_add_map(struct hr_session *s, const struct hr_map *map);

static inline uint32_t hr_session_rings(const struct hr_session *s)
{
	return s->n_maps * HR_MAP_RINGS;
}

/* Returns whether the ring has slots to read, committed or only reserved. */
bool hr_ring_has_slots(const struct hr_ring_view *r);

/* Returns whether a ring is more than half full: then the reader must not sleep. */
bool hr_ring_half_full(const struct hr_ring_view *r);

/*
 * Counts the slots that can be read now: torn slots, and committed slots, up to the first operation
 * or region that ended after `limit`. Stops at `most` slots, but does not split a record, so a
 * single record may exceed `most`. `gone`: the owner is dead and commits nothing more. *ret_end: if
 * `most` was reached, the end of the last operation or region, else UINT64_MAX.
 */
uint32_t hr_ring_ready(struct hr_ring_view *r, uint64_t limit, uint32_t most, bool gone,
		       uint64_t now_ns, uint64_t *ret_end);

/* Returns whether an operation or a region ended after `ticks`, or a ring has slots to read. */
bool hr_session_active_after(const struct hr_session *s, uint64_t ticks);

/* Copies n slots from tail on. An uncommitted slot becomes all zero. */
void hr_ring_copy(const struct hr_ring_view *r, uint32_t n, struct hr_record *to);

/*
 * Call it when the next n slots are in the journal. The client may then reuse them. If the client
 * waits for room, this function wakes it.
 */
void hr_ring_consumed(struct hr_ring_view *r, uint32_t n);

/* If an element of lost[] has changed since the last call, returns all non-zero ones as rows. */
uint32_t hr_ring_lost(struct hr_ring_view *r, struct hr_lost_row *rows);

/* Like hr_ring_lost, for operations of unattached children (op: from HR_LOST_STRAYS on). */
uint32_t hr_session_strays(struct hr_session *s, struct hr_lost_row *rows);

/*
 * Checks the rows that hr_ring_lost or hr_session_strays returned. If a client counts more
 * operations than the node can have done since the process began, leaves only one row, which the
 * engine refuses as hostile. Returns the number of rows that are left.
 */
uint32_t hr_session_check_lost(struct hr_session *s, struct hr_lost_row *rows, uint32_t n,
			       uint64_t now_ns);

/* Returns the checked totals of opens of files that are excluded by default. False: no change. */
bool hr_session_excluded(struct hr_session *s, uint64_t ret_total[HR_EXCLUDED_KINDS]);

void hr_ring_cells(const struct hr_ring_view *r, struct hr_inflight *ret_inflight,
		   struct hr_aggregate *ret_aggregate);

/*
 * Copies the open regions of a ring's thread (the outermost first), or the open spans of a session.
 * Returns how many.
 */
uint32_t hr_ring_regions(const struct hr_ring_view *r, struct hr_region_cell *cells);
uint32_t hr_ring_deeper(const struct hr_ring_view *r); /* number of open regions without a cell */
uint32_t hr_session_spans(const struct hr_session *s, struct hr_region_cell *cells);
/* Copies the sums of the thread's short regions that no record contains yet. Returns how many. */
uint32_t hr_ring_shorts(const struct hr_ring_view *r, struct hr_region_short *cells);

/* Return the number of slots in all rings, and the number of bytes in all maps. */
uint64_t hr_session_slots(const struct hr_session *s);
uint64_t hr_session_bytes(const struct hr_session *s);

/* Sets the level in all maps. If the process is `asleep`, the level stays off. */
void hr_session_set_level(struct hr_session *s, uint32_t level);
/* Sets in all maps up to which duration threads may combine operations in one record (abi.h). */
void hr_session_set_short(struct hr_session *s, uint64_t ticks);

#endif
