/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs leave a store, when, and that what comes late is still known. The wall clock is the test's. */
#include "tests/collector/frames.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/retention.h"
#include "collector/retire.h"
#include "store/stream_state.h"
#include "store/writer.h"
#include "common/now.h"

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

/* The collector heard of the stream of job `job` and n1 then, and got no data. */
static void set_heard(const char *store, const char *job, uint64_t heard_ns)
{
	struct hr_stream_state s = {.heard_ns = heard_ns};
	char dir[2048];
	int fd;

	snprintf(dir, sizeof(dir), "%s/jobs/%s/n1.0000000000000001-0", store, job);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(hr_stream_state_write(fd, &s, false), 0);
	close(fd);
}

static void test_age(void **state)
{
	const char *store = help_path(state, "store");

	make(store, "idle", "n1", 300, false, START);
	set_heard(store, "idle", START + 2 * HOUR_NS);
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
	assert_true(there(store, "idle", "n1"));
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
	done = once(store, 0, UINT64_C(1) << 30);
	assert_int_equal(done.jobs, 0);
	done = once(store, 0, done.left_bytes - 1);
	assert_true(done.jobs == 1 && done.bytes > 0);
	assert_false(there(store, "b", "n1"));
	assert_true(there(store, "a", "n1") && there(store, "d", "n1"));
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
	for (unsigned i = 0; i < 2; i++) { /* one node has not ended: the job is not over */
		const char *job = i == 0 ? "first" : "second";

		make(store, job, "n1", 10, i == 0, START);
		make(store, job, "n2", 10, i == 1, START);
	}
	make(store, "ended", "n1", 1000, true, START + HOUR_NS);
	now_ns = START + 9 * HOUR_NS;
	assert_int_equal(once(store, 0, 60000).jobs, 1);
	assert_false(there(store, "ended", "n1"));
	assert_true(there(store, "silent", "n1") && there(store, "first", "n1") &&
		    there(store, "second", "n2"));
}

/* A late frame finds the mark; a new one goes on behind it. Whoever reads meanwhile has descriptors of their own. */
static void test_retired_goes_on(void **state)
{
	const char *store = help_path(state, "store");
	struct hr_stream_id id = help_id("n1");
	struct hr_stream_state s;
	struct hr_writer *w;
	struct frame f = frame_loss(300);
	const struct hr_stream *streams;
	struct hr_catalog *c;
	uint64_t last;
	size_t n;

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
	c = help_open(store, &streams, &n);
	assert_non_null(help_problem(c, "earlier data was removed on 2023-11-15 01:13 UTC"));
	hr_catalog_free(c);
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

/* ---- at the same time ------------------------------------------------------------------------- */

struct race {
	const char *store;
	atomic_bool over;
	pthread_t reader, retirer;
	unsigned looks, frames, retired;
	const char *wrong;
};

/* All that a query does with a stream: a segment may have gone, and nothing else may be amiss. */
static void read_stream(struct race *race, const struct hr_stream *s)
{
	for (uint32_t i = 0; i < s->n_frames; i++) {
		Headrace__Frame *msg;
		int r = hr_stream_read(s, i, &msg);

		if (i > 0 && s->frames[i].seq != s->frames[i - 1].seq + 1)
			race->wrong = "a stream has a gap";
		if (r < 0 && r != -EIO)
			race->wrong = "a frame cannot be read";
		if (r < 0)
			continue;
		if (msg->body_case == HEADRACE__FRAME__BODY_LOSS &&
		    msg->loss->rows[0]->count != s->frames[i].seq)
			race->wrong = "a frame is another one";
		headrace__frame__free_unpacked(msg, NULL);
		race->frames++;
	}
}

static void *read_on(void *self)
{
	struct race *race = self;

	do {
		const struct hr_stream *streams;
		struct hr_catalog *c;
		size_t n;

		if (hr_catalog_open(&race->store, 1, NULL, &c, NULL) < 0) {
			race->wrong = "the store cannot be opened";
			break;
		}
		n = hr_catalog_streams(c, &streams);
		for (size_t i = 0; i < n; i++)
			read_stream(race, &streams[i]);
		hr_catalog_free(c);
		race->looks++;
	} while (!race->over);
	return NULL;
}

static void *retire_on(void *self)
{
	struct race *race = self;
	const struct hr_retention_config config = {
	    .store = race->store, .age_ms = HOUR_MS, .size_bytes = 1, .real_ns = now};

	do {
		struct hr_retention_result done;

		if (hr_retention_once(&config, &done) < 0)
			race->wrong = "retention fails";
		race->retired += done.jobs;
	} while (!race->over);
	return NULL;
}

/* As ingest does it: `state` is there before the first frame, and written under the stream's lock. */
static struct hr_writer *begin_job(const char *store, const char *job)
{
	const struct hr_stream_state s = {.has_secret = true, .secret = {5}};
	struct hr_stream_id id = help_id("n1");
	struct hr_writer *w;
	int fd;

	id.job = job;
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	hr_writer_segment_bytes(w, 4096);
	fd = open(hr_writer_dir(w), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(hr_stream_state_write(fd, &s, false), 0);
	close(fd);
	return w;
}

static void append_losses(struct hr_writer *w, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(help_append_loss(w, hr_writer_mark(w) + 1), 0);
}

/* Jobs come, end, and go, while one goes on and somebody reads all the time. */
static void test_race(void **state)
{
	static struct race race; /* outlives a failure */
	struct hr_writer *w, *other;
	char job[16];

	race.store = help_path(state, "store");
	now_ns = hr_now_ns(CLOCK_REALTIME) + 3 * HOUR_NS;
	w = begin_job(race.store, "long");
	assert_int_equal(pthread_create(&race.reader, NULL, read_on, &race), 0);
	assert_int_equal(pthread_create(&race.retirer, NULL, retire_on, &race), 0);
	for (unsigned i = 0; i < 60; i++) {
		snprintf(job, sizeof(job), "%u", i);
		other = begin_job(race.store, job);
		append_losses(other, 200);
		append_losses(w, 50);
		assert_int_equal(hr_writer_close(other), 0);
	}
	race.over = true;
	pthread_join(race.reader, NULL);
	pthread_join(race.retirer, NULL);
	if (race.wrong)
		fail_msg("%s", race.wrong);
	assert_true(race.looks > 0 && race.frames > 0 && race.retired > 0);
	assert_int_equal(hr_writer_close(w), 0);
	frames_check(race.store, "long", "n1", 1 + 60 * 50);
}

static unsigned forgotten(const char *store, uint64_t age_ms, uint64_t forget_ms)
{
	const struct hr_retention_config config = {
	    .store = store, .age_ms = age_ms, .forget_ms = forget_ms, .real_ns = now};
	struct hr_retention_result done;

	assert_int_equal(hr_retention_once(&config, &done), 0);
	return done.forgotten;
}

static bool has_folder(const char *store, const char *job)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/jobs/%s", store, job);
	return access(path, F_OK) == 0;
}

/* First the data goes, then the mark: sooner of what had ended, and never of what has data or a writer. */
static void test_forgotten(void **state)
{
	const char *store = help_path(state, "store");
	struct hr_stream_id id = help_id("n1");
	struct hr_stream_state s;
	struct hr_writer *w;

	make(store, "ended", "n1", 300, true, START);
	make(store, "ended", "n2", 300, true, START);
	make(store, "lost", "n1", 300, false, START);
	make(store, "7", "n1", 300, true, START);
	make(store, "young", "n1", 300, true, START + 20 * HOUR_NS);
	now_ns = START + 3 * HOUR_NS;
	assert_int_equal(forgotten(store, 2 * HOUR_MS, 10 * HOUR_MS), 0); /* they are retired */
	assert_int_equal(frames_state(store, "lost", &s), 0);
	assert_true(s.retired && !s.ended && s.retired_ns == now_ns);
	assert_int_equal(frames_state(store, "7", &s), 0);
	assert_true(s.retired && s.ended);
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0); /* somebody is back */
	assert_int_equal(hr_writer_mark(w), 300);
	now_ns += 10 * HOUR_NS;
	assert_int_equal(forgotten(store, 2 * HOUR_MS, 10 * HOUR_MS), 0);
	assert_true(has_folder(store, "ended"));
	now_ns++;
	assert_int_equal(forgotten(store, 2 * HOUR_MS, 0), 0);
	assert_int_equal(forgotten(store, 2 * HOUR_MS, 10 * HOUR_MS), 2);
	assert_false(has_folder(store, "ended"));
	assert_true(has_folder(store, "lost") && has_folder(store, "7"));
	now_ns += 2 * HOUR_NS;
	assert_int_equal(forgotten(store, 2 * HOUR_MS, 10 * HOUR_MS), 1);
	assert_false(has_folder(store, "lost"));
	assert_true(there(store, "young", "n1"));
	assert_int_equal(hr_writer_close(w), 0);
	assert_true(has_folder(store, "7"));
}

/* One that came back for nothing has ended all the same; what is not ours keeps its folder. */
static void test_forgotten_later(void **state)
{
	const char *store = help_path(state, "store");
	struct hr_stream_id id = help_id("n1");
	struct hr_writer *w;
	char path[4096];

	make(store, "7", "n1", 300, true, START);
	make(store, "8", "n1", 300, true, START);
	now_ns = START + 3 * HOUR_NS;
	assert_int_equal(once(store, HOUR_MS, 0).jobs, 2);
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	assert_int_equal(hr_writer_close(w), 0);
	snprintf(path, sizeof(path), "%s/jobs/8/n1.0000000000000001-0/journal", store);
	help_write(path, (const uint8_t *)"x", 1);
	now_ns = UINT64_C(4000000000) * 1000000000;
	assert_int_equal(once(store, HOUR_MS, 0).jobs, 1);
	now_ns += 2 * HOUR_NS;
	assert_int_equal(forgotten(store, 24 * HOUR_MS, HOUR_MS), 1);
	assert_false(has_folder(store, "7"));
	assert_true(has_folder(store, "8"));
}

struct forgetter {
	int jobs_fd;
	atomic_bool over;
	atomic_uint forgotten;
};

/* Whatever nobody holds, at once. */
static void *forget_on(void *self)
{
	struct forgetter *f = self;

	while (!f->over)
		f->forgotten += hr__retire_forget(f->jobs_fd, "7", UINT64_MAX, UINT64_MAX);
	return NULL;
}

/* The writer that comes in between finds the stream, or none, or is told to try again; what it then writes is there. */
static void test_forgotten_under_a_writer(void **state)
{
	static struct forgetter f; /* outlives a failure */
	const char *store = help_path(state, "store");
	struct hr_stream_id id = help_id("n1");
	pthread_t thread;
	char path[4096];
	uint64_t bytes;

	snprintf(path, sizeof(path), "%s/jobs", store);
	make(store, "8", "n1", 3, true, START);
	f.jobs_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f.jobs_fd >= 0);
	assert_int_equal(pthread_create(&thread, NULL, forget_on, &f), 0);
	for (unsigned i = 0; i < 200 || (f.forgotten == 0 && i < 100000); i++) {
		struct hr_writer *w;
		int r = hr_writer_open(store, &id, &w, NULL);

		if (r == -ENOENT || r == -EBUSY)
			continue;
		assert_int_equal(r, 0);
		append_losses(w, 2);
		assert_false(hr_writer_removed(w));
		assert_int_equal(hr_writer_close(w), 0);
		(void)hr__retire_job(f.jobs_fd, "7", now_ns, &bytes);
	}
	f.over = true;
	pthread_join(thread, NULL);
	assert_true(f.forgotten > 0);
	close(f.jobs_fd);
}

#define T(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(test_age),
	    T(test_size),
	    T(test_ended_first),
	    T(test_retired_goes_on),
	    T(test_in_use),
	    T(test_stopped_half_way),
	    T(test_race),
	    T(test_forgotten),
	    T(test_forgotten_later),
	    T(test_forgotten_under_a_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
