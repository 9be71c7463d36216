/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/query_identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "net/munge.h"

enum { CERT, KEY, CA, FILES };

static const char *const variables[FILES] = {"HEADRACE_TLS_CERT", "HEADRACE_TLS_KEY",
					     "HEADRACE_TLS_CA"};
static const char *const names[FILES] = {"cert.pem", "key.pem", "ca.pem"};

/* What the environment names: 1 all three, 0 nothing, -1 some of them, which was said. An empty HEADRACE_TLS_CERT is plain. */
static int from_environment(const char *ret[FILES])
{
	const char *set = NULL, *missing = NULL;

	for (int i = 0; i < FILES; i++) {
		ret[i] = getenv(variables[i]);
		if (ret[i] != NULL)
			set = variables[i];
		else
			missing = variables[i];
	}
	if (set == NULL)
		return 0;
	if (missing == NULL || (ret[CERT] != NULL && ret[CERT][0] == '\0'))
		return 1;
	hr_say("%s is set and %s is not: TLS needs a certificate, its key, and the CA of the "
	       "collector",
	       set, missing);
	return -1;
}

/* The folder of a person's own files, malloc'ed; NULL: none, or no memory. */
static char *own_folder(void)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char *folder = NULL;
	int n = -1;

	if (config != NULL && config[0] == '/')
		n = asprintf(&folder, "%s/headrace/tls", config);
	else if (home != NULL && home[0] == '/')
		n = asprintf(&folder, "%s/.config/headrace/tls", home);
	return n < 0 ? NULL : folder;
}

/* True when all three are there. Paths are malloc'ed. */
static bool from_folder(char *ret[FILES])
{
	char *folder = own_folder();
	bool all = folder != NULL;

	for (int i = 0; i < FILES && all; i++) {
		if (asprintf(&ret[i], "%s/%s", folder, names[i]) < 0)
			ret[i] = NULL;
		all = ret[i] != NULL && access(ret[i], F_OK) == 0;
	}
	free(folder);
	return all;
}

static bool make_context(struct hr_identity *i, const char *const files[FILES])
{
	const struct hr_tls_files f = {.cert = files[CERT], .key = files[KEY], .ca = files[CA]};
	char *error = NULL;

	if (hr_tls_new(&f, false, &i->tls, &error) == 0)
		return true;
	hr_say("%s", error != NULL ? error : "out of memory");
	free(error);
	return false;
}

bool hr_identity_init(struct hr_identity *i, const struct hr_address *to)
{
	const char *named[FILES];
	char *own[FILES] = {NULL};
	bool fine = true;
	int found;

	*i = (struct hr_identity){0};
	if (to->local) /* the kernel knows */
		return true;
	found = from_environment(named);
	if (found < 0)
		return false;
	if (found > 0)
		fine = named[CERT][0] == '\0' || make_context(i, named);
	else if (from_folder(own))
		fine = make_context(i, (const char *const *)own);
	for (int k = 0; k < FILES; k++)
		free(own[k]);
	return fine;
}

bool hr_identity_credential(struct hr_identity *i)
{
	char *error = NULL;

	if (i->munge == NULL &&
	    hr_munge_encode(getenv("HEADRACE_MUNGE_SOCKET"), &i->munge, &error) < 0)
		i->munge = NULL;
	free(error); /* who has no MUNGE is told what to do by the collector, if that matters */
	return i->munge != NULL;
}

void hr_identity_done(struct hr_identity *i)
{
	hr_tls_unref(i->tls);
	free(i->munge);
}
