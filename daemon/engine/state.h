/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - the engine's state, for the engine's files only. One thread at a time. */
#ifndef HEADRACE_DAEMON_ENGINE_STATE_H
#define HEADRACE_DAEMON_ENGINE_STATE_H

#include "daemon/base/clock.h"
#include "daemon/engine/engine.h"
#include "common/filerec.h"
#include "daemon/engine/kernel.h"
#include "daemon/engine/live.h"
#include "daemon/engine/losses.h"
#include "daemon/engine/mounts.h"
#include "daemon/engine/names.h"
#include "daemon/engine/paths.h"
#include "daemon/engine/position.h"
#include "common/ranks.h"
#include "daemon/engine/regions.h"
#include "common/rollup.h"
#include "common/save.h"

#define HR_PROC_RINGS	   (HR_SESSION_MAPS * HR_MAP_RINGS)
#define HR_PROC_TEXT	   4096u /* maximum bytes of the executable's path or command line */
#define HR_PROC_COLLISIONS 16u
#define HR_PROC_SPAWNED	   4096u
#define HR_RING_SEEN	   4u
/* A total of a client may grow by at most this much between two reads. */
#define HR_COUNT_MOST (UINT64_C(1) << 56)

enum hr_proc_kind {
	HR_PROC_MAIN,	    /* started by exec */
	HR_PROC_FORK,	    /* forked from a recorded process, and runs the same program */
	HR_PROC_SPAWN,	    /* started by multiprocessing with exec (start method spawn) */
	HR_PROC_FORKSERVER, /* multiprocessing's fork server: starts workers of its parent */
	HR_PROC_TOOL	    /* the resource_tracker of multiprocessing */
};

/* What the ranks and worker numbers of a process need to know of its base. */
struct hr_base {
	uint32_t rank_plus1;
	uint8_t in_loader;   /* it reports that it is a DataLoader worker itself */
	uint8_t has_loaders; /* a child has reported that it is a DataLoader worker */
	uint8_t has_workers; /* its children may be workers */
};

/* The part of a process that a snapshot copies unchanged. */
struct hr_identity {
	uint64_t proc;
	uint64_t token;
	uint64_t parent;	 /* number of the parent; 0: not recorded */
	uint64_t base;		 /* number of the process whose worker this may be; 0: none */
	struct hr_base base_was; /* the base, after the engine has removed it */
	uint64_t exec_of;
	uint64_t start_ns;
	uint64_t start_time;		      /* the starttime of /proc/PID/stat */
	int64_t cover;			      /* thread of struct hr_item_cover, if `covered` */
	uint64_t min_ticks;		      /* no record of a correct client began earlier */
	uint64_t excluded[HR_EXCLUDED_KINDS]; /* opens of files excluded by default */
	int32_t pid, ppid;
	uint32_t image; /* of the hello */
	uint32_t uid;
	uint32_t kind; /* enum hr_proc_kind */
	struct hr_rank env;
	uint32_t inferred_plus1;
	uint32_t rank_plus1, local_plus1, world;
	uint32_t worker_plus1;
	uint32_t cpus, first_cpu; /* struct hr_affinity */
	uint32_t cpu_quota_milli;
	uint8_t source;	 /* enum hr_rank_from */
	uint8_t wrapper; /* a shell or launcher: its children are not its workers */
	uint8_t read_data;
	uint8_t rendezvous; /* MASTER_ADDR or MASTER_PORT is set */
	uint8_t deselected;
	uint8_t restart_plus1; /* number of restarts by its launcher + 1; 255: 254 or more */
	uint8_t probed;
	uint8_t covered;
	uint8_t has_loaders;
	uint8_t trains; /* it has made steps */
};

enum hr_rank_from { HR_RANK_NONE, HR_RANK_ENV, HR_RANK_INFERRED, HR_RANK_INHERITED };

/* The part of a ring's state that a snapshot copies unchanged. */
struct hr_ring_kept {
	uint64_t next; /* number of the next slot since the ring was made */
	uint32_t tid;
	uint32_t aggregate_gen;
	uint32_t n_lost;
	uint32_t n_seen;
	/* the last region read; the cell of a dead owner may contain it again (regions.c) */
	uint64_t last_region;
	/* The last operations read. The cell of a dead owner may contain one of them again. */
	uint64_t seen[HR_RING_SEEN];
};

struct hr_ring_state {
	struct hr_ring_kept kept;
	uint32_t source; /* HR_EV_BPF if probes made the records */
	uint32_t task;	 /* index in the open batch; valid if task_batch is the batch's number */
	uint64_t task_batch;
	struct hr_lost_row *lost; /* the totals of each op at the last read; kept.n_lost rows */
};

/* A spawned child of a process without a rank. Children that started earlier have lower ranks. */
struct hr_spawned {
	uint64_t start_time;
	uint64_t proc;
	int64_t pid;
};

/* What a process has done for much longer than usual, and has not ended. */
struct hr_proc_hang {
	uint64_t since_ns; /* boot clock; 0: the process does not hang */
	uint64_t at_ns;	   /* of its last mark */
	char work[8];	   /* step, wait, fetch or group */
	char line[HR_HANG_LINE];
};

struct hr_proc {
	struct hr_identity id;
	struct hr_proc *next, *prev; /* in order of attaching */
	char *exe, *cmdline;
	size_t exe_bytes, cmdline_bytes;
	/* The patterns that `id.excluded` counts, as the client sent them; each ends with NUL. */
	char *defaults;
	size_t defaults_bytes;
	struct hr_ring_state *rings; /* index: map * HR_MAP_RINGS + ring */
	uint32_t n_rings;
	struct hr_positions positions;
	struct {
		uint64_t hash;
		uint32_t path;
	} collisions[HR_PROC_COLLISIONS]; /* hashes that mean another file than elsewhere */
	uint32_t n_collisions;
	struct hr_spawned *spawned;
	uint32_t n_spawned;
	uint64_t last_hash; /* cache: the file of the last record */
	uint32_t last_path;
	uint32_t last_filerec;
	uint32_t slot;
	bool dirty;
	struct hr_proc *next_dirty;
	bool excluded_unsent;
	uint64_t end_ns;
	char exit[16];
	uint32_t rollup_of[HR_OP_MAX];
	/* For pictures (live.h); the store does not depend on these. */
	uint64_t wait_ns, steps, waiting_since_ns;
	struct hr_save save;
	struct hr_proc_hang hang;
};

/* What an op does to descriptors, in addition to its class. */
enum hr_fd_effect {
	HR_FD_NONE,
	HR_FD_MOVE, /* read, write: moves the position unless the call has an offset */
	HR_FD_OPEN,
	HR_FD_CLOSE,
	HR_FD_DUP,    /* ret is the new descriptor */
	HR_FD_FCNTL,  /* a dup if flags is F_DUPFD... */
	HR_FD_STREAM, /* fdopen: flags are those of the mode */
	HR_FD_LSEEK,  /* ret is the position */
	HR_FD_FSEEK   /* offset and whence; ret 0 */
};

/* The properties of an op. They fit into one word, so that one load reads them. */
struct hr_op_trait {
	uint8_t class; /* enum hr_class; HR_CLASS_NONE: no correct client records such an op */
	uint8_t api;
	uint8_t bytes_rule;
	uint8_t effect; /* enum hr_fd_effect */
};

#define HR_MISSED_MOST 64u

/* A process whose hello was read too late. It was recorded if it sent another hello in time. */
struct hr_missed {
	uint64_t since_ns;
	uint64_t proc; /* 0: it has no number */
	int32_t pid;
	uint32_t image;
};

struct hr_engine {
	struct hr_batch_pool *pool;
	struct hr_out_list out;
	struct hr_engine_stats stats;
	uint32_t hanging; /* processes with hr_proc.hang */
	Headrace__JobEvent *job;
	uint32_t level;
	uint64_t level_since_ns;
	uint64_t next_seq;
	uint64_t last_proc;
	struct hr_last_hello last_hello;
	struct hr_clock_line line;
	struct hr_clock_sample now;
	uint64_t now_ns;
	struct hr_proc *first, *last;
	struct hr_proc **slots;
	uint32_t n_slots, room_slots;
	uint32_t *unused; /* indexes of unused slots; the array has room for all slots */
	uint32_t n_unused;
	struct hr_map64 by_proc, by_token, by_pid;
	struct hr_proc *dirty, *last_dirty; /* in the order in which they became dirty */
	uint32_t n_dirty;
	bool excluded_unsent; /* a process has counts of excluded opens that were not sent */
	bool ranks_changed;
	struct hr_paths paths;
	struct hr_mounts mounts;
	uint64_t mounts_wanted; /* number of a process that uses an unknown mount; 0: none */
	struct hr_rollups rollups;
	struct hr_filerecs filerecs;
	struct hr_names names;
	struct hr_live live;
	struct hr_kernel_sums kernel;
	struct hr_region_state regions;
	struct hr_losses losses;
	struct hr_missed missed[HR_MISSED_MOST];
	uint32_t n_missed;
	struct hr_batch *batch;
	uint64_t batch_number;
	struct hr_op_trait trait[HR_OP_MAX];
	struct hr_privacy_rules privacy_rules;
	struct hr_privacy *privacy; /* NULL: nothing is hidden */
	uint64_t left_out;
	bool stopped;
	bool failed; /* memory ran out: the state no longer matches the entries */
};

/* counts.c: processes that ended before the answer */
void hr__missed_add(struct hr_engine *e, uint64_t proc, int32_t pid, uint32_t image);
void hr__missed_came(struct hr_engine *e, int32_t pid, uint32_t image); /* it is recorded */
/* Counts those that did not come as losses. `all`: now, otherwise after some seconds. */
void hr__missed_due(struct hr_engine *e, bool all);

/* engine_attach.c */
int hr__apply_attach(struct hr_engine *e, const struct hr_entry_attach *in);

/* process.c */
struct hr_proc *hr__proc_find(const struct hr_engine *e, uint64_t proc);
struct hr_proc *hr__proc_by(const struct hr_engine *e, const struct hr_map64 *map, uint64_t key);
struct hr_proc *hr__proc_new(struct hr_engine *e, const struct hr_identity *id);
void hr__proc_dirty(struct hr_engine *e, struct hr_proc *p);
/* Removes p from the maps by pid and token, but hr__proc_find still finds p. */
void hr__proc_forget(struct hr_engine *e, struct hr_proc *p);
void hr__proc_free(struct hr_engine *e, struct hr_proc *p);
struct hr_ring_state *hr__ring(struct hr_proc *p, uint32_t map, uint32_t ring);
/* counts.c: whether a count of losses is not of operations. *ret: its reason. */
bool hr__counts_no_operations(uint32_t op, enum hr_loss_reason *ret);
static inline void hr__loss(struct hr_engine *e, uint64_t proc, enum hr_loss_reason reason,
			    uint32_t op, uint64_t count)
{
	hr_losses_add(&e->losses,
		      &(struct hr_loss){.proc = proc, .reason = reason, .op = op, .count = count});
}

/* emit.c: frames from the state */
void hr__emit_batch(struct hr_engine *e); /* sends names, then the open batch */
void hr__emit_names(struct hr_engine *e); /* sends Processes and Paths frames */
void hr__emit_rollups(struct hr_engine *e, uint64_t up_to_window);
void hr__emit_filerecs(struct hr_engine *e, const uint32_t *indexes, size_t n);
/* Sends and removes the file records that are due (hr_filerecs_due), one frame at a time. */
void hr__flush_idle(struct hr_engine *e);
void hr__emit_losses(struct hr_engine *e);
void hr__emit_job(struct hr_engine *e, const char *state, uint64_t end_ns);
void hr__emit_levels(struct hr_engine *e, uint64_t end_ns);
void hr__emit_end(struct hr_engine *e, const char *state, bool cut_short);

/* out.c: begins a frame with the current clock. NULL: no memory. */
struct hr_out *hr__out_begin(struct hr_engine *e, Headrace__Frame__BodyCase body);
/* Begins a frame with an empty message of this kind, which it returns. NULL: no memory. */
void *hr__out_message(struct hr_engine *e, Headrace__Frame__BodyCase body,
		      const ProtobufCMessageDescriptor *kind, struct hr_out **ret);
void hr__out_end(struct hr_engine *e, struct hr_out *o);

/* Copies the part of a path or command line that may be stored (privacy.h) into the arena. */
ProtobufCBinaryData hr__kept_path(const struct hr_engine *e, struct hr_arena *a, const void *path,
				  size_t bytes);
ProtobufCBinaryData hr__kept_command(const struct hr_engine *e, struct hr_arena *a,
				     const void *line, size_t bytes);

/* live_make.c: add a window or process to the sums of the running job before it is dropped */
void hr__live_window(struct hr_engine *e, uint64_t window);
void hr__live_end(struct hr_engine *e, const struct hr_proc *p);

/* attribute.c */
void hr__attribute_attach(struct hr_engine *e, struct hr_proc *p, bool forked,
			  uint64_t parent_token, const int32_t *ancestors);
/* Returns whether p has reported that it is a DataLoader worker. Its children are not workers. */
bool hr__loader_worker(const struct hr_engine *e, const struct hr_proc *p);
/* Call it before p is removed: the children of p keep what they need to know of it. */
void hr__attribute_remove(struct hr_engine *e, struct hr_proc *p);
void hr__attribute_env(struct hr_engine *e, struct hr_proc *p, const char *text, size_t bytes);
/* Call it when p first reads a data file. */
void hr__attribute_read(struct hr_engine *e, struct hr_proc *p);

/* The process has made a step. Call this for its first one. */
void hr__attribute_trains(struct hr_engine *e, struct hr_proc *p);
const char *hr__rank_source(const struct hr_proc *p);

/* regions.c */
struct fold;
void hr__region_take(struct fold *f, const struct hr_record *r,
		     const uint8_t *text); /* NULL: none */
void hr__region_key_take(struct fold *f, const struct hr_record *r, const uint8_t *text);
int hr__apply_left_regions(struct hr_engine *e, const struct hr_entry_left_regions *in);
void hr__emit_regions(struct hr_engine *e);
void hr__regions_due(struct hr_engine *e); /* seals a frame that is old enough */
void hr__regions_end(struct hr_engine *e, const struct hr_proc *p);

/* hangs.c: a mark `hang`; a region that may be the end of what hung; the process has ended */
void hr__hang_note(struct hr_engine *e, struct hr_proc *p, uint64_t at_ns, const void *args,
		   size_t bytes);
void hr__hang_region(struct hr_engine *e, struct hr_proc *p, const struct hr_region *g);
void hr__hang_end(struct hr_engine *e, struct hr_proc *p);

/* counts.c */
int hr__apply_lost(struct hr_engine *e, const struct hr_entry_lost *in);
int hr__apply_excluded(struct hr_engine *e, const struct hr_entry_excluded *in);
/* Marks unsent counts of excluded opens for the next Processes frame. */
void hr__excluded_due(struct hr_engine *e);
/* Returns the pattern that excluded[kind] counts; an empty text: it has no count of its own. */
const char *hr__excluded_pattern(const struct hr_proc *p, uint32_t kind, size_t *ret_bytes);

/* kernel.c */
void hr__emit_kernel(struct hr_engine *e);
int hr__apply_kernel(struct hr_engine *e, const struct hr_entry_kernel *in);
int hr__apply_tally(struct hr_engine *e, const struct hr_entry_tally *in);

/* records.c */
void hr__apply_records(struct hr_engine *e, const struct hr_entry_records *in);
void hr__apply_left(struct hr_engine *e, const struct hr_entry_left *in);
void hr__traits_init(struct hr_engine *e);

/* snapshot.c */
/* Replaces the job by a packed JobEvent. False: it cannot be unpacked. */
bool hr__job_set(struct hr_engine *e, const uint8_t *packed, uint64_t bytes);
int hr__apply_snap(struct hr_engine *e, const struct hr_entry *entry);
int hr__apply_proc(struct hr_engine *e, const struct hr_entry *entry);
int hr__apply_filerecs(struct hr_engine *e, const struct hr_entry *entry);
void hr__procs_clear(struct hr_engine *e);
/* Reads the next frame number and the file table's epoch of a SNAP entry. False: another kind. */
bool hr__snap_read(const struct hr_entry *entry, uint64_t *ret_next_seq, uint32_t *ret_epoch);

#endif
