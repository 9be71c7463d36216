/* SPDX-License-Identifier: Apache-2.0 */
/* Frames in, acknowledgements out, without sockets: what is stored, and what a failed sync does. */
#include "tests/collector/ingest_rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- exactly once ---------------------------------------------------------------------------- */

static void test_once(void **state)
{
	struct hr_stream_id id = ingest_stream("n1");
	struct rig rig;
	struct end e;

	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open(&rig, &e, "n1", 1);
	end_send(&e, frame_start(1, &id)); /* the daemon's own: the store has it */
	end_losses(&e, 2, 100);
	end_marked(&e, 100);
	end_losses(&e, 50, 120); /* resent: those up to 100 are there */
	end_marked(&e, 120);
	end_send(&e, frame_start(80, &id)); /* the head of a later segment of the spool */
	end_losses(&e, 121, 121);
	end_marked(&e, 121);
	assert_int_equal(e.nacks, 0);
	hr_ingest_close(e.channel);
	end_open(&rig, &e, "n1", 121);
	end_losses(&e, 120, 121); /* nothing new: acknowledged all the same */
	while (e.acks == 0)
		ingest_listen(&rig);
	assert_int_equal(e.mark, 121);
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
	frames_check(rig.store, "7", "n1", 121);
}

static void test_gap(void **state)
{
	struct rig rig;
	struct end e;

	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open(&rig, &e, "n1", 1);
	end_losses(&e, 2, 10);
	end_losses(&e, 12, 20);
	end_nacked(&e, 1, "gap"); /* one word for all nine */
	assert_false(e.last.closed);
	end_losses(&e, 12, 14); /* went back, and still wrong */
	end_nacked(&e, 2, "gap");
	end_losses(&e, 11, 20);
	end_marked(&e, 20);
	assert_int_equal(e.nacks, 2);
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
	frames_check(rig.store, "7", "n1", 20);
}

static void test_two_streams(void **state)
{
	struct rig rig;
	struct end a, b;

	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open(&rig, &a, "n1", 1);
	end_open(&rig, &b, "n2", 1);
	for (uint64_t seq = 2; seq <= 50; seq++) {
		end_losses(&a, seq, seq);
		end_losses(&b, seq, seq);
	}
	end_marked(&a, 50);
	end_marked(&b, 50);
	hr_ingest_close(a.channel);
	hr_ingest_close(b.channel);
	ingest_stop(&rig);
	frames_check(rig.store, "7", "n1", 50);
	frames_check(rig.store, "7", "n2", 50);
}

/* All that has come when it stops is on disk and acknowledged. */
static void test_stop_commits(void **state)
{
	struct rig rig;
	struct end e;

	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open(&rig, &e, "n1", 1);
	end_losses(&e, 2, 300);
	hr_ingest_stop(rig.in);
	while (!hr_ingest_stopped(rig.in))
		ingest_listen(&rig);
	ingest_take(&rig);
	assert_int_equal(e.mark, 300);
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
	frames_check(rig.store, "7", "n1", 300);
}

static void test_memory_is_released(void **state)
{
	struct rig rig;
	struct end e;
	size_t sent = 0;

	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open(&rig, &e, "n1", 1);
	for (uint64_t seq = 2; seq <= 10; seq++) {
		struct frame f =
		    frame_loss(seq + (seq > 8)); /* the last two are ignored, and released */

		sent += f.bytes;
		end_send(&e, f);
	}
	while (e.released < sent)
		ingest_listen(&rig);
	assert_int_equal(e.released, sent);
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
}

/* Who removes segments under a collector loses what they held, and not what comes after. */
static void test_removed(void **state)
{
	struct rig rig;
	struct end e;
	char path[4096];

	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open(&rig, &e, "n1", 1);
	end_losses(&e, 2, 10);
	end_marked(&e, 10);
	snprintf(path, sizeof(path), "%s/jobs/7/n1.0000000000000001-0/000001.seg", rig.store);
	assert_int_equal(unlink(path), 0);
	end_losses(&e, 11, 20);
	end_nacked(&e, 1, "error");
	assert_true(e.last.closed);
	assert_non_null(strstr(e.text, "was removed while the collector used it"));
	hr_ingest_close(e.channel);
	end_open_as(&rig, &e, "n1", 5, &ingest_anything, 11, 20);
	assert_int_equal(e.mark, 10); /* the rest is whole */
	end_losses(&e, 11, 20);
	end_marked(&e, 20);
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
}

/* What was sent before a close counts until it is done with: GONE says when, and nothing follows it. */
static void test_closed_is_gone(void **state)
{
	struct rig rig;
	struct end e;

	ingest_start(&rig, state, &hr_ingest_defaults);
	end_open(&rig, &e, "n1", 1);
	end_losses(&e, 2, 50);
	hr_ingest_close(e.channel);
	while (!e.gone)
		ingest_listen(&rig);
	ingest_stop(&rig);
	frames_check(rig.store, "7", "n1", 50);
}

/* Each stream has descriptors: past the limit those that nobody uses are closed, and else one has to wait. */
static void test_streams_have_a_limit(void **state)
{
	struct hr_ingest_config config = hr_ingest_defaults;
	struct end a, b, c;
	struct rig rig;

	config.threads = 1;
	config.max_streams = 2;
	ingest_start(&rig, state, &config);
	end_open(&rig, &a, "n1", 1);
	end_open(&rig, &b, "n2", 1);
	end_open_as(&rig, &c, "n3", 5, &ingest_anything, 0, 0);
	end_nacked(&c, 1, "full");
	assert_false(c.last.closed);
	end_losses(&a, 2, 2);
	end_marked(&a, 2);
	hr_ingest_close(a.channel);
	end_marked(&c, 1); /* in the place of n1's, which was idle */
	assert_int_equal(c.opened, 1);
	hr_ingest_close(b.channel);
	end_open(&rig, &a, "n1", 2);
	hr_ingest_close(a.channel);
	hr_ingest_close(c.channel);
	ingest_stop(&rig);
}

static void test_a_user_has_a_share_of_streams(void **state)
{
	const struct hr_ingest_right user = {.own_jobs = true, .uid = 1000, .peer = "user 1000"};
	struct hr_ingest_config config = hr_ingest_defaults;
	struct end a, b, c;
	struct rig rig;

	config.threads = 1;
	config.max_streams = 4;
	ingest_start(&rig, state, &config);
	end_open_as(&rig, &a, "n1", 5, &user, 0, 0);
	end_open_as(&rig, &b, "n2", 5, &user, 0, 0);
	assert_int_equal(a.opened + b.opened, 2);
	end_open_as(&rig, &c, "n3", 5, &user, 0, 0);
	end_nacked(&c, 1, "full");
	hr_ingest_close(c.channel);
	end_open_as(&rig, &c, "n4", 5, &ingest_anything, 0, 0);
	assert_int_equal(c.opened, 1);
	hr_ingest_close(a.channel);
	hr_ingest_close(b.channel);
	hr_ingest_close(c.channel);
	ingest_stop(&rig);
}

/* A user begins no more than so many; what has begun goes on, and a node is free. */
static void test_a_user_begins_so_many(void **state)
{
	const struct hr_ingest_right user = {.own_jobs = true, .uid = 1000, .peer = "user 1000"};
	static const char *const nodes[] = {"n1", "n2"};
	struct hr_ingest_config config = hr_ingest_defaults;
	struct rig rig;
	struct end e;

	config.max_new = 2;
	ingest_start(&rig, state, &config);
	for (unsigned i = 0; i < 4; i++) { /* each twice: the second time it is there */
		end_open_as(&rig, &e, nodes[i % 2], 5, &user, 0, 0);
		assert_int_equal(e.opened, 1);
		hr_ingest_close(e.channel);
	}
	end_open_as(&rig, &e, "n3", 5, &user, 0, 0);
	end_nacked(&e, 1, "limit");
	assert_true(e.last.closed && e.last.retry_ms >= 1000);
	assert_non_null(strstr(e.text, "user 1000 has begun 2 streams"));
	hr_ingest_close(e.channel);
	end_open_as(&rig, &e, "n3", 5, &ingest_anything, 0, 0);
	assert_int_equal(e.opened, 1);
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
}

/* ---- disks ----------------------------------------------------------------------------------- */

static void sync_fails(void **state, unsigned sync_each)
{
	struct hr_ingest_config config = hr_ingest_defaults;
	struct rig rig;
	struct end e;

	config.sync_each = sync_each;
	ingest_start(&rig, state, &config);
	end_open(&rig, &e, "n1", 1);
	end_losses(&e, 2, 5);
	end_marked(&e, 5);
	atomic_store(&ingest_failing_syncs, 1);
	end_losses(&e, 6, 6);
	end_nacked(&e, 1, "full");
	assert_int_equal(e.mark, 5);  /* 6 can be read, but may not be on disk */
	assert_int_equal(e.acked, 5); /* nor did it acknowledge more before the sync */
	assert_true(e.last.alarm && !e.last.closed && e.last.retry_ms > 0);
	end_losses(&e, 7, 8);
	end_losses(&e, 6, 8);
	end_marked(&e, 8);
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
	frames_check(rig.store, "7", "n1", 8);
}

static void test_fdatasync_fails(void **state)
{
	sync_fails(state, 16);
}

static void test_syncfs_fails(void **state)
{
	sync_fails(state, 0);
}

/* A stream that cannot be synced when it is opened is opened later. */
static void test_open_waits(void **state)
{
	struct rig rig;
	struct end e;

	ingest_start(&rig, state, &hr_ingest_defaults);
	atomic_store(&ingest_failing_syncs, 1);
	end_open_as(&rig, &e, "n1", 5, &ingest_anything, 0, 0);
	end_nacked(&e, 1, "full");
	assert_false(e.last.closed);
	while (e.opened == 0)
		ingest_listen(&rig);
	end_losses(&e, 2, 3);
	end_marked(&e, 3);
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
	frames_check(rig.store, "7", "n1", 3);
}

/* Of two that wait for room the one that came last is let in, and keeps it. */
static void test_open_waits_in_order(void **state)
{
	struct rig rig;
	struct end old, new;

	ingest_start(&rig, state, &hr_ingest_defaults);
	atomic_store(&ingest_failing_syncs, 2);
	end_open_as(&rig, &old, "n1", 5, &ingest_anything, 0, 0);
	end_nacked(&old, 1, "full");
	end_open_as(&rig, &new, "n1", 5, &ingest_anything, 0, 0);
	while (new.opened == 0)
		ingest_listen(&rig);
	end_nacked(&old, 2, "in_use");
	assert_true(old.last.closed);
	end_losses(&new, 2, 3);
	end_marked(&new, 3);
	hr_ingest_close(old.channel);
	hr_ingest_close(new.channel);
	ingest_stop(&rig);
	frames_check(rig.store, "7", "n1", 3);
}

/* An idle stream lets go of its writer, and goes on where it was. */
static void test_idle(void **state)
{
	struct hr_ingest_config config = hr_ingest_defaults;
	struct hr_stream_id id = ingest_stream("n1");
	struct hr_writer *w;
	struct rig rig;
	struct end e;
	int r;

	config.idle_ms = 100;
	ingest_start(&rig, state, &config);
	end_open(&rig, &e, "n1", 1);
	end_losses(&e, 2, 3);
	end_marked(&e, 3);
	assert_int_equal(hr_writer_open(rig.store, &id, &w, NULL), -EBUSY);
	hr_ingest_close(e.channel);
	for (int i = 0; (r = hr_writer_open(rig.store, &id, &w, NULL)) == -EBUSY && i < 30000; i++)
		usleep(10000);
	assert_int_equal(r, 0);
	assert_int_equal(hr_writer_close(w), 0);
	end_open(&rig, &e, "n1", 3);
	end_losses(&e, 4, 4);
	end_marked(&e, 4);
	hr_ingest_close(e.channel);
	ingest_stop(&rig);
	frames_check(rig.store, "7", "n1", 4);
}

#define T(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(test_once),
	    T(test_gap),
	    T(test_two_streams),
	    T(test_stop_commits),
	    T(test_memory_is_released),
	    T(test_removed),
	    T(test_closed_is_gone),
	    T(test_streams_have_a_limit),
	    T(test_a_user_has_a_share_of_streams),
	    T(test_a_user_begins_so_many),
	    T(test_fdatasync_fails),
	    T(test_syncfs_fails),
	    T(test_open_waits),
	    T(test_open_waits_in_order),
	    T(test_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
