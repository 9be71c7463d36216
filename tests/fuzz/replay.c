/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - runs a fuzz target over files and folders, without libFuzzer
 *
 * Arguments that start with '-' are libFuzzer's and are skipped. Fails when there is no input at
 * all.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static int replay_file(const char *path, long bytes)
{
	uint8_t *data = malloc((size_t)bytes + 1);
	FILE *f = fopen(path, "rbe");
	int done = 0;

	if (data && f && fread(data, 1, (size_t)bytes, f) == (size_t)bytes) {
		LLVMFuzzerTestOneInput(data, (size_t)bytes);
		done = 1;
	}
	if (f)
		fclose(f);
	free(data);
	return done;
}

/* Inputs replayed. */
static int replay(const char *path)
{
	struct dirent **entries;
	struct stat st;
	int n, done = 0;

	if (stat(path, &st) < 0)
		return 0;
	if (!S_ISDIR(st.st_mode))
		return replay_file(path, st.st_size);
	n = scandir(path, &entries, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char *inner;

		if (entries[i]->d_name[0] != '.' &&
		    asprintf(&inner, "%s/%s", path, entries[i]->d_name) >= 0) {
			done += replay(inner);
			free(inner);
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return done;
}

int main(int argc, char **argv)
{
	int done = 0;

	for (int i = 1; i < argc; i++)
		if (argv[i][0] != '-')
			done += replay(argv[i]);
	printf("%d inputs\n", done);
	return done > 0 ? 0 : 1;
}
