/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of a stream come back as columns; what is no batch, or too large, is refused. */
#include "tests/store/help.h"

#include <errno.h>
#include <stdlib.h>

#include "store/batch_reader.h"

static const struct hr_stream *open_small(void **state, struct hr_catalog **ret)
{
	const char *store = help_path(state, "s");
	const struct hr_stream *s;
	struct hr_writer *w = help_writer(store, "n1");
	size_t n;

	help_append_small(w);
	assert_int_equal(hr_writer_close(w), 0);
	*ret = help_open(store, &s, &n);
	return s;
}

static void batches_come_back(void **state)
{
	struct hr_catalog *c;
	const struct hr_stream *s = open_small(state, &c);
	struct hr_batch_reader reader = {0};
	const uint32_t want = HR_COL_BIT(HR_COL_OFFSET);
	struct hr_columns columns;

	for (unsigned i = 0; i < 4; i++) { /* the larger batch, and the smaller one, in turn */
		const struct hr_batch_ref *ref = &s->batches[i % 2];

		assert_int_equal(hr_batch_read(&reader, s, ref, want, &columns), 0);
		assert_int_equal(columns.count, i % 2 == 0 ? 300 : 100);
		assert_int_equal(columns.offset[columns.count - 1], (columns.count - 1) * 4096);
		assert_null(columns.start_ns);
		assert_int_equal(columns.n_tasks, 1);
		assert_int_equal(columns.tasks[0].proc, 77);
	}
	hr_batch_reader_done(&reader);
	hr_catalog_free(c);
}

/* A message lasts until the next one is read; LeakSanitizer checks that it is freed then. */
static void messages_are_freed(void **state)
{
	struct hr_catalog *c;
	const struct hr_stream *s = open_small(state, &c);
	const Headrace__EventBatch *msg;
	struct hr_batch_reader reader = {0};
	struct hr_columns columns;

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(hr_batch_load(&reader, s, &s->batches[0], &msg), 0);
		assert_int_equal(msg->count, 300);
		assert_int_equal(hr_batch_load(&reader, s, &s->batches[1], &msg), 0);
		assert_int_equal(msg->count, 100);
	}
	assert_int_equal(hr_batch_decode(reader.decoder, msg, HR_COL_BIT(HR_COL_RET), &columns), 0);
	assert_int_equal(columns.count, 100);
	assert_int_equal(columns.ret[99], 4096);
	hr_batch_reader_done(&reader);
	hr_catalog_free(c);
}

static void other_frames_are_refused(void **state)
{
	struct hr_catalog *c;
	const struct hr_stream *s = open_small(state, &c);
	const Headrace__EventBatch *msg = NULL;
	struct hr_batch_reader reader = {0}, unused = {0};
	struct hr_columns columns = {.count = 7};

	for (uint32_t frame = 0; frame <= s->n_frames; frame++) { /* and one that is not there */
		struct hr_batch_ref ref = s->batches[0];

		if (frame == s->batches[0].frame || frame == s->batches[1].frame)
			continue;
		ref.frame = frame;
		assert_int_equal(hr_batch_load(&reader, s, &ref, &msg), -EBADMSG);
		assert_int_equal(hr_batch_read(&reader, s, &ref, HR_COL_ALL, &columns), -EBADMSG);
	}
	assert_null(msg);
	assert_int_equal(columns.count, 7);
	assert_int_equal(hr_batch_read(&reader, s, &s->batches[0], HR_COL_ALL, &columns), 0);
	assert_int_equal(columns.count, 300);
	hr_batch_reader_done(&reader);
	hr_batch_reader_done(&unused);
	hr_catalog_free(c);
}

/* A batch of n_tasks tasks with `rows` events each, without columns. */
static void append_bare(struct hr_writer *w, uint32_t n_tasks, uint32_t rows)
{
	Headrace__EventBatch batch = HEADRACE__EVENT_BATCH__INIT;
	uint64_t *procs = calloc(n_tasks, sizeof(*procs));
	uint32_t *tids = calloc(n_tasks, sizeof(*tids)), *counts = calloc(n_tasks, sizeof(*counts));
	uint32_t file = 0;

	assert_true(procs && tids && counts);
	for (uint32_t i = 0; i < n_tasks; i++) {
		procs[i] = 1 + i;
		counts[i] = rows;
	}
	batch.count = n_tasks * rows;
	batch.task_proc = procs;
	batch.task_tid = tids;
	batch.task_rows = counts;
	batch.n_task_proc = batch.n_task_tid = batch.n_task_rows = n_tasks;
	batch.files = &file;
	batch.n_files = 1;
	assert_int_equal(help_append(w, BUILD_FRAME(EVENTS, events, &batch)), 0);
	free(procs);
	free(tids);
	free(counts);
}

static void limits(void **state)
{
	static const struct {
		uint32_t tasks, rows;
		int result;
	} sizes[] = {
	    {1, HR_BATCH_EVENTS, 0},
	    {1, HR_BATCH_EVENTS + 1, -EBADMSG},
	    {HR_BATCH_TASKS, 1, 0},
	    {HR_BATCH_TASKS + 1, 1, -EBADMSG},
	};
	const char *store = help_path(state, "s");
	const struct hr_stream *s;
	struct hr_batch_reader reader = {0};
	struct hr_writer *w = help_writer(store, "n1");
	struct hr_columns columns;
	struct hr_catalog *c;
	size_t n;

	for (unsigned i = 0; i < 4; i++)
		append_bare(w, sizes[i].tasks, sizes[i].rows);
	assert_int_equal(hr_writer_close(w), 0);
	c = help_open(store, &s, &n);
	assert_int_equal(s->n_batches, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(hr_batch_read(&reader, s, &s->batches[i], 0, &columns),
				 sizes[i].result);
	hr_batch_reader_done(&reader);
	hr_catalog_free(c);
}

static void flags_are_for_items(void **state)
{
	uint8_t ops[HR_OP_MAX / 8] = {0};
	struct hr_batch_ref ref = {.ops = ops, .ops_bytes = sizeof(ops)};
	const uint32_t rest = HR_COL_ALL & ~HR_COL_BIT(HR_COL_FLAGS);

	ops[HR_OP_read / 8] |= (uint8_t)(1u << HR_OP_read % 8);
	assert_int_equal(hr_batch_needed(&ref, HR_COL_ALL), rest);
	ops[HR_OP_fread / 8] |= (uint8_t)(1u << HR_OP_fread % 8);
	assert_int_equal(hr_batch_needed(&ref, HR_COL_ALL), HR_COL_ALL);
	assert_int_equal(hr_batch_needed(&ref, rest), rest);
	ref.ops_bytes = HR_OP_fread / 8;
	assert_int_equal(hr_batch_needed(&ref, HR_COL_ALL), rest);
	ref.ops_bytes = 0; /* the operations are unknown */
	assert_int_equal(hr_batch_needed(&ref, HR_COL_ALL), HR_COL_ALL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(batches_come_back),
	    TEST(messages_are_freed),
	    TEST(other_frames_are_refused),
	    TEST(limits),
	    cmocka_unit_test(flags_are_for_items),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
