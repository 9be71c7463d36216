/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/store/help.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/writer.h"
#include "common/batch.h"
#include "tests/bench/generate.h"

#define SEGMENT "jobs/7/n1.0000000000000001-0/000001.seg"

static struct hr_writer *writer(const char *store, const char *node)
{
	struct hr_stream_id id = help_id(node);
	struct hr_writer *w;

	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	return w;
}

/* Frames 2 to 8: mount, process, files, batch, process again, batch, end. */
static void write_small(struct hr_writer *w)
{
	assert_int_equal(help_append_mount(w, 2, "/data"), 0);
	assert_int_equal(help_append_process(w, 77, 0), 0);
	assert_int_equal(help_append_paths(w, 1, 5, false), 0);
	assert_int_equal(help_append_batch(w, 77, 300, 1000), 0);
	assert_int_equal(help_append_process(w, 77, 4), 0);
	assert_int_equal(help_append_batch(w, 77, 100, 9000), 0);
	assert_int_equal(help_append_end(w), 0);
}

static void check_small(const struct hr_stream *s)
{
	struct hr_file_info info;

	assert_string_equal(s->job, "7");
	assert_string_equal(s->node, "n1");
	assert_string_equal(s->cluster, "c");
	assert_int_equal(s->instance, 1);
	assert_int_equal(s->last_seq, 8);
	assert_int_equal(s->n_frames, 8);
	for (uint32_t f = 0; f < 8; f++)
		assert_int_equal(s->frames[f].seq, f + 1);
	assert_true(s->ended);
	assert_int_equal(s->real_minus_boot_ns, 1000000);
	assert_int_equal(s->clock_error_ns, 7);
	assert_int_equal(s->n_batches, 2);
	assert_int_equal(s->batches[0].count, 300);
	assert_int_equal(s->batches[0].base_ns, 1000);
	assert_int_equal(s->batches[0].last_ns, 1000 + 299 * 10 + 5);
	assert_int_equal(s->batches[1].frame, 6);
	assert_int_equal(s->batches[1].classes, 1u << HR_CLASS_READ);
	assert_int_equal(s->batches[1].n_procs, 1);
	assert_int_equal(s->batches[1].procs[0], 77);
	assert_int_equal(s->n_processes, 1);
	assert_int_equal(s->processes[0].rank, 3);
	assert_int_equal(s->processes[0].worker, -1);
	assert_non_null(hr_stream_process(s, 77));
	assert_null(hr_stream_process(s, 78));
	assert_int_equal(s->n_mounts, 3);
	assert_null(s->mounts[1]);
	assert_memory_equal(s->mounts[2]->path.data, "/data", 5);
	assert_int_equal(s->max_file, 5);
	assert_int_equal(hr_stream_file(s, 4, true, &info), 0);
	assert_int_equal(info.hash, 32);
	assert_int_equal(info.mount, 1);
	assert_int_equal(info.scope, 1);
	assert_int_equal(info.path_bytes, 7);
	assert_memory_equal(info.path, "/data/4", 7);
	assert_int_equal(hr_stream_file(s, 6, false, &info), -ENOENT);
	assert_int_equal(hr_stream_file(s, 0, false, &info), -ENOENT);
}

static size_t problems(const struct hr_catalog *c)
{
	const struct hr_problem *list;

	return hr_catalog_problems(c, &list);
}

/* The same answers while it is written, after a kill (no footer), and sealed. */
static void open_and_sealed_segments_answer_alike(void **state)
{
	const char *store = help_path(state, "s");
	const struct hr_stream *s;
	struct hr_writer *w = writer(store, "n1");
	struct hr_catalog *c;
	size_t n;

	write_small(w);
	c = help_open(store, &s, &n);
	assert_int_equal(n, 1);
	check_small(s);
	assert_true(s->live);
	assert_int_equal(problems(c), 0);
	hr_catalog_free(c);

	assert_int_equal(hr_writer_close(w), 0);
	c = help_open(store, &s, &n);
	check_small(s);
	assert_false(s->live);
	assert_int_equal(problems(c), 0);
	hr_catalog_free(c);
}

static void many_segments(void **state)
{
	const char *store = help_path(state, "s");
	const struct hr_stream *s;
	struct hr_file_info info;
	struct hr_writer *w = writer(store, "n1");
	struct hr_catalog *c;
	size_t n;

	hr_writer_segment_bytes(w, 2000);
	for (uint32_t i = 0; i < 40; i++) {
		assert_int_equal(help_append_paths(w, 1 + i * 10, 10, false), 0);
		assert_int_equal(help_append_batch(w, i, 50, 1000 + i), 0);
	}
	c = help_open(store, &s, &n); /* the last one still open */
	assert_int_equal(problems(c), 0);
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

static void batches_come_back(void **state)
{
	const char *store = help_path(state, "s");
	const struct hr_stream *s;
	struct hr_writer *w = writer(store, "n1");
	struct hr_columns columns;
	struct hr_decoder *d;
	struct hr_catalog *c;
	Headrace__Frame *msg;
	size_t n;

	write_small(w);
	assert_int_equal(hr_writer_close(w), 0);
	c = help_open(store, &s, &n);
	assert_int_equal(hr_decoder_new(&d), 0);
	assert_int_equal(hr_stream_read(s, s->batches[0].frame, &msg), 0);
	assert_int_equal(hr_batch_decode(d, msg->events, HR_COL_BIT(HR_COL_OFFSET), &columns), 0);
	assert_int_equal(columns.count, 300);
	assert_int_equal(columns.offset[299], 299 * 4096);
	headrace__frame__free_unpacked(msg, NULL);
	assert_int_equal(hr_stream_read(s, s->n_frames, &msg), -EBADMSG);
	hr_decoder_free(d);
	hr_catalog_free(c);
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
	struct hr_writer *w = writer(store, "n1");
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

/* ---- damage ---------------------------------------------------------------------------------- */

static void flipped_byte_costs_one_frame(void **state)
{
	const char *store = help_path(state, "s"), *path = help_path(state, "s/" SEGMENT);
	const struct hr_stream *s;
	struct hr_writer *w = writer(store, "n1");
	struct hr_catalog *c;
	uint64_t offset;
	uint8_t *data;
	char expected[128];
	size_t n, bytes;

	write_small(w);
	c = help_open(store, &s, &n);
	offset = s->frames[4].offset;
	snprintf(expected, sizeof(expected), SEGMENT ": frame at %llu is damaged; %u bytes skipped",
		 (unsigned long long)offset, s->frames[4].bytes);
	hr_catalog_free(c);
	bytes = help_read(path, &data);
	data[offset + 20] ^= 0x40;
	help_write(path, data, bytes);
	c = help_open(store, &s, &n);
	assert_non_null(help_problem(c, expected));
	assert_non_null(help_problem(c, "frames 5 to 5 are missing"));
	assert_int_equal(s->n_frames, 7);
	assert_int_equal(s->n_batches, 1);
	assert_int_equal(s->batches[0].count, 100);
	assert_true(s->ended);
	hr_catalog_free(c);
	free(data);
	assert_int_equal(hr_writer_close(w), 0);
}

/* A frame that a footer lists, but that no longer checks out, is an error of that frame alone. */
static void damage_in_a_sealed_segment(void **state)
{
	const char *store = help_path(state, "s"), *path = help_path(state, "s/" SEGMENT);
	const struct hr_stream *s;
	struct hr_writer *w = writer(store, "n1");
	struct hr_catalog *c;
	Headrace__Frame *msg;
	uint8_t *data;
	size_t n, bytes;

	write_small(w);
	assert_int_equal(hr_writer_close(w), 0);
	c = help_open(store, &s, &n);
	bytes = help_read(path, &data);
	data[s->frames[4].offset + 20] ^= 0x40;
	help_write(path, data, bytes);
	assert_int_equal(hr_stream_read(s, 4, &msg), -EBADMSG);
	assert_int_equal(hr_stream_read(s, 6, &msg), 0);
	headrace__frame__free_unpacked(msg, NULL);
	hr_catalog_free(c);
	free(data);
}

/* Any byte of the footer may be wrong: then the frames themselves are read. */
static void damaged_footer_is_made_up_for(void **state)
{
	const char *store = help_path(state, "s"), *path = help_path(state, "s/" SEGMENT);
	struct hr_writer *w = writer(store, "n1");
	uint8_t *data;
	size_t bytes, frames;

	write_small(w);
	frames = hr_writer_bytes(w);
	assert_int_equal(hr_writer_close(w), 0);
	bytes = help_read(path, &data);
	for (size_t i = frames; i < bytes; i++) {
		const struct hr_stream *s;
		struct hr_catalog *c;
		size_t n;

		data[i] ^= 0x10;
		help_write(path, data, bytes);
		c = help_open(store, &s, &n);
		check_small(s);
		hr_catalog_free(c);
		data[i] ^= 0x10;
	}
	free(data);
}

static void half_a_frame_at_the_end(void **state)
{
	const char *store = help_path(state, "s"), *path = help_path(state, "s/" SEGMENT);
	const struct hr_stream *s;
	struct hr_writer *w = writer(store, "n1");
	struct hr_catalog *c;
	uint8_t *data;
	size_t n, bytes;

	write_small(w);
	bytes = help_read(path, &data);
	help_write(path, data, bytes - 1);
	c = help_open(store, &s, &n);
	assert_int_equal(s->last_seq, 7);
	assert_false(s->ended);
	assert_int_equal(problems(c), 0); /* its writer is at it */
	hr_catalog_free(c);
	help_write(path, data, bytes);
	assert_int_equal(hr_writer_close(w), 0);
	help_write(path, data, bytes - 1);
	c = help_open(store, &s, &n);
	assert_int_equal(s->last_seq, 7);
	assert_non_null(help_problem(c, "that are no whole frame"));
	hr_catalog_free(c);
	free(data);
}

static void missing_segment(void **state)
{
	const char *store = help_path(state, "s");
	const struct hr_stream *s;
	struct hr_writer *w = writer(store, "n1");
	struct hr_catalog *c;
	size_t n;

	hr_writer_segment_bytes(w, 200);
	for (unsigned i = 0; i < 30; i++)
		assert_int_equal(help_append_loss(w, i), 0);
	assert_int_equal(hr_writer_close(w), 0);
	assert_int_equal(unlink(help_path(state, "s/jobs/7/n1.0000000000000001-0/000002.seg")), 0);
	c = help_open(store, &s, &n);
	assert_int_equal(problems(c), 1);
	assert_non_null(help_problem(c, "jobs/7/n1.0000000000000001-0: frames "));
	assert_int_equal(s->last_seq, 31);
	assert_true(s->n_frames < 31);
	hr_catalog_free(c);
}

/* Any bytes in place of a segment: problems, never a failure. */
static void not_a_segment(void **state)
{
	const char *store = help_path(state, "s"), *path = help_path(state, "s/" SEGMENT);
	const struct hr_stream *s;
	struct hr_catalog *c;
	uint8_t *data;
	size_t n, bytes;

	assert_int_equal(hr_writer_close(writer(store, "n1")), 0);
	bytes = help_read(path, &data);
	help_write(path, data, 0);
	c = help_open(store, &s, &n);
	assert_non_null(help_problem(c, "no whole header"));
	hr_catalog_free(c);
	memset(data, 0xa5, bytes);
	help_write(path, data, bytes);
	c = help_open(store, &s, &n);
	assert_non_null(help_problem(c, "header is damaged"));
	assert_int_equal(n, 1);
	assert_string_equal(s->job, "7"); /* by the folder's name */
	assert_string_equal(s->node, "n1");
	hr_catalog_free(c);
	free(data);
}

static void newer_versions(void **state)
{
	const char *store = help_path(state, "s"), *path = help_path(state, "s/" SEGMENT);
	const struct hr_stream *s;
	struct hr_writer *w = writer(store, "n1");
	struct hr_catalog *c;
	uint8_t *data;
	char *error;
	size_t n, bytes;

	write_small(w);
	assert_int_equal(hr_writer_close(w), 0);
	bytes = help_read(path, &data);
	data[12] = 1; /* incompatible */
	help_write(path, data, bytes);
	c = help_open(store, &s, &n);
	assert_non_null(help_problem(c, SEGMENT ": segment version 1, features 0x1"));
	assert_int_equal(s->n_frames, 0);
	hr_catalog_free(c);
	free(data);
	help_write(help_path(state, "s/headrace.store"), (const uint8_t *)"headrace store 2\n", 17);
	assert_int_equal(hr_catalog_open(&store, 1, NULL, &c, &error), -EPROTONOSUPPORT);
	assert_non_null(strstr(error, "newer headrace"));
	free(error);
	help_write(help_path(state, "s/headrace.store"), (const uint8_t *)"what?\n", 6);
	assert_int_equal(hr_catalog_open(&store, 1, NULL, &c, &error), -ENOTEMPTY);
	assert_non_null(strstr(error, "headrace.store is damaged"));
	free(error);
}

static void no_store(void **state)
{
	const char *paths[] = {help_path(state, "none"), help_path(state, "")};
	struct hr_catalog *c;
	char *error;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(hr_catalog_open(&paths[i], 1, NULL, &c, &error), -ENOENT);
		assert_non_null(strstr(error, "no headrace store"));
		free(error);
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
	assert_int_equal(hr_writer_close(writer(store, "n2")), 0);
	assert_int_equal(hr_writer_close(writer(store, "n1")), 0);
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

/* Two stores that each got a part of a stream, and some frames both: every frame once. */
static void streams_of_two_stores_are_one(void **state)
{
	const char *stores[] = {help_path(state, "s"), help_path(state, "t")};
	const struct hr_stream *s;
	struct hr_writer *w = writer(stores[0], "n1"), *other;
	struct hr_catalog *c;

	other = writer(stores[1], "n1");
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
	assert_int_equal(problems(c), 0);
	hr_catalog_free(c);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *read_files(void *context)
{
	const struct hr_stream *s = context;
	struct hr_file_info info;
	uintptr_t wrong = 0;

	for (uint32_t id = 1; id <= s->max_file; id++)
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
	struct hr_writer *w = writer(store, "n1");
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
	struct hr_writer *w = writer(store, "n1");
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
		assert_int_equal(problems(c), 0);
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
	struct hr_catalog *c;
	uint64_t events = 0;
	size_t n;

	config.nodes = 2;
	config.paths = 3000;
	config.batch_events = 30000;
	assert_int_equal(hr_gen_store(&config, store, "bench"), 0);
	c = help_open(store, &s, &n);
	assert_int_equal(n, 2);
	assert_int_equal(problems(c), 0);
	for (size_t i = 0; i < n; i++) {
		assert_true(s[i].ended);
		assert_int_equal(s[i].n_processes, 20);
		assert_int_equal(s[i].real_minus_boot_ns, HR_GEN_REAL_NS - HR_GEN_BOOT_NS);
		for (uint32_t b = 0; b < s[i].n_batches; b++)
			events += s[i].batches[b].count;
		for (uint32_t id = 1; id <= s[i].max_file; id++)
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
	    TEST(batches_come_back),
	    TEST(text_that_comes_elsewhere),
	    TEST(flipped_byte_costs_one_frame),
	    TEST(damage_in_a_sealed_segment),
	    TEST(damaged_footer_is_made_up_for),
	    TEST(half_a_frame_at_the_end),
	    TEST(missing_segment),
	    TEST(not_a_segment),
	    TEST(newer_versions),
	    TEST(no_store),
	    TEST(jobs_are_selected),
	    TEST(streams_of_two_stores_are_one),
	    TEST(many_threads),
	    TEST(beside_a_writer),
	    TEST(generated_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
