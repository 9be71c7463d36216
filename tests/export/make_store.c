/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_store.c - makes a store and prints its folder, for tests that are programs
 *
 *      export_make_store small     two nodes, losses, names of any bytes (tests/query/fixture.h)
 *      export_make_store train     ranks with steps, waits, crossing operations (train_store.h)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/query/fixture.h"
#include "tests/query/train_store.h"

int main(int argc, char **argv)
{
	struct train *train = argc == 2 && strcmp(argv[1], "train") == 0 ? train_new() : NULL;
	char *store = train != NULL ? train->store : fixture_make();

	puts(store);
	free(store);
	free(train);
	return 0;
}
