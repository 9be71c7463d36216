/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c - the files of a stream: a table by id, and the texts of their paths
 *
 * The first use makes the table. The texts of a frame are loaded on demand. Table and texts are
 * published once, by a release store, and never change. Readers use an acquire load.
 */
#include "store/catalog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"

#define NO_FRAME UINT32_MAX

struct file_entry {
	uint64_t hash;
	uint32_t id;
	uint32_t frame; /* index in the frames of the stream; NO_FRAME: no text */
	uint32_t row;
	uint32_t mount : 31;
	uint32_t scope : 1;
};

/* The paths of one Paths frame. Row i is bytes[start[i]..start[i + 1]). */
struct file_text {
	uint32_t n;
	const uint8_t *bytes;
	uint32_t start[];
};

struct hr__files {
	struct file_entry *entries; /* sorted by id */
	size_t n_entries;
	uint32_t *by_hash; /* entries with text, sorted by hash; NULL: all entries have text */
	size_t n_by_hash;
	size_t n_texts;
	_Atomic(struct file_text *) texts[]; /* indexed like the frames of the stream */
};

/* Stands for the texts of a frame that could not be read, and is not tried again. */
static struct file_text unreadable;

/* ---- the table ------------------------------------------------------------------------------- */

static uint32_t frame_by_seq(const struct hr_stream *v, uint64_t seq)
{
	uint32_t at = (uint32_t)hr_array_search(i, v->n_frames, v->frames[i].seq < seq);

	return at < v->n_frames && v->frames[at].seq == seq ? at : NO_FRAME;
}

/* Marks a Paths frame as lost, unless another store has a good copy of it. */
static void mark_lost(const struct hr__stream *s, const struct hr__segment *g,
		      const struct hr_frame_entry *e, struct hr__files *f)
{
	uint32_t frame = frame_by_seq(&s->view, e->seq);

	if (frame != NO_FRAME && &s->segments[s->view.frames[frame].segment] == g)
		atomic_store_explicit(&f->texts[frame], &unreadable, memory_order_relaxed);
}

/* Reads all Paths frames into an empty `ret`. `source` NULL: the segment cannot be opened. */
static int read_paths_frames(const struct hr__stream *s, const struct hr__segment *g,
			     const struct hr_source *source, struct hr__files *f,
			     struct hr_index *ret)
{
	int r = 0;

	for (size_t i = 0; i < g->index.n_frames && r == 0; i++) {
		const struct hr_frame_entry *e = &g->index.frames[i];
		Headrace__Frame *msg = NULL;

		if (e->kind != HEADRACE__FRAME__BODY_PATHS)
			continue;
		r = source ? hr__source_frame(source, e->offset, e->bytes, NULL, &msg) : -EIO;
		ret->n_frames = i; /* rows refer to their frame by this number */
		if (r == 0 && msg->body_case == HEADRACE__FRAME__BODY_PATHS)
			r = hr__index_paths(ret, msg->paths);
		else if (r != -ENOMEM)
			mark_lost(s, g, e, f);
		headrace__frame__free_unpacked(msg, NULL);
		r = r == -ENOMEM ? r : 0;
	}
	ret->n_frames = 0;
	return r;
}

/*
 * Reads the paths of a sealed segment into an empty index: from the footer or, if the footer is
 * damaged, from the Paths frames. Marks damaged Paths frames in `f`.
 */
static int read_paths(const struct hr__stream *s, const struct hr__segment *g, struct hr__files *f,
		      struct hr_index *ret)
{
	struct hr_source source;
	Headrace__Frame *msg;
	int opened = hr__segment_source(g, &source), r = opened;

	if (r == 0)
		r = hr__source_frame(&source, g->paths.offset, g->paths.bytes, NULL, &msg);
	if (r == 0) {
		r = hr__index_unpack_paths(ret, msg);
		headrace__frame__free_unpacked(msg, NULL);
	}
	if (r < 0 && r != -ENOMEM) {
		hr_index_done(ret);
		r = read_paths_frames(s, g, opened == 0 ? &source : NULL, f, ret);
	}
	if (opened == 0 && source.fd >= 0)
		close(source.fd);
	return r;
}

struct table {
	struct file_entry *entries;
	size_t n, room;
	bool sorted;
};

static int files_add_rows(struct table *t, const struct hr_stream *v, const struct hr__segment *g,
			  const struct hr_index *rows)
{
	uint32_t segment_frame = UINT32_MAX, frame = NO_FRAME;

	if (!hr_array_fit(t->entries, t->n + rows->n_paths, t->room))
		return -ENOMEM;
	for (size_t i = 0; i < rows->n_paths; i++) {
		const struct hr__path_row *p = &rows->paths[i];

		if (p->id == 0)
			continue;
		if (p->frame != segment_frame) {
			segment_frame = p->frame;
			frame = p->frame < g->index.n_frames
				    ? frame_by_seq(v, g->index.frames[p->frame].seq)
				    : NO_FRAME;
		}
		t->entries[t->n++] = (struct file_entry){
		    .hash = p->hash,
		    .id = p->id,
		    .frame = p->has_text ? frame : NO_FRAME,
		    .row = p->row,
		    .mount = p->mount & INT32_MAX,
		    .scope = p->scope,
		};
		t->sorted &= t->n < 2 || t->entries[t->n - 2].id < p->id;
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct file_entry *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if ((x->frame == NO_FRAME) != (y->frame == NO_FRAME))
		return x->frame == NO_FRAME ? 1 : -1;
	return x->frame > y->frame ? -1 : x->frame < y->frame;
}

static void sort_table(struct table *t)
{
	size_t n = 0;

	if (t->sorted)
		return;
	qsort(t->entries, t->n, sizeof(*t->entries), by_id);
	for (size_t i = 0; i < t->n; i++)
		if (n == 0 || t->entries[n - 1].id != t->entries[i].id)
			t->entries[n++] = t->entries[i];
	t->n = n;
}

static int compare_hashes(const void *a, const void *b, void *entries)
{
	const struct file_entry *x = (struct file_entry *)entries + *(const uint32_t *)a;
	const struct file_entry *y = (struct file_entry *)entries + *(const uint32_t *)b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* Makes the list by hash: if a file has no text, another file with the same hash may have one. */
static int index_hashes(struct hr__files *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_entries; i++)
		n += f->entries[i].frame != NO_FRAME;
	if (n == f->n_entries)
		return 0;
	f->by_hash = malloc((n + 1) * sizeof(*f->by_hash));
	if (!f->by_hash)
		return -ENOMEM;
	for (size_t i = 0; i < f->n_entries; i++)
		if (f->entries[i].frame != NO_FRAME)
			f->by_hash[f->n_by_hash++] = (uint32_t)i;
	qsort_r(f->by_hash, n, sizeof(*f->by_hash), compare_hashes, f->entries);
	return 0;
}

static int load_table(const struct hr__stream *s, struct hr__files **ret)
{
	struct table t = {.sorted = true};
	struct hr__files *f = calloc(1, sizeof(*f) + s->view.n_frames * sizeof(f->texts[0]));
	int r = f ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->n_segments && r == 0; i++) {
		const struct hr__segment *g = &s->segments[i];
		struct hr_index rows = {0};

		if (g->paths.offset == 0) {
			r = files_add_rows(&t, &s->view, g, &g->index);
			continue;
		}
		r = read_paths(s, g, f, &rows);
		if (r == 0)
			r = files_add_rows(&t, &s->view, g, &rows);
		hr_index_done(&rows);
	}
	if (r < 0) {
		free(t.entries);
		free(f);
		return r;
	}
	sort_table(&t);
	f->entries = t.entries;
	f->n_entries = t.n;
	f->n_texts = s->view.n_frames;
	if (t.n >= UINT32_MAX || index_hashes(f) < 0) {
		hr__files_free(f);
		return -ENOMEM;
	}
	*ret = f;
	return 0;
}

static int get_files(struct hr__stream *s, struct hr__files **ret)
{
	struct hr__files *f = atomic_load_explicit(&s->files, memory_order_acquire);
	int r = 0;

	if (!f) {
		pthread_mutex_lock(&s->files_lock);
		f = atomic_load_explicit(&s->files, memory_order_relaxed);
		if (!f)
			r = load_table(s, &f);
		if (r == 0)
			atomic_store_explicit(&s->files, f, memory_order_release);
		pthread_mutex_unlock(&s->files_lock);
	}
	*ret = f;
	return r;
}

/* Ids are mostly 1, 2, 3... Then the id is the position of the entry. */
static const struct file_entry *files_find(const struct hr__files *f, uint32_t id)
{
	size_t at;

	if (f->n_entries == 0 || id < f->entries[0].id)
		return NULL;
	at = id - f->entries[0].id;
	if (at < f->n_entries && f->entries[at].id == id)
		return &f->entries[at];
	at = hr_array_search(i, f->n_entries, f->entries[i].id < id);
	return at < f->n_entries && f->entries[at].id == id ? &f->entries[at] : NULL;
}

/* Returns the entry with the text of `e`: `e` itself, or one with the same hash. NULL: none. */
static const struct file_entry *find_text(const struct hr__files *f, const struct file_entry *e)
{
	size_t at;

	if (e->frame != NO_FRAME)
		return e;
	at = hr_array_search(i, f->n_by_hash, f->entries[f->by_hash[i]].hash < e->hash);
	if (at == f->n_by_hash || f->entries[f->by_hash[at]].hash != e->hash)
		return NULL;
	return &f->entries[f->by_hash[at]];
}

/* ---- text ------------------------------------------------------------------------------------ */

static struct file_text *pack_text(const Headrace__Paths *paths)
{
	size_t bytes = 0;
	struct file_text *t;
	uint8_t *to;

	for (size_t i = 0; i < paths->n_rows; i++)
		bytes += paths->rows[i]->path.len; /* the sum is below the size limit of a frame */
	t = malloc(sizeof(*t) + (paths->n_rows + 1) * sizeof(t->start[0]) + bytes);
	if (!t)
		return NULL;
	to = (uint8_t *)&t->start[paths->n_rows + 1];
	t->n = (uint32_t)paths->n_rows;
	t->bytes = to;
	t->start[0] = 0;
	for (size_t i = 0; i < paths->n_rows; i++) {
		const ProtobufCBinaryData *path = &paths->rows[i]->path;

		if (path->len)
			memcpy(to, path->data, path->len);
		to += path->len;
		t->start[i + 1] = (uint32_t)(to - t->bytes);
	}
	return t;
}

/* Returns `unreadable` for a damaged frame. Returns NULL if no memory is left. */
static struct file_text *read_text(const struct hr_stream *v, uint32_t frame)
{
	struct hr_arena memory = {0}; /* faster than to free thousands of rows */
	struct file_text *t = NULL;
	Headrace__Frame *msg;
	int r = -EBADMSG; /* the result if this is not a Paths frame, as the footer claims */

	if (v->frames[frame].kind == HEADRACE__FRAME__BODY_PATHS)
		r = hr_stream_read_into(v, frame, &memory, &msg);
	if (r == 0)
		t = pack_text(msg->paths);
	else if (r != -ENOMEM)
		t = &unreadable;
	hr_arena_free(&memory);
	return t;
}

static void free_text(struct file_text *t)
{
	if (t != &unreadable)
		free(t); /* NULL: none */
}

/* Loads the texts of a frame. If two threads load the same frame, the first one publishes it. */
static int load_text(const struct hr_stream *v, struct hr__files *f, uint32_t frame,
		     const struct file_text **ret)
{
	struct file_text *t = atomic_load_explicit(&f->texts[frame], memory_order_acquire),
			 *other = NULL;

	if (!t) {
		t = read_text(v, frame);
		if (!t)
			return -ENOMEM;
		if (!atomic_compare_exchange_strong_explicit(
			&f->texts[frame], &other, t, memory_order_acq_rel, memory_order_acquire)) {
			free_text(t);
			t = other;
		}
	}
	*ret = t;
	return t == &unreadable ? -EBADMSG : 0;
}

/* Sets the path of a file whose text is row `row`. 0 or -EBADMSG. */
static int set_path(const struct file_text *text, uint32_t row, struct hr_file_info *info)
{
	if (text == &unreadable || row >= text->n)
		return -EBADMSG;
	info->path = text->bytes + text->start[row];
	info->path_bytes = text->start[row + 1] - text->start[row];
	return 0;
}

static int file_info(const struct hr_stream *s, struct hr__files *f, const struct file_entry *e,
		     bool want_path, struct hr_file_info *ret)
{
	struct hr_file_info info = {
	    .id = e->id, .hash = e->hash, .mount = e->mount, .scope = e->scope};
	const struct file_text *text;
	int r = 0;

	if (want_path) {
		e = find_text(f, e);
		if (!e)
			return -ENOENT;
		r = load_text(s, f, e->frame, &text);
		if (r == 0)
			r = set_path(text, e->row, &info);
	}
	if (r == 0)
		*ret = info;
	return r;
}

int hr_stream_file(const struct hr_stream *s, uint32_t id, bool want_path, struct hr_file_info *ret)
{
	const struct file_entry *e;
	struct hr__files *f;
	int r = get_files(s->own, &f);

	if (r < 0)
		return r;
	e = files_find(f, id);
	return e ? file_info(s, f, e, want_path, ret) : -ENOENT;
}

int hr_stream_files(const struct hr_stream *s, uint32_t *ret_n)
{
	struct hr__files *f;
	int r = get_files(s->own, &f);

	if (r == 0)
		*ret_n = (uint32_t)f->n_entries;
	return r;
}

uint32_t hr_stream_file_number(const struct hr_stream *s, uint32_t id)
{
	const struct file_entry *e = NULL;
	struct hr__files *f;

	if (get_files(s->own, &f) == 0)
		e = files_find(f, id);
	return e ? (uint32_t)(e - f->entries) + 1 : 0;
}

int hr_stream_file_at(const struct hr_stream *s, uint32_t number, bool want_path,
		      struct hr_file_info *ret)
{
	struct hr__files *f;
	int r = get_files(s->own, &f);

	if (r < 0)
		return r;
	if (number == 0 || number > f->n_entries)
		return -ENOENT;
	return file_info(s, f, &f->entries[number - 1], want_path, ret);
}

/*
 * Returns the texts of a frame: those in memory, or those of *ret_own, which the caller frees. NULL:
 * no memory.
 */
static const struct file_text *pass_text(const struct hr_stream *s, struct hr__files *f,
					 uint32_t frame, struct file_text **ret_own)
{
	struct file_text *kept = atomic_load_explicit(&f->texts[frame], memory_order_acquire);

	free_text(*ret_own);
	*ret_own = kept ? NULL : read_text(s, frame);
	return kept ? kept : *ret_own;
}

int hr_stream_each_path(const struct hr_stream *s, hr_file_visit *visit, void *context)
{
	const struct file_text *text = NULL;
	struct file_text *own = NULL;
	uint32_t frame = NO_FRAME;
	struct hr__files *f;
	int r = get_files(s->own, &f);

	for (size_t i = 0; r == 0 && i < f->n_entries; i++) {
		const struct file_entry *e = &f->entries[i];
		struct hr_file_info info;

		if (e->frame == NO_FRAME) { /* few: the path is that of another file */
			if (file_info(s, f, e, true, &info) == 0)
				r = visit(context, (uint32_t)i + 1, &info);
			continue;
		}
		if (e->frame != frame)
			text = pass_text(s, f, e->frame, &own);
		frame = e->frame;
		if (!text)
			r = -ENOMEM;
		else if (file_info(s, f, e, false, &info) == 0 &&
			 set_path(text, e->row, &info) == 0)
			r = visit(context, (uint32_t)i + 1, &info);
	}
	free_text(own);
	return r;
}

bool hr_stream_paths_lost(const struct hr_stream *s, uint32_t frame)
{
	struct hr__files *f = atomic_load_explicit(&s->own->files, memory_order_acquire);

	return f && atomic_load_explicit(&f->texts[frame], memory_order_acquire) == &unreadable;
}

void hr__files_free(struct hr__files *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n_texts; i++)
		free_text(f->texts[i]);
	free(f->entries);
	free(f->by_hash);
	free(f);
}
