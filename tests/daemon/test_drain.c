/* SPDX-License-Identifier: Apache-2.0 */
/* The end of the drain thread. The test replaces the sweeps, and sends messages during one. */
#define hr__drain_sweep	    fake_sweep
#define hr__drain_sweep_out fake_sweep_out
#define hr__drain_catch_up  fake_catch_up
#define hr__drain_tick	    fake_tick
#define hr__drain_begin	    fake_begin
#define hr__drain_end	    fake_end
#define hr_engine_stats_get fake_stats
#define hr_engine_now	    fake_now
#define hr_engine_hang	    fake_hang
#define hr_ring_half_full   fake_half_full
#include "daemon/drain/drain.c" // NOLINT(bugprone-suspicious-include): for its static functions

#include "tests/unit.h"

#define PROC 7

static const struct hr_node_config node;
static struct hr_node_page page;
static const struct hr_job_end job_end = {.state = "ended"};
static unsigned sweeps, last_sweeps;
static uint64_t ended, ended_before_last_sweep;
static bool rings_bell;

/* During the sweep, a process exits, and the node stops the drain. */
uint64_t fake_sweep(struct hr_drain *d)
{
	if (sweeps++ > 0)
		return 0;
	hr_drain_ended(d, PROC, "0");
	d->end = &job_end;
	return 0;
}

void fake_sweep_out(struct hr_drain *d)
{
	last_sweeps++;
	ended_before_last_sweep = ended;
}

void fake_catch_up(struct hr_drain *d)
{
}

void fake_tick(struct hr_drain *d, uint64_t now_ns)
{
}

void *fake_begin(struct hr_drain *d, uint64_t bytes)
{
	return NULL;
}

void fake_end(struct hr_drain *d, uint64_t proc, const char *exit)
{
	ended = proc;
}

void fake_stats(const struct hr_engine *e, struct hr_engine_stats *ret)
{
	*ret = (struct hr_engine_stats){0};
}

void fake_hang(const struct hr_engine *e, struct hr_job_hang *ret)
{
	*ret = (struct hr_job_hang){0};
}

uint64_t fake_now(const struct hr_engine *e)
{
	return 0;
}

/* A program commits a record, and looks at `sleeping`, just before the drain thread looks. */
bool fake_half_full(const struct hr_ring_view *ring)
{
	rings_bell = __atomic_load_n(&page.sleeping, __ATOMIC_ACQUIRE) != 0;
	return false;
}

static void no_record_comes_between_look_and_sleep(void **state)
{
	static struct hr_session session = {.n_maps = 1};
	struct hr_drain d = {.c = {.node = &node, .page = &page},
			     .lock = PTHREAD_MUTEX_INITIALIZER,
			     .sessions = &session};

	drain_sleep(&d, 1);
	assert_true(rings_bell);
	assert_int_equal(page.sleeping, 0);
}

/* Messages that arrive during a sweep come before the end of the job. */
static void the_end_takes_all_messages(void **state)
{
	static struct hr_drain d = {.c = {.node = &node, .page = &page},
				    .lock = PTHREAD_MUTEX_INITIALIZER,
				    .served = PTHREAD_COND_INITIALIZER,
				    .inbox_last = &d.inbox};

	assert_null(drain_run(&d));
	assert_int_equal(last_sweeps, 1);
	assert_int_equal(ended_before_last_sweep, PROC);
	assert_null(d.inbox);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_end_takes_all_messages),
	    cmocka_unit_test(no_record_comes_between_look_and_sleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
