/* SPDX-License-Identifier: Apache-2.0 */
#include "store/catalog.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "store/layout.h"
#include "common/order.h"
#include "common/text.h"

#define MOUNT_MAX 65536u /* highest mount id that is accepted */

#define CONTENT_BYTES_ALL (128u << 20) /* limit for all segments that a catalogue keeps in memory */

void hr__problem(struct hr_catalog *c, const char *format, ...)
{
	va_list args;
	char *raw, *text;
	int n;

	va_start(args, format);
	n = vasprintf(&raw, format, args);
	va_end(args);
	if (n < 0)
		return;
	text = hr_text_line(raw);
	free(raw);
	if (!text)
		return;
	if (!hr_array_reserve(c->problems, c->n_problems, c->problems_room)) {
		free(text);
		return;
	}
	c->problems[c->n_problems++].text = text;
}

/* ---- segments -------------------------------------------------------------------------------- */

/* `growing`: a writer may be writing a frame at the end of the segment. */
static int scan_segment(struct hr_catalog *c, struct hr__segment *g, const struct hr_source *source,
			bool growing)
{
	struct hr_segment_places scan;
	int r = hr_segment_scan(source, hr_index_visit, &g->index, &scan);

	if (r < 0) {
		hr_index_done(&g->index);
		return r;
	}
	for (size_t i = 0; i < scan.n_holes; i++)
		hr__problem(c, "%s: frame at %" PRIu64 " is damaged; skipped %" PRIu64 " bytes",
			    g->name, scan.holes[i].offset, scan.holes[i].bytes);
	if (scan.end < source->bytes && !growing)
		hr__problem(c,
			    "%s: ends in %" PRIu64 " bytes at %" PRIu64
			    " that are not a complete frame (was its writer killed?); left out",
			    g->name, source->bytes - scan.end, scan.end);
	free(scan.holes);
	return 0;
}

static int stream_load_refuse(struct hr_catalog *c, const struct hr__segment *g,
			      const struct hr_source *source)
{
	struct hr_segment_hdr h;
	int r = hr__source_read(source, 0, &h, sizeof(h));

	if (r == 0)
		hr__problem(c,
			    "%s: segment version %" PRIu32 ", features 0x%" PRIx32
			    "; this headrace reads version %u without features. Left out: read it "
			    "with the headrace that wrote it",
			    g->name, h.version, h.incompatible, HR_STORE_VERSION);
	return r;
}

/* Returns 1 if the segment was loaded, 0 if it was left out and reported. */
static int load_segment(struct hr_catalog *c, struct hr__segment *g, const struct hr_source *source,
			bool growing)
{
	struct hr_segment_hdr h;
	int r = hr_segment_header(source, &h);

	if (r == -EPROTONOSUPPORT)
		return stream_load_refuse(c, g, source);
	if (r == -EBADMSG && source->bytes < sizeof(h)) {
		if (!growing)
			hr__problem(c,
				    "%s: only %" PRIu64 " bytes, not a complete header; left out",
				    g->name, source->bytes);
		return 0;
	}
	if (r == -EBADMSG) {
		hr__problem(c, "%s: header is damaged; headrace searched the file for frames",
			    g->name);
	} else if (r < 0) {
		return r;
	} else {
		r = hr_segment_footer(source, &h, &g->index, &g->paths);
		if (r == 0)
			return 1;
		if (r == -EBADMSG)
			hr__problem(c, "%s: index is damaged; headrace read all frames instead",
				    g->name);
		else if (r != -ENODATA)
			return r;
	}
	r = scan_segment(c, g, source, growing);
	return r < 0 ? r : 1;
}

void hr__stream_folder_close(struct hr__stream_folder *f)
{
	if (f->segment.fd >= 0)
		close(f->segment.fd);
	f->segment.fd = -1;
}

int hr__stream_folder_segment(struct hr__stream_folder *f, const char *name, struct hr_source *ret)
{
	struct hr__segment_file *g = &f->segment;
	struct hr_source file;
	struct stat st;
	int r;

	if (g->fd < 0 || strcmp(g->name, name) != 0) {
		hr__stream_folder_close(f);
		r = hr__store_open_stat(f->fd, name, O_RDONLY, &st);
		if (r < 0)
			return r;
		g->fd = r;
		g->bytes = (uint64_t)st.st_size;
		g->whole = false;
		snprintf(g->name, sizeof(g->name), "%s", name);
	}
	file = (struct hr_source){.fd = g->fd, .bytes = g->bytes};
	if (!g->whole && g->bytes <= sizeof(g->content)) {
		r = hr__source_read(&file, 0, g->content, g->bytes);
		if (r < 0)
			return r;
		g->whole = true;
	}
	file.memory = g->whole ? g->content : NULL;
	*ret = file;
	return 0;
}

static int keep_content(struct hr_catalog *c, struct hr__segment *g, const struct hr_source *source)
{
	if (!source->memory || c->content_bytes + source->bytes > CONTENT_BYTES_ALL)
		return 0;
	g->content = hr_arena_copy(&c->contents, source->memory, source->bytes);
	if (!g->content)
		return -ENOMEM;
	c->content_bytes += source->bytes;
	return 0;
}

/* Loads a segment. -ESTALE: the writer cut the file meanwhile, so call this again. */
static int open_segment(struct hr_catalog *c, struct hr__segment *g, struct hr__stream_folder *f,
			const char *file, bool growing)
{
	int r = -ESTALE;

	for (int tries = 0; tries < 3 && r == -ESTALE; tries++) {
		struct hr_source source;

		r = hr__stream_folder_segment(f, file, &source);
		if (r == 0) {
			g->bytes = source.bytes;
			r = load_segment(c, g, &source, growing);
		}
		if (r >= 0 && keep_content(c, g, &source) < 0)
			r = -ENOMEM;
		if (r == -ESTALE)
			hr__stream_folder_close(f);
	}
	if (r >= 0 || r == -ENOMEM)
		return r;
	hr__problem(c, "%s: left out: cannot read it: %s", g->name,
		    r == -ELOOP ? "it is not a regular file" : strerrordesc_np(-r));
	return 0;
}

static int add_segment(struct hr_catalog *c, struct hr__stream *s, struct hr__stream_folder *f,
		       const char *store, const char *file, bool growing)
{
	struct hr__segment *g;
	char path[3 * HR__NAME_BYTES];
	int r;

	if (!hr_array_reserve(s->segments, s->n_segments, s->segments_room))
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/%s", f->name, file);
	g = &s->segments[s->n_segments];
	*g = (struct hr__segment){.store = store, .name = hr_arena_text(&s->memory, path)};
	if (!g->name)
		return -ENOMEM;
	r = open_segment(c, g, f, file, growing);
	if (r == 1)
		s->n_segments++;
	s->view.bytes += g->bytes;
	return r < 0 ? r : 0;
}

/* Reads the file `state`. If several stores have one for this stream, the latest one is used. */
static void load_state(struct hr_stream *s, int dir_fd)
{
	struct hr_stream_state state;

	if (hr_stream_state_read(dir_fd, &state) < 0)
		return;
	if (state.retired_ns > s->retired_ns)
		s->retired_ns = state.retired_ns;
	if (s->collected && state.heard_ns < s->heard_ns)
		return;
	s->collected = true;
	if (state.uid_known) {
		s->uid_known = true;
		s->uid = state.uid;
	}
	s->connected = state.connected;
	s->heard_ns = state.heard_ns;
	s->closed_ns = state.closed_ns;
	s->clock_known = state.clock_known;
	s->clock_offset_ns = state.clock_offset_ns;
	s->clock_offset_error_ns = state.clock_error_ns;
}

int hr__stream_add_folder(struct hr_catalog *c, struct hr__stream *s, struct hr__stream_folder *f)
{
	const char *store = hr_arena_text(&s->memory, f->store); /* the caller frees f->store */
	const char *segment = NULL;
	int r = store ? 0 : -ENOMEM;

	for (size_t i = 0; i <= f->names.n && r == 0; i++) {
		bool last = i == f->names.n;

		if (!last && hr__segment_number(f->names.names[i]) == 0)
			continue;
		if (segment)
			r = add_segment(c, s, f, store, segment, f->locked && last);
		segment = last ? NULL : f->names.names[i];
	}
	s->locked |= f->locked;
	if (hr__folder_has(&f->names, HR_STREAM_STATE_FILE))
		load_state(&s->view, f->fd);
	return r;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* A frame with its segment. If the frame has events: its index in the `batches` of the segment. */
struct placed {
	struct hr_frame_ref ref;
	uint32_t batch;
	bool has_batch;
};

static int by_seq(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	if (x->ref.seq != y->ref.seq)
		return x->ref.seq < y->ref.seq ? -1 : 1;
	/* if two stores have the same frame, the first store's is used */
	return x->ref.segment < y->ref.segment ? -1 : x->ref.segment > y->ref.segment;
}

/* Collects the frames of all segments, except copies of the StreamStart. */
static int stream_load_gather(const struct hr__stream *s, struct placed **ret, size_t *ret_n)
{
	size_t room = 0, n = 0;
	struct placed *all;
	bool sorted = true;

	for (size_t i = 0; i < s->n_segments; i++)
		room += s->segments[i].index.n_frames;
	all = malloc((room + 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_segments; i++) {
		const struct hr_index *ix = &s->segments[i].index;
		uint32_t batch = 0;

		for (size_t f = 0; f < ix->n_frames; f++) {
			const struct hr_frame_entry *e = &ix->frames[f];
			bool events = e->kind == HEADRACE__FRAME__BODY_EVENTS;

			if (e->seq > 0 && !hr__is_start_copy(e))
				all[n++] = (struct placed){
				    {(uint32_t)i, e->bytes, e->offset, e->seq, e->kind},
				    events ? batch : 0,
				    events};
			batch += events;
			sorted &= n < 2 || all[n - 2].ref.seq < all[n - 1].ref.seq;
		}
	}
	if (!sorted)
		qsort(all, n, sizeof(*all), by_seq);
	*ret = all;
	*ret_n = n;
	return 0;
}

static void report_gap(struct hr_catalog *c, const struct hr__stream *s, uint64_t first,
		       uint64_t last)
{
	const char *name = s->n_segments ? s->segments[0].name : "";
	int bytes = (int)(strlen(name) - strlen("/000000.seg"));

	if (first == 1 && s->view.retired_ns > 0) {
		hr__problem(c,
			    "%.*s: earlier data was removed on %s (by age, size or an operator); "
			    "only later data is left",
			    bytes, name, hr_text_date(s->view.retired_ns).s);
		return;
	}
	hr__problem(c,
		    "%.*s: frames %" PRIu64 " to %" PRIu64
		    " are missing: a segment was removed or damaged; answers lack their data",
		    bytes, name, first, last);
}

static int join_frames(struct hr_catalog *c, struct hr__stream *s)
{
	struct placed *all;
	struct hr_frame_ref *frames;
	struct hr_batch_ref *batches;
	size_t n, n_frames = 0, n_batches = 0;
	uint64_t last_seq = 0;
	int r = stream_load_gather(s, &all, &n);

	if (r < 0)
		return r;
	frames = hr_arena_get(&s->memory, n * sizeof(*frames));
	batches = hr_arena_get(&s->memory, n * sizeof(*batches));
	if (!frames || !batches || n > UINT32_MAX) {
		free(all);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		const struct placed *p = &all[i];

		if (p->ref.seq == last_seq)
			continue;
		if (p->ref.seq != last_seq + 1)
			report_gap(c, s, last_seq + 1, p->ref.seq - 1);
		last_seq = p->ref.seq;
		if (p->has_batch) {
			batches[n_batches] = s->segments[p->ref.segment].index.batches[p->batch];
			batches[n_batches++].frame = (uint32_t)n_frames;
		}
		s->view.ended |= p->ref.kind == HEADRACE__FRAME__BODY_STREAM_END;
		frames[n_frames++] = p->ref;
	}
	free(all);
	s->view.frames = frames;
	s->view.n_frames = (uint32_t)n_frames;
	s->view.batches = batches;
	s->view.n_batches = (uint32_t)n_batches;
	s->view.last_seq = last_seq;
	return 0;
}

/* ---- small frames ---------------------------------------------------------------------------- */

struct process_row {
	const Headrace__Process *msg;
	uint32_t order;
};

static int by_proc(const void *a, const void *b)
{
	const struct process_row *x = a, *y = b;

	if (x->msg->proc != y->msg->proc)
		return x->msg->proc < y->msg->proc ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

/*
 * Returns a key for the processes among which numbers of workers are unique: those of a rank or,
 * without ranks, those of a parent (with the highest bit set).
 */
static uint64_t team_of(const struct hr_process *p)
{
	return p->rank >= 0 ? (uint64_t)p->rank : UINT64_C(1) << 63 | p->msg->parent_proc;
}

/*
 * If DataLoader workers reported their numbers, other children of their rank are not workers. The
 * daemon learns this only from the first report. Children that ended earlier still have numbers of
 * workers, which this function removes.
 */
static int drop_slots(struct hr_process *processes, size_t n)
{
	size_t n_teams = 0;
	uint64_t *teams;

	for (size_t i = 0; i < n; i++)
		n_teams += processes[i].msg->loader_worker_plus1 != 0;
	if (n_teams == 0)
		return 0;
	teams = malloc(n_teams * sizeof(*teams));
	if (!teams)
		return -ENOMEM;
	n_teams = 0;
	for (size_t i = 0; i < n; i++)
		if (processes[i].msg->loader_worker_plus1 != 0)
			teams[n_teams++] = team_of(&processes[i]);
	hr_uint64s_sort(teams, n_teams);
	for (size_t i = 0; i < n; i++) {
		uint64_t team = team_of(&processes[i]);

		if (processes[i].worker >= 0 && processes[i].msg->loader_worker_plus1 == 0 &&
		    bsearch(&team, teams, n_teams, sizeof(*teams), hr_uint64_compare))
			processes[i].worker = -1;
	}
	free(teams);
	return 0;
}

/* Returns the number. -1: unknown, or too large. */
static int32_t less_one(uint32_t plus1)
{
	return plus1 > INT32_MAX ? -1 : (int32_t)plus1 - 1;
}

/* Sorts `rows`. If a process has several rows, the last one is used. */
static int merge_processes(struct hr__stream *s, struct process_row *rows, size_t n)
{
	struct hr_process *processes = hr_arena_get(&s->memory, n * sizeof(*processes));
	size_t used = 0;

	if (!processes)
		return -ENOMEM;
	if (n > 0)
		qsort(rows, n, sizeof(*rows), by_proc);
	for (size_t i = 0; i < n; i++) {
		const Headrace__Process *p = rows[i].msg;

		if (used == 0 || processes[used - 1].msg->proc != p->proc)
			used++;
		processes[used - 1] = (struct hr_process){
		    .msg = p,
		    .rank = less_one(p->rank_plus1),
		    .local_rank = less_one(p->local_rank_plus1),
		    .worker = less_one(p->worker_plus1),
		};
	}
	s->view.processes = processes;
	s->view.n_processes = (uint32_t)used;
	return drop_slots(processes, used);
}

static int load_processes(struct hr_catalog *c, struct hr__stream *s)
{
	struct process_row *rows = NULL;
	size_t n = 0, room = 0;
	int r = 0;

	for (uint32_t f = 0; f < s->view.n_frames && r == 0; f++) {
		Headrace__Frame *msg;

		if (s->view.frames[f].kind != HEADRACE__FRAME__BODY_PROCESSES)
			continue;
		if (!hr_array_reserve(s->kept, s->n_kept, s->kept_room)) {
			r = -ENOMEM;
			break;
		}
		r = hr_stream_read(&s->view, f, &msg);
		if (r < 0) {
			const struct hr_frame_ref *ref = &s->view.frames[f];

			hr__problem(c,
				    "%s: frame at %" PRIu64
				    " is damaged: some processes and their ranks are unknown",
				    s->segments[ref->segment].name, ref->offset);
			r = r == -ENOMEM ? r : 0;
			continue;
		}
		s->kept[s->n_kept++] = msg;
		if (msg->body_case != HEADRACE__FRAME__BODY_PROCESSES)
			continue;
		for (size_t i = 0; i < msg->processes->n_rows && r == 0; i++) {
			if (!hr_array_reserve(rows, n, room)) {
				r = -ENOMEM;
				break;
			}
			rows[n] = (struct process_row){msg->processes->rows[i], (uint32_t)n};
			n++;
		}
	}
	if (r == 0)
		r = merge_processes(s, rows, n);
	free(rows);
	return r;
}

static int load_mounts(struct hr_catalog *c, struct hr__stream *s)
{
	const Headrace__Mount **mounts;
	uint32_t max = 0;

	for (size_t i = 0; i < s->n_segments; i++) {
		const struct hr_index *ix = &s->segments[i].index;

		for (size_t m = 0; m < ix->n_mounts; m++)
			if (ix->mounts[m]->id > max && ix->mounts[m]->id <= MOUNT_MAX)
				max = ix->mounts[m]->id;
	}
	mounts = hr_arena_get(&s->memory, (max + 1) * sizeof(*mounts));
	if (!mounts)
		return -ENOMEM;
	memset(mounts, 0, (max + 1) * sizeof(*mounts));
	for (size_t i = 0; i < s->n_segments; i++) {
		const struct hr_index *ix = &s->segments[i].index;

		for (size_t m = 0; m < ix->n_mounts; m++) {
			if (ix->mounts[m]->id == 0 || ix->mounts[m]->id > max)
				hr__problem(c,
					    "%s: mount number %" PRIu32 " is not valid; left out",
					    s->segments[i].name, ix->mounts[m]->id);
			else
				mounts[ix->mounts[m]->id] = ix->mounts[m];
		}
	}
	s->view.mounts = mounts;
	s->view.n_mounts = max + 1;
	return 0;
}

static void sum_up(struct hr__stream *s)
{
	uint64_t clock_seq = 0;

	for (size_t i = 0; i < s->n_segments; i++) {
		const struct hr_index *ix = &s->segments[i].index;

		if (!ix->has_clock || ix->last_seq < clock_seq)
			continue;
		clock_seq = ix->last_seq;
		s->view.real_minus_boot_ns = (int64_t)(ix->clock.real_ns - ix->clock.boot_ns);
		s->view.clock_error_ns = ix->clock.error_ns;
	}
	s->view.live = s->locked;
}

int hr__stream_finish(struct hr_catalog *c, struct hr__stream *s)
{
	int r = join_frames(c, s);

	if (r == 0)
		r = load_processes(c, s);
	if (r == 0)
		r = load_mounts(c, s);
	if (r == 0)
		sum_up(s);
	return r;
}

void hr__stream_free(struct hr__stream *s)
{
	for (size_t i = 0; i < s->n_segments; i++)
		hr_index_done(&s->segments[i].index);
	for (size_t i = 0; i < s->n_kept; i++)
		headrace__frame__free_unpacked(s->kept[i], NULL);
	hr__files_free(s->files);
	pthread_mutex_destroy(&s->files_lock);
	free(s->segments);
	free(s->kept);
	hr_arena_free(&s->memory);
	free(s);
}
