/* SPDX-License-Identifier: Apache-2.0 */
#include "common/live_rows.h"

#include <stdlib.h>

#include "common/array.h"
#include "proto/live.h"

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_key(const Headrace__LiveRow *a, const Headrace__LiveRow *b)
{
	int r = compare_numbers(a->proc, b->proc);

	r = r ? r : compare_numbers(a->op, b->op);
	return r ? r : compare_numbers(a->mount, b->mount);
}

static int rows_by_key(const void *a, const void *b)
{
	return by_key(*(Headrace__LiveRow *const *)a, *(Headrace__LiveRow *const *)b);
}

static int by_file(const Headrace__LiveUse *a, const Headrace__LiveUse *b)
{
	int r = compare_numbers(a->proc, b->proc);

	r = r ? r : compare_numbers(a->file, b->file);
	return r ? r : compare_numbers(a->api, b->api);
}

static int uses_by_file(const void *a, const void *b)
{
	return by_file(*(Headrace__LiveUse *const *)a, *(Headrace__LiveUse *const *)b);
}

static int processes_by_number(const void *a, const void *b)
{
	return compare_numbers((*(Headrace__LiveProcess *const *)a)->proc,
			       (*(Headrace__LiveProcess *const *)b)->proc);
}

static int files_by_number(const void *a, const void *b)
{
	return compare_numbers((*(Headrace__LiveFile *const *)a)->id,
			       (*(Headrace__LiveFile *const *)b)->id);
}

void hr_live_sort(Headrace__LiveJob *m)
{
	if (m->n_rows > 0)
		qsort(m->rows, m->n_rows, sizeof(*m->rows), rows_by_key);
	if (m->n_uses > 0)
		qsort(m->uses, m->n_uses, sizeof(*m->uses), uses_by_file);
	if (m->n_processes > 0)
		qsort(m->processes, m->n_processes, sizeof(*m->processes), processes_by_number);
	if (m->n_files > 0)
		qsort(m->files, m->n_files, sizeof(*m->files), files_by_number);
}

bool hr_live_comparable(const Headrace__LiveJob *before, const Headrace__LiveJob *now)
{
	return before != NULL && before->instance == now->instance &&
	       before->since_ns == now->since_ns && before->boot_ns < now->boot_ns &&
	       now->boot_ns - before->boot_ns <= HR_LIVE_KEPT_NS;
}

const Headrace__LiveProcess *hr_live_process(const Headrace__LiveJob *m, uint64_t proc)
{
	size_t at = hr_array_search(i, m->n_processes, m->processes[i]->proc < proc);

	return at < m->n_processes && m->processes[at]->proc == proc ? m->processes[at] : NULL;
}

const Headrace__LiveFile *hr_live_file(const Headrace__LiveJob *m, uint32_t file)
{
	size_t at = hr_array_search(i, m->n_files, m->files[i]->id < file);

	return at < m->n_files && m->files[at]->id == file ? m->files[at] : NULL;
}

const Headrace__LiveMount *hr_live_mount(const Headrace__LiveJob *m, uint32_t mount)
{
	for (size_t i = 0; i < m->n_mounts; i++)
		if (m->mounts[i]->id == mount)
			return m->mounts[i];
	return NULL;
}

uint32_t hr_live_count(const Headrace__LiveJob *m)
{
	uint32_t n = m->processes_cut;

	for (size_t i = 0; i < m->n_processes; i++)
		n += hr_live_lives(m->processes[i]);
	return n;
}

const Headrace__LiveRow *hr_live_row_before(const Headrace__LiveJob *before, size_t *at,
					    const Headrace__LiveRow *r)
{
	while (before != NULL && *at < before->n_rows && by_key(before->rows[*at], r) < 0)
		(*at)++;
	if (r->proc & HR_LIVE_GROUP)
		return r;
	return before != NULL && *at < before->n_rows && by_key(before->rows[*at], r) == 0
		   ? before->rows[*at]
		   : NULL;
}

const Headrace__LiveUse *hr_live_use_before(const Headrace__LiveJob *before, size_t *at,
					    const Headrace__LiveUse *u)
{
	while (before != NULL && *at < before->n_uses && by_file(before->uses[*at], u) < 0)
		(*at)++;
	return before != NULL && *at < before->n_uses && by_file(before->uses[*at], u) == 0
		   ? before->uses[*at]
		   : NULL;
}

const Headrace__LiveProcess *hr_live_process_before(const Headrace__LiveJob *before,
						    const Headrace__LiveProcess *p)
{
	if (p->pid == 0)
		return p;
	return before != NULL ? hr_live_process(before, p->proc) : NULL;
}
