/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss.h - reasons of losses, and a loss as text
 *
 * proto/losses.def defines each reason and its sentence once.
 */
#ifndef HEADRACE_COMMON_LOSS_H
#define HEADRACE_COMMON_LOSS_H

#include <stdbool.h>
#include <stdint.h>

enum hr_loss_reason { /* the numbers are stored in journals, and never reused */
#define HR_LOSS(id, ...) HR_LOSS_##id,
#include "proto/losses.def"
		      HR_LOSS_REASONS
};

const char *hr_loss_name(enum hr_loss_reason reason);
int hr_loss_by_name(const char *name);
const char *hr_loss_sentence(enum hr_loss_reason reason);
const char *hr_loss_unit(enum hr_loss_reason reason); /* what is counted, in the plural */

/* Whether the reason counts operations without an event. Also true for an unknown name. */
bool hr_loss_is_operations(const char *name);

/* Whether the reason counts processes that were never recorded, each with a row of its own. */
bool hr_loss_is_programs(const char *name);

struct hr_loss_sum {
	const char *reason; /* name of the reason, perhaps of a later version of headrace */
	uint64_t count, bytes;
	const char *program; /* the first process with this loss; NULL: unknown */
	bool totals_unsure;  /* roll-ups of the job may be missing, too */
};

/* Returns "12 operations (3.1 MiB): SENTENCE (ring_full)...", malloc'ed. NULL: none, no memory. */
char *hr_loss_text(const struct hr_loss_sum *loss);

#endif
