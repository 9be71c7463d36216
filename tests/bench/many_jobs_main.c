/* SPDX-License-Identifier: Apache-2.0 */
/* many_jobs_main.c - many_jobs STORE N: a store of N small jobs, to measure what an operator's queries cost */
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/many_jobs.h"

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: many_jobs STORE N\n");
		return 2;
	}
	hr_many_jobs(argv[1], 1, (uint32_t)strtoul(argv[2], NULL, 10));
	return 0;
}
