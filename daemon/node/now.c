/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node/now.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/fnv.h"
#include "common/live_rows.h"
#include "common/map64.h"
#include "common/ops.h"
#include "common/rows.h"
#include "common/save.h"
#include "common/users.h"
#include "daemon/engine/live.h"
#include "proto/now.h"

#define EARLY_MS 100u /* a tick of the caller may be early by this */

/* ---- sums ------------------------------------------------------------------------------------ */

struct mount_sum {
	const Headrace__LiveMount *mount;
	Headrace__NowSum sum;
};

struct rank_sum {
	uint32_t rank_plus1;
	Headrace__NowSum sum;
	uint32_t loops;
	uint64_t wait_ns, steps;
	struct hr_save save; /* the last one of its processes */
};

struct folder_sum {
	ProtobufCBinaryData path;
	uint64_t ops;
};

struct now_sums {
	const Headrace__LiveJob *before, *now;
	struct hr_arena *memory;
	struct mount_sum *mounts; /* one entry for each mount of `now`, and one for none */
	struct rank_sum *ranks;	  /* room for one entry per process, and one for none */
	size_t n_ranks;
	struct hr_map64 by_rank;
	struct folder_sum *folders; /* room for one entry per file in use */
	size_t n_folders;
	struct hr_map64 by_folder; /* hash of the path */
	uint64_t named_ops;
};

static uint64_t now_sum_ops(const Headrace__NowSum *s)
{
	return s->metadata + s->reads + s->writes;
}

static void add_operations(Headrace__NowSum *s, const Headrace__LiveRow *before,
			   const Headrace__LiveRow *r)
{
	static const Headrace__LiveRow nothing;
	uint64_t count, bytes;

	before = before ? before : &nothing;
	count = hr_live_increase(before->count, r->count);
	bytes = hr_live_increase(before->bytes, r->bytes);
	s->dur_ns += hr_live_increase(before->dur_ns, r->dur_ns);
	switch (hr_op_info((uint16_t)r->op)->class) {
	case HR_CLASS_OPEN:
	case HR_CLASS_CLOSE:
	case HR_CLASS_STAT:
	case HR_CLASS_DIR:
	case HR_CLASS_META:
		s->metadata += count;
		break;
	case HR_CLASS_READ:
		s->reads += count;
		s->bytes_read += bytes;
		break;
	case HR_CLASS_WRITE:
		s->writes += count;
		s->bytes_written += bytes;
		break;
	default: /* a seek, sync or mapping */
		break;
	}
}

/* NULL: no memory */
static struct rank_sum *rank_of(struct now_sums *k, uint64_t proc)
{
	const Headrace__LiveProcess *p = hr_live_process(k->now, proc);
	uint32_t rank = p ? p->rank_plus1 : 0, i = hr_map64_get(&k->by_rank, rank);

	if (i != HR_MAP64_NONE)
		return &k->ranks[i];
	if (hr_map64_set(&k->by_rank, rank, (uint32_t)k->n_ranks))
		return NULL;
	k->ranks[k->n_ranks] = (struct rank_sum){.rank_plus1 = rank};
	headrace__now_sum__init(&k->ranks[k->n_ranks].sum);
	return &k->ranks[k->n_ranks++];
}

static struct mount_sum *mount_of(struct now_sums *k, uint32_t id)
{
	size_t i = 0;

	while (i < k->now->n_mounts && k->now->mounts[i]->id != id)
		i++;
	return &k->mounts[i];
}

static int sum_rows(struct now_sums *k)
{
	size_t at = 0;

	for (size_t i = 0; i < k->now->n_rows; i++) {
		const Headrace__LiveRow *r = k->now->rows[i],
					*b = hr_live_row_before(k->before, &at, r);
		struct rank_sum *rank = rank_of(k, r->proc);

		if (!rank)
			return -ENOMEM;
		add_operations(&rank->sum, b, r);
		add_operations(&mount_of(k, r->mount)->sum, b, r);
	}
	return 0;
}

static int sum_waits(struct now_sums *k)
{
	for (size_t i = 0; i < k->now->n_processes; i++) {
		const Headrace__LiveProcess *p = k->now->processes[i],
					    *b = hr_live_process_before(k->before, p);
		struct rank_sum *rank = rank_of(k, p->proc);

		if (!rank)
			return -ENOMEM;
		rank->loops += (p->wait_ns > 0 || p->steps > 0) && hr_live_lives(p);
		rank->wait_ns += hr_live_increase(b ? b->wait_ns : 0, p->wait_ns);
		rank->steps += hr_live_increase(b ? b->steps : 0, p->steps);
		(void)hr_save_add(&rank->save, p->save_start_ns, p->save_end_ns);
	}
	return 0;
}

/* NULL: no memory, or the name of the file is unknown */
static struct folder_sum *folder_of(struct now_sums *k, uint32_t file)
{
	const Headrace__LiveFile *f = hr_live_file(k->now, file);
	const uint8_t *slash = f && f->path.len ? memrchr(f->path.data, '/', f->path.len) : NULL;
	ProtobufCBinaryData path;
	uint64_t hash;
	uint32_t i;

	if (!slash)
		return NULL;
	path = (ProtobufCBinaryData){.len = (size_t)(slash - f->path.data), .data = f->path.data};
	path.len += path.len == 0; /* the root folder */
	hash = hr_fnv(HR_FNV_BASIS, path.data, path.len);
	i = hr_map64_get(&k->by_folder, hash);
	if (i != HR_MAP64_NONE)
		return &k->folders[i];
	if (hr_map64_set(&k->by_folder, hash, (uint32_t)k->n_folders))
		return NULL;
	k->folders[k->n_folders] = (struct folder_sum){.path = path};
	return &k->folders[k->n_folders++];
}

/* Counts of a smaller value are those of a new record of the file. */
static void sum_uses(struct now_sums *k)
{
	static const Headrace__LiveUse nothing;
	size_t at = 0;

	for (size_t i = 0; i < k->now->n_uses; i++) {
		const Headrace__LiveUse *u = k->now->uses[i],
					*b = hr_live_use_before(k->before, &at, u);
		struct folder_sum *folder;

		if (!b || b->ops > u->ops)
			b = &nothing;
		if (u->ops == b->ops)
			continue;
		folder = folder_of(k, u->file);
		if (!folder)
			continue;
		folder->ops += u->ops - b->ops;
		k->named_ops += u->ops - b->ops;
	}
}

/* ---- the message ----------------------------------------------------------------------------- */

static int most_first(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static int mounts_most_first(const void *a, const void *b)
{
	return most_first(now_sum_ops(&((const struct mount_sum *)a)->sum),
			  now_sum_ops(&((const struct mount_sum *)b)->sum));
}

/* The ranks with a training loop first, so that none of their waits is left out. */
static int ranks_most_first(const void *a, const void *b)
{
	const struct rank_sum *x = a, *y = b;
	int r = most_first(x->loops, y->loops);

	return r ? r : most_first(now_sum_ops(&x->sum), now_sum_ops(&y->sum));
}

static int folders_most_first(const void *a, const void *b)
{
	return most_first(((const struct folder_sum *)a)->ops, ((const struct folder_sum *)b)->ops);
}

static int oldest_first(const void *a, const void *b)
{
	const Headrace__NowStuck *x = a, *y = b;

	return most_first(x->age_ns, y->age_ns);
}

static Headrace__NowSum *sum_in(struct hr_arena *a, const Headrace__NowSum *s)
{
	return hr_arena_copy(a, s, sizeof(*s));
}

static void put_mounts(struct now_sums *k, Headrace__Now *m)
{
	size_t n = k->now->n_mounts;
	Headrace__NowMount *rows = hr_rows_in(k->memory, n, sizeof(*rows), &m->mounts);

	qsort(k->mounts, n, sizeof(*k->mounts), mounts_most_first);
	for (size_t i = 0; i < n && rows && m->n_mounts < HR_NOW_MOUNTS; i++) {
		const Headrace__LiveMount *of = k->mounts[i].mount;
		Headrace__NowMount *row = &rows[m->n_mounts];

		if (now_sum_ops(&k->mounts[i].sum) == 0)
			break;
		headrace__now_mount__init(row);
		row->path = hr_bytes_in(k->memory, of->path.data, of->path.len);
		row->fs_type = hr_arena_text(k->memory, of->fs_type);
		row->sum = sum_in(k->memory, &k->mounts[i].sum);
		m->n_mounts++;
	}
}

static void put_ranks(struct now_sums *k, Headrace__Now *m)
{
	Headrace__NowRank *rows = hr_rows_in(k->memory, k->n_ranks, sizeof(*rows), &m->ranks);

	qsort(k->ranks, k->n_ranks, sizeof(*k->ranks), ranks_most_first);
	for (size_t i = 0; i < k->n_ranks && rows && i < HR_NOW_RANKS; i++) {
		headrace__now_rank__init(&rows[i]);
		rows[i].rank_plus1 = k->ranks[i].rank_plus1;
		rows[i].sum = sum_in(k->memory, &k->ranks[i].sum);
		rows[i].loops = k->ranks[i].loops;
		rows[i].wait_ns = k->ranks[i].wait_ns;
		rows[i].steps = k->ranks[i].steps;
		rows[i].save_start_ns = k->ranks[i].save.start_ns;
		rows[i].save_end_ns = k->ranks[i].save.end_ns;
		m->n_ranks++;
	}
}

static void put_folders(struct now_sums *k, Headrace__Now *m)
{
	Headrace__NowFolder *rows = hr_rows_in(k->memory, k->n_folders, sizeof(*rows), &m->folders);

	m->named_ops = k->named_ops;
	qsort(k->folders, k->n_folders, sizeof(*k->folders), folders_most_first);
	for (size_t i = 0; i < k->n_folders && rows && i < HR_NOW_FOLDERS; i++) {
		const struct folder_sum *of = &k->folders[i];

		headrace__now_folder__init(&rows[i]);
		rows[i].path = hr_bytes_in(k->memory, of->path.data, of->path.len);
		rows[i].ops = of->ops;
		m->n_folders++;
	}
}

static void fill_stuck(Headrace__NowStuck *row, const Headrace__LiveProcess *p, const char *op,
		       uint64_t since_ns, uint64_t now_ns)
{
	headrace__now_stuck__init(row);
	row->rank_plus1 = p ? p->rank_plus1 : 0;
	row->worker_plus1 = p ? p->worker_plus1 : 0;
	row->pid = p ? p->pid : 0;
	row->op = (char *)(uintptr_t)op;
	row->age_ns = hr_live_increase(since_ns, now_ns);
}

static void put_stuck(struct now_sums *k, Headrace__LiveJob *now, Headrace__Now *m)
{
	Headrace__NowStuck *rows =
	    hr_rows_in(k->memory, now->n_in_flight + now->n_processes, sizeof(*rows), &m->stuck);
	size_t n = 0;

	for (size_t i = 0; i < now->n_in_flight && rows; i++) {
		const Headrace__LiveInFlight *of = now->in_flight[i];
		const Headrace__LiveFile *file = hr_live_file(now, of->file);

		fill_stuck(&rows[n], hr_live_process(now, of->proc),
			   hr_op_info((uint16_t)of->op)->name, of->since_ns, now->boot_ns);
		rows[n].tid = of->tid;
		if (file)
			rows[n].path = hr_bytes_in(k->memory, file->path.data, file->path.len);
		n++;
	}
	for (size_t i = 0; i < now->n_processes && rows; i++) {
		const Headrace__LiveProcess *p = now->processes[i];

		if (p->hang_ns == 0 || p->hang_ns + HR_NOW_STUCK_NS > now->boot_ns)
			continue;
		fill_stuck(&rows[n], p, hr_arena_text(k->memory, p->hang_work), p->hang_ns,
			   now->boot_ns);
		rows[n].hang = true;
		rows[n++].path =
		    hr_bytes_in(k->memory, (const uint8_t *)p->hang_line, strlen(p->hang_line));
	}
	if (n > 0)
		qsort(rows, n, sizeof(*rows), oldest_first);
	m->n_stuck = n < HR_NOW_STUCK ? n : HR_NOW_STUCK;
}

static int sums_init(struct now_sums *k)
{
	k->mounts = hr_arena_alloc(k->memory, (k->now->n_mounts + 1) * sizeof(*k->mounts));
	k->ranks = hr_arena_alloc(k->memory, (k->now->n_processes + 1) * sizeof(*k->ranks));
	k->folders = hr_arena_alloc(k->memory, (k->now->n_uses + 1) * sizeof(*k->folders));
	if (k->memory->failed)
		return -ENOMEM;
	for (size_t i = 0; i <= k->now->n_mounts; i++) {
		k->mounts[i].mount = i < k->now->n_mounts ? k->now->mounts[i] : NULL;
		headrace__now_sum__init(&k->mounts[i].sum);
	}
	return 0;
}

int hr_now_compare(Headrace__LiveJob *before, Headrace__LiveJob *now, struct hr_now_message **ret)
{
	struct hr_now_message *n = calloc(1, sizeof(*n));
	struct hr_arena scratch = {0};
	struct now_sums k = {.before = before, .now = now, .memory = &scratch};
	int r = n ? sums_init(&k) : -ENOMEM;

	hr_live_sort(before);
	hr_live_sort(now);
	if (r == 0)
		r = sum_rows(&k);
	if (r == 0)
		r = sum_waits(&k);
	if (r == 0) {
		sum_uses(&k);
		headrace__now__init(&n->m);
		k.memory = &n->memory;
		n->m.interval_ns = now->boot_ns - before->boot_ns;
		n->m.lost = now->lost;
		n->m.processes = hr_live_count(now);
		put_mounts(&k, &n->m);
		put_ranks(&k, &n->m);
		put_folders(&k, &n->m);
		put_stuck(&k, now, &n->m);
		r = n->memory.failed ? -ENOMEM : 0;
	}
	hr_map64_done(&k.by_rank);
	hr_map64_done(&k.by_folder);
	hr_arena_free(&scratch);
	if (r < 0)
		hr_now_message_free(n);
	else
		*ret = n;
	return r;
}

/* ---- intervals ------------------------------------------------------------------------------- */

static int put_names(struct hr_now *w, const struct hr_node_config *config,
		     const Headrace__LiveJob *job, struct hr_now_message *n)
{
	struct hr_user user;

	if (!w->before && hr_user_by_id(config->uid, &user))
		snprintf(w->user, sizeof(w->user), "%s", user.name);
	if (!n)
		return 0;
	n->m.uid = config->uid;
	n->m.user = hr_arena_text(&n->memory, w->user);
	n->m.name = hr_arena_text(&n->memory, job->name);
	return n->memory.failed ? -ENOMEM : 0;
}

int hr_now_make(struct hr_now *w, struct hr_node *n, const struct hr_node_config *config,
		uint64_t now_ms, struct hr_now_message **ret)
{
	struct hr_live_picture *picture = NULL;
	struct hr_now_message *message = NULL;
	int r;

	if (w->before && now_ms - w->made_ms + EARLY_MS < HR_NOW_EVERY_MS)
		return -EAGAIN;
	r = hr_node_picture(n, HR_NOW_STUCK_NS, &picture);
	if (r < 0)
		return r;
	if (w->before && hr_live_comparable(&w->before->m, &picture->m))
		r = hr_now_compare(&w->before->m, &picture->m, &message);
	if (r == 0)
		r = put_names(w, config, &picture->m, message);
	hr_live_free(w->before);
	w->before = picture;
	w->made_ms = now_ms;
	if (r < 0) {
		hr_now_message_free(message);
		return r;
	}
	*ret = message;
	return message ? 0 : -EAGAIN;
}

void hr_now_done(struct hr_now *w)
{
	hr_live_free(w->before);
	w->before = NULL;
}
