/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the engine's state after a checkpoint as entries at the head of a journal half, and reads
 * them. They lack the file table (paths.h); KNOWN entries name the files that the half uses.
 */
#include <errno.h>

#include "daemon/engine/state.h"

#define CMDLINE_KEPT  1024u
#define CMDLINE_LEAST 16u
/* How much of a journal half stays free for the entries after the snapshot. */
#define PROC_SLACK	 (HR_JOURNAL_SLACK + HR_KNOWN_SLACK + (1u << 20))
#define MOUNT_BYTES_MOST (512u << 10)

struct entry_snap {
	struct hr_entry h;
	uint64_t next_seq;
	uint64_t last_proc;
	uint64_t batch_number;
	uint64_t level_since_ns;
	struct hr_clock_line line;
	struct hr_clock_sample now;
	struct hr_engine_stats stats;
	uint32_t level;
	uint32_t epoch;
	uint32_t next_file;
	uint32_t next_mount;
	uint32_t job_bytes;
	uint32_t spare;
	uint8_t job[];
};

/*
 * A process. The entry continues with exe, cmdline and defaults, then (8-aligned) its rings, their
 * lost rows, places, descriptors and spawned children.
 */
struct entry_proc {
	struct hr_entry h;
	struct hr_identity id;
	uint32_t exe_bytes;
	uint32_t cmdline_bytes;
	uint32_t n_rings;
	uint32_t n_lost;
	uint32_t n_places;
	uint32_t unused_places;
	uint32_t n_fds;
	uint32_t n_spawned;
	uint32_t defaults_bytes;
	uint32_t spare;
	uint8_t rest[];
};

struct fd_row {
	uint32_t fd;
	uint32_t place;
};

struct entry_filerecs {
	struct hr_entry h;
	uint64_t n;
	struct hr_filerec_tail rows[];
};

/* ---- writing --------------------------------------------------------------------------------- */

static int write_snap(const struct hr_engine *e, struct hr_journal *j)
{
	size_t job_bytes = headrace__job_event__get_packed_size(e->job);
	struct entry_snap *s = hr_journal_reserve(j, sizeof(*s) + job_bytes, HR_JOURNAL_SLACK);

	if (!s)
		return -ENOSPC;
	*s = (struct entry_snap){
	    .next_seq = e->next_seq,
	    .last_proc = e->last_proc,
	    .batch_number = e->batch_number,
	    .level_since_ns = e->level_since_ns,
	    .line = e->line,
	    .now = e->now,
	    .stats = e->stats,
	    .level = e->level,
	    .epoch = e->paths.epoch,
	    .next_file = e->paths.next_id,
	    .next_mount = e->mounts.last_id,
	    .job_bytes = (uint32_t)job_bytes,
	};
	headrace__job_event__pack(e->job, s->job);
	hr_journal_commit(j, HR_ENTRY_SNAP, sizeof(*s) + job_bytes);
	return 0;
}

static int write_privacy(const struct hr_engine *e, struct hr_journal *j)
{
	struct hr_entry_privacy *in;

	if (!e->privacy)
		return 0;
	in = hr_journal_reserve(j, sizeof(*in), HR_JOURNAL_SLACK);
	if (!in)
		return -ENOSPC;
	in->rules = e->privacy_rules;
	hr_journal_commit(j, HR_ENTRY_PRIVACY, sizeof(*in));
	return 0;
}

static int write_mounts(const struct hr_engine *e, struct hr_journal *j)
{
	struct hr_entry_mounts *m =
	    hr_journal_reserve(j, sizeof(*m) + MOUNT_BYTES_MOST, HR_JOURNAL_SLACK);
	uint64_t used = 0;

	if (!m)
		return -ENOSPC;
	m->n = 0;
	for (uint32_t i = 0; i < e->mounts.n; i++) {
		if (e->mounts.v[i].gone || !e->mounts.v[i].path ||
		    used + hr_mounts_row(&e->mounts, i, NULL) > MOUNT_BYTES_MOST)
			continue;
		used += hr_mounts_row(&e->mounts, i, m->rows + used);
		m->n++;
	}
	hr_journal_commit(j, HR_ENTRY_MOUNTS, sizeof(*m) + used);
	return 0;
}

static uint32_t lost_rows(const struct hr_proc *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_rings; i++)
		n += p->rings[i].kept.n_lost;
	return n;
}

static uint8_t *snapshot_put(uint8_t *to, const void *data, size_t bytes)
{
	if (bytes)
		memcpy(to, data, bytes);
	return to + bytes;
}

static void write_rest(const struct hr_proc *p, uint8_t *at)
{
	const struct hr_map64 *fds = &p->positions.by_fd;

	for (uint32_t i = 0; i < p->n_rings; i++)
		at = snapshot_put(at, &p->rings[i].kept, sizeof(p->rings[i].kept));
	for (uint32_t i = 0; i < p->n_rings; i++)
		at = snapshot_put(at, p->rings[i].lost,
				  p->rings[i].kept.n_lost * sizeof(struct hr_lost_row));
	at = snapshot_put(at, p->positions.v, p->positions.n * sizeof(struct hr_place));
	for (uint64_t i = 0; fds->cells && i <= fds->mask; i++) {
		struct fd_row row = {(uint32_t)fds->cells[i].key, fds->cells[i].value};

		if (row.place != HR_MAP64_NONE)
			at = snapshot_put(at, &row, sizeof(row));
	}
	snapshot_put(at, p->spawned, p->n_spawned * sizeof(struct hr_spawned));
}

static uint32_t cmdline_kept(const struct hr_proc *p, uint32_t most)
{
	return p->cmdline_bytes < most ? (uint32_t)p->cmdline_bytes : most;
}

static uint64_t proc_bytes(const struct hr_proc *p, uint32_t cmdline_most)
{
	return sizeof(struct entry_proc) +
	       hr_entry_round(p->exe_bytes + cmdline_kept(p, cmdline_most) + p->defaults_bytes) +
	       p->n_rings * sizeof(struct hr_ring_kept) +
	       lost_rows(p) * sizeof(struct hr_lost_row) +
	       p->positions.n * sizeof(struct hr_place) +
	       p->positions.by_fd.used * sizeof(struct fd_row) +
	       p->n_spawned * sizeof(struct hr_spawned);
}

/*
 * Returns the length to which command lines are cut so that all processes fit. The store already
 * has most of the command lines.
 */
static uint32_t cmdline_most(const struct hr_engine *e, uint64_t room)
{
	uint32_t most = CMDLINE_KEPT;
	uint64_t bytes;

	do {
		bytes = 0;
		for (const struct hr_proc *p = e->first; p; p = p->next)
			bytes += proc_bytes(p, most);
		if (bytes <= room)
			break;
		most /= 4;
	} while (most >= CMDLINE_LEAST);
	return most;
}

static int write_proc(const struct hr_proc *p, struct hr_journal *j, uint32_t most)
{
	uint32_t cmdline = cmdline_kept(p, most);
	uint64_t texts = hr_entry_round(p->exe_bytes + cmdline + p->defaults_bytes);
	uint64_t bytes = proc_bytes(p, most);
	struct entry_proc *e = hr_journal_reserve(j, bytes, PROC_SLACK);

	if (!e)
		return -ENOSPC;
	e->id = p->id;
	e->exe_bytes = (uint32_t)p->exe_bytes;
	e->cmdline_bytes = cmdline;
	e->n_rings = p->n_rings;
	e->n_lost = lost_rows(p);
	e->n_places = p->positions.n;
	e->unused_places = p->positions.unused;
	e->n_fds = p->positions.by_fd.used;
	e->n_spawned = p->n_spawned;
	e->defaults_bytes = (uint32_t)p->defaults_bytes;
	e->spare = 0;
	snapshot_put(snapshot_put(snapshot_put(e->rest, p->exe, p->exe_bytes), p->cmdline, cmdline),
		     p->defaults, p->defaults_bytes);
	write_rest(p, e->rest + texts);
	hr_journal_commit(j, HR_ENTRY_PROC, bytes);
	return 0;
}

static int write_left_out(struct hr_journal *j, uint32_t left_out)
{
	struct hr_entry_note *in = hr_journal_reserve(j, sizeof(*in), HR_JOURNAL_SLACK);

	if (!in)
		return -ENOSPC;
	*in = (struct hr_entry_note){.reason = HR_LOSS_RESTART, .snapshot = 1, .count = left_out};
	hr_journal_commit(j, HR_ENTRY_NOTE, sizeof(*in));
	return -ENOSPC;
}

static int write_filerecs(const struct hr_engine *e, struct hr_journal *j)
{
	const struct hr_filerecs *f = &e->filerecs;
	uint64_t bytes = sizeof(struct entry_filerecs) + f->live * sizeof(struct hr_filerec_tail);
	struct entry_filerecs *in = hr_journal_reserve(j, bytes, HR_JOURNAL_SLACK);

	if (!in)
		return -ENOSPC;
	in->n = 0;
	for (uint32_t i = f->open.oldest; i != UINT32_MAX; i = f->links[i].newer)
		in->rows[in->n++] = f->v[i].t;
	hr_journal_commit(j, HR_ENTRY_FILERECS, bytes);
	return 0;
}

int hr_engine_snapshot(struct hr_engine *e, struct hr_journal *j)
{
	uint64_t room = hr_journal_capacity(j), used;
	uint32_t most, left_out = 0;
	int r = write_snap(e, j);

	if (!r)
		r = write_privacy(e, j);
	if (!r)
		r = write_mounts(e, j);
	if (!r)
		r = hr_region_keys_write(&e->regions, j);
	if (r)
		return r;
	r = write_filerecs(e, j);
	used = hr_journal_head(j) + PROC_SLACK;
	most = cmdline_most(e, room > used ? room - used : 0);
	for (const struct hr_proc *p = e->first; p; p = p->next)
		left_out += write_proc(p, j, most) != 0;
	return left_out ? write_left_out(j, left_out) : r;
}

/* ---- reading --------------------------------------------------------------------------------- */

bool hr__snap_read(const struct hr_entry *entry, uint64_t *ret_next_seq, uint32_t *ret_epoch)
{
	const struct entry_snap *in = (const struct entry_snap *)entry;

	if (entry->kind != HR_ENTRY_SNAP || entry->bytes < sizeof(*in))
		return false;
	*ret_next_seq = in->next_seq;
	*ret_epoch = in->epoch;
	return true;
}

void hr__procs_clear(struct hr_engine *e)
{
	e->dirty = e->last_dirty = NULL;
	e->n_dirty = 0;
	while (e->first)
		hr__proc_free(e, e->first);
}

bool hr__job_set(struct hr_engine *e, const uint8_t *packed, uint64_t bytes)
{
	Headrace__JobEvent *job = headrace__job_event__unpack(NULL, bytes, packed);

	if (!job)
		return false;
	headrace__job_event__free_unpacked(e->job, NULL);
	e->job = job;
	return true;
}

int hr__apply_snap(struct hr_engine *e, const struct hr_entry *entry)
{
	const struct entry_snap *in = (const struct entry_snap *)entry;

	if (in->h.bytes < sizeof(*in) || in->job_bytes > in->h.bytes - sizeof(*in) ||
	    in->level > HR_LEVEL_TRACE || !hr_clock_line_valid(&in->line) ||
	    !hr__job_set(e, in->job, in->job_bytes))
		return -EBADMSG;
	hr__procs_clear(e);
	hr_mounts_done(&e->mounts);
	hr_filerecs_done(&e->filerecs);
	hr_region_state_done(&e->regions);
	e->mounts.last_id = in->next_mount;
	e->next_seq = in->next_seq;
	e->batch_number = in->batch_number;
	e->level = in->level;
	e->level_since_ns = in->level_since_ns;
	e->line = in->line;
	e->now = in->now;
	e->now_ns = in->now.boot_ns;
	e->last_proc = in->last_proc;
	if (!e->live.since_ns) /* the sums of a replay begin here */
		e->live.since_ns = e->now_ns;
	e->paths.epoch = in->epoch;
	e->paths.next_id = in->next_file;
	e->stats = in->stats;
	e->stats.processes = 0; /* the entries that follow count the processes again */
	e->stats.waiters = 0;	/* counted again when these processes wait again */
	e->stats.waiting_since_ns = e->stats.waited_ns = 0;
	e->hanging = 0;
	e->left_out = 0; /* a NOTE entry after the snapshot may set it */
	return 0;
}

struct snapshot_reader {
	const uint8_t *at, *end;
	bool bad;
};

static const void *get(struct snapshot_reader *r, uint64_t n, size_t size)
{
	const uint8_t *at = r->at;

	if (n > (uint64_t)(r->end - r->at) / size) {
		r->bad = true;
		return NULL;
	}
	r->at += n * size;
	return at;
}

static bool read_rings(struct hr_proc *p, const struct entry_proc *in, struct snapshot_reader *rd)
{
	const struct hr_ring_kept *rows = get(rd, in->n_rings, sizeof(*rows));
	const struct hr_lost_row *lost = get(rd, in->n_lost, sizeof(*lost));
	uint32_t left = in->n_lost;

	if (rd->bad || in->n_rings > HR_PROC_RINGS)
		return false;
	for (uint32_t i = 0; i < in->n_rings; i++) {
		struct hr_ring_state *r = hr__ring(p, i / HR_MAP_RINGS, i % HR_MAP_RINGS);

		if (!r || rows[i].n_lost > left)
			return false;
		r->kept = rows[i];
		r->kept.n_lost = 0; /* until `lost` has them */
		if (!rows[i].n_lost)
			continue;
		r->lost = malloc(rows[i].n_lost * sizeof(*lost));
		if (!r->lost)
			return false;
		memcpy(r->lost, lost, rows[i].n_lost * sizeof(*lost));
		r->kept.n_lost = rows[i].n_lost;
		lost += r->kept.n_lost;
		left -= r->kept.n_lost;
	}
	return true;
}

static bool read_positions(struct hr_proc *p, const struct entry_proc *in,
			   struct snapshot_reader *rd)
{
	const struct hr_place *places = get(rd, in->n_places, sizeof(*places));
	const struct fd_row *fds = get(rd, in->n_fds, sizeof(*fds));
	struct hr_positions *t = &p->positions;

	if (rd->bad)
		return false;
	t->v = malloc((in->n_places + 1) * sizeof(*t->v));
	if (!t->v)
		return false;
	memcpy(t->v, places, in->n_places * sizeof(*places));
	t->n = t->room = in->n_places;
	t->unused = in->unused_places <= in->n_places ? in->unused_places : 0;
	for (uint32_t i = 0; i < in->n_fds; i++)
		if (fds[i].place >= in->n_places ||
		    hr_map64_set(&t->by_fd, fds[i].fd, fds[i].place))
			return false;
	return true;
}

static bool read_texts(struct hr_proc *p, const struct entry_proc *in, const uint8_t *texts)
{
	p->exe = malloc(in->exe_bytes + 1);
	p->cmdline = malloc(in->cmdline_bytes + 1);
	p->defaults = malloc(in->defaults_bytes + 1);
	if (!p->exe || !p->cmdline || !p->defaults)
		return false;
	memcpy(p->exe, texts, in->exe_bytes);
	memcpy(p->cmdline, texts + in->exe_bytes, in->cmdline_bytes);
	memcpy(p->defaults, texts + in->exe_bytes + in->cmdline_bytes, in->defaults_bytes);
	p->exe_bytes = in->exe_bytes;
	p->cmdline_bytes = in->cmdline_bytes;
	p->defaults_bytes = in->defaults_bytes;
	return true;
}

int hr__apply_proc(struct hr_engine *e, const struct hr_entry *entry)
{
	const struct entry_proc *in = (const struct entry_proc *)entry;
	struct snapshot_reader rd = {in->rest, (const uint8_t *)in + in->h.bytes, false};
	const struct hr_spawned *spawned;
	const uint8_t *texts;
	struct hr_proc *p;

	if (in->h.bytes < sizeof(*in))
		return -EBADMSG;
	texts = get(
	    &rd, hr_entry_round((uint64_t)in->exe_bytes + in->cmdline_bytes + in->defaults_bytes),
	    1);
	p = texts ? hr__proc_new(e, &in->id) : NULL;
	if (!p)
		return -EBADMSG;
	if (!read_texts(p, in, texts))
		return -ENOMEM;
	if (!read_rings(p, in, &rd) || !read_positions(p, in, &rd))
		return -EBADMSG;
	spawned = get(&rd, in->n_spawned, sizeof(*spawned));
	if (!spawned || !in->n_spawned)
		return spawned ? 0 : -EBADMSG;
	p->spawned = malloc(in->n_spawned * sizeof(*spawned));
	if (!p->spawned)
		return -ENOMEM;
	memcpy(p->spawned, spawned, in->n_spawned * sizeof(*spawned));
	p->n_spawned = in->n_spawned;
	return 0;
}

int hr__apply_filerecs(struct hr_engine *e, const struct hr_entry *entry)
{
	const struct entry_filerecs *in = (const struct entry_filerecs *)entry;

	if (in->h.bytes < sizeof(*in) || in->n > (in->h.bytes - sizeof(*in)) / sizeof(in->rows[0]))
		return -EBADMSG;
	for (uint64_t i = 0; i < in->n; i++)
		if (hr_filerec_restore(&e->filerecs, &in->rows[i]))
			return -ENOMEM;
	return 0;
}
