/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper keeps descriptors over kills of its worker, restarts it, gives up in time, and passes
 * exit statuses. The program is its own worker: `test_keeper worker SCRIPT FILE CONTROL-FD`.
 */
#include "daemon/private/job_status.h"
#include "daemon/private/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fdstore.h"
#include "tests/unit.h"

/*
 * ---- the worker ---------------------------------------------------------------------------------
 */

/*
 * One character per start, so that the test can count them. Returns the number of starts before
 * this one.
 */
static long note_start(const char *file)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	long before = lseek(fd, 0, SEEK_END);

	if (write(fd, "x", 1) != 1)
		_exit(99);
	close(fd);
	return before;
}

static struct hr_inherited *find(struct hr_inherited *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].name, name) == 0)
			return &list[i];
	return NULL;
}

static void push_memory(const char *name, const char *text)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (write(fd, text, strlen(text)) < 0 || hr_fdstore_push(name, fd) != 0)
		_exit(98);
	close(fd);
}

static bool holds(const struct hr_inherited *entry, const char *text)
{
	char found[16] = "";

	return entry != NULL &&
	       pread(entry->fd, found, sizeof(found) - 1, 0) == (ssize_t)strlen(text) &&
	       strcmp(found, text) == 0 && (fcntl(entry->fd, F_GETFD) & FD_CLOEXEC) != 0;
}

/*
 * First start: push three, take one back, die by SIGKILL. Second: exit 0 if exactly the other two
 * came back.
 */
static int worker_store(long before)
{
	struct hr_inherited *list;
	size_t n;
	bool right;

	if (hr_fdstore_inherit(&list, &n) != 0)
		return 97;
	if (before == 0) {
		push_memory("s1.0", "one");
		push_memory("s2.0", "two");
		push_memory("s3.0", "three");
		if (n != 0 || hr_fdstore_remove("s2.0") != 0 || hr_fdstore_notify("READY=1") != 0)
			return 96;
		kill(getpid(), SIGKILL);
	}
	right =
	    n == 2 && holds(find(list, n, "s1.0"), "one") && holds(find(list, n, "s3.0"), "three");
	hr_fdstore_inherited_free(list, n);
	return right ? 0 : 95;
}

static int worker_main(char **argv)
{
	long before = note_start(argv[3]);

	if (fcntl(atoi(argv[4]), F_GETFD) < 0 || fcntl(atoi(argv[4]) + 1, F_GETFD) < 0)
		return 94;
	if (strcmp(argv[2], "store") == 0)
		return worker_store(before);
	if (strcmp(argv[2], "die") == 0)
		kill(getpid(), SIGKILL);
	if (strcmp(argv[2], "wait") == 0) {
		hr_fdstore_notify("READY=1");
		pause();
	}
	return 7;
}

/*
 * ---- the tests ----------------------------------------------------------------------------------
 */

static char file[] = "/tmp/headrace-keeper-test-XXXXXX";

static pid_t start_keeper(const char *script, int *ret_stderr)
{
	char *argv[] = {"test_keeper", "worker", (char *)(uintptr_t)script, file, NULL};
	struct hr_keeper_config config = {.exe = "/proc/self/exe", .argv = argv};
	int out[2];
	pid_t pid;

	assert_int_equal(truncate(file, 0), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		dup2(out[1], STDERR_FILENO);
		config.listening[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		config.listening[1] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
		_exit(hr_keeper_run(&config));
	}
	close(out[1]);
	*ret_stderr = out[0];
	return pid;
}

/* Exit status of a keeper; what it said on standard error goes to `said`. */
static int finish_keeper(pid_t pid, int fd, char *said, size_t bytes)
{
	size_t used = 0;
	ssize_t n;
	int status;

	while ((n = read(fd, said + used, bytes - 1 - used)) > 0)
		used += (size_t)n;
	said[used] = '\0';
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static long starts(void)
{
	struct stat st;

	assert_int_equal(stat(file, &st), 0);
	return st.st_size;
}

static void test_descriptors_survive(void **state)
{
	char said[256];
	int fd;
	pid_t pid = start_keeper("store", &fd);

	assert_int_equal(finish_keeper(pid, fd, said, sizeof(said)), 0);
	assert_int_equal(starts(), 2);
	assert_string_equal(said, "ready\n");
}

static void test_gives_up(void **state)
{
	char said[256];
	int fd;
	pid_t pid = start_keeper("die", &fd);

	assert_int_equal(finish_keeper(pid, fd, said, sizeof(said)), 70);
	assert_int_equal(starts(), 1 + HR_KEEPER_RESTARTS);
	assert_string_equal(said, "");
}

static void test_passes_status(void **state)
{
	char said[256];
	int fd;
	pid_t pid = start_keeper("exit", &fd);

	assert_int_equal(finish_keeper(pid, fd, said, sizeof(said)), 7);
	assert_int_equal(starts(), 1);
}

/* Rates of `headrace status`: since the last measurement, of which there is one a second. */
static void test_rates(void **state)
{
	struct hr_node_stats now = {.engine = {.records = 1000, .bytes_moved = 4096, .steps = 10}};
	struct hr_job_status s = {0};

	hr_job_status_measure(&s, &now, 5000);
	assert_int_equal(s.events_per_s + s.bytes_per_s + s.steps_per_ks, 0);
	now.engine.records = 1500;
	now.engine.bytes_moved = 8192;
	now.engine.steps = 13;
	hr_job_status_measure(&s, &now, 5800); /* too soon */
	assert_int_equal(s.events_per_s + s.bytes_per_s + s.steps_per_ks, 0);
	hr_job_status_measure(&s, &now, 7000);
	assert_int_equal(s.events_per_s, 250);
	assert_int_equal(s.bytes_per_s, 2048);
	assert_int_equal(s.steps_per_ks, 1500);
	hr_job_status_measure(&s, &now, 8000);
	assert_int_equal(s.events_per_s + s.bytes_per_s + s.steps_per_ks, 0);
}

static void test_terminates(void **state)
{
	char said[256] = "";
	int fd;
	pid_t pid = start_keeper("wait", &fd);

	assert_int_equal(read(fd, said, sizeof(said)), 6); /* "ready\n": SIGTERM finds a worker */
	kill(pid, SIGTERM);
	assert_int_equal(finish_keeper(pid, fd, said, sizeof(said)), 70);
	assert_int_equal(starts(), 1); /* it died of SIGTERM, and was not restarted */
}

static const char *next_notice(struct hr_reported *reported, const struct hr_node_stats *now)
{
	static char text[2048];

	return hr_health_next_notice(reported, now, true, text, sizeof(text)) ? text : "none";
}

/* Each problem is reported once. Of the store also that it is over, and the next problem. */
static void test_notices(void **state)
{
	struct hr_node_stats now = {.store_error = -ENOSPC, .counters_only = true, .refused = 3};
	struct hr_reported reported = {0};

	assert_non_null(strstr(next_notice(&reported, &now),
			       "cannot write to the spool (No space left on device)"));
	assert_non_null(strstr(next_notice(&reported, &now), "--max-size"));
	assert_non_null(strstr(next_notice(&reported, &now), "are not recorded"));
	assert_string_equal(next_notice(&reported, &now), "none");
	now.store_error = 0;
	now.refused = 4;
	assert_string_equal(next_notice(&reported, &now), "headraced can write to the spool again");
	assert_string_equal(next_notice(&reported, &now), "none");
	now.store_error = -ENOSPC;
	now.journal_in_memory = true;
	assert_non_null(strstr(next_notice(&reported, &now), "cannot write to the spool"));
	assert_non_null(strstr(next_notice(&reported, &now), "keeps it in memory"));
	assert_string_equal(next_notice(&reported, &now), "none");
}

static void test_without_keeper(void **state)
{
	struct hr_inherited *list = (void *)1;
	size_t n = 1;

	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(hr_fdstore_push("s1.0", 0), 0);
	assert_int_equal(hr_fdstore_push("no spaces", 0), -EINVAL);
	assert_int_equal(hr_fdstore_push("", 0), -EINVAL);
	setenv("LISTEN_FDS", "3", 1);
	setenv("LISTEN_PID", "1", 1); /* somebody else's */
	assert_int_equal(hr_fdstore_inherit(&list, &n), 0);
	assert_int_equal(n, 0);
	hr_fdstore_inherited_free(list, n);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_descriptors_survive),
	    cmocka_unit_test(test_gives_up),
	    cmocka_unit_test(test_rates),
	    cmocka_unit_test(test_passes_status),
	    cmocka_unit_test(test_terminates),
	    cmocka_unit_test(test_without_keeper),
	    cmocka_unit_test(test_notices),
	};
	int fd, r;

	if (argc == 5 && strcmp(argv[1], "worker") == 0)
		return worker_main(argv);
	fd = mkstemp(file);
	if (fd < 0)
		return 1;
	close(fd);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(file);
	return r;
}
