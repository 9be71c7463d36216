/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_region.c - regions come back from a frame as they went in, and what contradicts itself does not
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/frame.h"
#include "common/region.h"
#include "tests/unit.h"

static void assert_region(const struct hr_region *is, const struct hr_region *should)
{
	assert_int_equal(is->proc, should->proc);
	assert_int_equal(is->tid, should->tid);
	assert_int_equal(is->kind, should->kind);
	assert_int_equal(is->domain, should->domain);
	assert_int_equal(is->category, should->category);
	assert_int_equal(is->name, should->name);
	assert_int_equal(is->args, should->args);
	assert_int_equal(is->depth, should->depth);
	assert_int_equal(is->open, should->open);
	assert_int_equal(is->count, should->count);
	assert_int_equal(is->start_ns, should->start_ns);
	assert_int_equal(is->dur_ns, should->dur_ns);
	assert_int_equal(is->step, should->step);
	assert_int_equal(is->epoch, should->epoch);
}

/* Through a packed frame; the caller frees it. *ret_bytes: of the frame. */
static Headrace__Frame *through_a_frame(struct hr_regions *r, size_t *ret_bytes)
{
	Headrace__Frame frame = HEADRACE__FRAME__INIT, *msg;
	uint8_t *buf;

	frame.seq = 2;
	frame.body_case = HEADRACE__FRAME__BODY_REGIONS;
	frame.regions = (Headrace__Regions *)hr_regions_message(r);
	assert_int_equal(hr_frame_pack(&frame, 1, &buf, ret_bytes), 0);
	assert_int_equal(hr_frame_unpack(buf, *ret_bytes, &msg), 0);
	free(buf);
	assert_int_equal(hr_regions_restore(msg->regions), 0);
	return msg;
}

static uint64_t next(uint64_t *random)
{
	*random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *random >> 33;
}

/* Values of any size, as a program that says nonsense would have them. */
static struct hr_region wild(uint64_t *random, uint32_t texts)
{
	uint64_t big = next(random) << 33 | next(random) << 2;

	return (struct hr_region){
	    .proc = next(random) % 3,
	    .tid = (uint32_t)next(random) % 3,
	    .kind = (uint32_t)next(random) % 12,
	    .domain = (uint32_t)(next(random) % (texts + 1)),
	    .category = (uint32_t)(next(random) % (texts + 1)),
	    .name = (uint32_t)(next(random) % (texts + 1)),
	    .args = (uint32_t)(next(random) % (texts + 1)),
	    .depth = (uint32_t)next(random),
	    .open = next(random) % 2,
	    .count = 1 + next(random) % 3 * big,
	    .start_ns = next(random) % 2 ? big : next(random),
	    .dur_ns = next(random) % 2 ? ~big : 0,
	    .step = next(random) % 2 ? big : HR_REGION_UNKNOWN,
	    .epoch = next(random) % 2 ? 0 : HR_REGION_UNKNOWN,
	};
}

static void regions_come_back(void **state)
{
	enum { N = 5000, TEXTS = 40 };
	struct hr_region *should = calloc(N, sizeof(*should)), is;
	struct hr_regions *r;
	uint64_t random = 1;

	assert_int_equal(hr_regions_new(&r), 0);
	for (unsigned round = 0; round < 2; round++) { /* the second in the memory of the first */
		Headrace__Frame *msg;
		size_t bytes;

		for (uint32_t i = 1, number; i <= TEXTS; i++) {
			assert_int_equal(hr_regions_text(r, &i, sizeof(i), &number), 0);
			assert_int_equal(number, i);
			assert_int_equal(hr_regions_text(r, &i, sizeof(i), &number), 0);
			assert_int_equal(number, i);
			assert_int_equal(hr_regions_text(r, "", 0, &number), 0);
			assert_int_equal(number, 0);
		}
		for (unsigned i = 0; i < N; i++) {
			should[i] = wild(&random, TEXTS);
			assert_int_equal(hr_regions_add(r, &should[i]), 0);
		}
		assert_int_equal(hr_regions_count(r), N);
		msg = through_a_frame(r, &bytes);
		assert_int_equal(msg->regions->n_key, N);
		for (unsigned i = 0; i < N; i++) {
			hr_regions_get(msg->regions, i, &is);
			assert_region(&is, &should[i]);
		}
		headrace__frame__free_unpacked(msg, NULL);
		hr_regions_reset(r);
		assert_int_equal(hr_regions_count(r), 0);
	}
	hr_regions_free(r);
	free(should);
}

/* Microsecond ranges of four threads, two names each: what a flood looks like. */
static void a_flood_is_small(void **state)
{
	struct hr_regions *r;
	Headrace__Frame *msg;
	uint64_t random = 7, now = UINT64_C(86400000000000);
	size_t bytes;
	struct hr_region g = {.proc = 1, .kind = HR_REGION_RANGE, .count = 1};

	assert_int_equal(hr_regions_new(&r), 0);
	for (uint32_t i = 0; i < HR_REGIONS_MAX; i++) {
		g.tid = 100 + (uint32_t)next(&random) % 4;
		g.depth = i % 2;
		assert_int_equal(
		    hr_regions_text(r, i % 2 ? "forward" : "backward", i % 2 ? 7 : 8, &g.name), 0);
		g.start_ns = now += 500 + next(&random) % 1000;
		g.dur_ns = 1000 + next(&random) % 3000;
		g.step = i / 100;
		g.epoch = 0;
		assert_int_equal(hr_regions_add(r, &g), 0);
	}
	assert_int_equal(hr_regions_add(r, &g), -ENOSPC);
	msg = through_a_frame(r, &bytes);
	print_message("%.2f bytes a region\n", (double)bytes / HR_REGIONS_MAX);
	assert_in_range(bytes, 1, 5 * HR_REGIONS_MAX);
	assert_int_equal(msg->regions->n_open, 0); /* what none has is not there */
	headrace__frame__free_unpacked(msg, NULL);
	hr_regions_free(r);
}

static void what_contradicts_itself_is_refused(void **state)
{
	Headrace__Regions m = HEADRACE__REGIONS__INIT;
	Headrace__RegionKey k = HEADRACE__REGION_KEY__INIT, *keys[] = {&k};
	ProtobufCBinaryData text = {1, (uint8_t *)"t"};
	uint32_t key[] = {0, 0}, args[] = {1, 0};
	uint64_t dur_ns[] = {1, 2};

	m.texts = &text;
	m.keys = keys;
	m.key = key;
	m.args = args;
	m.dur_ns = dur_ns;
	m.n_texts = m.n_keys = 1;
	m.n_key = m.n_args = m.n_dur_ns = 2;
	assert_int_equal(hr_regions_restore(&m), 0);
	m.n_dur_ns = 1;
	assert_int_equal(hr_regions_restore(&m), -EBADMSG);
	m.n_dur_ns = 2;
	key[1] = 1;
	assert_int_equal(hr_regions_restore(&m), -EBADMSG);
	key[1] = 0;
	args[1] = 2;
	assert_int_equal(hr_regions_restore(&m), -EBADMSG);
	args[1] = 0;
	k.name = 2;
	assert_int_equal(hr_regions_restore(&m), -EBADMSG);
	k.name = 1;
	assert_int_equal(hr_regions_restore(&m), 0);
}

static void kinds_have_names(void **state)
{
	assert_string_equal(hr_region_kind_name(HR_REGION_INPUT_WAIT), "input_wait");
	assert_null(hr_region_kind_name(0));
	assert_null(hr_region_kind_name(4000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(regions_come_back),
	    cmocka_unit_test(a_flood_is_small),
	    cmocka_unit_test(what_contradicts_itself_is_refused),
	    cmocka_unit_test(kinds_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
