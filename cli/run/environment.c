/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/environment.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OURS 12u

/* Does `variable` ("NAME=value") have this name? */
static bool is_named(const char *variable, const char *name, size_t bytes)
{
	return strncmp(variable, name, bytes) == 0 && variable[bytes] == '=';
}

/* Is `word` one of the words of `list`, separated by spaces and colons as ld.so has it? */
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

/* "NAME=" and the non-empty parts joined by `separator`; parts end with NULL. */
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

/* Replaces the variable that `entry` names, or appends it. False when entry is NULL. */
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
	*environment =
	    entry; /* the block is long enough: OURS more than there were, and all NULL */
	return true;
}

static char *preload(const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	const char *const ours[] = {old != NULL && list_has(old, library) ? NULL : library, NULL};

	return environment_join("LD_PRELOAD", old, ours, ':');
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

/* It must be the first that is called sitecustomize; it runs the one that it hides. */
static bool put_python(char **environment, const char *folder)
{
	const char *old = getenv("PYTHONPATH");
	const char *const rest[] = {old != NULL && old[0] != '\0' ? old : NULL, NULL};

	if (hr_environment_python(folder) != HR_PYTHON_USED ||
	    (old != NULL && list_has(old, folder)))
		return true;
	return environment_put(environment, environment_join("PYTHONPATH", folder, rest, ':'));
}

/* Does a variable name our library, of whatever version? */
static bool is_ours(const char *value)
{
	const char *slash = strrchr(value, '/');

	return strcmp(slash != NULL ? slash + 1 : value, "libheadrace.so") == 0;
}

/* Where NVTX and ITT look for a tool, unless another one is there (docs/regions.md). */
static bool put_tools(char **environment, const char *library)
{
	static const char *const names[] = {"NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64"};
	const char *const path[] = {library, NULL};

	if (is_off("HEADRACE_NVTX"))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *other = getenv(names[i]);

		if ((other == NULL || is_ours(other)) &&
		    !environment_put(environment, environment_join(names[i], NULL, path, ',')))
			return false;
	}
	return true;
}

static bool put_all(char **environment, const struct hr_environment *e)
{
	const char *const socket[] = {e->socket, NULL}, *const store[] = {e->store, NULL};
	const char *const job[] = {e->job, NULL}, *const on_full[] = {"wait:1000", NULL},
			  *const full[] = {"full", NULL};
	/* Room for the shim to tell children that nobody answered (shim/core/session.c): 20 digits. */
	const char *const attach_failed[] = {"00000000000000000000", NULL};

	if (!environment_put(environment, preload(e->library)) ||
	    !put_python(environment, e->python) || !put_tools(environment, e->library) ||
	    !environment_put(environment, environment_join("HEADRACE_SOCKET", NULL, socket, ',')) ||
	    !environment_put(environment, environment_join("HEADRACE_STORE", NULL, store, ',')) ||
	    !environment_put(environment, environment_join("HEADRACE_JOB", NULL, job, ',')) ||
	    !environment_put(environment,
			     environment_join("HEADRACE_ATTACH_FAILED", NULL, attach_failed, ',')))
		return false;
	if (e->exclude[0] != NULL &&
	    !environment_put(
		environment,
		environment_join("HEADRACE_EXCLUDE", getenv("HEADRACE_EXCLUDE"), e->exclude, ',')))
		return false;
	if (e->include[0] != NULL &&
	    !environment_put(
		environment,
		environment_join("HEADRACE_INCLUDE", getenv("HEADRACE_INCLUDE"), e->include, ',')))
		return false;
	if (e->full_cmdline &&
	    !environment_put(environment, environment_join("HEADRACE_CMDLINE", NULL, full, ',')))
		return false;
	return getenv("HEADRACE_ON_FULL") != NULL ||
	       environment_put(environment,
			       environment_join("HEADRACE_ON_FULL", NULL, on_full, ','));
}

char **hr_environment_new(const struct hr_environment *e)
{
	size_t n = 0;
	char **environment;

	while (environ[n] != NULL)
		n++;
	environment = calloc(n + OURS + 1, sizeof(*environment));
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

const char *hr_environment_problem(const char *library)
{
	return strpbrk(library, " :") != NULL
		   ? "its path has a space or a colon, which LD_PRELOAD cannot hold"
		   : NULL;
}
