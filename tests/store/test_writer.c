/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/store/help.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/writer.h"

static const char *segment(const char *store, unsigned number)
{
	static char path[4200];

	snprintf(path, sizeof(path), "%s/jobs/7/n1.0000000000000001-0/%06u.seg", store, number);
	return path;
}

static off_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : -1;
}

/* ---- folders --------------------------------------------------------------------------------- */

static void store_is_made_once(void **state)
{
	const char *store = help_path(state, "s");
	struct stat st;
	uint8_t *text;

	assert_int_equal(hr_store_check(store), 0);
	assert_int_equal(access(store, F_OK), -1);
	assert_int_equal(hr_store_create(store), 0);
	assert_int_equal(hr_store_create(store), 0);
	assert_int_equal(hr_store_check(store), 0);
	assert_int_equal(stat(store, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(help_read(help_path(state, "s/headrace.store"), &text), 17);
	assert_memory_equal(text, "headrace store 1\n", 17);
	free(text);
}

static void foreign_folders_are_refused(void **state)
{
	const char *store = help_path(state, "s");
	struct hr_stream_id id = help_id("n1");
	struct hr_writer *w;

	assert_int_equal(mkdir(store, 0755), 0);
	help_write(help_path(state, "s/thesis.tex"), (const uint8_t *)"x", 1);
	assert_int_equal(hr_store_create(store), -ENOTEMPTY);
	assert_int_equal(hr_store_check(store), -ENOTEMPTY);
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), -ENOTEMPTY);
	help_write(help_path(state, "s/headrace.store"), (const uint8_t *)"something\n", 10);
	assert_int_equal(hr_store_create(store), -ENOTEMPTY);
	help_write(help_path(state, "s/headrace.store"), (const uint8_t *)"headrace store 2\n", 17);
	assert_int_equal(hr_store_create(store), -EPROTONOSUPPORT);
	assert_int_equal(hr_store_check(store), -EPROTONOSUPPORT);
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), -EPROTONOSUPPORT);
	assert_int_equal(hr_store_create(help_path(state, "s/thesis.tex")), -ENOTDIR);
	assert_int_equal(hr_store_check(help_path(state, "s/thesis.tex")), -ENOTDIR);
	assert_int_equal(hr_store_check(help_path(state, "s/thesis.tex/s")), -ENOTDIR);
	assert_int_equal(hr_store_create(help_path(state, "s/thesis.tex/s")), -ENOTDIR);
}

static void folders_above_are_made(void **state)
{
	char longer[HR_STORE_PATH_MOST + 2];
	struct stat st;

	assert_int_equal(hr_store_check(help_path(state, "one/two/s")), 0);
	assert_int_equal(access(help_path(state, "one"), F_OK), -1);
	assert_int_equal(hr_store_create(help_path(state, "one/two//s/")), 0);
	assert_int_equal(hr_store_check(help_path(state, "one/two/s")), 0);
	assert_int_equal(stat(help_path(state, "one/two/s"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(hr_store_check(longer), -ENAMETOOLONG);
	assert_int_equal(hr_store_create(longer), -ENAMETOOLONG);
}

/* A creator that died between making the file and writing it. */
static void half_made_store_is_adopted(void **state)
{
	const char *store = help_path(state, "s");

	assert_int_equal(mkdir(store, 0700), 0);
	help_write(help_path(state, "s/headrace.store"), (const uint8_t *)"", 0);
	assert_int_equal(hr_store_create(store), 0);
	assert_int_equal(size_of(help_path(state, "s/headrace.store")), 17);
}

static void names_are_encoded(void **state)
{
	const char *store = help_path(state, "s");
	struct hr_stream_id id = help_id(".n/1");
	struct hr_writer *w;

	id.job = "a b/../%";
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	assert_string_equal(hr_writer_dir(w) + strlen(store),
			    "/jobs/a%20b%2F..%2F%25/%2En%2F1.0000000000000001-0");
	assert_int_equal(hr_writer_close(w), 0);
	id.job = "";
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), -EINVAL);
}

static void one_writer_at_a_time(void **state)
{
	const char *store = help_path(state, "s");
	struct hr_stream_id id = help_id("n1");
	struct hr_writer *w = help_writer(store, "n1"), *other;

	assert_int_equal(hr_writer_open(store, &id, &other, NULL), -EBUSY);
	other = help_writer(store, "n2"); /* another stream */
	assert_int_equal(hr_writer_close(other), 0);
	assert_int_equal(hr_writer_close(w), 0);
	assert_int_equal(hr_writer_close(help_writer(store, "n1")), 0);
}

static void files_are_private(void **state)
{
	const char *store = help_path(state, "s");
	struct stat st;

	assert_int_equal(hr_writer_close(help_writer(store, "n1")), 0);
	assert_int_equal(stat(segment(store, 1), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(help_path(state, "s/jobs/7"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
}

/* ---- appending ------------------------------------------------------------------------------- */

static uint8_t *make_frame(uint64_t seq, size_t *ret_bytes)
{
	struct build b = {.seq = seq, .zstd = BUILD_ZSTD_NONE};

	build_end(&b, "");
	*ret_bytes = b.packed_bytes;
	return b.packed;
}

static int append_seq(struct hr_writer *w, uint64_t seq)
{
	size_t bytes;
	uint8_t *buf = make_frame(seq, &bytes);
	int r = hr_writer_append(w, buf, bytes);

	if (r == 0) {
		buf[bytes - 1] ^= 1;
		assert_int_equal(hr_writer_append(w, buf, bytes), -EBADMSG);
		assert_int_equal(hr_writer_append(w, buf, bytes - 1), -EBADMSG);
	}
	free(buf);
	return r;
}

static void only_the_next_seq(void **state)
{
	struct hr_writer *w = help_writer(help_path(state, "s"), "n1");
	uint64_t bytes;

	assert_int_equal(hr_writer_mark(w), 1); /* StreamStart */
	assert_int_equal(append_seq(w, 2), 0);
	bytes = hr_writer_bytes(w);
	assert_int_equal(append_seq(w, 2), -EALREADY);
	assert_int_equal(append_seq(w, 1), -EALREADY);
	assert_int_equal(append_seq(w, 4), -ERANGE);
	assert_int_equal(append_seq(w, 0), -EINVAL);
	assert_int_equal(hr_writer_mark(w), 2);
	assert_int_equal(hr_writer_bytes(w), bytes);
	assert_int_equal(append_seq(w, 3), 0);
	assert_int_equal(hr_writer_sync(w), 0);
	assert_int_equal(hr_writer_close(w), 0);
}

static void goes_on_after_close(void **state)
{
	const char *store = help_path(state, "s");
	struct hr_writer *w = help_writer(store, "n1");
	uint64_t bytes;

	assert_int_equal(help_append_loss(w, 1), 0);
	assert_int_equal(hr_writer_close(w), 0);
	bytes = (uint64_t)size_of(segment(store, 1));
	w = help_writer(store, "n1");
	assert_int_equal(hr_writer_mark(w), 2);
	assert_int_equal(hr_writer_bytes(w), bytes);
	assert_int_equal(size_of(segment(store, 2)), -1); /* made when needed */
	assert_int_equal(help_append_loss(w, 2), 0);
	assert_int_equal(hr_writer_close(w), 0);
	assert_true(size_of(segment(store, 2)) > 0);
	w = help_writer(store, "n1");
	assert_int_equal(hr_writer_mark(w), 3);
	assert_int_equal(hr_writer_close(w), 0);
}

static void segments_are_sealed_past_their_size(void **state)
{
	const char *store = help_path(state, "s");
	struct hr_writer *w = help_writer(store, "n1");
	uint64_t sum = 0;

	hr_writer_segment_bytes(w, 3000);
	for (unsigned i = 0; i < 400; i++)
		assert_int_equal(help_append_loss(w, i), 0);
	for (unsigned n = 1; size_of(segment(store, n)) > 0; n++)
		sum += (uint64_t)size_of(segment(store, n));
	assert_int_equal(hr_writer_bytes(w), sum);
	assert_true(size_of(segment(store, 3)) > 3000);
	assert_int_equal(hr_writer_sync(w), 0);
	assert_int_equal(hr_writer_close(w), 0);
	w = help_writer(store, "n1");
	assert_int_equal(hr_writer_mark(w), 401);
	assert_int_equal(hr_writer_close(w), 0);
}

/* The lowest descriptor that is free. */
static int free_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

/* A sync opens the segments that were sealed before it, and closes them. */
static void synced_segments_are_closed(void **state)
{
	const char *store = help_path(state, "s");
	struct hr_writer *w = help_writer(store, "n1");
	int before;

	hr_writer_segment_bytes(w, 3000);
	for (unsigned i = 0; i < 400; i++)
		assert_int_equal(help_append_loss(w, i), 0);
	assert_true(size_of(segment(store, 3)) > 3000);
	before = free_descriptor();
	assert_int_equal(hr_writer_sync(w), 0);
	assert_int_equal(free_descriptor(), before);
	assert_int_equal(hr_writer_close(w), 0);
}

/* ---- recovery -------------------------------------------------------------------------------- */

/*
 * A writer that is gone without closing: the lock and the descriptors go, the segment stays open.
 */
static void write_and_die(const char *store, unsigned losses)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct hr_stream_id id = help_id("n1");
		struct hr_writer *w;

		if (hr_writer_open(store, &id, &w, NULL) < 0)
			_exit(1);
		for (unsigned i = 0; i < losses; i++)
			help_append_loss(w, i);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

/* Cut anywhere, a stream keeps its whole frames and goes on where they end. */
static void torn_anywhere(void **state)
{
	const char *store = help_path(state, "s");
	struct hr_stream_id id = help_id("n1");
	uint64_t mark, previous_mark = 0, cut;
	uint8_t *data;
	size_t bytes;

	write_and_die(store, 3);
	bytes = help_read(segment(store, 1), &data);
	for (size_t n = 0; n <= bytes; n++) {
		struct hr_writer *w;

		help_write(segment(store, 1), data, n);
		assert_int_equal(hr_writer_open(store, &id, &w, &cut), 0);
		mark = hr_writer_mark(w);
		assert_true(mark >= previous_mark && mark <= 4);
		assert_true(cut < 150);
		previous_mark = mark;
		assert_int_equal(help_append_loss(w, 9), 0);
		assert_int_equal(hr_writer_close(w), 0);
		w = help_writer(store, "n1");
		assert_int_equal(hr_writer_mark(w), mark + 1);
		assert_int_equal(hr_writer_close(w), 0);
	}
	assert_int_equal(mark, 4);
	free(data);
}

/* Cut anywhere in a footer, the segment is opened again and sealed anew. */
static void torn_footer(void **state)
{
	const char *store = help_path(state, "s");
	struct hr_writer *w = help_writer(store, "n1");
	uint8_t *data;
	size_t bytes, frames;

	assert_int_equal(help_append_paths(w, 1, 3, false), 0);
	frames = hr_writer_bytes(w);
	assert_int_equal(hr_writer_close(w), 0);
	bytes = help_read(segment(store, 1), &data);
	assert_true(bytes > frames);
	for (size_t n = frames; n < bytes; n++) {
		help_write(segment(store, 1), data, n);
		w = help_writer(store, "n1");
		assert_int_equal(hr_writer_mark(w), 2);
		assert_int_equal(hr_writer_bytes(w), frames);
		assert_int_equal(hr_writer_close(w), 0);
		assert_int_equal(size_of(segment(store, 1)), bytes);
	}
	free(data);
}

/* Garbage at the end goes; damage in the middle stays, with what is whole on both sides of it. */
static void damage_is_not_a_tail(void **state)
{
	const char *store = help_path(state, "s");
	struct hr_stream_id id = help_id("n1");
	struct hr_writer *w;
	uint8_t *data;
	uint64_t cut;
	size_t bytes;

	write_and_die(store, 5);
	bytes = help_read(segment(store, 1), &data);
	data[bytes / 2] ^= 1;
	help_write(segment(store, 1), data, bytes);
	assert_int_equal(hr_writer_open(store, &id, &w, &cut), 0);
	assert_int_equal(cut, 0);
	assert_int_equal(hr_writer_mark(w), 6);
	assert_int_equal(help_append_loss(w, 9), 0);
	assert_int_equal(hr_writer_close(w), 0);
	assert_int_equal(size_of(segment(store, 1)), bytes);
	assert_true(size_of(segment(store, 2)) > 0);
	free(data);
}

static void newer_segment_is_not_touched(void **state)
{
	const char *store = help_path(state, "s");
	struct hr_stream_id id = help_id("n1");
	struct hr_writer *w;
	uint8_t *data;
	size_t bytes;

	write_and_die(store, 1);
	bytes = help_read(segment(store, 1), &data);
	data[8] = HR_STORE_VERSION + 1;
	help_write(segment(store, 1), data, bytes);
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), -EPROTONOSUPPORT);
	assert_int_equal(size_of(segment(store, 1)), bytes);
	free(data);
}

/* kill -9 at random moments: nothing that was appended is lost, nothing is there twice. */
static void killed_writers(void **state)
{
	const char *store = help_path(state, "s");
	uint64_t known = 1;

	for (unsigned round = 0; round < 40; round++) {
		int fds[2], status;
		uint64_t seq, acknowledged = known;
		struct hr_writer *w;
		pid_t pid;

		assert_int_equal(pipe(fds), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			struct hr_stream_id id = help_id("n1");

			if (hr_writer_open(store, &id, &w, NULL) < 0)
				_exit(1);
			hr_writer_segment_bytes(w, 20000);
			for (;;) {
				help_append_loss(w, hr_writer_mark(w));
				seq = hr_writer_mark(w);
				if (write(fds[1], &seq, sizeof(seq)) < 0)
					_exit(1);
			}
		}
		close(fds[1]);
		usleep(500 + round * 100);
		kill(pid, SIGKILL);
		while (read(fds[0], &seq, sizeof(seq)) == sizeof(seq))
			acknowledged = seq;
		close(fds[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		w = help_writer(store, "n1");
		known = hr_writer_mark(w);
		assert_in_range(known, acknowledged, acknowledged + 1);
		assert_int_equal(hr_writer_close(w), 0);
	}
	assert_true(known > 40);
}

/*
 * A full disk (here: the limit on file sizes) leaves nothing half-written, and appending works
 * again after.
 */
static void disk_full(void **state)
{
	const char *store = help_path(state, "s");
	struct hr_writer *w = help_writer(store, "n1");
	struct rlimit limit, small = {0};
	uint64_t mark, bytes;
	unsigned done = 0;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = limit;
	small.rlim_cur = 5000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	while (help_append_loss(w, done) == 0)
		done++;
	mark = hr_writer_mark(w);
	bytes = hr_writer_bytes(w);
	assert_int_equal(help_append_loss(w, done), -EFBIG);
	assert_int_equal(size_of(segment(store, 1)), bytes);
	assert_int_equal(hr_writer_mark(w), mark);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(help_append_loss(w, done), 0);
	assert_int_equal(hr_writer_mark(w), mark + 1);
	assert_int_equal(hr_writer_close(w), 0);
	w = help_writer(store, "n1");
	assert_int_equal(hr_writer_mark(w), mark + 1);
	assert_int_equal(hr_writer_close(w), 0);
}

static bool no_space;

/* In place of libc's: a disk without space. */
int fallocate(int fd, int mode, off_t offset, off_t len)
{
	if (!no_space)
		return (int)syscall(SYS_fallocate, fd, mode, offset, len);
	errno = ENOSPC;
	return -1;
}

/* On a full disk, the reserved space is for hr_writer_append_last only. */
static void last_frame_on_a_full_disk(void **state)
{
	struct hr_writer *w = help_writer(help_path(state, "s"), "n1");
	size_t bytes;
	uint8_t *buf = make_frame(2, &bytes);

	no_space = true;
	assert_int_equal(hr_writer_append(w, buf, bytes), -ENOSPC);
	assert_int_equal(hr_writer_append_last(w, buf, bytes), 0);
	no_space = false;
	assert_int_equal(append_seq(w, 3), 0);
	assert_int_equal(hr_writer_close(w), 0);
	free(buf);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, help_setup, help_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(store_is_made_once),
	    TEST(foreign_folders_are_refused),
	    TEST(folders_above_are_made),
	    TEST(half_made_store_is_adopted),
	    TEST(names_are_encoded),
	    TEST(one_writer_at_a_time),
	    TEST(files_are_private),
	    TEST(only_the_next_seq),
	    TEST(goes_on_after_close),
	    TEST(segments_are_sealed_past_their_size),
	    TEST(synced_segments_are_closed),
	    TEST(torn_anywhere),
	    TEST(torn_footer),
	    TEST(damage_is_not_a_tail),
	    TEST(newer_segment_is_not_touched),
	    TEST(killed_writers),
	    TEST(disk_full),
	    TEST(last_frame_on_a_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
