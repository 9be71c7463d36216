/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stores.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/array.h"
#include "common/text.h"

int hr_stores_add(const char *path, bool sizes, struct hr_found_stores *to)
{
	struct hr_found_store store;

	if (hr_store_outline(path, sizes, &store.outline) < 0)
		return 0;
	store.path = strdup(path);
	if (store.path == NULL || !hr_array_reserve(to->list, to->n, to->room)) {
		free(store.path);
		return -ENOMEM;
	}
	to->list[to->n++] = store;
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	const struct hr_found_store *x = a, *y = b;

	if (x->outline.changed_ns != y->outline.changed_ns)
		return x->outline.changed_ns > y->outline.changed_ns ? -1 : 1;
	return strcmp(y->path, x->path);
}

void hr_stores_sort(struct hr_found_stores *s)
{
	if (s->n > 0)
		qsort(s->list, s->n, sizeof(*s->list), newest_first);
}

static int add_in(const char *folder, const char *name, bool sizes, struct hr_found_stores *to)
{
	size_t n = strlen(folder);
	char *path;
	int r;

	if (asprintf(&path, "%s%s%s", folder, n > 0 && folder[n - 1] == '/' ? "" : "/", name) < 0)
		return -ENOMEM;
	r = hr_stores_add(path, sizes, to);
	free(path);
	return r;
}

int hr_stores_find(const char *folder, bool sizes, struct hr_found_stores *to)
{
	size_t before = to->n;
	struct dirent *entry;
	DIR *dir;
	int r = hr_stores_add(folder, sizes, to);

	if (r < 0 || to->n > before)
		return r;
	dir = opendir(folder);
	if (dir == NULL)
		return -errno;
	while (r == 0 && (entry = readdir(dir)) != NULL) // NOLINT(concurrency-mt-unsafe): own `dir`
		if (entry->d_name[0] != '.' &&
		    (entry->d_type == DT_DIR || entry->d_type == DT_LNK ||
		     entry->d_type == DT_UNKNOWN))
			r = add_in(folder, entry->d_name, sizes, to);
	closedir(dir);
	hr_stores_sort(to);
	return r;
}

void hr_stores_done(struct hr_found_stores *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->list[i].path);
	free(s->list);
}

static void report_taken(const char *path)
{
	char *line = hr_text_line(path);

	hr_report("store: %s", line != NULL ? line : "");
	free(line);
}

/*
 * Returns false for a store of another user, because it may be anything in a folder such as /tmp,
 * and for a store without jobs, as a run that could not start leaves it.
 */
static bool is_candidate(const struct hr_store_outline *outline)
{
	return outline->jobs > 0 && (outline->uid == geteuid() || geteuid() == 0);
}

char *hr_stores_take_newest(void)
{
	struct hr_found_stores found = {0};
	int r = hr_stores_find(".", false, &found);
	char *path = NULL;
	size_t i = 0;

	while (i < found.n && !is_candidate(&found.list[i].outline))
		i++;
	if (i < found.n) {
		path = found.list[i].path;
		found.list[i].path = NULL;
		report_taken(path);
	} else if (r < 0) {
		hr_report("cannot look for stores in this folder: %s" HR_HINT "name a store",
			  strerrordesc_np(-r));
	} else {
		hr_report("no store given, and this folder contains none of yours" HR_HINT
			  "`headrace run -- CMD` records CMD into a store; `headrace ls FOLDER` "
			  "lists the stores in another folder");
	}
	hr_stores_done(&found);
	return path;
}

static void add_names(const char *folder, struct hr_near *near)
{
	struct hr_found_stores found = {0};

	hr_stores_find(folder, false, &found);
	for (size_t i = 0; i < found.n; i++) {
		const char *slash = strrchr(found.list[i].path, '/');

		hr_near_add(near, slash != NULL ? slash + 1 : found.list[i].path);
	}
	hr_stores_done(&found);
}

void hr_stores_near(struct hr_near *near)
{
	add_names(".", near);
}

void hr_stores_report_missing(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t folder_n = slash != NULL ? (size_t)(slash - path) + 1 : 0, n;
	struct hr_near near = hr_near(path + folder_n);
	char *folder = folder_n > 0 ? strndup(path, folder_n) : strdup(".");

	if (folder != NULL)
		add_names(folder, &near);
	free(folder);
	n = strlen(near.best);
	if (n > 0 && folder_n + n < sizeof(near.best)) {
		memmove(near.best + folder_n, near.best, n + 1);
		memcpy(near.best, path, folder_n);
	}
	near.typed = path;
	hr_report("no store %s%s", hr_near_text(&near).s,
		  n == 0 ? HR_HINT "`headrace ls` lists the stores in a folder" : "");
}

const char *hr_refusal_reason(int error)
{
	switch (error) {
	case -ENOTEMPTY:
		return "it contains other files and is not a store";
	case -EPROTONOSUPPORT:
		return "it was written by a newer headrace";
	case -EBUSY:
		return "a collector writes to it";
	default:
		return strerrordesc_np(-error);
	}
}

const char *hr_refusal_fix(int error)
{
	switch (error) {
	case -EROFS:
		return "choose a folder on a writable file system with -o";
	case -ENOSPC:
	case -EDQUOT:
		return "free some space, or choose another file system with -o";
	case -ENOTEMPTY:
	case -ENOTDIR:
		return "choose a new folder with -o";
	case -ENAMETOOLONG:
		return "choose a shorter path with -o";
	case -EFBIG:
		return "raise the limit of file size (ulimit -f)";
	case -EBUSY:
		return "send to the collector: -o tcp://HOST:PORT";
	case -EPROTONOSUPPORT:
		return "use that version, or choose another folder with -o";
	default:
		return "choose another folder with -o";
	}
}
