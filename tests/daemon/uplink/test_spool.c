/* SPDX-License-Identifier: Apache-2.0 */
/* A spool keeps its limit, gives up in order, counts exactly, and survives a kill at any instant. */
#include "frames.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/segments.h"
#include "daemon/spool/spool_stream.h"
#include "tests/seeds.h"

#define KIB   1024u
#define MIB   (1024u * KIB)
#define LIMIT (16u * MIB) /* 64 segments of 256 KiB */

struct filled {
	struct hr_spool *spool;
	struct hr_writer *writer;
	uint64_t events, event_bytes, files, rollups; /* appended */
};

static void open_spool(const char *folder, uint64_t limit, const char *job, struct filled *ret)
{
	struct hr_stream_id id = frame_stream(job, 1);

	*ret = (struct filled){0};
	assert_int_equal(hr_spool_new(folder, limit, &ret->spool), 0);
	assert_int_equal(hr_spool_open_stream(ret->spool, &id, &ret->writer), 0);
}

static void close_spool(struct filled *f)
{
	assert_int_equal(hr_writer_close(f->writer), 0);
	hr_spool_closed(f->spool);
	hr_spool_free(f->spool);
}

static int append(struct filled *f, enum frame_kind kind, size_t bytes)
{
	uint64_t seq = hr_writer_mark(f->writer) + 1;
	int r = frame_append(f->spool, f->writer, kind, bytes);

	if (r)
		return r;
	f->events += kind == FRAME_EVENTS ? seq : 0;
	f->event_bytes += kind == FRAME_EVENTS ? 10 * seq : 0;
	f->files += kind == FRAME_FILES ? 1 + seq % 7 : 0;
	f->rollups += kind == FRAME_ROLLUPS || kind == FRAME_ALONE ? seq : 0;
	return 0;
}

static void sum(void **state, const char *job, struct frame_sums *ret)
{
	frame_sum((const char *const *)state, 1, job, ret);
}

/* ---- the limit ----------------------------------------------------------------------------------- */

/* Three times what there is room for: the limit holds at every moment, and only the oldest events go. */
static void events_go_first_and_are_counted(void **state)
{
	struct frame_sums t;
	struct hr_spool_stats stats;
	struct filled f;

	open_spool(*state, LIMIT, "job", &f);
	for (unsigned i = 0; i < 3 * LIMIT / (100 * KIB); i++) {
		assert_int_equal(append(&f, FRAME_EVENTS, 100 * KIB), 0);
		assert_int_equal(append(&f, i % 2 ? FRAME_FILES : FRAME_ROLLUPS, 200), 0);
		assert_int_equal(append(&f, FRAME_NAMES, 100), 0);
		if (i % 8 == 0)
			assert_true(frame_disk_bytes(*state) <= LIMIT + 16 * KIB); /* a footer */
	}
	hr_spool_stats(f.spool, &stats);
	close_spool(&f);
	sum(state, "job", &t);
	assert_int_equal(t.events + t.spool_full, f.events);
	assert_int_equal(t.files, f.files);
	assert_int_equal(t.rollups, f.rollups);
	assert_int_equal(t.files_full + t.rollups_full, 0);
	assert_int_equal(stats.given_up, t.spool_full);
	assert_int_equal(stats.given_up_bytes, t.spool_full_bytes);
	assert_int_equal(t.spool_full_bytes, 10 * t.spool_full);
	assert_true(t.n_events * 100 * KIB > LIMIT * 3 / 4); /* no more than needed */
	assert_true(t.first_event > t.n_losses * 3);	     /* the oldest ones */
}

/* No events left to give: file records, then rollups; then nothing is taken any more. */
static void then_files_then_rollups_then_nothing(void **state)
{
	struct frame_sums t;
	struct filled f;
	int r = 0;

	open_spool(*state, LIMIT, "job", &f);
	for (unsigned i = 0; i < 40; i++) {
		assert_int_equal(append(&f, FRAME_EVENTS, 50 * KIB), 0);
		assert_int_equal(append(&f, FRAME_FILES, 50 * KIB), 0);
		assert_int_equal(append(&f, FRAME_ROLLUPS, 50 * KIB), 0);
	}
	for (unsigned i = 0; i < 130; i++)
		assert_int_equal(append(&f, FRAME_NAMES, 100 * KIB), 0);
	sum(state, "job", &t);
	assert_int_equal(t.n_events, 0);
	assert_true(t.n_files < 40);
	assert_int_equal(t.n_rollups, 40);
	while (!r)
		r = append(&f, FRAME_NAMES, 100 * KIB);
	assert_int_equal(r, -ENOSPC);
	assert_true(frame_disk_bytes(*state) <= LIMIT + 16 * KIB);
	close_spool(&f);
	sum(state, "job", &t);
	assert_int_equal(t.n_files + t.n_rollups + t.n_events, 0);
	assert_int_equal(t.spool_full, f.events);
	assert_int_equal(t.spool_full_bytes, f.event_bytes);
	assert_int_equal(t.files_full, f.files);
	assert_int_equal(t.rollups_full, f.rollups);
	assert_int_equal(t.rollups_full_bytes, 100 * f.rollups);
}

/* At level counters the rollups are all that is known of an operation. */
static void operations_without_events_count(void **state)
{
	struct frame_sums t;
	struct filled f;

	open_spool(*state, LIMIT, "job", &f);
	for (unsigned i = 0; i < 2 * LIMIT / (100 * KIB); i++)
		assert_int_equal(append(&f, FRAME_ALONE, 100 * KIB), 0);
	close_spool(&f);
	sum(state, "job", &t);
	assert_int_equal(t.rollups + t.spool_full, f.rollups);
	assert_true(t.spool_full > 0);
	assert_int_equal(t.rollups_full, 0);
}

/* The oldest are those of another job, whose daemon is gone; of one that runs, the open segment stays. */
static void older_streams_give_first(void **state)
{
	struct filled gone, runs, own;
	struct frame_sums t;

	open_spool(*state, 0, "gone", &gone);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(append(&gone, FRAME_EVENTS, 100 * KIB), 0);
	close_spool(&gone);
	open_spool(*state, LIMIT, "runs", &runs);
	assert_int_equal(append(&runs, FRAME_EVENTS, 100 * KIB), 0);
	open_spool(*state, LIMIT, "own", &own);
	for (unsigned i = 0; i < 140; i++)
		assert_int_equal(append(&own, FRAME_EVENTS, 100 * KIB), 0);
	sum(state, "gone", &t);
	assert_int_equal(t.spool_full + t.events, gone.events);
	assert_true(t.n_events < 40);
	sum(state, "own", &t);
	assert_int_equal(t.spool_full, 0);
	for (unsigned i = 0; i < 140; i++)
		assert_int_equal(append(&own, FRAME_EVENTS, 100 * KIB), 0);
	assert_true(frame_disk_bytes(*state) <= LIMIT + 16 * KIB);
	sum(state, "gone", &t);
	assert_int_equal(t.n_events, 0);
	sum(state, "runs", &t);
	assert_int_equal(t.n_events, 1);
	sum(state, "own", &t);
	assert_int_equal(t.spool_full + t.events, own.events);
	close_spool(&own);
	close_spool(&runs);
}

/* The only segment is the one that is being written. */
static void the_open_segment_shrinks(void **state)
{
	const uint64_t limit = 1 * MIB; /* segments of 256 KiB all the same */
	struct frame_sums t;
	struct filled f;

	open_spool(*state, limit, "job", &f);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(append(&f, FRAME_NAMES, 200 * KIB), 0);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(append(&f, FRAME_EVENTS, 90 * KIB), 0);
	close_spool(&f);
	assert_true(frame_disk_bytes(*state) <= limit + 16 * KIB);
	sum(state, "job", &t);
	assert_int_equal(t.n_names, 4);
	assert_int_equal(t.events + t.spool_full, f.events);
	assert_true(t.n_events > 0 && t.n_events < 4);
}

/* ---- kills ---------------------------------------------------------------------------------------- */

/* Appends until it is killed. */
static void write_for_ever(const char *folder, unsigned seed)
{
	struct filled f;

	srand(seed);
	open_spool(folder, 2 * MIB, "job", &f);
	for (;;) {
		unsigned n = (unsigned)rand() % 8;
		enum frame_kind kind = n < 5 ? FRAME_EVENTS : n == 5 ? FRAME_FILES : FRAME_ROLLUPS;

		append(&f, kind, (size_t)rand() % (60 * KIB));
	}
}

static bool stopped_by_us(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGKILL;
}

static void killed_at_any_instant(void **state)
{
	for (unsigned seed = 1; seed <= test_seeds(50); seed++) {
		struct frame_sums before, t;
		struct filled f;
		char command[256];
		pid_t child = fork();

		if (child == 0)
			write_for_ever(*state, seed);
		srand(seed);
		usleep(5000 + (unsigned)rand() % 40000);
		kill(child, SIGKILL);
		assert_true(stopped_by_us(child));
		/* The next writer goes on where the last whole frame ends. */
		open_spool(*state, 2 * MIB, "job", &f);
		sum(state, "job", &before); /* checks each frame */
		for (unsigned i = 0; i < 30; i++)
			assert_int_equal(append(&f, FRAME_EVENTS, 50 * KIB), 0);
		close_spool(&f);
		sum(state, "job", &t);
		assert_int_equal(t.first_seq, 1);
		assert_int_equal(t.last_seq, before.last_seq + 30);
		assert_int_equal(t.events + t.spool_full,
				 before.events + before.spool_full + f.events);
		assert_true(frame_disk_bytes(*state) <= 2 * MIB + 16 * KIB);
		snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state);
		assert_int_equal(system(command), 0);
	}
}

/* ---- what the sender sees ------------------------------------------------------------------------- */

static struct hr_spool_stream *stream(struct hr_spool *s)
{
	struct hr_spool_stream *st;
	struct hr_spool_live live;

	assert_true(hr_spool_live(s, &live));
	assert_int_equal(hr_spool_stream_open(s, live.folder, &st), 0);
	return st;
}

static void assert_frame(struct hr_spool_stream *st, uint64_t seq)
{
	Headrace__Frame *msg;
	uint8_t *frame;
	size_t bytes;

	assert_int_equal(hr_spool_stream_read(st, seq, &frame, &bytes), 0);
	assert_int_equal(hr_frame_unpack(frame, bytes, &msg), 0);
	assert_int_equal(msg->seq, seq);
	headrace__frame__free_unpacked(msg, NULL);
	free(frame);
}

static void frames_are_read_by_number(void **state)
{
	struct hr_spool_stream *st, *other;
	struct hr_spool_live live;
	uint64_t removed, before;
	struct filled f;
	uint8_t *frame;
	size_t bytes;

	open_spool(*state, LIMIT, "job", &f);
	st = stream(f.spool);
	assert_true(hr_spool_live(f.spool, &live));
	assert_int_equal(hr_spool_stream_open(f.spool, live.folder, &other), -EBUSY);
	assert_string_equal(st->id->job, "job");
	assert_true(st->has_secret);
	for (unsigned i = 0; i < 50; i++) {
		append(&f, i % 3 ? FRAME_EVENTS : FRAME_NAMES, 50 * KIB);
		assert_frame(st, hr_writer_mark(f.writer)); /* as it grows, over segments */
	}
	for (uint64_t seq = 1; seq <= 51; seq++)
		assert_frame(st, seq);
	for (unsigned i = 0; i < 100; i++)
		assert_frame(st, 1 + (uint64_t)rand() % 51);
	removed = frame_disk_bytes(*state);
	assert_int_equal(hr_spool_stream_acknowledge(st, 30, false), 0);
	before = frame_disk_bytes(*state);
	removed -= before;
	assert_true(removed > 20 * 50 * KIB && before < 31 * 50 * KIB);
	assert_true(st->first_seq > 20 && st->first_seq <= 31);
	assert_int_equal(hr_spool_stream_read(st, 2, &frame, &bytes), -ENOENT);
	assert_frame(st, 31);
	assert_int_equal(hr_spool_stream_end(st), HR_SPOOL_WRITTEN);
	assert_int_equal(hr_spool_stream_remove(st), -EBUSY);
	close_spool(&f);
	assert_int_equal(hr_spool_new(*state, LIMIT, &f.spool), 0);
	hr_spool_stream_free(st);
	assert_int_equal(hr_spool_stream_open(f.spool, live.folder, &st), 0);
	assert_int_equal(hr_spool_stream_refresh(st, true), 0);
	assert_int_equal(st->last_seq, 51);
	assert_int_equal(hr_spool_stream_end(st), HR_SPOOL_ENDED);
	assert_int_equal(hr_spool_stream_remove(st), 0);
	hr_spool_stream_free(st);
	assert_int_equal(frame_disk_bytes(*state), 0);
	assert_int_equal(hr_spool_stream_open(f.spool, live.folder, &st), -ENOENT);
	hr_spool_free(f.spool);
}

/* What a kill left of a new segment is no obstacle: frames before it are sent. */
static void an_incomplete_segment_is_left_out(void **state)
{
	struct hr_spool_stream *st;
	struct hr_spool_live live;
	struct filled f;
	char path[800];
	int fd;

	open_spool(*state, LIMIT, "job", &f);
	assert_int_equal(append(&f, FRAME_NAMES, 10), 0);
	assert_true(hr_spool_live(f.spool, &live));
	close_spool(&f);
	snprintf(path, sizeof(path), "%s/%s/000002.seg", (char *)*state, live.folder);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(hr_spool_new(*state, LIMIT, &f.spool), 0);
	assert_int_equal(hr_spool_stream_open(f.spool, live.folder, &st), 0);
	assert_int_equal(hr_spool_stream_refresh(st, true), 0);
	assert_int_equal(st->last_seq, 2);
	assert_frame(st, 2);
	hr_spool_stream_free(st);
	hr_spool_free(f.spool);
}

/* A frame that was given up meanwhile is read as its Loss, also by who was about to read it. */
static void a_reader_outlives_a_rewrite(void **state)
{
	struct hr_spool_stream *st;
	struct filled f;

	open_spool(*state, LIMIT, "job", &f);
	st = stream(f.spool);
	for (unsigned i = 0; i < 100; i++)
		append(&f, FRAME_EVENTS, 100 * KIB);
	assert_frame(st, 5);
	for (unsigned i = 0; i < 200; i++)
		append(&f, FRAME_EVENTS, 100 * KIB);
	for (uint64_t seq = 6; seq <= hr_writer_mark(f.writer); seq++)
		assert_frame(st, seq);
	hr_spool_stream_free(st);
	close_spool(&f);
}

/* What is kept for a summary is the first to go, but only if each frame is acknowledged. */
static void kept_segments_go_before_anything_else(void **state)
{
	struct hr_spool_stream *st;
	struct frame_sums t;
	uint64_t before, first, next;
	struct filled f;

	open_spool(*state, LIMIT, "job", &f);
	st = stream(f.spool);
	for (unsigned i = 0; i < 100; i++)
		append(&f, FRAME_EVENTS, 100 * KIB);
	assert_int_equal(hr_segment_first_seq(hr_writer_dir_fd(f.writer), 29, &first), 0);
	assert_int_equal(hr_segment_first_seq(hr_writer_dir_fd(f.writer), 30, &next), 0);
	before = frame_disk_bytes(*state);
	assert_int_equal(hr_spool_stream_acknowledge(st, next - 2, true), 0);
	assert_int_equal(frame_disk_bytes(*state), before); /* no segment is removed */
	sum(state, "job", &t);
	assert_int_equal(t.first_seq, 1);
	for (unsigned i = 0; i < 100; i++)
		append(&f, FRAME_EVENTS, 100 * KIB);
	sum(state, "job", &t);
	assert_true(t.first_seq > 1 && t.first_seq < first);
	assert_int_equal(t.spool_full, 0);
	for (unsigned i = 0; i < 100; i++)
		append(&f, FRAME_EVENTS, 100 * KIB);
	sum(state, "job", &t);
	assert_true(t.spool_full > 0);
	assert_int_equal(t.first_seq, first);
	hr_spool_stream_free(st);
	close_spool(&f);
}

static void a_secret_is_made_once(void **state)
{
	uint8_t secret[HR_SPOOL_SECRET_BYTES];
	struct hr_spool_stream *st;
	struct hr_spool_live live;
	struct filled f;
	char path[800];
	struct stat file;

	open_spool(*state, LIMIT, "job", &f);
	append(&f, FRAME_NAMES, 10);
	st = stream(f.spool);
	memcpy(secret, st->secret, sizeof(secret));
	hr_spool_stream_free(st);
	assert_true(hr_spool_live(f.spool, &live));
	close_spool(&f);
	open_spool(*state, LIMIT, "job", &f);
	st = stream(f.spool);
	assert_memory_equal(secret, st->secret, sizeof(secret));
	hr_spool_stream_free(st);
	close_spool(&f);
	snprintf(path, sizeof(path), "%s/%s/secret", (char *)*state, live.folder);
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_mode & 0777, 0600);
	assert_int_equal(file.st_size, 16);
	assert_int_equal(unlink(path), 0);
	open_spool(*state, LIMIT, "job", &f); /* it has frames: nobody can make it again */
	st = stream(f.spool);
	assert_false(st->has_secret);
	hr_spool_stream_free(st);
	close_spool(&f);
}

static void assert_discards(struct hr_spool *s, const char *job, unsigned streams, unsigned kept,
			    uint64_t frames, uint64_t events)
{
	struct hr_spool_discarded d;
	char *error = NULL;

	assert_int_equal(hr_spool_discard(s, job, &d, &error), 0);
	assert_int_equal(d.streams, streams);
	assert_int_equal(d.kept, kept);
	assert_int_equal(d.frames, frames);
	assert_int_equal(d.events, events);
}

/* A job that nobody takes: what is unsent is counted, other jobs and what is being written stay. */
static void a_job_is_given_up(void **state)
{
	struct hr_spool_stream *st;
	struct hr_spool_live live;
	struct hr_spool *s;
	struct filled f;

	for (int i = 0; i < 2; i++) {
		open_spool(*state, LIMIT, i == 0 ? "other" : "job", &f);
		assert_int_equal(append(&f, FRAME_EVENTS, KIB), 0); /* frame 2 */
		assert_int_equal(append(&f, FRAME_NAMES, KIB), 0);
		assert_int_equal(append(&f, FRAME_EVENTS, KIB), 0); /* frame 4 */
		if (i == 1)
			assert_discards(f.spool, "job", 0, 1, 0, 0);
		assert_true(hr_spool_live(f.spool, &live));
		close_spool(&f);
	}
	assert_int_equal(hr_spool_new(*state, 0, &s), 0);
	assert_discards(s, "nosuch", 0, 0, 0, 0);
	assert_int_equal(hr_spool_stream_open(s, live.folder, &st), 0); /* as who sends it */
	assert_discards(s, "job", 0, 1, 0, 0);
	assert_int_equal(hr_spool_stream_note(st, 3), 0);
	hr_spool_stream_free(st);
	assert_discards(s, "job", 1, 0, 1, 4);
	assert_discards(s, "job", 0, 0, 0, 0);
	assert_discards(s, "other", 1, 0, 4, 6);
	hr_spool_free(s);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, frame_setup, frame_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(events_go_first_and_are_counted), CASE(then_files_then_rollups_then_nothing),
	    CASE(operations_without_events_count), CASE(older_streams_give_first),
	    CASE(the_open_segment_shrinks),	   CASE(killed_at_any_instant),
	    CASE(frames_are_read_by_number),	   CASE(an_incomplete_segment_is_left_out),
	    CASE(a_reader_outlives_a_rewrite),	   CASE(kept_segments_go_before_anything_else),
	    CASE(a_secret_is_made_once),	   CASE(a_job_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
