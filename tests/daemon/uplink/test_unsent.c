/* SPDX-License-Identifier: Apache-2.0 */
/* What cannot be sent stays and is said: streams that are set aside or waited for, collectors that are left. */
#include "rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- what is not sent ------------------------------------------------------------------------------- */

static void refused_streams_are_set_aside(void **state)
{
	static const char *const reasons[] = {"denied", "malformed", "version", "behind",
					      "retired"};
	uint64_t bytes;

	rig_leave_stream(state, "job", 3, KIB);
	bytes = frame_disk_bytes(*state);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		struct fake *f;
		struct rig rig;

		rig_init(&rig, state);
		f = rig_collector(
		    &rig, (struct fake_options){.store = rig_store(&rig, "a"), .nack = reasons[i]});
		rig_start(&rig);
		WAIT_FOR(&rig, now.aside == 1 && now.streams == 0);
		assert_non_null(strstr(rig_stats(&rig).aside_text, reasons[i]));
		assert_non_null(strstr(rig_stats(&rig).aside_text, "job job of node n1"));
		fake_stop(f);
		rig_done(&rig);
		assert_int_equal(frame_disk_bytes(*state), bytes);
	}
}

/* For a while: asked again, and not set aside. `says`: what a person is told meanwhile; "": anything. */
static void tried_again(void **state, const char *reason, const char *says)
{
	struct fake_seen seen = {0};
	struct fake *f;
	struct rig rig;

	rig_leave_stream(state, "job", 3, KIB);
	rig_init(&rig, state);
	f = rig_collector(&rig,
			  (struct fake_options){.store = rig_store(&rig, "a"), .nack = reason});
	rig_start(&rig);
	WAIT_UNTIL_SEEN(f, seen.opens >= 3);
	assert_int_equal(rig_stats(&rig).aside, 0);
	assert_int_equal(rig_stats(&rig).frames, 4 + 1);
	WAIT_FOR(&rig, strcmp(now.error, says) == 0 || says[0] == '\0');
	fake_stop(f);
	rig_done(&rig);
}

static void streams_in_use_are_tried_again(void **state)
{
	tried_again(state, "in_use", "");
}

static void streams_beyond_a_limit_are_tried_again(void **state)
{
	tried_again(state, "limit",
		    "the collector accepts no new stream now: because the test wants it");
}

/* The spool has lost its tail, and new frames would get numbers that the collector knows for others. */
static void a_stream_behind_its_mark_is_set_aside(void **state)
{
	struct fake *f;
	struct rig rig;

	rig_init(&rig, state);
	f = rig_collector(
	    &rig, (struct fake_options){.store = rig_store(&rig, "a"), .opened_ahead = 1000});
	rig_open_stream(&rig, "job");
	rig_start(&rig);
	WAIT_FOR(&rig, now.aside == 1);
	assert_non_null(strstr(rig_stats(&rig).aside_text, "behind"));
	fake_stop(f);
	rig_done(&rig);
	/* It has ended since: the collector has all of it, and more. */
	rig_init(&rig, state);
	f = rig_collector(
	    &rig, (struct fake_options){.store = rig_store(&rig, "a"), .opened_ahead = 1000});
	rig_start(&rig);
	WAIT_FOR(&rig, ALL_SENT);
	assert_int_equal(frame_disk_bytes(*state), 0);
	fake_stop(f);
	rig_done(&rig);
}

/* The same, where the collector says so itself. */
static void an_ended_stream_behind_its_mark_is_done_with(void **state)
{
	struct fake *f;
	struct rig rig;

	rig_leave_stream(state, "job", 3, KIB);
	rig_init(&rig, state);
	f = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "a"),
						      .nack = "behind",
						      .nack_mark = 1000});
	rig_start(&rig);
	WAIT_FOR(&rig, ALL_SENT);
	assert_int_equal(frame_disk_bytes(*state), 0);
	assert_int_equal(rig_stats(&rig).aside, 0);
	fake_stop(f);
	rig_done(&rig);
}

static void a_stream_without_its_secret_is_set_aside(void **state)
{
	struct hr_spool_live live;
	struct fake_seen seen;
	struct fake *f;
	struct rig rig;
	char path[800];

	rig_init(&rig, state);
	f = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "a")});
	rig_open_stream(&rig, "job");
	assert_true(hr_spool_live(rig.spool, &live));
	snprintf(path, sizeof(path), "%s/%s/secret", rig.folder, live.folder);
	assert_int_equal(unlink(path), 0);
	rig_start(&rig);
	WAIT_FOR(&rig, now.aside == 1 && now.connected);
	assert_non_null(strstr(rig_stats(&rig).aside_text, "secret"));
	fake_look(f, &seen);
	assert_int_equal(seen.opens, 0);
	fake_stop(f);
	rig_done(&rig);
}

/* Its daemon was killed between the StreamStart and the secret: nothing was recorded, and nothing is sent. */
static void a_stream_that_never_began_is_removed(void **state)
{
	struct hr_stream_id id = {
	    .cluster = "c", .job = "job", .node = "n1", .boot_id = "b", .instance = 7};
	struct hr_writer *w;
	struct fake_seen seen;
	struct fake *f;
	struct rig rig;
	char folder[800];

	assert_int_equal(hr_writer_open(*state, &id, &w, NULL), 0);
	snprintf(folder, sizeof(folder), "%s", hr_writer_dir(w));
	hr_writer_abandon(w);
	assert_int_equal(access(folder, F_OK), 0);
	rig_init(&rig, state);
	f = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "a")});
	rig_start(&rig);
	WAIT_FOR(&rig, ALL_SENT);
	assert_int_equal(rig_stats(&rig).aside, 0);
	assert_int_equal(access(folder, F_OK), -1);
	fake_look(f, &seen);
	assert_int_equal(seen.opens, 0);
	fake_stop(f);
	rig_done(&rig);
}

/* A journal without a daemon: somebody may come back to it. */
static void a_journal_is_waited_for(void **state)
{
	struct hr_spool_live live;
	struct fake *f;
	struct rig rig;
	char path[800];

	rig_init(&rig, state);
	rig_open_stream(&rig, "job");
	assert_true(hr_spool_live(rig.spool, &live));
	rig_end_stream(&rig);
	rig_done(&rig);
	snprintf(path, sizeof(path), "%s/%s/journal", (char *)*state, live.folder);
	assert_true(close(open(path, O_CREAT | O_WRONLY, 0600)) == 0);
	rig_init(&rig, state);
	f = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "a")});
	rig_start(&rig);
	WAIT_FOR(&rig, now.searches > 1 && now.waiting_journals == 1);
	assert_int_equal(rig_stats(&rig).streams, 0);
	assert_int_equal(unlink(path), 0);
	WAIT_FOR(&rig, ALL_SENT && now.sent_frames > 0 && now.waiting_journals == 0);
	assert_int_equal(frame_disk_bytes(*state), 0);
	fake_stop(f);
	rig_done(&rig);
}

/* A journal that no daemon has come back to for long enough is recovered, and its stream is sent. */
static void an_orphan_is_recovered(void **state)
{
	struct hr_spool_live live;
	struct fake *f;
	struct rig rig;
	char path[800];

	rig_init(&rig, state);
	rig_open_stream(&rig, "job");
	assert_true(hr_spool_live(rig.spool, &live));
	rig_done(&rig);
	snprintf(path, sizeof(path), "%s/%s/journal", (char *)*state, live.folder);
	assert_true(close(open(path, O_CREAT | O_WRONLY, 0600)) == 0);
	for (int late = 0; late < 2; late++) {
		rig_init(&rig, state);
		rig.config.recover_ms = late ? 1 : 3600000;
		f = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "a")});
		rig_start(&rig);
		if (late) {
			WAIT_FOR(&rig,
				 ALL_SENT && now.sent_frames > 0 && now.waiting_journals == 0);
			assert_int_equal(access(path, F_OK), -1);
		} else {
			WAIT_FOR(&rig, now.searches > 3 && now.waiting_journals == 1);
			assert_int_equal(rig_stats(&rig).sent_frames, 0);
			assert_int_equal(access(path, F_OK), 0);
		}
		fake_stop(f);
		rig_done(&rig);
	}
	assert_int_equal(frame_disk_bytes(*state), 0);
}

/* ---- connections ------------------------------------------------------------------------------------ */

static void a_silent_collector_is_left(void **state)
{
	struct fake_seen seen = {0};
	struct fake *f;
	struct rig rig;

	rig_init(&rig, state);
	f = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "a"),
						      .silent = true,
						      .promised_ms = 50});
	rig_open_stream(&rig, "job");
	rig_start(&rig);
	WAIT_UNTIL_SEEN(f, seen.hellos >= 2);
	assert_non_null(strstr(rig_stats(&rig).error, "has sent nothing"));
	fake_stop(f);
	rig_done(&rig);
}

/* It pings, and does not answer. */
static void is_left(void **state, struct fake_options o)
{
	struct fake_seen seen = {0};
	struct fake *f;
	struct rig rig;

	rig_init(&rig, state);
	o.store = rig_store(&rig, "a");
	o.ping_ms = 50;
	f = rig_collector(&rig, o);
	rig_open_stream(&rig, "job");
	rig_add_frames(&rig, 3, 1000);
	rig.config.owed_ms = 300;
	rig_start(&rig);
	WAIT_UNTIL_SEEN(f, seen.hellos >= 2);
	assert_non_null(strstr(rig_stats(&rig).error, "has acknowledged nothing"));
	fake_stop(f);
	rig_done(&rig);
}

static void a_collector_that_acknowledges_nothing_is_left(void **state)
{
	is_left(state, (struct fake_options){.never_acks = true});
}

static void a_collector_that_opens_nothing_is_left(void **state)
{
	is_left(state, (struct fake_options){.never_opens = true});
}

/* Without a stream, no answer is owed. In each tick, the uplink looks at the connection, then searches. */
static void an_idle_connection_stays(void **state)
{
	struct fake_seen seen;
	unsigned searches;
	struct fake *f;
	struct rig rig;

	rig_init(&rig, state);
	f = rig_collector(&rig, (struct fake_options){.store = rig_store(&rig, "a")});
	rig.config.owed_ms = 1;
	rig_start(&rig);
	WAIT_FOR(&rig, now.connected);
	searches = rig_stats(&rig).searches;
	WAIT_FOR(&rig, now.searches >= searches + 4);
	assert_string_equal(rig_stats(&rig).error, "");
	assert_true(rig_stats(&rig).connected);
	fake_look(f, &seen);
	assert_int_equal(seen.hellos, 1);
	fake_stop(f);
	rig_done(&rig);
}

static void other_versions_are_understood_or_said(void **state)
{
	struct fake *f;
	struct rig rig;

	rig_init(&rig, state);
	f = rig_collector(&rig,
			  (struct fake_options){.store = rig_store(&rig, "a"), .version = 99});
	rig_open_stream(&rig, "job");
	rig_start(&rig);
	WAIT_FOR(&rig, now.failed_rounds > 1);
	assert_non_null(strstr(rig_stats(&rig).error, "uses version 99"));
	assert_false(rig_stats(&rig).connected);
	fake_stop(f);
	rig_done(&rig);
	rig_init(&rig, state);
	f = rig_collector(
	    &rig, (struct fake_options){.store = rig_store(&rig, "a"), .refusal = "version"});
	rig_start(&rig);
	WAIT_FOR(&rig, now.failed_rounds > 1);
	assert_non_null(strstr(rig_stats(&rig).error,
			       "refuses the connection (version): because the test wants it"));
	fake_stop(f);
	rig_done(&rig);
}

/* Of more frames than the uplink keeps times for, the oldest one stays the oldest. */
static void the_oldest_frame_waits_the_longest(void **state)
{
	uint64_t before_ns = 0;
	struct rig rig;

	rig_init(&rig, state);
	rig.to[0] = (struct hr_address){.host = "127.0.0.1", .port = rig_dead_port()};
	rig.config.n_collectors = 1;
	rig.config.waiting_ms = 1;
	rig_open_stream(&rig, "job");
	rig_start(&rig);
	for (unsigned i = 0; i < 40; i++) {
		WAIT_FOR(&rig, now.frames == i + 1 && now.oldest_ns > 0);
		assert_true(rig_stats(&rig).oldest_ns >= before_ns);
		before_ns = rig_stats(&rig).oldest_ns;
		rig_pause_ms(2);
		rig_add_frames(&rig, 1, 100);
	}
	rig_done(&rig);
}

static void nobody_there_is_said_and_waited_for(void **state)
{
	struct fake *f;
	struct rig rig;
	uint16_t port = rig_dead_port();

	rig_init(&rig, state);
	rig.to[0] = (struct hr_address){.host = "127.0.0.1", .port = port};
	rig.config.n_collectors = 1;
	rig_open_stream(&rig, "job");
	rig_add_frames(&rig, 5, KIB);
	rig_start(&rig);
	WAIT_FOR(&rig, now.failed_rounds > 2 && now.frames == 6);
	assert_non_null(strstr(rig_stats(&rig).error, "connection refused"));
	WAIT_FOR(&rig, now.oldest_ns > 1000000000u);
	f = fake_start(&(struct fake_options){.store = rig_store(&rig, "a"), .port = port});
	WAIT_FOR(&rig, now.own_acked == 6 && now.failed_rounds == 0 && now.oldest_ns == 0);
	fake_stop(f);
	rig_done(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(refused_streams_are_set_aside),
	    CASE(streams_in_use_are_tried_again),
	    CASE(streams_beyond_a_limit_are_tried_again),
	    CASE(a_stream_behind_its_mark_is_set_aside),
	    CASE(an_ended_stream_behind_its_mark_is_done_with),
	    CASE(a_stream_without_its_secret_is_set_aside),
	    CASE(a_stream_that_never_began_is_removed),
	    CASE(a_journal_is_waited_for),
	    CASE(an_orphan_is_recovered),
	    CASE(a_silent_collector_is_left),
	    CASE(a_collector_that_acknowledges_nothing_is_left),
	    CASE(a_collector_that_opens_nothing_is_left),
	    CASE(an_idle_connection_stays),
	    CASE(other_versions_are_understood_or_said),
	    CASE(the_oldest_frame_waits_the_longest),
	    CASE(nobody_there_is_said_and_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
