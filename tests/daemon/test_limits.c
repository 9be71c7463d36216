/* SPDX-License-Identifier: Apache-2.0 */
/* A node at its limits, and what survives its kill: node page, journal, sessions with level off. */

#include <errno.h>
#include <glob.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client.h"
#include "store/store.h"
#include "daemon/node/recover.h"
#include "numbered.h"
#include "tests/unit.h"

#define HALF_BYTES (8u << 20)
#define EACH	   1000u
#define NOBODY	   65534

static void reads(const struct client *c, uint64_t from, uint64_t to)
{
	client_reads(c, client_ring(c, 0, 0), from, to);
}

static uint32_t level_of(const struct client *c)
{
	return __atomic_load_n(&((struct hr_map_hdr *)c->maps[0])->level, __ATOMIC_RELAXED);
}

static pid_t kill_and_restart(struct nodes *n, pid_t daemon)
{
	nodes_kill(daemon);
	client_fdstore_gather();
	return nodes_start(n);
}

/* Waits until the daemon has swept n times. */
static void await_beats(const struct client *c, uint64_t n)
{
	uint64_t before = __atomic_load_n(&c->page->beat, __ATOMIC_RELAXED);

	nodes_await(__atomic_load_n(&c->page->beat, __ATOMIC_RELAXED) >= before + n);
}

/* Waits until the daemon has taken all that the client has written to its first ring. */
static void await_taken(const struct client *c)
{
	const struct hr_ring_hdr *ring = client_ring(c, 0, 0);

	nodes_await(__atomic_load_n(&ring->tail, __ATOMIC_RELAXED) == ring->head);
}

static void bell_and_beat_outlive_the_daemon(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct client c;
	pid_t daemon;

	nodes_init(&n, HALF_BYTES);
	daemon = nodes_start(&n);
	assert_int_equal(client_attach(&c, n.socket, 0, 0, NULL), 0);
	reads(&c, 0, EACH);
	for (unsigned i = 0; i < 2; i++) {
		daemon = kill_and_restart(&n, daemon);
		await_beats(&c, 1);
	}
	/* The current daemon sleeps on the page that the client got from the first daemon. */
	nodes_await(syscall(SYS_futex, &c.page->bell, FUTEX_WAKE, 1, NULL, NULL, 0) == 1);
	reads(&c, EACH, 2 * EACH);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	assert_int_equal(level_of(&c), HR_LEVEL_OFF); /* the client records no more */
	client_detach(&c);
	client_fdstore_gather();
	numbered_check(&n, 2 * EACH, &sums);
}

static void clients_cannot_write_the_node_page(void **state)
{
	struct hr_hello hello = {.magic = HR_ABI_MAGIC, .abi = HR_ABI_VERSION, .word_bytes = 8};
	struct nodes n;
	struct hr_ack ack;
	pid_t daemon;
	int fds[2];

	nodes_init(&n, HALF_BYTES);
	daemon = nodes_start(&n);
	hello.kind = HR_HELLO_ATTACH;
	hello.bytes = sizeof(hello);
	hello.pid = getpid();
	assert_int_equal(client_talk(n.socket, &hello, sizeof(hello), &ack, fds), 0);
	assert_ptr_equal(mmap(NULL, HR_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0),
			 MAP_FAILED);
	assert_int_equal(errno, EACCES);
	assert_int_equal(ftruncate(fds[1], 0), -1);
	assert_int_equal(write(fds[1], &hello, 8), -1);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	client_fdstore_clear();
	nodes_done(&n);
}

static size_t files_in(const char *folder)
{
	char pattern[128];
	glob_t found = {0};
	size_t count;

	snprintf(pattern, sizeof(pattern), "%s/*", folder);
	count = glob(pattern, GLOB_NOSORT, NULL, &found) == 0 ? found.gl_pathc : 0;
	globfree(&found);
	return count;
}

static void a_journal_elsewhere(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct client c;
	pid_t daemon;
	char folder[96];

	nodes_init(&n, HALF_BYTES);
	snprintf(folder, sizeof(folder), "%s/journals", n.folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	n.journal_dir = folder;
	daemon = nodes_start(&n);
	assert_int_equal(files_in(folder), 1);
	assert_int_equal(client_attach(&c, n.socket, 0, 0, NULL), 0);
	reads(&c, 0, EACH);
	await_taken(&c);
	daemon = kill_and_restart(&n, daemon);
	assert_int_equal(files_in(folder), 1);
	reads(&c, EACH, 2 * EACH);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	assert_int_equal(files_in(folder), 0);
	client_detach(&c);
	numbered_check(&n, 2 * EACH, &sums);
}

/* Recovery fails, names the cause, and leaves the file alone. */
static void refuses(const struct nodes *n, int error, const char *cause, const char *file)
{
	char *note = NULL;
	struct stat before, after;

	assert_int_equal(lstat(file, &before), 0);
	assert_int_equal(hr_store_recover(n->store, &note), error);
	assert_non_null(strstr(note, cause));
	free(note);
	assert_int_equal(lstat(file, &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
	assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
}

/* The journal's link leads to the right name, but not to a file of headraced. */
static void a_journal_elsewhere_is_another_file(void **state)
{
	struct hr_stream_id id = {.cluster = "", .job = "job", .node = "node", .boot_id = "boot"};
	struct nodes n;
	struct nodes_sums sums;
	pid_t daemon;
	char folder[96], journal[160], moved[96], *note = NULL;
	uint8_t seen[1] = {0};

	nodes_init(&n, HALF_BYTES);
	snprintf(folder, sizeof(folder), "%s/journals", n.folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	n.journal_dir = folder;
	id.instance = n.instance;
	daemon = nodes_start(&n);
	nodes_kill(daemon);
	snprintf(journal, sizeof(journal), "%s/headrace-%016llx.journal", folder,
		 (unsigned long long)n.instance);
	snprintf(moved, sizeof(moved), "%s/moved", n.folder);
	assert_int_equal(rename(journal, moved), 0);
	assert_int_equal(symlink(moved, journal), 0);
	refuses(&n, -ELOOP, "it is not a regular file", moved);
	assert_int_equal(unlink(journal), 0);
	assert_int_equal(mkfifo(journal, 0600), 0);
	refuses(&n, -ELOOP, "it is not a regular file", journal);
	assert_int_equal(rename(moved, journal), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(journal, NOBODY, NOBODY), 0);
		refuses(&n, -EPERM, "it belongs to another user", journal);
		assert_int_equal(hr_stream_recover(n.store, &id), -EPERM);
		assert_int_equal(chown(journal, 0, 0), 0);
	}
	assert_int_equal(hr_store_recover(n.store, &note), 0);
	assert_non_null(strstr(note, "frames from its journal"));
	free(note);
	assert_int_equal(files_in(folder), 0);
	nodes_read(&n, seen, 0, &sums);
	assert_true(sums.stream_ended);
	client_fdstore_clear();
	nodes_done(&n);
}

static void give(const char *path, uid_t owner, mode_t mode)
{
	assert_int_equal(chown(path, owner, owner), 0);
	assert_int_equal(chmod(path, mode), 0);
}

/* A store of several users: each recovers what only that user can write to. */
static void a_stream_in_the_store_of_another_user(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	char path[128], folder[128], journal[160], *note = NULL;
	uint8_t seen[1] = {0};
	glob_t found;

	if (geteuid() != 0)
		skip();
	nodes_init(&n, HALF_BYTES);
	nodes_kill(nodes_start(&n));
	snprintf(path, sizeof(path), "%s/jobs/job/*", n.store);
	assert_int_equal(glob(path, 0, NULL, &found), 0);
	snprintf(folder, sizeof(folder), "%s", found.gl_pathv[0]);
	globfree(&found);
	snprintf(journal, sizeof(journal), "%s/journal", folder);
	give(n.store, NOBODY, 0755);
	snprintf(path, sizeof(path), "%s/jobs", n.store);
	give(path, NOBODY, 0777);
	snprintf(path, sizeof(path), "%s/jobs/job", n.store);
	give(path, NOBODY, 0755);
	give(folder, NOBODY, 0700);
	refuses(&n, -EPERM, "in a journal of user", journal);
	give(folder, 0, 0770);
	refuses(&n, -EPERM, "other users may write to its folder", journal);
	give(folder, 0, 0700);
	give(journal, NOBODY, 0600);
	refuses(&n, -EPERM, "it belongs to another user", journal);
	give(journal, 0, 0602);
	refuses(&n, -EPERM, "other users may write to it", journal);
	give(journal, 0, 0600);
	assert_int_equal(hr_store_recover(n.store, &note), 0);
	assert_non_null(strstr(note, "frames from its journal"));
	free(note);
	assert_int_equal(access(journal, F_OK), -1);
	nodes_read(&n, seen, 0, &sums);
	assert_true(sums.stream_ended);
	client_fdstore_clear();
	nodes_done(&n);
}

static void no_room_for_a_journal(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct client c;
	pid_t daemon;

	nodes_init(&n, HALF_BYTES);
	n.full = 1;
	daemon = nodes_start(&n);
	assert_int_equal(client_attach(&c, n.socket, 0, 0, NULL), 0);
	reads(&c, 0, EACH);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	client_detach(&c);
	numbered_check(&n, EACH, &sums);
	assert_int_equal(sums.journal_memory, 1);
	assert_int_equal(sums.other_loss, 0);
}

/* Data that was not stored is lost, which the store reports. Attached processes run unrecorded. `stored`: the first frames are stored before. */
static void kill_with_the_journal_in_memory(bool stored)
{
	uint8_t seen[2 * EACH] = {0};
	struct nodes n;
	struct nodes_sums sums;
	struct client c, d;
	pid_t daemon;

	nodes_init(&n, HALF_BYTES);
	n.full = stored ? 1 : NODES_FULL_AT_ONCE;
	daemon = nodes_start(&n);
	assert_int_equal(client_attach(&c, n.socket, 0, 0, NULL), 0);
	reads(&c, 0, EACH);
	if (stored)
		nodes_flush(&n);
	else
		await_beats(&c, 1);
	n.full = 1;
	daemon = kill_and_restart(&n, daemon);
	assert_int_equal(level_of(&c), HR_LEVEL_OFF);
	assert_int_equal(client_attach(&d, n.socket, 0, 0, NULL), 0);
	reads(&d, EACH, 2 * EACH);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	client_detach(&c);
	client_detach(&d);
	nodes_read(&n, seen, 2 * EACH, &sums);
	for (unsigned i = 0; i < 2 * EACH; i++)
		assert_in_range(seen[i], i < EACH ? 0 : 1, i < EACH && !stored ? 0 : 1);
	assert_int_equal(sums.journal_damaged, 1);
	assert_int_equal(sums.other_loss, 1); /* restart: a process */
	client_fdstore_clear();
	nodes_done(&n);
}

static void a_kill_with_the_journal_in_memory(void **state)
{
	kill_with_the_journal_in_memory(true);
}

static void a_kill_before_a_frame_is_stored(void **state)
{
	kill_with_the_journal_in_memory(false);
}

static void past_max_bytes_only_counters(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct client c;
	pid_t daemon;

	nodes_init(&n, HALF_BYTES);
	n.max_bytes = 1;
	daemon = nodes_start(&n);
	assert_int_equal(client_attach(&c, n.socket, 0, 0, NULL), 0);
	reads(&c, 0, EACH);
	nodes_await(level_of(&c) == HR_LEVEL_COUNTERS);
	nodes_trace(&n);
	assert_int_equal(level_of(&c), HR_LEVEL_COUNTERS);
	reads(&c, EACH, 20 * EACH);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	client_detach(&c);
	nodes_read(&n, NULL, 0, &sums);
	assert_true(sums.events < 20 * EACH);
	assert_int_equal(sums.rollup_count, 20 * EACH);
	assert_int_equal(sums.file_reads, 20 * EACH);
	assert_int_equal(sums.max_size, 1);
	assert_true(sums.counters_levels > 0);
	client_fdstore_clear();
	nodes_done(&n);
}

static void sessions_past_the_limit_are_counted(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct client c;
	pid_t daemon, children[3];
	unsigned refused = 1;
	int ready[2], go[2];
	char byte;

	nodes_init(&n, HALF_BYTES);
	n.max_sessions = 2;
	daemon = nodes_start(&n);
	assert_int_equal(pipe(ready) | pipe(go), 0); /* the daemon does not inherit these */
	for (unsigned i = 0; i < 3; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			int r = client_attach(&c, n.socket, 0, 0, NULL);

			byte = (char)(r == -ENOSPC ? 'n' : r ? '?' : 'y');
			close(go[1]);
			if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 0)
				_exit(1);
			_exit(0);
		}
		assert_int_equal(read(ready[0], &byte, 1), 1);
		assert_int_equal(byte, i < 2 ? 'y' : 'n');
	}
	close(go[1]);
	close(go[0]);
	close(ready[0]);
	close(ready[1]);
	for (unsigned i = 0; i < 3; i++)
		nodes_reap(children[i]);
	/* There is room as soon as the daemon has seen their ends. */
	nodes_await(client_attach(&c, n.socket, 0, 0, NULL) == 0 || (refused++, false));
	client_detach(&c);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	numbered_check(&n, 0, &sums);
	assert_int_equal(sums.limit, refused);
	assert_int_equal(sums.processes, 3);
}

/* A process sets a deselected rank while it runs: its level becomes off, also after a restart. */
static void a_rank_learnt_late_is_deselected(void **state)
{
	struct hr_record env[2] = {{.op = HR_CTL_ENV, .asked = 6, .fd = 1}};
	struct nodes n;
	struct nodes_sums sums;
	struct client c;
	pid_t daemon;

	nodes_init(&n, HALF_BYTES);
	n.ranks = "0-3";
	daemon = nodes_start(&n);
	assert_int_equal(client_attach(&c, n.socket, 0, 0, NULL), 0);
	reads(&c, 0, 10);
	assert_int_equal(level_of(&c), HR_LEVEL_TRACE);
	memcpy(&env[1], "RANK=9", 6);
	client_commit(client_ring(&c, 0, 0), env, 2);
	nodes_await(level_of(&c) == HR_LEVEL_OFF);
	assert_int_equal(client_more_rings(&c, n.socket), 0);
	daemon = kill_and_restart(&n, daemon);
	await_beats(&c, 2);
	for (unsigned i = 0; i < c.n_maps; i++)
		assert_int_equal(((struct hr_map_hdr *)c.maps[i])->level, HR_LEVEL_OFF);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	client_detach(&c);
	numbered_check(&n, 10, &sums); /* its earlier operations remain */
	assert_int_equal(sums.deselected, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bell_and_beat_outlive_the_daemon),
	    cmocka_unit_test(clients_cannot_write_the_node_page),
	    cmocka_unit_test(a_journal_elsewhere),
	    cmocka_unit_test(a_journal_elsewhere_is_another_file),
	    cmocka_unit_test(a_stream_in_the_store_of_another_user),
	    cmocka_unit_test(no_room_for_a_journal),
	    cmocka_unit_test(a_kill_with_the_journal_in_memory),
	    cmocka_unit_test(a_kill_before_a_frame_is_stored),
	    cmocka_unit_test(past_max_bytes_only_counters),
	    cmocka_unit_test(sessions_past_the_limit_are_counted),
	    cmocka_unit_test(a_rank_learnt_late_is_deselected),
	};

	client_fdstore_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
