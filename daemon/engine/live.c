/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of a running job, including those of processes that have ended. */
#include "daemon/engine/live.h"

#include "common/array.h"

/* ---- rows ------------------------------------------------------------------------------------ */

static uint64_t live_key(uint64_t proc, uint16_t op, uint16_t mount)
{
	return hr_mix64(proc) ^ hr_mix64((uint64_t)op << 32 | mount);
}

/* Finds the row of a key. If another key has the same hash, tries the next hash. */
static uint32_t live_find(const struct hr_live *l, uint64_t proc, uint16_t op, uint16_t mount,
			  uint64_t *ret_free)
{
	uint64_t k = live_key(proc, op, mount);
	uint32_t i;

	while ((i = hr_map64_get(&l->by_key, k)) != HR_MAP64_NONE &&
	       (l->v[i].proc != proc || l->v[i].op != op || l->v[i].mount != mount))
		k++;
	*ret_free = k;
	return i;
}

static uint32_t live_make(struct hr_live *l, uint64_t proc, uint16_t op, uint16_t mount, uint64_t k)
{
	if (!hr_array_reserve(l->v, l->n, l->room))
		return UINT32_MAX;
	if (hr_map64_set(&l->by_key, k, l->n))
		return UINT32_MAX;
	l->v[l->n] = (struct hr_live_row){.proc = proc, .op = op, .mount = mount};
	return l->n++;
}

uint32_t hr_live_row(struct hr_live *l, uint64_t proc, uint16_t op, uint16_t mount)
{
	uint64_t k;
	uint32_t i = live_find(l, proc, op, mount, &k);

	if (i != HR_MAP64_NONE)
		return i;
	/* too many rows: the sums of all processes share the rows of proc 0, at most HR_OP_MAX */
	if (l->n >= HR_LIVE_ROWS_MOST) {
		l->cut = true;
		proc = 0;
		mount = 0;
		i = live_find(l, proc, op, mount, &k);
	}
	if (i == HR_MAP64_NONE)
		i = live_make(l, proc, op, mount, k);
	l->failed = l->failed || i == UINT32_MAX;
	return i;
}

void hr_live_add(struct hr_live_row *row, const struct hr_rollup *r)
{
	row->count += r->count;
	row->bytes += r->bytes;
	row->errors += r->errors;
	row->dur_ns += r->dur_ns;
	if (r->max_dur_ns > row->max_dur_ns)
		row->max_dur_ns = r->max_dur_ns;
	for (uint32_t i = 0; i < HR_HIST_BINS; i++)
		row->dur_hist[i < HR_LIVE_BINS ? i : HR_LIVE_BINS - 1] += r->dur_hist[i];
}

static void add_row(struct hr_live_row *to, const struct hr_live_row *r)
{
	to->count += r->count;
	to->bytes += r->bytes;
	to->errors += r->errors;
	to->dur_ns += r->dur_ns;
	if (r->max_dur_ns > to->max_dur_ns)
		to->max_dur_ns = r->max_dur_ns;
	for (uint32_t i = 0; i < HR_LIVE_BINS; i++)
		to->dur_hist[i] += r->dur_hist[i];
}

/* ---- processes that have ended --------------------------------------------------------------- */

static struct hr_live_ended *ended(const struct hr_live *l, uint64_t proc)
{
	uint32_t i = hr_map64_get(&l->by_ended, proc);

	return i == HR_MAP64_NONE ? NULL : &l->ended[i];
}

static bool live_append(struct hr_live *l, const struct hr_live_ended *who)
{
	if (!l->ended)
		l->ended = calloc(HR_LIVE_ENDED_MOST, sizeof(*l->ended));
	if (!l->ended || l->n_ended == HR_LIVE_ENDED_MOST ||
	    hr_map64_set(&l->by_ended, who->proc, l->n_ended))
		return false;
	l->ended[l->n_ended++] = *who;
	return true;
}

/*
 * Adds an ended process to the group of its (rank, worker). Returns the key of this group, to which
 * the sums of the process are added; 0: no room for a new group.
 */
static uint64_t live_join(struct hr_live *l, const struct hr_live_ended *who)
{
	uint64_t proc =
	    HR_LIVE_GROUP | (uint64_t)(who->rank_plus1 & INT32_MAX) << 32 | who->worker_plus1;
	struct hr_live_ended *group = ended(l, proc);

	if (!group) {
		if (l->n_groups == HR_LIVE_ENDED_MOST / 2 ||
		    !live_append(l, &(struct hr_live_ended){.proc = proc,
							    .rank_plus1 = who->rank_plus1,
							    .local_plus1 = who->local_plus1,
							    .worker_plus1 = who->worker_plus1}))
			return 0;
		l->n_groups = l->n_ended;
		group = &l->ended[l->n_ended - 1];
	}
	group->ended++;
	group->wait_ns += who->wait_ns;
	group->steps += who->steps;
	return proc;
}

/* Adds all rows to `to`. Rows of processes in `gone` are added to the group in `joined`. */
static void move_rows(struct hr_live *to, const struct hr_live *from, const struct hr_map64 *gone,
		      const uint64_t *joined)
{
	for (uint32_t i = 0; i < from->n; i++) {
		const struct hr_live_row *r = &from->v[i];
		uint32_t g = hr_map64_get(gone, r->proc);
		uint32_t k =
		    hr_live_row(to, g == HR_MAP64_NONE ? r->proc : joined[g], r->op, r->mount);

		if (k != UINT32_MAX)
			add_row(&to->v[k], r);
	}
}

static void sum_up(struct hr_live *l, uint64_t now_ns)
{
	struct hr_live next = {
	    .since_ns = l->since_ns, .whole = l->whole, .cut = l->cut, .failed = l->failed};
	uint64_t *joined = calloc(l->n_ended, sizeof(*joined));
	struct hr_map64 gone = {0};

	for (uint32_t i = 0; i < l->n_groups; i++)
		live_append(&next, &l->ended[i]);
	next.n_groups = l->n_groups;
	for (uint32_t i = l->n_groups; i < l->n_ended && joined; i++)
		if (l->ended[i].end_ns + HR_LIVE_KEPT_NS <= now_ns &&
		    hr_map64_set(&gone, l->ended[i].proc, i) == 0)
			joined[i] = live_join(&next, &l->ended[i]);
	for (uint32_t i = l->n_groups; i < l->n_ended; i++)
		if (hr_map64_get(&gone, l->ended[i].proc) == HR_MAP64_NONE)
			live_append(&next, &l->ended[i]);
	move_rows(&next, l, &gone, joined);
	next.failed = next.failed || !joined;
	hr_map64_done(&gone);
	free(joined);
	hr_live_done(l);
	*l = next;
}

void hr_live_end(struct hr_live *l, const struct hr_live_ended *who)
{
	uint32_t many = l->n_groups + HR_LIVE_ENDED_MANY;

	/* `ended` has the groups, then processes in the order of their ends. */
	if (l->n_ended > many && l->ended[many].end_ns + HR_LIVE_KEPT_NS <= who->end_ns)
		sum_up(l, who->end_ns);
	live_append(l, who); /* if there is no memory, rows that come later have proc 0 */
}

void hr_live_done(struct hr_live *l)
{
	free(l->v);
	free(l->ended);
	hr_map64_done(&l->by_key);
	hr_map64_done(&l->by_ended);
	*l = (struct hr_live){0};
}
