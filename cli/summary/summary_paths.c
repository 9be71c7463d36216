/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary/summary_parts.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/fnv.h"
#include "common/map64.h"
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

static void sums_add(struct hr_summary_sums *to, const struct hr_summary_sums *from)
{
	to->files += from->files;
	to->opens += from->opens;
	to->io_ns += from->io_ns;
	to->read_bytes += from->read_bytes;
	to->written_bytes += from->written_bytes;
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

/*
 * Inserts a path into a list of at most `max` entries, sorted by io_ns. Frees the path of an entry
 * that has no place left. Returns the new length. `path` is unescaped, as in the store.
 */
static size_t path_insert(struct hr_summary_path *list, size_t n, size_t max, const char *path,
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

size_t hr_paths_files(const struct hr_summary_paths *p, struct hr_summary_path *ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct hr_summary_sums sums = sums_of(&p->entries[i]);
		struct hr_file_info info;

		if ((n == max && ret[n - 1].sums.io_ns >= sums.io_ns) ||
		    !entry_path(p, &p->entries[i], &info))
			continue;
		n = path_insert(ret, n, max, (const char *)info.path, info.path_bytes, &sums);
	}
	return n;
}

/* ---- all paths ------------------------------------------------------------------------------- */

typedef void paths_visit(void *self, const char *path, size_t n,
			 const struct hr_summary_sums *sums);

/* One pass over the paths of a stream, in the order in which they are stored. */
struct paths_pass {
	const struct hr_summary_paths *p;
	uint32_t stream;
	paths_visit *visit;
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

/* Calls `visit` for each file whose path is known. Returns 0 or -ENOMEM. */
static int paths_each(const struct hr_summary_paths *p, paths_visit *visit, void *self)
{
	int r = 0;

	for (uint32_t i = 0; i < p->n_streams && r == 0; i++)
		r = hr_stream_each_path(p->streams[i].s, visit_path,
					&(struct paths_pass){p, i, visit, self});
	return r;
}

/* ---- folders --------------------------------------------------------------------------------- */

#define HEAVY 5u /* a folder with more than 1/HEAVY of all I/O gets a row */

struct folder {
	char *path; /* without a slash at the end, except "/" */
	uint32_t depth;
	bool reported;
	struct hr_summary_sums sums;
	uint64_t most_ns, most_bytes; /* I/O of the largest file below the folder */
};

struct folders {
	struct folder *list;
	size_t n, room;
	struct hr_map64 by_path; /* hash of the path -> index in `list` */
	struct hr_summary_sums whole;
};

static uint32_t depth_of(const char *path, size_t n)
{
	uint32_t depth = 0;

	for (size_t i = 0; i < n; i++)
		depth += path[i] == '/' && n > 1;
	return depth;
}

static uint64_t folder_hash(const char *path, size_t n)
{
	return hr_fnv(HR_FNV_BASIS, path, n);
}

static struct folder *lookup(const struct folders *f, const char *path, size_t n)
{
	uint32_t i = hr_map64_get(&f->by_path, folder_hash(path, n));

	return i != HR_MAP64_NONE ? &f->list[i] : NULL;
}

/* Adds a folder. Returns false if the folder is in the list already, or memory is short. */
static bool add_folder(struct folders *f, const char *path, size_t n)
{
	struct folder folder = {.depth = depth_of(path, n)};

	if (lookup(f, path, n) != NULL || !hr_array_reserve(f->list, f->n, f->room))
		return false;
	folder.path = strndup(path, n);
	if (folder.path == NULL ||
	    hr_map64_set(&f->by_path, folder_hash(path, n), (uint32_t)f->n) < 0) {
		free(folder.path);
		return false;
	}
	f->list[f->n++] = folder;
	return true;
}

/* Returns the length of the parent of a path: "/a/b" -> 2, "/a" -> 1, "/" and "a" -> 0. */
static size_t parent_bytes(const char *path, size_t n)
{
	if (n <= 1)
		return 0;
	while (n > 0 && path[n - 1] != '/')
		n--;
	return n > 1 ? n - 1 : n;
}

/* Adds all folders above a path. */
static void see_path(void *self, const char *path, size_t n, const struct hr_summary_sums *sums)
{
	struct folders *f = self;

	(void)sums;
	do
		n = parent_bytes(path, n);
	/* a folder in the list has all its parents there */
	while (n > 0 && add_folder(f, path, n));
}

static uint64_t bytes_of(const struct hr_summary_sums *sums)
{
	return sums->read_bytes + sums->written_bytes;
}

static void folder_take(struct folder *folder, const struct hr_summary_sums *sums, uint64_t most_ns,
			uint64_t most_bytes)
{
	sums_add(&folder->sums, sums);
	if (most_ns > folder->most_ns)
		folder->most_ns = most_ns;
	if (most_bytes > folder->most_bytes)
		folder->most_bytes = most_bytes;
}

/* Adds the sums of a file to its folder. The sums of a path that is a folder go to this folder. */
static void add_path(void *self, const char *path, size_t n, const struct hr_summary_sums *sums)
{
	struct folders *f = self;
	size_t up = parent_bytes(path, n);
	struct folder *folder = lookup(f, path, n);
	struct hr_summary_sums own = *sums;

	sums_add(&f->whole, sums);
	if (folder != NULL)
		own.files = 0;
	else if (up > 0)
		folder = lookup(f, path, up);
	if (folder != NULL)
		folder_take(folder, &own, own.io_ns, bytes_of(&own));
}

static int deepest_first(const void *a, const void *b)
{
	const struct folder *x = a, *y = b;

	return x->depth < y->depth ? 1 : x->depth > y->depth ? -1 : strcmp(x->path, y->path);
}

/* Returns whether the folder has enough I/O without its largest file, which has its own row. */
static bool is_heavy(const struct folder *f, const struct hr_summary_sums *whole)
{
	return f->sums.io_ns - f->most_ns > whole->io_ns / HEAVY ||
	       bytes_of(&f->sums) - f->most_bytes > bytes_of(whole) / HEAVY;
}

/* Returns whether the files of this folder are unrelated, such as those of /tmp. */
static bool is_common(const char *path)
{
	static const char *const common[] = {"/",    "/dev", "/home", "/media", "/mnt", "/opt",
					     "/run", "/srv", "/tmp",  "/usr",	"/var", "/var/tmp"};
	static const char home[] = "/home/";

	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		if (strcmp(path, common[i]) == 0)
			return true;
	return strncmp(path, home, sizeof(home) - 1) == 0 &&
	       strchr(path + sizeof(home) - 1, '/') == NULL;
}

/* Marks a folder that gets a row, or adds its sums to its parent, which is later in the list. */
static void fold(struct folders *f, size_t i)
{
	struct folder *folder = &f->list[i];
	size_t up = parent_bytes(folder->path, strlen(folder->path));
	struct folder *parent = up > 0 ? lookup(f, folder->path, up) : NULL;

	folder->reported =
	    folder->sums.files > 0 && is_heavy(folder, &f->whole) && !is_common(folder->path);
	if (!folder->reported && parent != NULL)
		folder_take(parent, &folder->sums, folder->most_ns, folder->most_bytes);
}

size_t hr_paths_folders(const struct hr_summary_paths *p, struct hr_summary_path *ret, size_t max)
{
	struct folders f = {0};
	size_t n = 0;

	if (paths_each(p, see_path, &f) == 0 && f.n > 0)
		qsort(f.list, f.n, sizeof(*f.list), deepest_first);
	for (size_t i = 0; i < f.n; i++)
		(void)hr_map64_set(&f.by_path, folder_hash(f.list[i].path, strlen(f.list[i].path)),
				   (uint32_t)i);
	if (paths_each(p, add_path, &f) == 0)
		for (size_t i = 0; i < f.n; i++)
			fold(&f, i);
	for (size_t i = 0; i < f.n; i++) {
		const struct folder *folder = &f.list[i];

		if (folder->reported)
			n = path_insert(ret, n, max, folder->path, strlen(folder->path),
					&folder->sums);
		free(folder->path);
	}
	free(f.list);
	hr_map64_done(&f.by_path);
	return n;
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

	sums_add(s->memory, &sums);
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
