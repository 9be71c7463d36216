/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.h - cmocka, with the headers that it needs in front of it
 *
 * cmocka gives `state` to every test, and few tests use it. So parameters may be unused in files
 * that include this header. A program fails if its tests leave more descriptors open than before.
 */
#ifndef HEADRACE_TESTS_UNIT_H
#define HEADRACE_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Closes the pipe that libuv opens once for signals, in the programs that use libuv. */
__attribute__((weak)) void uv_library_shutdown(void);

/* Returns the number of open descriptors, and a few more, always as many. */
static inline size_t unit_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

static inline int unit_run(const char *name, const struct CMUnitTest *tests, size_t n,
			   CMFixtureFunction setup, CMFixtureFunction teardown)
{
	size_t before = unit_descriptors(), after;
	int failed = _cmocka_run_group_tests(name, tests, n, setup, teardown);

	if (uv_library_shutdown)
		uv_library_shutdown();
	after = unit_descriptors();
	if (failed == 0 && after > before) {
		fprintf(stderr, "%s: %zu descriptors stay open (ls -l /proc/PID/fd)\n", name,
			after - before);
		failed = 1;
	}
	return failed;
}

#undef cmocka_run_group_tests
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
	unit_run(#tests, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)

#endif
