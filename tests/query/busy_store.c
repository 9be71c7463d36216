/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/query/busy_store.h"

#include <stdlib.h>
#include <string.h>

#include "tests/store/build.h"
#include "tests/unit.h"

#define BOOT_NS UINT64_C(5000000000)
#define REAL_NS UINT64_C(1700000000000000000)
#define LONG_NS 3000000u /* longer than all that a stream does */
#define TASKS	8u
#define BATCHES 12u
#define MOST	600u /* events of a batch */

/* Of each stream alike: two threads of rank 0, two of its workers, rank 1, no rank, not known. */
static const struct hr_task tasks[TASKS] = {{1, 10}, {1, 11}, {2, 12}, {3, 13},
					    {4, 14}, {5, 15}, {5, 16}, {9, 17}};

struct stream {
	struct build b;
	uint64_t seed;
	uint64_t at_ns[TASKS];
	struct hr_event events[MOST];
};

static uint64_t random_below(struct stream *s, uint64_t n)
{
	s->seed = s->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (s->seed >> 33) % n;
}

static void send_processes(struct stream *s)
{
	Headrace__Process rows[5];

	for (unsigned i = 0; i < 5; i++)
		rows[i] = (Headrace__Process){.proc = i + 1,
					      .pid = (int32_t)(100 + i),
					      .rank_plus1 = i < 3    ? 1
							    : i == 3 ? 2
								     : 0,
					      .worker_plus1 = i == 1 || i == 2 ? i : 0};
	build_processes(&s->b, rows, 5);
}

static struct hr_event make_event(struct stream *s, uint32_t task)
{
	static const uint16_t ops[] = {HR_OP_read,   HR_OP_read,  HR_OP_write,
				       HR_OP_open64, HR_OP_close, HR_OP_fsync};
	uint64_t gap = random_below(s, 3) == 0 ? 0 : random_below(s, 200);
	uint64_t dur = random_below(s, 8) == 0 ? 0 : random_below(s, 150);
	struct hr_event e = {
	    .task = task,
	    .op = ops[random_below(s, sizeof(ops) / sizeof(ops[0]))],
	    .fd = -1,
	    .offset = HR_OFFSET_NONE,
	    .asked = HR_ASKED_NONE,
	    .bits = random_below(s, 5) == 0 ? HR_EV_SCOPE_RUNTIME : 0,
	};

	if (random_below(s, 400) == 0) { /* it began long ago, and was cut short */
		dur = random_below(s, LONG_NS);
		dur = dur < s->at_ns[task] ? dur : 0;
		e.start_ns = s->at_ns[task] - dur;
		e.bits |= HR_EV_CUT;
	} else if (random_below(s, 10) == 0) { /* within another one, or around it */
		e.start_ns = s->at_ns[task] - random_below(s, 400);
	} else {
		e.start_ns = s->at_ns[task] + gap;
	}
	e.dur_ns = dur;
	if (e.start_ns + dur > s->at_ns[task] && !(e.bits & HR_EV_CUT))
		s->at_ns[task] = e.start_ns + dur;
	return e;
}

/* Of all threads, or of one alone: whose time does not wait for the others'. */
static void send_batch(struct stream *s, bool alone, bool lie)
{
	size_t n = 1 + random_below(s, random_below(s, 4) == 0 ? 20 : MOST);
	uint32_t task = (uint32_t)random_below(s, TASKS);
	Headrace__EventBatch batch;

	for (size_t i = 0; i < n; i++)
		s->events[i] = make_event(s, alone ? task : (uint32_t)random_below(s, TASKS));
	assert_int_equal(hr_batch_encode(s->b.encoder, s->events, n, tasks, TASKS, &batch), 0);
	batch.last_ns -= lie ? 1 : 0;
	build_send(&s->b, BUILD_FRAME(EVENTS, events, &batch));
}

static void make_stream(const char *store, struct hr_stream_id id, uint64_t seed, bool lie)
{
	struct stream *s = calloc(1, sizeof(*s));
	bool alone;

	assert_non_null(s);
	s->seed = seed * 1000 + id.instance;
	s->b.now_ns = BOOT_NS;
	s->b.real_minus_boot_ns = REAL_NS - BOOT_NS + random_below(s, 100000);
	alone = random_below(s, 3) == 0;
	for (unsigned i = 0; i < TASKS; i++)
		s->at_ns[i] = BOOT_NS + random_below(s, 5000);
	id.cluster = "c";
	id.boot_id = "b";
	assert_int_equal(hr_encoder_new(&s->b.encoder), 0);
	build_open(&s->b, store, &id);
	send_processes(s);
	for (unsigned i = 0; i < BATCHES; i++)
		send_batch(s, alone, lie && i == BATCHES / 2);
	build_close(&s->b);
	hr_encoder_free(s->b.encoder);
	free(s);
}

char *busy_store_make(uint64_t seed, bool lie)
{
	static const struct hr_stream_id ids[] = {
	    {.job = "r", .node = "n1", .instance = 1},
	    {.job = "r", .node = "n1", .instance = 2},
	    {.job = "r", .node = "n2", .instance = 3},
	    {.job = "r", .node = "n3", .instance = 4},
	    {.job = "r", .node = "n1", .instance = 5, .attempt = 1},
	    {.job = "s", .node = "n1", .instance = 6},
	};
	char *store = build_folder();

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		make_stream(store, ids[i], seed, lie && i == 0);
	return store;
}
