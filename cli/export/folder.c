/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/export/export.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool is_empty(DIR *folder)
{
	const struct dirent *entry;

	while ((entry = readdir(folder)) != NULL)
		if (!is_dots(entry->d_name))
			return false;
	return true;
}

/* Finds out whether the folder exists. Returns false after it has reported why it is unusable. */
static bool check_target(struct hr_export_folder *f, bool add)
{
	DIR *folder = opendir(f->target);
	bool usable = folder != NULL ? add || is_empty(folder) : errno == ENOENT;

	f->exists = folder != NULL;
	if (!usable && f->exists)
		hr_report("%s exists and is not empty: remove it, or choose another folder with -o",
			  f->target);
	else if (!usable)
		hr_report("cannot write to %s: %s", f->target, strerrordesc_np(errno));
	if (folder != NULL)
		closedir(folder);
	return usable;
}

static void block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int hr_export_folder_begin(struct hr_export_folder *f, const char *path, bool add)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	*f = (struct hr_export_folder){.target = strndup(path, n)};
	if (f->target == NULL || !check_target(f, add))
		return EXIT_FAILURE;
	if (asprintf(&f->partial, f->exists ? "%s/.partial-%d" : "%s.partial-%d", f->target,
		     (int)getpid()) < 0) {
		f->partial = NULL;
		return EXIT_FAILURE;
	}
	block_signals();
	if (mkdir(f->partial, 0777) == 0)
		return EXIT_SUCCESS;
	hr_report("cannot create %s: %s", f->target, strerrordesc_np(errno));
	free(f->partial);
	f->partial = NULL;
	return EXIT_FAILURE;
}

/* Moves the content of f->partial into the folder that it is in. Returns 0 or -errno. */
static int move_entries(const struct hr_export_folder *f)
{
	DIR *from = opendir(f->partial), *to = opendir(f->target);
	const struct dirent *entry;
	int r = from != NULL && to != NULL ? 0 : -errno;

	while (from != NULL && to != NULL && r == 0 && (entry = readdir(from)) != NULL)
		if (!is_dots(entry->d_name) &&
		    renameat(dirfd(from), entry->d_name, dirfd(to), entry->d_name) < 0)
			r = -errno;
	if (from != NULL)
		closedir(from);
	if (to != NULL)
		closedir(to);
	return r;
}

int hr_export_folder_end(struct hr_export_folder *f, int status)
{
	int r = 0;

	if (status == EXIT_SUCCESS && f->exists)
		r = move_entries(f);
	else if (status == EXIT_SUCCESS && rename(f->partial, f->target) < 0)
		r = -errno;
	if (r < 0) {
		hr_report("cannot write to %s: %s", f->target, strerrordesc_np(-r));
		status = EXIT_FAILURE;
	}
	if (f->partial != NULL)
		hr_remove_tree(f->partial);
	free(f->partial);
	free(f->target);
	return status;
}
