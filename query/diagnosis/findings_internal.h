/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findings_internal.h - shared by findings.c (jobs), find_waits.c (waits for batches) and
 * find_others.c (all other losses)
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_FINDINGS_INTERNAL_H
#define HEADRACE_QUERY_DIAGNOSIS_FINDINGS_INTERNAL_H

#include <stdarg.h>
#include <stdio.h>

#include "query/diagnosis/findings.h"
#include "query/diagnosis/replay.h"

#define HR_PHASES (HR_PHASE_END + 1u)

/* A job: means of its training processes, in seconds. */
struct hr_training_job {
	const struct hr_diagnosis *d;
	uint32_t stream; /* one of its streams */
	size_t lives;
	double wall, cores;
	double
	    used; /* cores that the process and its workers kept busy, at most: compute may be a wait */
	double part[HR_PHASES][HR_PART_END];
	double loops, waits;	    /* numbers, of training loops */
	uint32_t workers, prefetch; /* of the last training loop */
	bool persistent;
	bool counters; /* for some time, without single operations */
	struct hr_findings *to;
	int error;
};

/* The time of a part in all phases but validation. */
double hr__job_part(const struct hr_training_job *j, enum hr_part part);

/*
 * Means of the job's ranks. If ranks stall for others, the loops take as long as the slowest rank's
 * without its stalls. -ENOMEM.
 */
int hr__job_replay(const struct hr_training_job *j, const struct hr_setting *setting,
		   struct hr_replayed *ret);

/* NULL: the loss is too small to mention, or (j->error) out of memory. */
struct hr_finding *hr__finding_add(struct hr_training_job *j, enum hr_finding_cause cause,
				   double lost);

/* A text in the query's pool; NULL: out of memory (j->error). */
__attribute__((format(printf, 2, 3))) const char *hr__finding_text(struct hr_training_job *j,
								   const char *format, ...);

void hr__find_waits(struct hr_training_job *j);
void hr__find_others(struct hr_training_job *j);

/* What the operations of a job on files have in common: find_files.c. */
struct hr_job_files {
	size_t files;
	uint64_t reads, data_reads, bytes, opens; /* data_reads: those that returned data */
	double read_s, metadata_s, waited_s, own_s;
	const struct hr_item *slowest; /* with most waited_ns; NULL: none */
	const struct hr_item *own;     /* with most own_ns; NULL: none */
	const struct hr_item *synced;  /* with most own_sync_ns; NULL: none */
};
void hr__job_files(const struct hr_training_job *j, struct hr_job_files *ret);
/* Its path, and the mount it lies on, as texts in the query's pool; "" if unknown. */
const char *hr__item_path(struct hr_training_job *j, const struct hr_item *item);
/*
 * The deepest folder that has most of the time of all files: that of training threads outside
 * fetches (`own`), or that for which they waited. It contains `most`, the file with most of this time.
 */
const char *hr__files_folder(struct hr_training_job *j, const struct hr_item *most, bool own);
const char *hr__item_mount(struct hr_training_job *j, const struct hr_item *item);

#endif
