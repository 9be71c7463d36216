/* SPDX-License-Identifier: Apache-2.0 */
/*
 * missed.c - processes that ended before headraced's answer reached them
 *
 * A client whose connection breaks connects again. If headraced is killed after it has journaled
 * the first hello, or reads this hello after the process has ended, the second hello may come
 * later. So the loss waits for some seconds.
 */
#include "daemon/engine/state.h"

#define WAIT_NS UINT64_C(5000000000)

void hr__missed_add(struct hr_engine *e, uint64_t proc, int32_t pid, uint32_t image)
{
	if (pid > 0 && e->n_missed < HR_MISSED_MOST)
		e->missed[e->n_missed++] = (struct hr_missed){e->now_ns, proc, pid, image};
	else
		hr__loss(e, proc, HR_LOSS_UNATTACHED, 0, 1);
}

void hr__missed_came(struct hr_engine *e, int32_t pid, uint32_t image)
{
	for (uint32_t i = 0; i < e->n_missed; i++) {
		const struct hr_missed *m = &e->missed[i];

		/* the node page has only the pid of a client (attach_lost.c) */
		if (m->pid != pid || (m->image != image && m->image != 0))
			continue;
		e->missed[i] = e->missed[--e->n_missed];
		return;
	}
}

void hr__missed_due(struct hr_engine *e, bool all)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < e->n_missed; i++) {
		if (all || e->now_ns - e->missed[i].since_ns > WAIT_NS)
			hr__loss(e, e->missed[i].proc, HR_LOSS_UNATTACHED, 0, 1);
		else
			e->missed[left++] = e->missed[i];
	}
	e->n_missed = left;
}
