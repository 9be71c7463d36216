/* SPDX-License-Identifier: Apache-2.0 */
/* many_files FOLDER N MS - asks for N files that there are not, each once, when it is MS ms old */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned long n;
	char path[4096];
	struct stat st;

	if (argc != 4)
		return 2;
	n = strtoul(argv[2], NULL, 10);
	usleep((useconds_t)strtoul(argv[3], NULL, 10) * 1000);
	for (unsigned long i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/many%lu", argv[1], i);
		if (stat(path, &st) == 0)
			return 1;
	}
	return 0;
}
