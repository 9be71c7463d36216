/* SPDX-License-Identifier: Apache-2.0 */
/* import_files.h - imports the fuzzer's input, as one file or as several, into a store; one thread */
#ifndef HEADRACE_TESTS_FUZZ_IMPORT_FILES_H
#define HEADRACE_TESTS_FUZZ_IMPORT_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/import.h"
#include "tests/fuzz/folder.h"

#define FUZZ_FILES 4

/* Imports the files t.7, t.8... of `folder`. */
static void files_import(const char *folder, size_t n)
{
	char store[64], path[FUZZ_FILES][64], *error;
	const char *files[FUZZ_FILES];
	struct hr_import_options o = {.store = store, .job = "j", .threads = 1};
	struct hr_import_result result;

	snprintf(store, sizeof(store), "%s/store", folder);
	for (size_t i = 0; i < n; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/t.%zu", folder, i + 7);
		files[i] = path[i];
	}
	if (hr_import(&o, files, n, &result, &error) < 0 && access(store, F_OK) == 0)
		abort(); /* nothing remains after an error */
	hr_import_done(&result);
	free(error);
}

/* Divides the input at each byte `separator` (-1: does not), and imports the parts. */
static void input_import(const uint8_t *data, size_t bytes, int separator)
{
	char folder[] = "/tmp/headrace-fuzz-XXXXXX", path[64];
	size_t n = 0;

	if (!mkdtemp(folder))
		abort();
	for (;;) {
		const uint8_t *end =
		    separator >= 0 && n + 1 < FUZZ_FILES ? memchr(data, separator, bytes) : NULL;
		size_t part = end ? (size_t)(end - data) : bytes;

		snprintf(path, sizeof(path), "%s/t.%zu", folder, n++ + 7);
		file_write(path, data, part);
		if (!end)
			break;
		data += part + 1;
		bytes -= part + 1;
	}
	files_import(folder, n);
	folder_remove(folder);
}

#endif
