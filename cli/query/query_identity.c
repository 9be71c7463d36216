/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/query/query_identity.h"

#include <stdlib.h>

#include "net/munge.h"
#include "net/tls_find.h"

int hr_identity_init(struct hr_query_identity *i, const struct hr_address *to, char **ret_error)
{
	const struct hr_tls_files none = {0};
	struct hr_tls_paths paths = {0};
	struct hr_tls_files files;
	int r;

	*i = (struct hr_query_identity){0};
	if (to->local) /* the kernel identifies the peer */
		return 0;
	r = hr_tls_find(&none, &paths, ret_error);
	if (r == 0 && paths.cert != NULL) {
		files = hr_tls_paths_files(&paths);
		r = hr_tls_new(&files, false, &i->tls, ret_error);
	}
	hr_tls_paths_done(&paths);
	return r;
}

bool hr_identity_credential(struct hr_query_identity *i)
{
	char *error = NULL;

	if (i->munge == NULL &&
	    hr_munge_encode(getenv("HEADRACE_MUNGE_SOCKET"), &i->munge, &error) < 0)
		i->munge = NULL;
	free(error); /* If there is no MUNGE, the refusal of the collector gives advice. */
	return i->munge != NULL;
}

void hr_identity_done(struct hr_query_identity *i)
{
	hr_tls_unref(i->tls);
	free(i->munge);
}
