/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the rows of the table from two pictures. First computes the increase of each row of the
 * picture, then adds up increases. Therefore, if the rank of a process becomes known, its earlier
 * operations count in the totals of the rank, but not as an increase.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/live_rows.h"
#include "cli/top/top.h"
#include "common/ops.h"
#include "common/map64.h"

const char *const hr_top_view_names[] = {"rank",  "worker", "process", "file",
					 "mount", "class",  "op"};
const char *const hr_top_sort_names[] = {"time", "bytes", "ops", "latency"};

bool hr_top_has_ranks(const Headrace__LiveJob *m)
{
	for (size_t i = 0; i < m->n_processes; i++)
		if (m->processes[i]->rank_plus1)
			return true;
	return false;
}

struct sums {
	const Headrace__LiveJob *m;
	enum hr_top_view view;
	struct hr_top_table *t;
	size_t room;
	struct hr_map64 by_key;
};

static struct hr_top_row *row_of(struct sums *k, uint64_t key)
{
	uint32_t i = hr_map64_get(&k->by_key, key);

	if (i != HR_MAP64_NONE)
		return &k->t->rows[i];
	if (!hr_array_reserve(k->t->rows, k->t->n, k->room))
		return NULL;
	if (hr_map64_set(&k->by_key, key, (uint32_t)k->t->n))
		return NULL;
	k->t->rows[k->t->n] = (struct hr_top_row){.key = key};
	return &k->t->rows[k->t->n++];
}

static void top_sums_add(struct hr_top_sum *s, const Headrace__LiveRow *before,
			 const Headrace__LiveRow *r)
{
	static const Headrace__LiveRow nothing;

	before = before ? before : &nothing;
	s->ops += hr_live_increase(before->count, r->count);
	s->bytes += hr_live_increase(before->bytes, r->bytes);
	s->errors += hr_live_increase(before->errors, r->errors);
	s->dur_ns += hr_live_increase(before->dur_ns, r->dur_ns);
	if (r->max_dur_ns > s->max_ns)
		s->max_ns = r->max_dur_ns;
	for (size_t i = 0; i + 1 < r->n_dur_hist; i += 2)
		s->hist[r->dur_hist[i] % HR_TOP_BINS] += r->dur_hist[i + 1];
	for (size_t i = 0; i + 1 < before->n_dur_hist; i += 2)
		s->hist[before->dur_hist[i] % HR_TOP_BINS] -= before->dur_hist[i + 1];
}

/* Sets the key of the row of a process. Returns false if the process has no row. */
static bool process_key(enum hr_top_view view, const Headrace__LiveProcess *p, uint64_t *ret)
{
	uint64_t rank = p ? p->rank_plus1 : 0, worker = p ? p->worker_plus1 : 0;

	if (view == HR_TOP_PROCESS) {
		*ret = p ? p->proc : 0;
		return p && p->pid != 0;
	}
	*ret = view == HR_TOP_RANK ? rank : rank << 32 | worker;
	return true;
}

/* Sets *ret to the row for `r`; NULL: no memory. Returns false if the view has no such row. */
static bool find_row(struct sums *k, const Headrace__LiveRow *r, struct hr_top_row **ret)
{
	const Headrace__LiveProcess *p = hr_live_process(k->m, r->proc);
	uint64_t key = 0;

	switch (k->view) {
	case HR_TOP_RANK:
	case HR_TOP_WORKER:
	case HR_TOP_PROCESS:
		if (!process_key(k->view, p, &key))
			return false;
		break;
	case HR_TOP_MOUNT:
		key = r->mount;
		break;
	case HR_TOP_CLASS:
		key = hr_op_info((uint16_t)r->op)->class;
		break;
	default:
		key = r->op;
		break;
	}
	*ret = row_of(k, key);
	if (!*ret)
		return true;
	(*ret)->process = k->view <= HR_TOP_PROCESS ? p : NULL;
	(*ret)->mount = k->view == HR_TOP_MOUNT ? hr_live_mount(k->m, r->mount) : NULL;
	(*ret)->op = (uint16_t)r->op;
	return true;
}

static int top_sums_add_rows(struct sums *k, const Headrace__LiveJob *before)
{
	size_t at = 0;

	for (size_t i = 0; i < k->m->n_rows; i++) {
		const Headrace__LiveRow *r = k->m->rows[i],
					*b = before ? hr_live_row_before(before, &at, r) : NULL;
		struct hr_top_row *row = NULL;

		top_sums_add(&k->t->all, NULL, r);
		top_sums_add(&k->t->now, b, r);
		if (k->view == HR_TOP_FILE || !find_row(k, r, &row))
			continue;
		if (!row)
			return -ENOMEM;
		top_sums_add(&row->all, NULL, r);
		top_sums_add(&row->now, b, r);
	}
	return 0;
}

static void add_wait(struct hr_top_sum *all, struct hr_top_sum *now,
		     const Headrace__LiveProcess *before, const Headrace__LiveProcess *p)
{
	static const Headrace__LiveProcess nothing;

	before = before ? before : &nothing;
	all->wait_ns += p->wait_ns;
	all->steps += p->steps;
	now->wait_ns += hr_live_increase(before->wait_ns, p->wait_ns);
	now->steps += hr_live_increase(before->steps, p->steps);
}

static int add_waits(struct sums *k, const Headrace__LiveJob *before)
{
	for (size_t i = 0; i < k->m->n_processes; i++) {
		const Headrace__LiveProcess *p = k->m->processes[i];
		const Headrace__LiveProcess *b = hr_live_process_before(before, p);
		bool lives = hr_live_lives(p);
		struct hr_top_row *row;
		uint64_t key;

		if (!p->wait_ns && !p->steps)
			continue;
		add_wait(&k->t->all, &k->t->now, b, p);
		k->t->waiters += lives;
		if (k->view > HR_TOP_PROCESS || !process_key(k->view, p, &key))
			continue;
		row = row_of(k, key);
		if (!row)
			return -ENOMEM;
		row->process = p;
		row->waiters += lives;
		add_wait(&row->all, &row->now, b, p);
	}
	return 0;
}

double hr_top_wait(const struct hr_top_sum *now, uint32_t waiters, uint64_t interval_ns)
{
	if (waiters == 0 || interval_ns == 0)
		return -1;
	return (double)now->wait_ns / (double)interval_ns / waiters;
}

/* Adds the increase of a file record. A smaller count is that of a new record. */
static void top_sums_add_use(struct hr_top_sum *s, const Headrace__LiveUse *before,
			     const Headrace__LiveUse *u)
{
	static const Headrace__LiveUse nothing;

	if (!before || before->ops > u->ops)
		before = &nothing;
	s->ops += hr_live_increase(before->ops, u->ops);
	s->bytes += hr_live_increase(before->bytes_read + before->bytes_written,
				     u->bytes_read + u->bytes_written);
	s->dur_ns += hr_live_increase(before->dur_ns, u->dur_ns);
	if (u->max_dur_ns > s->max_ns)
		s->max_ns = u->max_dur_ns;
}

static int add_uses(struct sums *k, const Headrace__LiveJob *before)
{
	size_t at = 0;

	for (size_t i = 0; i < k->m->n_uses; i++) {
		const Headrace__LiveUse *u = k->m->uses[i];
		struct hr_top_row *row = row_of(k, u->file);

		if (!row)
			return -ENOMEM;
		top_sums_add_use(&row->all, NULL, u);
		top_sums_add_use(&row->now, hr_live_use_before(before, &at, u), u);
		row->file = hr_live_file(k->m, u->file);
		row->mount = row->file ? hr_live_mount(k->m, row->file->mount) : NULL;
		row->open = row->open || u->open;
	}
	return 0;
}

static double weight(const struct hr_top_sum *s, enum hr_top_sort sort)
{
	switch (sort) {
	case HR_TOP_TIME:
		return (double)s->dur_ns;
	case HR_TOP_BYTES:
		return (double)s->bytes;
	case HR_TOP_OPS:
		return (double)s->ops;
	default:
		return s->ops ? (double)s->dur_ns / (double)s->ops : 0;
	}
}

/* Compares the sums of the interval and, if they are equal, those since the job began. */
static int by_weight(const void *a, const void *b, void *sort)
{
	const struct hr_top_row *x = a, *y = b;
	enum hr_top_sort s = *(enum hr_top_sort *)sort;
	double now[] = {weight(&x->now, s), weight(&y->now, s)};
	double all[] = {weight(&x->all, s), weight(&y->all, s)};

	if (now[0] != now[1])
		return now[0] > now[1] ? -1 : 1;
	if (all[0] != all[1])
		return all[0] > all[1] ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

static void count_processes(const Headrace__LiveJob *m, struct hr_top_table *t)
{
	struct hr_map64 ranks = {0};

	for (size_t i = 0; i < m->n_processes; i++) {
		if (m->processes[i]->rank_plus1)
			(void)hr_map64_set(&ranks, m->processes[i]->rank_plus1, 0);
	}
	t->processes = hr_live_count(m);
	t->ranks = ranks.used;
	hr_map64_done(&ranks);
}

int hr_top_sums(Headrace__LiveJob *before, Headrace__LiveJob *picture, enum hr_top_view view,
		enum hr_top_sort sort, struct hr_top_table *ret)
{
	struct sums k = {.m = picture, .view = view, .t = ret};
	int r;

	if (!hr_live_comparable(before, picture))
		before = NULL;
	*ret = (struct hr_top_table){
	    .interval_ns =
		hr_live_increase(before ? before->boot_ns : picture->since_ns, picture->boot_ns)};
	hr_live_sort(picture);
	if (before)
		hr_live_sort(before);
	count_processes(picture, ret);
	r = top_sums_add_rows(&k, before);
	if (r == 0)
		r = add_waits(&k, before);
	if (r == 0 && view == HR_TOP_FILE)
		r = add_uses(&k, before);
	hr_map64_done(&k.by_key);
	if (r < 0) {
		hr_top_table_done(ret);
		return r;
	}
	if (ret->n)
		qsort_r(ret->rows, ret->n, sizeof(*ret->rows), by_weight, &sort);
	return 0;
}

void hr_top_table_done(struct hr_top_table *t)
{
	free(t->rows);
	*t = (struct hr_top_table){0};
}

uint64_t hr_top_quantile(const struct hr_top_sum *s, double part)
{
	uint64_t all = 0, below = 0, ns;

	for (unsigned i = 0; i < HR_TOP_BINS; i++)
		all += s->hist[i];
	for (unsigned i = 0; i < HR_TOP_BINS && all; i++) {
		double rest = part * (double)all - (double)below;

		if (rest > (double)s->hist[i]) {
			below += s->hist[i];
			continue;
		}
		ns = (uint64_t)((double)(UINT64_C(1) << i) *
				(1 + (s->hist[i] ? rest / (double)s->hist[i] : 0)));
		return ns < s->max_ns ? ns : s->max_ns;
	}
	return 0;
}
