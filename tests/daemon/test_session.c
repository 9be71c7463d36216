/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of a ring that may be read: which of them the reader waits for, and for how long. */

#include <unistd.h>

#include "daemon/session/ringpool.h"
#include "daemon/session/session.h"
#include "tests/unit.h"

#define NOW   UINT64_C(1000000000000)
#define LIMIT 100u /* ticks */
#define ALL   1000u

static struct hr_session *new_session(void)
{
	static struct hr_ringpool pool;
	struct hr_session *s = NULL;
	struct hr_map map;
	int fd;

	hr_ringpool_init(&pool);
	fd = hr_ringpool_take(&pool, &map);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(hr_session_new(1, 2, getpid(), &s), 0);
	assert_int_equal(hr_session_add_map(s, &map), 0);
	return s;
}

static void commit(struct hr_ring_view *r, uint64_t index, uint32_t bits, uint64_t end_ticks)
{
	struct hr_record *slot = &r->slots[index & (r->n_slots - 1)];

	*slot = (struct hr_record){.start_ticks = end_ticks, .op = HR_OP_FIRST, .bits = bits};
	slot->seq = (uint32_t)(index + 1);
}

static uint32_t ready(struct hr_ring_view *r, bool gone, uint64_t now_ns)
{
	uint64_t end;

	return hr_ring_ready(r, LIMIT, ALL, gone, now_ns, &end);
}

/*
 * The reader waits for a slot that a later one follows, longer in the common ring. After the death
 * of the owner, it does not wait.
 */
static void an_uncommitted_slot_is_skipped_in_time(void **state)
{
	static const uint64_t torn_ns[] = {HR_TORN_NS, HR_TORN_COMMON_NS};
	struct hr_session *s = new_session();
	struct hr_ring_view *last = &s->rings[2];

	for (uint32_t common = 0; common < 2; common++) {
		struct hr_ring_view *r = &s->rings[common];

		commit(r, 0, 0, 10);
		commit(r, 2, 0, 20);
		r->hdr->head = 3;
		r->hdr->common = common;
		assert_int_equal(ready(r, false, NOW), 1);
		assert_int_equal(ready(r, false, NOW + torn_ns[common] - 1), 1);
		assert_int_equal(ready(r, false, NOW + torn_ns[common]), 3);
	}
	commit(last, 0, 0, 10);
	last->hdr->head = 2;
	assert_int_equal(ready(last, false, NOW), 1);
	assert_int_equal(ready(last, false, NOW + HR_TORN_NS),
			 1); /* nothing was written after it */
	assert_int_equal(ready(last, true, NOW + HR_TORN_NS), 2);
	hr_session_free(s);
}

/* The time that the reader has waited for one slot does not count for the next one. */
static void each_slot_has_its_own_time(void **state)
{
	struct hr_session *s = new_session();
	struct hr_ring_view *r = &s->rings[0];

	commit(r, 1, 0, 10);
	r->hdr->head = 2;
	assert_int_equal(ready(r, false, NOW), 0);
	commit(r, 0, 0, 5); /* late */
	assert_int_equal(ready(r, false, NOW + 1), 2);
	hr_ring_consumed(r, 2);
	commit(r, 3, 0, 20);
	r->hdr->head = 4;
	assert_int_equal(ready(r, false, NOW + HR_TORN_NS), 0);
	assert_int_equal(ready(r, false, NOW + 2 * HR_TORN_NS), 2);
	hr_session_free(s);
}

/*
 * If the reader was suspended after it took the time, later regions wait for the next time: the
 * engine refuses records that end long after it.
 */
static void regions_wait_for_their_time(void **state)
{
	struct hr_session *s = new_session();
	struct hr_ring_view *r = &s->rings[0];
	uint64_t end;

	commit(r, 0, 0, 10);
	for (uint64_t i = 1; i < 3; i++) {
		commit(r, i, 0, 20 * i);
		r->slots[i].op = HR_CTL_REGION;
		r->slots[i].dur_lo = 5;
	}
	r->hdr->head = 3;
	assert_int_equal(hr_ring_ready(r, 24, ALL, false, NOW, &end), 1);
	assert_int_equal(hr_ring_ready(r, 44, ALL, false, NOW, &end), 2);
	assert_int_equal(hr_ring_ready(r, 45, ALL, false, NOW, &end), 3);
	assert_int_equal(hr_ring_ready(r, 45, 2, false, NOW, &end), 2);
	assert_in_range(end, 25, 45);
	hr_session_free(s);
}

/* Two slots of a record stay together; what ended after the limit waits. */
static void records_are_whole(void **state)
{
	struct hr_session *s = new_session();
	struct hr_ring_view *r = &s->rings[0];
	uint64_t end;

	for (uint64_t i = 0; i < 6; i++)
		commit(r, i, i % 2 == 0 ? HR_REC_PAIR : 0u, 10 * (i + 1));
	r->hdr->head = 5;
	assert_int_equal(hr_ring_ready(r, LIMIT, ALL, false, NOW, &end), 4); /* the last is half */
	assert_true(end == UINT64_MAX);
	assert_int_equal(hr_ring_ready(r, LIMIT, 3, false, NOW, &end), 2);
	assert_in_range(end, 10, 30);
	assert_int_equal(hr_ring_ready(r, LIMIT, 1, false, NOW, &end), 2);
	assert_int_equal(hr_ring_ready(r, 30, ALL, false, NOW, &end), 4);
	assert_int_equal(hr_ring_ready(r, 29, ALL, false, NOW, &end), 2);
	assert_true(end == UINT64_MAX);
	hr_session_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_uncommitted_slot_is_skipped_in_time),
	    cmocka_unit_test(each_slot_has_its_own_time),
	    cmocka_unit_test(regions_wait_for_their_time),
	    cmocka_unit_test(records_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
