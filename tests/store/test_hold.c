/* SPDX-License-Identifier: Apache-2.0 */
/* What a collector asks of a store: to have it alone, to go back to a good sync, to go on with a retired stream. */
#include "tests/store/help.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/stream_state.h"
#include "store/writer.h"

static void test_hold(void **state)
{
	const char *store = help_path(state, "store");
	struct hr_stream_id id = help_id("n1");
	struct hr_writer *w;
	char text[64];
	int fd, other;

	assert_int_equal(hr_store_hold(store, &fd), 0);
	assert_int_equal(hr_store_write_holder(store, "tcp://h:1 (pid 5 on n1)\n"), 0);
	assert_int_equal(hr_store_hold(store, &other), -EBUSY);
	assert_int_equal(hr_store_create(store), -EBUSY);
	assert_int_equal(hr_store_check(store), -EBUSY);
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), -EBUSY);
	assert_true(hr_store_holder(store, text, sizeof(text)));
	assert_string_equal(text, "tcp://h:1 (pid 5 on n1)");
	assert_int_equal(hr_writer_open_held(store, &id, &w, NULL), 0);
	assert_int_equal(help_append_loss(w, 1), 0);
	assert_int_equal(hr_writer_close(w), 0);
	close(fd);
	assert_false(hr_store_holder(store, text, sizeof(text)));
	assert_string_equal(text, "");
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	assert_int_equal(hr_writer_mark(w), 2);
	assert_int_equal(hr_writer_close(w), 0);
}

/* A run that writes already is left alone. */
static void test_hold_beside_a_run(void **state)
{
	const char *store = help_path(state, "store");
	struct hr_stream_id id = help_id("n1");
	struct hr_writer *w, *same;
	int fd;

	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	assert_int_equal(hr_store_hold(store, &fd), 0);
	assert_int_equal(help_append_loss(w, 1), 0);
	assert_int_equal(hr_writer_open_held(store, &id, &same, NULL), -EBUSY);
	assert_int_equal(hr_writer_close(w), 0);
	close(fd);
}

struct watched {
	const char *store;
	unsigned turn; /* atomic; odd: the store is held */
	bool end;      /* atomic */
	unsigned free; /* how often it was found free while it was held */
};

static void *watch(void *self)
{
	struct watched *w = self;
	char text[64];

	while (!__atomic_load_n(&w->end, __ATOMIC_ACQUIRE)) {
		unsigned turn = __atomic_load_n(&w->turn, __ATOMIC_ACQUIRE);
		bool found = hr_store_holder(w->store, text, sizeof(text));

		if (turn % 2 == 1 && __atomic_load_n(&w->turn, __ATOMIC_ACQUIRE) == turn)
			w->free += !found;
	}
	return NULL;
}

/* A store that becomes writable is locked all the time. */
static void test_hold_writable(void **state)
{
	struct watched w = {.store = help_path(state, "store")};
	pthread_t watcher;
	int fd, other;

	assert_int_equal(hr_store_create(w.store), 0);
	assert_int_equal(hr_store_hold_read_only(w.store, &fd), 0);
	__atomic_add_fetch(&w.turn, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_create(&watcher, NULL, watch, &w), 0);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(hr_store_hold_writable(w.store, &fd), 0);
		assert_int_equal(hr_store_hold(w.store, &other), -EBUSY);
		assert_int_equal(hr_store_hold_read_only(w.store, &other), -EBUSY);
		__atomic_add_fetch(&w.turn, 1, __ATOMIC_RELEASE);
		close(fd);
		assert_int_equal(hr_store_hold_read_only(w.store, &fd), 0);
		__atomic_add_fetch(&w.turn, 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&w.end, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(watcher, NULL), 0);
	assert_int_equal(w.free, 0);
	close(fd);
}

static void append_losses(struct hr_writer *w, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(help_append_loss(w, i + 1), 0);
}

static uint64_t frames_of(const char *store)
{
	const struct hr_stream *streams;
	struct hr_catalog *c;
	uint64_t frames;
	size_t n;

	c = help_open(store, &streams, &n);
	assert_int_equal(n, 1);
	assert_int_equal(help_problems(c), 0);
	assert_int_equal(streams[0].n_frames, streams[0].last_seq);
	frames = streams[0].n_frames;
	hr_catalog_free(c);
	return frames;
}

static void check_bytes(const struct hr_writer *w)
{
	uint64_t bytes = 0;
	struct stat st;
	char name[32];

	for (unsigned i = 1; i <= 999; i++) {
		snprintf(name, sizeof(name), "%06u.seg", i);
		if (fstatat(hr_writer_dir_fd(w), name, &st, 0) == 0)
			bytes += (uint64_t)st.st_size;
	}
	assert_int_equal(hr_writer_bytes(w), bytes);
}

/* Segments that were made since the last good sync, and the one that was sealed since, are taken back. */
static void test_rewind(void **state)
{
	const char *store = help_path(state, "store");
	struct hr_stream_id id = help_id("n1");
	struct hr_writer *w;

	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	hr_writer_segment_bytes(w, 1024);
	append_losses(w, 5);
	assert_int_equal(hr_writer_sync(w), 0);
	append_losses(w, 200);
	assert_int_equal(hr_writer_mark(w), 206);
	assert_true(w->number > 3);
	check_bytes(w);
	assert_int_equal(hr_writer_rewind(w), 0);
	check_bytes(w);
	assert_int_equal(hr_writer_mark(w), 6);
	append_losses(w, 1);
	assert_int_equal(hr_writer_sync(w), 0);
	assert_int_equal(frames_of(store), 7);
	append_losses(w, 300);
	hr_writer_synced(w);
	append_losses(w, 1);
	assert_int_equal(hr_writer_rewind(w), 0);
	check_bytes(w);
	assert_int_equal(hr_writer_mark(w), 307);
	assert_int_equal(hr_writer_close(w), 0);
	assert_int_equal(frames_of(store), 307);
}

static void test_rewind_of_a_new_stream(void **state)
{
	const char *store = help_path(state, "store");
	struct hr_stream_id id = help_id("n1");
	struct hr_writer *w;

	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	append_losses(w, 5);
	assert_int_equal(hr_writer_rewind(w), 0);
	assert_int_equal(hr_writer_mark(w), 1);
	append_losses(w, 1);
	assert_int_equal(hr_writer_close(w), 0);
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	append_losses(w, 5);
	assert_int_equal(hr_writer_rewind(w), 0); /* what recovery found stays */
	assert_int_equal(hr_writer_mark(w), 2);
	hr_writer_abandon(w);
	assert_int_equal(frames_of(store), 2);
}

static void test_retired(void **state)
{
	const char *store = help_path(state, "store");
	struct hr_stream_id id = help_id("n1");
	struct hr_stream_state s = {.retired = true, .mark = 41};
	char path[4096];
	struct hr_writer *w;
	int fd;

	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	snprintf(path, sizeof(path), "%s", hr_writer_dir(w));
	assert_int_equal(hr_writer_close(w), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(hr_stream_state_write(fd, &s, true), 0);
	assert_int_equal(unlinkat(fd, "000001.seg", 0), 0);
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	assert_int_equal(hr_writer_mark(w), 41);
	assert_int_equal(help_append_loss(w, 1), 0);
	assert_int_equal(hr_writer_mark(w), 42);
	assert_int_equal(hr_writer_close(w), 0);
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	assert_int_equal(hr_writer_mark(w), 42);
	assert_int_equal(hr_writer_close(w), 0);

	/* A state that cannot be read is no mark of 0. */
	assert_int_equal(unlinkat(fd, "000001.seg", 0), 0);
	help_write(strcat(path, "/state"), (const uint8_t *)"x", 1);
	assert_int_equal(hr_writer_open(store, &id, &w, NULL), -EBADMSG);
	close(fd);
}

/* The owner of a stream: root is one, too. */
static void test_owner(void **state)
{
	static const struct hr_stream_state owners[] = {
	    {.uid_known = true}, {.uid_known = true, .uid = 1000}, {.uid = 1000}};
	struct hr_stream_state s;
	int fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		assert_int_equal(hr_stream_state_write(fd, &owners[i], false), 0);
		assert_int_equal(hr_stream_state_read(fd, &s), 0);
		assert_int_equal(s.uid_known, owners[i].uid_known);
		if (s.uid_known)
			assert_int_equal(s.uid, owners[i].uid);
	}
	close(fd);
}

static void test_limit_index(void **state)
{
	const char *store = help_path(state, "store");
	struct hr_stream_id id = help_id("n1");
	struct hr_writer *w;

	assert_int_equal(hr_writer_open(store, &id, &w, NULL), 0);
	hr_writer_limit_index(w, 64 << 10);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(help_append_paths(w, i * 1000 + 1, 1000, true), 0);
	assert_true(w->number > 3 && w->number < 20);
	assert_int_equal(hr_writer_close(w), 0);
	assert_int_equal(frames_of(store), 21);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_hold, help_setup, help_teardown),
	    cmocka_unit_test_setup_teardown(test_hold_beside_a_run, help_setup, help_teardown),
	    cmocka_unit_test_setup_teardown(test_hold_writable, help_setup, help_teardown),
	    cmocka_unit_test_setup_teardown(test_rewind, help_setup, help_teardown),
	    cmocka_unit_test_setup_teardown(test_rewind_of_a_new_stream, help_setup, help_teardown),
	    cmocka_unit_test_setup_teardown(test_retired, help_setup, help_teardown),
	    cmocka_unit_test_setup_teardown(test_owner, help_setup, help_teardown),
	    cmocka_unit_test_setup_teardown(test_limit_index, help_setup, help_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
