/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary/summary_paths.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/ops.h"
#include "common/pathid.h"
#include "common/text.h"

struct path_entry {
	uint64_t hash; /* hash of the path, which identifies the entry */
	const struct hr_stream *stream;
	uint32_t file; /* id of the file in the stream */
	bool mapped;
	struct hr_summary_sums sums;
};

struct hr_summary_paths {
	struct path_entry *slots; /* hash table with open addressing; hash 0: a free entry */
	size_t n, room;
};

struct hr_summary_paths *hr_paths_new(void)
{
	struct hr_summary_paths *p = calloc(1, sizeof(*p));

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

void hr_paths_free(struct hr_summary_paths *p)
{
	if (p == NULL)
		return;
	free(p->slots);
	free(p);
}

static struct path_entry *find_slot(struct path_entry *slots, size_t room, uint64_t hash)
{
	size_t i = (hash >> 3) & (room - 1);

	while (slots[i].hash != 0 && slots[i].hash != hash)
		i = (i + 1) & (room - 1);
	return &slots[i];
}

static int grow(struct hr_summary_paths *p)
{
	size_t room = 2 * p->room;
	struct path_entry *slots = calloc(room, sizeof(*slots));

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

int hr_paths_add(struct hr_summary_paths *p, const struct hr_stream *s,
		 const Headrace__FileRecord *row)
{
	struct hr_summary_sums sums = {.opens = row->opens,
				       .io_ns = row->read_ns + row->write_ns + row->meta_ns,
				       .read_bytes = row->bytes_read,
				       .written_bytes = row->bytes_written};
	struct hr_file_info info;
	struct path_entry *e;

	if (row->file == 0 || hr_stream_file(s, row->file, false, &info) < 0 || info.scope != 0)
		return 0;
	if (2 * p->n >= p->room && grow(p) < 0)
		return -ENOMEM;
	e = find_slot(p->slots, p->room, info.hash | 1);
	if (e->hash == 0) {
		*e = (struct path_entry){
		    .hash = info.hash | 1, .stream = s, .file = row->file, .sums.files = 1};
		p->n++;
	}
	e->mapped = e->mapped || row->api == HR_API_MMAP;
	hr_sums_add(&e->sums, &sums);
	return 0;
}

static bool entry_path(const struct path_entry *e, struct hr_file_info *ret)
{
	return hr_stream_file(e->stream, e->file, true, ret) == 0 && ret->path_bytes > 0;
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

	for (size_t i = 0; i < p->room; i++) {
		const struct path_entry *e = &p->slots[i];
		struct hr_file_info info;

		if (e->hash == 0 || (n == max && ret[n - 1].sums.io_ns >= e->sums.io_ns) ||
		    !entry_path(e, &info))
			continue;
		n = hr_summary_path_insert(ret, n, max, (const char *)info.path, info.path_bytes,
					   &e->sums);
	}
	return n;
}

/* Calls `visit` with the resolved path, so that a folder with several paths gets one row. */
static void visit_resolved(hr_paths_visit *visit, void *self, const struct hr_file_info *info,
			   const struct hr_summary_sums *sums)
{
	const char *path = (const char *)info->path;
	size_t bytes = info->path_bytes;
	char resolved[PATH_MAX];

	if (bytes <= sizeof(resolved) && path[0] == '/' && hr_path_has_parent(path, bytes)) {
		memcpy(resolved, path, bytes);
		path = resolved;
		bytes = hr_path_resolve(resolved, bytes);
	}
	visit(self, path, bytes, sums);
}

void hr_paths_each(const struct hr_summary_paths *p, hr_paths_visit *visit, void *self)
{
	for (size_t i = 0; i < p->room; i++) {
		const struct path_entry *e = &p->slots[i];
		struct hr_file_info info;

		if (e->hash != 0 && entry_path(e, &info))
			visit_resolved(visit, self, &info, &e->sums);
	}
}

static bool in_memory(const struct path_entry *e)
{
	static const char *const types[] = {"tmpfs", "ramfs", "hugetlbfs"};
	static const char memfd[] = "memfd:";
	const struct hr_stream *s = e->stream;
	const Headrace__Mount *mount;
	struct hr_file_info info;

	if (hr_stream_file(s, e->file, false, &info) < 0)
		return false;
	mount = info.mount < s->n_mounts ? s->mounts[info.mount] : NULL;
	if (mount == NULL) /* the file may be a memfd */
		return entry_path(e, &info) && info.path_bytes >= sizeof(memfd) - 1 &&
		       memcmp(info.path, memfd, sizeof(memfd) - 1) == 0;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(mount->fs_type, types[i]) == 0)
			return true;
	return false;
}

void hr_paths_special(const struct hr_summary_paths *p, struct hr_summary_sums *ret_memory,
		      struct hr_summary_mapped *ret_mapped)
{
	for (size_t i = 0; i < p->room; i++) {
		const struct path_entry *e = &p->slots[i];
		bool memory = e->hash != 0 && in_memory(e);

		if (memory)
			hr_sums_add(ret_memory, &e->sums);
		ret_mapped->files += e->mapped;
		ret_mapped->files_in_memory += e->mapped && memory;
	}
}
