/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rig.h - an engine on a journal in memory, fed by tests, its frames unpacked
 *
 * Time is the test's: one tick is one nanosecond, and boot time equals ticks.
 */
#ifndef HEADRACE_TESTS_DAEMON_RIG_H
#define HEADRACE_TESTS_DAEMON_RIG_H

#include "daemon/engine/engine.h"

#define RIG_FRAMES 4096u
#define RIG_SECOND UINT64_C(1000000000)
#define RIG_START  (100 * RIG_SECOND)

struct rig {
	struct hr_batch_pool *pool;
	struct hr_journal *journal;
	struct hr_engine *engine;
	uint64_t applied;
	uint64_t now; /* of the next entry */
	uint64_t next_index[64];
	uint64_t next_proc;
	struct hr_out *frames[RIG_FRAMES]; /* in order */
	unsigned n_frames;
};

void rig_init(struct rig *r);
void rig_done(struct rig *r);

/* Forgets the frames seen so far. */
void rig_clear(struct rig *r);

struct rig_hello {
	int pid;
	uint32_t image;
	int ppid;
	bool forked;
	uint64_t parent; /* proc of the parent session, when forked */
	uint64_t exec_of;
	uint64_t start_time;
	const char *exe;
	const char *cmdline;	    /* one word or more, separated by blanks */
	const char *env[8];	    /* NULL-terminated */
	const char *defaults;	    /* default excludes, commas between them */
	struct hr_counter detached; /* made before; op 0: nothing */
};

/* A process attaches; returns its number. Its token is the number + 1000. */
uint64_t rig_attach(struct rig *r, const struct rig_hello *h);
void rig_end(struct rig *r, uint64_t proc, const char *exit);
void rig_tick(struct rig *r, uint64_t now);
void rig_entry(struct rig *r, uint32_t kind, const void *entry, size_t bytes);

/* So many opens of each kind (the others 0) were left out until now. */
void rig_excluded(struct rig *r, uint64_t proc, const uint64_t *totals, unsigned n);

/* Slots of one ring (ring 0 of map 0). */
void rig_records(struct rig *r, uint64_t proc, const struct hr_record *slots, unsigned n);

/* The same, made by probes; and what the kernel has added up. */
void rig_probed(struct rig *r, uint64_t proc, const struct hr_record *slots, unsigned n);
void rig_kernel(struct rig *r, uint64_t proc, const struct hr_kernel_row *rows, unsigned n);

/* A path in slots: returns how many. *ret_hash: what records name it by. */
unsigned rig_path(struct hr_record *slots, const char *path, bool runtime);
uint64_t rig_hash(const char *path);

/* An operation that ends now (r->now moves on by dur). */
struct hr_record rig_op(struct rig *r, const char *name, const char *path, int fd, int64_t ret,
			uint64_t asked, int64_t offset, uint32_t flags, uint64_t dur);

/* Text slots behind slots[0], which gets their length. Returns the number of all slots. */
unsigned rig_text(struct hr_record *slots, const void *bytes, size_t n);

/* A key of regions, as the process announces it. */
void rig_region_key(struct rig *r, uint64_t proc, uint64_t id, uint32_t kind, const char *domain,
		    const char *category, const char *name);

/* A region without step, epoch and args that begins now. */
struct hr_record rig_region(const struct rig *r, uint64_t key, uint32_t kind, uint64_t dur);

/* Moves on to the other half: snapshot, and continues there. */
void rig_checkpoint(struct rig *r);
void rig_next_half(struct rig *r); /* the same, whether or not all processes fit */

/* The same, and then a daemon that knows only what the new half says. Forgets the frames seen so far. */
void rig_restart(struct rig *r);

/* A daemon was killed, and the next one replays this half: it makes the frames seen so far again, the same in all bytes. */
void rig_replay(struct rig *r);

/* The job now (hr_live_free), with these cells of operations in flight. */
struct hr_live_picture;
struct hr_live_cell;
struct hr_live_picture *rig_picture(struct rig *r, const struct hr_live_cell *cells, size_t n);

/* The next frame of a kind among those seen, from *at on; NULL: no more. *at: 0 at first. */
const Headrace__Frame *rig_next(const struct rig *r, Headrace__Frame__BodyCase body, unsigned *at);

/* The last Process row of proc among the frames seen, NULL: none. */
const Headrace__Process *rig_process(const struct rig *r, uint64_t proc);

/* Ticks, and returns the offset of the last event. Fails if there is none. */
int64_t rig_last_offset(struct rig *r);

/* All events seen, in order, at most max; returns how many. */
size_t rig_events(const struct rig *r, struct hr_event *events, size_t max);

/* Sum of the rows of an op in all rollup frames (histograms not summed). */
Headrace__Rollup rig_rollup(const struct rig *r, uint64_t proc, uint16_t op);

/* Sum of the KernelRecord rows of a key in all frames. */
Headrace__KernelRecord rig_kernel_record(const struct rig *r, uint64_t proc, uint32_t file,
					 const char *op, unsigned cause);

/* Sum of count of a reason in all Loss frames. */
uint64_t rig_loss(const struct rig *r, const char *reason);

/* The n-th FileRecord row of a file, by path; NULL: no more. */
const Headrace__FileRecord *rig_filerec(const struct rig *r, const char *path, unsigned nth);
uint32_t rig_file_id(const struct rig *r, const char *path);

#endif
