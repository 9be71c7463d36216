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

/* Takes over the path. `found`: in a folder, not named by the user. */
static int file_add(struct hr_import *i, char *path, bool found)
{
	if (!path || !hr_array_reserve(i->files, i->n_files, i->files_room)) {
		free(path);
		return -ENOMEM;
	}
	i->files[i->n_files++] = (struct hr_import_file){.import = i, .path = path, .found = found};
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
static int folder_add(struct hr_import *to, const char *folder)
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
			r = file_add(to, path, true);
		free(names[i]);
	}
	free(names);
	return r;
}

/* Returns the length of the part, up to a '/', with which both paths begin, at most `bytes`. */
static size_t common_bytes(const char *a, const char *b, size_t bytes)
{
	size_t same = 0;

	while (same < bytes && a[same] == b[same])
		same++;
	while (same > 0 && a[same - 1] != '/')
		same--;
	return same;
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

/* Numbers the files, and drops those that are the same as an earlier one. */
static int files_number(struct hr_import *i)
{
	struct stat *seen = calloc(i->n_files + 1, sizeof(*seen));
	size_t n = 0;

	if (!seen)
		return -ENOMEM;
	for (size_t k = 0; k < i->n_files; k++) {
		struct hr_import_file f = i->files[k];

		if (stat(f.path, &seen[n]) == 0 && file_is_repeated(seen, n, &seen[n])) {
			hr_import_problem(&f, "named twice; imported once");
			free((char *)(uintptr_t)f.path);
			continue;
		}
		f.index = (uint32_t)n;
		i->files[n++] = f;
	}
	i->n_files = n;
	free(seen);
	return 0;
}

int hr__files_open(struct hr_import *i, const char *const *files, size_t n)
{
	struct stat st;
	size_t skip;
	int r = 0;

	for (size_t k = 0; k < n && !r; k++) {
		if (stat(files[k], &st) == 0 && S_ISDIR(st.st_mode))
			r = folder_add(i, files[k]);
		else
			r = file_add(i, strdup(files[k]), false);
	}
	skip = i->n_files ? strlen(i->files[0].path) : 0;
	for (size_t k = 0; k < i->n_files; k++)
		skip = common_bytes(i->files[0].path, i->files[k].path, skip);
	for (size_t k = 0; k < i->n_files; k++)
		i->files[k].name = i->files[k].path + skip;
	return r ? r : files_number(i);
}

void hr__files_done(struct hr_import *i)
{
	for (size_t k = 0; k < i->n_files; k++) {
		hr_input_close(i->files[k].input);
		free((char *)(uintptr_t)i->files[k].path);
	}
	free(i->files);
}

void hr__name_clean(char *name)
{
	for (char *c = name; c && *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '_';
}

/* Returns the last part of a path, without the ends of names such as .pfw.gz (malloc'ed). */
static char *name_stem(const char *path, size_t bytes)
{
	static const char *const ends[] = {".gz",  ".pfw",    ".json",	".darshan",
					   ".txt", ".sqlite", ".strace"};
	const char *slash;
	size_t end;
	char *job;

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
	job = bytes && path[0] != '.' && path[0] != '/' ? strndup(path, bytes) : strdup("imported");
	hr__name_clean(job);
	return job;
}

char *hr__files_job(const char *const *files, size_t n)
{
	size_t bytes = n > 1 ? strlen(files[0]) : 0;
	char *absolute, *job;

	for (size_t i = 0; i < n && bytes > 0; i++)
		bytes = common_bytes(files[0], files[i], bytes);
	if (bytes > 0)
		return name_stem(files[0], bytes);
	absolute = realpath(n == 1 ? files[0] : ".", NULL);
	job = absolute ? name_stem(absolute, strlen(absolute)) : strdup("imported");
	free(absolute);
	return job;
}
