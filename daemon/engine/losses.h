/* SPDX-License-Identifier: Apache-2.0 */
/*
 * losses.h - sums of what was not recorded, until the next Loss frame
 *
 * Owner: the engine; drain thread. Rows with equal (proc, reason, op) are added up; readers of the
 * store also add them up.
 */
#ifndef HEADRACE_DAEMON_ENGINE_LOSSES_H
#define HEADRACE_DAEMON_ENGINE_LOSSES_H

#include <stdint.h>

#include "common/loss.h"
#include "common/map64.h"

struct hr_loss {
	uint64_t proc;
	uint32_t reason;
	uint32_t op;
	uint64_t count;
	uint64_t bytes;
	uint64_t dur_ns;
};

struct hr_losses {
	struct hr_loss *v;
	uint32_t n, room;
	struct hr_map64 by_key;
};

void hr_losses_add(struct hr_losses *l, const struct hr_loss *row);
void hr_losses_clear(struct hr_losses *l);
void hr_losses_done(struct hr_losses *l);

#endif
