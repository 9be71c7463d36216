/* SPDX-License-Identifier: Apache-2.0 */
#include "query/duckdb/duckdb_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"

#define LIBRARY "libduckdb.so"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct hr_duckdb hr_duckdb;

struct symbol {
	size_t slot; /* offset of its member in struct hr_duckdb */
	const char *name;
};

static const struct symbol symbols[] = {
#define HR_DUCKDB(ret, name, params) {offsetof(struct hr_duckdb, name), "duckdb_" #name},
#include "query/duckdb/duckdb_api.def"
#undef HR_DUCKDB
};

/* Fills hr_duckdb. Returns the first function that is missing in the library, or NULL. */
static const char *duckdb_api_resolve(void *handle)
{
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *fn = dlsym(handle, symbols[i].name);

		if (fn == NULL)
			return symbols[i].name;
		memcpy((char *)&hr_duckdb + symbols[i].slot, &fn, sizeof(fn));
	}
	return NULL;
}

static int use(void *handle, const char *path, char **ret_error)
{
	const char *missing = duckdb_api_resolve(handle);

	if (missing != NULL) {
		dlclose(handle);
		return hr_text_fail(-ELIBACC, ret_error,
				    "%s is not a DuckDB that headrace can use: it has no %s; "
				    "install-duckdb installs the tested version",
				    path, missing);
	}
	hr_duckdb.handle = handle;
	return 0;
}

/* Loads a file. -ENOENT: no such file; -ELIBACC: it cannot be loaded. */
static int try_file(const char *path, char **ret_error)
{
	void *handle;

	if (access(path, F_OK) < 0)
		return -ENOENT;
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL)
		return hr_text_fail(-ELIBACC, ret_error, "cannot load DuckDB: %s", dlerror());
	return use(handle, path, ret_error);
}

static int try_folder(const char *folder, const char *below, char **ret_error)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s%s/" LIBRARY, folder, below) >= sizeof(path))
		return -ENOENT;
	return try_file(path, ret_error);
}

/* `named`: the value of HEADRACE_DUCKDB, a library or a folder. */
static int try_named(const char *named, char **ret_error)
{
	struct stat st;
	bool folder = stat(named, &st) == 0 && S_ISDIR(st.st_mode);
	int r = folder ? try_folder(named, "", ret_error) : try_file(named, ret_error);

	return r != -ENOENT
		   ? r
		   : hr_text_fail(r, ret_error,
				  folder ? "HEADRACE_DUCKDB is %s, a folder without " LIBRARY
					 : "HEADRACE_DUCKDB is %s, which does not exist; unset "
					   "it, or set it to the path of " LIBRARY,
				  named);
}

static int try_program_folder(char **ret_error)
{
	static const char *const below[] = {"", "/../libexec/headrace", "/../third_party/duckdb",
					    "/../../third_party/duckdb"};
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;
	int r = -ENOENT;

	if (n <= 0)
		return -ENOENT;
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	if (slash == NULL)
		return -ENOENT;
	*slash = '\0';
	for (size_t i = 0; r == -ENOENT && i < sizeof(below) / sizeof(below[0]); i++)
		r = try_folder(exe, below[i], ret_error);
	return r;
}

static int try_user_folder(char **ret_error)
{
	const char *data = getenv("XDG_DATA_HOME");
	const char *home = getenv("HOME");

	if (data != NULL && data[0] == '/')
		return try_folder(data, "/headrace", ret_error);
	if (home != NULL && home[0] == '/')
		return try_folder(home, "/.local/share/headrace", ret_error);
	return -ENOENT;
}

static int search(char **ret_error)
{
	const char *named = getenv("HEADRACE_DUCKDB");
	void *handle;
	int r;

	if (named != NULL && named[0] != '\0')
		return try_named(named, ret_error);
	r = try_program_folder(ret_error);
	if (r == -ENOENT)
		r = try_user_folder(ret_error);
	if (r == -ENOENT)
		r = try_folder("/usr/lib/headrace", "", ret_error);
	if (r != -ENOENT)
		return r;
	handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (handle != NULL)
		return use(handle, LIBRARY, ret_error);
	return hr_text_fail(-ENOENT, ret_error,
			    "queries need DuckDB (" LIBRARY
			    "), recording and summaries do not: run "
			    "`install-duckdb --user` (in libexec/headrace, or in scripts/ of the "
			    "sources), or set HEADRACE_DUCKDB to the library or its folder");
}

int hr_duckdb_load(char **ret_error)
{
	int r = 0;

	pthread_mutex_lock(&lock);
	if (hr_duckdb.handle == NULL)
		r = search(ret_error);
	pthread_mutex_unlock(&lock);
	return r;
}
