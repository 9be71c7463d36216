/* SPDX-License-Identifier: Apache-2.0 */
/* A Chrome trace, compressed or not: its import as a job, and into a job that has steps. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/import.h"
#include "tests/fuzz/folder.h"

#define RECORDED                                                                                   \
	"{\"schemaVersion\":1,\"traceEvents\":["                                                   \
	"{\"ph\":\"X\",\"name\":\"ProfilerStep#1\",\"pid\":7,\"tid\":7,\"ts\":1e15,\"dur\":9},"    \
	"{\"ph\":\"X\",\"name\":\"ProfilerStep#2\",\"pid\":7,\"tid\":7,\"ts\":2e15,\"dur\":9}]}"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static int file_import(const char *store, bool into, const char *file)
{
	const char *files[] = {file};
	struct hr_import_options o = {.store = store, .job = "j", .into = into, .threads = 1};
	struct hr_import_result result;
	char *error;
	int r = hr_import(&o, files, 1, &result, &error);

	hr_import_done(&result);
	free(error);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char folder[] = "/tmp/headrace-fuzz-XXXXXX", file[64], base[64], store[64];

	if (!mkdtemp(folder))
		abort();
	snprintf(file, sizeof(file), "%s/t", folder);
	snprintf(base, sizeof(base), "%s/base", folder);
	snprintf(store, sizeof(store), "%s/store", folder);
	file_write(file, data, bytes);
	if (file_import(store, false, file) < 0 && access(store, F_OK) == 0)
		abort(); /* nothing remains after an error */
	snprintf(store, sizeof(store), "%s/recorded", folder);
	file_write(base, RECORDED, strlen(RECORDED));
	if (file_import(store, false, base) < 0)
		abort();
	(void)file_import(store, true, file);
	if (file_import(store, false, base) != -EEXIST)
		abort(); /* the job remains */
	folder_remove(folder);
	return 0;
}
