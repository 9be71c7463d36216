/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/query_process.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHILD_FD 3
/* The name of a folder continues with the pid of the collector and a number. */
#define SPILL_PREFIX "headrace-query-"

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	(void)!remove(path);
	return 0;
}

void hr_query_spill_remove(const char *path)
{
	nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int hr_query_spill_make(const char *parent, uint64_t number, char **ret)
{
	if (asprintf(ret, "%s/" SPILL_PREFIX "%d-%" PRIu64, parent, (int)getpid(), number) < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	return mkdir(*ret, 0700) < 0 ? -errno : 0;
}

void hr_query_spill_clean(const char *parent)
{
	DIR *dir = opendir(parent);
	const struct dirent *entry;

	// NOLINTNEXTLINE(concurrency-mt-unsafe): a DIR of our own
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		const char *rest = entry->d_name + strlen(SPILL_PREFIX);
		char *path;
		long pid;

		if (strncmp(entry->d_name, SPILL_PREFIX, strlen(SPILL_PREFIX)) != 0)
			continue;
		pid = strtol(rest, NULL, 10);
		if (pid <= 0 || (pid != getpid() && kill((pid_t)pid, 0) == 0) ||
		    asprintf(&path, "%s/%s", parent, entry->d_name) < 0)
			continue;
		hr_query_spill_remove(path);
		free(path);
	}
	if (dir != NULL)
		closedir(dir);
}

/* Returns the variables for sanitizers and for the search for DuckDB; free list and texts. */
static char **environment(void)
{
	static const char *const kept[] = {"HEADRACE_DUCKDB", "HOME",	      "XDG_DATA_HOME",
					   "LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS",
					   "UBSAN_OPTIONS"};
	size_t n = sizeof(kept) / sizeof(kept[0]), used = 0;
	char **list = calloc(n + 1, sizeof(*list));

	for (size_t i = 0; list != NULL && i < n; i++) {
		const char *value = getenv(kept[i]); // NOLINT(concurrency-mt-unsafe): one thread

		if (value != NULL && asprintf(&list[used], "%s=%s", kept[i], value) >= 0)
			used++;
		else
			list[used] = NULL;
	}
	return list;
}

int hr_query_spawn(uv_loop_t *loop, const char *exe, int child_fd, uv_exit_cb exited,
		   uv_process_t *process, bool *ret_handle)
{
	uv_stdio_container_t stdio[CHILD_FD + 1] = {
	    {.flags = UV_IGNORE},
	    {.flags = UV_IGNORE},
	    {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
	    {.flags = UV_INHERIT_FD, .data.fd = child_fd},
	};
	char *args[] = {(char *)exe, "query-worker", "3", NULL};
	uv_process_options_t options = {.exit_cb = exited,
					.file = exe,
					.args = args,
					.env = environment(),
					.stdio_count = CHILD_FD + 1,
					.stdio = stdio};
	int r = -ENOMEM;

	*ret_handle = options.env != NULL;
	if (options.env != NULL)
		r = uv_spawn(loop, process, &options);
	for (char **text = options.env; text != NULL && *text != NULL; text++)
		free(*text);
	free(options.env);
	return r;
}

char *hr_query_exit_text(int64_t status, int signal)
{
	char *text;
	int n;

	if (signal == SIGKILL)
		return strdup("the process of this query was killed (SIGKILL), probably because "
			      "the machine had no memory left");
	if (signal == SIGXCPU)
		return strdup("the process of this query was killed (SIGXCPU): it reached its "
			      "limit of CPU time");
	if (signal != 0)
		n = asprintf(&text,
			     "the process of this query was killed (SIG%s): DuckDB failed, or had "
			     "no memory left; the store and other queries are not affected",
			     sigabbrev_np(signal));
	else
		n = asprintf(&text,
			     "the process of this query ended with status %" PRId64
			     " before it answered",
			     status);
	return n < 0 ? NULL : text;
}
