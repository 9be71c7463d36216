/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rank of a process, and whether it is a worker of a rank.
 *
 * The rank of a process is the first of these that exists: the rank in its environment, an inferred
 * rank (mp.spawn), the rank of the image that it replaced, the rank of its parent.
 *
 * A worker is a child of a rank's process that has read a data file. It was forked without exec
 * (maybe by a forkserver), or exec'ed by multiprocessing's spawn. In a job without ranks, any
 * process can have workers. Workers have numbers within their rank. A worker of torch's DataLoader
 * reports its own number in its loader, and the number of the loader. It is a worker before its
 * first read, and keeps its own number if this number is free.
 * The other children of its rank (pools, os.fork) are then not workers.
 *
 * A process that makes steps is no worker, but trains, and can have workers.
 */
#include "daemon/engine/state.h"

static bool ends_in(const char *text, size_t bytes, const char *name)
{
	size_t n = strlen(name);

	return text && bytes >= n && memcmp(text + bytes - n, name, n) == 0 &&
	       (bytes == n || text[bytes - n - 1] == '/');
}

/* Whether p is a shell or launcher. Its children are not its workers. */
static bool is_wrapper(const struct hr_proc *p)
{
	static const char *const names[] = {
	    "sh",
	    "bash",
	    "dash",
	    "zsh",
	    "ksh",
	    "csh",
	    "tcsh",
	    "busybox",
	    "env",
	    "time",
	    "timeout",
	    "nice",
	    "make",
	    "xargs",
	    "parallel",
	    "nohup",
	    "srun",
	    "slurmstepd",
	    "orted",
	    "prted",
	    "prterun",
	    "mpirun",
	    "mpiexec",
	    "orterun",
	    "mpiexec.hydra",
	    "hydra_pmi_proxy",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (ends_in(p->exe, p->exe_bytes, names[i]))
			return true;
	return false;
}

static bool mentions(const struct hr_proc *p, const char *text)
{
	return p->cmdline && memmem(p->cmdline, p->cmdline_bytes, text, strlen(text)) != NULL;
}

/* Recognizes children that multiprocessing exec'ed, by the code in their command lines. */
static enum hr_proc_kind exec_kind(const struct hr_proc *p)
{
	if (mentions(p, "multiprocessing.resource_tracker") ||
	    mentions(p, "multiprocessing.semaphore_tracker"))
		return HR_PROC_TOOL;
	if (mentions(p, "multiprocessing.forkserver"))
		return HR_PROC_FORKSERVER;
	if (mentions(p, "multiprocessing.spawn") || mentions(p, "--multiprocessing-fork"))
		return HR_PROC_SPAWN;
	return HR_PROC_MAIN;
}

static struct hr_proc *parent_of(const struct hr_engine *e, const struct hr_proc *p)
{
	return p->id.parent ? hr__proc_find(e, p->id.parent) : NULL;
}

/* Returns whether p has a rank that differs from the rank of the process whose worker p may be. */
static bool own_rank(const struct hr_engine *e, const struct hr_proc *p)
{
	const struct hr_proc *base = p->id.base ? hr__proc_find(e, p->id.base) : NULL;
	uint32_t rank = base ? base->id.rank_plus1 : p->id.base_was.rank_plus1;

	return p->id.inferred_plus1 || (p->id.env.rank_plus1 && p->id.env.rank_plus1 != rank);
}

static struct hr_base base_of(const struct hr_engine *e, const struct hr_proc *p)
{
	const struct hr_proc *base = p->id.base ? hr__proc_find(e, p->id.base) : NULL;

	if (!base)
		return p->id.base_was;
	return (struct hr_base){
	    .rank_plus1 = base->id.rank_plus1,
	    .in_loader = base->id.env.loader_worker_plus1 != 0,
	    .has_loaders = base->id.has_loaders,
	    .has_workers =
		!base->id.wrapper && (!base->id.base || own_rank(e, base) || base->id.trains),
	};
}

/* Returns whether one launcher sets both variables: then their values belong together. */
static bool same_launcher(unsigned a, unsigned b)
{
	return a == b || (a >= 6 && a <= 8 && b >= 6 && b <= 8);
}

static bool set_rank(struct hr_proc *p, uint32_t rank, uint32_t local, uint32_t world,
		     enum hr_rank_from from)
{
	struct hr_identity *id = &p->id;
	bool changed = id->rank_plus1 != rank || id->local_plus1 != local || id->world != world ||
		       id->source != from;

	id->rank_plus1 = rank;
	id->local_plus1 = local;
	id->world = world;
	id->source = from;
	return changed;
}

static bool resolve_rank(const struct hr_engine *e, struct hr_proc *p)
{
	const struct hr_rank *env = &p->id.env;
	const struct hr_proc *from;

	if (env->rank_plus1)
		return set_rank(
		    p, env->rank_plus1,
		    same_launcher(env->local_family, env->family) ? env->local_plus1 : 0,
		    same_launcher(env->world_family, env->family) ? env->world : 0, HR_RANK_ENV);
	if (p->id.inferred_plus1)
		return set_rank(p, p->id.inferred_plus1, p->id.inferred_plus1, 0, HR_RANK_INFERRED);
	from = p->id.exec_of ? hr__proc_find(e, p->id.exec_of) : NULL;
	if (!from)
		from = parent_of(e, p);
	if (!from) /* the parent has ended, so p keeps the rank that it inherited */
		return p->id.source == HR_RANK_INHERITED ? false
							 : set_rank(p, 0, 0, 0, HR_RANK_NONE);
	return set_rank(p, from->id.rank_plus1, from->id.local_plus1, from->id.world,
			from->id.rank_plus1 ? HR_RANK_INHERITED : HR_RANK_NONE);
}

const char *hr__rank_source(const struct hr_proc *p)
{
	switch (p->id.source) {
	case HR_RANK_ENV:
		return hr_rank_source(p->id.env.family);
	case HR_RANK_INFERRED:
		return "inferred";
	case HR_RANK_INHERITED:
		return "inherited";
	default:
		return "";
	}
}

/* ---- workers --------------------------------------------------------------------------------- */

bool hr__loader_worker(const struct hr_engine *e, const struct hr_proc *p)
{
	return p->id.base && p->id.env.loader_worker_plus1 && !base_of(e, p).in_loader;
}

static bool needs_number(const struct hr_engine *e, const struct hr_proc *p)
{
	struct hr_base base = base_of(e, p);

	if (!p->id.base || own_rank(e, p))
		return false;
	if (p->id.kind != HR_PROC_FORK && p->id.kind != HR_PROC_SPAWN)
		return false;
	if (hr__loader_worker(e, p))
		return true;
	return p->id.read_data && !p->id.trains && !base.has_loaders && base.has_workers;
}

static bool same_team(const struct hr_proc *a, const struct hr_proc *b)
{
	return a->id.rank_plus1 ? a->id.rank_plus1 == b->id.rank_plus1 : a->id.base == b->id.base;
}

static uint32_t lowest_free(const struct hr_engine *e, const struct hr_proc *p)
{
	uint32_t number = 1;
	bool taken;

	do {
		taken = false;
		for (const struct hr_proc *q = e->first; q && !taken; q = q->next)
			taken =
			    q != p && !q->end_ns && q->id.worker_plus1 == number && same_team(p, q);
		number += taken;
	} while (taken);
	return number;
}

/*
 * Returns the number of a DataLoader worker: the number that it reported or, if another process has
 * this number, the lowest free one. A worker of an earlier epoch that has this number does not
 * count, because it is about to end.
 */
static uint32_t own_number(const struct hr_engine *e, const struct hr_proc *p)
{
	const struct hr_rank *own = &p->id.env;

	for (const struct hr_proc *q = e->first; q; q = q->next)
		if (q != p && !q->end_ns && q->id.worker_plus1 == own->loader_worker_plus1 &&
		    same_team(p, q) &&
		    !(hr__loader_worker(e, q) && q->id.env.loader_plus1 == own->loader_plus1 &&
		      q->id.env.loader_worker_plus1 == own->loader_worker_plus1))
			return lowest_free(e, p);
	return own->loader_worker_plus1;
}

static void update_worker(struct hr_engine *e, struct hr_proc *p)
{
	bool needs = needs_number(e, p);

	if (needs == (p->id.worker_plus1 != 0))
		return;
	p->id.worker_plus1 = !needs		       ? 0
			     : hr__loader_worker(e, p) ? own_number(e, p)
						       : lowest_free(e, p);
	hr__proc_dirty(e, p);
}

/* Children attach later than their base, so they follow it in the list. */
static void update_workers_of(struct hr_engine *e, const struct hr_proc *base)
{
	for (struct hr_proc *q = base->next; q; q = q->next)
		if (q->id.base == base->id.proc && !q->end_ns)
			update_worker(e, q);
}

/*
 * Assigns the worker number of p again, after p reported its number in its loader. From then on,
 * siblings that report no number are not workers.
 */
static void attribute_take_number(struct hr_engine *e, struct hr_proc *p)
{
	struct hr_proc *base = p->id.base ? hr__proc_find(e, p->id.base) : NULL;

	if (!hr__loader_worker(e, p))
		return;
	p->id.worker_plus1 = 0;
	if (base && !base->id.has_loaders) {
		base->id.has_loaders = 1;
		update_workers_of(e, base);
	}
	update_worker(e, p);
}

/* Resolves the ranks of p and of all processes that attached later, which may inherit from p. */
static void update_from(struct hr_engine *e, struct hr_proc *p)
{
	for (struct hr_proc *q = p; q; q = q->next) {
		if (q->end_ns || !resolve_rank(e, q))
			continue;
		e->ranks_changed = true;
		if (q->id.world > e->job->ranks_expected)
			e->job->ranks_expected = q->id.world;
		/* Workers are numbered within a rank, so a new rank means a new number. */
		q->id.worker_plus1 = 0;
		hr__proc_dirty(e, q);
		update_worker(e, q);
	}
}

/* ---- ranks that no variable names ------------------------------------------------------------ */

static int spawned_order(const struct hr_spawned *a, const struct hr_spawned *b)
{
	if (a->start_time != b->start_time)
		return a->start_time < b->start_time ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static void note_spawned(struct hr_proc *parent, const struct hr_proc *child)
{
	struct hr_spawned s = {child->id.start_time, child->id.proc, child->id.pid}, *v;
	uint32_t at = parent->n_spawned;

	if (at >= HR_PROC_SPAWNED)
		return;
	v = realloc(parent->spawned, (at + 1) * sizeof(*v));
	if (!v)
		return;
	for (; at > 0 && spawned_order(&s, &v[at - 1]) < 0; at--)
		v[at] = v[at - 1];
	v[at] = s;
	parent->spawned = v;
	parent->n_spawned++;
}

/* Infers ranks from the order in which siblings started. A late sibling may change other ranks. */
static void renumber(struct hr_engine *e, struct hr_proc *parent, struct hr_proc *infer)
{
	for (uint32_t i = 0; i < parent->n_spawned; i++) {
		struct hr_proc *q = hr__proc_find(e, parent->spawned[i].proc);

		if (!q || (q != infer && !q->id.inferred_plus1) || q->id.inferred_plus1 == i + 1)
			continue;
		q->id.inferred_plus1 = i + 1;
		update_from(e, q);
		update_worker(e, q);
	}
}

/* Infers the rank of a child of mp.spawn, if its parent has no rank: mp.spawn sets no variables. */
static void infer_rank(struct hr_engine *e, struct hr_proc *p)
{
	struct hr_proc *parent = parent_of(e, p);

	if (p->id.kind != HR_PROC_SPAWN || p->id.inferred_plus1 || p->id.env.rank_plus1 ||
	    !parent || parent->id.rank_plus1)
		return;
	renumber(e, parent, p);
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct hr_proc *find_parent(const struct hr_engine *e, const struct hr_proc *p,
				   uint64_t token, const int32_t *ancestors)
{
	struct hr_proc *parent = token ? hr__proc_by(e, &e->by_token, token) : NULL;
	struct hr_proc *old = p->id.exec_of ? hr__proc_find(e, p->id.exec_of) : NULL;

	if (old)
		return parent_of(e, old);
	for (uint32_t i = 0; !parent && i < HR_ANCESTORS && ancestors[i] > 0; i++)
		parent = hr__proc_by(e, &e->by_pid, (uint32_t)ancestors[i]);
	return parent == p ? NULL : parent;
}

void hr__attribute_attach(struct hr_engine *e, struct hr_proc *p, bool forked,
			  uint64_t parent_token, const int32_t *ancestors)
{
	struct hr_proc *parent = find_parent(e, p, parent_token, ancestors);

	p->id.parent = parent ? parent->id.proc : 0;
	p->id.wrapper = is_wrapper(p);
	p->id.kind = forked && parent ? HR_PROC_FORK : exec_kind(p);
	if (parent && (p->id.kind == HR_PROC_FORK || p->id.kind == HR_PROC_SPAWN))
		p->id.base =
		    parent->id.kind == HR_PROC_FORKSERVER ? parent->id.parent : parent->id.proc;
	update_from(e, p);
	attribute_take_number(e, p);
	if (parent && p->id.kind == HR_PROC_SPAWN) {
		note_spawned(parent, p);
		if (p->id.rendezvous)
			infer_rank(e, p);
		renumber(e, parent, NULL);
	}
}

void hr__attribute_env(struct hr_engine *e, struct hr_proc *p, const char *text, size_t bytes)
{
	if ((bytes > 12 && memcmp(text, "MASTER_ADDR=", 12) == 0) ||
	    (bytes > 12 && memcmp(text, "MASTER_PORT=", 12) == 0)) {
		p->id.rendezvous = 1;
		infer_rank(e, p);
	}
	if (!hr_rank_env(&p->id.env, text, bytes))
		return;
	update_from(e, p);
	attribute_take_number(e, p);
	update_worker(e, p);
}

void hr__attribute_remove(struct hr_engine *e, struct hr_proc *p)
{
	for (struct hr_proc *q = p->next; q; q = q->next)
		if (q->id.base == p->id.proc)
			q->id.base_was = base_of(e, q);
}

void hr__attribute_read(struct hr_engine *e, struct hr_proc *p)
{
	struct hr_proc *base = p->id.base ? hr__proc_find(e, p->id.base) : NULL;

	p->id.read_data = 1;
	if (base && base->id.base && !own_rank(e, base))
		infer_rank(e, base);
	update_worker(e, p);
}

void hr__attribute_trains(struct hr_engine *e, struct hr_proc *p)
{
	p->id.trains = 1;
	update_worker(e, p);
	update_workers_of(e, p);
}
