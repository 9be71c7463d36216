/* SPDX-License-Identifier: Apache-2.0 */
/* test_query_cage.c - what a process in the cage of a query can and cannot do, tried out by a child for each */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/query_cage.h"
#include "tests/unit.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static char store[] = "/tmp/headrace-cage-store-XXXXXX",
	    spill[] = "/tmp/headrace-cage-spill-XXXXXX";
static char store_file[64], spill_file[64];

/* 0, or the errno of what was tried. */
typedef int attempt(void);

static int open_error(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int reads_store(void)
{
	return open_error(store_file, O_RDONLY);
}

static int writes_store(void)
{
	return open_error(store_file, O_WRONLY);
}

static int makes_in_store(void)
{
	char path[80];

	snprintf(path, sizeof(path), "%s/new", store);
	return open_error(path, O_WRONLY | O_CREAT);
}

static int writes_spill(void)
{
	int fd = open(spill_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int error = fd < 0 ? errno : 0;

	if (fd >= 0 && (ftruncate(fd, 10) < 0 || close(fd) < 0 || unlink(spill_file) < 0))
		error = errno;
	return error;
}

static int spills_too_much(void)
{
	int fd = open(spill_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int error = ftruncate(fd, 200 << 20) < 0 ? errno : 0;

	unlink(spill_file);
	return error;
}

static int reads_passwd(void)
{
	return open_error("/etc/passwd", O_RDONLY);
}

static int reads_parent(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)getppid());
	return open_error(path, O_RDONLY);
}

static int makes_socket(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 ? errno : 0;
}

static int runs_program(void)
{
	execl("/bin/true", "true", NULL);
	return errno;
}

static int forks(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid < 0 ? errno : 0;
}

static int kills_parent(void)
{
	return kill(getppid(), 0) < 0 ? errno : 0;
}

static void *nothing(void *arg)
{
	return arg;
}

static int makes_thread(void)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, nothing, NULL);

	return error != 0 ? error : pthread_join(thread, NULL);
}

static int maps_too_much(void)
{
	return mmap(NULL, (size_t)2 << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
		       MAP_FAILED
		   ? errno
		   : 0;
}

static int maps_enough(void)
{
	return mmap(NULL, (size_t)64 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
		       MAP_FAILED
		   ? errno
		   : 0;
}

/* SIGXCPU comes before SIGKILL, which has many reasons. */
static int is_told_of_processor_time(void)
{
	struct rlimit l;

	return getrlimit(RLIMIT_CPU, &l) == 0 && l.rlim_cur == 21 && l.rlim_max > l.rlim_cur
		   ? 0
		   : ERANGE;
}

/* In a child, in the cage. */
static int tried(attempt *what)
{
	struct hr_cage cage = {.store = store,
			       .spill = spill,
			       .spill_bytes = 64 << 20,
			       .time_ms = 10000,
			       .threads = 1};
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (hr_cage_begin() < 0 || hr_cage_enter(&cage) < 0 ||
		    hr_cage_memory(&cage, 64 << 20) < 0)
			_exit(200);
		_exit(what());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool landlocked(void)
{
	return syscall(444, NULL, 0, 1) >= 3; /* landlock_create_ruleset: its version */
}

static void what_a_query_needs_is_possible(void **state)
{
	static attempt *const needed[] = {reads_store, writes_spill, makes_thread, maps_enough};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		assert_int_equal(tried(needed[i]), 0);
}

static void files_elsewhere_are_out_of_reach(void **state)
{
	static attempt *const forbidden[] = {writes_store, makes_in_store, reads_passwd};

	if (!landlocked()) {
		print_message("SKIPPED files_elsewhere_are_out_of_reach: no Landlock here\n");
		return;
	}
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
		assert_int_equal(tried(forbidden[i]), EACCES);
	if (!SANITIZED)
		assert_int_equal(tried(reads_parent), EACCES);
}

static void sockets_programs_and_processes_are_out_of_reach(void **state)
{
	static attempt *const forbidden[] = {makes_socket, runs_program, forks, kills_parent};

	for (size_t i = 0; !SANITIZED && i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
		assert_int_equal(tried(forbidden[i]), EPERM);
}

static void limits_hold(void **state)
{
	assert_int_equal(tried(spills_too_much), EFBIG);
	assert_int_equal(tried(is_told_of_processor_time), 0);
	if (!SANITIZED)
		assert_int_equal(tried(maps_too_much), ENOMEM);
}

static int setup(void **state)
{
	int fd;

	assert_non_null(mkdtemp(store));
	assert_non_null(mkdtemp(spill));
	snprintf(store_file, sizeof(store_file), "%s/file", store);
	snprintf(spill_file, sizeof(spill_file), "%s/file", spill);
	fd = open(store_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	return close(fd);
}

static int teardown(void **state)
{
	unlink(store_file);
	rmdir(store);
	return rmdir(spill);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_a_query_needs_is_possible),
	    cmocka_unit_test(files_elsewhere_are_out_of_reach),
	    cmocka_unit_test(sockets_programs_and_processes_are_out_of_reach),
	    cmocka_unit_test(limits_hold),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
