/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/query_identity.h"

#include <stdlib.h>

bool hr_identity_init(struct hr_identity *i, const struct hr_address *to)
{
	(void)to;
	*i = (struct hr_identity){0};
	return true;
}

bool hr_identity_credential(struct hr_identity *i)
{
	(void)i;
	return false;
}

void hr_identity_done(struct hr_identity *i)
{
	free(i->munge);
}
