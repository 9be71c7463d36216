/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Killing the daemon at any point loses nothing and doubles nothing: a client writes numbered reads to its rings while the
 * daemon is killed with SIGKILL and started again, or killed for good and recovered from its journal.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client.h"
#include "daemon/journal/journal.h"
#include "daemon/node/recover.h"
#include "nodes.h"
#include "numbered.h"
#include "tests/seeds.h"
#include "tests/unit.h"

#define HALF_BYTES (4u << 20) /* a checkpoint every 27,000 records or so */
#define SEEDS	   40u

/* Opens that a default exclude leaves out. */
static void leave_out(const struct client *c, uint64_t n)
{
	struct hr_map_hdr *map = (struct hr_map_hdr *)c->maps[0];

	__atomic_fetch_add(&map->excluded[n % HR_EXCLUDED_KINDS], n, __ATOMIC_RELAXED);
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
	for (unsigned i = 0; i < NUMBERED_PATHS; i += 2) /* every other file is never named */
		numbered_announce(client_ring(&c, 0, 0), i);
	for (uint64_t part = 0; part < parts; part++) {
		uint64_t more = (uint64_t)rand() % (seed % 8 == 0 ? 40000 : 3000);

		/* What fits into the rings may be written while nobody reads them. */
		numbered_reads(&c, n, n + more);
		n += more;
		leave_out(&c, more);
		left_out += more;
		numbered_pause_us((unsigned)rand() % 3000);
		nodes_kill(daemon);
		client_fdstore_gather();
		if (rand() % 2) {
			more = (uint64_t)rand() % 500;
			if (client_ring(&c, 0, 0)->head - client_ring(&c, 0, 0)->tail < 2000) {
				numbered_reads(&c, n, n + more);
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
	numbered_each_once(seen, n, seed);
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
	numbered_announce(client_ring(&c, 0, 0), 0);
	n = (uint64_t)rand() % (seed % 4 == 0 ? 60000 : 5000);
	numbered_reads(&c, 0, n);
	numbered_pause_us((unsigned)rand() % 5000);
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
	for (unsigned seed = 1; seed <= test_seeds(SEEDS) / 4 + 1; seed++)
		killed_for_good(seed);
}

static void a_journal_is_two_halves(void **state)
{
	struct hr_journal *j;
	uint64_t at = 0, gens[2];
	bool found;

	assert_int_equal(hr_journal_open(-1, 1 << 16, &j, &found), 0);
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

/* Appends an entry that uses all but `spare` bytes of a half, then sets the half's head. */
static void head_beyond(uint64_t spare, uint64_t head)
{
	const uint64_t half_bytes = 1 << 16;
	int fd = memfd_create("journal", MFD_CLOEXEC);
	uint64_t at = 0, gens[2], capacity;
	struct hr_journal *j;
	bool found;

	assert_int_equal(hr_journal_open(dup(fd), half_bytes, &j, &found), 0);
	capacity = hr_journal_capacity(j);
	assert_int_equal(hr_journal_begin(j), 0);
	assert_non_null(hr_journal_reserve(j, capacity - spare, 0));
	hr_journal_commit(j, HR_ENTRY_SEAL, capacity - spare);
	hr_journal_begun(j);
	hr_journal_close(j);
	assert_int_equal(
	    pwrite(fd, &head, sizeof(head),
		   (off_t)(HR_PAGE_BYTES + half_bytes + offsetof(struct hr_half, head))),
	    sizeof(head));
	assert_int_equal(hr_journal_open(fd, half_bytes, &j, &found), 0);
	assert_true(found);
	assert_int_equal(hr_journal_replay(j, gens), 1);
	assert_true(hr_journal_damaged(j, gens[0]));
	assert_in_range(hr_journal_head(j), capacity - spare, capacity);
	assert_null(hr_journal_reserve(j, 64, 64)); /* head + 64 + 64 does not wrap */
	assert_int_equal(hr_journal_next(j, gens[0], &at)->bytes, capacity - spare);
	assert_null(hr_journal_next(j, gens[0], &at));
	hr_journal_close(j);
}

static void a_head_beyond_its_half_is_damage(void **state)
{
	head_beyond(1 << 15, UINT64_MAX - 100);
	head_beyond(1 << 15, UINT64_MAX);
	head_beyond(0, UINT64_MAX - 100); /* although all entries are intact */
	head_beyond(0, (1 << 16) - 56);	  /* 8 bytes beyond the half */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_journal_is_two_halves),
	    cmocka_unit_test(a_head_beyond_its_half_is_damage),
	    cmocka_unit_test(kills_lose_nothing),
	    cmocka_unit_test(a_dead_job_is_recovered),
	};

	client_fdstore_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
