/* SPDX-License-Identifier: Apache-2.0 */
/* make_store.c - makes the small store of fixture_store.c and prints its folder, for test_cli.sh */
#include <stdio.h>
#include <stdlib.h>

#include "tests/query/fixture.h"

int main(void)
{
	char *store = fixture_make();

	puts(store);
	free(store);
	return 0;
}
