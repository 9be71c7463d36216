/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Killing the daemon at any point loses nothing and doubles nothing: a client writes numbered reads to its rings while the
 * daemon is killed with SIGKILL and started again, or killed for good and recovered from its journal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "common/ops.h"
#include "daemon/journal.h"
#include "daemon/recover.h"
#include "nodes.h"
#include "tests/seeds.h"

#define HALF_BYTES (4u << 20) /* a checkpoint every 27,000 records or so */
#define PATHS	   50u
#define SEEDS	   200u

static uint64_t file_of(unsigned i)
{
	return 4096 + 8 * (uint64_t)i;
}

static void announce(struct hr_ring_hdr *ring, unsigned i)
{
	struct hr_record s[2] = {
	    {.file = file_of(i), .offset = HR_OFFSET_NONE, .ret = -1, .op = HR_CTL_PATH, .fd = 1}};
	char text[HR_TEXT_BYTES + 1];

	s[0].asked = (uint64_t)snprintf(text, sizeof(text), "/data/file-%04u", i);
	memcpy(&s[1], text, HR_TEXT_BYTES);
	client_commit(ring, s, 2);
}

/* Reads number from..to-1; the number is the offset. */
static void produce(const struct client *c, uint64_t from, uint64_t to)
{
	static uint16_t pread64_id;

	if (!pread64_id)
		pread64_id = hr_op_by_name("pread64");
	for (uint64_t i = from; i < to; i++) {
		struct hr_ring_hdr *ring = client_ring(c, 0, i % 3 == 0);
		struct hr_record rec = {
		    .start_ticks = client_ticks(c),
		    .file = file_of((unsigned)(i / 64 % PATHS)),
		    .offset = (int64_t)i,
		    .ret = 100,
		    .asked = 100,
		    .dur_lo = 1,
		    .op = pread64_id,
		    .fd = 5,
		};

		client_commit(ring, &rec, 1);
	}
}

/* Opens that a default exclude leaves out. */
static void leave_out(const struct client *c, uint64_t n)
{
	struct hr_map_hdr *map = (struct hr_map_hdr *)c->maps[0];

	__atomic_fetch_add(&map->excluded[n % HR_EXCLUDED_KINDS], n, __ATOMIC_RELAXED);
}

static void pause_us(unsigned us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000L}, NULL);
}

static void assert_each_once(const uint8_t *seen, uint64_t n, unsigned seed)
{
	for (uint64_t i = 0; i < n; i++)
		if (seen[i] != 1)
			fail_msg("seed %u: event %llu of %llu was stored %u times", seed,
				 (unsigned long long)i, (unsigned long long)n, seen[i]);
}

static void killed_and_restarted(unsigned seed)
{
	struct nodes nodes;
	struct client c;
	struct nodes_sums sums;
	uint64_t n = 0, left_out = 0, parts = 2 + seed % 4;
	uint8_t *seen;
	pid_t daemon;

	srand(seed);
	nodes_init(&nodes, HALF_BYTES);
	daemon = nodes_start(&nodes);
	assert_int_equal(client_attach(&c, nodes.socket, 0, 0, NULL), 0);
	for (unsigned i = 0; i < PATHS; i += 2) /* every other file is never named */
		announce(client_ring(&c, 0, 0), i);
	for (uint64_t part = 0; part < parts; part++) {
		uint64_t more = (uint64_t)rand() % (seed % 8 == 0 ? 40000 : 3000);

		/* What fits into the rings may be written while nobody reads them. */
		produce(&c, n, n + more);
		n += more;
		leave_out(&c, more);
		left_out += more;
		pause_us((unsigned)rand() % 3000);
		nodes_kill(daemon);
		client_fdstore_gather();
		if (rand() % 2) {
			more = (uint64_t)rand() % 500;
			if (client_ring(&c, 0, 0)->head - client_ring(&c, 0, 0)->tail < 2000) {
				produce(&c, n, n + more);
				n += more;
			}
		}
		daemon = nodes_start(&nodes);
	}
	assert_int_equal(nodes_stop(&nodes, daemon), 0);
	client_detach(&c);
	client_fdstore_clear();
	seen = calloc(1, n + 1);
	nodes_read(&nodes, seen, n, &sums);
	assert_each_once(seen, n, seed);
	assert_int_equal(sums.events, n);
	assert_int_equal(sums.rollup_count, n);
	assert_int_equal(sums.rollup_bytes, n * 100);
	assert_int_equal(sums.file_reads, n);
	assert_int_equal(sums.excluded, left_out);
	assert_int_equal(sums.lost + sums.torn + sums.hostile + sums.other_loss, 0);
	assert_true(sums.stream_ended);
	assert_int_equal(sums.problems, 0);
	assert_int_equal(sums.processes, 1);
	free(seen);
	nodes_done(&nodes);
}

static void kills_lose_nothing(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= test_seeds(SEEDS); seed++)
		killed_and_restarted(seed);
}

static void killed_for_good(unsigned seed)
{
	struct nodes nodes;
	struct client c;
	struct nodes_sums sums;
	uint64_t n, taken;
	char *note = NULL;
	uint8_t *seen;
	pid_t daemon;

	srand(seed);
	nodes_init(&nodes, HALF_BYTES);
	daemon = nodes_start(&nodes);
	assert_int_equal(client_attach(&c, nodes.socket, 0, 0, NULL), 0);
	announce(client_ring(&c, 0, 0), 0);
	n = (uint64_t)rand() % (seed % 4 == 0 ? 60000 : 5000);
	produce(&c, 0, n);
	pause_us((unsigned)rand() % 5000);
	nodes_kill(daemon);
	taken = client_ring(&c, 0, 0)->tail - 2 + client_ring(&c, 0, 1)->tail;
	client_detach(&c);
	client_fdstore_clear();
	assert_int_equal(hr_store_recover(nodes.store, &note), 0);
	assert_non_null(note);
	free(note);
	seen = calloc(1, n + 1);
	nodes_read(&nodes, seen, n, &sums);
	for (uint64_t i = 0; i < n; i++)
		assert_in_range(seen[i], 0, 1);
	/* What was given back to the client is in the store; what was committed but not given back may be, too. */
	assert_in_range(sums.events, taken <= n ? taken : 0, n);
	assert_int_equal(sums.rollup_count, sums.events);
	assert_int_equal(sums.file_reads, sums.events);
	assert_true(sums.stream_ended);
	assert_int_equal(sums.ended_processes, 1);
	assert_int_equal(hr_store_recover(nodes.store, &note), 0);
	assert_null(note);
	free(seen);
	nodes_done(&nodes);
}

static void a_dead_job_is_recovered(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= test_seeds(SEEDS) / 4 + 1; seed++)
		killed_for_good(seed);
}

static void a_journal_is_two_halves(void **state)
{
	struct hr_journal *j;
	uint64_t at = 0, gens[2];
	bool found;

	(void)state;
	assert_int_equal(hr_journal_open(NULL, 1 << 16, &j, &found), 0);
	assert_false(found);
	assert_null(hr_journal_reserve(j, 64, 0)); /* no half is active yet */
	assert_int_equal(hr_journal_begin(j), 0);
	assert_non_null(hr_journal_reserve(j, 100, 0));
	hr_journal_commit(j, HR_ENTRY_SEAL, 20);
	hr_journal_begun(j);
	assert_int_equal(hr_journal_next(j, 1, &at)->bytes, 24);
	assert_null(hr_journal_next(j, 1, &at));
	assert_null(hr_journal_reserve(j, 1 << 16, 0));
	assert_null(hr_journal_reserve(j, 60000, 10000));
	assert_int_equal(hr_journal_begin(j), 0);
	assert_int_equal(hr_journal_replay(j, gens), 1); /* the second half does not count yet */
	hr_journal_close(j);
}

/* ---- damage ---------------------------------------------------------------------------------------- */

#define FEW	     40u /* records */
#define SEGMENT_MOST 65536u
#define HALF_AT	     ((off_t)(HR_PAGE_BYTES + HALF_BYTES)) /* a new stream begins in the second half */

/* What a killed daemon left, kept so that it can be damaged and recovered again and again. */
struct wreck {
	struct nodes nodes;
	char segment[256], journal[256],
	    kept[256]; /* recovery removes a journal: kept is another link to it */
	uint8_t bytes[SEGMENT_MOST];
	ssize_t segment_bytes;
	int fd; /* of the journal */
	off_t full_bytes, used_bytes;
};

static void wreck_init(struct wreck *w)
{
	struct hr_half half;
	struct client c;
	char pattern[128];
	glob_t found;
	pid_t daemon;
	int fd;

	nodes_init(&w->nodes, HALF_BYTES);
	daemon = nodes_start(&w->nodes);
	assert_int_equal(client_attach(&c, w->nodes.socket, 0, 0, NULL), 0);
	announce(client_ring(&c, 0, 0), 0);
	produce(&c, 0, FEW);
	while (client_ring(&c, 0, 0)->tail + client_ring(&c, 0, 1)->tail < FEW + 2)
		pause_us(1000);
	pause_us(100000); /* the stream's first frames are stored */
	nodes_kill(daemon);
	client_detach(&c);
	client_fdstore_clear();
	snprintf(pattern, sizeof(pattern), "%s/jobs/*/*/journal", w->nodes.store);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	snprintf(w->journal, sizeof(w->journal), "%s", found.gl_pathv[0]);
	globfree(&found);
	snprintf(w->segment, sizeof(w->segment), "%.*s/000001.seg",
		 (int)(strlen(w->journal) - strlen("/journal")), w->journal);
	snprintf(w->kept, sizeof(w->kept), "%s/kept", w->nodes.folder);
	assert_int_equal(link(w->journal, w->kept), 0);
	w->fd = open(w->kept, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(w->fd, &half, sizeof(half), HALF_AT), sizeof(half));
	assert_true(half.gen != 0);
	w->used_bytes = HALF_AT + (off_t)(sizeof(half) + half.head);
	w->full_bytes = lseek(w->fd, 0, SEEK_END);
	fd = open(w->segment, O_RDONLY | O_CLOEXEC);
	w->segment_bytes = read(fd, w->bytes, sizeof(w->bytes));
	close(fd);
}

static void wreck_restore(const struct wreck *w)
{
	int fd = open(w->segment, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_int_equal(write(fd, w->bytes, (size_t)w->segment_bytes), w->segment_bytes);
	close(fd);
	if (access(w->journal, F_OK) < 0)
		assert_int_equal(link(w->kept, w->journal), 0);
}

/* Recovers; what is missing was said. */
static void wreck_recover(const struct wreck *w, bool must_say)
{
	struct nodes_sums sums;
	uint8_t seen[FEW] = {0};
	char *note = NULL;
	int r = hr_store_recover(w->nodes.store, &note);

	if (r == 0 && note) {
		nodes_read(&w->nodes, seen, FEW, &sums);
		assert_true(sums.events <= FEW && sums.stream_ended);
		/* An entry whose end alone is gone has slots that nobody filled. */
		if (must_say && sums.events < FEW)
			assert_true(sums.torn + sums.hostile > 0 ||
				    (strstr(note, "are damaged and lost") && sums.journal_damaged));
	} else if (must_say) {
		assert_true(note && strstr(note, "cannot be replayed"));
	}
	free(note);
}

static void wreck_done(struct wreck *w)
{
	close(w->fd);
	nodes_done(&w->nodes);
}

/* Through the file's header, the half's, and its entries; all of those with more seeds than usual. */
static off_t next_place(off_t at)
{
	if (at < 24)
		return at + 1;
	if (at < HALF_AT)
		return HALF_AT;
	return at + (at < HALF_AT + 16 || test_seeds(SEEDS) > SEEDS ? 1 : 13);
}

static void a_flipped_bit_anywhere(void **state)
{
	static struct wreck w;

	(void)state;
	wreck_init(&w);
	for (off_t at = 0; at < w.used_bytes; at = next_place(at)) {
		uint8_t byte, flipped;

		assert_int_equal(pread(w.fd, &byte, 1, at), 1);
		flipped = byte ^ (uint8_t)(1u << at % 8);
		assert_int_equal(pwrite(w.fd, &flipped, 1, at), 1);
		wreck_recover(&w, false);
		assert_int_equal(pwrite(w.fd, &byte, 1, at), 1);
		wreck_restore(&w);
	}
	wreck_done(&w);
}

static void cut_anywhere(void **state)
{
	static struct wreck w;
	uint8_t *whole;

	(void)state;
	wreck_init(&w);
	whole = malloc((size_t)w.used_bytes);
	assert_non_null(whole);
	assert_int_equal(pread(w.fd, whole, (size_t)w.used_bytes, 0), w.used_bytes);
	for (off_t at = 8; at < w.used_bytes; at = next_place(at)) {
		assert_int_equal(ftruncate(w.fd, at), 0);
		/* Without a generation, or a head, a half is as good as empty. */
		wreck_recover(&w, at <= HALF_AT || at > HALF_AT + 16);
		assert_int_equal(ftruncate(w.fd, w.full_bytes), 0);
		assert_int_equal(pwrite(w.fd, whole, (size_t)w.used_bytes, 0), w.used_bytes);
		wreck_restore(&w);
	}
	free(whole);
	wreck_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_journal_is_two_halves),
	    cmocka_unit_test(a_flipped_bit_anywhere),
	    cmocka_unit_test(cut_anywhere),
	    cmocka_unit_test(kills_lose_nothing),
	    cmocka_unit_test(a_dead_job_is_recovered),
	};

	client_fdstore_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
