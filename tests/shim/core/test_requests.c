/* SPDX-License-Identifier: Apache-2.0 */
/* Requests under way: each is told once, with its result, or as cut. */
#include "tests/shim/core/harness.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#define MANY (HR__REQUESTS + HR__REQUESTS / 4)

static char blocks[MANY][64]; /* their addresses are what counts */

static struct hr_request read_of(int fd, int64_t offset)
{
	return (struct hr_request){
	    .id = HR_OP_io_pread, .fd = fd, .bytes = 100, .offset = offset, .flags = 4};
}

static void begin(const void *address, int fd, int64_t offset)
{
	struct hr_request r = read_of(fd, offset);

	hr_request_begin(address, &r);
}

static const struct fake_record *nth(struct fake_daemon *d, size_t n)
{
	for (size_t i = 0; i < fake_records(d); i++)
		if (fake_record(d, i)->r.op == HR_OP_io_pread && n-- == 0)
			return fake_record(d, i);
	CHECK(!"no such record");
	return NULL;
}

static uint64_t cut(struct fake_daemon *d)
{
	return fake_with_bits(d, HR_OP_io_pread, HR_REC_CUT);
}

static void *end_in_thread(void *arg)
{
	hr_request_end(arg, 60);
	return NULL;
}

CASE(told_in_another_thread)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	const struct fake_record *k;
	uint64_t before, after;
	pthread_t t;
	int fd;

	harness_file("a", 100);
	fd = t_open("a", O_RDONLY);
	before = hr_self.ring->head;
	errno = 77;
	begin(blocks[0], fd, 40);
	after = hr_self.ring->head;
	CHECK(before == after && hr_self.ring->inflight.op == 0 && errno == 77);
	CHECK(t_close(fd) == 0); /* it goes on all the same */
	CHECK(pthread_create(&t, NULL, end_in_thread, blocks[0]) == 0);
	CHECK(pthread_join(t, NULL) == 0);
	hr_request_end(blocks[0], 60); /* over already */
	hr_request_end(blocks[1], 60); /* never was */
	hr_request_end(NULL, 60);
	fake_settle(d);
	k = nth(d, 0);
	CHECK(fake_count(d, HR_OP_io_pread) == 1 && fake_total(d) == 3 && fake_bad(d) == 0);
	CHECK(k->r.ret == 60 && k->r.asked == 100 && k->r.offset == 40 && k->r.fd == fd);
	CHECK(k->r.flags == 4 && k->r.bits == 0 && k->tid != getpid());
	CHECK(k->r.dur_lo > 0 && strstr(fake_path(d, 0, k->r.file)->text, "/a") != NULL);
}

CASE(refused_or_of_no_interest)
{
	struct fake_daemon *d = harness_start(NULL, "HEADRACE_EXCLUDE=*/b", NULL);
	int a, b;

	harness_file("a", 100);
	harness_file("b", 100);
	a = t_open("a", O_RDONLY);
	b = t_open("b", O_RDONLY);
	begin(blocks[0], a, 0);
	begin(blocks[1], b, 0);
	begin(blocks[2], -1, 0);
	CHECK(hr_wiped.request_count == 1);
	hr_request_refused(blocks[0]);
	for (int i = 0; i < 3; i++)
		hr_request_end(blocks[i], 100);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_io_pread) == 0 && hr_wiped.request_count == 0);
}

/* A program that reads results out of the kernel's ring itself. */
CASE(address_begun_anew)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	int fd;

	harness_file("a", 100);
	fd = t_open("a", O_RDONLY);
	begin(blocks[0], fd, 0);
	begin(blocks[0], fd, 50);
	hr_request_end(blocks[0], 50);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_io_pread) == 2 && cut(d) == 1);
	CHECK(nth(d, 0)->r.ret == HR_RET_NONE && nth(d, 0)->r.offset == 0);
	CHECK(nth(d, 1)->r.ret == 50 && nth(d, 1)->r.offset == 50);
}

CASE(more_than_there_is_room_for)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	uint64_t at_once;
	int fd;

	harness_file("a", 100);
	fd = t_open("a", O_RDONLY);
	for (unsigned i = 0; i < MANY; i++)
		begin(blocks[i], fd, i);
	at_once = MANY - hr_wiped.request_count;
	CHECK(at_once >= MANY - HR__REQUESTS);
	for (unsigned i = 0; i < MANY; i += 2)
		hr_request_end(blocks[i], 100);
	hr__requests_cut();
	CHECK(hr_wiped.request_count == 0);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_io_pread) == MANY && fake_lost(d, HR_OP_io_pread).count == 0);
	CHECK(cut(d) > at_once && cut(d) < MANY);
}

/* The kernel's queue is not inherited. */
CASE(forked_child)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	pid_t pid;
	int fd;

	harness_file("a", 100);
	fd = t_open("a", O_RDONLY);
	begin(blocks[0], fd, 0);
	pid = t_fork();
	if (pid == 0) {
		CHECK(hr_wiped.request_count == 0);
		hr__requests_cut();
		begin(blocks[0], fd, 10);
		hr_request_end(blocks[0], 90);
		_exit(0);
	}
	t_wait(pid);
	hr_request_end(blocks[0], 100);
	fake_settle(d);
	CHECK(fake_sessions(d) == 2 && fake_count(d, HR_OP_io_pread) == 2 && cut(d) == 0);
	CHECK(nth(d, 0)->r.ret + nth(d, 1)->r.ret == 190);
}

CASE(counted_without_a_daemon)
{
	int fd;

	harness_init((const char *const[]){"HEADRACE_SOCKET=nobody", NULL});
	harness_file("a", 100);
	fd = t_open("a", O_RDONLY);
	begin(blocks[0], fd, 0);
	hr_request_end(blocks[0], 100);
	CHECK(hr_wiped.counters[HR_OP_io_pread].count == 1);
	CHECK(hr_wiped.counters[HR_OP_io_pread].bytes == 100);
}

/* One thread submits, as a queue of 64 allows, and another is given the results. */
#define ROUNDS 20000
static uint64_t begun, ended;

static void *take_results(void *unused)
{
	for (uint64_t n = 0; n < ROUNDS; n++) {
		while (__atomic_load_n(&begun, __ATOMIC_ACQUIRE) == n)
			sched_yield();
		hr_request_end(blocks[n % 64], 100);
		__atomic_store_n(&ended, n + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

CASE(submitted_here_and_over_there)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	pthread_t t;
	int fd;

	harness_file("a", 100);
	fd = t_open("a", O_RDONLY);
	CHECK(pthread_create(&t, NULL, take_results, NULL) == 0);
	for (uint64_t n = 0; n < ROUNDS; n++) {
		while (n - __atomic_load_n(&ended, __ATOMIC_ACQUIRE) == 64)
			sched_yield();
		begin(blocks[n % 64], fd, (int64_t)n);
		__atomic_store_n(&begun, n + 1, __ATOMIC_RELEASE);
	}
	CHECK(pthread_join(t, NULL) == 0);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_io_pread) == ROUNDS && cut(d) == 0 && fake_bad(d) == 0);
	for (size_t i = 0, n = 0; i < fake_records(d); i++)
		if (fake_record(d, i)->r.op == HR_OP_io_pread)
			CHECK(fake_record(d, i)->r.offset == (int64_t)n++);
}

static struct {
	char *first, *other; /* whose entries are the same */
	int fd;
	int times;
} quicker;

static size_t entry_of(const void *address)
{
	size_t i = 0;

	while (i < HR__REQUESTS && hr_wiped.request_keys[i] != (uintptr_t)address)
		i++;
	CHECK(i < HR__REQUESTS);
	return i;
}

static void protect(int how)
{
	CHECK(mprotect(hr_wiped.request_keys, sizeof(hr_wiped.request_keys), how) == 0);
}

/* What another thread does after this one has found the entry, and before it takes it. */
static void be_quicker(int sig)
{
	CHECK(quicker.times++ == 0);
	protect(PROT_READ | PROT_WRITE);
	hr_request_end(quicker.first, 60);
	begin(quicker.other, quicker.fd, 20);
}

/* The keys cannot be written at first, so the thread stops where it takes the entry. */
CASE(taken_and_used_again_by_a_quicker_thread)
{
	static char *last[HR__REQUESTS]; /* the block whose entry it was */
	struct sigaction sa = {.sa_handler = be_quicker};
	struct fake_daemon *d;

	if (TSAN) /* it holds a lock while it takes the entry */
		return;
	d = harness_start(NULL, NULL);
	harness_file("a", 100);
	quicker.fd = t_open("a", O_RDONLY);
	for (size_t i = 0; quicker.other == NULL; i++) { /* there are more blocks than entries */
		size_t entry;

		quicker.first = blocks[i];
		begin(quicker.first, quicker.fd, 10);
		entry = entry_of(quicker.first);
		hr_request_refused(quicker.first);
		quicker.other = last[entry];
		last[entry] = quicker.first;
	}
	begin(quicker.first, quicker.fd, 10);
	CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
	protect(PROT_READ);
	hr_request_end(quicker.first, 50); /* over already */
	CHECK(quicker.times == 1);
	hr_request_end(quicker.other, 70);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_io_pread) == 2 && cut(d) == 0 && fake_bad(d) == 0);
	CHECK(nth(d, 0)->r.ret == 60 && nth(d, 0)->r.offset == 10);
	CHECK(nth(d, 1)->r.ret == 70 && nth(d, 1)->r.offset == 20);
	CHECK(hr_wiped.request_count == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(told_in_another_thread),
	    cmocka_unit_test(refused_or_of_no_interest),
	    cmocka_unit_test(address_begun_anew),
	    cmocka_unit_test(more_than_there_is_room_for),
	    cmocka_unit_test(forked_child),
	    cmocka_unit_test(counted_without_a_daemon),
	    cmocka_unit_test(submitted_here_and_over_there),
	    cmocka_unit_test(taken_and_used_again_by_a_quicker_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
