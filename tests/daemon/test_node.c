/* SPDX-License-Identifier: Apache-2.0 */
/* A whole node: more rings, exec, deselected ranks, a full store, many attaches. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "common/ops.h"
#include "store/store.h"
#include "numbered.h"
#include "offer.h"
#include "tests/unit.h"

#define SHORT_ONES 20u

static void many_rings(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct client c;
	pid_t daemon;

	nodes_init(&n, 0);
	daemon = nodes_start(&n);
	assert_int_equal(client_attach(&c, n.socket, 0, 0, NULL), 0);
	for (unsigned i = 1; i < 6; i++)
		assert_int_equal(client_more_rings(&c, n.socket), 0);
	for (unsigned i = 0; i < 24; i++)
		client_reads(&c, client_ring(&c, i / 4, i % 4), i * 1000, i * 1000 + 1000);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	client_detach(&c);
	numbered_check(&n, 24000, &sums);
	assert_int_equal(sums.file_reads, 24000);
}

/* A process that attaches, does `work`, and ends. */
static void run_client(const struct nodes *n, void (*work)(const struct client *c))
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct client c;

		if (client_attach(&c, n->socket, 0, 0, NULL))
			_exit(1);
		work(&c);
		_exit(0);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

static void read_and_reserve(const struct client *c)
{
	client_reads(c, client_ring(c, 0, 0), 0, 100);
	client_ring(c, 0, 0)->head += 3; /* reserved and never committed */
	client_reads(c, client_ring(c, 0, 0), 100, 200);
}

static void a_dead_process_is_read_to_its_end(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	pid_t daemon;

	nodes_init(&n, 0);
	daemon = nodes_start(&n);
	run_client(&n, read_and_reserve);
	offer_ping(n.socket); /* the store of descriptors has got its map */
	nodes_await((client_fdstore_gather(), client_fdstore_count()) == 1); /* the node page */
	assert_int_equal(nodes_stop(&n, daemon), 0);
	client_fdstore_gather();
	assert_int_equal(client_fdstore_count(), 0);
	numbered_check(&n, 200, &sums);
	assert_int_equal(sums.torn, 3);
	assert_int_equal(sums.ended_processes, 1);
}

static void count_calls(const struct client *c)
{
	client_ring(c, 0, 0)->aggregate = (struct hr_aggregate){.file = 4096,
								.start_ticks = client_ticks(c),
								.count = 70,
								.bytes = 70,
								.fd = 5,
								.gen = 1,
								.op = hr_op_by_name("getc")};
}

/* The last calls of getc and its like are only counted in a cell of their thread. */
static void counted_calls_are_read_to_the_end(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	pid_t daemon;

	nodes_init(&n, 0);
	daemon = nodes_start(&n);
	run_client(&n, count_calls);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	numbered_check(&n, 0, &sums);
	assert_int_equal(sums.file_reads, 70);
	assert_int_equal(sums.ended_processes, 1);
}

static void count_excluded(const struct client *c)
{
	((struct hr_map_hdr *)c->maps[0])->excluded[0] = 3;
}

/* What a process opens in its last quarter of a second is read at its end. */
static void excluded_opens_are_read_to_the_end(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	pid_t daemon;

	nodes_init(&n, 0);
	daemon = nodes_start(&n);
	for (unsigned i = 0; i < SHORT_ONES; i++) {
		run_client(&n, count_excluded);
		offer_ping(n.socket); /* the store of descriptors has got its map */
		/* Its end is read before that of the next one: only the node page is left. */
		nodes_await((client_fdstore_gather(), client_fdstore_count()) == 1);
	}
	assert_int_equal(nodes_stop(&n, daemon), 0);
	numbered_check(&n, 0, &sums);
	assert_int_equal(sums.excluded, 3 * SHORT_ONES);
	assert_int_equal(sums.ended_processes, SHORT_ONES);
}

static void exec_is_a_new_process(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct client first, second;
	pid_t daemon;

	nodes_init(&n, 0);
	daemon = nodes_start(&n);
	assert_int_equal(client_attach(&first, n.socket, 0, 0, NULL), 0);
	client_reads(&first, client_ring(&first, 0, 0), 0, 10);
	assert_int_equal(client_attach(&second, n.socket, 0, 0, NULL), 0); /* the same pid again */
	client_reads(&second, client_ring(&second, 0, 0), 10, 20);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	client_detach(&first);
	client_detach(&second);
	numbered_check(&n, 20, &sums);
	assert_int_equal(sums.processes, 2);
	assert_int_equal(sums.ended_processes, 1);
}

/* Forks a process that attaches, with `between` processes in between, which do not. */
static int attach_below(const struct nodes *n, unsigned between)
{
	pid_t child = fork();
	struct client c;
	int status;

	if (child == 0 && between > 0)
		_exit(attach_below(n, between - 1) != 0);
	if (child == 0)
		_exit(client_attach(&c, n->socket, 0, 0, NULL) != 0);
	waitpid(child, &status, 0);
	return status;
}

/* For example a shell, timeout and a script, between a rank and the program that they start. */
static void a_parent_is_found_above_unrecorded_processes(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct client c;
	pid_t daemon;

	nodes_init(&n, 0);
	daemon = nodes_start(&n);
	assert_int_equal(client_attach(&c, n.socket, 0, 0, NULL), 0);
	assert_int_equal(attach_below(&n, 4), 0);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	client_detach(&c);
	numbered_check(&n, 0, &sums);
	assert_int_equal(sums.processes, 2);
	assert_int_equal(sums.child_processes, 1);
}

static void other_ranks_are_deselected(void **state)
{
	static const char *const in[] = {"RANK=3", NULL}, *const out[] = {"RANK=4", NULL};
	struct nodes n;
	struct nodes_sums sums;
	struct client c;
	pid_t daemon;

	nodes_init(&n, 0);
	n.ranks = "0-3";
	daemon = nodes_start(&n);
	assert_int_equal(client_attach(&c, n.socket, 0, 0, out), -ECANCELED);
	assert_int_equal(client_attach(&c, n.socket, 0, 0, in), 0);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	client_detach(&c);
	numbered_check(&n, 0, &sums);
	assert_int_equal(sums.processes, 2); /* the one left out is listed */
}

static void one_process_attaches_again_and_again(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	pid_t daemon;

	nodes_init(&n, 0);
	daemon = nodes_start(&n);
	for (unsigned i = 0; i < 200; i++) {
		struct client c;

		assert_int_equal(client_attach(&c, n.socket, 0, 0, NULL), 0);
		client_detach(&c);
	}
	assert_int_equal(nodes_stop(&n, daemon), 0);
	numbered_check(&n, 0, &sums);
	assert_int_equal(sums.processes, 200);
	assert_int_equal(sums.ended_processes, 199);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(many_rings),
	    cmocka_unit_test(a_dead_process_is_read_to_its_end),
	    cmocka_unit_test(counted_calls_are_read_to_the_end),
	    cmocka_unit_test(excluded_opens_are_read_to_the_end),
	    cmocka_unit_test(exec_is_a_new_process),
	    cmocka_unit_test(a_parent_is_found_above_unrecorded_processes),
	    cmocka_unit_test(other_ranks_are_deselected),
	    cmocka_unit_test(one_process_attaches_again_and_again),
	};

	client_fdstore_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
