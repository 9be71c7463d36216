/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a spool arrives exactly once, whatever the collector and the network do. */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/seeds.h"

static void assert_arrived(const struct rig *rig, const char *job, uint64_t frames)
{
	const char *path = rig_store(rig, "a");
	struct frame_sums t;

	frame_sum(&path, 1, job, &t);
	assert_int_equal(t.first_seq, 1);
	assert_int_equal(t.last_seq, frames);
	assert_int_equal(t.frames, frames);
	assert_true(t.ended);
}

/* ---- what arrives --------------------------------------------------------------------------------- */

static void a_stream_is_sent_as_it_grows(void **state)
{
	struct fake_seen seen;
	struct fake *f;
	struct rig rig;

	rig_init(&rig, state);
	f = rig_collector(&rig,
			  (struct fake_options){.store = rig_store(&rig, "a"), .ping_ms = 50});
	rig_open_stream(&rig, "job");
	rig_start(&rig);
	for (unsigned i = 0; i < 10; i++) {
		rig_add_frames(&rig, 10, 30 * KIB);
		WAIT_FOR(&rig, now.own && now.own_acked == hr_writer_mark(rig.writer));
	}
	assert_true(rig_stats(&rig).connected);
	assert_true(frame_disk_bytes(rig.folder) < 600 * KIB); /* what is acknowledged is gone */
	rig_end_stream(&rig);
	WAIT_FOR(&rig, ALL_SENT && now.own_frames == 102 && now.own_acked == 102);
	assert_int_equal(frame_disk_bytes(rig.folder), 0);
	WAIT_UNTIL_SEEN(f, seen.pongs > 2);
	assert_int_equal(seen.connections, 1);
	assert_int_equal(seen.opens, 1);
	assert_int_equal(seen.doubles, 0);
	fake_stop(f);
	assert_arrived(&rig, "job", 102);
	rig_done(&rig);
}

static void what_earlier_daemons_left_is_sent(void **state)
{
	struct fake_seen seen;
	struct fake *f;
	struct rig rig;
	char job[16];

	for (unsigned i = 0; i < 5; i++) {
		snprintf(job, sizeof(job), "job%u", i);
		rig_leave_stream(state, job, 60, 30 * KIB);
	}
	rig_init(&rig, state);
	f = rig_collector(&rig,
			  (struct fake_options){.store = rig_store(&rig, "a"), .ack_late_ms = 20});
	rig_start(&rig);
	WAIT_FOR(&rig, ALL_SENT);
	assert_int_equal(frame_disk_bytes(rig.folder), 0);
	fake_look(f, &seen);
	assert_true(seen.switches > 15);	      /* in turns */
	assert_true(seen.most_in_flight <= 1u << 20); /* the window */
	fake_stop(f);
	for (unsigned i = 0; i < 5; i++) {
		snprintf(job, sizeof(job), "job%u", i);
		assert_arrived(&rig, job, 62);
	}
	rig_done(&rig);
}

/* More than may be open at once. */
static void hundreds_of_streams_are_sent(void **state)
{
	struct fake *f;
	struct rig rig;
	char job[16];

	for (unsigned i = 0; i < 200; i++) {
		snprintf(job, sizeof(job), "job%u", i);
		rig_leave_stream(state, job, 1, 100);
	}
	rig_init(&rig, state);
	f = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "a")});
	rig_start(&rig);
	WAIT_FOR(&rig, ALL_SENT);
	assert_int_equal(frame_disk_bytes(rig.folder), 0);
	assert_int_equal(rig_stats(&rig).sent_frames, 200 * 3);
	fake_stop(f);
	rig_done(&rig);
}

/* Connections that end at random, before or after a frame is stored; gaps; a full disk: each frame arrives once. */
static void one_bad_day(void **state, unsigned seed)
{
	struct frame_sums before;
	struct fake *f;
	struct rig rig;
	const char *path;
	char command[300];

	srand(seed);
	rig_init(&rig, state);
	f = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "a"),
						      .seed = seed,
						      .drop_per_mille = seed % 3 ? 10 : 0,
						      .forget_per_mille = seed % 5 ? 10 : 0,
						      .gap_per_mille = seed % 2 ? 10 : 0,
						      .full_per_mille = seed % 7 ? 0 : 50,
						      .ack_every = 1 + seed % 11,
						      .ping_ms = 40,
						      .window_bytes = seed % 4 ? 300 * KIB : 1});
	rig_open_stream(&rig, "job");
	rig_start(&rig);
	for (unsigned i = 0; i < 20; i++) {
		rig_add_frames(&rig, (unsigned)rand() % 20, (size_t)rand() % (40 * KIB));
		rig_pause_ms((unsigned)rand() % 4);
	}
	rig_end_stream(&rig);
	WAIT_FOR(&rig, ALL_SENT);
	fake_stop(f);
	path = rig_store(&rig, "a");
	frame_sum(&path, 1, "job", &before);
	assert_int_equal(before.first_seq, 1);
	assert_int_equal(before.last_seq, rig_stats(&rig).own_frames);
	assert_int_equal(before.frames, before.last_seq);
	assert_int_equal(before.n_losses, 0);
	rig_done(&rig);
	snprintf(command, sizeof(command), "rm -rf '%s' '%s'", path, rig.folder);
	assert_int_equal(system(command), 0);
}

static void bad_days(void **state)
{
	for (unsigned seed = 1; seed <= test_seeds(10); seed++)
		one_bad_day(state, seed);
}

/* For a summary: what is acknowledged stays until it was printed. */
static void kept_frames_stay_until_released(void **state)
{
	struct fake *f;
	struct rig rig;
	uint64_t bytes;

	rig_init(&rig, state);
	rig.config.keep = true;
	f = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "a")});
	rig_open_stream(&rig, "job");
	rig_start(&rig);
	rig_add_frames(&rig, 60, 30 * KIB);
	rig_end_stream(&rig);
	bytes = frame_disk_bytes(rig.folder);
	WAIT_FOR(&rig, now.own_acked == 62 && now.own_frames == 62);
	rig_pause_ms(300);
	assert_int_equal(frame_disk_bytes(rig.folder), bytes);
	assert_false(rig_stats(&rig).own_gone);
	hr_uplink_release(rig.uplink);
	WAIT_FOR(&rig, ALL_SENT && now.own_gone);
	assert_int_equal(frame_disk_bytes(rig.folder), 0);
	assert_int_equal(rig_stats(&rig).own_acked, 62);
	fake_stop(f);
	rig_done(&rig);
}

/* Killed before that: the next uplink removes what is acknowledged, and sends it to nobody else. */
static void acknowledged_frames_are_not_sent_again(void **state)
{
	struct fake_seen seen;
	struct fake *f;
	struct rig rig;

	rig_init(&rig, state);
	rig.config.keep = true;
	f = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "a")});
	rig_open_stream(&rig, "job");
	rig_start(&rig);
	rig_add_frames(&rig, 20, 30 * KIB);
	rig_end_stream(&rig);
	WAIT_FOR(&rig, now.own_acked == 22);
	rig_pause_ms(100);
	fake_stop(f);
	rig_done(&rig);
	rig_init(&rig, state);
	f = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "b")});
	rig_start(&rig);
	WAIT_FOR(&rig, ALL_SENT && now.connected);
	assert_int_equal(frame_disk_bytes(rig.folder), 0);
	fake_look(f, &seen);
	assert_int_equal(seen.opens, 0);
	fake_stop(f);
	rig_done(&rig);
}

/* ---- several collectors ---------------------------------------------------------------------------- */

/* The first one acknowledges half of it and dies: the second goes on there, and both together have all. */
static void both_stores_together_are_whole(void **state)
{
	const char *paths[2];
	struct frame_sums t;
	struct fake *a, *b;
	struct rig rig;

	rig_init(&rig, state);
	a = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "a")});
	b = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "b")});
	rig_open_stream(&rig, "job");
	rig_start(&rig);
	rig_add_frames(&rig, 60, 30 * KIB);
	WAIT_FOR(&rig, now.own_acked == 61);
	fake_stop(a);
	rig_add_frames(&rig, 60, 30 * KIB);
	WAIT_FOR(&rig, now.own_acked == 121 && now.connected);
	rig_end_stream(&rig);
	WAIT_FOR(&rig, ALL_SENT);
	fake_stop(b);
	paths[0] = rig_store(&rig, "a");
	paths[1] = rig_store(&rig, "b");
	frame_sum(&paths[0], 1, "job", &t);
	assert_int_equal(t.last_seq, 61);
	frame_sum(paths, 2, "job", &t);
	assert_int_equal(t.first_seq, 1);
	assert_int_equal(t.frames, 122);
	assert_true(t.ended);
	rig_done(&rig);
}

/* A collector that does not know how to begin in the middle: it is said, and nothing is removed. */
static void a_stream_that_cannot_go_on_there_is_set_aside(void **state)
{
	struct fake *a, *b;
	struct rig rig;

	rig_init(&rig, state);
	a = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "a")});
	b = rig_collector(&rig,
			  (struct fake_options){.store = rig_store(&rig, "b"), .no_skip = true});
	rig_open_stream(&rig, "job");
	rig_start(&rig);
	rig_add_frames(&rig, 60, 30 * KIB);
	WAIT_FOR(&rig, now.own_acked == 61);
	fake_stop(a);
	rig_add_frames(&rig, 10, 30 * KIB);
	WAIT_FOR(&rig, now.aside == 1 && now.frames == 10);
	assert_non_null(strstr(rig_stats(&rig).aside_text, "gap"));
	fake_stop(b);
	rig_done(&rig);
}

static void a_better_collector_is_gone_back_to(void **state)
{
	struct fake *a, *b;
	struct fake_seen seen;
	struct rig rig;
	uint16_t port = rig_dead_port();

	rig_init(&rig, state);
	rig.to[0] = (struct hr_address){.host = "127.0.0.1", .port = port};
	rig.config.n_collectors = 1;
	rig.config.better_ms = 300;
	b = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "b")});
	rig_open_stream(&rig, "job");
	rig_start(&rig);
	rig_add_frames(&rig, 3, KIB);
	WAIT_FOR(&rig, now.own_acked == 4);
	a = fake_start(&(struct fake_options){.store = rig_store(&rig, "a"), .port = port});
	for (seen.hellos = 0; !seen.hellos; fake_look(a, &seen))
		rig_pause_ms(20);
	rig_add_frames(&rig, 3, KIB);
	WAIT_FOR(&rig, now.own_acked == 7);
	fake_look(a, &seen);
	assert_int_equal(seen.opens, 1);
	fake_stop(a);
	fake_stop(b);
	rig_done(&rig);
}

/* The first one ends before it answers Open: the stream is opened at the second one. */
static void a_stream_that_was_not_opened_is_opened_elsewhere(void **state)
{
	struct fake *a, *b;
	struct fake_seen seen;
	struct rig rig;

	rig_init(&rig, state);
	a = rig_collector(
	    &rig, (struct fake_options){.store = rig_store(&rig, "a"), .never_opens = true});
	b = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "b")});
	rig_open_stream(&rig, "job");
	rig_start(&rig);
	WAIT_UNTIL_SEEN(a, seen.opens > 0);
	fake_stop(a);
	rig_add_frames(&rig, 3, KIB);
	WAIT_FOR(&rig, now.own_acked == 4);
	fake_stop(b);
	rig_done(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(a_stream_is_sent_as_it_grows),
	    CASE(what_earlier_daemons_left_is_sent),
	    CASE(hundreds_of_streams_are_sent),
	    CASE(bad_days),
	    CASE(kept_frames_stay_until_released),
	    CASE(acknowledged_frames_are_not_sent_again),
	    CASE(both_stores_together_are_whole),
	    CASE(a_stream_that_cannot_go_on_there_is_set_aside),
	    CASE(a_better_collector_is_gone_back_to),
	    CASE(a_stream_that_was_not_opened_is_opened_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
