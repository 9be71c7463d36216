/* SPDX-License-Identifier: Apache-2.0 */
/* What default excludes leave out is counted by pattern: opens that succeeded, wherever they are made. */
#include "tests/shim/core/harness.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

enum { ETC, MORE }; /* places in DEFAULTS */
#define DEFAULTS "HEADRACE_DEFAULT_EXCLUDE=/etc,*/more"
#define PASSWD	 "/etc/passwd"
#define ROUNDS	 (20000 / SLOWER)

static void leave_out(const char *path)
{
	int fd = t_open(path, O_RDONLY);

	CHECK(fd >= 0 && hr_fd_ignored(fd));
	t_close(fd);
}

static void attach(void)
{
	t_close(t_open("a", O_RDONLY));
	CHECK(hr_wiped.nonce != 0);
}

CASE(opens_by_pattern)
{
	struct fake_daemon *d = harness_start(NULL, DEFAULTS, "HEADRACE_EXCLUDE=*/mine", NULL);
	struct stat st;
	char text[64];

	harness_file("a", 1);
	harness_file("more", 1);
	harness_file("mine", 1);
	leave_out(PASSWD);
	leave_out("more");
	leave_out("more");
	leave_out("mine"); /* by wish */
	CHECK(t_open("/etc/no such file", O_RDONLY) == -1);
	CHECK(t_stat(PASSWD, &st) == 0);
	CHECK(hr_wiped.nonce == 0 && hr_wiped.attempts == 0); /* nothing to attach for */
	CHECK(hr_wiped.excluded[ETC] == 1 && hr_wiped.excluded[MORE] == 2);
	attach();
	CHECK(hr_wiped.excluded[ETC] == 0 && hr_wiped.excluded[MORE] == 0);
	CHECK(fake_excluded(d, ETC) == 1 && fake_excluded(d, MORE) == 2);
	leave_out("/etc");
	leave_out("mine");
	CHECK(fake_excluded(d, ETC) == 2 && fake_excluded(d, MORE) == 2);
	CHECK(fake_item(fake_session(d, 0), HR_ITEM_DEFAULTS, 0, text, sizeof(text)) == 12);
	CHECK(memcmp(text, "/etc\0*/more", 12) == 0);
	fake_settle(d);
	CHECK(fake_total(d) == 2 && fake_bad(d) == 0);
}

/* With --include, what is left out is what was asked for. */
CASE(include)
{
	char env[128];
	struct fake_daemon *d;

	snprintf(env, sizeof(env), "HEADRACE_INCLUDE=%s", harness_dir);
	d = harness_start(NULL, DEFAULTS, env, NULL);
	harness_file("a", 1);
	harness_file("more", 1);
	attach();
	t_close(t_open("more", O_RDONLY));
	leave_out(PASSWD);
	for (uint32_t kind = 0; kind < HR_EXCLUDED_KINDS; kind++)
		CHECK(fake_excluded(d, kind) == 0);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_open) == 2);
}

/* A forked child has no session of its own before it has something to record. */
CASE(forked_children)
{
	struct fake_daemon *d = harness_start(NULL, DEFAULTS, NULL);
	pid_t pid;

	harness_file("a", 1);
	leave_out(PASSWD);
	for (int i = 0; i < 2; i++) { /* the first one's parent has no session either */
		pid = t_fork();
		if (pid == 0) {
			CHECK(hr_wiped.excluded[ETC] == 0);
			leave_out(PASSWD);
			CHECK(hr_wiped.nonce == 0);
			if (i == 1)
				raise(SIGKILL);
			_exit(0);
		}
		CHECK(waitpid(pid, NULL, 0) == pid);
		attach();
		CHECK(fake_excluded(d, ETC) == (i == 0 ? 1 : 2));
	}
	pid = t_fork();
	if (pid == 0) {
		leave_out(PASSWD); /* its parent's */
		attach();
		leave_out(PASSWD);
		CHECK(hr_shim_image.strays->excluded[ETC] == 1);
		_exit(0);
	}
	t_wait(pid);
	CHECK(fake_excluded(d, ETC) == 4 && fake_sessions(d) == 2);
}

/* A child on its parent's memory, before there is a session and with one. */
CASE(vfork_children)
{
	struct fake_daemon *d;
	pid_t pid;

	if (TSAN)
		return;
	d = harness_start(NULL, DEFAULTS, NULL);
	harness_file("a", 1);
	for (int i = 0; i < 2; i++) {
		hr_before_vfork();
		pid =
		    vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): what is tested */
		if (pid == 0) {
			t_open(PASSWD, O_RDONLY); /* NOLINT(clang-analyzer-unix.Vfork) */
			_exit(0);
		}
		CHECK(waitpid(pid, NULL, 0) == pid);
		CHECK(i == 1 || hr_wiped.excluded[ETC] == 1);
		attach();
	}
	CHECK(fake_excluded(d, ETC) == 2);
}

static int ready;

static void *open_often(void *arg)
{
	__atomic_fetch_add(&ready, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < ROUNDS; i++)
		leave_out(PASSWD);
	return NULL;
}

/* None is lost or counted twice while the first thread attaches. */
CASE(attach_meanwhile)
{
	struct fake_daemon *d =
	    harness_start(&(struct fake_options){.delay_ms = 5}, DEFAULTS, NULL);
	pthread_t t[3];

	harness_file("a", 1);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, open_often, NULL);
	while (__atomic_load_n(&ready, __ATOMIC_RELAXED) < 3)
		sched_yield();
	attach();
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	CHECK(fake_excluded(d, ETC) == 3 * ROUNDS);
}

/* A map of our own, that the daemon has not seen yet. */
CASE(offered_map)
{
	struct fake_daemon *d =
	    harness_start(&(struct fake_options){.silent = true}, DEFAULTS, NULL);

	harness_file("a", 1);
	leave_out(PASSWD);
	attach();
	leave_out(PASSWD);
	CHECK(fake_sessions(d) == 0);
	fake_wake(d);
	fake_settle(d);
	CHECK(fake_sessions(d) == 1 && fake_excluded(d, ETC) == 2);
}

static uint64_t handled;

static void open_in_handler(int signal)
{
	t_close(t_open(PASSWD, O_RDONLY));
	handled++;
}

CASE(signal_handlers)
{
	struct fake_daemon *d = harness_start(NULL, DEFAULTS, NULL);

	harness_file("a", 1);
	t_catch(open_in_handler, 0);
	t_timer(200);
	for (int i = 0; i < ROUNDS; i++) {
		leave_out(PASSWD);
		if (i == ROUNDS / 2)
			attach();
	}
	t_timer(0);
	CHECK(handled > 0 && fake_excluded(d, ETC) == ROUNDS + handled);
}

/* Where no system call may be made, and where nothing is to be recorded. */
CASE(quiet_and_off)
{
	struct fake_daemon *d = harness_start(NULL, DEFAULTS, NULL);

	harness_file("a", 1);
	hr_before_seccomp();
	leave_out(PASSWD);
	CHECK(fake_excluded(d, ETC) == 1);
	fake_level(d, HR_LEVEL_OFF);
	leave_out(PASSWD);
	CHECK(fake_excluded(d, ETC) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(opens_by_pattern), cmocka_unit_test(include),
	    cmocka_unit_test(forked_children),	cmocka_unit_test(vfork_children),
	    cmocka_unit_test(attach_meanwhile), cmocka_unit_test(signal_handlers),
	    cmocka_unit_test(quiet_and_off),	cmocka_unit_test(offered_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
