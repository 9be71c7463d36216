/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life.h - the life of each training thread, from exec to exit of its process, as blocks
 *
 * A training thread reports steps, epochs or input waits, and its process is no DataLoader worker.
 * If several threads of a process do, the one with most of these regions counts. Its outermost
 * regions (a wait, a checkpoint...) are blocks, and so are the gaps between them. A wait for a batch
 * of a worker is cut where the worker began and ended the batches that it made meanwhile.
 *
 * Blocks of a life do not overlap, and their durations sum to the life. A gap ends where a step, an
 * epoch or a loop begins or ends; another block belongs to the step in which it begins. Each block
 * refers to the interval (scan.h) whose operations explain it.
 *
 * One thread. Times: wall clock of the node, nanoseconds.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_LIFE_H
#define HEADRACE_QUERY_DIAGNOSIS_LIFE_H

#include <math.h>

#include "common/region.h"
#include "query/diagnosis/scan.h"

/* A page of a mapped file takes at most this long. */
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
	HR_BLOCK_GAP,	/* outside regions: the thread's own time */
	HR_BLOCK_FETCH, /* waits while its worker makes a batch; without workers: makes it itself */
	HR_BLOCK_WORKER_START, /* waits for a worker that has made no batch of the pass */
	HR_BLOCK_PREFETCH,     /* waits for a worker that has nothing to do */
	HR_BLOCK_HANDOVER,     /* waits for a batch that is made */
	HR_BLOCK_END,	       /* a wait without a batch */
	HR_BLOCK_UNKNOWN,      /* a wait whose fetch is unknown */
	HR_BLOCK_HIDDEN,       /* a wait at whose end the accelerator still worked */
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
	uint32_t ops;	      /* in the scan, later in hr_diagnosis: of its interval */
	uint32_t fetch;	      /* of HR_BLOCK_FETCH: index in hr_train_lives.fetches */
	uint32_t loop;	      /* the innermost loop around it, in hr_train_life.loops; HR_NO_LOOP */
	uint8_t kind;	      /* enum hr_block_kind */
	uint8_t phase;	      /* enum hr_phase */
};

/* A batch that a worker made, or that a training thread without workers made during a wait. */
struct hr_fetch {
	int64_t from, to;
	uint32_t worker; /* in hr_train_lives.workers; HR_NO_FETCH: no worker */
	/* In the scan: of the time in which the training thread did not wait for it. */
	uint32_t ops;
	union {
		int64_t placed; /* blocks and intervals cover its time up to here */
		struct {
			uint64_t io_ns, cached_ns; /* once the scan has ended: see hr_spent */
		};
	};
	uint64_t batch;	 /* its number in its pass; UINT64_MAX: unknown */
	uint64_t loader; /* UINT64_MAX: unknown */
	uint64_t cpu_ns; /* of its thread; UINT64_MAX: unknown */
	uint64_t major_faults, core_wait_ns;
	uint64_t sleep_ns, network_ns,
	    lock_ns; /* its thread slept, or waited for a socket or lock */
};

struct hr_worker {
	uint32_t stream, tid;
	uint64_t proc, parent;
	uint32_t first, n; /* its fetches in hr_train_lives.fetches, by time */
	int32_t rank;	   /* -1: none */
	int64_t number;	   /* torch's, in its loader; -1: unknown */
	uint64_t loader;
};

/* A wait for a batch of a worker, or without workers for the thread's own batch. */
struct hr_wait {
	int64_t from, to;
	uint32_t fetch; /* HR_NO_FETCH: unknown */
	uint64_t batch; /* UINT64_MAX: none, at the end of a pass */
};

/* One iteration over a DataLoader. */
struct hr_loop {
	int64_t from, created, to;  /* `created`: end of iter() */
	uint64_t loader;	    /* UINT64_MAX: unknown */
	uint32_t workers, prefetch; /* 0: none */
	uint32_t batch_size;	    /* samples of a batch; 0: unknown */
	bool persistent, iterable;
	bool trains; /* an optimizer uses its batches */
	/* Between waits: time for which the thread's CPU time is known, and this CPU time. */
	uint64_t between_ns, between_cpu_ns;
	uint64_t
	    others_cpu_ns; /* of the other threads of its process, since the first of these waits */
	/* In waits for batches: its CPU time, and the number of waits for which that is known. */
	uint64_t wait_cpu_ns, cpu_waits;
	struct hr_wait *waits; /* by time */
	size_t n, room;
};

/*
 * Time that lies somewhere after `at`, without a block: short regions that the recording added up,
 * or page faults before the optimizer's step that ends at `at`.
 */
struct hr_added {
	int64_t at;
	uint64_t ns;   /* of faults: and operations of the thread */
	uint64_t most; /* without the operations */
	uint8_t kind;  /* enum hr_block_kind; HR_BLOCK_GAP: faults */
};

struct hr_train_life {
	uint32_t stream, tid;
	uint64_t proc;
	int32_t rank; /* -1: none */
	int64_t from, to;
	/* That its process may use: its share of those of its node, or of a CPU quota; 0: unknown. */
	double cores;
	bool quota; /* `cores` is part of a CPU quota */
	/* The time for which the use of an accelerator is known, and for which it was busy. */
	double asked_ns, busy_ns;
	struct hr_block *blocks; /* by time */
	size_t n, room;
	struct hr_loop *loops; /* by time */
	size_t n_loops, loops_room;
	struct hr_added *added; /* by time */
	size_t n_added, added_room;
};

/* The number of the loader over which a block's loop runs; UINT64_MAX: none, or unknown. */
static inline uint64_t hr_block_loader(const struct hr_train_life *life, const struct hr_block *b)
{
	return b->loop != HR_NO_LOOP ? life->loops[b->loop].loader : UINT64_MAX;
}

/* What a training process used between waits. */
struct hr_main_use {
	double share;  /* of a core, by the training thread; NAN: unknown */
	double others; /* cores, by its other threads, as far as it is known */
};
/* The process computes with several threads if the others use so many cores. */
#define HR_PARALLEL_CORES 0.5
struct hr_main_use hr_life_main_use(const struct hr_train_life *life);

struct hr_train_lives {
	struct hr_train_life *list;
	size_t n, room;
	struct hr_worker *workers; /* by stream and process */
	size_t n_workers, workers_room;
	struct hr_fetch *fetches;
	size_t n_fetches, fetches_room;
};

#define HR_ANY_RANK INT32_MIN

/* What a diagnosis is about. */
struct hr_scope {
	int32_t rank; /* files and samples of this rank only; HR_ANY_RANK */
	/* Seconds since the start of the job; if negative, until its end (a running job's: now). */
	double from, to; /* NAN: from its start, to its end */
};
/* The part of a job's time that a diagnosis is about, on the wall clock. */
struct hr_job_span {
	int64_t from, until;
};
#define HR_SCOPE_ALL ((struct hr_scope){HR_ANY_RANK, NAN, NAN})

void hr__lives_done(struct hr_train_lives *l);

#endif
