/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/store/help.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/stream_state.h"
#include "store/writer.h"
#include "tests/bench/generate.h"

/* The same answers while it is written, after a kill (no footer), and sealed. */
static void open_and_sealed_segments_answer_alike(void **state)
{
	const char *store = help_path(state, "s");
	const struct hr_stream *s;
	struct hr_writer *w = help_writer(store, "n1");
	struct hr_catalog *c;
	size_t n;

	help_append_small(w);
	c = help_open(store, &s, &n);
	assert_int_equal(n, 1);
	help_check_small(s);
	assert_true(s->live);
	assert_int_equal(help_problems(c), 0);
	hr_catalog_free(c);

	assert_int_equal(hr_writer_close(w), 0);
	c = help_open(store, &s, &n);
	help_check_small(s);
	assert_false(s->live);
	assert_int_equal(help_problems(c), 0);
	hr_catalog_free(c);
}

static void many_segments(void **state)
{
	const char *store = help_path(state, "s");
	const struct hr_stream *s;
	struct hr_file_info info;
	struct hr_writer *w = help_writer(store, "n1");
	struct hr_catalog *c;
	size_t n;

	hr_writer_segment_bytes(w, 2000);
	for (uint32_t i = 0; i < 40; i++) {
		assert_int_equal(help_append_paths(w, 1 + i * 10, 10, false), 0);
		assert_int_equal(help_append_batch(w, i, 50, 1000 + i), 0);
	}
	c = help_open(store, &s, &n); /* the last one still open */
	assert_int_equal(help_problems(c), 0);
	assert_int_equal(s->n_frames, 81);
	assert_int_equal(s->bytes, hr_writer_bytes(w));
	assert_true(s->frames[80].segment > 2);
	assert_int_equal(s->n_batches, 40);
	for (uint32_t id = 1; id <= 400; id++) {
		char text[32];
		int length = snprintf(text, sizeof(text), "/data/%u", id);

		assert_int_equal(hr_stream_file(s, id, true, &info), 0);
		assert_int_equal(info.path_bytes, length);
		assert_memory_equal(info.path, text, (size_t)length);
	}
	hr_catalog_free(c);
	assert_int_equal(hr_writer_close(w), 0);
}

/*
 * A row without text borrows that of another file with its hash, and gets its own when that comes
 * later.
 */
static void text_that_comes_elsewhere(void **state)
{
	const char *store = help_path(state, "s");
	const struct hr_stream *s;
	struct hr_file_info info;
	struct hr_writer *w = help_writer(store, "n1");
	struct hr_catalog *c;
	size_t n;

	assert_int_equal(help_append_paths(w, 1, 3, true), 0);
	assert_int_equal(help_append_paths(w, 2, 1, false), 0);
	for (int sealed = 0; sealed < 2; sealed++) {
		c = help_open(store, &s, &n);
		assert_int_equal(hr_stream_file(s, 2, true, &info), 0);
		assert_memory_equal(info.path, "/data/2", 7);
		assert_int_equal(hr_stream_file(s, 1, false, &info), 0);
		assert_int_equal(hr_stream_file(s, 1, true, &info), -ENOENT);
		hr_catalog_free(c);
		if (!sealed)
			assert_int_equal(hr_writer_close(w), 0);
	}
}

struct path_row {
	uint32_t id;
	uint64_t hash;
	const char *path;
};

static void append_rows(struct hr_writer *w, const struct path_row *of, size_t n)
{
	struct build b = {.writer = w};
	Headrace__Path rows[8];

	for (size_t i = 0; i < n; i++)
		rows[i] = (Headrace__Path){.id = of[i].id,
					   .hash = of[i].hash,
					   .mount = 1,
					   .path = build_bytes(of[i].path)};
	build_paths(&b, rows, n, NULL, 0);
}

struct each_path {
	const struct hr_stream *s;
	uint32_t n, last, stop_at;
};

static int see_path(void *context, uint32_t number, const struct hr_file_info *info)
{
	struct each_path *each = context;
	struct hr_file_info same;

	assert_int_equal(hr_stream_file_at(each->s, number, true, &same), 0);
	assert_int_equal(info->id, same.id);
	assert_int_equal(info->hash, same.hash);
	assert_int_equal(info->path_bytes, same.path_bytes);
	assert_memory_equal(info->path, same.path, same.path_bytes);
	assert_true(number > each->last);
	each->last = number;
	return ++each->n == each->stop_at ? 7 : 0;
}

/* A pass over all paths gives those that each file has by itself: `n` of them. */
static void each_path_is_the_same(const struct hr_stream *s, uint32_t n)
{
	struct each_path each = {.s = s};

	assert_int_equal(hr_stream_each_path(s, see_path, &each), 0);
	assert_int_equal(each.n, n);
	each = (struct each_path){.s = s, .stop_at = 2};
	assert_int_equal(hr_stream_each_path(s, see_path, &each), 7);
	assert_int_equal(each.n, 2);
}

/* Rows without text borrow it by their hashes, which are in no order, as ids need not be 1, 2, 3... */
static void text_of_the_same_hash(void **state)
{
	static const struct path_row rows[] = {
	    {3, 70, "/c"}, {5, 10, "/a"}, {6, 50, "/e"}, {9, 30, "/b"}, {20, 90, "/d"}};
	static const struct path_row bare[] = {{40, 10, ""}, {41, 90, ""}, {43, 50, ""},
					       {47, 70, ""}, {60, 30, ""}, {61, 20, ""},
					       {62, 95, ""}, {63, 5, ""}};
	const char *store = help_path(state, "s");
	const struct hr_stream *s;
	struct hr_file_info info;
	struct hr_writer *w = help_writer(store, "n1");
	struct hr_catalog *c;
	size_t n;

	append_rows(w, rows, 5);
	append_rows(w, bare, 8);
	for (int sealed = 0; sealed < 2; sealed++) {
		c = help_open(store, &s, &n);
		for (unsigned i = 0; i < 5; i++) {
			const char *path = NULL;

			for (unsigned k = 0; k < 5; k++)
				if (rows[k].hash == bare[i].hash)
					path = rows[k].path;
			assert_int_equal(hr_stream_file(s, bare[i].id, true, &info), 0);
			assert_int_equal(info.path_bytes, 2);
			assert_memory_equal(info.path, path, 2);
			assert_int_equal(info.hash, bare[i].hash);
			assert_int_equal(hr_stream_file(s, rows[i].id, true, &info), 0);
			assert_memory_equal(info.path, rows[i].path, 2);
		}
		for (unsigned i = 5; i < 8; i++) /* no file with text has this hash */
			assert_int_equal(hr_stream_file(s, bare[i].id, true, &info), -ENOENT);
		assert_int_equal(hr_stream_file(s, 1, false, &info), -ENOENT);
		assert_int_equal(hr_stream_file(s, 10, false, &info), -ENOENT);
		assert_int_equal(hr_stream_file(s, 64, false, &info), -ENOENT);
		assert_int_equal(hr_stream_file_number(s, 3), 1);
		assert_int_equal(hr_stream_file_number(s, 63), 13);
		assert_int_equal(hr_stream_file_at(s, 6, true, &info), 0);
		assert_memory_equal(info.path, "/a", 2);
		assert_int_equal(hr_stream_file_at(s, 0, true, &info), -ENOENT);
		assert_int_equal(hr_stream_file_at(s, 14, true, &info), -ENOENT);
		each_path_is_the_same(s, 10);
		hr_catalog_free(c);
		if (!sealed)
			assert_int_equal(hr_writer_close(w), 0);
	}
}

/* ---- many streams ---------------------------------------------------------------------------- */

static void jobs_are_selected(void **state)
{
	const char *store = help_path(state, "s");
	const struct hr_stream *s;
	struct hr_stream_id id = help_id("n1");
	struct hr_catalog *c;
	struct hr_writer *w;

	id.job = "b 1";
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	assert_int_equal(hr_writer_close(w), 0);
	assert_int_equal(hr_writer_close(help_writer(store, "n2")), 0);
	assert_int_equal(hr_writer_close(help_writer(store, "n1")), 0);
	assert_int_equal(
	    hr_catalog_open(&store, 1, &(const struct hr_catalog_filter){.job = "7"}, &c, NULL), 0);
	assert_int_equal(hr_catalog_streams(c, &s), 2);
	assert_string_equal(s[0].node, "n1");
	assert_string_equal(s[1].node, "n2");
	hr_catalog_free(c);
	assert_int_equal(
	    hr_catalog_open(&store, 1, &(const struct hr_catalog_filter){.job = "b 1"}, &c, NULL),
	    0);
	assert_int_equal(hr_catalog_streams(c, &s), 1);
	hr_catalog_free(c);
	assert_int_equal(hr_catalog_open(&store, 1, NULL, &c, NULL), 0);
	assert_int_equal(hr_catalog_streams(c, &s), 3);
	hr_catalog_free(c);
}

/* How often the folder itself and each file in it was opened since `watch` began; ends it. */
static unsigned count_opens(int watch)
{
	_Alignas(struct inotify_event) char buf[4096];
	unsigned opens = 0;
	ssize_t n;

	while ((n = read(watch, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n; opens++)
			at += (ssize_t)sizeof(struct inotify_event) +
			      ((const struct inotify_event *)(const void *)(buf + at))->len;
	close(watch);
	return opens;
}

static int watch_opens(const char *folder)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	assert_true(watch >= 0);
	assert_true(inotify_add_watch(watch, folder, IN_OPEN | IN_MASK_CREATE) >= 0);
	return watch;
}

/* A query of many jobs costs what these system calls cost: it opens the folder, the lock and the segment once each. */
static void each_file_is_opened_once(void **state)
{
	const char *store = help_path(state, "s");
	const char *folder = help_path(state, "s/jobs/7/n1.0000000000000001-0");
	struct hr_writer *w = help_writer(store, "n1");
	const struct hr_stream *s;
	struct hr_catalog *c;
	size_t n;
	int watch;

	help_append_small(w);
	assert_int_equal(hr_writer_close(w), 0);
	watch = watch_opens(folder);
	c = help_open(store, &s, &n);
	help_check_small(s);
	for (uint32_t i = 0; i < s->n_frames; i++) {
		Headrace__Frame *msg;

		assert_int_equal(hr_stream_read(s, i, &msg), 0);
		headrace__frame__free_unpacked(msg, NULL);
	}
	hr_catalog_free(c);
	assert_int_equal(count_opens(watch), 3);
}

static void other_jobs_are_not_opened(void **state)
{
	const char *store = help_path(state, "s");
	struct hr_stream_id id = help_id("n1");
	struct hr_catalog *c;
	struct hr_writer *w;
	int watch;

	id.job = "8";
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	assert_int_equal(hr_writer_close(w), 0);
	assert_int_equal(hr_writer_close(help_writer(store, "n1")), 0);
	watch = watch_opens(help_path(state, "s/jobs/8"));
	assert_int_equal(
	    hr_catalog_open(&store, 1, &(const struct hr_catalog_filter){.job = "7"}, &c, NULL), 0);
	hr_catalog_free(c);
	assert_int_equal(count_opens(watch), 0);
}

static bool has_journals(const char *store, const char *job)
{
	struct hr_catalog *c;
	bool has;

	assert_int_equal(
	    hr_catalog_open(&store, 1, &(const struct hr_catalog_filter){.job = job}, &c, NULL), 0);
	has = hr_catalog_journals(c);
	hr_catalog_free(c);
	return has;
}

/* A journal waits for its replay once its writer is gone. It concerns the queries of its own job. */
static void journals_of_killed_daemons_are_found(void **state)
{
	const char *store = help_path(state, "s");
	struct hr_writer *w = help_writer(store, "n1");

	help_append_small(w);
	assert_false(has_journals(store, NULL));
	help_write(help_path(state, "s/jobs/7/n1.0000000000000001-0/journal"), (const uint8_t *)"",
		   0);
	assert_false(has_journals(store, NULL));
	assert_int_equal(hr_writer_close(w), 0);
	assert_true(has_journals(store, NULL));
	assert_true(has_journals(store, "7"));
	assert_false(has_journals(store, "8"));
}

/* One of several folders has a journal: those that are read after it do not hide it. */
static void a_journal_among_others_is_found(void **state)
{
	const char *store = help_path(state, "s");

	assert_int_equal(hr_writer_close(help_writer(store, "n0")), 0);
	assert_int_equal(hr_writer_close(help_writer(store, "n1")), 0);
	assert_int_equal(hr_writer_close(help_writer(store, "n2")), 0);
	assert_false(has_journals(store, "7"));
	help_write(help_path(state, "s/jobs/7/n1.0000000000000001-0/journal"), (const uint8_t *)"",
		   0);
	assert_true(has_journals(store, NULL));
	assert_true(has_journals(store, "7"));
}

/* Two stores that each got a part of a stream, and some frames both: every frame once. */
static void streams_of_two_stores_are_one(void **state)
{
	const char *stores[] = {help_path(state, "s"), help_path(state, "t")};
	const struct hr_stream *s;
	struct hr_writer *w = help_writer(stores[0], "n1"), *other;
	struct hr_catalog *c;

	other = help_writer(stores[1], "n1");
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(help_append_batch(w, 1, 10, 100 * i), 0);
		assert_int_equal(help_append_batch(other, 1, 10, 100 * i), 0);
	}
	assert_int_equal(hr_writer_close(w), 0);
	assert_int_equal(help_append_batch(other, 1, 10, 500), 0);
	assert_int_equal(help_append_end(other), 0);
	assert_int_equal(hr_writer_close(other), 0);
	assert_int_equal(hr_catalog_open(stores, 2, NULL, &c, NULL), 0);
	assert_int_equal(hr_catalog_streams(c, &s), 1);
	assert_int_equal(s->n_frames, 7);
	assert_int_equal(s->n_batches, 5);
	assert_int_equal(s->last_seq, 7);
	assert_true(s->ended);
	assert_int_equal(help_problems(c), 0);
	hr_catalog_free(c);
}

/* A node that went to another collector: the state of the one that heard it last counts. */
static void the_latest_state_counts(void **state)
{
	static const uint64_t heard_ns[] = {200, 100};
	const char *stores[] = {help_path(state, "s"), help_path(state, "t")};
	const struct hr_stream *s;
	struct hr_catalog *c;

	for (unsigned i = 0; i < 2; i++) {
		const struct hr_stream_state known = {.heard_ns = heard_ns[i], .connected = i == 0};
		struct hr_writer *w = help_writer(stores[i], "n1");

		assert_int_equal(hr_stream_state_write(hr_writer_dir_fd(w), &known, false), 0);
		assert_int_equal(hr_writer_close(w), 0);
	}
	assert_int_equal(hr_catalog_open(stores, 2, NULL, &c, NULL), 0);
	assert_int_equal(hr_catalog_streams(c, &s), 1);
	assert_int_equal(s->heard_ns, 200);
	assert_true(s->connected);
	hr_catalog_free(c);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *read_files(void *context)
{
	const struct hr_stream *s = context;
	struct hr_file_info info;
	uintptr_t wrong = 0;
	uint32_t n = 0;

	wrong += hr_stream_files(s, &n) < 0;
	for (uint32_t id = 1; id <= n; id++)
		wrong += hr_stream_file(s, id, true, &info) < 0 || info.path_bytes < 7 ||
			 info.hash != id * 8;
	for (uint32_t b = 0; b < s->n_batches; b++) {
		Headrace__Frame *msg;

		wrong += hr_stream_read(s, s->batches[b].frame, &msg) < 0;
		headrace__frame__free_unpacked(msg, NULL);
	}
	return (void *)wrong;
}

static void many_threads(void **state)
{
	const char *store = help_path(state, "s");
	const struct hr_stream *s;
	struct hr_writer *w = help_writer(store, "n1");
	struct hr_catalog *c;
	pthread_t threads[4];
	size_t n;

	hr_writer_segment_bytes(w, 5000);
	for (uint32_t i = 0; i < 30; i++) {
		assert_int_equal(help_append_paths(w, 1 + i * 50, 50, false), 0);
		assert_int_equal(help_append_batch(w, i, 50, 1000 + i), 0);
	}
	assert_int_equal(hr_writer_close(w), 0);
	c = help_open(store, &s, &n);
	for (unsigned t = 0; t < 4; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, read_files, (void *)s), 0);
	for (unsigned t = 0; t < 4; t++) {
		void *wrong;

		assert_int_equal(pthread_join(threads[t], &wrong), 0);
		assert_null(wrong);
	}
	hr_catalog_free(c);
}

static void *write_frames(void *context)
{
	struct hr_writer *w = context;

	for (uint32_t i = 0; i < 300; i++)
		help_append_paths(w, 1 + i, 1, false);
	return NULL;
}

/*
 * Opening again and again beside a writer that fills segment after segment: whole frames, no
 * problems.
 */
static void beside_a_writer(void **state)
{
	const char *store = help_path(state, "s");
	struct hr_writer *w = help_writer(store, "n1");
	uint64_t seen = 0;
	pthread_t thread;

	hr_writer_segment_bytes(w, 2000);
	assert_int_equal(pthread_create(&thread, NULL, write_frames, w), 0);
	while (seen < 301) {
		const struct hr_stream *s;
		struct hr_file_info info;
		struct hr_catalog *c;
		size_t n;

		c = help_open(store, &s, &n);
		assert_int_equal(n, 1);
		assert_int_equal(help_problems(c), 0);
		assert_int_equal(s->n_frames, s->last_seq);
		assert_true(s->last_seq >= seen);
		seen = s->last_seq;
		if (seen > 1) {
			assert_int_equal(hr_stream_file(s, (uint32_t)seen - 1, true, &info), 0);
		}
		hr_catalog_free(c);
	}
	pthread_join(thread, NULL);
	assert_int_equal(hr_writer_close(w), 0);
}

/* The store of the benches holds what its generator says. */
static void generated_store(void **state)
{
	const char *store = help_path(state, "g");
	struct hr_gen_config config = HR_GEN_CONFIG(200000);
	const struct hr_stream *s;
	struct hr_file_info info;
	uint32_t files;
	struct hr_catalog *c;
	uint64_t events = 0;
	size_t n;

	config.nodes = 2;
	config.paths = 3000;
	config.batch_events = 30000;
	hr_gen_store(&config, store, "bench");
	c = help_open(store, &s, &n);
	assert_int_equal(n, 2);
	assert_int_equal(help_problems(c), 0);
	for (size_t i = 0; i < n; i++) {
		assert_true(s[i].ended);
		assert_int_equal(s[i].n_processes, 20);
		assert_int_equal(s[i].real_minus_boot_ns, HR_GEN_REAL_NS - HR_GEN_BOOT_NS);
		for (uint32_t b = 0; b < s[i].n_batches; b++)
			events += s[i].batches[b].count;
		assert_int_equal(hr_stream_files(&s[i], &files), 0);
		assert_true(files > 0);
		for (uint32_t id = 1; id <= files; id++)
			assert_int_equal(hr_stream_file(&s[i], id, true, &info), 0);
	}
	assert_int_equal(events, 200000);
	hr_catalog_free(c);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(open_and_sealed_segments_answer_alike),
	    TEST(many_segments),
	    TEST(text_that_comes_elsewhere),
	    TEST(text_of_the_same_hash),
	    TEST(jobs_are_selected),
	    TEST(each_file_is_opened_once),
	    TEST(other_jobs_are_not_opened),
	    TEST(journals_of_killed_daemons_are_found),
	    TEST(a_journal_among_others_is_found),
	    TEST(streams_of_two_stores_are_one),
	    TEST(the_latest_state_counts),
	    TEST(many_threads),
	    TEST(beside_a_writer),
	    TEST(generated_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
