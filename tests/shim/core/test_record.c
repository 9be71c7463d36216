/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that the program begins and ends (headrace_api.record), one daemon after another. */
#include "tests/shim/core/harness.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "include/headrace.h"

static char buf[64];
static const struct headrace_api *api;

/* A program that is preloaded, and not recorded. */
static void idle(void)
{
	static const char *const env[] = {"HEADRACE_SOCKET=", NULL};

	harness_init(env);
	harness_patient();
	harness_file("a", 64);
	api = headrace_api(HEADRACE_API_VERSION);
}

static const char *path_of(struct fake_daemon *d, uint16_t op)
{
	for (size_t i = 0; i < fake_records(d); i++) {
		const struct fake_record *k = fake_record(d, i);
		const struct fake_path *p = fake_path(d, k->session, k->r.file);

		if (k->r.op == op && p != NULL)
			return p->text;
	}
	return "";
}

static void reads(int fd, int n)
{
	for (int i = 0; i < n; i++)
		CHECK(t_pread(fd, buf, 8, 0) == 8);
}

CASE(one_after_another)
{
	static struct headrace_name name = {.name = "part"};
	uint64_t before, stale;
	struct fake_daemon *d;
	int fd;

	idle();
	fd = t_open("a", O_RDONLY);
	reads(fd, 5);
	api->step(1);
	before = api->start(&name);
	for (int round = 1; round <= 3; round++) {
		d = fake_start(harness_socket(), NULL);
		CHECK(api->record(harness_socket()) == 0);
		CHECK(api->record(harness_socket()) == -EALREADY);
		CHECK(fake_sessions(d) == 1);
		CHECK(fake_item(fake_session(d, 0), HR_ITEM_COUNTERS, 0, buf, sizeof(buf)) == -1);
		reads(fd, 10 * round);
		api->finish(before, NULL); /* of no session, or of an earlier one */
		stale = api->start(&name);
		api->step(round);
		api->step(HEADRACE_NONE);
		CHECK(api->recording());
		CHECK(api->record(NULL) == 0);
		CHECK(!api->recording());
		reads(fd, 3);
		api->finish(stale, NULL);
		before = stale;
		fake_settle(d);
		CHECK(fake_bad(d) == 0 && fake_torn(d) == 0);
		CHECK(fake_total(d) == (uint64_t)(10 * round));
		CHECK(fake_count(d, HR_CTL_REGION) == 1); /* the step */
		CHECK(strstr(path_of(d, HR_OP_pread64), "/a") != NULL);
		CHECK(fake_lost(d, HR_OP_pread64).count == 0);
		CHECK(fake_strays(d, HR_OP_pread64).count == 0);
		fake_stop(d);
	}
}

CASE(refused)
{
	char long_path[200];
	double start;

	idle();
	CHECK(api->record(NULL) == 0);
	start = harness_now();
	CHECK(api->record(harness_socket()) < 0);
	CHECK(harness_now() - start < NO_WAIT_S);
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	CHECK(api->record(long_path) == -ENAMETOOLONG);
	hr_shim_image.on = false;
	CHECK(api->record(harness_socket()) == -ENOTSUP);
}

/* A session that the program has not begun does not end. */
CASE(session_of_a_run)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	int fd;

	harness_file("a", 64);
	api = headrace_api(HEADRACE_API_VERSION);
	fd = t_open("a", O_RDONLY);
	CHECK(api->record(NULL) == 0);
	CHECK(api->record(harness_socket()) == -EALREADY);
	reads(fd, 4);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_pread64) == 4);
}

CASE(children)
{
	struct fake_daemon *d;
	pid_t pid;
	int fd;

	idle();
	d = fake_start(harness_socket(), NULL);
	fd = t_open("a", O_RDONLY);
	for (int round = 0; round < 3; round++) {
		if (round == 1)
			CHECK(api->record(harness_socket()) == 0);
		if (round == 2)
			CHECK(api->record(NULL) == 0);
		pid = t_fork();
		if (pid == 0) {
			reads(fd, 7);
			_exit(0);
		}
		t_wait(pid);
	}
	fake_settle(d);
	CHECK(fake_sessions(d) == 2 && fake_count(d, HR_OP_pread64) == 7);
	CHECK((fake_session(d, 1)->hello.flags & HR_HELLO_FORKED) != 0);
	CHECK(fake_session(d, 1)->hello.parent_session == fake_token(d, 0));
}

static void *reads_in_thread(void *fd)
{
	reads(*(int *)fd, 3);
	return NULL;
}

/* A thread that starts after a filter gets no ring. */
CASE(thread_after_seccomp)
{
	struct fake_daemon *d;
	pthread_t t;
	int fd;

	idle();
	d = fake_start(harness_socket(), NULL);
	CHECK(api->record(harness_socket()) == 0);
	fd = t_open("a", O_RDONLY);
	hr_before_seccomp();
	pthread_create(&t, NULL, reads_in_thread, &fd);
	pthread_join(t, NULL);
	CHECK(fake_lost(d, HR_OP_pread64).count == 3);
}

/* It begins at its end, because its start was in no session. */
CASE(request_from_before)
{
	struct hr_request r = {.id = HR_OP_io_pread, .bytes = 8};
	struct fake_daemon *d;

	idle();
	r.fd = t_open("a", O_RDONLY);
	hr_request_begin(buf, &r);
	d = fake_start(harness_socket(), NULL);
	CHECK(api->record(harness_socket()) == 0);
	reads(r.fd, 1);
	hr_request_end(buf, 8);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_io_pread) == 1);
	for (size_t i = 0; i < fake_records(d); i++)
		if (fake_record(d, i)->r.op == HR_OP_io_pread)
			CHECK(fake_record(d, i)->r.dur_lo == 0 && fake_record(d, i)->r.ret == 8);
}

#define WORKERS 4
#define ROUNDS	20

static bool stop;
static long read_all; /* how often the workers have read, together */

static void *worker(void *arg)
{
	int fd = t_open("a", O_RDONLY);

	for (long i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		char local[16];

		t_pread(fd, local, 8, (long)arg << 32 | i);
		__atomic_add_fetch(&read_all, 1, __ATOMIC_RELAXED);
	}
	t_close(fd);
	return NULL;
}

/* Returns when one read at least has begun and ended since the call. */
static void wait_for_reads(const struct timespec *moment)
{
	long before = __atomic_load_n(&read_all, __ATOMIC_RELAXED);

	do
		nanosleep(moment, NULL);
	while (__atomic_load_n(&read_all, __ATOMIC_RELAXED) <= before + WORKERS);
}

/* Whether each thread's operations are there from the first to the last one that is recorded. */
static void check_whole(struct fake_daemon *d)
{
	int64_t next[WORKERS] = {0};
	const char *path = path_of(d, HR_OP_pread64);

	CHECK(fake_bad(d) == 0 && fake_torn(d) == 0);
	CHECK(fake_count(d, HR_OP_pread64) > 0);
	CHECK(fake_lost(d, HR_OP_pread64).count == 0);
	CHECK(strstr(path, "/a") != NULL);
	for (size_t i = 0; i < fake_records(d); i++) {
		const struct hr_record *r = &fake_record(d, i)->r;
		int64_t n = r->offset & 0xffffffff;

		if (r->op != HR_OP_pread64)
			continue;
		CHECK(next[r->offset >> 32] == 0 || next[r->offset >> 32] == n);
		next[r->offset >> 32] = n + 1;
	}
}

CASE(under_threads)
{
	const struct timespec moment = {.tv_nsec = 5000000 * SLOWER};
	pthread_t t[WORKERS];
	struct fake_daemon *d;

	idle();
	for (long i = 0; i < WORKERS; i++)
		pthread_create(&t[i], NULL, worker, (void *)i);
	wait_for_reads(&moment); /* the first session begins within operations, too */
	for (int round = 0; round < ROUNDS; round++) {
		d = fake_start(harness_socket(), NULL);
		CHECK(api->record(harness_socket()) == 0);
		wait_for_reads(&moment);
		CHECK(api->record(NULL) == 0);
		nanosleep(&moment, NULL);
		fake_settle(d);
		check_whole(d);
		fake_stop(d);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (long i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_after_another),   cmocka_unit_test(refused),
	    cmocka_unit_test(session_of_a_run),	   cmocka_unit_test(children),
	    cmocka_unit_test(under_threads),	   cmocka_unit_test(thread_after_seccomp),
	    cmocka_unit_test(request_from_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
