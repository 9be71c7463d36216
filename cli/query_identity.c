/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/query_identity.h"

#include <stdlib.h>

#include "cli/cli.h"
#include "net/munge.h"
#include "net/tls_find.h"

bool hr_identity_init(struct hr_identity *i, const struct hr_address *to)
{
	const struct hr_tls_files none = {0};
	struct hr_tls_paths paths = {0};
	struct hr_tls_files files;
	char *error = NULL;
	int r;

	*i = (struct hr_identity){0};
	if (to->local) /* the kernel knows */
		return true;
	r = hr_tls_find(&none, &paths, &error);
	if (r == 0 && paths.cert != NULL) {
		files = hr_tls_paths_files(&paths);
		r = hr_tls_new(&files, false, &i->tls, &error);
	}
	if (r < 0)
		hr_say("%s", error != NULL ? error : "out of memory");
	hr_tls_paths_done(&paths);
	free(error);
	return r == 0;
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
