/* SPDX-License-Identifier: Apache-2.0 */
/* Short ranges, which are added up. */
#include "tests/shim/core/regions.h"

#include <pthread.h>
#include <signal.h>

#include "shim/core/clock.h"

static struct headrace_name a = {.name = "a", .domain = "test"}, b = {.name = "b"},
			    wait_for = {.name = "w", .kind = HEADRACE_INPUT_WAIT};

static void range(struct headrace_name *name)
{
	api()->begin(name);
	api()->end(NULL);
}

/* Number of regions that have no record yet; of one name or (NULL) of all. */
static uint64_t in_cells(struct fake_daemon *d, const struct headrace_name *name)
{
	const struct hr_region_short *cells = fake_ring(d, 0, 0, 0)->shorts;
	uint64_t n = 0;

	for (unsigned i = 0; i < HR_REGION_SHORTS; i++)
		if (name == NULL || cells[i].key == name->reserved[0])
			n += cells[i].count;
	return n;
}

CASE(short_ranges)
{
	struct fake_daemon *d = start_short(SHORT_TICKS);
	const int n = 20000 / SLOWER;
	uint64_t from = hr__clock_ns(), sum = 0;

	for (int i = 0; i < n; i++) {
		range(&a);
		api()->begin(&b);
		range(&a);
		api()->end(NULL);
	}
	for (unsigned i = 0; i < HR_REGION_SHORTS; i++)
		sum += fake_ring(d, 0, 0, 0)->shorts[i].ticks;
	CHECK(in_cells(d, NULL) == 3 * (uint64_t)n && regions(d) == 0);
	CHECK(sum > 0 && sum <= 2 * (hr__clock_ns() - from)); /* b, and a in it */
	api()->step(1); /* three more cells, which have room */
	for (int i = 0; i < n; i++)
		range(&a);
	CHECK(in_cells(d, NULL) == 4 * (uint64_t)n && regions(d) == 0);
}

/* A sum is of one step and one epoch. */
CASE(short_ranges_of_steps)
{
	struct fake_daemon *d = start_short(SHORT_TICKS);
	const struct hr_region_short *cells;
	unsigned of[3] = {0};

	for (int step = 0; step < 3; step++) {
		api()->step(step);
		range(&a);
		range(&a);
	}
	cells = fake_ring(d, 0, 0, 0)->shorts;
	for (unsigned i = 0; i < HR_REGION_SHORTS; i++)
		if (cells[i].count > 0 && cells[i].key == a.reserved[0]) {
			CHECK(cells[i].step >= 0 && cells[i].step < 3 && cells[i].count == 2);
			of[cells[i].step]++;
		}
	CHECK(of[0] == 1 && of[1] == 1 && of[2] == 1);
	api()->step(HEADRACE_NONE);
	for (int epoch = 3; epoch < 5; epoch++) {
		api()->epoch(epoch);
		range(&b);
		range(&b);
	}
	for (unsigned i = 0; i < HR_REGION_SHORTS; i++)
		if (cells[i].count > 0 && cells[i].key == b.reserved[0]) {
			CHECK(cells[i].epoch == 3 || cells[i].epoch == 4);
			CHECK(cells[i].step == HR_REGION_NONE && cells[i].count == 2);
		}
	CHECK(in_cells(d, &b) == 4);
}

/* Ranges that overlap, as of a recursion: no sum is longer than the time that it is of. */
CASE(short_ranges_that_overlap)
{
	struct fake_daemon *d = start_short(SHORT_TICKS);
	const struct hr_region_short *cells;
	uint64_t began[20];

	range(&b); /* the thread has a ring now */
	cells = fake_ring(d, 0, 0, 0)->shorts;
	for (int i = 0; i < 20; i++)
		began[i] = api()->now();
	for (int i = 20; i-- > 0;) {
		api()->passed(&a, began[i]);
		for (unsigned k = 0; k < HR_REGION_SHORTS; k++)
			CHECK(cells[k].count == 0 ||
			      cells[k].ticks <= hr_shim_ticks() - cells[k].start_ticks);
	}
	CHECK(in_records(d, &a) + in_cells(d, &a) == 20 && in_cells(d, &a) >= 1);
}

#define MANY (HR_REGION_SHORTS + 5)
static struct headrace_name names[MANY];

static void name_many(void)
{
	static char text[MANY][8];

	for (unsigned i = 0; i < MANY; i++) {
		snprintf(text[i], sizeof(text[i]), "n%u", i);
		names[i].name = text[i];
	}
}

CASE(short_ranges_displaced)
{
	struct fake_daemon *d = start_short(SHORT_TICKS);
	uint64_t n = 0;

	name_many();
	for (unsigned i = 0; i < MANY; i++)
		for (unsigned k = 0; k <= i; k++, n++)
			range(&names[i]);
	/* The first ones went first, each as one record. */
	CHECK(regions(d) == 5 && in_records(d, NULL) + in_cells(d, NULL) == n);
	for (unsigned i = 0; i < 5; i++)
		CHECK(region(d, i)->r.asked == i + 1 && region(d, i)->r.flags == HR_REGION_KIND(1));
}

/* Number of records of more than one range. */
static uint64_t sums(struct fake_daemon *d)
{
	uint64_t n = 0;

	fake_settle(d);
	for (size_t i = 0; i < fake_records(d); i++)
		n += fake_record(d, i)->r.op == HR_CTL_REGION && fake_record(d, i)->r.asked > 1;
	return n;
}

/* While the thread continues, a sum is sent at the latest after a second (10,000 short_ticks). */
CASE(short_ranges_age)
{
	const uint32_t ticks = 20000 * SLOWER; /* 20 us; "a second" is 200 ms */
	struct fake_daemon *d = start_short(ticks);
	uint64_t n = 0;

	while (sums(d) < 2)
		for (int i = 0; i < 1000; i++, n++)
			range(&a);
	__atomic_store_n((uint32_t *)(uintptr_t)&fake_map(d, 0, 0)->short_ticks, SHORT_TICKS,
			 __ATOMIC_RELAXED); /* b is short, also if it has to wait for a processor */
	range(&b);
	CHECK(in_records(d, NULL) + in_cells(d, NULL) == n + 1);
	CHECK(in_records(d, &b) == 0);
}

CASE(no_short_ranges)
{
	struct fake_daemon *d = start_short(5000000); /* 5 ms */

	api()->begin(&a);
	usleep(6000);
	api()->end(NULL);
	CHECK(regions(d) == 1);
	api()->begin(&a);
	api()->end("{}");
	CHECK(regions(d) == 2);
	range(&wait_for);
	CHECK(regions(d) == 3 && region(d, 2)->r.flags == HR_REGION_KIND(HEADRACE_INPUT_WAIT));
	hr__region_begin(&a, HR__REGIONS_API, &(struct hr__payload){1, 5});
	hr__region_end(HR__REGIONS_API, NULL);
	CHECK(regions(d) == 4 && strcmp(region(d, 3)->text, "{\"payload\":5}") == 0);
	CHECK(in_cells(d, NULL) == 0);
	fake_level(d, HR_LEVEL_OFF);
	range(&a);
	CHECK(regions(d) == 4 && in_cells(d, NULL) == 0);
}

/* Of a process that dies without a word nothing is missing. */
CASE(short_ranges_of_the_dead)
{
	struct fake_daemon *d = start_short(SHORT_TICKS);
	pid_t pid = t_fork();

	if (pid == 0) {
		for (int i = 0; i < 1000; i++)
			range(&a);
		raise(SIGKILL);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(fake_sessions(d) == 1 && in_cells(d, NULL) == 1000 && regions(d) == 0);
}

static volatile uint64_t handled;

static void on_alarm(int sig)
{
	range(&names[handled++ % MANY]);
}

/*
 * The ranges of a signal handler are counted, also if it interrupts another range. There are more
 * names than cells, so a sum is sent again and again.
 */
CASE(short_ranges_and_signals)
{
	struct fake_daemon *d = start_short(SHORT_TICKS);
	uint64_t n = 0;

	name_many();
	range(&names[0]);
	t_catch(on_alarm, 0);
	t_timer(100 * SLOWER);
	for (; n % MANY != 0 || handled < 5000 / SLOWER; n++)
		range(&names[n % MANY]);
	t_timer(0);
	for (unsigned i = 0; i < MANY; i++)
		CHECK(in_records(d, &names[i]) + in_cells(d, &names[i]) ==
		      n / MANY + handled / MANY + (i < handled % MANY) + (i == 0));
	CHECK(fake_ring(d, 0, 0, 0)->short_busy == 0);
	CHECK(fake_lost(d, HR_CTL_REGION).count == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(short_ranges),
	    cmocka_unit_test(short_ranges_of_steps),
	    cmocka_unit_test(short_ranges_that_overlap),
	    cmocka_unit_test(short_ranges_displaced),
	    cmocka_unit_test(short_ranges_age),
	    cmocka_unit_test(no_short_ranges),
	    cmocka_unit_test(short_ranges_of_the_dead),
	    cmocka_unit_test(short_ranges_and_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
