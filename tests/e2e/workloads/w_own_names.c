/* SPDX-License-Identifier: Apache-2.0 */
/* w_own_names.c FILE - prints the results of own_names.c, and reads the file ten times */
#include "own_names.h"

int printf(const char *format, ...);
int open(const char *path, int flags, ...);
long pread(int fd, void *buf, unsigned long n, long offset);

int main(int argc, char **argv)
{
	struct own_words words = {{1, 2, 3, 4, 5, 6}};
	int fd = argc == 2 ? open(argv[1], 0) : -1;
	char buf[100];

	words = link(words);
	printf("%g %ld %ld %ld %d %d\n", remove(2, 3, 1, 2, 3, 4, 5, 6),
	       access(1, 2, 3, 4, 5, 6, 7, 8), words.v[0], words.v[5], sync(7), own_lockf(1));
	for (int i = 0; i < 10; i++)
		if (pread(fd, buf, sizeof(buf), 0) != (long)sizeof(buf))
			return 1;
	return 0;
}
