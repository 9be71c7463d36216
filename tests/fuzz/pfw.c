/* SPDX-License-Identifier: Apache-2.0 */
/* A .pfw file, compressed or not: its import into a store. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static int entry_remove(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char folder[] = "/tmp/headrace-fuzz-XXXXXX", file[64], store[64], *error;
	const char *files[] = {file};
	struct hr_import_options o = {.store = store, .job = "j", .threads = 1};
	struct hr_import_result result;
	FILE *f;

	if (!mkdtemp(folder))
		abort();
	snprintf(file, sizeof(file), "%s/t", folder);
	snprintf(store, sizeof(store), "%s/store", folder);
	f = fopen(file, "w");
	if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0)
		abort();
	if (hr_import(&o, files, 1, &result, &error) < 0 && access(store, F_OK) == 0)
		abort(); /* nothing remains after an error */
	hr_import_done(&result);
	free(error);
	if (nftw(folder, entry_remove, 8, FTW_DEPTH | FTW_PHYS) != 0)
		abort();
	return 0;
}
