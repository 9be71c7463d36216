/* SPDX-License-Identifier: Apache-2.0 */
#include "query/diagnosis/diagnosis.h"

#include <errno.h>
#include <stdlib.h>

#include "query/tables/each.h"

/* Moves at most `ns` from s->asleep (the time for which no reason is known yet) to *to. */
static void take(struct hr_spent *s, double *to, double ns)
{
	*to = fmin(s->asleep, ns);
	s->asleep -= *to;
}

/*
 * Splits the time of the fetches [first, first + n), which are of one thread. The thread reports
 * its waits for a core only in some fetches, so the sum of these waits is spread over all fetches.
 */
static void share(struct hr_diagnosis *d, size_t first, size_t n)
{
	double left = 0, core_wait = 0, io = 0, io_core;

	for (size_t i = first; i < first + n; i++) {
		const struct hr_fetch *f = &d->lives.fetches[i];
		struct hr_spent *s = &d->spent[i];
		double cpu;

		s->ns = (double)(f->to - f->from);
		s->io = fmin((double)f->io_ns, s->ns);
		s->cached = (double)f->cached_ns;
		if (f->used.cpu_ns == UINT64_MAX) {
			s->unknown = s->ns - s->io;
			continue;
		}
		cpu = (double)f->used.cpu_ns - s->cached;
		s->cpu = cpu > 0 ? fmin(cpu, s->ns - s->io) : 0;
		left += s->ns - s->io - s->cpu;
		core_wait += (double)f->used.core_wait_ns;
		io += s->io;
	}
	io_core = io > 0 && core_wait > left ? fmin(1, (core_wait - left) / io) : 0;
	for (size_t i = first; i < first + n; i++) {
		const struct hr_used *used = &d->lives.fetches[i].used;
		struct hr_spent *s = &d->spent[i];
		double idle = s->ns - s->io - s->cpu - s->unknown;

		s->io_core = s->unknown > 0 ? 0 : s->io * io_core;
		s->core = left > 0 ? idle * fmin(1, core_wait / left) : 0;
		s->fault = fmin(idle - s->core, (double)(used->major_faults * HR_FAULT_NS));
		s->asleep = idle - s->core - s->fault;
		take(s, &s->network, (double)used->network_ns);
		take(s, &s->lock, (double)used->lock_ns);
		take(s, &s->sleep, (double)used->sleep_ns);
	}
}

static int share_worker(void *data, size_t i)
{
	struct hr_diagnosis *d = data;

	share(d, d->lives.workers[i].first, d->lives.workers[i].n);
	return 0;
}

int hr__spent_make(struct hr_diagnosis *d)
{
	const struct hr_train_lives *l = &d->lives;

	d->spent = calloc(l->n_fetches + 1, sizeof(*d->spent));
	if (d->spent == NULL)
		return -ENOMEM;
	(void)hr_each(d->q->threads, l->n_workers, share_worker, d);
	/* Fetches without a worker that follow each other are those of one training thread. */
	for (size_t i = 0, n; i < l->n_fetches; i += n) {
		n = 1;
		if (l->fetches[i].worker != HR_NO_FETCH)
			continue;
		while (i + n < l->n_fetches && l->fetches[i + n].worker == HR_NO_FETCH)
			n++;
		share(d, i, n);
	}
	return 0;
}
