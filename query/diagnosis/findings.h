/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findings.h - the causes of lost time of each job, largest first
 *
 * Seconds are means over the training processes of the job. Texts are in the query's pool.
 */
#ifndef HEADRACE_QUERY_DIAGNOSIS_FINDINGS_H
#define HEADRACE_QUERY_DIAGNOSIS_FINDINGS_H

#include "query/diagnosis/diagnosis.h"

enum hr_finding_cause {
#define HR_FOUND(NAME, ...) HR_FOUND_##NAME,
#include "query/diagnosis/causes.def"
#undef HR_FOUND
	HR_FOUND_END
};

const char *hr_finding_name(enum hr_finding_cause cause);
/* Whether the lost time is a wait of the training for batches. */
bool hr_finding_is_wait(enum hr_finding_cause cause);

struct hr_finding {
	const struct hr_qstream *st; /* any stream of the job */
	enum hr_finding_cause cause;
	const char *meaning; /* what was lost, for users; never NULL after hr_findings_make() */
	double lost, wall;
	double gain_low, gain_high; /* predicted seconds that `action` saves; both 0: unknown */
	/*
	 * Why the gain can be more than the loss, or what it depends on; NULL: clear, or, before
	 * hr_findings_make() returns, that of causes.def.
	 */
	const char *gain_note;
	const char *object; /* a file or folder; NULL: none */
	const char *line;   /* a line of Python, if no file is the object; NULL: none */
	const char *mount;  /* the mount on which `object` lies; NULL: none */
	int64_t worker;	    /* torch's number of the worker, if only one is slow; otherwise -1 */
	int32_t rank;	    /* the rank that caused most of the loss; -1: no single rank did */
	const char *whose;  /* "rank N on NODE" for this rank; NULL: none */
	/* Where to look: rank, worker and file, or functions of the program; NULL: unknown. */
	const char *place;
	const char *evidence, *action, *avoid; /* texts for users; NULL: none */
};

struct hr_findings {
	struct hr_finding *list;
	size_t n, room;
};

int hr_findings_make(const struct hr_diagnosis *d, struct hr_findings *ret);
void hr_findings_done(struct hr_findings *f);

#endif
