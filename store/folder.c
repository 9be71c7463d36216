/* SPDX-License-Identifier: Apache-2.0 */
#include "store/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "store/store.h"

#define ENTRIES_BYTES (32u << 10) /* size of the buffer for each system call */

static int make_one(const char *path, mode_t mode)
{
	return mkdir(path, mode) < 0 && errno != EEXIST ? -errno : 0;
}

int hr_folder_make(const char *path, mode_t above)
{
	char parent[PATH_MAX];
	size_t n = strlen(path);
	int r;

	if (n == 0 || n >= sizeof(parent))
		return -ENAMETOOLONG;
	r = make_one(path, 0700);
	if (r != -ENOENT)
		return r;
	memcpy(parent, path, n + 1);
	for (char *slash = strchr(parent + 1, '/'); slash && slash[strspn(slash, "/")] != '\0';
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = make_one(parent, above);
		if (r < 0)
			return r;
		*slash = '/';
	}
	return make_one(path, 0700);
}

struct names {
	char *text; /* all names, each with its NUL */
	size_t bytes, room, n;
};

static int add_name(struct names *to, const char *name)
{
	size_t bytes = strlen(name) + 1;

	if (!hr_array_fit(to->text, to->bytes + bytes, to->room))
		return -ENOMEM;
	memcpy(to->text + to->bytes, name, bytes);
	to->bytes += bytes;
	to->n++;
	return 0;
}

static int read_names(int fd, struct names *to)
{
	_Alignas(struct dirent64) char entries[ENTRIES_BYTES];

	for (;;) {
		ssize_t bytes = getdents64(fd, entries, sizeof(entries));

		if (bytes <= 0)
			return bytes < 0 ? -errno : 0;
		for (ssize_t at = 0; at < bytes;) {
			const struct dirent64 *entry = (const void *)(entries + at);
			int r = entry->d_name[0] == '.' ? 0 : add_name(to, entry->d_name);

			if (r < 0)
				return r;
			at += entry->d_reclen;
		}
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int hr__folder_read(int fd, struct hr__folder *ret)
{
	struct names names = {0};
	int r = read_names(fd, &names);
	const char **list = r < 0 ? NULL : malloc((names.n + 1) * sizeof(*list));
	size_t at = 0;

	if (!list) {
		free(names.text);
		return r < 0 ? r : -ENOMEM;
	}
	for (size_t i = 0; i < names.n; i++) {
		list[i] = names.text + at;
		at += strlen(list[i]) + 1;
	}
	qsort(list, names.n, sizeof(*list), by_name);
	*ret = (struct hr__folder){.names = list, .n = names.n, .text = names.text};
	return 0;
}

void hr__folder_done(struct hr__folder *f)
{
	free(f->names);
	free(f->text);
	*f = (struct hr__folder){0};
}

int hr_store_each_folder(int fd, hr_store_visit *visit, void *context)
{
	struct hr__folder folder = {0};
	int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : hr__folder_read(fd, &folder);

	if (r < 0)
		return r;
	for (size_t i = 0; i < folder.n && r == 0; i++) {
		int inner = hr_store_open_folder(fd, folder.names[i]);

		if (inner < 0)
			continue;
		r = visit(context, folder.names[i], inner);
		close(inner);
	}
	hr__folder_done(&folder);
	return r;
}

bool hr__folder_has(const struct hr__folder *f, const char *name)
{
	return bsearch(&name, f->names, f->n, sizeof(*f->names), by_name) != NULL;
}
