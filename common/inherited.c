/* SPDX-License-Identifier: Apache-2.0 */
/* This function has its own file, because tests replace fdstore.c. */
#include "common/fdstore.h"

#include <stdlib.h>
#include <unistd.h>

void hr_fdstore_inherited_free(struct hr_inherited *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].name);
		if (list[i].fd >= 0)
			close(list[i].fd);
	}
	free(list);
}
