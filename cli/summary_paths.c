/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#define HEAVY 5u /* a folder has a row from a fifth of the whole on */

struct entry {
	uint64_t hash; /* of the path; the key */
	const struct hr_stream *stream;
	uint32_t file; /* id in that stream */
	uint64_t opens, io_ns, read_bytes, written_bytes;
};

struct folder {
	char *path; /* without the last slash, except "/" */
	uint32_t depth;
	bool reported;
	uint64_t files, opens, io_ns, read_bytes, written_bytes;
};

struct hr_paths {
	struct entry *slots; /* open addressing, a power of two; hash 0: free */
	size_t n, room;
};

struct folders {
	struct folder *list;
	size_t n, room;
	uint32_t *index; /* open addressing into list, + 1 */
	size_t index_room;
};

/* ---- files ----------------------------------------------------------------------------------- */

struct hr_paths *hr_paths_new(void)
{
	struct hr_paths *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->room = 1024;
	p->slots = calloc(p->room, sizeof(*p->slots));
	if (p->slots == NULL) {
		free(p);
		return NULL;
	}
	return p;
}

void hr_paths_free(struct hr_paths *p)
{
	if (p == NULL)
		return;
	free(p->slots);
	free(p);
}

static struct entry *find_slot(struct entry *slots, size_t room, uint64_t hash)
{
	size_t i = (hash >> 3) & (room - 1);

	while (slots[i].hash != 0 && slots[i].hash != hash)
		i = (i + 1) & (room - 1);
	return &slots[i];
}

static int grow(struct hr_paths *p)
{
	size_t room = 2 * p->room;
	struct entry *slots = calloc(room, sizeof(*slots));

	if (slots == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < p->room; i++)
		if (p->slots[i].hash != 0)
			*find_slot(slots, room, p->slots[i].hash) = p->slots[i];
	free(p->slots);
	p->slots = slots;
	p->room = room;
	return 0;
}

int hr_paths_add(struct hr_paths *p, const struct hr_stream *s, const Headrace__FileRecord *row)
{
	struct hr_file_info info;
	struct entry *e;

	if (row->file == 0 || hr_stream_file(s, row->file, false, &info) < 0 || info.scope != 0)
		return 0;
	if (2 * p->n >= p->room && grow(p) < 0)
		return -ENOMEM;
	e = find_slot(p->slots, p->room, info.hash | 1);
	if (e->hash == 0) {
		*e = (struct entry){.hash = info.hash | 1, .stream = s, .file = row->file};
		p->n++;
	}
	e->opens += row->opens;
	e->io_ns += row->read_ns + row->write_ns + row->meta_ns;
	e->read_bytes += row->bytes_read;
	e->written_bytes += row->bytes_written;
	return 0;
}

static bool entry_path(const struct entry *e, struct hr_file_info *ret)
{
	return hr_stream_file(e->stream, e->file, true, ret) == 0 && ret->path_bytes > 0;
}

static char *escaped(const void *path, size_t n)
{
	char *text = malloc(4 * n + 1);

	if (text != NULL)
		hr_text_escape(text, 4 * n + 1, path, n);
	return text;
}

/*
 * Puts `row` into a list of at most max rows that is sorted by io_ns; frees the path that drops
 * out.
 */
static size_t insert_row(struct hr_summary_path *list, size_t n, size_t max,
			 struct hr_summary_path row)
{
	size_t i = n < max ? n : max;

	while (i > 0 && list[i - 1].io_ns < row.io_ns) {
		if (i < max)
			list[i] = list[i - 1];
		else
			free(list[i - 1].path);
		i--;
	}
	if (i == max) {
		free(row.path);
		return n;
	}
	list[i] = row;
	return n < max ? n + 1 : n;
}

size_t hr_paths_files(struct hr_paths *p, struct hr_summary_path *ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < p->room; i++) {
		const struct entry *e = &p->slots[i];
		struct hr_file_info info;
		struct hr_summary_path row = {.files = 1,
					      .io_ns = e->io_ns,
					      .read_bytes = e->read_bytes,
					      .written_bytes = e->written_bytes,
					      .opens = e->opens};

		if (e->hash == 0 || (n == max && ret[n - 1].io_ns >= e->io_ns) ||
		    !entry_path(e, &info))
			continue;
		row.path = escaped(info.path, info.path_bytes);
		if (row.path != NULL)
			n = insert_row(ret, n, max, row);
	}
	return n;
}

/* ---- folders --------------------------------------------------------------------------------- */

static uint64_t hash_text(const char *text, size_t n)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static int grow_index(struct folders *f)
{
	size_t room = f->index_room == 0 ? 256 : 2 * f->index_room;
	uint32_t *index = calloc(room, sizeof(*index));

	if (index == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < f->n; i++) {
		size_t at = hash_text(f->list[i].path, strlen(f->list[i].path)) & (room - 1);

		while (index[at] != 0)
			at = (at + 1) & (room - 1);
		index[at] = (uint32_t)i + 1;
	}
	free(f->index);
	f->index = index;
	f->index_room = room;
	return 0;
}

static uint32_t depth_of(const char *path, size_t n)
{
	uint32_t depth = 0;

	for (size_t i = 0; i < n; i++)
		depth += path[i] == '/' && n > 1;
	return depth;
}

static struct folder *add_folder(struct folders *f, const char *path, size_t n, size_t at)
{
	if (f->n == f->room) {
		size_t room = f->room == 0 ? 128 : 2 * f->room;
		struct folder *list = realloc(f->list, room * sizeof(*list));

		if (list == NULL)
			return NULL;
		f->list = list;
		f->room = room;
	}
	f->list[f->n] = (struct folder){.path = strndup(path, n), .depth = depth_of(path, n)};
	if (f->list[f->n].path == NULL)
		return NULL;
	f->index[at] = (uint32_t)++f->n;
	return &f->list[f->n - 1];
}

/*
 * The folder of this name, made when new; NULL when memory is out. Moves the others: take no
 * pointer twice.
 */
static struct folder *find_folder(struct folders *f, const char *path, size_t n)
{
	size_t at;

	if (2 * f->n >= f->index_room && grow_index(f) < 0)
		return NULL;
	for (at = hash_text(path, n) & (f->index_room - 1); f->index[at] != 0;
	     at = (at + 1) & (f->index_room - 1)) {
		struct folder *folder = &f->list[f->index[at] - 1];

		if (strncmp(folder->path, path, n) == 0 && folder->path[n] == '\0')
			return folder;
	}
	return add_folder(f, path, n, at);
}

/* Length of the parent's name: "/a/b" -> 2, "/a" -> 1, "/" and "a" -> 0. */
static size_t parent_bytes(const char *path, size_t n)
{
	if (n <= 1)
		return 0;
	while (n > 0 && path[n - 1] != '/')
		n--;
	return n > 1 ? n - 1 : n;
}

static void folder_add(struct folder *to, const struct folder *from)
{
	to->files += from->files;
	to->opens += from->opens;
	to->io_ns += from->io_ns;
	to->read_bytes += from->read_bytes;
	to->written_bytes += from->written_bytes;
}

/* Each file's sums into its folder. */
static void fill_folders(struct hr_paths *p, struct folders *f, struct folder *whole)
{
	for (size_t i = 0; i < p->room; i++) {
		const struct entry *e = &p->slots[i];
		struct hr_file_info info;
		struct folder sum = {.files = 1,
				     .opens = e->opens,
				     .io_ns = e->io_ns,
				     .read_bytes = e->read_bytes,
				     .written_bytes = e->written_bytes};
		struct folder *folder;
		size_t n;

		if (e->hash == 0 || !entry_path(e, &info))
			continue;
		n = parent_bytes((const char *)info.path, info.path_bytes);
		folder = n > 0 ? find_folder(f, (const char *)info.path, n) : NULL;
		folder_add(whole, &sum);
		if (folder != NULL)
			folder_add(folder, &sum);
	}
}

static int deepest_first(const void *a, const void *b)
{
	const struct folder *x = a, *y = b;

	return x->depth < y->depth ? 1 : x->depth > y->depth ? -1 : strcmp(x->path, y->path);
}

static bool is_heavy(const struct folder *folder, const struct folder *whole)
{
	return folder->io_ns > whole->io_ns / HEAVY ||
	       folder->read_bytes + folder->written_bytes >
		   (whole->read_bytes + whole->written_bytes) / HEAVY;
}

/* Adds the parents of every folder, so that folding finds them in the list. */
static void add_parents(struct folders *f)
{
	for (size_t i = 0; i < f->n; i++) {
		size_t n = parent_bytes(f->list[i].path, strlen(f->list[i].path));

		if (n > 0)
			find_folder(f, f->list[i].path, n);
	}
}

/* Reports the i-th folder, or gives what it holds to its parent, which comes later in the list. */
static void fold(struct folders *f, size_t i, const struct folder *whole)
{
	size_t up = parent_bytes(f->list[i].path, strlen(f->list[i].path));
	struct folder *parent = up > 0 ? find_folder(f, f->list[i].path, up) : NULL;

	f->list[i].reported = is_heavy(&f->list[i], whole);
	if (!f->list[i].reported && parent != NULL)
		folder_add(parent, &f->list[i]);
}

size_t hr_paths_folders(struct hr_paths *p, struct hr_summary_path *ret, size_t max)
{
	struct folders f = {0};
	struct folder whole = {0};
	size_t n = 0;

	fill_folders(p, &f, &whole);
	add_parents(&f);
	if (f.n > 0)
		qsort(f.list, f.n, sizeof(*f.list), deepest_first);
	if (f.n > 0 && grow_index(&f) == 0)
		for (size_t i = 0, n_before = f.n; i < n_before; i++)
			fold(&f, i, &whole);
	for (size_t i = 0; i < f.n; i++) {
		const struct folder *folder = &f.list[i];
		struct hr_summary_path row = {.files = folder->files,
					      .io_ns = folder->io_ns,
					      .read_bytes = folder->read_bytes,
					      .written_bytes = folder->written_bytes,
					      .opens = folder->opens};

		row.path = folder->reported ? escaped(folder->path, strlen(folder->path)) : NULL;
		if (row.path != NULL)
			n = insert_row(ret, n, max, row);
		free(folder->path);
	}
	free(f.list);
	free(f.index);
	return n;
}
