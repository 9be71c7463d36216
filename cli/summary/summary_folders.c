/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the folders that get a row. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "cli/summary/summary_paths.h"
#include "common/fnv.h"

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
	/* hash table with open addressing; entry: index in `list` + 1, or 0: free */
	uint32_t *index;
	size_t index_room;
	struct hr_summary_sums whole;
};

static int grow_index(struct folders *f)
{
	size_t room = f->index_room == 0 ? 256 : 2 * f->index_room;
	uint32_t *index = calloc(room, sizeof(*index));

	if (index == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < f->n; i++) {
		size_t at =
		    hr_fnv(HR_FNV_BASIS, f->list[i].path, strlen(f->list[i].path)) & (room - 1);

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

/* Returns the position of the folder in the index, or of a free entry. */
static size_t find_place(const struct folders *f, const char *path, size_t n)
{
	size_t at = hr_fnv(HR_FNV_BASIS, path, n) & (f->index_room - 1);

	while (f->index[at] != 0) {
		const char *name = f->list[f->index[at] - 1].path;

		if (strncmp(name, path, n) == 0 && name[n] == '\0')
			break;
		at = (at + 1) & (f->index_room - 1);
	}
	return at;
}

static struct folder *lookup(const struct folders *f, const char *path, size_t n)
{
	uint32_t i = f->index_room > 0 ? f->index[find_place(f, path, n)] : 0;

	return i > 0 ? &f->list[i - 1] : NULL;
}

/* Adds a folder. Returns false if the folder is in the list already, or memory is short. */
static bool add_folder(struct folders *f, const char *path, size_t n)
{
	size_t at;

	if (2 * f->n >= f->index_room && grow_index(f) < 0)
		return false;
	at = find_place(f, path, n);
	if (f->index[at] != 0 || !hr_array_reserve(f->list, f->n, f->room))
		return false;
	f->list[f->n] = (struct folder){.path = strndup(path, n), .depth = depth_of(path, n)};
	if (f->list[f->n].path == NULL)
		return false;
	f->index[at] = (uint32_t)++f->n;
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

static void summary_folders_take(struct folder *folder, const struct hr_summary_sums *sums,
				 uint64_t most_ns, uint64_t most_bytes)
{
	hr_sums_add(&folder->sums, sums);
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

	hr_sums_add(&f->whole, sums);
	if (folder != NULL)
		own.files = 0;
	else if (up > 0)
		folder = lookup(f, path, up);
	if (folder != NULL)
		summary_folders_take(folder, &own, own.io_ns, bytes_of(&own));
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
		summary_folders_take(parent, &folder->sums, folder->most_ns, folder->most_bytes);
}

size_t hr_paths_folders(const struct hr_summary_paths *p, struct hr_summary_path *ret, size_t max)
{
	struct folders f = {0};
	size_t n = 0;

	if (hr_paths_each(p, see_path, &f) == 0 && f.n > 0)
		qsort(f.list, f.n, sizeof(*f.list), deepest_first);
	if (f.n > 0 && grow_index(&f) == 0 && hr_paths_each(p, add_path, &f) == 0) {
		for (size_t i = 0; i < f.n; i++)
			fold(&f, i);
	}
	for (size_t i = 0; i < f.n; i++) {
		const struct folder *folder = &f.list[i];

		if (folder->reported)
			n = hr_summary_path_insert(ret, n, max, folder->path, strlen(folder->path),
						   &folder->sums);
		free(folder->path);
	}
	free(f.list);
	free(f.index);
	return n;
}
