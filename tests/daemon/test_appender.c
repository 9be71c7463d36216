/* SPDX-License-Identifier: Apache-2.0 */
/* A store that takes nothing for a while: frames are kept in order, batches given up first, and nothing is missing between. */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/ops.h"
#include "daemon/spool/appender.h"
#include "tests/unit.h"

#define HANG_MS 300000u

static char folder[64];
static struct hr_batch_pool *pool;
static struct hr_writer *writer;
static struct hr_appender *appender;
static uint64_t next_seq;

/* Writes past this size fail from now on, as on a full disk. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void give(struct hr_out *o)
{
	struct hr_out_list list;

	hr_out_list_init(&list);
	hr_out_list_push(&list, o);
	hr_appender_give(appender, &list);
}

static void give_levels(void)
{
	struct hr_out *o = hr_out_new();

	o->frame.seq = next_seq++;
	o->frame.body_case = HEADRACE__FRAME__BODY_LEVELS;
	o->frame.levels = hr_arena_alloc(&o->arena, sizeof(*o->frame.levels));
	headrace__levels__init(o->frame.levels);
	give(o);
}

/* Noise, so that it does not compress: about 2 MiB. */
static void give_batch(void)
{
	struct hr_batch *b = hr_batch_get(pool);
	struct hr_out *o = hr_out_new();

	b->n = HR_BATCH_EVENTS;
	b->n_tasks = 1;
	b->tasks[0] = (struct hr_task){1, 1};
	for (uint32_t i = 0; i < b->n; i++)
		b->events[i] = (struct hr_event){.start_ns = (uint64_t)rand() << 20,
						 .dur_ns = (uint64_t)rand() << 8 | (uint64_t)rand(),
						 .offset = (int64_t)rand() << 24 | rand(),
						 .ret = rand(),
						 .asked = (uint64_t)rand() << 16,
						 .file = (uint32_t)rand(),
						 .fd = rand() & 0xffff,
						 .op = hr_op_by_name("pread64")};
	o->frame.seq = next_seq++;
	o->frame.body_case = HEADRACE__FRAME__BODY_EVENTS;
	o->batch = b;
	o->absence = (struct hr_loss){.reason = HR_LOSS_STORE_FULL, .count = b->n};
	give(o);
}

static int setup(void **state)
{
	struct hr_stream_id id = {
	    .cluster = "", .job = "job", .node = "node", .boot_id = "boot", .instance = 1};
	char store[96];

	snprintf(folder, sizeof(folder), "/tmp/headrace-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(store, sizeof(store), "%s/store", folder);
	assert_int_equal(hr_batch_pool_new(2, &pool), 0);
	assert_int_equal(hr_writer_open(store, &id, &writer, NULL), 0);
	assert_int_equal(hr_appender_new(writer, pool, NULL, NULL, &appender), 0);
	next_seq = hr_writer_mark(writer) + 1;
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	hr_writer_close(writer);
	hr_batch_pool_free(pool);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* The appender tries again each second. */
static void await_no_error(void)
{
	for (unsigned ms = 0; ms < HANG_MS && hr_appender_error(appender); ms += 10)
		usleep(10000);
	assert_int_equal(hr_appender_error(appender), 0);
}

static void frames_wait_for_room(void **state)
{
	give_levels();
	assert_int_equal(hr_appender_wait(appender), 0);
	limit_files(0);
	for (unsigned i = 0; i < 8; i++) /* more than the pool has: batches come back encoded */
		give_batch();
	give_levels();
	assert_int_not_equal(hr_appender_wait(appender), 0);
	assert_int_not_equal(hr_appender_error(appender), 0);
	limit_files(RLIM_INFINITY);
	await_no_error();
	assert_int_equal(hr_appender_wait(appender), 0);
	assert_int_equal(hr_appender_free(appender), 0);
	assert_int_equal(hr_writer_mark(writer), next_seq - 1);
	assert_true(hr_writer_bytes(writer) > 8u << 20); /* nothing was given up */
}

static void past_the_limit_batches_go_first(void **state)
{
	const struct hr_stream *s;
	struct hr_catalog *c;
	const char *store;
	char path[96], *error = NULL;
	uint64_t given_up = 0, batches = 0, levels = 0;

	limit_files(0);
	give_levels();
	for (unsigned i = 0; i < 40; i++)
		give_batch();
	give_levels();
	assert_int_not_equal(hr_appender_wait(appender), 0);
	limit_files(RLIM_INFINITY);
	await_no_error();
	assert_int_equal(hr_appender_free(appender), 0);
	assert_int_equal(hr_writer_mark(writer), next_seq - 1);
	assert_true(hr_writer_bytes(writer) <= HR_KEPT_BYTES + (8u << 20));
	snprintf(path, sizeof(path), "%s/store", folder);
	store = path;
	assert_int_equal(hr_catalog_open(&store, 1, NULL, &c, &error), 0);
	assert_int_equal(hr_catalog_streams(c, &s), 1);
	for (uint32_t i = 0; i < s->n_frames; i++) {
		batches += s->frames[i].kind == HEADRACE__FRAME__BODY_EVENTS;
		levels += s->frames[i].kind == HEADRACE__FRAME__BODY_LEVELS;
		given_up += s->frames[i].kind == HEADRACE__FRAME__BODY_LOSS;
	}
	hr_catalog_free(c);
	assert_int_equal(levels, 2);
	assert_int_equal(batches + given_up, 40);
	assert_true(given_up > 0 && batches > 0);
}

static bool spare_is_free_within(struct hr_journal *j, unsigned ms, bool cornered)
{
	for (unsigned i = 0; i < ms && !hr_journal_spare_free(j); i += 20) {
		if (cornered)
			hr_appender_make_room(appender);
		else
			usleep(20000);
	}
	return hr_journal_spare_free(j);
}

static void journal_half(struct hr_journal *j)
{
	hr_journal_lock(j);
	assert_int_equal(hr_journal_begin(j), 0);
	hr_journal_begun(j);
	hr_journal_unlock(j);
}

/* What is in memory only stays in the journal, too, until the journal has no room left. */
static void a_half_is_kept_as_long_as_possible(void **state)
{
	struct hr_journal *j;
	bool found;

	assert_int_equal(hr_appender_free(appender), 0);
	assert_int_equal(hr_journal_open(-1, 1u << 20, &j, &found), 0);
	assert_int_equal(hr_appender_new(writer, pool, j, NULL, &appender), 0);
	journal_half(j);
	give_levels();
	journal_half(j);
	assert_int_equal(hr_appender_retire(appender, 1), 0);
	assert_true(spare_is_free_within(j, HANG_MS, false)); /* stored: it may go at once */
	limit_files(0);
	give_levels();
	journal_half(j);
	assert_int_equal(hr_appender_retire(appender, 2), 0);
	assert_false(spare_is_free_within(j, 1500, false));
	assert_true(spare_is_free_within(j, HANG_MS, true));
	limit_files(RLIM_INFINITY);
	assert_int_equal(hr_appender_free(appender), 0);
	assert_int_equal(hr_writer_mark(writer), next_seq - 1);
	hr_journal_close(j);
}

static void *give_many(void *unused)
{
	for (unsigned i = 0; i < 2000; i++)
		give_levels();
	return NULL;
}

/* For the thread sanitizer. Who waits is another thread than who gives. */
static void one_thread_waits_while_another_gives(void **state)
{
	pthread_t giver;

	assert_int_equal(pthread_create(&giver, NULL, give_many, NULL), 0);
	while (pthread_tryjoin_np(giver, NULL) == EBUSY)
		assert_int_equal(hr_appender_wait(appender), 0);
	assert_int_equal(hr_appender_wait(appender), 0);
	assert_int_equal(hr_writer_mark(writer), next_seq - 1);
	assert_int_equal(hr_appender_free(appender), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(one_thread_waits_while_another_gives, setup, teardown),
	    cmocka_unit_test_setup_teardown(frames_wait_for_room, setup, teardown),
	    cmocka_unit_test_setup_teardown(a_half_is_kept_as_long_as_possible, setup, teardown),
	    cmocka_unit_test_setup_teardown(past_the_limit_batches_go_first, setup, teardown),
	};

	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
