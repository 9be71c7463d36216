/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - the sums of a running job (proto/live.proto, `headrace top`)
 *
 * Purpose   The engine sends and drops the rows of a window; their sums stay here. A picture has
 *           these sums, the open windows, the file records in use, and operations in flight.
 * Owner     The engine; drain thread. The store does not depend on the sums. After a restart they
 *           begin where the journal begins, and `whole` is false.
 * Cost      An addition per row of a window (every 10 s). The drain thread makes a picture between
 *           two sweeps; the requesting thread packs it.
 *      row of a window --sent--> row of (proc, op, mount)
 *      process ends    --------> its identity is kept; after HR_LIVE_KEPT_NS its rows are added to
 *                                those of the group of its (rank, worker)
 *      too many rows   --------> rows of further processes have no process (proc 0)
 */
#ifndef HEADRACE_DAEMON_ENGINE_LIVE_H
#define HEADRACE_DAEMON_ENGINE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/map64.h"
#include "common/rollup.h"
#include "proto/abi.h"
#include "proto/live.h"
#include "proto/live.pb-c.h"

#define HR_LIVE_BINS	  40u /* durations of 2^39 ns and more share the last bin */
#define HR_LIVE_ROWS_MOST 32768u
/*
 * Maximum number of entries of `ended`: ended processes, and groups of processes of a (rank,
 * worker) that ended more than HR_LIVE_KEPT_NS ago.
 */
#define HR_LIVE_ENDED_MOST 4096u
/* if there are more ended processes than this, the oldest are added to groups */
#define HR_LIVE_ENDED_MANY 256u

struct hr_live_row {
	uint64_t proc;
	uint16_t op;
	uint16_t mount;
	uint64_t count, bytes, errors, dur_ns, max_dur_ns;
	uint64_t dur_hist[HR_LIVE_BINS];
};

/* An ended process or, if pid is 0, a group of `ended` processes. */
struct hr_live_ended {
	uint64_t proc;
	uint64_t start_ns, end_ns;
	int32_t pid;
	uint32_t rank_plus1, local_plus1, worker_plus1;
	uint32_t ended;
	uint64_t wait_ns, steps;
	char name[32];
};

struct hr_live {
	struct hr_live_row *v;
	uint32_t n, room;
	struct hr_map64 by_key;
	struct hr_live_ended *ended;
	uint32_t n_ended, n_groups; /* the groups precede the ended processes in `ended` */
	struct hr_map64 by_ended;
	uint64_t since_ns; /* start of the sums; 0: the job has not begun */
	bool whole;	   /* the sums include everything since the job began */
	bool cut;	   /* there were too many keys, so some rows have proc 0 */
	bool failed;	   /* out of memory: the sums are too small */
};

/*
 * Finds or makes the row of a key, and returns its index. If there are too many rows, the key has
 * proc 0. UINT32_MAX: no memory.
 */
uint32_t hr_live_row(struct hr_live *l, uint64_t proc, uint16_t op, uint16_t mount);

void hr_live_add(struct hr_live_row *row, const struct hr_rollup *r);

/*
 * Keeps the identity of an ended process. If there are many, adds processes that ended earlier to
 * groups.
 */
void hr_live_end(struct hr_live *l, const struct hr_live_ended *who);

void hr_live_done(struct hr_live *l);

struct hr_live_cell {
	uint64_t proc;
	uint32_t map, ring;
	uint64_t age_ns;
	struct hr_inflight cell;
};

struct hr_live_picture {
	struct hr_arena arena;
	Headrace__LiveJob m;
};

void hr_live_free(struct hr_live_picture *p); /* accepts NULL */

/* Packs a picture into malloc'ed bytes. Returns 0 or -ENOMEM. */
int hr_live_pack(const struct hr_live_picture *p, uint8_t **ret, size_t *ret_bytes);

#endif
