/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that exits is marked when nothing but stdio's buffers is left to be written, and not before. */
#include "tests/shim/core/harness.h"

#include <time.h>

static void start(const char *how, int in, int out)
{
	char preload[] = "LD_PRELOAD=" LIBRARY, patience[] = "HEADRACE_ON_FULL=wait:60000";
	char *argv[] = {(char *)"exit", (char *)how, NULL}, socket[128];
	char *envp[] = {preload, patience, socket, NULL};

	snprintf(socket, sizeof(socket), "HEADRACE_SOCKET=%s", harness_socket());
	CHECK(dup2(in, STDIN_FILENO) == STDIN_FILENO && dup2(out, STDOUT_FILENO) == STDOUT_FILENO);
	execve(PROGRAM, argv, envp);
	CHECK(!"execve");
}

static struct hr_item_cover cover_of_first(struct fake_daemon *d)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct hr_item_cover cover;
	char buf[sizeof(cover) + 1];

	while (fake_sessions(d) == 0)
		nanosleep(&pause, NULL);
	CHECK(fake_item(fake_session(d, 0), HR_ITEM_COVER, 0, buf, sizeof(buf)) == sizeof(cover));
	memcpy(&cover, buf, sizeof(cover));
	return cover;
}

static void expect(const char *how, const char *wanted, uint64_t flushes)
{
	struct fake_daemon *d = fake_start(harness_socket(), NULL);
	struct hr_item_cover cover;
	int in[2], out[2];
	char got[64] = "";
	size_t n = 0;
	ssize_t r;
	pid_t pid;

	harness_file("a", 10);
	CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0)
		start(how, in[0], out[1]);
	close(out[1]);
	cover = cover_of_first(d);
	CHECK(write(in[1], &cover.thread, sizeof(cover.thread)) == sizeof(cover.thread));
	while ((r = read(out[0], got + n, sizeof(got) - 1 - n)) > 0)
		n += (size_t)r;
	t_wait(pid);
	if (strcmp(got, wanted) != 0)
		fprintf(stderr, "%s: %s, expected %s\n", how, got, wanted);
	CHECK(strcmp(got, wanted) == 0);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_pread) + fake_count(d, HR_OP_pread64) == flushes);
	fake_stop(d);
}

CASE(return_from_main)
{
	expect("return", "h0d0l0f1", 1);
}

CASE(exit_in_a_thread)
{
	expect("thread", "h0d0l0f1", 1);
}

CASE(fork_in_a_handler)
{
	expect("fork", "h0d0l0f1d0l0f1", 2);
}

/* Its parent, whose memory it had, goes on unmarked. */
CASE(exit_of_a_vfork_child)
{
	expect("vfork", "h0d0l0f0p0", 1);
}

CASE(exit_at_once)
{
	expect("now", "", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(return_from_main),	 cmocka_unit_test(exit_in_a_thread),
	    cmocka_unit_test(fork_in_a_handler), cmocka_unit_test(exit_of_a_vfork_child),
	    cmocka_unit_test(exit_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
