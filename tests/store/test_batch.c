/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/store/help.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/batch.h"
#include "tests/bench/generate.h"

static uint64_t random_state;

static uint64_t random_next(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return random_state ^ random_state >> 29;
}

static uint64_t one_of(const uint64_t *values, size_t n)
{
	return values[random_next() % n];
}

/* Mostly values that touch the edges of a prediction, and now and then anything. */
static struct hr_event wild_event(size_t n_tasks)
{
	static const uint64_t edges[] = {0,
					 1,
					 4096,
					 65536,
					 0x4001,
					 (uint64_t)-0x4001,
					 UINT64_MAX,
					 INT64_MAX,
					 (uint64_t)INT64_MIN,
					 (uint64_t)INT64_MIN + 1,
					 (uint64_t)-2};
	struct hr_event e = {
	    .start_ns = one_of(edges, 11),
	    .dur_ns = one_of(edges, 11),
	    .offset = (int64_t)one_of(edges, 11),
	    .ret = (int64_t)one_of(edges, 11),
	    .asked = one_of(edges, 11),
	    .file = (uint32_t)one_of(edges, 11),
	    .file2 = (uint32_t)one_of(edges, 11),
	    .task = (uint32_t)(random_next() % n_tasks),
	    .flags = (uint32_t)one_of(edges, 11),
	    .fd = (int32_t)one_of(edges, 11),
	    .op = (uint16_t)(random_next() % 4 ? HR_OP_read : random_next() % HR_OP_MAX),
	    .bits = (uint16_t)one_of(edges, 11),
	};

	if (random_next() % 8 == 0)
		e.offset = (int64_t)random_next();
	if (random_next() % 8 == 0)
		e.ret = (int64_t)random_next();
	return e;
}

static void assert_row(const struct hr_columns *c, uint32_t row, const struct hr_event *e)
{
	assert_int_equal(c->start_ns[row], e->start_ns);
	assert_int_equal(c->dur_ns[row], e->dur_ns);
	assert_int_equal(c->op[row], e->op);
	assert_int_equal(c->file[row], e->file);
	assert_int_equal(c->offset[row], e->offset);
	assert_int_equal(c->asked[row], e->asked);
	assert_int_equal(c->ret[row], e->ret);
	assert_int_equal(c->fd[row], e->fd);
	assert_int_equal(c->flags[row], e->flags);
	assert_int_equal(c->file2[row], e->file2);
	assert_int_equal(c->bits[row], e->bits);
}

/* Rows come back by task, in the order given within one, each with its values. */
static void assert_all(const struct hr_columns *c, const struct hr_event *events, size_t n,
		       const struct hr_task *tasks, size_t n_tasks)
{
	uint32_t row = 0;

	assert_int_equal(c->count, n);
	for (size_t t = 0; t < n_tasks; t++)
		for (size_t i = 0; i < n; i++) {
			if (events[i].task != t)
				continue;
			assert_int_equal(c->tasks[c->task[row]].proc, tasks[t].proc);
			assert_int_equal(c->tasks[c->task[row]].tid, tasks[t].tid);
			assert_row(c, row++, &events[i]);
		}
	assert_int_equal(row, n);
}

/* Through the packed message, as a reader gets it. */
static Headrace__EventBatch *transmit(const Headrace__EventBatch *msg)
{
	size_t bytes = headrace__event_batch__get_packed_size(msg);
	uint8_t *buf = malloc(bytes);
	Headrace__EventBatch *copy;

	assert_non_null(buf);
	headrace__event_batch__pack(msg, buf);
	copy = headrace__event_batch__unpack(NULL, bytes, buf);
	assert_non_null(copy);
	free(buf);
	return copy;
}

static void round_trip(struct hr_encoder *e, struct hr_decoder *d, const struct hr_event *events,
		       size_t n, const struct hr_task *tasks, size_t n_tasks)
{
	Headrace__EventBatch msg, *copy;
	struct hr_columns c;

	assert_int_equal(hr_batch_encode(e, events, n, tasks, n_tasks, &msg), 0);
	copy = transmit(&msg);
	assert_int_equal(hr_batch_decode(d, copy, HR_COL_ALL, &c), 0);
	assert_all(&c, events, n, tasks, n_tasks);
	headrace__event_batch__free_unpacked(copy, NULL);
}

struct codec {
	struct hr_encoder *e;
	struct hr_decoder *d;
};

static int setup(void **state)
{
	static struct codec codec;

	random_state = 1;
	*state = &codec;
	return hr_encoder_new(&codec.e) || hr_decoder_new(&codec.d);
}

static int teardown(void **state)
{
	struct codec *codec = *state;

	hr_encoder_free(codec->e);
	hr_decoder_free(codec->d);
	return 0;
}

/* Every value of every column survives, at sizes around a chunk's, with one codec for all. */
static void wild_values(void **state)
{
	static const size_t sizes[] = {1, 2, 3, 100, 2047, 2048, 2049, 5000, 1, 300};
	struct codec *codec = *state;
	struct hr_event *events = calloc(5000, sizeof(*events));
	struct hr_task tasks[7];

	assert_non_null(events);
	for (unsigned t = 0; t < 7; t++)
		tasks[t] = (struct hr_task){.proc = UINT64_MAX - t, .tid = t};
	for (unsigned round = 0; round < 20; round++) {
		size_t n = sizes[round % 10], n_tasks = 1 + round % 7;

		for (size_t i = 0; i < n; i++)
			events[i] = wild_event(n_tasks);
		round_trip(codec->e, codec->d, events, n, tasks, n_tasks);
	}
	free(events);
}

static void generated_job(void **state)
{
	struct codec *codec = *state;
	struct hr_gen_config config = HR_GEN_CONFIG(400000);
	struct hr_event *events = calloc(HR_BATCH_EVENTS, sizeof(*events));
	const struct hr_task *tasks;
	Headrace__EventBatch msg;
	struct hr_gen *gen;
	size_t bytes = 0;

	config.paths = 5000;
	assert_non_null(events);
	gen = hr_gen_new(&config, 1);
	for (int i = 0; i < 3; i++) {
		size_t n_tasks = hr_gen_tasks(gen, &tasks);

		hr_gen_next(gen, events, HR_BATCH_EVENTS);
		round_trip(codec->e, codec->d, events, HR_BATCH_EVENTS, tasks, n_tasks);
		assert_int_equal(
		    hr_batch_encode(codec->e, events, HR_BATCH_EVENTS, tasks, n_tasks, &msg), 0);
		bytes += headrace__event_batch__get_packed_size(&msg);
	}
	/* The budget of docs/storage.md. */
	assert_true((double)bytes / (3.0 * HR_BATCH_EVENTS) < 5.5);
	hr_gen_free(gen);
	free(events);
}

static void most_tasks(void **state)
{
	struct codec *codec = *state;
	struct hr_task *tasks = calloc(HR_BATCH_TASKS, sizeof(*tasks));
	struct hr_event *events = calloc(2 * HR_BATCH_TASKS, sizeof(*events));
	Headrace__EventBatch msg;

	assert_true(tasks && events);
	for (uint32_t i = 0; i < HR_BATCH_TASKS; i++)
		tasks[i] = (struct hr_task){.proc = i, .tid = i};
	for (uint32_t i = 0; i < 2 * HR_BATCH_TASKS; i++)
		events[i] = (struct hr_event){
		    .task = i * 7 % HR_BATCH_TASKS, .start_ns = i, .op = HR_OP_read};
	round_trip(codec->e, codec->d, events, 2 * HR_BATCH_TASKS, tasks, HR_BATCH_TASKS);
	/* Tasks without rows are not sent. */
	assert_int_equal(hr_batch_encode(codec->e, events, 3, tasks, HR_BATCH_TASKS, &msg), 0);
	assert_int_equal(msg.n_task_proc, 3);
	free(tasks);
	free(events);
}

static void summary_of_a_batch(void **state)
{
	struct codec *codec = *state;
	struct hr_task task = {.proc = 9, .tid = 1};
	struct hr_event events[] = {
	    {.start_ns = 500, .dur_ns = 10, .op = HR_OP_read, .ret = 100, .asked = 4096, .file = 3},
	    {.start_ns = 400,
	     .dur_ns = 200,
	     .op = HR_OP_close,
	     .ret = 0,
	     .asked = HR_ASKED_NONE,
	     .file = 3},
	    {.start_ns = 520, .dur_ns = 1, .op = HR_OP_read, .ret = -5, .asked = 4096, .file = 8},
	    {.start_ns = 530, .dur_ns = 1, .op = HR_OP_write, .ret = 50, .asked = 50, .file = 3},
	};
	Headrace__EventBatch msg;

	assert_int_equal(hr_batch_encode(codec->e, events, 4, &task, 1, &msg), 0);
	assert_int_equal(msg.count, 4);
	assert_int_equal(msg.base_ns, 400);
	assert_int_equal(msg.last_ns, 600);
	assert_int_equal(msg.bytes_moved, 150);
	assert_int_equal(msg.classes,
			 1u << HR_CLASS_READ | 1u << HR_CLASS_CLOSE | 1u << HR_CLASS_WRITE);
	assert_int_equal(msg.ops.len, HR_OP_write / 8 + 1);
	assert_true(msg.ops.data[HR_OP_close / 8] >> HR_OP_close % 8 & 1);
	assert_int_equal(msg.n_files, 2);
}

static void refuses(void **state)
{
	struct codec *codec = *state;
	struct hr_task task = {0};
	struct hr_event e = {.op = HR_OP_read};
	Headrace__EventBatch msg;

	assert_int_equal(hr_batch_encode(codec->e, &e, 0, &task, 1, &msg), -EINVAL);
	assert_int_equal(hr_batch_encode(codec->e, &e, HR_BATCH_EVENTS + 1, &task, 1, &msg),
			 -EINVAL);
	assert_int_equal(hr_batch_encode(codec->e, &e, 1, &task, HR_BATCH_TASKS + 1, &msg),
			 -EINVAL);
	e.task = 1;
	assert_int_equal(hr_batch_encode(codec->e, &e, 1, &task, 1, &msg), -EINVAL);
	e.task = 0;
	e.op = HR_OP_MAX;
	assert_int_equal(hr_batch_encode(codec->e, &e, 1, &task, 1, &msg), -EINVAL);
}

/* Each column alone gives what it gives among all the others: dependencies are complete. */
static void columns_alone(void **state)
{
	struct codec *codec = *state;
	struct hr_task tasks[3] = {{1, 1}, {2, 2}, {3, 3}};
	struct hr_event events[3000];
	Headrace__EventBatch msg;
	struct hr_columns all, one;
	struct hr_decoder *d;

	for (size_t i = 0; i < 3000; i++)
		events[i] = wild_event(3);
	assert_int_equal(hr_batch_encode(codec->e, events, 3000, tasks, 3, &msg), 0);
	assert_int_equal(hr_batch_decode(codec->d, &msg, HR_COL_ALL, &all), 0);
	for (unsigned c = 1; c < HR_COL_END_; c++) {
		assert_int_equal(hr_decoder_new(&d), 0);
		assert_int_equal(hr_batch_decode(d, &msg, HR_COL_BIT(c), &one), 0);
#define SAME(column, id)                                                                           \
	do {                                                                                       \
		if (c == (id))                                                                     \
			assert_memory_equal(one.column, all.column, 3000 * sizeof(*all.column));   \
		else                                                                               \
			assert_null(one.column);                                                   \
	} while (0)
		SAME(start_ns, HR_COL_START);
		SAME(dur_ns, HR_COL_DUR);
		SAME(op, HR_COL_OP);
		SAME(file, HR_COL_FILE);
		SAME(offset, HR_COL_OFFSET);
		SAME(asked, HR_COL_ASKED);
		SAME(ret, HR_COL_RET);
		SAME(fd, HR_COL_FD);
		SAME(flags, HR_COL_FLAGS);
		SAME(file2, HR_COL_FILE2);
		SAME(bits, HR_COL_BITS);
#undef SAME
		hr_decoder_free(d);
	}
}

/* fd, flags, second file and bits of an ordinary job cost nearly nothing. */
static void cheap_columns(void **state)
{
	struct codec *codec = *state;
	struct hr_gen_config config = HR_GEN_CONFIG(100000);
	struct hr_event *events = calloc(HR_BATCH_EVENTS, sizeof(*events));
	const struct hr_task *tasks;
	Headrace__EventBatch msg;
	struct hr_gen *gen;
	size_t n_tasks;

	config.paths = 5000;
	assert_non_null(events);
	gen = hr_gen_new(&config, 0);
	hr_gen_next(gen, events, HR_BATCH_EVENTS);
	n_tasks = hr_gen_tasks(gen, &tasks);
	assert_int_equal(hr_batch_encode(codec->e, events, HR_BATCH_EVENTS, tasks, n_tasks, &msg),
			 0);
	for (size_t i = 0; i < msg.n_columns; i++) {
		uint32_t id = msg.columns[i]->id;

		if (id == HR_COL_FD || id == HR_COL_FLAGS || id == HR_COL_FILE2 ||
		    id == HR_COL_BITS)
			assert_in_range(headrace__column__get_packed_size(msg.columns[i]), 0, 2000);
	}
	hr_gen_free(gen);
	free(events);
}

/* ---- hostile messages ------------------------------------------------------------------------ */

static Headrace__EventBatch *sample(struct codec *codec)
{
	struct hr_task tasks[2] = {{1, 1}, {2, 2}};
	struct hr_event events[200];
	Headrace__EventBatch msg;

	for (size_t i = 0; i < 200; i++)
		events[i] = wild_event(2);
	assert_int_equal(hr_batch_encode(codec->e, events, 200, tasks, 2, &msg), 0);
	return transmit(&msg);
}

#define REFUSED(codec, change)                                                                     \
	do {                                                                                       \
		Headrace__EventBatch *m = sample(codec);                                           \
		struct hr_columns c;                                                               \
		assert_int_equal(hr_batch_decode((codec)->d, m, HR_COL_ALL, &c), 0);               \
		change;                                                                            \
		assert_int_equal(hr_batch_decode((codec)->d, m, HR_COL_ALL, &c), -EBADMSG);        \
		headrace__event_batch__free_unpacked(m, NULL);                                     \
	} while (0)

static void contradictions(void **state)
{
	struct codec *codec = *state;

	REFUSED(codec, m->count = 0);
	REFUSED(codec, m->count = HR_BATCH_EVENTS + 1);
	REFUSED(codec, m->count++);
	REFUSED(codec, m->task_rows[0]++);
	REFUSED(codec, m->task_rows[0] = UINT32_MAX);
	REFUSED(codec, m->n_task_tid--);
	REFUSED(codec, m->n_files--);
	REFUSED(codec, m->columns[0]->width++);
	REFUSED(codec, m->columns[0]->width = 9);
	REFUSED(codec, m->columns[1]->id = m->columns[0]->id);
	REFUSED(codec, m->columns[0]->planes[0].data[0] = 3);
	REFUSED(codec, m->columns[0]->planes[0].len = 1);
	REFUSED(codec, m->columns[0]->planes[0].len = 0);
}

/* Flipping bits in a packed batch gives -EBADMSG or some rows, never a crash (run under ASan). */
static void flipped_bits(void **state)
{
	struct codec *codec = *state;
	Headrace__EventBatch *good = sample(codec);
	size_t bytes = headrace__event_batch__get_packed_size(good);
	uint8_t *buf = malloc(bytes);
	unsigned refused = 0;

	assert_non_null(buf);
	for (unsigned i = 0; i < 3000; i++) {
		Headrace__EventBatch *m;
		struct hr_columns c;

		headrace__event_batch__pack(good, buf);
		for (unsigned k = 0; k < 1 + i % 3; k++)
			buf[random_next() % bytes] ^= (uint8_t)(1u << random_next() % 8);
		m = headrace__event_batch__unpack(NULL, bytes, buf);
		if (!m)
			continue;
		refused += hr_batch_decode(codec->d, m, HR_COL_ALL, &c) == -EBADMSG;
		headrace__event_batch__free_unpacked(m, NULL);
	}
	assert_true(refused > 0);
	headrace__event_batch__free_unpacked(good, NULL);
	free(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(wild_values, setup, teardown),
	    cmocka_unit_test_setup_teardown(generated_job, setup, teardown),
	    cmocka_unit_test_setup_teardown(most_tasks, setup, teardown),
	    cmocka_unit_test_setup_teardown(summary_of_a_batch, setup, teardown),
	    cmocka_unit_test_setup_teardown(refuses, setup, teardown),
	    cmocka_unit_test_setup_teardown(columns_alone, setup, teardown),
	    cmocka_unit_test_setup_teardown(cheap_columns, setup, teardown),
	    cmocka_unit_test_setup_teardown(contradictions, setup, teardown),
	    cmocka_unit_test_setup_teardown(flipped_bits, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
