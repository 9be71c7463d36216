/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/environment.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "daemon/control/private.h"

#define ADDED_MAX 15u

/* Returns whether `variable` is "NAME=value" with this name. */
static bool is_named(const char *variable, const char *name, size_t bytes)
{
	return strncmp(variable, name, bytes) == 0 && variable[bytes] == '=';
}

/* Returns whether `word` is in `list`, which spaces and colons separate (ld.so(8)). */
static bool list_has(const char *list, const char *word)
{
	size_t bytes = strlen(word);

	while (*list != '\0') {
		size_t n = strcspn(list, " :");

		if (n == bytes && memcmp(list, word, n) == 0)
			return true;
		list += n + (list[n] != '\0');
	}
	return false;
}

/* Returns "NAME=", `first` (or NULL) and the NULL-terminated `rest`, joined by `separator`. */
static char *environment_join(const char *name, const char *first, const char *const *rest,
			      char separator)
{
	size_t bytes = strlen(name) + 2 + (first != NULL ? strlen(first) : 0), used;
	char *out;

	for (size_t i = 0; rest[i] != NULL; i++)
		bytes += strlen(rest[i]) + 1;
	out = malloc(bytes);
	if (out == NULL)
		return NULL;
	used = (size_t)snprintf(out, bytes, "%s=%s", name, first != NULL ? first : "");
	for (size_t i = 0; rest[i] != NULL; i++) {
		if (out[used - 1] != '=')
			out[used++] = separator;
		used += (size_t)snprintf(out + used, bytes - used, "%s", rest[i]);
	}
	return out;
}

static bool environment_put(char **environment, char *entry)
{
	size_t bytes;

	if (entry == NULL)
		return false;
	bytes = strcspn(entry, "=");
	for (; *environment != NULL; environment++) {
		if (is_named(*environment, entry, bytes)) {
			free(*environment);
			break;
		}
	}
	*environment = entry; /* hr_environment_new has allocated room */
	return true;
}

static bool put_value(char **environment, const char *name, const char *value)
{
	static const char *const none[] = {NULL};

	return environment_put(environment, environment_join(name, value, none, ','));
}

static bool put_list(char **environment, const char *name, const char *const *list)
{
	return list[0] == NULL ||
	       environment_put(environment, environment_join(name, getenv(name), list, ','));
}

static char *preload(const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	const char *const added[] = {old != NULL && list_has(old, library) ? NULL : library, NULL};

	return environment_join("LD_PRELOAD", old, added, ':');
}

static bool is_off(const char *variable)
{
	const char *choice = getenv(variable);

	return choice != NULL && strcmp(choice, "off") == 0;
}

enum hr_python hr_environment_python(const char *folder)
{
	if (is_off("HEADRACE_PYTHON"))
		return HR_PYTHON_OFF;
	if (folder == NULL)
		return HR_PYTHON_ABSENT;
	return strchr(folder, ':') != NULL ? HR_PYTHON_COLON : HR_PYTHON_USED;
}

/* Python imports only the first sitecustomize. headrace's, in `folder`, imports the next one. */
static bool put_python(char **environment, const char *folder)
{
	const char *old = getenv("PYTHONPATH");
	const char *const rest[] = {old != NULL && old[0] != '\0' ? old : NULL, NULL};

	if (hr_environment_python(folder) != HR_PYTHON_USED ||
	    (old != NULL && list_has(old, folder)))
		return true;
	return environment_put(environment, environment_join("PYTHONPATH", folder, rest, ':'));
}

/* Returns whether the path is that of a shim, possibly of another version. */
static bool is_shim(const char *value)
{
	const char *slash = strrchr(value, '/');

	return strcmp(slash != NULL ? slash + 1 : value, "libheadrace.so") == 0;
}

/* Sets the shim as the tool of NVTX and ITT, unless another tool is set (docs/regions.md). */
static bool put_tools(char **environment, const char *library)
{
	static const char *const names[] = {"NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64"};

	if (is_off("HEADRACE_NVTX"))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *other = getenv(names[i]);

		if ((other == NULL || is_shim(other)) && !put_value(environment, names[i], library))
			return false;
	}
	return true;
}

static bool put_folder(char **environment, const char *name)
{
	char folder[PATH_MAX];

	return put_value(environment, name, getcwd(folder, sizeof(folder)) != NULL ? folder : "");
}

/* Python records functions of files below the working directory (docs/python.md). */
static bool put_functions(char **environment, const char *globs)
{
	return globs == NULL || (put_value(environment, "HEADRACE_FUNCTIONS", globs) &&
				 put_folder(environment, "HEADRACE_FUNCTIONS_FOLDER"));
}

static bool put_all(char **environment, const struct hr_environment *e)
{
	return environment_put(environment, preload(e->library)) &&
	       put_python(environment, e->python) && put_tools(environment, e->library) &&
	       put_value(environment, "HEADRACE_SOCKET", e->socket) &&
	       (e->store == NULL || (put_value(environment, "HEADRACE_STORE", e->store) &&
				     put_value(environment, "HEADRACE_JOB", e->job))) &&
	       /* The shim overwrites the digits with the time of a failed attach. */
	       put_value(environment, "HEADRACE_ATTACH_FAILED", "00000000000000000000") &&
	       put_list(environment, "HEADRACE_EXCLUDE", e->exclude) &&
	       put_list(environment, "HEADRACE_INCLUDE", e->include) &&
	       (!e->full_cmdline || put_value(environment, "HEADRACE_CMDLINE", "full")) &&
	       put_functions(environment, e->functions) &&
	       (e->no_stacks ? put_value(environment, "HEADRACE_STACKS", "")
			     : put_folder(environment, "HEADRACE_STACKS")) &&
	       (getenv("HEADRACE_ON_FULL") != NULL ||
		put_value(environment, "HEADRACE_ON_FULL", "wait:1000"));
}

char **hr_environment_new(const struct hr_environment *e)
{
	size_t n = 0;
	char **environment;

	while (environ[n] != NULL)
		n++;
	environment = calloc(n + ADDED_MAX + 1, sizeof(*environment));
	if (environment == NULL)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		environment[i] = strdup(environ[i]);
		if (environment[i] == NULL)
			break;
	}
	if ((n > 0 && environment[n - 1] == NULL) || !put_all(environment, e)) {
		hr_environment_free(environment);
		return NULL;
	}
	return environment;
}

void hr_environment_free(char **environment)
{
	for (size_t i = 0; environment != NULL && environment[i] != NULL; i++)
		free(environment[i]);
	free(environment);
}

char *hr_library_find(void)
{
	char *library = hr_part_find("libheadrace.so"), link[HR_PRIVATE_PATH], *linked = NULL;
	char *slash = library != NULL ? strrchr(library, '/') : NULL;

	if (slash == NULL || hr_environment_problem(library) == NULL)
		return library;
	*slash = '\0';
	if (hr_private_link(library, link) == 0 && asprintf(&linked, "%s/%s", link, slash + 1) < 0)
		linked = NULL;
	*slash = '/';
	if (linked == NULL)
		return library;
	free(library);
	return linked;
}

const char *hr_environment_problem(const char *library)
{
	return strpbrk(library, " :") != NULL
		   ? "LD_PRELOAD cannot contain a path with a space or a colon"
		   : NULL;
}
