/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary/summary_paths.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/ops.h"
#include "common/pathid.h"
#include "common/text.h"

/* With millions of files, these need most of the memory. */
struct path_entry {
	uint64_t io_ns, read_bytes, written_bytes;
	uint32_t opens;
	uint32_t stream; /* the stream that has its path: index in `streams` */
	uint32_t number; /* of the file in that stream */
	bool mapped;
};

struct path_stream {
	const struct hr_stream *s;
	uint32_t *entry_of; /* by the number of a file: index in `entries` + 1; 0: none */
};

struct hr_summary_paths {
	struct path_entry *entries;
	size_t n, room;
	/* hash table with open addressing, by the hash of the path: index + 1; 0: free */
	uint32_t *slots;
	uint8_t *tags;	/* of each slot: the upper bits of the hash */
	size_t n_slots; /* a power of two */
	struct path_stream *streams;
	size_t n_streams, streams_room;
};

/* Makes an empty table. */
static int make_slots(struct hr_summary_paths *p, size_t n)
{
	free(p->slots);
	p->slots = calloc(n, sizeof(*p->slots) + sizeof(*p->tags));
	if (p->slots == NULL)
		return -ENOMEM;
	p->tags = (uint8_t *)&p->slots[n];
	p->n_slots = n;
	return 0;
}

struct hr_summary_paths *hr_paths_new(void)
{
	struct hr_summary_paths *p = calloc(1, sizeof(*p));

	if (p != NULL && make_slots(p, 1024) < 0) {
		free(p);
		return NULL;
	}
	return p;
}

void hr_paths_free(struct hr_summary_paths *p)
{
	if (p == NULL)
		return;
	for (size_t i = 0; i < p->n_streams; i++)
		free(p->streams[i].entry_of);
	free(p->streams);
	free(p->entries);
	free(p->slots);
	free(p);
}

static uint64_t entry_hash(const struct hr_summary_paths *p, const struct path_entry *e)
{
	struct hr_file_info info = {0};

	(void)hr_stream_file_at(p->streams[e->stream].s, e->number, false, &info);
	return info.hash;
}

/* Returns the slot of a path, or a free one. */
static size_t find_slot(const struct hr_summary_paths *p, uint64_t hash)
{
	size_t i = (hash >> 3) & (p->n_slots - 1);

	while (p->slots[i] != 0 && (p->tags[i] != (uint8_t)(hash >> 56) ||
				    entry_hash(p, &p->entries[p->slots[i] - 1]) != hash))
		i = (i + 1) & (p->n_slots - 1);
	return i;
}

static void set_slot(struct hr_summary_paths *p, size_t i, uint64_t hash, size_t entry)
{
	p->slots[i] = (uint32_t)entry + 1;
	p->tags[i] = (uint8_t)(hash >> 56);
}

static int grow(struct hr_summary_paths *p)
{
	if (make_slots(p, 2 * p->n_slots) < 0)
		return -ENOMEM;
	for (size_t k = 0; k < p->n; k++) {
		uint64_t hash = entry_hash(p, &p->entries[k]);
		size_t i = (hash >> 3) & (p->n_slots - 1);

		while (p->slots[i] != 0) /* all paths differ */
			i = (i + 1) & (p->n_slots - 1);
		set_slot(p, i, hash, k);
	}
	return 0;
}

/* Finds the stream, or adds it. NULL: no memory. */
static struct path_stream *find_stream(struct hr_summary_paths *p, const struct hr_stream *s)
{
	struct path_stream *at;
	uint32_t n_files;

	for (size_t i = p->n_streams; i > 0; i--)
		if (p->streams[i - 1].s == s)
			return &p->streams[i - 1];
	if (!hr_array_reserve(p->streams, p->n_streams, p->streams_room))
		return NULL;
	at = &p->streams[p->n_streams];
	*at = (struct path_stream){.s = s};
	if (hr_stream_files(s, &n_files) < 0)
		return NULL;
	at->entry_of = calloc((size_t)n_files + 1, sizeof(*at->entry_of));
	if (at->entry_of == NULL)
		return NULL;
	p->n_streams++;
	return at;
}

/* Finds the entry of a path, or adds it. NULL: no memory. */
static struct path_entry *find_entry(struct hr_summary_paths *p, struct path_stream *of,
				     uint32_t number, uint64_t hash)
{
	uint32_t *entry_of = &of->entry_of[number];
	size_t i;

	if (*entry_of != 0)
		return &p->entries[*entry_of - 1];
	if (p->n >= p->n_slots / 4 * 3 && grow(p) < 0)
		return NULL;
	i = find_slot(p, hash);
	if (p->slots[i] == 0) {
		if (p->n == UINT32_MAX - 1 || !hr_array_reserve(p->entries, p->n, p->room))
			return NULL;
		p->entries[p->n] =
		    (struct path_entry){.stream = (uint32_t)(of - p->streams), .number = number};
		set_slot(p, i, hash, p->n++);
	}
	*entry_of = p->slots[i];
	return &p->entries[p->slots[i] - 1];
}

int hr_paths_add(struct hr_summary_paths *p, const struct hr_stream *s,
		 const Headrace__FileRecord *row)
{
	uint32_t number = row->file != 0 ? hr_stream_file_number(s, row->file) : 0;
	struct hr_file_info info;
	struct path_stream *of;
	struct path_entry *e;

	if (number == 0 || hr_stream_file_at(s, number, false, &info) < 0 || info.scope != 0)
		return 0;
	of = find_stream(p, s);
	e = of != NULL ? find_entry(p, of, number, info.hash) : NULL;
	if (e == NULL)
		return -ENOMEM;
	e->mapped |= row->api == HR_API_MMAP;
	e->io_ns += row->read_ns + row->write_ns + row->meta_ns;
	e->read_bytes += row->bytes_read;
	e->written_bytes += row->bytes_written;
	e->opens +=
	    row->opens < UINT32_MAX - e->opens ? (uint32_t)row->opens : UINT32_MAX - e->opens;
	return 0;
}

static struct hr_summary_sums sums_of(const struct path_entry *e)
{
	return (struct hr_summary_sums){.files = 1,
					.io_ns = e->io_ns,
					.read_bytes = e->read_bytes,
					.written_bytes = e->written_bytes,
					.opens = e->opens};
}

static bool entry_path(const struct hr_summary_paths *p, const struct path_entry *e,
		       struct hr_file_info *ret)
{
	return hr_stream_file_at(p->streams[e->stream].s, e->number, true, ret) == 0 &&
	       ret->path_bytes > 0;
}

size_t hr_summary_path_insert(struct hr_summary_path *list, size_t n, size_t max, const char *path,
			      size_t bytes, const struct hr_summary_sums *sums)
{
	size_t i = n < max ? n : max;
	char *text = i > 0 && i == max && list[i - 1].sums.io_ns >= sums->io_ns
			 ? NULL
			 : hr_text_escaped(path, bytes);

	if (text == NULL)
		return n;
	while (i > 0 && list[i - 1].sums.io_ns < sums->io_ns) {
		if (i < max)
			list[i] = list[i - 1];
		else
			free(list[i - 1].path);
		i--;
	}
	list[i] = (struct hr_summary_path){.path = text, .sums = *sums};
	return n < max ? n + 1 : n;
}

size_t hr_paths_files(struct hr_summary_paths *p, struct hr_summary_path *ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct hr_summary_sums sums = sums_of(&p->entries[i]);
		struct hr_file_info info;

		if ((n == max && ret[n - 1].sums.io_ns >= sums.io_ns) ||
		    !entry_path(p, &p->entries[i], &info))
			continue;
		n = hr_summary_path_insert(ret, n, max, (const char *)info.path, info.path_bytes,
					   &sums);
	}
	return n;
}

/* ---- all paths ------------------------------------------------------------------------------- */

/* One pass over the paths of a stream, in the order in which they are stored. */
struct paths_pass {
	const struct hr_summary_paths *p;
	uint32_t stream;
	hr_paths_visit *visit;
	void *self;
};

/* Returns the entry whose path is that of this file. NULL: none, or another file has it. */
static const struct path_entry *owned_entry(const struct hr_summary_paths *p, uint32_t stream,
					    uint32_t number)
{
	uint32_t i = p->streams[stream].entry_of[number];
	const struct path_entry *e = i > 0 ? &p->entries[i - 1] : NULL;

	return e != NULL && e->stream == stream && e->number == number ? e : NULL;
}

/* Calls `visit` with the resolved path, so that a folder with several paths gets one row. */
static int visit_path(void *context, uint32_t number, const struct hr_file_info *info)
{
	const struct paths_pass *pass = context;
	const struct path_entry *e = owned_entry(pass->p, pass->stream, number);
	const char *path = (const char *)info->path;
	size_t bytes = info->path_bytes;
	struct hr_summary_sums sums;
	char resolved[PATH_MAX];

	if (e == NULL || bytes == 0)
		return 0;
	if (bytes <= sizeof(resolved) && path[0] == '/' && hr_path_has_parent(path, bytes)) {
		memcpy(resolved, path, bytes);
		path = resolved;
		bytes = hr_path_resolve(resolved, bytes);
	}
	sums = sums_of(e);
	pass->visit(pass->self, path, bytes, &sums);
	return 0;
}

int hr_paths_each(const struct hr_summary_paths *p, hr_paths_visit *visit, void *self)
{
	int r = 0;

	for (uint32_t i = 0; i < p->n_streams && r == 0; i++)
		r = hr_stream_each_path(p->streams[i].s, visit_path,
					&(struct paths_pass){p, i, visit, self});
	return r;
}

/* ---- files in memory ------------------------------------------------------------------------- */

struct special {
	const struct hr_summary_paths *p;
	uint32_t stream;
	struct hr_summary_sums *memory;
	struct hr_summary_mapped *mapped;
	bool unknown; /* a file has no known mount */
};

static void add_in_memory(struct special *s, const struct path_entry *e)
{
	struct hr_summary_sums sums = sums_of(e);

	hr_sums_add(s->memory, &sums);
	s->mapped->files_in_memory += e->mapped;
}

/* NULL: unknown. */
static const Headrace__Mount *mount_of(const struct hr_stream *stream,
				       const struct hr_file_info *info)
{
	return info->mount < stream->n_mounts ? stream->mounts[info->mount] : NULL;
}

static void add_by_mount(struct special *s, const struct path_entry *e)
{
	static const char *const types[] = {"tmpfs", "ramfs", "hugetlbfs"};
	const struct hr_stream *stream = s->p->streams[e->stream].s;
	const Headrace__Mount *mount;
	struct hr_file_info info;

	s->mapped->files += e->mapped;
	if (hr_stream_file_at(stream, e->number, false, &info) < 0)
		return;
	mount = mount_of(stream, &info);
	s->unknown |= mount == NULL;
	for (size_t i = 0; mount != NULL && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(mount->fs_type, types[i]) == 0) {
			add_in_memory(s, e);
			return;
		}
}

/* A memfd has no mount. */
static int add_memfd(void *context, uint32_t number, const struct hr_file_info *info)
{
	static const char memfd[] = "memfd:";
	struct special *s = context;
	const struct path_entry *e = owned_entry(s->p, s->stream, number);

	if (e != NULL && mount_of(s->p->streams[s->stream].s, info) == NULL &&
	    info->path_bytes >= sizeof(memfd) - 1 &&
	    memcmp(info->path, memfd, sizeof(memfd) - 1) == 0)
		add_in_memory(s, e);
	return 0;
}

int hr_paths_special(const struct hr_summary_paths *p, struct hr_summary_sums *ret_memory,
		     struct hr_summary_mapped *ret_mapped)
{
	struct special s = {.p = p, .memory = ret_memory, .mapped = ret_mapped};
	int r = 0;

	for (size_t i = 0; i < p->n; i++)
		add_by_mount(&s, &p->entries[i]);
	for (; s.unknown && s.stream < p->n_streams && r == 0; s.stream++)
		r = hr_stream_each_path(p->streams[s.stream].s, add_memfd, &s);
	return r;
}
