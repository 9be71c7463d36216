/* SPDX-License-Identifier: Apache-2.0 */
/*
 * losses.h - what was not recorded, summed up until the next Loss frame
 *
 * Owner: the engine; drain thread. Rows of equal (proc, reason, op) add up here and again in readers.
 */
#ifndef HEADRACE_DAEMON_ENGINE_LOSSES_H
#define HEADRACE_DAEMON_ENGINE_LOSSES_H

#include <stdint.h>

#include "common/map64.h"

enum hr_loss_reason {
	HR_LOSS_RING_FULL,  /* the ring had no room: exact, per op */
	HR_LOSS_DETACHED,   /* made while no daemon was there: exact, per op */
	HR_LOSS_TORN,	    /* reserved and never committed */
	HR_LOSS_HOSTILE,    /* failed a check */
	HR_LOSS_COLLISION,  /* path hashes that met another text (nothing is lost: a second id) */
	HR_LOSS_STORE_FULL, /* frames given up because the store took none */
	HR_LOSS_MAX_SIZE,   /* events not kept past --max-size */
	HR_LOSS_RESTART,    /* processes that a restart of the daemon could not take over */
	HR_LOSS_LIMIT, /* processes and threads that got no rings: too many, or too much memory */
	HR_LOSS_JOURNAL_MEMORY, /* nothing yet: no room for a journal on disk, so a kill of the daemon would lose */
	HR_LOSS_UNATTACHED, /* processes that were gone before they could use their rings: what they did is not known */
	HR_LOSS_STRAY, /* made by forked children without a session, counted at their parent: exact, per op */
	HR_LOSS_ROLLUPS_FULL, /* operations of rollups given up because the store took none: totals are too low */
	HR_LOSS_FILES_FULL,	 /* file records given up likewise */
	HR_LOSS_JOURNAL_DAMAGED, /* what a damaged journal held: not known */
	HR_LOSS_SPOOL_FULL, /* frames given up because the spool was full: no collector took them in time */
	HR_LOSS_PROBE_FULL, /* the probes' ring buffer was full: exact, per op (docs/probes.md) */
	HR_LOSS_REGIONS, /* regions: nested too deep, too many open at once, no room in a ring or a store */
	HR_LOSS_PROBE_RESTART, /* what probes saw around a restart of the daemon: not known */
	HR_LOSS_32BIT, /* processes of 32-bit programs that probes saw: nothing of them is recorded */
	HR_LOSS_NO_PRELOAD, /* processes that were started without the shim: nothing of them is recorded */
	HR_LOSS_REASONS
};

const char *hr_loss_name(enum hr_loss_reason reason);
int hr_loss_by_name(const char *name); /* enum hr_loss_reason; -ENOENT */

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
