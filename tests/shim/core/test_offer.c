/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that does not answer, or late: maps of our own. */
#include "tests/shim/core/harness.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define HINT  "HEADRACE_ATTACH_FAILED="
#define SLOTS (1u << HR_OFFER_SLOTS_LOG2)

static char buf[64];

static void settle(struct fake_daemon *d)
{
	fake_wake(d);
	fake_settle(d);
	CHECK(fake_bad(d) == 0 && fake_torn(d) == 0);
}

/* Nothing is missing of what was done before the daemon came to it, and it goes on. */
CASE(adopted_late)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.silent = true}, NULL);
	size_t before = unit_descriptors();
	int fd;

	harness_file("a", 64);
	errno = 77;
	fd = t_open("a", O_RDONLY);
	CHECK(fd >= 0 && errno == 77);
	CHECK(hr_wiped.nonce != 0 && hr_wiped.node == NULL);
	/* The file, and the daemon's end, which is in this process, too. */
	CHECK(harness_fds_become(before + 2));
	for (int i = 0; i < 1000; i++)
		t_pread(fd, buf, 8, 0);
	CHECK(fake_sessions(d) == 0);
	settle(d);
	CHECK(fake_sessions(d) == 1 && fake_session(d, 0)->offered);
	CHECK(fake_count(d, HR_OP_open) == 1 && fake_count(d, HR_OP_pread64) == 1000);
	CHECK(fake_item(fake_session(d, 0), HR_ITEM_EXE, 0, buf, sizeof(buf)) > 0);
	for (int i = 0; i < 3 * (int)SLOTS; i++)
		t_pread(fd, buf, 8, 0); /* round the ring; room is waited for now */
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_pread64) + fake_lost(d, HR_OP_pread64).count == 1000 + 3 * SLOTS);
}

/* Children that were born and died meanwhile, and theirs: each with its own offer, and its parent's name. */
CASE(families)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.silent = true}, NULL);
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	for (int i = 0; i < 8; i++) {
		pid_t pid = t_fork();

		if (pid == 0) {
			t_pread(fd, buf, 8, 0);
			pid = t_fork();
			if (pid == 0) {
				t_pread(fd, buf, 8, 0);
				raise(SIGKILL);
			}
			CHECK(waitpid(pid, NULL, 0) == pid);
			_exit(0);
		}
		t_wait(pid);
	}
	settle(d);
	CHECK(fake_sessions(d) == 17 && fake_count(d, HR_OP_pread64) == 16);
	for (size_t i = 1; i < 17; i++) {
		const struct hr_hello *hello = &fake_session(d, i)->hello;

		CHECK(fake_session(d, i)->offered && (hello->flags & HR_HELLO_FORKED) != 0);
		CHECK(hello->ppid == fake_session(d, i % 2 ? 0 : i - 1)->hello.pid);
		CHECK(hello->parent_session == fake_token(d, i % 2 ? 0 : i - 1));
	}
	CHECK(fake_strays(d, HR_OP_pread64).count == 0);
}

/* Nobody empties it: what does not fit is counted, and not waited for. */
CASE(full_offer)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.silent = true}, NULL);
	double start;
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	harness_patient(); /* with a map that it could wait for */
	start = harness_now();
	for (int i = 0; i < 2 * (int)SLOTS; i++)
		t_pread(fd, buf, 8, 0);
	CHECK(harness_now() - start < NO_WAIT_S);
	settle(d);
	CHECK(fake_count(d, HR_OP_pread64) > SLOTS - 16);
	CHECK(fake_count(d, HR_OP_pread64) + fake_lost(d, HR_OP_pread64).count == 2 * SLOTS);
}

/* All patience was spent once: neither children that fork nor those that exec wait again. */
CASE(haste)
{
	static char hint[] = HINT "00000000000000000000";
	struct fake_daemon *d = harness_start(&(struct fake_options){.silent = true}, hint, NULL);
	double start = harness_now();
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	CHECK(harness_now() - start > 0.04);
	CHECK(strtol(hint + strlen(HINT), NULL, 10) > 0);
	harness_spent();
	start = harness_now();
	for (int i = 0; i < 4; i++) {
		pid_t pid = t_fork();

		if (pid == 0) {
			t_pread(fd, buf, 8, 0);
			_exit(0);
		}
		t_wait(pid);
	}
	CHECK(harness_now() - start < NO_WAIT_S);
	settle(d);
	CHECK(fake_sessions(d) == 5 && fake_count(d, HR_OP_pread64) == 4);
}

/* False: the daemon read the hello too late, or answered too late. */
static bool hello_read_in_time(void)
{
	/* The shim offers a map after 50 ms, and then waits for 50 ms. */
	struct fake_daemon *d =
	    harness_start(&(struct fake_options){.delay_ms = 80}, "HEADRACE_ON_FULL=wait:2", NULL);
	size_t before = unit_descriptors();
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	if (hr_wiped.node == NULL)
		return false;
	t_pread(fd, buf, 8, 0);
	fake_settle(d);
	CHECK(!fake_session(d, fake_sessions(d) - 1)->offered);
	CHECK(fake_count(d, HR_OP_open) == 1 && fake_count(d, HR_OP_pread64) == 1);
	CHECK(harness_fds_become(before + 1));
	return fake_sessions(d) == 1;
}

/*
 * The daemon has read the hello when the offer comes: the offer fails, and the shim waits for the
 * answer. Repeated until the daemon's thread has run in time.
 */
CASE(offer_too_late)
{
	int status;

	do {
		pid_t pid = fork();

		if (pid == 0)
			_exit(hello_read_in_time() ? 0 : 2);
		CHECK(waitpid(pid, &status, 0) == pid);
	} while (WIFEXITED(status) && WEXITSTATUS(status) == 2);
	CHECK(status == 0);
}

/* A limit on the size of files holds for memory, too, and breaking it is answered by a signal. */
CASE(small_files_only)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.silent = true}, NULL);
	const struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
	int fd;

	harness_file("a", 64);
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	fd = t_open("a", O_RDONLY);
	CHECK(t_pread(fd, buf, 8, 0) == 8 && hr_wiped.nonce == 0);
	CHECK(hr_wiped.counters[HR_OP_pread64].count == 1);
	CHECK(fake_sessions(d) == 0);
}

#define THREADS 40
#define EACH	100

struct readers {
	pthread_t t[THREADS];
	int n, fd;
	pthread_barrier_t together;
};

static pthread_barrier_t leave;

static void *reader(void *arg)
{
	struct readers *r = arg;

	pthread_barrier_wait(&r->together);
	for (int i = 0; i < EACH; i++)
		t_pread(r->fd, (char[8]){0}, 8, 0);
	pthread_barrier_wait(&r->together);
	pthread_barrier_wait(&leave); /* so that no thread takes a dead one's ring */
	return NULL;
}

/* Returns when each of n further threads has read. Seconds. */
static double readers_run(struct readers *r, int n, int fd)
{
	double start;

	r->n = n;
	r->fd = fd;
	pthread_barrier_init(&r->together, NULL, (unsigned)n + 1);
	for (int i = 0; i < n; i++)
		CHECK(pthread_create(&r->t[i], NULL, reader, r) == 0);
	pthread_barrier_wait(&r->together);
	start = harness_now();
	pthread_barrier_wait(&r->together);
	return harness_now() - start;
}

static void readers_join(struct readers *r)
{
	for (int i = 0; i < r->n; i++)
		pthread_join(r->t[i], NULL);
}

/* Threads have rings of their process's making: nothing is lost, and none waits again. */
CASE(threads_offer_more)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.silent = true}, NULL);
	static struct readers all;
	double took;
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	harness_spent();
	pthread_barrier_init(&leave, NULL, THREADS + 1);
	took = readers_run(&all, THREADS, fd);
	pthread_barrier_wait(&leave);
	readers_join(&all);
	settle(d);
	CHECK(fake_sessions(d) == 1 && fake_session(d, 0)->offered);
	CHECK(fake_session(d, 0)->more_offered == THREADS / HR_MAP_RINGS);
	CHECK(fake_count(d, HR_OP_pread64) == THREADS * EACH && took < NO_WAIT_S);
}

/* The same where the daemon fell silent later, and with its bell. */
CASE(silent_later)
{
	struct fake_daemon *d = harness_start(NULL, "HEADRACE_ON_FULL=wait:50", NULL);
	static struct readers first, others;
	size_t before = unit_descriptors();
	double took;
	int fd;

	fd = harness_attach();
	CHECK(harness_fds_become(before + 1)); /* the daemon, which has answered, closes its end */
	fake_silence(d);
	/* With the main thread one more than the daemon's map has rings for: that one waits. */
	pthread_barrier_init(&leave, NULL, THREADS + 1);
	CHECK(readers_run(&first, HR_MAP_RINGS, fd) > 0.04);
	harness_spent();
	took = readers_run(&others, THREADS - HR_MAP_RINGS, fd);
	pthread_barrier_wait(&leave);
	readers_join(&first);
	readers_join(&others);
	CHECK(harness_fds_become(before + 1 + THREADS / HR_MAP_RINGS)); /* the daemon's ends */
	settle(d);
	CHECK(fake_sessions(d) == 1 && !fake_session(d, 0)->offered);
	CHECK(fake_session(d, 0)->more_offered == THREADS / HR_MAP_RINGS);
	CHECK(fake_count(d, HR_OP_pread64) == THREADS * EACH && took < NO_WAIT_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(adopted_late),	  cmocka_unit_test(families),
	    cmocka_unit_test(full_offer),	  cmocka_unit_test(haste),
	    cmocka_unit_test(offer_too_late),	  cmocka_unit_test(small_files_only),
	    cmocka_unit_test(threads_offer_more), cmocka_unit_test(silent_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
