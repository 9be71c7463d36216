/* SPDX-License-Identifier: Apache-2.0 */
/* The operands: files, and folders whose files are imported; the name of the job. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/array.h"
#include "import/internal.h"

#define JOB_BYTES 80u /* encoded, it fits into the name of a file */

struct file_list {
	char **v;
	bool *found; /* in a folder, not named by the user */
	size_t n, room, found_room;
};

static int list_add(struct file_list *l, char *path, bool found)
{
	if (!path || !hr_array_reserve(l->v, l->n, l->room) ||
	    !hr_array_reserve(l->found, l->n, l->found_room)) {
		free(path);
		return -ENOMEM;
	}
	l->found[l->n] = found;
	l->v[l->n++] = path;
	return 0;
}

size_t hr__name_end(const char *name, size_t bytes, const char *const *ends, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t end = strlen(ends[i]);

		if (bytes > end && memcmp(name + bytes - end, ends[i], end) == 0)
			return end;
	}
	return 0;
}

static int folder_select(const struct dirent *e)
{
	/* Indexes that other tools keep with their traces are no traces. */
	static const char *const indexes[] = {".zindex", ".dftindex", ".dftindex-cache", ".idx"};

	return e->d_name[0] != '.' && !hr__name_end(e->d_name, strlen(e->d_name), indexes,
						    sizeof(indexes) / sizeof(indexes[0]));
}

/* Adds the files that are directly in a folder. */
static int folder_add(struct file_list *l, const char *folder)
{
	struct dirent **names;
	int n = scandir(folder, &names, folder_select, alphasort), r = 0;
	size_t bytes = strlen(folder);
	struct stat st;
	char *path;

	if (n < 0)
		return -errno;
	while (bytes > 1 && folder[bytes - 1] == '/')
		bytes--;
	for (int i = 0; i < n; i++) {
		if (!r && asprintf(&path, "%.*s/%s", (int)bytes, folder, names[i]->d_name) < 0)
			r = -ENOMEM;
		else if (!r && (stat(path, &st) < 0 || !S_ISREG(st.st_mode)))
			free(path);
		else if (!r)
			r = list_add(l, path, true);
		free(names[i]);
	}
	free(names);
	return r;
}

static int list_make(struct file_list *l, const char *const *files, size_t n)
{
	struct stat st;
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		if (stat(files[i], &st) == 0 && S_ISDIR(st.st_mode))
			r = folder_add(l, files[i]);
		else
			r = list_add(l, strdup(files[i]), false);
	}
	return r;
}

/* Returns the length of the part, up to a '/', with which all paths begin. */
static size_t common_bytes(char *const *files, size_t n)
{
	const char *slash = n ? strrchr(files[0], '/') : NULL;
	size_t bytes = slash ? (size_t)(slash - files[0]) + 1 : 0;

	for (size_t i = 1; i < n; i++) {
		size_t same = 0;

		while (same < bytes && files[i][same] == files[0][same])
			same++;
		while (same > 0 && files[0][same - 1] != '/')
			same--;
		bytes = same;
	}
	return bytes;
}

/* Whether an earlier operand is the same file. */
static bool file_is_repeated(const struct stat *seen, size_t n, const struct stat *st)
{
	for (size_t i = 0; i < n; i++)
		if (S_ISREG(st->st_mode) && seen[i].st_ino == st->st_ino &&
		    seen[i].st_dev == st->st_dev)
			return true;
	return false;
}

/* Makes the file of an operand, unless an earlier operand is the same file. Takes over the path. */
static void file_make(struct hr_import *i, char *path, size_t skip, bool found, struct stat *seen)
{
	struct hr_import_file *f = &i->files[i->n_files];

	*f = (struct hr_import_file){.import = i,
				     .path = path,
				     .name = path + skip,
				     .found = found,
				     .index = (uint32_t)i->n_files};
	if (stat(path, &seen[i->n_files]) == 0 &&
	    file_is_repeated(seen, i->n_files, &seen[i->n_files])) {
		hr_import_problem(f, "named twice; imported once");
		free(path);
		return;
	}
	i->n_files++;
}

int hr__files_open(struct hr_import *i, const char *const *files, size_t n)
{
	struct file_list l = {0};
	int r = list_make(&l, files, n);
	size_t skip = common_bytes(l.v, l.n);
	struct stat *seen = calloc(l.n + 1, sizeof(*seen));

	i->files = calloc(l.n + 1, sizeof(*i->files));
	for (size_t k = 0; k < l.n; k++) {
		if (i->files && seen && !r)
			file_make(i, l.v[k], skip, l.found[k], seen);
		else
			free(l.v[k]);
	}
	if (!i->files || !seen)
		r = -ENOMEM;
	free(seen);
	free(l.v);
	free(l.found);
	return r;
}

void hr__files_done(struct hr_import *i)
{
	for (size_t k = 0; k < i->n_files; k++) {
		hr_input_close(i->files[k].input);
		free((char *)(uintptr_t)i->files[k].path);
	}
	free(i->files);
}

static char *job_clean(const char *name, size_t bytes)
{
	char *job = strndup(name, bytes);

	for (char *c = job; c && *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '_';
	return job;
}

/* Returns the last part of a path, without the ends of names such as .pfw.gz (malloc'ed). */
static char *name_stem(const char *path, size_t bytes)
{
	static const char *const ends[] = {".gz",  ".pfw",    ".json",	".darshan",
					   ".txt", ".sqlite", ".strace"};
	const char *slash;
	size_t end;

	while (bytes > 1 && path[bytes - 1] == '/')
		bytes--;
	slash = memrchr(path, '/', bytes);
	if (slash) {
		bytes -= (size_t)(slash + 1 - path);
		path = slash + 1;
	}
	while ((end = hr__name_end(path, bytes, ends, sizeof(ends) / sizeof(ends[0]))) > 0)
		bytes -= end;
	bytes = bytes < JOB_BYTES ? bytes : JOB_BYTES;
	return bytes && path[0] != '.' && path[0] != '/' ? job_clean(path, bytes)
							 : strdup("imported");
}

char *hr__files_job(const char *const *files, size_t n)
{
	size_t bytes = n == 1 ? 0 : common_bytes((char *const *)(uintptr_t)files, n);
	char *absolute, *job;

	if (bytes > 0)
		return name_stem(files[0], bytes);
	absolute = realpath(n == 1 ? files[0] : ".", NULL);
	job = absolute ? name_stem(absolute, strlen(absolute)) : strdup("imported");
	free(absolute);
	return job;
}
