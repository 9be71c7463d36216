/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seeds.h - how many random courses of events a test tries: HEADRACE_TEST_SEEDS, or what the test thinks is enough
 *
 * A sanitized build, which looks for other mistakes and takes three times as long, tries a quarter of them.
 *
 * Threads   Any, while nobody changes the environment.
 */
#ifndef HEADRACE_TESTS_SEEDS_H
#define HEADRACE_TESTS_SEEDS_H

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS_SHARE 4u
#else
#define SEEDS_SHARE 1u
#endif

static inline unsigned test_seeds(unsigned enough)
{
	const char *n = getenv("HEADRACE_TEST_SEEDS");

	return n ? (unsigned)strtoul(n, NULL, 10) : (enough + SEEDS_SHARE - 1) / SEEDS_SHARE;
}

#endif
