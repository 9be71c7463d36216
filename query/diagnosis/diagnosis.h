/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diagnosis.h - what the training jobs of a query spent their time on
 *
 * hr_diagnosis_make reads regions and events once. Parts, findings and replays come from its result,
 * so that they show the same numbers. One thread calls; the scan of events uses all threads of the
 * query.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_DIAGNOSIS_H
#define HEADRACE_QUERY_DIAGNOSIS_DIAGNOSIS_H

#include "query/diagnosis/life.h"
#include "query/diagnosis/parts.h"
#include "query/diagnosis/stalls.h"

/* The time of a fetch, in nanoseconds: ns is the sum of all but cached and io_core. */
struct hr_spent {
	double ns;
	double io; /* its thread had an operation under way */
	/* The part of `io` that is probably CPU time, because the kernel's caches had the data. */
	double cached;
	double io_core; /* the part of `io` in which it could run and had no core */
	/* Outside operations: */
	double cpu;
	double core;		     /* it could run and had no core */
	double fault;		     /* it waited for pages of mapped files */
	double sleep, network, lock; /* it slept, or waited for a socket or a lock */
	double asleep;		     /* none of these */
	double unknown;		     /* all of it, if the thread reported no CPU time */
};

/* It neither ran nor waited for a core, a file or a page. */
static inline double hr_spent_idle(const struct hr_spent *s)
{
	return s->sleep + s->network + s->lock + s->asleep;
}

/* The time of a life, in nanoseconds. */
struct hr_part_sums {
	uint64_t ns[HR_PHASE_END + 1][HR_PART_END];
};

struct hr_diagnosis {
	struct hr_query *q;
	struct hr_scope scope;
	struct hr_train_lives lives;
	struct hr_op_scan scan;
	struct hr_spent *spent; /* of each fetch of `lives` */
	struct hr_loads loads;	/* of each mount that fetches use */
	/* of each life: */
	struct hr_cycles *cycles;
	struct hr_part_sums *sums;
	struct hr_part_sums *caused; /* stalls of other lives that this one caused, by its parts */
};

/* -ENOMEM; -EINTR after hr_query_interrupt. hr_diagnosis_done frees the result of a failure, too. */
int hr_diagnosis_make(struct hr_query *q, const struct hr_scope *scope, struct hr_diagnosis *ret);
void hr_diagnosis_done(struct hr_diagnosis *d);

/* The parts of each step of all lives; the caller frees the rows, also of a failure. -ENOMEM. */
int hr_parts_make(const struct hr_diagnosis *d, struct hr_parts *ret);

bool hr__same_job(const struct hr_query *q, uint32_t stream_a, uint32_t stream_b);

void hr__cores_find(struct hr_diagnosis *d);
int hr__spent_make(struct hr_diagnosis *d);
int hr__stalls_make(struct hr_diagnosis *d);
void hr__stalls_done(struct hr_diagnosis *d);
int hr__sums_make(struct hr_diagnosis *d);

#endif
