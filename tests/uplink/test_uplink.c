/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a spool arrives exactly once, whatever the collector and the network do; what cannot be sent is said. */
#include "frames.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/uplink.h"
#include "fake_collector.h"
#include "tests/seeds.h"

#define KIB	1024u
#define WAIT_MS 30000u

struct rig {
	const char *folder;
	struct hr_spool *spool;
	struct hr_writer *writer;
	struct hr_uplink *uplink;
	struct hr_address to[2];
	struct hr_uplink_config config;
};

static const char *store(const struct rig *rig, const char *name)
{
	static char paths[4][300];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, 300, "%.*s/%s", (int)(strrchr(rig->folder, '/') - rig->folder), rig->folder,
		 name);
	return path;
}

static void rig_init(struct rig *rig, void **state)
{
	*rig = (struct rig){.folder = *state};
	assert_int_equal(hr_spool_new(rig->folder, 16u << 20, &rig->spool), 0);
	rig->config = (struct hr_uplink_config){.spool = rig->spool,
						.collectors = rig->to,
						.software = "test",
						.node = "n1",
						.boot_id = "boot",
						.recover_ms = HR_UPLINK_NEVER,
						.scan_ms = 100};
}

static void rig_done(struct rig *rig)
{
	hr_uplink_free(rig->uplink);
	if (rig->writer)
		assert_int_equal(hr_writer_close(rig->writer), 0);
	hr_spool_free(rig->spool);
}

static void open_stream(struct rig *rig, const char *job)
{
	struct hr_stream_id id = frame_stream(job, 1);

	assert_int_equal(hr_spool_open_stream(rig->spool, &id, &rig->writer), 0);
}

static void add_frames(struct rig *rig, unsigned n, size_t bytes)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(frame_append(rig->spool, rig->writer,
					      i % 3 ? FRAME_EVENTS : FRAME_ROLLUPS, bytes),
				 0);
}

static void end_stream(struct rig *rig)
{
	assert_int_equal(frame_append(rig->spool, rig->writer, FRAME_END, 0), 0);
	assert_int_equal(hr_writer_close(rig->writer), 0);
	rig->writer = NULL;
	hr_spool_closed(rig->spool);
}

/* A stream that an earlier daemon left. */
static void leave_stream(void **state, const char *job, unsigned n, size_t bytes)
{
	struct rig earlier;

	rig_init(&earlier, state);
	open_stream(&earlier, job);
	add_frames(&earlier, n, bytes);
	end_stream(&earlier);
	rig_done(&earlier);
}

static struct fake *collector(struct rig *rig, struct fake_options o)
{
	struct fake *f = fake_start(&o);
	struct fake_seen seen;

	fake_look(f, &seen);
	rig->to[rig->config.n_collectors] = (struct hr_address){.port = seen.port};
	snprintf(rig->to[rig->config.n_collectors++].host, HR_ADDRESS_HOST_BYTES, "127.0.0.1");
	return f;
}

/* A port where nobody listens. */
static uint16_t dead_port(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
	close(fd);
	return ntohs(at.sin_port);
}

static void start(struct rig *rig)
{
	char *error = NULL;

	assert_int_equal(hr_uplink_new(&rig->config, &rig->uplink, &error), 0);
	assert_null(error);
}

static struct hr_uplink_stats stats(const struct rig *rig)
{
	struct hr_uplink_stats s;

	hr_uplink_stats(rig->uplink, &s);
	return s;
}

static void pause_ms(unsigned ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

#define WAIT_FOR(rig, condition)                                                                   \
	do {                                                                                       \
		struct hr_uplink_stats now = stats(rig);                                           \
		for (unsigned ms_ = 0; !(condition); ms_ += 5, now = stats(rig)) {                 \
			if (ms_ > WAIT_MS)                                                         \
				fail_msg("%s: %u streams, %llu frames, %u aside (%s), error %s",   \
					 #condition, now.streams, (unsigned long long)now.frames,  \
					 now.aside, now.aside_text, now.error);                    \
			pause_ms(5);                                                               \
		}                                                                                  \
	} while (0)

#define ALL_SENT (now.looks > 1 && now.streams == 0 && now.unseen == 0 && now.frames == 0)

static void assert_arrived(const struct rig *rig, const char *job, uint64_t frames)
{
	const char *path = store(rig, "a");
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
	f = collector(&rig, (struct fake_options){.store = store(&rig, "a"), .ping_ms = 50});
	open_stream(&rig, "job");
	start(&rig);
	for (unsigned i = 0; i < 10; i++) {
		add_frames(&rig, 10, 30 * KIB);
		WAIT_FOR(&rig, now.own && now.own_acked == hr_writer_mark(rig.writer));
	}
	assert_true(stats(&rig).connected);
	assert_true(frame_disk_bytes(rig.folder) < 600 * KIB); /* what is acknowledged is gone */
	end_stream(&rig);
	WAIT_FOR(&rig, ALL_SENT && now.own_frames == 102 && now.own_acked == 102);
	assert_int_equal(frame_disk_bytes(rig.folder), 0);
	pause_ms(100);
	fake_look(f, &seen);
	assert_int_equal(seen.connections, 1);
	assert_int_equal(seen.opens, 1);
	assert_int_equal(seen.doubles, 0);
	assert_true(seen.pongs > 2);
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
		leave_stream(state, job, 60, 30 * KIB);
	}
	rig_init(&rig, state);
	f = collector(&rig, (struct fake_options){.store = store(&rig, "a"), .ack_late_ms = 20});
	start(&rig);
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

	for (unsigned i = 0; i < 500; i++) {
		snprintf(job, sizeof(job), "job%u", i);
		leave_stream(state, job, 1, 100);
	}
	rig_init(&rig, state);
	f = collector(&rig, (struct fake_options){.store = store(&rig, "a")});
	start(&rig);
	WAIT_FOR(&rig, ALL_SENT);
	assert_int_equal(frame_disk_bytes(rig.folder), 0);
	assert_int_equal(stats(&rig).sent_frames, 500 * 3);
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
	f = collector(&rig, (struct fake_options){.store = store(&rig, "a"),
						  .seed = seed,
						  .drop_per_mille = seed % 3 ? 10 : 0,
						  .forget_per_mille = seed % 5 ? 10 : 0,
						  .gap_per_mille = seed % 2 ? 10 : 0,
						  .full_per_mille = seed % 7 ? 0 : 50,
						  .ack_every = 1 + seed % 11,
						  .ping_ms = 40,
						  .window_bytes = seed % 4 ? 300 * KIB : 1});
	open_stream(&rig, "job");
	start(&rig);
	for (unsigned i = 0; i < 20; i++) {
		add_frames(&rig, (unsigned)rand() % 20, (size_t)rand() % (40 * KIB));
		pause_ms((unsigned)rand() % 4);
	}
	end_stream(&rig);
	WAIT_FOR(&rig, ALL_SENT);
	fake_stop(f);
	path = store(&rig, "a");
	frame_sum(&path, 1, "job", &before);
	assert_int_equal(before.first_seq, 1);
	assert_int_equal(before.last_seq, stats(&rig).own_frames);
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

/* ---- several collectors ---------------------------------------------------------------------------- */

/* The first one acknowledges half of it and dies: the second goes on there, and both together have all. */
static void both_stores_together_are_whole(void **state)
{
	const char *paths[2];
	struct frame_sums t;
	struct fake *a, *b;
	struct rig rig;

	rig_init(&rig, state);
	a = collector(&rig, (struct fake_options){.store = store(&rig, "a")});
	b = collector(&rig, (struct fake_options){.store = store(&rig, "b")});
	open_stream(&rig, "job");
	start(&rig);
	add_frames(&rig, 60, 30 * KIB);
	WAIT_FOR(&rig, now.own_acked == 61);
	fake_stop(a);
	add_frames(&rig, 60, 30 * KIB);
	WAIT_FOR(&rig, now.own_acked == 121 && now.connected);
	end_stream(&rig);
	WAIT_FOR(&rig, ALL_SENT);
	fake_stop(b);
	paths[0] = store(&rig, "a");
	paths[1] = store(&rig, "b");
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
	a = collector(&rig, (struct fake_options){.store = store(&rig, "a")});
	b = collector(&rig, (struct fake_options){.store = store(&rig, "b"), .no_skip = true});
	open_stream(&rig, "job");
	start(&rig);
	add_frames(&rig, 60, 30 * KIB);
	WAIT_FOR(&rig, now.own_acked == 61);
	fake_stop(a);
	add_frames(&rig, 10, 30 * KIB);
	WAIT_FOR(&rig, now.aside == 1 && now.frames == 10);
	assert_non_null(strstr(stats(&rig).aside_text, "gap"));
	fake_stop(b);
	rig_done(&rig);
}

static void a_better_collector_is_gone_back_to(void **state)
{
	struct fake *a, *b;
	struct fake_seen seen;
	struct rig rig;
	uint16_t port = dead_port();

	rig_init(&rig, state);
	rig.to[0] = (struct hr_address){.host = "127.0.0.1", .port = port};
	rig.config.n_collectors = 1;
	rig.config.better_ms = 300;
	b = collector(&rig, (struct fake_options){.store = store(&rig, "b")});
	open_stream(&rig, "job");
	start(&rig);
	add_frames(&rig, 3, KIB);
	WAIT_FOR(&rig, now.own_acked == 4);
	a = fake_start(&(struct fake_options){.store = store(&rig, "a"), .port = port});
	for (seen.hellos = 0; !seen.hellos; fake_look(a, &seen))
		pause_ms(20);
	add_frames(&rig, 3, KIB);
	WAIT_FOR(&rig, now.own_acked == 7);
	fake_look(a, &seen);
	assert_int_equal(seen.opens, 1);
	fake_stop(a);
	fake_stop(b);
	rig_done(&rig);
}

/* ---- what is not sent ------------------------------------------------------------------------------- */

static void refused_streams_are_set_aside(void **state)
{
	static const char *const reasons[] = {"denied", "malformed", "version", "behind",
					      "retired"};
	uint64_t bytes;

	leave_stream(state, "job", 3, KIB);
	bytes = frame_disk_bytes(*state);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		struct fake *f;
		struct rig rig;

		rig_init(&rig, state);
		f = collector(&rig,
			      (struct fake_options){.store = store(&rig, "a"), .nack = reasons[i]});
		start(&rig);
		WAIT_FOR(&rig, now.aside == 1 && now.streams == 0);
		assert_non_null(strstr(stats(&rig).aside_text, reasons[i]));
		assert_non_null(strstr(stats(&rig).aside_text, "job job of n1"));
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

	leave_stream(state, "job", 3, KIB);
	rig_init(&rig, state);
	f = collector(&rig, (struct fake_options){.store = store(&rig, "a"), .nack = reason});
	start(&rig);
	while (seen.opens < 3) {
		pause_ms(10);
		fake_look(f, &seen);
	}
	assert_int_equal(stats(&rig).aside, 0);
	assert_int_equal(stats(&rig).frames, 4 + 1);
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
		    "the collector takes no new stream now: because the test wants it");
}

/* The spool has lost its tail, and new frames would get numbers that the collector knows for others. */
static void a_stream_behind_its_mark_is_set_aside(void **state)
{
	struct fake *f;
	struct rig rig;

	rig_init(&rig, state);
	f = collector(&rig, (struct fake_options){.store = store(&rig, "a"), .opened_ahead = 1000});
	open_stream(&rig, "job");
	start(&rig);
	WAIT_FOR(&rig, now.aside == 1);
	assert_non_null(strstr(stats(&rig).aside_text, "behind"));
	fake_stop(f);
	rig_done(&rig);
	/* It has ended since: the collector has all of it, and more. */
	rig_init(&rig, state);
	f = collector(&rig, (struct fake_options){.store = store(&rig, "a"), .opened_ahead = 1000});
	start(&rig);
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

	leave_stream(state, "job", 3, KIB);
	rig_init(&rig, state);
	f = collector(&rig, (struct fake_options){
				.store = store(&rig, "a"), .nack = "behind", .nack_mark = 1000});
	start(&rig);
	WAIT_FOR(&rig, ALL_SENT);
	assert_int_equal(frame_disk_bytes(*state), 0);
	assert_int_equal(stats(&rig).aside, 0);
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
	f = collector(&rig, (struct fake_options){.store = store(&rig, "a")});
	open_stream(&rig, "job");
	assert_true(hr_spool_live(rig.spool, &live));
	snprintf(path, sizeof(path), "%s/%s/secret", rig.folder, live.folder);
	assert_int_equal(unlink(path), 0);
	start(&rig);
	WAIT_FOR(&rig, now.aside == 1 && now.connected);
	assert_non_null(strstr(stats(&rig).aside_text, "secret"));
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
	open_stream(&rig, "job");
	assert_true(hr_spool_live(rig.spool, &live));
	end_stream(&rig);
	rig_done(&rig);
	snprintf(path, sizeof(path), "%s/%s/journal", (char *)*state, live.folder);
	assert_true(close(open(path, O_CREAT | O_WRONLY, 0600)) == 0);
	rig_init(&rig, state);
	f = collector(&rig, (struct fake_options){.store = store(&rig, "a")});
	start(&rig);
	WAIT_FOR(&rig, now.looks > 1 && now.waiting_journals == 1);
	assert_int_equal(stats(&rig).streams, 0);
	assert_int_equal(unlink(path), 0);
	WAIT_FOR(&rig, ALL_SENT && now.sent_frames > 0 && now.waiting_journals == 0);
	assert_int_equal(frame_disk_bytes(*state), 0);
	fake_stop(f);
	rig_done(&rig);
}

/* ---- connections ------------------------------------------------------------------------------------ */

static void a_silent_collector_is_left(void **state)
{
	struct fake_seen seen = {0};
	struct fake *f;
	struct rig rig;

	rig_init(&rig, state);
	f = collector(
	    &rig, (struct fake_options){.store = store(&rig, "a"), .silent = true, .ping_ms = 50});
	open_stream(&rig, "job");
	start(&rig);
	while (seen.hellos < 2) {
		pause_ms(10);
		fake_look(f, &seen);
	}
	assert_non_null(strstr(stats(&rig).error, "nothing was heard"));
	fake_stop(f);
	rig_done(&rig);
}

/* It pings, and takes frames, and never says that it has them. */
static void a_collector_that_acknowledges_nothing_is_left(void **state)
{
	struct fake_seen seen = {0};
	struct fake *f;
	struct rig rig;

	rig_init(&rig, state);
	f = collector(&rig, (struct fake_options){
				.store = store(&rig, "a"), .never_acks = true, .ping_ms = 50});
	open_stream(&rig, "job");
	add_frames(&rig, 3, 1000);
	rig.config.owed_ms = 300;
	start(&rig);
	while (seen.hellos < 2) {
		pause_ms(10);
		fake_look(f, &seen);
	}
	assert_non_null(strstr(stats(&rig).error, "has acknowledged nothing"));
	fake_stop(f);
	rig_done(&rig);
}

static void other_versions_are_understood_or_said(void **state)
{
	struct fake *f;
	struct rig rig;

	rig_init(&rig, state);
	f = collector(&rig, (struct fake_options){.store = store(&rig, "a"), .version = 99});
	open_stream(&rig, "job");
	start(&rig);
	WAIT_FOR(&rig, now.failed_rounds > 1);
	assert_non_null(strstr(stats(&rig).error, "speaks version 99"));
	assert_false(stats(&rig).connected);
	fake_stop(f);
	rig_done(&rig);
	rig_init(&rig, state);
	f = collector(&rig, (struct fake_options){.store = store(&rig, "a"), .refusal = "version"});
	start(&rig);
	WAIT_FOR(&rig, now.failed_rounds > 1);
	assert_non_null(strstr(stats(&rig).error, "refuses (version): because the test wants it"));
	fake_stop(f);
	rig_done(&rig);
}

static void nobody_there_is_said_and_waited_for(void **state)
{
	struct fake *f;
	struct rig rig;
	uint16_t port = dead_port();

	rig_init(&rig, state);
	rig.to[0] = (struct hr_address){.host = "127.0.0.1", .port = port};
	rig.config.n_collectors = 1;
	open_stream(&rig, "job");
	add_frames(&rig, 5, KIB);
	start(&rig);
	WAIT_FOR(&rig, now.failed_rounds > 2 && now.frames == 6);
	assert_non_null(strstr(stats(&rig).error, "connection refused"));
	pause_ms(1500);
	assert_true(stats(&rig).oldest_ns > 1000000000u);
	f = fake_start(&(struct fake_options){.store = store(&rig, "a"), .port = port});
	WAIT_FOR(&rig, now.own_acked == 6 && now.failed_rounds == 0 && now.oldest_ns == 0);
	fake_stop(f);
	rig_done(&rig);
}

/* For a summary: what is acknowledged stays until it was printed. */
static void kept_frames_stay_until_released(void **state)
{
	struct fake *f;
	struct rig rig;
	uint64_t bytes;

	rig_init(&rig, state);
	rig.config.keep = true;
	f = collector(&rig, (struct fake_options){.store = store(&rig, "a")});
	open_stream(&rig, "job");
	start(&rig);
	add_frames(&rig, 60, 30 * KIB);
	end_stream(&rig);
	bytes = frame_disk_bytes(rig.folder);
	WAIT_FOR(&rig, now.own_acked == 62 && now.own_frames == 62);
	pause_ms(300);
	assert_int_equal(frame_disk_bytes(rig.folder), bytes);
	assert_false(stats(&rig).own_gone);
	hr_uplink_release(rig.uplink);
	WAIT_FOR(&rig, ALL_SENT && now.own_gone);
	assert_int_equal(frame_disk_bytes(rig.folder), 0);
	assert_int_equal(stats(&rig).own_acked, 62);
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
	f = collector(&rig, (struct fake_options){.store = store(&rig, "a")});
	open_stream(&rig, "job");
	start(&rig);
	add_frames(&rig, 20, 30 * KIB);
	end_stream(&rig);
	WAIT_FOR(&rig, now.own_acked == 22);
	pause_ms(100);
	fake_stop(f);
	rig_done(&rig);
	rig_init(&rig, state);
	f = collector(&rig, (struct fake_options){.store = store(&rig, "b")});
	start(&rig);
	WAIT_FOR(&rig, ALL_SENT && now.connected);
	assert_int_equal(frame_disk_bytes(rig.folder), 0);
	fake_look(f, &seen);
	assert_int_equal(seen.opens, 0);
	fake_stop(f);
	rig_done(&rig);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, frame_setup, frame_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(a_stream_is_sent_as_it_grows),
	    CASE(what_earlier_daemons_left_is_sent),
	    CASE(hundreds_of_streams_are_sent),
	    CASE(bad_days),
	    CASE(both_stores_together_are_whole),
	    CASE(a_stream_that_cannot_go_on_there_is_set_aside),
	    CASE(a_better_collector_is_gone_back_to),
	    CASE(refused_streams_are_set_aside),
	    CASE(streams_in_use_are_tried_again),
	    CASE(streams_beyond_a_limit_are_tried_again),
	    CASE(a_stream_behind_its_mark_is_set_aside),
	    CASE(an_ended_stream_behind_its_mark_is_done_with),
	    CASE(a_stream_without_its_secret_is_set_aside),
	    CASE(a_journal_is_waited_for),
	    CASE(a_silent_collector_is_left),
	    CASE(a_collector_that_acknowledges_nothing_is_left),
	    CASE(other_versions_are_understood_or_said),
	    CASE(nobody_there_is_said_and_waited_for),
	    CASE(kept_frames_stay_until_released),
	    CASE(acknowledged_frames_are_not_sent_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
