/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss.h - the reasons why something was not recorded, and what a person reads of a loss
 *
 * proto/losses.def defines each reason once; the summary of `headrace run` and the notes of an answer use the same sentence.
 * Threads: all functions are pure.
 */
#ifndef HEADRACE_COMMON_LOSS_H
#define HEADRACE_COMMON_LOSS_H

#include <stdbool.h>
#include <stdint.h>

enum hr_loss_reason { /* in journals: numbers are never reused */
#define HR_LOSS(id, ...) HR_LOSS_##id,
#include "proto/losses.def"
		      HR_LOSS_REASONS
};

const char *hr_loss_name(enum hr_loss_reason reason);
int hr_loss_by_name(const char *name); /* enum hr_loss_reason; -ENOENT */
const char *hr_loss_sentence(enum hr_loss_reason reason);

/* Does the reason count operations of which no event is kept? A name that this version does not know does. */
bool hr_loss_is_operations(const char *name);

struct hr_loss_sum {
	const char *reason; /* a name; this version need not know it */
	uint64_t count, bytes;
	const char *program; /* the first process's; NULL: not known */
	bool totals_unsure;  /* rollups of the job may be missing, too */
};

/*
 * "12 operations (3.1 MiB): SENTENCE (ring_full); totals are too low", malloc'ed. NULL: nothing is missing, or no memory.
 */
char *hr_loss_text(const struct hr_loss_sum *loss);

#endif
