/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life.h - the life of each training thread, cut into blocks
 *
 * A life is the time from exec to exit of the thread's process.
 *
 * A training thread is a thread that reports steps, epochs or input waits, in a process that is not
 * a DataLoader worker. If several threads of a process report them, the thread with most of these
 * regions is the training thread. Its outermost regions (a wait, a checkpoint...) are blocks, and
 * so are the gaps between them. A wait for a worker is cut into several blocks: where the worker
 * began and where it ended a batch.
 *
 * Blocks of a life do not overlap, and their durations add up to the life. A gap is cut where a
 * step, an epoch or a loop begins or ends. Every other block belongs to the step in which it
 * begins. The operations that explain a block are those in its interval (scan.h).
 *
 * Call with one thread. Times are nanoseconds of the node's wall clock.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_LIFE_H
#define HEADRACE_QUERY_DIAGNOSIS_LIFE_H

#include <math.h>

#include "common/region.h"
#include "query/diagnosis/scan.h"

/* The assumed maximum of a thread's wait for one page of a mapped file, in nanoseconds. */
#define HR_FAULT_NS UINT64_C(20000000)
#define HR_NO_FETCH UINT32_MAX
#define HR_NO_LOOP  UINT32_MAX

enum hr_phase {
	HR_PHASE_START,
	HR_PHASE_TRAIN,	     /* in a loop that trains (hr_loop.trains) */
	HR_PHASE_VALIDATION, /* in another loop */
	HR_PHASE_BETWEEN,
	HR_PHASE_END
};

enum hr_block_kind {
	HR_BLOCK_GAP, /* between regions */
	/* A wait in which the worker (or the training thread itself) makes a batch. */
	HR_BLOCK_FETCH,
	/* a wait for a worker that has not made a batch since the loop began */
	HR_BLOCK_WORKER_START,
	HR_BLOCK_PREFETCH, /* a wait for a worker that had no batch to make */
	HR_BLOCK_HANDOVER, /* a wait for a batch that the worker has finished */
	HR_BLOCK_END,	   /* a wait that returned no batch at the end of a loop */
	HR_BLOCK_UNKNOWN,  /* a wait for a batch whose maker is unknown */
	/* a wait, or its first part, that cost no time, because the accelerator worked */
	HR_BLOCK_HIDDEN,
	HR_BLOCK_CREATE, /* iter() of a DataLoader */
	HR_BLOCK_OPTIMIZER,
	HR_BLOCK_BACKWARD,
	HR_BLOCK_COLLECTIVE, /* a call of torch.distributed */
	HR_BLOCK_CHECKPOINT,
	HR_BLOCK_RESTORE
};

struct hr_block {
	int64_t from, to;
	uint64_t step, epoch; /* HR_REGION_UNKNOWN: none */
	/* Index of the sums of operations: in the ops of the scan, later in hr_diagnosis.ops. */
	uint32_t ops;
	/* Index in hr_train_lives.fetches; HR_NO_FETCH if not of kind FETCH or HIDDEN. */
	uint32_t fetch;
	/* Index in hr_train_life.loops of the innermost loop, or HR_NO_LOOP. */
	uint32_t loop;
	uint8_t kind;  /* enum hr_block_kind */
	uint8_t phase; /* enum hr_phase */
};

/* What a thread used during a region, and its waits: see proto/args.def. */
struct hr_used {
	uint64_t cpu_ns; /* UINT64_MAX: unknown */
	uint64_t major_faults, core_wait_ns, sleep_ns, network_ns, lock_ns;
};

/* The making of a batch by a worker or, without workers, by the training thread in its wait. */
struct hr_fetch {
	int64_t from, to;
	uint32_t worker; /* index in hr_train_lives.workers; HR_NO_FETCH: no worker made it */
	/* Index in the ops of the scan: operations while no one waited for this batch. */
	uint32_t ops;
	union {
		/* Before the scan: the fetch has blocks and intervals until this time. */
		int64_t placed;
		struct {
			uint64_t io_ns, cached_ns; /* after the scan: as in hr_spent */
		};
	};
	uint64_t batch; /* number of the batch in its pass over the loader; UINT64_MAX: unknown */
	struct hr_used used; /* by the thread that made the batch */
	/* Its parts [first_line, first_line + n_lines) in hr_train_lives.lines; 0: no samples */
	uint32_t first_line, n_lines;
};

/* A part of a fetch, until the next one or the end of the fetch, in one line of Python. */
struct hr_line_part {
	int64_t from;
	uint32_t samples; /* that found it */
	const char *line; /* "train.py:24 collate", in the query's pool */
};

/* A line of Python in which a training thread was outside of waits, the model and other regions. */
struct hr_own_line {
	const char *line;  /* as in hr_line_part */
	const char *inner; /* the innermost line, of a library that this line called; or `line` */
	unsigned phase;	   /* HR_PHASE_START, HR_PHASE_TRAIN, HR_PHASE_VALIDATION, or: */
#define HR_OWN_BACKWARD	 100u /* in backward() */
#define HR_OWN_OPTIMIZER 101u /* in a step of an optimizer */
/* in a compiler, in a loop, after the first HR_COMPILED_BATCHES batches of its loader */
#define HR_OWN_COMPILER 102u
	const char *compiler; /* the framework that compiles; NULL: none */
	uint64_t ns, samples;
};

/* For so many batches, each function is compiled: for the second one because types differ. */
#define HR_COMPILED_BATCHES 2u

/* What a thread had done for much longer than usual at a time (a mark `hang`, proto/args.def). */
struct hr_hang {
	int64_t at; /* 0: none */
	uint64_t since_ns, usual_ns;
	enum hr_hang_in { HR_HANG_STEP, HR_HANG_WAIT, HR_HANG_FETCH, HR_HANG_GROUP } in;
	/* Texts in the query's pool; "": none. `others`: the lines of the other threads. */
	const char *line, *stack, *call, *target, *others;
};

/* What the first step of each optimizer of a process has updated (marks `optimizer`). */
struct hr_updates {
	double elements; /* numbers that they update; 0: not known */
	double idle;	 /* those in rows whose gradient was 0 */
	/* Of the optimizer that updates most: */
	uint64_t most;
	const char *type;	/* its class, escaped, in the query's pool */
	uint64_t rows, columns; /* the largest parameter that has such rows; 0: none */
	bool fused;
};

/* How much of the first batches of a process is padding (marks `padding`). */
struct hr_padding {
	/* Sums over the batches: padded sequences; their padding; and that beyond the longest. */
	double tokens, padded, beyond;
};

/* The first exception of a process that ended the making of a batch (a mark `exception`). */
struct hr_exception {
	uint64_t proc;
	int64_t at;		 /* 0: none */
	const char *type, *line; /* in the query's pool; "": unknown */
};

struct hr_worker {
	uint32_t stream, tid;
	uint64_t proc, parent;
	uint32_t first, n; /* the worker's fetches [first, first + n) in hr_train_lives.fetches */
	int32_t rank;	   /* -1: none */
	int64_t number;	   /* torch's number of the worker, within its loader; -1: unknown */
	uint64_t loader;
	struct hr_hang hang; /* of the fetch that it has not ended */
	struct hr_exception raised;
};

/* A wait of a training loop for a batch. */
struct hr_wait {
	int64_t from, to;
	int64_t cost_from; /* until this time it cost nothing, because an accelerator worked */
	uint32_t fetch;	   /* HR_NO_FETCH: unknown */
	uint64_t batch;	   /* UINT64_MAX: the wait at the end of a pass returned no batch */
};

/* A loop over a DataLoader (one pass). */
struct hr_loop {
	int64_t from, created, to;  /* `from`: begin of iter(); `created`: its end */
	uint64_t loader;	    /* UINT64_MAX: unknown */
	uint32_t workers, prefetch; /* 0: none */
	uint32_t batch_size;	    /* number of samples; 0: unknown */
	bool persistent, iterable;
	const char *made; /* the line that made the loader, in the query's pool; NULL: unknown */
	bool other_kind;  /* the domain of its waits is not PyTorch's; its settings are unknown */
	bool own;	  /* the program itself has marked its waits */
	bool trains;	  /* its loader feeds an optimizer, or steps begin with its batches */
	/* Time between waits for which the thread's CPU time is known, and this CPU time. */
	uint64_t between_ns, between_cpu_ns;
	/* CPU time of other threads of the process since the first wait. */
	uint64_t others_cpu_ns;
	uint64_t core_ns; /* how long the training thread had no core, in waits and between them */
	/* CPU time of the training thread in cpu_waits waits for batches. */
	uint64_t wait_cpu_ns, cpu_waits;
	uint64_t hidden_ns;    /* the time of its waits that cost nothing */
	struct hr_wait *waits; /* sorted by time */
	size_t n, room;
};

/*
 * Time of regions of which only the sum is known, because the recording added up short regions;
 * they began at `at` or later. Or the time of page faults before the optimizer's step at `at`.
 */
struct hr_added {
	int64_t at;
	uint64_t ns;   /* for page faults, this includes the thread's operations on files */
	uint64_t most; /* upper limit of the time after these operations were subtracted */
	uint8_t kind;  /* enum hr_block_kind; HR_BLOCK_GAP: page faults */
};

/* A call of backward(). */
struct hr_backward {
	int64_t from;
	uint64_t cpu_ns;
};

struct hr_train_life {
	uint32_t stream, tid;
	uint64_t proc;
	int32_t rank; /* -1: none */
	int64_t from, to;
	/* The process's share of the node's cores or of a CPU quota; 0: unknown. */
	double cores;
	bool quota; /* `cores` is part of a CPU quota */
	/* For how long the use of the accelerator is known, and for how long it was busy, in ns. */
	double asked_ns, busy_ns;
	struct hr_block *blocks; /* sorted by time */
	size_t n, room;
	struct hr_loop *loops; /* sorted by time */
	size_t n_loops, loops_room;
	struct hr_added *added; /* sorted by time */
	size_t n_added, added_room;
	uint64_t n_steps, steps_ns; /* number of steps, and the sum of their durations */
	uint64_t optimized;	    /* number of steps of optimizers */
	/* The calls of backward() whose CPU time is known, sorted by time; sums over them. */
	struct hr_backward *backward;
	size_t n_backward, backward_room;
	uint64_t backward_ns, backward_cpu_ns;
	struct hr_hang hang; /* of what the training thread has not ended */
	struct hr_exception raised;
	struct hr_updates updates;
	struct hr_padding padding; /* tokens 0: not known */
	uint64_t model_samples;	   /* number of samples in the model, in loops */
	struct hr_own_line *own_lines;
	size_t n_own_lines, own_lines_room;
};

/* Whether the training thread waits for a batch in this block, and the wait costs time. */
static inline bool hr_block_costs(const struct hr_block *b)
{
	return b->kind >= HR_BLOCK_FETCH && b->kind <= HR_BLOCK_UNKNOWN;
}

/* Returns the wait that contains a block; NULL: none, or it began within another wait. */
const struct hr_wait *hr_block_wait(const struct hr_train_life *life, const struct hr_block *b);

/* Returns the loader of the loop that contains a block; UINT64_MAX: no loop, or unknown. */
static inline uint64_t hr_block_loader(const struct hr_train_life *life, const struct hr_block *b)
{
	return b->loop != HR_NO_LOOP ? life->loops[b->loop].loader : UINT64_MAX;
}

/* How much a training process computes between its waits for batches. */
struct hr_main_use {
	double share;  /* the share of a core that the training thread uses; NAN: unknown */
	double others; /* the cores that its other threads use; 0: none, or unknown */
	double core; /* the share of the time in which the training thread had no core; as others */
};
/* A process computes with several threads if other threads use at least this many cores. */
#define HR_PARALLEL_CORES 0.5
struct hr_main_use hr_life_main_use(const struct hr_train_life *life);

/* Whether no earlier loop of the process has the same loader. */
bool hr__loop_is_first(const struct hr_train_life *life, const struct hr_loop *loop);

struct hr_train_lives {
	struct hr_train_life *list;
	size_t n, room;
	struct hr_worker *workers; /* sorted by stream and process */
	size_t n_workers, workers_room;
	struct hr_fetch *fetches;
	size_t n_fetches, fetches_room;
	struct hr_line_part *lines;
	size_t n_lines, lines_room;
};

#define HR_ANY_RANK INT32_MIN

/* The part of a job that a diagnosis is about. */
struct hr_scope {
	int32_t rank; /* only this rank, or HR_ANY_RANK */
	/* Seconds after the start of the job or, if negative, before its end (or now). */
	double from, to; /* NAN: the start or the end of the job */
};
/* The part of a job's time that a diagnosis is about. */
struct hr_job_span {
	int64_t from, until;
};
#define HR_SCOPE_ALL ((struct hr_scope){HR_ANY_RANK, NAN, NAN})

void hr__lives_done(struct hr_train_lives *l);

#endif
