/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that cannot be recorded are counted, steps that race lose nothing, and bad arguments do no harm. */
#include "tests/shim/core/regions.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include "shim/regions/intern.h"

#define THREADS 4
#define TURNS	(20000 / SLOWER)

static struct headrace_name a = {.name = "a"};

/* One ring, and nobody gets another one. */
static struct fake_daemon *start_one_ring(void)
{
	const struct fake_options o = {.rings = 1, .most_maps = 1};

	return harness_start(&o, NULL);
}

static uint64_t kinds(struct fake_daemon *d, uint32_t kind)
{
	uint64_t n = 0;

	fake_settle(d);
	for (size_t i = 0; i < fake_records(d); i++) {
		const struct hr_record *r = &fake_record(d, i)->r;

		n += r->op == HR_CTL_REGION && r->flags >> HR_REGION_KIND_SHIFT == kind;
	}
	return n;
}

static uint64_t lost(struct fake_daemon *d)
{
	return fake_lost(d, HR_CTL_REGION).count;
}

/* ---- arguments ------------------------------------------------------------------------------------------- */

/* What is a span, a step or an epoch is not said by a name. */
CASE(kinds_of_names)
{
	static struct headrace_name names[14];
	struct fake_daemon *d = start();

	for (uint32_t i = 0; i < 14; i++) {
		names[i] = (struct headrace_name){.name = "n", .kind = i < 13 ? i : UINT32_MAX};
		api()->begin(&names[i]);
		api()->end(NULL);
	}
	CHECK(regions(d) == 14 && kinds(d, HEADRACE_RANGE) == 8 && kinds(d, HEADRACE_MARK) == 1);
	for (uint32_t kind = HEADRACE_INPUT_WAIT; kind <= HEADRACE_RESTORE; kind++)
		CHECK(kinds(d, kind) == 1);
	for (uint32_t i = 0; i < 14; i++)
		api()->finish(api()->start(&names[i]), NULL);
	CHECK(regions(d) == 28 && kinds(d, 2) == 8 && kinds(d, 4) == 0 && kinds(d, 5) == 0);
}

CASE(null)
{
	struct fake_daemon *d = start();
	struct headrace_name nothing = {0};

	api()->begin(NULL);
	api()->end(NULL);
	CHECK(api()->start(NULL) == 0);
	api()->mark(NULL, NULL);
	api()->variable(NULL);
	api()->variable("RANK");
	api()->finish(0, NULL);
	api()->finish((uint64_t)getpid() << 40 | 257, NULL); /* before there is any */
	CHECK(fake_sessions(d) == 0);
	api()->mark(&nothing, NULL);
	CHECK(regions(d) == 1 && lost(d) == 0);
}

/* ---- steps that race ------------------------------------------------------------------------------------- */

static void *turns(void *arg)
{
	for (int64_t i = 0; i < TURNS; i++)
		api()->step(*(int *)arg * (int64_t)TURNS + i);
	return NULL;
}

static unsigned open_spans(struct fake_daemon *d)
{
	unsigned n = 0;

	for (unsigned i = 0; i < HR_REGION_SPANS; i++)
		n += fake_map(d, 0, 0)->spans[i].key != 0;
	return n;
}

/* Each step that was named is recorded, once, under its number. */
CASE(steps_of_threads)
{
	static uint8_t seen[THREADS * TURNS];
	struct fake_daemon *d = start();
	int number[THREADS];
	pthread_t t[THREADS];

	api()->epoch(0); /* attaches: what is said meanwhile is lost */
	api()->epoch(HEADRACE_NONE);
	for (int i = 0; i < THREADS; i++) {
		number[i] = i;
		pthread_create(&t[i], NULL, turns, &number[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK(open_spans(d) == 1);
	api()->step(HEADRACE_NONE);
	CHECK(open_spans(d) == 0 && kinds(d, 4) == THREADS * TURNS && lost(d) == 0);
	for (size_t i = 0; i < fake_records(d); i++) {
		const struct hr_record *r = &fake_record(d, i)->r;

		if (r->op == HR_CTL_REGION && r->ret == HR_REGION_NONE)
			CHECK(r->offset >= 0 && r->offset < THREADS * TURNS && !seen[r->offset]++);
	}
}

static volatile int64_t handled;

static void on_alarm(int sig)
{
	api()->step(1000000 + handled++);
}

CASE(steps_of_handlers)
{
	struct fake_daemon *d = start();
	int64_t i;

	t_catch(on_alarm, 0);
	t_timer(100 * SLOWER);
	for (i = 0; handled < 5000 / SLOWER; i++)
		api()->step(i);
	t_timer(0);
	api()->step(HEADRACE_NONE);
	CHECK(open_spans(d) == 0);
	CHECK(regions(d) == (uint64_t)(i + handled) && lost(d) == 0);
}

/* ---- without a ring -------------------------------------------------------------------------------------- */

#define EACH 7

static void *without_a_ring(void *span)
{
	for (int i = 0; i < EACH; i++) {
		api()->begin(&a);
		api()->end(NULL);
	}
	api()->mark(&a, NULL);
	CHECK(api()->start(&a) == 0);
	api()->finish(*(uint64_t *)span,
		      NULL); /* one that has begun, and is over, if not recorded */
	CHECK(hr_ring_current() == NULL);
	return NULL;
}

CASE(no_ring)
{
	struct fake_daemon *d = start_one_ring();
	uint64_t span = api()->start(&a);
	pthread_t t;

	CHECK(span != 0);
	pthread_create(&t, NULL, without_a_ring, &span);
	pthread_join(t, NULL);
	CHECK(lost(d) == EACH + 3 && regions(d) == 0 && open_spans(d) == 0);
	fake_level(d, HR_LEVEL_OFF);
	pthread_create(&t, NULL, without_a_ring, &span);
	pthread_join(t, NULL);
	CHECK(lost(d) == EACH + 3);
}

/* A child that cannot attach leaves its numbers with its parent. */
CASE(strays)
{
	struct fake_daemon *d = start();
	struct rlimit none;
	pid_t pid;

	api()->mark(&a, NULL);
	CHECK(getrlimit(RLIMIT_NOFILE, &none) == 0);
	none.rlim_cur = 0;
	pid = t_fork();
	if (pid == 0) {
		CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
		for (int i = 0; i < EACH; i++) {
			api()->begin(&a);
			api()->end(NULL);
		}
		api()->step(1);
		_exit(hr_ring_current() == NULL ? 0 : 1);
	}
	t_wait(pid);
	CHECK(regions(d) == 1 && fake_strays(d, HR_CTL_REGION).count == EACH + 1 && lost(d) == 0);
}

/* What is said before a daemon is there comes with the hello. */
CASE(detached)
{
	static char socket[128];
	static const char *env[] = {socket, NULL};
	struct fake_daemon *d;
	struct hr_counter c;
	char buf[4096];

	snprintf(socket, sizeof(socket), "HEADRACE_SOCKET=%s", harness_socket());
	harness_init(env);
	for (int i = 0; i < EACH; i++) {
		api()->begin(&a);
		api()->end(NULL);
	}
	d = fake_start(harness_socket(), NULL);
	CHECK(hr_ring_find(HR__SEEK_FORCE) != NULL && fake_sessions(d) == 1);
	CHECK(fake_item(fake_session(d, 0), HR_ITEM_COUNTERS, 0, buf, sizeof(buf)) == sizeof(c));
	memcpy(&c, buf, sizeof(c));
	CHECK(c.op == HR_CTL_REGION && c.total.count == EACH && lost(d) == 0);
}

/* ---- too deep -------------------------------------------------------------------------------------------- */

static void *deep(void *n)
{
	for (int i = 0; i < *(int *)n; i++)
		api()->begin(&a);
	return NULL;
}

/* Never ended, by a thread whose ring another one takes. */
CASE(deep_and_dead)
{
	struct fake_daemon *d = start_one_ring();
	int n = 1000;
	pthread_t t;

	pthread_create(&t, NULL, deep, &n);
	pthread_join(t, NULL);
	CHECK(lost(d) == 0 && fake_ring(d, 0, 0, 0)->region_depth == 1000);
	while (hr_ring_find(HR__SEEK_FORCE) == NULL) /* it may live a moment after the join */
		usleep(1000);
	CHECK(regions(d) == HR_REGION_DEPTH && lost(d) == 1000 - HR_REGION_DEPTH);
	CHECK(fake_ring(d, 0, 0, 0)->region_depth == 0);
}

CASE(deepest)
{
	struct fake_daemon *d = start_one_ring();
	int n = HR_REGION_DEEPEST + 5;

	deep(&n);
	CHECK(fake_ring(d, 0, 0, 0)->region_depth == HR_REGION_DEEPEST && lost(d) == 5);
	api()->end(NULL);
	CHECK(fake_ring(d, 0, 0, 0)->region_depth == HR_REGION_DEEPEST - 1 && lost(d) == 6);
}

/* ---- without memory ---------------------------------------------------------------------------------------- */

static void begin_in_full_ring(struct fake_daemon *d)
{
	char buf[8];
	int fd = harness_attach();

	fake_pause(d, true);
	while (fake_lost(d, HR_OP_pread64).count == 0)
		t_pread(fd, buf, 8, 0);
	api()->begin(&a);
}

/* The ring has no room for the name, and for the region. */
CASE(full_ring)
{
	const struct fake_options o = {.rings = 1, .most_maps = 1, .slots_log2 = 8};
	struct fake_daemon *d = harness_start(&o, "HEADRACE_ON_FULL=drop", NULL);

	begin_in_full_ring(d);
	api()->end(NULL);
	CHECK(lost(d) == 1);
	fake_pause(d, false);
	CHECK(regions(d) == 0);
}

static void *begins_in_full_ring(void *daemon)
{
	struct fake_daemon *d = daemon;

	begin_in_full_ring(d);
	return NULL;
}

/* The thread ends before the region does, and before the name finds room. */
CASE(full_ring_of_the_dead)
{
	const struct fake_options o = {.rings = 1, .most_maps = 1, .slots_log2 = 8};
	struct fake_daemon *d = harness_start(&o, "HEADRACE_ON_FULL=drop", NULL);
	pthread_t t;

	pthread_create(&t, NULL, begins_in_full_ring, d);
	pthread_join(t, NULL);
	CHECK(lost(d) == 0);
	fake_pause(d, false);
	fake_settle(d);
	while (hr_ring_find(HR__SEEK_FORCE) == NULL) /* it may live a moment after the join */
		usleep(1000);
	CHECK(lost(d) == 1 && regions(d) == 0);
}

/* NVTX and ITT have no memory for their names: one region at least is lost. */
CASE(no_memory_for_names)
{
	struct fake_daemon *d = start();

	api()->mark(&a, NULL);
	hr_before_seccomp();
	CHECK(!hr__interned_init() && lost(d) == 1);
}

/* ---- children on the parent's memory --------------------------------------------------------------------- */

static uint64_t parents;

/* None of it is recorded, and nothing of the parent's ends. */
static int child(void *arg)
{
	for (int i = 0; i < EACH; i++) {
		api()->begin(&a);
		api()->end(NULL);
		api()->end(NULL);
	}
	api()->step(99);
	api()->step(HEADRACE_NONE);
	api()->step_undo();
	api()->finish(parents, NULL);
	_exit(0);
}

/* A thread that has had a child beside it goes on. */
CASE(shared_thread)
{
	static char stack[64 << 10] __attribute__((aligned(16)));
	struct fake_daemon *d;
	const uint64_t n = 1000;
	pid_t pid;

	if (TSAN)
		return;
	d = start();
	parents = api()->start(&a);
	api()->step(3);
	api()->begin(&a);
	hr_before_sharing();
	pid = clone(child, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	for (uint64_t i = 0; i < n; i++) {
		api()->begin(&a);
		api()->end("{}");
	}
	t_wait(pid);
	for (uint64_t i = 0; i < n; i++) {
		api()->begin(&a);
		api()->end("{}");
	}
	CHECK(fake_ring(d, 0, 0, 0)->region_depth == 1 && open_spans(d) == 2);
	api()->end(NULL);
	api()->step(HEADRACE_NONE);
	api()->finish(parents, NULL);
	CHECK(regions(d) == 2 * n + 3 && kinds(d, 4) == 1 && open_spans(d) == 0);
	CHECK(lost(d) == EACH + 1 && fake_bad(d) == 0 && fake_torn(d) == 0);
}

CASE(vfork_child)
{
	struct fake_daemon *d;
	pid_t pid;

	if (TSAN)
		return;
	d = start();
	parents = api()->start(&a);
	api()->step(3);
	api()->begin(&a);
	hr_before_vfork();
	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): what is tested */
	if (pid == 0)
		child(NULL); /* NOLINT(clang-analyzer-unix.Vfork) */
	t_wait(pid);
	CHECK(fake_ring(d, 0, 0, 0)->region_depth == 1 && open_spans(d) == 2);
	api()->end(NULL);
	api()->step(HEADRACE_NONE);
	api()->finish(parents, NULL);
	CHECK(regions(d) == 3 && kinds(d, 4) == 1 && lost(d) == EACH + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(kinds_of_names),
	    cmocka_unit_test(null),
	    cmocka_unit_test(steps_of_threads),
	    cmocka_unit_test(steps_of_handlers),
	    cmocka_unit_test(no_ring),
	    cmocka_unit_test(strays),
	    cmocka_unit_test(detached),
	    cmocka_unit_test(deep_and_dead),
	    cmocka_unit_test(deepest),
	    cmocka_unit_test(shared_thread),
	    cmocka_unit_test(vfork_child),
	    cmocka_unit_test(full_ring),
	    cmocka_unit_test(full_ring_of_the_dead),
	    cmocka_unit_test(no_memory_for_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
