/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life.h - the life of each training thread, from exec to exit of its process, as blocks
 *
 * A training thread is a thread that reports steps, epochs or input waits, in a process that is not
 * a DataLoader worker. If several threads of a process report them, the thread with most of these
 * regions is the training thread. Its outermost regions (a wait, a checkpoint...) are blocks, and
 * so are the gaps between them. A wait for a batch of a worker is cut where the worker began and
 * ended the batches that it made during the wait.
 *
 * Blocks of a life do not overlap, and their durations sum to the life. A gap ends where a step, an
 * epoch or a loop begins or ends. Each other block belongs to the step in which it begins. Each
 * block refers to the interval (scan.h) whose operations explain it.
 *
 * One thread. Times: wall clock of the node, nanoseconds.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_LIFE_H
#define HEADRACE_QUERY_DIAGNOSIS_LIFE_H

#include <math.h>

#include "common/region.h"
#include "query/diagnosis/scan.h"

/* A thread is assumed to wait at most this long for one page of a mapped file. */
#define HR_FAULT_NS UINT64_C(20000000)
#define HR_NO_FETCH UINT32_MAX
#define HR_NO_LOOP  UINT32_MAX

enum hr_phase {
	HR_PHASE_START,	     /* before the first loop */
	HR_PHASE_TRAIN,	     /* in a loop over a loader that feeds an optimizer */
	HR_PHASE_VALIDATION, /* in a loop over another loader */
	HR_PHASE_BETWEEN,    /* between loops */
	HR_PHASE_END	     /* after the last loop */
};

enum hr_block_kind {
	HR_BLOCK_GAP, /* outside regions: the thread's own time */
	/* A wait while the worker makes a batch; without workers: the thread makes it. */
	HR_BLOCK_FETCH,
	HR_BLOCK_WORKER_START, /* a wait for a worker that has not yet made a batch of this pass */
	HR_BLOCK_PREFETCH,     /* a wait for a worker that had no batch to make */
	HR_BLOCK_HANDOVER,     /* a wait for a batch that the worker has finished */
	HR_BLOCK_END,	       /* a wait that returned no batch: the end of a pass */
	HR_BLOCK_UNKNOWN,      /* a wait whose fetch is unknown */
	HR_BLOCK_HIDDEN,       /* a wait that ended while the accelerator still worked */
	HR_BLOCK_CREATE,       /* iter() of a DataLoader */
	HR_BLOCK_OPTIMIZER,
	HR_BLOCK_BACKWARD,
	HR_BLOCK_COLLECTIVE, /* a call of torch.distributed */
	HR_BLOCK_CHECKPOINT,
	HR_BLOCK_RESTORE
};

struct hr_block {
	int64_t from, to;
	uint64_t step, epoch; /* HR_REGION_UNKNOWN: none */
	/* Index of the sums of the block's interval: in the scan, later in hr_diagnosis.ops. */
	uint32_t ops;
	uint32_t fetch; /* index in hr_train_lives.fetches, for HR_BLOCK_FETCH */
	/* Index in hr_train_life.loops of the innermost loop around it, or HR_NO_LOOP. */
	uint32_t loop;
	uint8_t kind;  /* enum hr_block_kind */
	uint8_t phase; /* enum hr_phase */
};

/* A batch that a worker made, or that a training thread without workers made during a wait. */
struct hr_fetch {
	int64_t from, to;
	uint32_t worker; /* index in hr_train_lives.workers; HR_NO_FETCH: no worker made it */
	/*
	 * Index in the scan of the sums for the time in which no training thread waited for this
	 * batch.
	 */
	uint32_t ops;
	union {
		/* Before the scan: blocks and intervals cover the fetch up to here. */
		int64_t placed;
		struct {
			uint64_t io_ns, cached_ns; /* after the scan: see hr_spent */
		};
	};
	uint64_t batch;	 /* number of the batch in its pass over the loader; UINT64_MAX: unknown */
	uint64_t loader; /* UINT64_MAX: unknown */
	uint64_t cpu_ns; /* CPU time of the thread that made it; UINT64_MAX: unknown */
	uint64_t major_faults, core_wait_ns;
	uint64_t sleep_ns, network_ns,
	    lock_ns; /* this thread slept, or waited for a socket or lock */
};

struct hr_worker {
	uint32_t stream, tid;
	uint64_t proc, parent;
	uint32_t first, n; /* its fetches in hr_train_lives.fetches, sorted by time */
	int32_t rank;	   /* -1: none */
	int64_t number;	   /* the number that torch gave it, within its loader; -1: unknown */
	uint64_t loader;
};

/*
 * A wait for a batch that a worker makes, or that the thread makes itself if there are no workers.
 */
struct hr_wait {
	int64_t from, to;
	uint32_t fetch; /* HR_NO_FETCH: unknown */
	uint64_t batch; /* UINT64_MAX: none, at the end of a pass */
};

/* One pass over a DataLoader. */
struct hr_loop {
	int64_t from, created, to;  /* `created`: end of iter() */
	uint64_t loader;	    /* UINT64_MAX: unknown */
	uint32_t workers, prefetch; /* 0: none */
	uint32_t batch_size;	    /* samples of a batch; 0: unknown */
	bool persistent, iterable;
	bool trains; /* an optimizer uses its batches */
	/* Between waits: the time in which the thread's CPU time is known, and this CPU time. */
	uint64_t between_ns, between_cpu_ns;
	/* CPU time of the other threads of the process, since the first wait. */
	uint64_t others_cpu_ns;
	/* In waits for batches: CPU time of the thread, and for how many waits it is known. */
	uint64_t wait_cpu_ns, cpu_waits;
	struct hr_wait *waits; /* sorted by time */
	size_t n, room;
};

/*
 * Time without a block: short regions that the recording added up, which lie somewhere after `at`,
 * or page faults before the optimizer's step that begins at `at`.
 */
struct hr_added {
	int64_t at;
	uint64_t ns;   /* for page faults, this includes operations of the thread */
	uint64_t most; /* upper limit of `ns` after these operations were subtracted */
	uint8_t kind;  /* enum hr_block_kind; HR_BLOCK_GAP: faults */
};

struct hr_train_life {
	uint32_t stream, tid;
	uint64_t proc;
	int32_t rank; /* -1: none */
	int64_t from, to;
	/*
	 * Cores that the process may use: its share of the node's cores or of a CPU quota; 0:
	 * unknown.
	 */
	double cores;
	bool quota; /* `cores` is part of a CPU quota */
	/*
	 * How long the use of the accelerator is known, and how long the accelerator was busy in
	 * that time.
	 */
	double asked_ns, busy_ns;
	struct hr_block *blocks; /* sorted by time */
	size_t n, room;
	struct hr_loop *loops; /* sorted by time */
	size_t n_loops, loops_room;
	struct hr_added *added; /* sorted by time */
	size_t n_added, added_room;
};

/* The number of the loader of a block's loop; UINT64_MAX: no loop, or unknown. */
static inline uint64_t hr_block_loader(const struct hr_train_life *life, const struct hr_block *b)
{
	return b->loop != HR_NO_LOOP ? life->loops[b->loop].loader : UINT64_MAX;
}

/* What a training process used between waits. */
struct hr_main_use {
	double share;  /* share of a core that the training thread uses; NAN: unknown */
	double others; /* cores that its other threads use; 0 also if that is unknown */
};
/* A process whose other threads use at least this many cores computes with several threads. */
#define HR_PARALLEL_CORES 0.5
struct hr_main_use hr_life_main_use(const struct hr_train_life *life);

struct hr_train_lives {
	struct hr_train_life *list;
	size_t n, room;
	struct hr_worker *workers; /* sorted by stream and process */
	size_t n_workers, workers_room;
	struct hr_fetch *fetches;
	size_t n_fetches, fetches_room;
};

#define HR_ANY_RANK INT32_MIN

/* What a diagnosis is about. */
struct hr_scope {
	int32_t rank; /* only files and samples of this rank, or HR_ANY_RANK */
	/*
	 * Seconds after the start of the job; if negative, from its end (or from now if it runs).
	 */
	double from, to; /* NAN: the start or the end of the job */
};
/* The part of a job's time that a diagnosis is about, on the wall clock. */
struct hr_job_span {
	int64_t from, until;
};
#define HR_SCOPE_ALL ((struct hr_scope){HR_ANY_RANK, NAN, NAN})

void hr__lives_done(struct hr_train_lives *l);

#endif
