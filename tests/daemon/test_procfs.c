/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says of processes whose beginning the test has seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/procfs.h"

/* A child that does nothing until it is reaped. */
static pid_t begin(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static void reap(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_start_time_is_that_of_the_clock(void **state)
{
	uint64_t before = hr_procstat_start(hr_boot_ns()), after;
	struct hr_procstat stat;
	pid_t pid = begin();

	(void)state;
	after = hr_procstat_start(hr_boot_ns());
	assert_int_equal(hr_procstat_read(pid, &stat), 0);
	reap(pid);
	assert_int_equal(stat.ppid, getpid());
	assert_in_range(stat.start_time, before, after);
	assert_int_equal(hr_procstat_start(hr_procstat_ns(stat.start_time)), stat.start_time);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_start_time_is_that_of_the_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
