/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_job.h - a job that trains on batches of a DataLoader, whose every operation is known
 *
 * Purpose   Two workers make batches of one sample each. A sample opens a file, reads it, and
 *           computes or sleeps. Tests set `plan`, and compare what queries answer.
 * Owner     The test. Threads: one.
 */
#ifndef HEADRACE_TESTS_QUERY_LOADER_JOB_H
#define HEADRACE_TESTS_QUERY_LOADER_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/query/fixture_frames.h"

#define US	UINT64_C(1000)
#define MS	UINT64_C(1000000)
#define BATCHES 40u /* of a pass */

/* What a sample does. */
struct sample {
	unsigned opens, examinations, reads; /* numbers; reads: of each open */
	uint64_t open_ns, examine_ns, read_ns;
	uint64_t read_bytes;
	uint64_t cpu_ns, sleep_ns, lock_ns, network_ns, core_ns, fault_ns;
};

/* What the training thread does besides. */
enum extra {
	NO_EXTRA,
	LISTS,	    /* examines files before the first loop */
	READS,	    /* in each step */
	SYNCS,	    /* in each step */
	COMPUTES,   /* in each step, besides backward() */
	VALIDATES,  /* in the later passes, instead of training */
	RESTORES,   /* before the first loop */
	CHECKPOINTS /* after each pass */
};

struct loader_job {
	unsigned files, passes, nodes; /* each node does the same */
	/* Decides what sample `i` of pass `pass` does, and which file of `files` it uses. */
	struct sample (*sample)(unsigned pass, unsigned i, unsigned worker, unsigned *file);
	bool (*on_scratch)(unsigned file); /* else on /data */
	bool serial;			   /* the storage serves one read at a time */
	bool killed;			   /* at its end */
	/*
	 * After the last pass, the training process and worker 0 do nothing for 5 s. After 4 s of
	 * them, they are marked `hang` with these args; NULL: nothing of this.
	 */
	const char *trains_hang, *worker_hang;
	const char *raises;	 /* a mark `exception` of worker 0 with these args, at the end */
	const char *worker_exit; /* of worker 1, in the middle of the job; NULL: as `exit` */
	bool recovers;		 /* the training process makes a step after these 5 s */
	const char *exit;	 /* of the processes; NULL: unknown */
	bool linked;		 /* the paths are links into another mount */
	bool hidden;		 /* an accelerator hides the waits */
	bool epoch;		 /* one is marked, around all passes */
	unsigned busy;	  /* for this share (in percent) of the time it is busy; 0: not known */
	uint64_t step_ns; /* the training thread takes so long for a batch */
	unsigned cpus, quota_milli;
	uint64_t start_ns;    /* of the workers, in each pass */
	uint64_t late_ns;     /* worker 1 begins so much later, in each pass */
	uint64_t handover_ns; /* of a batch */
	unsigned others;      /* cores that other threads of the training process use */
	unsigned lines;	      /* a fetch is in so many lines, one after the other; 0: no samples */
	const char *compiler; /* that line is in the compiler of this framework; NULL: in none */
	uint64_t own_ns; /* each step has one sample of another line, which stands for this time */
	unsigned unsampled; /* so many fetches without samples follow each one with samples */
	enum extra extra;
	bool iterable;	      /* the data set is */
	uint64_t wait_cpu_ns; /* of the training thread in a wait; 0: unknown */
	/* backward() of each batch, and its CPU time; the optimizer steps once for so many batches. */
	uint64_t backward_ns, backward_cpu_ns;
	unsigned accumulates;
	uint64_t optimizer_ns; /* of each step of it */
	const char *updates;   /* args of its mark; NULL: none */
	const char *padding;   /* the same for a mark `padding` */
	uint64_t no_core_ns;   /* of the training thread, before each wait */
	const char *made;      /* args of iter(): the line that made the loader; NULL: none */
	const char *python; /* it imports a file from a file system of this type before the loops */
};
extern struct loader_job plan;

/* Sets all but `files`, `passes` and `sample` to their usual values. */
void loader_job_usual(void);

/* For fixture__job_on(): sends what the job consists of. */
void loader_job_fill(struct fixture__stream *s);

#endif
