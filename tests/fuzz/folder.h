/* SPDX-License-Identifier: Apache-2.0 */
/* folder.h - a temporary folder with the fuzzer's files; an error ends the process; one thread */
#ifndef HEADRACE_TESTS_FUZZ_FOLDER_H
#define HEADRACE_TESTS_FUZZ_FOLDER_H

#include <ftw.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static int entry_remove(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static void file_write(const char *path, const void *data, size_t bytes)
{
	FILE *f = fopen(path, "w");

	if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0)
		abort();
}

static void folder_remove(const char *folder)
{
	if (nftw(folder, entry_remove, 8, FTW_DEPTH | FTW_PHYS) != 0)
		abort();
}

#endif
