/* SPDX-License-Identifier: Apache-2.0 */
/* Rings under threads, and a daemon that does not keep up. */
#include "tests/shim/core/harness.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "shim/core/ring.h"
#include "shim/core/sys.h"

static char buf[64];

/* Operations counted privately. */
static uint64_t counted(uint16_t op)
{
	return __atomic_load_n(&hr_wiped.counters[op].count, __ATOMIC_RELAXED);
}

/* ---- threads ----------------------------------------------------------------------------------- */

#define WORKERS	   6
#define WORKER_OPS 20000

static void *worker(void *arg)
{
	long n = WORKER_OPS / SLOWER, mine = (long)arg;
	int fd = t_open("a", O_RDONLY);
	char local[16];

	for (long i = 0; i < n; i++)
		t_pread(fd, local, 8, mine << 32 | i);
	t_close(fd);
	return NULL;
}

/* Every operation arrives, in each thread's own order, with its own numbers. */
CASE(many_threads)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	long next[WORKERS] = {0};
	pthread_t t[WORKERS];

	harness_file("a", 64);
	for (long i = 0; i < WORKERS; i++)
		pthread_create(&t[i], NULL, worker, (void *)i);
	for (long i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	fake_settle(d);
	CHECK(fake_bad(d) == 0 && fake_torn(d) == 0);
	CHECK(fake_lost(d, HR_OP_pread64).count == 0);
	CHECK(fake_count(d, HR_OP_pread64) == (uint64_t)WORKERS * (WORKER_OPS / SLOWER));
	CHECK(fake_sessions(d) == 1);
	for (size_t i = 0; i < fake_records(d); i++) {
		const struct hr_record *r = &fake_record(d, i)->r;

		if (r->op != HR_OP_pread64)
			continue;
		CHECK((r->offset & 0xffffffff) == next[r->offset >> 32]++);
		CHECK(r->asked == 8 && r->file != 0);
	}
}

/* Where memory is not overcommitted a write into a page that cannot be had ends a program: here it costs records. */
CASE(no_memory_for_the_ring)
{
	struct fake_daemon *d =
	    harness_start(&(struct fake_options){.rings = 1, .no_memory = true}, NULL);

	harness_file("a", 64);
	for (int i = 0; i < 100; i++)
		t_close(t_open("a", O_RDONLY));
	fake_settle(d);
	CHECK(fake_total(d) > 50 && fake_total(d) < 64 && fake_bad(d) == 0);
	CHECK(fake_count(d, HR_OP_open) + fake_lost(d, HR_OP_open).count == 100);
	CHECK(fake_count(d, HR_OP_close) + fake_lost(d, HR_OP_close).count == 100);
}

#define READ_SLOTS 1000

static void *reader(void *arg)
{
	const struct hr__place *p = arg;

	for (uint32_t i = 0; i < READ_SLOTS; i++) {
		const struct hr_record *r = hr__ring_slot(p, i);

		while (__atomic_load_n(&r->seq, __ATOMIC_ACQUIRE) != (uint32_t)(p->index + i + 1))
			sched_yield();
		CHECK(r->op == HR_OP_pread64 && r->offset == i && r->asked == 8);
	}
	CHECK(__atomic_load_n(&p->ring->head, __ATOMIC_RELAXED) == p->index + READ_SLOTS);
	return NULL;
}

/*
 * For the thread sanitizer, which sees that a number is stored after the record only if the reader
 * uses the same mapping.
 */
CASE(a_number_follows_its_record)
{
	struct fake_daemon *d = harness_start(NULL, NULL);
	struct hr__place place;
	pthread_t t;
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	fake_settle(d);
	fake_pause(d, true);
	place = (struct hr__place){hr_self.ring, hr_self.ring->head, hr_self.mask};
	pthread_create(&t, NULL, reader, &place);
	for (int i = 0; i < READ_SLOTS; i++)
		t_pread(fd, buf, 8, i);
	pthread_join(t, NULL);
	fake_pause(d, false);
}

static void *short_life(void *tid)
{
	*(int *)tid = hr_sys_gettid();
	t_close(t_open("a", O_RDONLY));
	return NULL;
}

/* The ring of a thread is free when the kernel has none of its number, a moment after the join. */
static void live_and_go(void *(*body)(void *), int *tid)
{
	pthread_t t;

	CHECK(pthread_create(&t, NULL, body, tid) == 0 && pthread_join(t, NULL) == 0);
	harness_gone(*tid);
}

/* A thousand threads one after another live on the rings of those before them. */
CASE(thread_churn)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.rings = 2}, NULL);
	const int n = 1000 / SLOWER;
	int tid;

	harness_file("a", 64);
	for (int i = 0; i < n; i++)
		live_and_go(short_life, &tid);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_open) == (uint64_t)n &&
	      fake_count(d, HR_CTL_THREAD) == (uint64_t)n);
	CHECK(fake_maps(d, 0) == 1 && fake_bad(d) == 0);
}

static pthread_barrier_t barrier;

static void *stays(void *arg)
{
	t_close(t_open("a", O_RDONLY));
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* Different threads that opened something, as the records' thread numbers have it. */
static unsigned openers(struct fake_daemon *d)
{
	int tids[2 * HR_SESSION_MAPS];
	unsigned n = 0;

	for (size_t i = 0; i < fake_records(d); i++) {
		unsigned k = 0;

		if (fake_record(d, i)->r.op != HR_OP_open)
			continue;
		while (k < n && tids[k] != fake_record(d, i)->tid)
			k++;
		if (k == n && n < 2 * HR_SESSION_MAPS)
			tids[n++] = fake_record(d, i)->tid;
	}
	return n;
}

/* More threads than rings: further maps, then private counters that leave through others' rings. */
CASE(rings_run_out)
{
	struct fake_daemon *d = harness_start(
	    &(struct fake_options){.rings = 2, .slots_log2 = 8, .most_maps = 2}, NULL);
	pthread_t t[7];

	harness_file("a", 64);
	pthread_barrier_init(&barrier, NULL, 8);
	for (int i = 0; i < 7; i++)
		pthread_create(&t[i], NULL, stays, NULL);
	while (fake_count(d, HR_OP_close) + fake_lost(d, HR_OP_close).count < 7)
		usleep(1000);
	fake_settle(d);
	CHECK(fake_maps(d, 0) == 2 && fake_count(d, HR_OP_open) == 4);
	CHECK(fake_lost(d, HR_OP_open).count == 3 && counted(HR_OP_open) == 0);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 7; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 400; i++)
		t_close(t_open("a", O_RDONLY));
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_open) + fake_lost(d, HR_OP_open).count == 407);
	CHECK(fake_lost(d, HR_OP_open).count >= 3 && counted(HR_OP_open) == 0);
}

static void *stays_on(void *tid)
{
	*(int *)tid = hr_sys_gettid();
	return stays(NULL);
}

/* A thread without a ring looks for one again, and gets that of a thread that has ended. */
CASE(ring_that_becomes_free)
{
	struct fake_daemon *d =
	    harness_start(&(struct fake_options){.rings = 1, .most_maps = 1}, NULL);
	uint64_t opens = 2;
	pthread_t t;
	int tid;

	harness_file("a", 64);
	pthread_barrier_init(&barrier, NULL, 2);
	CHECK(pthread_create(&t, NULL, stays_on, &tid) == 0);
	while (fake_count(d, HR_OP_close) == 0)
		usleep(1000);
	t_close(t_open("a", O_RDONLY));
	CHECK(hr_ring_current() == NULL && fake_lost(d, HR_OP_open).count == 1);
	pthread_barrier_wait(&barrier);
	pthread_join(t, NULL);
	harness_gone(tid);
	hr_self.search_ns = 1; /* a second has passed since the last search */
	for (; hr_ring_current() == NULL && opens < 100; opens++)
		t_close(t_open("a", O_RDONLY));
	CHECK(hr_ring_current() != NULL);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_open) + fake_lost(d, HR_OP_open).count == opens);
}

/* More threads than a session may have rings: the common ring names the thread of each record. */
CASE(threads_beyond_all_rings)
{
	enum { THREADS = HR_SESSION_MAPS + 8 };
	struct fake_daemon *d =
	    harness_start(&(struct fake_options){.rings = 1, .slots_log2 = 8}, NULL);
	pthread_t t[THREADS];

	harness_file("a", 64);
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, stays, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	fake_settle(d);
	CHECK(fake_maps(d, 0) == HR_SESSION_MAPS && fake_lost(d, HR_OP_open).count == 0);
	CHECK(fake_count(d, HR_OP_open) == THREADS && openers(d) == THREADS);
}

#define COMMON_THREADS 8
/*
 * Less than a lap of the ring under ThreadSanitizer: it knows memory by its address, and so does not see that the daemon, which
 * maps the ring elsewhere, has read a slot between two writers.
 */
#define COMMON_CALLS (2000 / SLOWER)

static void *reads_much(void *arg)
{
	char byte;

	t_close(t_open("a", O_RDONLY));
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < COMMON_CALLS; i++)
		t_pread(*(int *)arg, &byte, 1, 0);
	return NULL;
}

/* A process that has changed its user gets no more maps. Many threads write to the common ring at once. */
CASE(common_ring)
{
	struct fake_daemon *d =
	    harness_start(&(struct fake_options){.rings = 2, .most_maps = 1}, NULL);
	uint64_t by_thread[COMMON_THREADS] = {0};
	int tids[COMMON_THREADS] = {0}, fd;
	pthread_t t[COMMON_THREADS];

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	hr_before_leaving();
	pthread_barrier_init(&barrier, NULL, COMMON_THREADS);
	for (int i = 0; i < COMMON_THREADS; i++)
		pthread_create(&t[i], NULL, reads_much, &fd);
	for (int i = 0; i < COMMON_THREADS; i++)
		pthread_join(t[i], NULL);
	fake_settle(d);
	CHECK(fake_maps(d, 0) == 1 && fake_bad(d) == 0 && fake_torn(d) == 0);
	CHECK(fake_lost(d, HR_OP_pread64).count == 0);
	for (size_t i = 0; i < fake_records(d); i++) {
		int k = 0;

		if (fake_record(d, i)->r.op != HR_OP_pread64)
			continue;
		CHECK(fake_record(d, i)->r.fd == fd && fake_record(d, i)->r.ret == 1);
		while (k < COMMON_THREADS - 1 && tids[k] != 0 && tids[k] != fake_record(d, i)->tid)
			k++;
		tids[k] = fake_record(d, i)->tid;
		by_thread[k]++;
	}
	for (int i = 0; i < COMMON_THREADS; i++)
		CHECK(by_thread[i] == COMMON_CALLS);
}

#define CROWD 64 /* all maps, a ring in each */

/* Threads that all ask at once wait for one another: a slow daemon costs them time, no record. */
CASE(crowd)
{
	struct fake_daemon *d =
	    harness_start(&(struct fake_options){.rings = 1, .slots_log2 = 8, .delay_ms = 3}, NULL);
	pthread_t t[CROWD];

	harness_file("a", 64);
	pthread_barrier_init(&barrier, NULL, CROWD + 1);
	for (int i = 0; i < CROWD; i++)
		pthread_create(&t[i], NULL, stays, NULL);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < CROWD; i++)
		pthread_join(t[i], NULL);
	fake_settle(d);
	CHECK(fake_maps(d, 0) == CROWD && fake_lost(d, HR_OP_open).count == 0);
	CHECK(fake_count(d, HR_OP_open) == CROWD && counted(HR_OP_open) == 0);
}

/* A thread that is gone in the middle of a call leaves a cell; its successor buries it. */
static void *dies(void *arg)
{
	int fd = *(int *)arg;
	struct hr_op op;

	hr_begin_fd(&op, HR_OP_read, fd, 99, HR_OFFSET_NONE);
	hr_count(HR_OP_fgetc, fd, 1);
	*(int *)arg = hr_sys_gettid();
	return NULL;
}

CASE(dead_owner)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.rings = 2}, NULL);
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	live_and_go(dies, &fd);
	CHECK(fake_inflight(d, 0, 0, 1).op == HR_OP_read);
	live_and_go(short_life, &fd);
	fake_settle(d);
	CHECK(fake_with_bits(d, HR_OP_read, HR_REC_CUT) == 1 && fake_count(d, HR_OP_read) == 1);
	CHECK(fake_with_bits(d, HR_OP_fgetc, HR_REC_AGGREGATE) == 1);
	CHECK(fake_inflight(d, 0, 0, 1).op == 0 && fake_maps(d, 0) == 1);
	for (size_t i = 0; i < fake_records(d); i++)
		if (fake_record(d, i)->r.op == HR_OP_read)
			CHECK(fake_record(d, i)->r.ret == HR_RET_NONE &&
			      fake_record(d, i)->tid != getpid() &&
			      fake_record(d, i)->r.asked == 99);
}

/* ---- a full ring ------------------------------------------------------------------------------- */

CASE(full_ring_drops_exactly)
{
	struct fake_daemon *d =
	    harness_start(&(struct fake_options){.slots_log2 = 8}, "HEADRACE_ON_FULL=drop", NULL);
	const uint64_t n = 5000;
	struct hr_lost lost;
	int fd = harness_attach();

	fake_pause(d, true);
	for (uint64_t i = 0; i < n; i++)
		CHECK(t_pread(fd, buf, 8, 0) == 8);
	for (int i = 0; i < 10; i++)
		/* their paths are dropped too */
		t_close(t_open(i % 2 ? "b" : "c", O_CREAT | O_RDWR));
	fake_pause(d, false);
	fake_settle(d);
	lost = fake_lost(d, HR_OP_pread64);
	CHECK(lost.count >= n - 256 && lost.bytes == lost.count * 8 && lost.ticks > 0);
	CHECK(fake_count(d, HR_OP_pread64) + lost.count == n);
	CHECK(fake_count(d, HR_OP_open) + fake_lost(d, HR_OP_open).count == 11);
	CHECK(fake_bad(d) == 0);
	t_close(t_open("b", O_RDWR)); /* now they are sent */
	fake_settle(d);
	CHECK(strstr(fake_path_at(d, fake_paths(d) - 1)->text, "/b") != NULL);
}

static void *unpause(void *arg)
{
	while (!__atomic_load_n(&fake_ring(arg, 0, 0, 0)->waiting, __ATOMIC_RELAXED))
		usleep(100);
	fake_pause(arg, false);
	return NULL;
}

CASE(full_ring_waits)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.slots_log2 = 8}, NULL);
	pthread_t t;
	int fd;

	harness_file("a", 64);
	fd = t_open("a", O_RDONLY);
	fake_pause(d, true);
	pthread_create(&t, NULL, unpause, d);
	for (int i = 0; i < 5000; i++)
		CHECK(t_pread(fd, buf, 8, 0) == 8);
	pthread_join(t, NULL);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_pread64) == 5000 && fake_lost(d, HR_OP_pread64).count == 0);
}

/* Patience is spent once, not at every operation. */
CASE(full_ring_gives_up)
{
	struct fake_daemon *d = harness_start(&(struct fake_options){.slots_log2 = 8},
					      "HEADRACE_ON_FULL=wait:50", NULL);
	double start;
	int fd = harness_attach(), n = 0;

	fake_pause(d, true);
	start = harness_now();
	for (; fake_lost(d, HR_OP_pread64).count == 0; n++)
		t_pread(fd, buf, 8, 0);
	CHECK(harness_now() - start > 0.045);
	harness_patient(); /* a second wait would show */
	start = harness_now();
	for (; n < 5000; n++)
		t_pread(fd, buf, 8, 0);
	CHECK(harness_now() - start < NO_WAIT_S);
	fake_pause(d, false);
	fake_settle(d);
	CHECK(fake_count(d, HR_OP_pread64) + fake_lost(d, HR_OP_pread64).count == 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(many_threads),
	    cmocka_unit_test(a_number_follows_its_record),
	    cmocka_unit_test(thread_churn),
	    cmocka_unit_test(no_memory_for_the_ring),
	    cmocka_unit_test(rings_run_out),
	    cmocka_unit_test(ring_that_becomes_free),
	    cmocka_unit_test(threads_beyond_all_rings),
	    cmocka_unit_test(common_ring),
	    cmocka_unit_test(crowd),
	    cmocka_unit_test(dead_owner),
	    cmocka_unit_test(full_ring_drops_exactly),
	    cmocka_unit_test(full_ring_waits),
	    cmocka_unit_test(full_ring_gives_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
