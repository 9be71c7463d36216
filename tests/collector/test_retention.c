/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs leave a store, when, and that what comes late is still known. The wall clock is the test's. */
#include "tests/collector/frames.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/server/retention.h"
#include "collector/stream_state.h"
#include "collector/writer.h"

#define HOUR_NS UINT64_C(3600000000000)
#define HOUR_MS UINT64_C(3600000)
#define START	(UINT64_C(1700000000) * 1000000000)

static uint64_t now_ns;

static uint64_t now(void)
{
	return now_ns;
}

static void set_times(const char *dir, uint64_t ns)
{
	const struct timespec t = {.tv_sec = (time_t)(ns / 1000000000)}, both[2] = {t, t};
	char path[4096];

	for (int i = 1; i < 100; i++) {
		snprintf(path, sizeof(path), "%s/%06d.seg", dir, i);
		if (utimensat(AT_FDCWD, path, both, 0) < 0)
			return;
	}
}

/* A stream of `frames` frames that was last heard of at `heard_ns`. Returns its folder. */
static void make(const char *store, const char *job, const char *node, uint64_t frames, bool ended,
		 uint64_t heard_ns)
{
	struct hr_stream_id id = help_id(node);
	struct hr_stream_state s = {
	    .has_secret = true, .secret = {5}, .heard_ns = heard_ns, .mark = frames};
	struct hr_writer *w;
	char dir[2048];
	int fd;

	id.job = job;
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	snprintf(dir, sizeof(dir), "%s", hr_writer_dir(w));
	hr_writer_segment_bytes(w, 4096);
	while (hr_writer_mark(w) < frames - ended)
		assert_int_equal(help_append_loss(w, hr_writer_mark(w) + 1), 0);
	if (ended)
		assert_int_equal(help_append_end(w), 0);
	assert_int_equal(hr_writer_close(w), 0);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(hr_stream_state_write(fd, &s, false), 0);
	close(fd);
	set_times(dir, heard_ns);
}

static bool there(const char *store, const char *job, const char *node)
{
	uint64_t last;

	frames_first(store, job, node, &last);
	return last > 0;
}

static struct hr_retention_result once(const char *store, uint64_t age_ms, uint64_t size)
{
	const struct hr_retention_config config = {
	    .store = store, .age_ms = age_ms, .size_bytes = size, .real_ns = now};
	struct hr_retention_result done;

	assert_int_equal(hr_retention_once(&config, &done), 0);
	return done;
}

static void test_age(void **state)
{
	const char *store = help_path(state, "store");

	make(store, "old", "n1", 300, true, START);
	make(store, "lost", "n1", 300, false, START); /* never said that it ended */
	make(store, "half", "n1", 300, true, START);
	make(store, "half", "n2", 300, false, START + 2 * HOUR_NS);
	make(store, "young", "n1", 300, true, START + 2 * HOUR_NS);
	now_ns = START + 3 * HOUR_NS;
	assert_int_equal(once(store, 0, 0).jobs, 0);
	assert_int_equal(once(store, 4 * HOUR_MS, 0).jobs, 0);
	assert_int_equal(once(store, 2 * HOUR_MS, 0).jobs, 2);
	assert_false(there(store, "old", "n1"));
	assert_false(there(store, "lost", "n1"));
	assert_true(there(store, "half", "n1") && there(store, "half", "n2"));
	assert_true(there(store, "young", "n1"));
	assert_int_equal(once(store, 2 * HOUR_MS, 0).jobs, 0); /* they are gone */
}

static void test_size(void **state)
{
	const char *store = help_path(state, "store");
	struct hr_retention_result done;

	make(store, "a", "n1", 1000, true, START + HOUR_NS);
	make(store, "b", "n1", 1000, true, START);
	make(store, "c", "n1", 1000, false, START - HOUR_NS); /* silent for two hours */
	make(store, "d", "n1", 1000, false, START + 3 * HOUR_NS / 2);
	now_ns = START + 3 * HOUR_NS / 2;
	assert_int_equal(once(store, 0, UINT64_C(1) << 30).jobs, 0);
	done = once(store, 0, 100000);
	assert_true(done.jobs > 0 && done.bytes > 0);
	assert_false(there(store, "b", "n1"));
	assert_true(there(store, "d", "n1"));
	once(store, 0, 1);
	assert_false(there(store, "a", "n1"));
	assert_false(there(store, "c", "n1"));
	assert_true(there(store, "d", "n1")); /* it may be a node that cannot reach us */
}

/* The ones that have ended go before the one that is only silent, whatever their age. */
static void test_ended_first(void **state)
{
	const char *store = help_path(state, "store");

	make(store, "silent", "n1", 1000, false, START);
	make(store, "ended", "n1", 1000, true, START + HOUR_NS);
	now_ns = START + 9 * HOUR_NS;
	assert_int_equal(once(store, 0, 60000).jobs, 1);
	assert_false(there(store, "ended", "n1"));
	assert_true(there(store, "silent", "n1"));
}

/* A late frame finds the mark; a new one goes on behind it. Whoever reads meanwhile has descriptors of their own. */
static void test_retired_goes_on(void **state)
{
	const char *store = help_path(state, "store");
	struct hr_stream_id id = help_id("n1");
	struct hr_stream_state s;
	struct hr_writer *w;
	struct frame f = frame_loss(300);
	uint64_t last;

	make(store, "7", "n1", 300, false, START);
	now_ns = START + 3 * HOUR_NS;
	assert_int_equal(once(store, HOUR_MS, 0).jobs, 1);
	assert_int_equal(frames_state(store, "7", &s), 0);
	assert_true(s.retired && s.has_secret);
	assert_int_equal(s.secret[0], 5);
	assert_int_equal(s.mark, 300);
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	assert_int_equal(hr_writer_mark(w), 300);
	assert_int_equal(hr_writer_append(w, f.buf, f.bytes), -EALREADY);
	free(f.buf);
	f = frame_loss(301);
	assert_int_equal(hr_writer_append(w, f.buf, f.bytes), 0);
	free(f.buf);
	assert_int_equal(hr_writer_close(w), 0);
	assert_int_equal(frames_first(store, "7", "n1", &last), 301);
	assert_int_equal(last, 301);
	assert_int_equal(once(store, HOUR_MS, 0).jobs, 0); /* just heard of */
	now_ns = UINT64_C(4000000000) * 1000000000;
	assert_int_equal(once(store, HOUR_MS, 0).jobs, 1);
	assert_int_equal(frames_state(store, "7", &s), 0);
	assert_int_equal(s.mark, 301);
}

/* A stream that has a writer stays, and with it its job. */
static void test_in_use(void **state)
{
	const char *store = help_path(state, "store");
	struct hr_stream_id id = help_id("n1");
	struct hr_writer *w;

	make(store, "7", "n1", 300, true, START);
	make(store, "7", "n2", 300, true, START);
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	now_ns = START + 3 * HOUR_NS;
	assert_int_equal(once(store, HOUR_MS, 1).jobs, 0);
	assert_int_equal(hr_writer_close(w), 0);
	assert_int_equal(once(store, HOUR_MS, 1).jobs, 1);
}

/* Stopped between the mark and the segments, it goes on with what is there. */
static void test_stopped_half_way(void **state)
{
	const char *store = help_path(state, "store");
	struct hr_stream_state s = {.has_secret = true, .retired = true, .mark = 300};
	struct hr_stream_id id = help_id("n1");
	struct hr_writer *w;
	char dir[2048], path[4096];
	int fd;

	make(store, "7", "n1", 300, false, START);
	snprintf(dir, sizeof(dir), "%s/jobs/7/n1.0000000000000001-0", store);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(hr_stream_state_write(fd, &s, true), 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/000001.seg", dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	assert_int_equal(hr_writer_mark(w), 300);
	assert_int_equal(hr_writer_close(w), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(test_age),	 T(test_size),
	    T(test_ended_first), T(test_retired_goes_on),
	    T(test_in_use),	 T(test_stopped_half_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
