/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sides FOLDER - moves data in the ways that totals and files could see differently: copies between files, to and from
 * what is not recorded, single characters. Prints its arithmetic with the keys of the summary's totals.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

#define DO(call, want)                                                                             \
	do {                                                                                       \
		if ((call) != (want)) {                                                            \
			perror(#call);                                                             \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static char path[4096];

static const char *in(const char *folder, const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void copies(int from, int to)
{
	int elsewhere = open("/dev/null", O_WRONLY), ends[2];
	off_t at = 0;
	off64_t at64 = 0;

	DO(pipe(ends), 0);
	DO(sendfile(to, from, &at, 4000), 4000);
	DO(copy_file_range(from, &at64, to, NULL, 3000, 0), 3000);
	DO(sendfile(elsewhere, from, &at, 2000), 2000);
	DO(splice(from, &at64, ends[1], NULL, 500, 0), 500);
	DO(splice(ends[0], NULL, to, NULL, 500, 0), 500);
}

static void characters(const char *name)
{
	FILE *fp = fopen(name, "r+");

	for (int i = 0; i < 300; i++)
		DO(getc(fp), 0);
	fseek(fp, 0, SEEK_END);
	for (int i = 0; i < 200; i++)
		DO(putc('x', fp), 'x');
	fclose(fp);
}

int main(int argc, char **argv)
{
	char block[1000] = {0};
	int from, to;

	if (argc != 2)
		return 2;
	from = open(in(argv[1], "from"), O_RDWR | O_CREAT, 0600);
	to = open(in(argv[1], "to"), O_RDWR | O_CREAT, 0600);
	for (int i = 0; i < 10; i++)
		DO(write(from, block, sizeof(block)), 1000);
	DO(pread(from, block, 100, 0), 100);
	copies(from, to);
	close(from);
	close(to);
	characters(in(argv[1], "from"));
	printf("{\"opens\": 3, \"reads\": %d, \"read_bytes\": %d, \"writes\": %d, "
	       "\"written_bytes\": %d}\n",
	       1 + 4 + 300, 100 + 4000 + 3000 + 2000 + 500 + 300, 10 + 3 + 200,
	       10000 + 4000 + 3000 + 500 + 200);
	return 0;
}
