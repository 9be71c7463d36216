/* SPDX-License-Identifier: Apache-2.0 */
/* Stores that are damaged, torn, newer, or none: what is whole is read, and the rest is said. */
#include "tests/store/help.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/writer.h"

#define WINDOW_BYTES (1u << 20) /* what segment.c reads at a time, from the first frame on */

static void flipped_byte_costs_one_frame(void **state)
{
	const char *store = help_path(state, "s"), *path = help_path(state, "s/" HELP_SEGMENT);
	const struct hr_stream *s;
	struct hr_writer *w = help_writer(store, "n1");
	struct hr_catalog *c;
	uint64_t offset;
	uint8_t *data;
	char expected[128];
	size_t n, bytes;

	help_append_small(w);
	c = help_open(store, &s, &n);
	offset = s->frames[4].offset;
	snprintf(expected, sizeof(expected),
		 HELP_SEGMENT ": frame at %llu is damaged; skipped %u bytes",
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

/* The magic of the first frame after the damage is in two windows. */
static void damage_up_to_a_windows_end(void **state)
{
	const char *store = help_path(state, "s"), *path = help_path(state, "s/" HELP_SEGMENT);
	const struct hr_stream *s;
	struct hr_writer *w = help_writer(store, "n1");
	struct hr_catalog *c;
	uint64_t offset;
	uint8_t *data;
	size_t n, bytes;

	help_append_small(w);
	hr_writer_abandon(w);
	c = help_open(store, &s, &n);
	offset = s->frames[4].offset;
	hr_catalog_free(c);
	bytes = help_read(path, &data);
	for (size_t before = 1; before < sizeof(uint32_t); before++) {
		size_t end = sizeof(struct hr_segment_hdr) + WINDOW_BYTES - before;
		uint8_t *damaged = calloc(1, end + bytes - offset);

		memcpy(damaged, data, offset);
		memcpy(damaged + end, data + offset, bytes - offset);
		help_write(path, damaged, end + bytes - offset);
		c = help_open(store, &s, &n);
		assert_non_null(help_problem(c, "is damaged; skipped"));
		help_check_small(s);
		hr_catalog_free(c);
		free(damaged);
	}
	free(data);
}

/* A frame that a footer lists, but that no longer checks out, is an error of that frame alone. */
static void damage_in_a_sealed_segment(void **state)
{
	const char *store = help_path(state, "s"), *path = help_path(state, "s/" HELP_SEGMENT);
	const struct hr_stream *s;
	struct hr_writer *w = help_writer(store, "n1");
	struct hr_catalog *c;
	Headrace__Frame *msg;
	uint8_t *data;
	size_t n, bytes;
	uint64_t offset;

	help_append_small(w);
	assert_int_equal(hr_writer_close(w), 0);
	c = help_open(store, &s, &n);
	offset = s->frames[4].offset;
	hr_catalog_free(c);
	bytes = help_read(path, &data);
	data[offset + 20] ^= 0x40;
	help_write(path, data, bytes);
	c = help_open(store, &s, &n);
	assert_int_equal(hr_stream_read(s, 4, &msg), -EBADMSG);
	assert_int_equal(hr_stream_read(s, 6, &msg), 0);
	headrace__frame__free_unpacked(msg, NULL);
	hr_catalog_free(c);
	free(data);
}

/* Any byte of the footer may be wrong: then the frames themselves are read. */
static void damaged_footer_is_made_up_for(void **state)
{
	const char *store = help_path(state, "s"), *path = help_path(state, "s/" HELP_SEGMENT);
	struct hr_writer *w = help_writer(store, "n1");
	uint8_t *data;
	size_t bytes, frames;

	help_append_small(w);
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
		help_check_small(s);
		hr_catalog_free(c);
		data[i] ^= 0x10;
	}
	free(data);
}

static void half_a_frame_at_the_end(void **state)
{
	const char *store = help_path(state, "s"), *path = help_path(state, "s/" HELP_SEGMENT);
	const struct hr_stream *s;
	struct hr_writer *w = help_writer(store, "n1");
	struct hr_catalog *c;
	uint8_t *data;
	size_t n, bytes;

	help_append_small(w);
	bytes = help_read(path, &data);
	help_write(path, data, bytes - 1);
	c = help_open(store, &s, &n);
	assert_int_equal(s->last_seq, 7);
	assert_false(s->ended);
	assert_int_equal(help_problems(c), 0); /* its writer is at it */
	hr_catalog_free(c);
	help_write(path, data, bytes);
	assert_int_equal(hr_writer_close(w), 0);
	help_write(path, data, bytes - 1);
	c = help_open(store, &s, &n);
	assert_int_equal(s->last_seq, 7);
	assert_non_null(help_problem(c, "that are not a complete frame"));
	hr_catalog_free(c);
	free(data);
}

static void missing_segment(void **state)
{
	const char *store = help_path(state, "s");
	const struct hr_stream *s;
	struct hr_writer *w = help_writer(store, "n1");
	struct hr_catalog *c;
	size_t n;

	hr_writer_segment_bytes(w, 200);
	for (unsigned i = 0; i < 30; i++)
		assert_int_equal(help_append_loss(w, i), 0);
	assert_int_equal(hr_writer_close(w), 0);
	assert_int_equal(unlink(help_path(state, "s/jobs/7/n1.0000000000000001-0/000002.seg")), 0);
	c = help_open(store, &s, &n);
	assert_int_equal(help_problems(c), 1);
	assert_non_null(help_problem(c, "jobs/7/n1.0000000000000001-0: frames "));
	assert_int_equal(s->last_seq, 31);
	assert_true(s->n_frames < 31);
	hr_catalog_free(c);
}

/* Any bytes in place of a segment: problems, never a failure. */
static void not_a_segment(void **state)
{
	const char *store = help_path(state, "s"), *path = help_path(state, "s/" HELP_SEGMENT);
	const struct hr_stream *s;
	struct hr_catalog *c;
	uint8_t *data;
	size_t n, bytes;

	assert_int_equal(hr_writer_close(help_writer(store, "n1")), 0);
	bytes = help_read(path, &data);
	help_write(path, data, 0);
	c = help_open(store, &s, &n);
	assert_non_null(help_problem(c, "not a complete header"));
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
	const char *store = help_path(state, "s"), *path = help_path(state, "s/" HELP_SEGMENT);
	const struct hr_stream *s;
	struct hr_writer *w = help_writer(store, "n1");
	struct hr_catalog *c;
	uint8_t *data;
	char *error;
	size_t n, bytes;

	help_append_small(w);
	assert_int_equal(hr_writer_close(w), 0);
	bytes = help_read(path, &data);
	data[12] = 1; /* incompatible */
	help_write(path, data, bytes);
	c = help_open(store, &s, &n);
	assert_non_null(help_problem(c, HELP_SEGMENT ": segment version 1, features 0x1"));
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(flipped_byte_costs_one_frame),
	    TEST(damage_up_to_a_windows_end),
	    TEST(damage_in_a_sealed_segment),
	    TEST(damaged_footer_is_made_up_for),
	    TEST(half_a_frame_at_the_end),
	    TEST(missing_segment),
	    TEST(not_a_segment),
	    TEST(newer_versions),
	    TEST(no_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
