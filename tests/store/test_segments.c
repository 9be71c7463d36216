/* SPDX-License-Identifier: Apache-2.0 */
/* What a spool does to segments: rolled early, looked at, written anew with some frames replaced, begun behind a gap. */
#include "help.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/segments.h"

#define FOLDER "s/jobs/7/n1.0000000000000001-0"

static struct hr_writer *writer(const char *store)
{
	struct hr_stream_id id = help_id("n1");
	struct hr_writer *w = NULL;

	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	return w;
}

/* seq 1 the start, then 10 times: process, batch, loss; sealed. */
static void fill(const char *store)
{
	struct hr_writer *w = writer(store);

	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(help_append_process(w, i + 1, i), 0);
		assert_int_equal(help_append_batch(w, i + 1, 1000, 1000 * i), 0);
		assert_int_equal(help_append_loss(w, 3), 0);
	}
	assert_int_equal(hr_writer_close(w), 0);
}

static int open_folder(void **state)
{
	int fd = open(help_path(state, FOLDER), O_RDONLY | O_DIRECTORY);

	assert_true(fd >= 0);
	return fd;
}

struct replaced {
	Headrace__Frame frame;
	Headrace__Loss loss;
	Headrace__LossRow row, *rows[1];
	unsigned n;
};

static const Headrace__Frame *no_events(void *context, const Headrace__Frame *msg)
{
	struct replaced *r = context;

	if (msg->body_case != HEADRACE__FRAME__BODY_EVENTS)
		return NULL;
	headrace__frame__init(&r->frame);
	headrace__loss__init(&r->loss);
	headrace__loss_row__init(&r->row);
	r->row.reason = (char *)"spool_full";
	r->row.count = msg->events->count;
	r->rows[0] = &r->row;
	r->loss.n_rows = 1;
	r->loss.rows = r->rows;
	r->frame.seq = msg->seq;
	r->frame.clock = msg->clock;
	r->frame.body_case = HEADRACE__FRAME__BODY_LOSS;
	r->frame.loss = &r->loss;
	r->n++;
	return &r->frame;
}

static uint64_t bit(unsigned kind)
{
	return UINT64_C(1) << kind;
}

static void frames_are_replaced_in_place(void **state)
{
	const char *store = help_path(state, "s");
	const struct hr_stream *s;
	struct hr_segment_file *files;
	struct hr_segment_info info;
	struct replaced r = {.n = 0};
	struct stat before, after;
	struct hr_writer *w;
	uint64_t bytes = 0;
	size_t n;
	int dir;

	fill(store);
	dir = open_folder(state);
	assert_int_equal(hr_segments_list(dir, &files, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(hr_segment_info(dir, 1, &info), 0);
	assert_true(info.sealed && !info.damaged);
	assert_int_equal(info.first_seq, 1);
	assert_int_equal(info.last_seq, 31);
	assert_true(info.kinds & bit(HEADRACE__FRAME__BODY_EVENTS));
	assert_int_equal(fstatat(dir, "000001.seg", &before, 0), 0);
	assert_int_equal(hr_segment_rewrite(dir, 1, no_events, &r, &bytes), 0);
	assert_int_equal(r.n, 10);
	assert_int_equal(fstatat(dir, "000001.seg", &after, 0), 0);
	assert_int_equal(after.st_size, bytes);
	assert_true(bytes < files[0].bytes);
	assert_int_equal(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
	assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	assert_int_equal(hr_segment_info(dir, 1, &info), 0);
	assert_true(info.sealed && !info.damaged);
	assert_int_equal(info.last_seq, 31);
	assert_false(info.kinds & bit(HEADRACE__FRAME__BODY_EVENTS));
	free(files);
	close(dir);

	struct hr_catalog *c = help_open(store, &s, &n);

	assert_int_equal(help_problems(c), 0);
	assert_int_equal(s->n_frames, 31);
	assert_int_equal(s->n_processes, 10);
	assert_int_equal(s->n_batches, 0);
	for (uint32_t i = 0; i < s->n_frames; i++)
		assert_int_equal(s->frames[i].seq, i + 1);
	hr_catalog_free(c);
	w = writer(store); /* it goes on behind it */
	assert_int_equal(hr_writer_mark(w), 31);
	assert_int_equal(hr_writer_close(w), 0);
}

/* A damaged segment stays as it is, and so does one whose new file finds no room. */
static void a_failed_rewrite_changes_nothing(void **state)
{
	struct replaced r = {.n = 0};
	uint8_t *old, *now;
	size_t old_bytes, now_bytes;
	uint64_t bytes;
	int dir;

	fill(help_path(state, "s"));
	dir = open_folder(state);
	old_bytes = help_read(help_path(state, FOLDER "/000001.seg"), &old);
	old[old_bytes / 2] ^= 1;
	help_write(help_path(state, FOLDER "/000001.seg"), old, old_bytes);
	help_write(help_path(state, FOLDER "/000002.seg.new"), old, 100); /* of a killed one */
	assert_int_equal(hr_segment_rewrite(dir, 1, no_events, &r, &bytes), -EBADMSG);
	now_bytes = help_read(help_path(state, FOLDER "/000001.seg"), &now);
	assert_int_equal(now_bytes, old_bytes);
	assert_memory_equal(now, old, now_bytes);
	assert_int_equal(faccessat(dir, "000001.seg.new", F_OK, 0), -1);
	hr_segments_sweep(dir);
	assert_int_equal(faccessat(dir, "000002.seg.new", F_OK, 0), -1);
	assert_int_equal(hr_segment_rewrite(dir, 2, no_events, &r, &bytes), -ENOENT);
	free(old);
	free(now);
	close(dir);
}

static void a_segment_is_rolled(void **state)
{
	struct hr_writer *w = writer(help_path(state, "s"));
	struct hr_segment_info info;
	Headrace__Frame *start;
	int dir = open_folder(state);

	assert_int_equal(help_append_loss(w, 1), 0);
	assert_int_equal(hr_segment_info(dir, 1, &info), 0);
	assert_false(info.sealed);
	assert_int_equal(info.last_seq, 2);
	assert_int_equal(hr_writer_roll(w), 0);
	assert_int_equal(hr_segment_info(dir, 1, &info), 0);
	assert_true(info.sealed);
	assert_int_equal(hr_segment_info(dir, 2, &info), 0);
	assert_int_equal(info.first_seq, 3);
	assert_int_equal(info.last_seq, 2); /* nothing yet */
	assert_int_equal(help_append_loss(w, 1), 0);
	assert_int_equal(hr_writer_mark(w), 3);
	assert_int_equal(hr_segment_start(dir, 2, &start), 0);
	assert_string_equal(start->stream_start->node, "n1");
	headrace__frame__free_unpacked(start, NULL);
	assert_int_equal(hr_writer_close(w), 0);
	close(dir);
}

/* After failover: what another collector has acknowledged never comes. */
static void a_stream_goes_on_behind_a_gap(void **state)
{
	const char *store = help_path(state, "s");
	struct hr_writer *w = writer(store);
	const struct hr_stream *s;
	size_t n;

	assert_int_equal(hr_writer_skip(w, 0), -EINVAL);
	assert_int_equal(hr_writer_skip(w, 50), 0);
	assert_int_equal(hr_writer_mark(w), 50);
	assert_int_equal(help_append_loss(w, 1), 0);
	assert_int_equal(hr_writer_skip(w, 51), 0); /* it is there already */
	assert_int_equal(hr_writer_close(w), 0);
	w = writer(store);
	assert_int_equal(hr_writer_mark(w), 51);
	assert_int_equal(hr_writer_close(w), 0);

	struct hr_catalog *c = help_open(store, &s, &n);

	assert_int_equal(s->n_frames, 2); /* 1 and 51 */
	assert_int_equal(s->last_seq, 51);
	assert_non_null(help_problem(c, "frames 2 to 50 are missing"));
	hr_catalog_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(frames_are_replaced_in_place, help_setup,
					    help_teardown),
	    cmocka_unit_test_setup_teardown(a_failed_rewrite_changes_nothing, help_setup,
					    help_teardown),
	    cmocka_unit_test_setup_teardown(a_segment_is_rolled, help_setup, help_teardown),
	    cmocka_unit_test_setup_teardown(a_stream_goes_on_behind_a_gap, help_setup,
					    help_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
