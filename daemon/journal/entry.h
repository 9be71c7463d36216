/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry.h - entries of the journal: the inputs of the engine, in order
 *
 * Purpose   The engine's state depends only on the entries, so a replay gives the same frames with
 *           the same numbers (engine.h).
 * Owner     Plain data in the journal's memory. The attach thread writes ATTACH, the drain thread
 *           all others, under the journal's lock. Clients do not map it. But RECORDS, LOST, LEFT,
 *           LEFT_REGIONS, EXCLUDED and the hello of ATTACH contain bytes of clients, so the engine
 *           checks each field.
 *      | hr_entry 8 | fixed part of its kind | variable part | pad to 8 |
 *
 * A journal starts with START, or after a checkpoint with a snapshot: SNAP, MOUNTS, one PROC per
 * live process, FILERECS (snapshot.c has their layout).
 */
#ifndef HEADRACE_DAEMON_JOURNAL_ENTRY_H
#define HEADRACE_DAEMON_JOURNAL_ENTRY_H

#include <stdint.h>

#include "daemon/base/clock.h"
#include "daemon/base/privacy.h"
#include "proto/abi.h"

enum hr_entry_kind {
	HR_ENTRY_NONE,
	HR_ENTRY_START, /* the first entry of a stream */
	HR_ENTRY_ATTACH,
	HR_ENTRY_RECORDS, /* slots that headraced read from the rings of one session */
	/* Operations for which a ring had no room, and operations of unattached children. */
	HR_ENTRY_LOST,
	HR_ENTRY_LEFT, /* cells of a ring whose thread has ended */
	HR_ENTRY_END,
	HR_ENTRY_TICK,	 /* only the current time */
	HR_ENTRY_MOUNTS, /* mounts that headraced read from a mountinfo */
	HR_ENTRY_LEVEL,
	HR_ENTRY_KNOWN, /* ids of older files that the entry before it uses */
	HR_ENTRY_SEAL,	/* a flush: ends the open batch and frames */
	HR_ENTRY_STOP,
	HR_ENTRY_SNAP,	       /* snapshot: the numbers of the engine */
	HR_ENTRY_PROC,	       /* snapshot: a process */
	HR_ENTRY_FILERECS,     /* snapshot: file records in use, the least recently used first */
	HR_ENTRY_NOTE,	       /* a loss that headraced itself counts */
	HR_ENTRY_DESELECT,     /* a process has a rank that the job does not record */
	HR_ENTRY_EXCLUDED,     /* opens of files that are excluded by default */
	HR_ENTRY_PRIVACY,      /* privacy rules that apply to all later entries */
	HR_ENTRY_KERNEL,       /* sums of all operations of one process, as the kernel saw them */
	HR_ENTRY_TALLY,	       /* sums of operations without records, of one process */
	HR_ENTRY_LEFT_REGIONS, /* open regions of a thread or process that has ended */
	HR_ENTRY_REGION_KEYS,  /* snapshot: names of regions (regions.c) */
	HR_ENTRY_KINDS
};

#define HR_ENTRY_MOST	    ((UINT32_C(1) << 26) - 8)
#define HR_ENTRY_KINDS_MOST 64u

struct hr_entry {
	uint32_t bytes : 26; /* size with header and padding; a multiple of 8 */
	uint32_t kind : 6;
	uint32_t crc; /* see journal.h, Checksums */
};
_Static_assert(sizeof(struct hr_entry) == 8 && HR_ENTRY_KINDS <= HR_ENTRY_KINDS_MOST,
	       "entry header");

/* START: `job` is the packed JobEvent. */
struct hr_entry_start {
	struct hr_entry h;
	uint64_t next_seq;
	struct hr_clock_line line;
	struct hr_clock_sample now;
	uint32_t level;
	uint32_t job_bytes;
	uint8_t job[];
};

struct hr_entry_privacy {
	struct hr_entry h;
	struct hr_privacy_rules rules;
};

#define HR_ANCESTORS 8u

/* ATTACH: `hello` is the hello as the client sent it. */
struct hr_entry_attach {
	struct hr_entry h;
	uint64_t proc;
	uint64_t token;
	uint64_t now_ns;
	uint64_t now_ticks; /* time of the hello; now_ns is later if an offer waited */
	/* starttime of /proc/PID/stat, to recognize a reused pid; 0: the process had exited */
	uint64_t start_time;
	uint64_t exec_of; /* number of the process before its exec, or 0 */
	int32_t pid;	  /* SO_PEERCRED, so in the pid namespace of headraced */
	uint32_t uid;
	uint32_t deselected; /* 1: the job does not record the rank of the process */
	uint32_t hello_bytes;
	uint32_t cpus, first_cpu;
	uint32_t cpu_quota_milli, spare;
	int32_t ancestors[HR_ANCESTORS]; /* pids, the parent first; 0 ends the list */
	uint8_t hello[];
};

struct hr_run {
	uint16_t map;
	uint16_t ring;
	uint32_t count; /* number of slots; a torn slot (never filled) is all zero */
	uint64_t first; /* number of the first slot since the ring was made */
};

/*
 * Value of hr_run.map for records of probes (docs/probes.md), which come from no ring. An entry has
 * at most one such run. The engine merges it by time with the other runs of the entry. The run
 * begins with HR_CTL_THREAD, and does not depend on earlier runs. Its records have explicit
 * offsets. Their descriptors are those of the process or (HR_REC_VFORK) of io_uring.
 */
#define HR_MAP_KERNEL UINT16_MAX

/* RECORDS: after the array of runs, the slots of all runs follow in the same order. */
struct hr_entry_records {
	struct hr_entry h;
	uint64_t proc;
	uint64_t sweep_ticks;
	uint32_t n_runs;
	uint32_t spare;
	struct hr_run runs[];
};

/*
 * Returns the number of operations that `cpus` processors can do in this time, at 10 ns each. A
 * client that counts more has forged the count.
 */
static inline uint64_t hr_count_most(uint32_t cpus, uint64_t age_ns)
{
	return (cpus ? cpus : 1) * (age_ns / 10);
}

#define HR_TEXT_MOST 8192u /* maximum bytes of a text in slots */

/* Returns the number of slots of a text of `bytes` bytes; 0: no correct client writes this size. */
static inline uint32_t hr_text_slots(uint64_t bytes)
{
	if (bytes < 1 || bytes > HR_TEXT_MOST)
		return 0;
	return (uint32_t)((bytes + HR_TEXT_BYTES - 1) / HR_TEXT_BYTES);
}

/* Returns the duration of a record, in ticks. */
static inline uint64_t hr_record_dur(const struct hr_record *r)
{
	return (uint64_t)r->dur_hi << 32 | r->dur_lo;
}

struct hr_lost_row {
	/* The op; HR_LOST_STRAYS + op: of unattached children (only in ring 0 of map 0). */
	uint64_t op;
	struct hr_lost total; /* since the ring (or, for unattached children, the map) was made */
};
#define HR_LOST_STRAYS HR_OP_MAX

struct hr_entry_lost {
	struct hr_entry h;
	uint64_t proc;
	uint16_t map;
	uint16_t ring;
	uint32_t n;
	struct hr_lost_row rows[];
};

struct hr_entry_left {
	struct hr_entry h;
	uint64_t proc;
	uint64_t now_ticks;
	uint32_t map;
	uint32_t ring;
	struct hr_inflight inflight;
	struct hr_aggregate aggregate;
};

enum hr_left_regions {
	HR_LEFT_RANGES, /* ranges of a thread, the outermost first */
	HR_LEFT_SPANS,	/* spans of the process; map and ring are 0 */
	HR_LEFT_SHORTS	/* sums of the short regions of a thread */
};

struct hr_entry_left_regions {
	struct hr_entry h;
	uint64_t proc;
	uint64_t now_ticks;
	uint16_t map;
	uint16_t ring;
	uint32_t what; /* enum hr_left_regions */
	uint32_t n;
	uint32_t deeper; /* HR_LEFT_RANGES: number of open regions without a cell */
	union {
		struct hr_region_cell cell;
		struct hr_region_short sum;
	} cells[];
};

struct hr_entry_end {
	struct hr_entry h;
	uint64_t proc;
	uint64_t now_ns;
	char exit[16]; /* NUL-terminated; "": unknown */
};

struct hr_entry_tick {
	struct hr_entry h;
	struct hr_clock_line line;
	struct hr_clock_sample now;
};

/* `texts`: path and type without terminators, padded to 8 bytes. */
struct hr_mount_row {
	uint64_t dev; /* major << 32 | minor */
	uint32_t kernel_id;
	uint32_t id; /* mount id in the stream; 0: none yet */
	uint32_t path_bytes;
	uint32_t type_bytes;
	uint8_t texts[];
};

struct hr_entry_mounts {
	struct hr_entry h;
	uint64_t n;
	uint8_t rows[];
};

struct hr_entry_level {
	struct hr_entry h;
	uint64_t now_ns;
	uint32_t level;
	uint32_t full; /* 1: the store has reached max_bytes */
};

struct hr_known_row {
	uint64_t hash;
	uint64_t check;
	uint32_t id;
	uint16_t mount;
	uint16_t scope;
};

struct hr_entry_known {
	struct hr_entry h;
	uint64_t n;
	struct hr_known_row rows[];
};

struct hr_entry_note {
	struct hr_entry h;
	uint32_t reason; /* enum hr_loss_reason */
	/* 1: the snapshot had no room for `count` processes, so a restart loses them. */
	uint32_t snapshot;
	uint64_t count;
	/* UNATTACHED: of the hello; the process may have sent another one. pid 0: unknown. */
	int32_t pid;
	uint32_t image;
};

struct hr_entry_deselect {
	struct hr_entry h;
	uint64_t proc;
};

struct hr_entry_excluded {
	struct hr_entry h;
	uint64_t proc;
	uint64_t total[HR_EXCLUDED_KINDS]; /* counts since the map was made */
};

#define HR_TALLY_BINS 48u /* the last bin takes durations of 2^47 ns and more */

/*
 * A row of KERNEL. Its process may have ended. `file`: the hash of a path in a record of this
 * process; 0: none. A client may have written any `op` and `file`. `by_kernel` 1: `file` is the
 * hash of the name that the kernel uses, and the shim may use another name. Then the row counts for
 * a file only if a record of this stream has the same hash.
 */
struct hr_kernel_row {
	uint64_t file;
	uint64_t count;
	uint64_t bytes;
	uint64_t errors;
	uint64_t dur_ns;
	uint16_t op;
	uint16_t cause; /* enum hr_cause */
	uint32_t by_kernel;
};

struct hr_entry_kernel {
	struct hr_entry h;
	uint64_t proc;
	uint64_t n;
	struct hr_kernel_row rows[];
};

/* A row of TALLY: operations with the same op, file and size class (power of two). */
struct hr_tally_row {
	uint64_t file; /* as in struct hr_kernel_row */
	uint64_t count;
	uint64_t bytes;
	uint64_t errors;
	uint64_t dur_ns;
	uint64_t max_dur_ns;
	uint64_t first_ns; /* CLOCK_BOOTTIME at the start of the first operation */
	uint64_t last_ns;
	uint16_t op;
	uint16_t runtime; /* the file belongs to the scope `runtime` */
	uint32_t spare;
	uint32_t dur_hist[HR_TALLY_BINS];
};

struct hr_entry_tally {
	struct hr_entry h;
	uint64_t proc;
	uint64_t n;
	struct hr_tally_row rows[];
};

struct hr_entry_seal {
	struct hr_entry h;
};

struct hr_entry_stop {
	struct hr_entry h;
	uint64_t now_ns;
	char state[15];
	uint8_t cut_short; /* a bool; a damaged journal may have any value */
};

static inline uint64_t hr_entry_round(uint64_t bytes)
{
	return (bytes + 7) & ~UINT64_C(7);
}

/*
 * Returns the size of an entry's fixed part; 0 for entries of snapshots, which snapshot.c checks.
 */
static inline uint64_t hr_entry_least(uint32_t kind)
{
	static const uint16_t least[] = {
	    [HR_ENTRY_START] = sizeof(struct hr_entry_start),
	    [HR_ENTRY_ATTACH] = sizeof(struct hr_entry_attach),
	    [HR_ENTRY_RECORDS] = sizeof(struct hr_entry_records),
	    [HR_ENTRY_LOST] = sizeof(struct hr_entry_lost),
	    [HR_ENTRY_LEFT] = sizeof(struct hr_entry_left),
	    [HR_ENTRY_END] = sizeof(struct hr_entry_end),
	    [HR_ENTRY_TICK] = sizeof(struct hr_entry_tick),
	    [HR_ENTRY_MOUNTS] = sizeof(struct hr_entry_mounts),
	    [HR_ENTRY_LEVEL] = sizeof(struct hr_entry_level),
	    [HR_ENTRY_KNOWN] = sizeof(struct hr_entry_known),
	    [HR_ENTRY_STOP] = sizeof(struct hr_entry_stop),
	    [HR_ENTRY_NOTE] = sizeof(struct hr_entry_note),
	    [HR_ENTRY_DESELECT] = sizeof(struct hr_entry_deselect),
	    [HR_ENTRY_EXCLUDED] = sizeof(struct hr_entry_excluded),
	    [HR_ENTRY_PRIVACY] = sizeof(struct hr_entry_privacy),
	    [HR_ENTRY_KERNEL] = sizeof(struct hr_entry_kernel),
	    [HR_ENTRY_TALLY] = sizeof(struct hr_entry_tally),
	    [HR_ENTRY_LEFT_REGIONS] = sizeof(struct hr_entry_left_regions),
	};

	return kind < sizeof(least) / sizeof(least[0]) ? least[kind] : 0;
}

#endif
