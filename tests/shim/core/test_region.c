/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: ranges, spans, marks, steps; what is left open. */
#include "tests/shim/core/regions.h"

#include <pthread.h>

#include "shim/core/sys.h"

static struct headrace_name a = {.name = "a", .domain = "test"}, b = {.name = "b"},
			    wait_for = {.name = "w", .kind = HEADRACE_INPUT_WAIT};

/* What a key is called in its session: kind letter, domain/category/name. */
static const char *called(struct fake_daemon *d, const struct fake_record *of)
{
	static char out[4 * 1024];

	for (size_t i = 0; i < fake_records(d); i++) {
		const struct fake_record *k = fake_record(d, i);

		if (k->r.op != HR_CTL_REGION_KEY || k->session != of->session ||
		    k->r.file != of->r.file)
			continue;
		memcpy(out, k->text + 1, k->r.asked);
		for (uint64_t at = 1; at + 1 < k->r.asked; at++)
			if (out[at] == '\0')
				out[at] = '/';
		return out;
	}
	return "?";
}

static uint64_t dur(const struct hr_record *r)
{
	return (uint64_t)r->dur_hi << 32 | r->dur_lo;
}

/* ---- ranges -------------------------------------------------------------------------------------- */

CASE(ranges_nest)
{
	struct fake_daemon *d = start();
	const struct hr_record *in, *out;

	api()->begin(&a);
	api()->begin(&b);
	api()->end(NULL);
	api()->end("{\"x\":1}");
	api()->end(NULL); /* none is there */
	CHECK(regions(d) == 2 && fake_bad(d) == 0);
	in = &region(d, 0)->r;
	out = &region(d, 1)->r;
	CHECK(strcmp(called(d, region(d, 0)), "B//b") == 0);
	CHECK(strcmp(called(d, region(d, 1)), "Btest//a") == 0);
	CHECK(in->fd == 1 && out->fd == 0 && in->asked == 1);
	CHECK(in->flags == HR_REGION_KIND(HEADRACE_RANGE));
	CHECK(out->flags == (HR_REGION_KIND(HEADRACE_RANGE) | HR_REGION_HAS_ARGS));
	CHECK(strcmp(region(d, 1)->text, "{\"x\":1}") == 0 && region(d, 0)->text == NULL);
	CHECK(out->start_ticks <= in->start_ticks &&
	      in->start_ticks + dur(in) <= out->start_ticks + dur(out));
	CHECK(in->offset == HR_REGION_NONE && in->ret == HR_REGION_NONE);
	CHECK(fake_ring(d, 0, 0, 0)->region_depth == 0);
}

/* A key is told once. */
CASE(keys)
{
	struct headrace_name same = {.name = "a", .domain = "test"};
	struct fake_daemon *d = start();

	for (int i = 0; i < 10; i++) {
		api()->begin(i % 2 ? &same : &a);
		api()->end(NULL);
	}
	CHECK(regions(d) == 10 && fake_count(d, HR_CTL_REGION_KEY) == 1);
}

/* Who ends ends his own, whatever others have begun inside. */
CASE(stacks)
{
	struct fake_daemon *d = start();
	const uint32_t other = UINT32_C(1) << 31;

	hr__region_begin(&a, HR__REGIONS_API, NULL);
	hr__region_begin(&b, other, NULL);
	hr__region_end(HR__REGIONS_API, NULL);
	CHECK(fake_ring(d, 0, 0, 0)->region_depth == 1);
	hr__region_end(HR__REGIONS_API, NULL);
	CHECK(fake_ring(d, 0, 0, 0)->region_depth == 1);
	hr__region_end(other, NULL);
	CHECK(regions(d) == 2);
	CHECK(strcmp(called(d, region(d, 0)), "Btest//a") == 0 && region(d, 0)->r.fd == 0);
	CHECK(strcmp(called(d, region(d, 1)), "B//b") == 0 && region(d, 1)->r.fd == 0);
}

/* A wait within another one is a range, so that its time is not added twice. */
CASE(waits_nest)
{
	static struct headrace_name within = {.name = "n", .kind = HEADRACE_INPUT_WAIT};
	const uint32_t kinds[] = {HEADRACE_RANGE, HEADRACE_RANGE, HEADRACE_INPUT_WAIT,
				  HEADRACE_RANGE, HEADRACE_INPUT_WAIT};
	struct fake_daemon *d = start();

	api()->begin(&a);
	api()->begin(&wait_for);
	api()->begin(&b);
	api()->begin(&within);
	for (int i = 0; i < 4; i++)
		api()->end("{}");
	api()->begin(&within);
	api()->end("{}");
	CHECK(regions(d) == 5 && fake_bad(d) == 0);
	for (size_t i = 0; i < 5; i++)
		CHECK(region(d, i)->r.flags == (HR_REGION_KIND(kinds[i]) | HR_REGION_HAS_ARGS));
	CHECK(strcmp(called(d, region(d, 0)), "B//n") == 0);
	CHECK(strcmp(called(d, region(d, 4)), "G//n") == 0);
	api()->begin(&wait_for); /* a wait with nothing around it */
	api()->begin(&within);
	api()->end("{}");
	api()->end("{}");
	CHECK(regions(d) == 7 && fake_bad(d) == 0);
	CHECK(region(d, 5)->r.flags == (HR_REGION_KIND(HEADRACE_RANGE) | HR_REGION_HAS_ARGS));
	CHECK(region(d, 6)->r.flags == (HR_REGION_KIND(HEADRACE_INPUT_WAIT) | HR_REGION_HAS_ARGS));
}

CASE(functions)
{
	struct fake_daemon *d = start();
	uint64_t before;

	api()->enter(&a);
	api()->begin(&b);
	api()->leave(); /* a, though b began later */
	api()->leave(); /* nothing: b is not a function */
	api()->end(NULL);
	CHECK(regions(d) == 2 && strcmp(called(d, region(d, 0)), "Btest//a") == 0);
	CHECK(strcmp(called(d, region(d, 1)), "B//b") == 0);
	api()->enter(&a);
	before = api()->now();
	api()->passed(&b, before);
	CHECK(regions(d) == 3 && region(d, 2)->r.start_ticks == before);
	CHECK(strcmp(called(d, region(d, 2)), "B//b") == 0 && region(d, 2)->r.fd == 1);
	api()->passed(&b, 0);
	api()->passed(&b, UINT64_MAX);
	CHECK(regions(d) == 5 && region(d, 3)->r.start_ticks >= before);
	CHECK(region(d, 4)->r.start_ticks < UINT64_MAX && region(d, 4)->r.dur_lo == 0);
	api()->leave();
	CHECK(regions(d) == 6 && fake_ring(d, 0, 0, 0)->region_depth == 0 && fake_bad(d) == 0);
}

CASE(too_deep)
{
	struct fake_daemon *d = start();

	for (unsigned i = 0; i < HR_REGION_DEPTH + 8; i++)
		api()->begin(&a);
	for (unsigned i = 0; i < HR_REGION_DEPTH + 8; i++)
		api()->end(NULL);
	CHECK(regions(d) == HR_REGION_DEPTH);
	CHECK(fake_lost(d, HR_CTL_REGION).count == 8);
	CHECK(region(d, 0)->r.fd == HR_REGION_DEPTH - 1 &&
	      fake_ring(d, 0, 0, 0)->region_depth == 0);
}

/* What is over while nothing is recorded is not; what began then, and ends later, is. */
CASE(level_off)
{
	struct fake_daemon *d = start();

	api()->begin(&a);
	CHECK(api()->recording());
	fake_level(d, HR_LEVEL_OFF);
	CHECK(!api()->recording());
	api()->end(NULL);
	api()->mark(&b, NULL);
	api()->begin(&b);
	fake_level(d, HR_LEVEL_TRACE);
	api()->end(NULL);
	CHECK(regions(d) == 1 && strcmp(called(d, region(d, 0)), "B//b") == 0);
}

CASE(marks)
{
	struct fake_daemon *d = start();

	api()->begin(&a);
	api()->mark(&b, "[1]");
	api()->mark(&wait_for, NULL); /* a mark, whatever its name is made for */
	api()->end(NULL);
	CHECK(regions(d) == 3);
	for (size_t i = 0; i < 2; i++)
		CHECK(region(d, i)->r.flags >> HR_REGION_KIND_SHIFT == HEADRACE_MARK &&
		      dur(&region(d, i)->r) == 0 && region(d, i)->r.fd == 1);
	CHECK(strcmp(called(d, region(d, 0)), "D//b") == 0);
	CHECK(strcmp(region(d, 0)->text, "[1]") == 0 && region(d, 1)->text == NULL);
}

/* Args that are too long are left out: cut, they would be no JSON. */
CASE(long_args)
{
	static char args[HR_REGION_TEXT + 2];
	struct fake_daemon *d = start();

	memset(args, 'x', HR_REGION_TEXT - 1);
	for (size_t i = 0; i < 3; i++) {
		api()->mark(&a, args);
		args[HR_REGION_TEXT - 1 + i] = 'x';
	}
	CHECK(regions(d) == 3 && fake_bad(d) == 0);
	CHECK(region(d, 0)->text != NULL && strlen(region(d, 0)->text) == HR_REGION_TEXT - 1);
	for (size_t i = 1; i < 3; i++)
		CHECK(region(d, i)->text == NULL && region(d, i)->r.asked == 1);
}

/* ---- spans, steps -------------------------------------------------------------------------------- */

static void *finisher(void *span)
{
	api()->finish(*(uint64_t *)span, NULL);
	return NULL;
}

CASE(spans)
{
	struct fake_daemon *d = start();
	uint64_t first = api()->start(&a), second = api()->start(&b);
	pthread_t t;

	CHECK(first != 0 && second != 0 && first != second);
	pthread_create(&t, NULL, finisher, &first);
	pthread_join(t, NULL);
	api()->finish(first, NULL); /* it is over */
	api()->finish(0, NULL);
	CHECK(regions(d) == 1);
	CHECK(region(d, 0)->r.fd == getpid()); /* whose it was, not who ended it */
	CHECK(region(d, 0)->r.flags == (HR_REGION_KIND(2) | HR_REGION_IS_SPAN));
	CHECK(api()->start(&a) != first); /* its cell, another gen */
	api()->finish(first, NULL);
	CHECK(regions(d) == 1);
	api()->finish(second, NULL);
	CHECK(regions(d) == 2);
}

/* The number that a program attaches to a span's start, unless its end has args. */
CASE(numbers_of_spans)
{
	const struct hr__payload five = {.type = 1, .bits = 5};
	struct fake_daemon *d = start();

	api()->finish(hr__region_start(&a, &five), NULL);
	api()->finish(hr__region_start(&a, &five), "{}");
	api()->finish(api()->start(&a), NULL); /* in the same cell */
	CHECK(regions(d) == 3 && region(d, 0)->text != NULL && region(d, 1)->text != NULL);
	CHECK(strcmp(region(d, 0)->text, "{\"payload\":5}") == 0);
	CHECK(strcmp(region(d, 1)->text, "{}") == 0 && region(d, 2)->text == NULL);
}

CASE(too_many_spans)
{
	struct fake_daemon *d = start();
	uint64_t span[HR_REGION_SPANS + 4];

	for (unsigned i = 0; i < HR_REGION_SPANS + 4; i++) {
		span[i] = api()->start(&a);
		CHECK((span[i] != 0) == (i < HR_REGION_SPANS));
	}
	CHECK(fake_lost(d, HR_CTL_REGION).count == 4);
	for (unsigned i = 0; i < HR_REGION_SPANS + 4; i++)
		api()->finish(span[i], NULL);
	CHECK(regions(d) == HR_REGION_SPANS && api()->start(&a) != 0);
}

CASE(steps)
{
	struct fake_daemon *d = start();

	api()->epoch(3);
	api()->step(1);
	api()->begin(&a);
	api()->end(NULL);
	api()->step(2);
	api()->step(HEADRACE_NONE);
	api()->begin(&a);
	api()->end(NULL);
	api()->epoch(HEADRACE_NONE);
	CHECK(regions(d) == 5);
	CHECK(region(d, 0)->r.offset == 1 && region(d, 0)->r.ret == 3);
	CHECK(region(d, 1)->r.flags >> HR_REGION_KIND_SHIFT == 4 && region(d, 1)->r.offset == 1);
	CHECK(region(d, 2)->r.flags >> HR_REGION_KIND_SHIFT == 4 && region(d, 2)->r.offset == 2);
	CHECK(region(d, 3)->r.offset == HR_REGION_NONE && region(d, 3)->r.ret == 3);
	CHECK(region(d, 4)->r.flags >> HR_REGION_KIND_SHIFT == 5 && region(d, 4)->r.ret == 3);
}

static uint64_t ticks_of(const struct hr_record *r)
{
	return (uint64_t)r->dur_hi << 32 | r->dur_lo;
}

/* Learnt late: steps of moments that are past. One to come is now, and none ends before it began. */
CASE(steps_of_moments)
{
	struct fake_daemon *d = start();
	uint64_t m[4];

	for (unsigned i = 0; i < 4; i++)
		m[i] = api()->now();
	CHECK(m[0] > 0 && m[0] < m[3]);
	api()->epoch_at(0, m[0]);
	api()->step_at(5, m[1]);
	api()->step_at(6, m[2]);
	api()->step_at(7, m[0]);
	api()->step_at(8, UINT64_MAX);
	api()->step_at(HEADRACE_NONE, m[3]);
	api()->epoch_at(HEADRACE_NONE, 0);
	CHECK(regions(d) == 5);
	CHECK(region(d, 0)->r.start_ticks == m[1] && ticks_of(&region(d, 0)->r) == m[2] - m[1]);
	CHECK(region(d, 0)->r.offset == 5 && region(d, 0)->r.ret == 0);
	CHECK(region(d, 1)->r.start_ticks == m[2] && ticks_of(&region(d, 1)->r) == 0);
	CHECK(region(d, 2)->r.start_ticks == m[0] && ticks_of(&region(d, 2)->r) > m[3] - m[0]);
	CHECK(region(d, 3)->r.start_ticks > m[3] && ticks_of(&region(d, 3)->r) == 0);
	CHECK(region(d, 4)->r.start_ticks == m[0] && region(d, 4)->r.offset == HR_REGION_NONE);
	CHECK(region(d, 4)->r.flags >> HR_REGION_KIND_SHIFT == 5);
}

CASE(a_step_that_was_none)
{
	struct fake_daemon *d = start();

	api()->step_undo();
	api()->step(1);
	api()->step_undo();
	api()->begin(&a);
	api()->end(NULL);
	api()->step_undo();
	api()->step(1);
	api()->step(HEADRACE_NONE);
	CHECK(regions(d) == 2);
	CHECK(region(d, 0)->r.offset == HR_REGION_NONE);
	CHECK(region(d, 1)->r.offset == 1);
	for (unsigned i = 0; i < 2 * HR_REGION_SPANS; i++) {
		api()->step(1);
		api()->step_undo();
	}
	CHECK(regions(d) == 2 && fake_lost(d, HR_CTL_REGION).count == 0);
}

/* ---- fork, death --------------------------------------------------------------------------------- */

/* The child has none of what is open, and ends nothing of its own with its parent's handles. */
CASE(fork_in_the_middle)
{
	struct fake_daemon *d = start();
	uint64_t span = api()->start(&a), own;
	pid_t pid;

	api()->step(7);
	api()->begin(&a);
	pid = t_fork();
	if (pid == 0) {
		api()->end(NULL);
		api()->begin(&b);
		own = api()->start(&b);
		api()->finish(span, NULL);
		api()->end(NULL);
		_exit(own != 0 && own != span ? 0 : 1);
	}
	t_wait(pid);
	api()->end(NULL);
	api()->finish(span, NULL);
	CHECK(fake_sessions(d) == 2 && regions(d) == 3);
	for (size_t i = 0; i < 3; i++) {
		const struct fake_record *g = region(d, i);
		bool child = g->session == 1;

		CHECK(strcmp(called(d, g), child			    ? "B//b"
					   : g->r.flags & HR_REGION_IS_SPAN ? "Ctest//a"
									    : "Btest//a") == 0);
		CHECK(g->r.fd == (g->r.flags & HR_REGION_IS_SPAN ? getpid() : 0));
		CHECK(g->r.offset ==
		      (child || g->r.flags & HR_REGION_IS_SPAN ? HR_REGION_NONE : 7));
	}
	CHECK(fake_map(d, 1, 0)->spans[0].key > 1); /* the child's own was open when it ended */
}

static void *dies(void *tid)
{
	*(int *)tid = hr_sys_gettid();
	api()->begin(&a);
	api()->begin(&b);
	for (int i = 0; i < 100; i++) {
		api()->begin(&a);
		api()->end(NULL);
	}
	return NULL;
}

/* Who takes a dead thread's ring over tells what it left. */
CASE(thread_death)
{
	struct fake_daemon *d = start_short(SHORT_TICKS);
	pthread_t t;
	int tid;

	pthread_create(&t, NULL, dies, &tid);
	pthread_join(t, NULL);
	CHECK(regions(d) == 0);
	while (hr_ring_find(HR__SEEK_FORCE) == NULL) /* it may live a moment after the join */
		usleep(1000);
	CHECK(in_records(d, NULL) == 102 && regions(d) == 3 && fake_maps(d, 0) == 1);
	CHECK(region(d, 0)->r.asked == 100 && region(d, 0)->r.fd == 2);
	CHECK(strcmp(called(d, region(d, 1)), "B//b") == 0 && region(d, 1)->r.fd == 1);
	CHECK(strcmp(called(d, region(d, 2)), "Btest//a") == 0 && region(d, 2)->r.fd == 0);
	for (size_t i = 0; i < 3; i++)
		CHECK((region(d, i)->r.flags & HR_REGION_IS_OPEN) == (i > 0) &&
		      region(d, i)->tid == tid);
	api()->begin(&b);
	api()->end(NULL);
	CHECK(fake_ring(d, 0, 0, 0)->region_depth == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ranges_nest),
	    cmocka_unit_test(keys),
	    cmocka_unit_test(stacks),
	    cmocka_unit_test(waits_nest),
	    cmocka_unit_test(functions),
	    cmocka_unit_test(too_deep),
	    cmocka_unit_test(level_off),
	    cmocka_unit_test(marks),
	    cmocka_unit_test(long_args),
	    cmocka_unit_test(spans),
	    cmocka_unit_test(numbers_of_spans),
	    cmocka_unit_test(too_many_spans),
	    cmocka_unit_test(steps),
	    cmocka_unit_test(steps_of_moments),
	    cmocka_unit_test(a_step_that_was_none),
	    cmocka_unit_test(fork_in_the_middle),
	    cmocka_unit_test(thread_death),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
