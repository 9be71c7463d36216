/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says of processes whose beginning the test has seen, and of those above them. */

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "common/procfs.h"
#include "tests/unit.h"

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

	after = hr_procstat_start(hr_boot_ns());
	assert_int_equal(hr_procstat_read(pid, &stat), 0);
	reap(pid);
	assert_int_equal(stat.ppid, getpid());
	assert_in_range(stat.start_time, before, after);
	assert_int_equal(hr_procstat_start(hr_procstat_ns(stat.start_time)), stat.start_time);
}

static bool is_it(void *arg, pid_t pid)
{
	return pid == *(pid_t *)arg;
}

/* Of a child of this process: itself, us, who runs us... */
static void ancestors_begin_with_the_nearest(void **state)
{
	int32_t pids[64] = {-1}, all[64] = {-1};
	pid_t pid = begin(), me = getpid();
	size_t n;

	hr_procstat_ancestors(pid, NULL, NULL, all, 64);
	for (n = 0; n < 64 && all[n]; n++)
		assert_true(all[n] > 1);
	assert_in_range(n, 2, 63);
	assert_int_equal(all[0], pid);
	assert_int_equal(all[1], me);
	assert_int_equal(all[2], getppid() > 1 ? getppid() : 0);
	hr_procstat_ancestors(pid, NULL, NULL, pids, 2);
	assert_memory_equal(pids, all, 2 * sizeof(all[0]));
	hr_procstat_ancestors(pid, is_it, &me, pids, 64);
	assert_memory_equal(pids, all, 2 * sizeof(all[0]));
	assert_int_equal(pids[2], 0);
	reap(pid);
	hr_procstat_ancestors(pid, NULL, NULL, pids, 64);
	assert_int_equal(pids[0], pid);
	assert_int_equal(pids[1], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_start_time_is_that_of_the_clock),
	    cmocka_unit_test(ancestors_begin_with_the_nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
