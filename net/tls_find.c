/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls_find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"

enum { CERT, KEY, CA, FILES };

static const char *const flag_names[FILES] = {"--tls-cert", "--tls-key", "--tls-ca"};
static const char *const variables[FILES] = {"HEADRACE_TLS_CERT", "HEADRACE_TLS_KEY",
					     "HEADRACE_TLS_CA"};
static const char *const file_names[FILES] = {"cert.pem", "key.pem", "ca.pem"};

static char *absolute(const char *path)
{
	char *folder, *whole = NULL;

	if (path[0] == '/')
		return strdup(path);
	folder = getcwd(NULL, 0);
	if (folder && asprintf(&whole, "%s/%s", folder, path) < 0)
		whole = NULL;
	free(folder);
	return whole;
}

static int copy_path(const char *name, const char *value, char **ret, char **ret_error)
{
	if (access(value, F_OK) < 0)
		return hr_text_fail(-errno, ret_error, "%s=%s: %s", name, value,
				    strerrordesc_np(errno));
	*ret = absolute(value);
	return *ret ? 0 : hr_text_fail(-ENOMEM, ret_error, "%s: out of memory", name);
}

/* Searches one place. 1: found; 0: the place names none of the files; negative: error. */
static int find_in(const char *const names[FILES], const char *const values[FILES],
		   struct hr_tls_paths *ret, char **ret_error)
{
	char **paths[FILES] = {&ret->cert, &ret->key, &ret->ca};
	const char *given[FILES], *named = NULL, *missing = NULL;
	int r = 0;

	if (values[CERT] && !*values[CERT])
		return 1;
	for (int i = 0; i < FILES; i++) {
		given[i] = values[i] ? values[i] : "";
		if (*given[i])
			named = names[i];
		else
			missing = names[i];
	}
	if (!named)
		return 0;
	if (missing)
		return hr_text_fail(-EINVAL, ret_error,
				    "found %s, but not %s: TLS needs a certificate, its key, and "
				    "the CA certificate of the collector",
				    named, missing);
	for (int i = 0; i < FILES && r == 0; i++)
		r = copy_path(names[i], given[i], paths[i], ret_error);
	return r < 0 ? r : 1;
}

/* Returns the TLS folder of the user, malloc'ed. NULL: the user has none, or no memory is left. */
static char *own_folder(void)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char *folder = NULL;
	int n = -1;

	if (config && config[0] == '/')
		n = asprintf(&folder, "%s/headrace/tls", config);
	else if (home && home[0] == '/')
		n = asprintf(&folder, "%s/.config/headrace/tls", home);
	return n < 0 ? NULL : folder;
}

static int find_in_folder(struct hr_tls_paths *ret, char **ret_error)
{
	char *folder = own_folder(), *paths[FILES] = {NULL};
	const char *there[FILES] = {NULL};
	int r = 0;

	for (int i = 0; i < FILES && folder && r == 0; i++) {
		if (asprintf(&paths[i], "%s/%s", folder, file_names[i]) < 0) {
			paths[i] = NULL;
			r = hr_text_fail(-ENOMEM, ret_error, "%s: out of memory", folder);
		} else if (access(paths[i], F_OK) == 0) {
			there[i] = paths[i];
		}
	}
	if (folder && r == 0)
		r = find_in((const char *const *)paths, there, ret, ret_error);
	for (int i = 0; i < FILES; i++)
		free(paths[i]);
	free(folder);
	return r;
}

int hr_tls_find(const struct hr_tls_files *flags, struct hr_tls_paths *ret, char **ret_error)
{
	const char *const given[FILES] = {flags->cert, flags->key, flags->ca};
	const char *set[FILES];
	struct hr_tls_paths found = {0};
	int r;

	for (int i = 0; i < FILES; i++)
		set[i] = getenv(variables[i]);
	r = find_in(flag_names, given, &found, ret_error);
	if (r == 0)
		r = find_in(variables, set, &found, ret_error);
	if (r == 0)
		r = find_in_folder(&found, ret_error);
	if (r < 0) {
		hr_tls_paths_done(&found);
		return r;
	}
	*ret = found;
	return 0;
}

void hr_tls_paths_done(struct hr_tls_paths *p)
{
	free(p->cert);
	free(p->key);
	free(p->ca);
	*p = (struct hr_tls_paths){0};
}

struct hr_tls_files hr_tls_paths_files(const struct hr_tls_paths *p)
{
	return (struct hr_tls_files){.cert = p->cert, .key = p->key, .ca = p->ca};
}
