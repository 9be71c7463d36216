/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/engine/engine.h"

#include <errno.h>

#include "daemon/engine/state.h"

/* How long the roll-ups of a window stay open after its end, for late records. */
#define GRACE_NS UINT64_C(1000000000)

/* ---- start ----------------------------------------------------------------------------------- */

static int apply_start(struct hr_engine *e, const struct hr_entry_start *in)
{
	if (in->job_bytes > in->h.bytes - sizeof(*in) || in->level > HR_LEVEL_TRACE ||
	    !hr_clock_line_valid(&in->line) || !hr__job_set(e, in->job, in->job_bytes))
		return -EBADMSG;
	e->level = in->level;
	e->level_since_ns = in->now.boot_ns;
	e->line = in->line;
	e->now = in->now;
	e->now_ns = in->now.boot_ns;
	e->stats.start_ns = e->now_ns;
	e->next_seq = in->next_seq;
	e->live.since_ns = e->now_ns;
	e->live.whole = true;
	hr__emit_job(e, "running", 0);
	hr__emit_levels(e, 0);
	return 0;
}

/* ---- the other entries ----------------------------------------------------------------------- */

/*
 * Returns whether a process ended before it got the answer to its hello, and so recorded nothing.
 * An operation causes the hello and is recorded after the answer. So a process that got the answer
 * has a record. False for a process that started another program ("exec"), or that probes recorded.
 */
static bool never_came(const struct hr_proc *p, const char exit[16])
{
	return p->n_rings == 0 && !p->id.probed && !p->id.deselected &&
	       memcmp(exit, "exec", sizeof("exec")) != 0;
}

/* Whether the image of a process has attached a second time. */
static bool came_again(const struct hr_engine *e, const struct hr_proc *p)
{
	const struct hr_proc *later = hr__proc_by(e, &e->by_pid, (uint32_t)p->id.pid);

	return later && later != p && p->id.image != 0 && later->id.image == p->id.image;
}

/* Sends all file records of one process, or (proc 0) of all processes, in the order of last use. */
static void flush_filerecs(struct hr_engine *e, uint64_t proc, bool forget_open)
{
	struct hr_filerecs *f = &e->filerecs;
	uint32_t *list = calloc(f->live + 1, sizeof(*list));
	const uint32_t first[] = {f->idle.oldest, f->open.oldest};
	uint32_t n = 0, dirty = 0;

	if (!list) {
		e->failed = true;
		return;
	}
	for (int k = 0; k < 2; k++)
		for (uint32_t i = first[k]; i != UINT32_MAX; i = f->links[i].newer)
			if (!proc || f->v[i].t.proc == proc)
				list[n++] = i;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t record = list[i];

		if (!f->v[record].dirty) {
			if (forget_open || !f->v[record].t.refs)
				hr_filerec_remove(f, record);
			continue;
		}
		list[dirty++] = record;
	}
	hr__emit_filerecs(e, list, dirty);
	for (uint32_t i = 0; i < dirty; i++) {
		if (forget_open || !f->v[list[i]].t.refs)
			hr_filerec_remove(f, list[i]);
		else
			hr_filerec_reset(&f->v[list[i]]);
	}
	free(list);
}

static int apply_end(struct hr_engine *e, const struct hr_entry_end *in)
{
	struct hr_proc *p = hr__proc_find(e, in->proc);

	if (!p || p->end_ns)
		return -EBADMSG;
	if (never_came(p, in->exit) && !came_again(e, p))
		hr__missed_add(e, in->proc, p->id.pid, p->id.image);
	flush_filerecs(e, in->proc, true);
	hr__regions_end(e, p);
	hr__hang_end(e, p);
	p->end_ns = in->now_ns ? in->now_ns : 1;
	memcpy(p->exit, in->exit, sizeof(p->exit) - 1);
	hr__live_end(e, p);
	hr__proc_dirty(e, p);
	hr__proc_forget(e, p);
	e->stats.processes--;
	return 0;
}

static int apply_mounts(struct hr_engine *e, const struct hr_entry_mounts *in)
{
	uint64_t left = in->h.bytes - sizeof(*in), used = 0;
	const uint8_t *at = in->rows;

	for (uint64_t i = 0; i < in->n; i++) {
		int r = hr_mounts_take(&e->mounts, (const struct hr_mount_row *)at, left, &used);

		if (r)
			return r;
		at += used;
		left -= used;
	}
	return 0;
}

/* Applies privacy rules. Without memory for the rules, the engine fails, to reveal no names. */
static int apply_privacy(struct hr_engine *e, const struct hr_entry_privacy *in)
{
	hr_privacy_free(e->privacy);
	e->privacy_rules = in->rules;
	e->privacy = hr_privacy_hides(&in->rules) ? hr_privacy_new(&in->rules) : NULL;
	if (!e->privacy && hr_privacy_hides(&in->rules))
		e->failed = true;
	return 0;
}

static int apply_level(struct hr_engine *e, const struct hr_entry_level *in)
{
	if (in->level > HR_LEVEL_TRACE || in->level == e->level)
		return 0;
	hr__emit_batch(e);
	hr__emit_levels(e, in->now_ns);
	e->level = in->level;
	e->level_since_ns = in->now_ns;
	hr__emit_levels(e, 0);
	if (in->full)
		hr__loss(e, 0, HR_LOSS_MAX_SIZE, 0, 0);
	return 0;
}

static int apply_tick(struct hr_engine *e, const struct hr_entry_tick *in)
{
	bool window_over;

	if (!hr_clock_line_valid(&in->line))
		return -EBADMSG;
	window_over = in->now.boot_ns / HR_WINDOW_NS != e->now_ns / HR_WINDOW_NS;
	if (window_over)
		hr__excluded_due(e);
	e->line = in->line;
	e->now = in->now;
	e->now_ns = in->now.boot_ns;
	if (e->batch && e->batch->n && e->batch->first_ns + HR_BATCH_NS <= e->now_ns)
		hr__emit_batch(e);
	hr__regions_due(e);
	hr__flush_idle(e);
	if (e->now_ns > HR_WINDOW_NS + GRACE_NS)
		hr__emit_rollups(e, (e->now_ns - GRACE_NS) / HR_WINDOW_NS - 1);
	if (window_over)
		hr__emit_kernel(e);
	hr__emit_names(e);
	hr__missed_due(e, false);
	hr__emit_losses(e);
	return 0;
}

static void flush_all(struct hr_engine *e)
{
	hr__excluded_due(e);
	hr__emit_batch(e);
	hr__emit_regions(e);
	flush_filerecs(e, 0, false);
	hr__emit_rollups(e, UINT64_MAX);
	hr__emit_kernel(e);
	hr__emit_names(e);
	hr__emit_losses(e);
}

static int apply_stop(struct hr_engine *e, const struct hr_entry_stop *in)
{
	char state[sizeof(in->state)];

	if (e->stopped || !e->job)
		return -EBADMSG;
	memcpy(state, in->state, sizeof(state));
	state[sizeof(state) - 1] = 0;
	hr__missed_due(e, true);
	flush_all(e);
	hr__emit_levels(e, in->now_ns);
	hr__emit_job(e, state, in->now_ns);
	hr__emit_end(e, state, in->cut_short);
	e->stopped = true;
	return 0;
}

static int apply_note(struct hr_engine *e, const struct hr_entry_note *in)
{
	if (in->reason >= HR_LOSS_REASONS)
		return -EBADMSG;
	if (in->snapshot) {
		e->left_out = in->count;
		return 0;
	}
	if (in->reason == HR_LOSS_RESTART) /* this entry now counts the processes of left_out */
		e->left_out = 0;
	if (in->reason == HR_LOSS_UNATTACHED && in->pid)
		hr__missed_add(e, 0, in->pid, in->image);
	else
		hr__loss(e, 0, in->reason, 0, in->count);
	return 0;
}

static int apply_deselect(struct hr_engine *e, const struct hr_entry_deselect *in)
{
	struct hr_proc *p = hr__proc_find(e, in->proc);

	if (!p)
		return -EBADMSG;
	p->id.deselected = 1;
	hr__proc_dirty(e, p);
	return 0;
}

static int dispatch(struct hr_engine *e, const struct hr_entry *in)
{
	if (in->bytes < hr_entry_least(in->kind))
		return -EBADMSG;
	switch (in->kind) {
	case HR_ENTRY_START:
		return apply_start(e, (const struct hr_entry_start *)in);
	case HR_ENTRY_ATTACH:
		return hr__apply_attach(e, (const struct hr_entry_attach *)in);
	case HR_ENTRY_RECORDS:
		hr__apply_records(e, (const struct hr_entry_records *)in);
		return 0;
	case HR_ENTRY_LOST:
		return hr__apply_lost(e, (const struct hr_entry_lost *)in);
	case HR_ENTRY_LEFT:
		hr__apply_left(e, (const struct hr_entry_left *)in);
		return 0;
	case HR_ENTRY_END:
		return apply_end(e, (const struct hr_entry_end *)in);
	case HR_ENTRY_TICK:
		return apply_tick(e, (const struct hr_entry_tick *)in);
	case HR_ENTRY_MOUNTS:
		return apply_mounts(e, (const struct hr_entry_mounts *)in);
	case HR_ENTRY_LEVEL:
		return apply_level(e, (const struct hr_entry_level *)in);
	case HR_ENTRY_SEAL:
		flush_all(e);
		return 0;
	case HR_ENTRY_STOP:
		return apply_stop(e, (const struct hr_entry_stop *)in);
	case HR_ENTRY_NOTE:
		return apply_note(e, (const struct hr_entry_note *)in);
	case HR_ENTRY_DESELECT:
		return apply_deselect(e, (const struct hr_entry_deselect *)in);
	case HR_ENTRY_PRIVACY:
		return apply_privacy(e, (const struct hr_entry_privacy *)in);
	case HR_ENTRY_EXCLUDED:
		return hr__apply_excluded(e, (const struct hr_entry_excluded *)in);
	case HR_ENTRY_KERNEL:
		return hr__apply_kernel(e, (const struct hr_entry_kernel *)in);
	case HR_ENTRY_TALLY:
		return hr__apply_tally(e, (const struct hr_entry_tally *)in);
	case HR_ENTRY_LEFT_REGIONS:
		return hr__apply_left_regions(e, (const struct hr_entry_left_regions *)in);
	case HR_ENTRY_REGION_KEYS:
		return hr_region_keys_read(&e->regions, in);
	case HR_ENTRY_SNAP:
		return hr__apply_snap(e, in);
	case HR_ENTRY_PROC:
		return hr__apply_proc(e, in);
	case HR_ENTRY_FILERECS:
		return hr__apply_filerecs(e, in);
	default:
		return 0;
	}
}

int hr_engine_apply(struct hr_engine *e, const struct hr_entry *entry)
{
	int r = 0;

	if (!e->stopped &&
	    (e->job || entry->kind == HR_ENTRY_START || entry->kind == HR_ENTRY_SNAP))
		r = dispatch(e, entry);
	return e->failed ? -ENOMEM : r;
}

int hr_engine_checkpoint(struct hr_engine *e)
{
	if (e->stopped || !e->job)
		return 0;
	hr__missed_due(e, true);
	flush_all(e);
	e->paths.epoch++;
	e->paths.n_known = 0;
	for (struct hr_proc *p = e->first; p; p = p->next) {
		p->last_hash = 0;
		p->n_collisions = 0;
	}
	if (e->paths.n > HR_PATHS_MOST)
		hr_paths_clear(&e->paths);
	return e->failed ? -ENOMEM : 0;
}

/* ---- life cycle, and reading the state ------------------------------------------------------- */

int hr_engine_new(struct hr_batch_pool *pool, struct hr_engine **ret)
{
	struct hr_engine *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->pool = pool;
	hr_out_list_init(&e->out);
	hr_filerecs_init(&e->filerecs);
	hr__traits_init(e);
	*ret = e;
	return 0;
}

void hr_engine_free(struct hr_engine *e)
{
	struct hr_out *o;

	if (!e)
		return;
	while ((o = hr_out_list_pop(&e->out)))
		hr_out_free(o, e->pool);
	hr__procs_clear(e);
	hr_batch_put(e->pool, e->batch);
	free(e->slots);
	free(e->unused);
	hr_map64_done(&e->by_proc);
	hr_map64_done(&e->by_token);
	hr_map64_done(&e->by_pid);
	hr_paths_done(&e->paths);
	hr_mounts_done(&e->mounts);
	hr_rollups_done(&e->rollups);
	hr_filerecs_done(&e->filerecs);
	hr_kernel_sums_done(&e->kernel);
	hr_region_state_done(&e->regions);
	hr_losses_done(&e->losses);
	hr_names_done(&e->names);
	hr_live_done(&e->live);
	headrace__job_event__free_unpacked(e->job, NULL);
	hr_privacy_free(e->privacy);
	free(e);
}

void hr_engine_take(struct hr_engine *e, struct hr_out_list *ret)
{
	hr_out_list_join(ret, &e->out);
}

uint32_t hr_engine_known(const struct hr_engine *e)
{
	return e->paths.n_known;
}

void hr_engine_known_rows(struct hr_engine *e, struct hr_known_row *rows)
{
	for (uint32_t i = 0; i < e->paths.n_known; i++) {
		const struct hr_path *f = &e->paths.v[e->paths.known[i]];

		rows[i] = (struct hr_known_row){f->hash, f->check, f->id, f->mount, f->scope};
	}
	e->paths.n_known = 0;
}

uint64_t hr_engine_left_out(const struct hr_engine *e)
{
	return e->left_out;
}

uint64_t hr_engine_next_seq(const struct hr_engine *e)
{
	return e->next_seq;
}

struct hr_last_hello hr_engine_last_hello(const struct hr_engine *e)
{
	return e->last_hello;
}

uint64_t hr_engine_last_proc(const struct hr_engine *e)
{
	return e->last_proc;
}

uint32_t hr_engine_level(const struct hr_engine *e)
{
	return e->level;
}

bool hr_engine_stopped(const struct hr_engine *e)
{
	return e->stopped;
}

uint64_t hr_engine_now(const struct hr_engine *e)
{
	return e->now_ns;
}

bool hr_engine_waiting(const struct hr_engine *e)
{
	return (e->batch && e->batch->n) || e->regions.open || e->n_dirty || e->excluded_unsent ||
	       e->losses.n || e->rollups.n || e->kernel.n || e->paths.n_fresh || e->mounts.unsent ||
	       e->n_missed || e->filerecs.idle.oldest != UINT32_MAX;
}

int32_t hr_engine_mounts_wanted(struct hr_engine *e)
{
	struct hr_proc *p = e->mounts_wanted ? hr__proc_find(e, e->mounts_wanted) : NULL;

	e->mounts_wanted = 0;
	return p ? p->id.pid : 0;
}

const struct hr_mounts *hr_engine_mounts(const struct hr_engine *e)
{
	return &e->mounts;
}

const void *hr_engine_next_proc(const struct hr_engine *e, const void *after,
				struct hr_engine_proc *ret)
{
	const struct hr_proc *p = after ? ((const struct hr_proc *)after)->next : e->first;

	while (p && p->end_ns)
		p = p->next;
	if (p)
		*ret = (struct hr_engine_proc){
		    .proc = p->id.proc,
		    .token = p->id.token,
		    .start_time = p->id.start_time,
		    .pid = p->id.pid,
		    .rank = (int32_t)p->id.rank_plus1 - 1,
		    .local_rank = (int32_t)p->id.local_plus1 - 1,
		    .deselected = p->id.deselected != 0,
		    .covered = p->id.covered != 0,
		    .cover = p->id.cover,
		    .came = p->n_rings > 0,
		};
	return p;
}

bool hr_engine_ranks_changed(struct hr_engine *e)
{
	bool changed = e->ranks_changed;

	e->ranks_changed = false;
	return changed;
}

uint64_t hr_engine_ring_next(const struct hr_engine *e, uint64_t proc, uint32_t map, uint32_t ring)
{
	struct hr_proc *p = hr__proc_find(e, proc);
	uint32_t i = map * HR_MAP_RINGS + ring;

	return p && ring < HR_MAP_RINGS && i < p->n_rings ? p->rings[i].kept.next : 0;
}

void hr_engine_stats_get(const struct hr_engine *e, struct hr_engine_stats *ret)
{
	*ret = e->stats;
}
