/* SPDX-License-Identifier: Apache-2.0 */
/* Notices of programs that start without the shim: each counts once its exec has closed the connection. */

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"
#include "daemon/attach/attach.h"
#include "nodes.h"
#include "offer.h"
#include "tests/unit.h"

#define HALF_BYTES (8u << 20)

/* Sends a notice of /bin/prog; returns the connection, which the exec would close. */
static int notice(const struct nodes *n, uint32_t flags)
{
	static const char program[] = "/bin/prog";
	struct {
		struct hr_hello hello;
		struct hr_item_hdr item;
		char exe[sizeof(program) - 1];
	} __attribute__((packed)) m = {
	    .hello = {.magic = HR_ABI_MAGIC,
		      .abi = HR_ABI_VERSION,
		      .word_bytes = 8,
		      .kind = HR_HELLO_EXEC,
		      .bytes = sizeof(m),
		      .flags = flags,
		      .pid = getpid(),
		      .ppid = getppid()},
	    .item = {.kind = HR_ITEM_EXE, .bytes = sizeof(program) - 1},
	};
	int fd = offer_knock(n->socket);

	memcpy(m.exe, program, sizeof(m.exe));
	assert_int_equal(send(fd, &m, sizeof(m), MSG_NOSIGNAL), sizeof(m));
	return fd;
}

static void check(const struct nodes *n, uint64_t programs)
{
	struct nodes_sums sums;

	nodes_read(n, NULL, 0, &sums);
	assert_int_equal(sums.other_loss, programs);
	assert_int_equal(sums.processes, programs);
	assert_int_equal(sums.ended_processes, programs);
	assert_int_equal(sums.lost + sums.hostile, 0);
	assert_true(sums.stream_ended);
	assert_int_equal(sums.problems, 0);
}

/* Whether the daemon reads the notice before or after the exec makes no difference, nor who execs. */
static void counts_after_the_exec(void **state)
{
	static const uint32_t flags[] = {0, HR_HELLO_SPAWNED};
	struct nodes n;
	pid_t daemon;

	nodes_init(&n, HALF_BYTES);
	daemon = nodes_start(&n);
	for (unsigned i = 0; i < 2; i++) {
		int fd = notice(&n, flags[i]);

		offer_read_await(fd);
		close(fd);
		nodes_pause(daemon);
		close(notice(&n, flags[i]));
		kill(daemon, SIGCONT);
		offer_ping(n.socket);
	}
	assert_int_equal(nodes_stop(&n, daemon), 0);
	check(&n, 4);
	nodes_done(&n);
}

static void does_not_count_after_a_failed_exec(void **state)
{
	struct nodes n;
	pid_t daemon;
	int fd;

	nodes_init(&n, HALF_BYTES);
	daemon = nodes_start(&n);
	fd = notice(&n, 0);
	offer_read_await(fd);
	assert_int_equal(send(fd, "", 1, MSG_NOSIGNAL), 1);
	close(fd);
	nodes_pause(daemon);
	fd = notice(&n, 0);
	assert_int_equal(send(fd, "", 1, MSG_NOSIGNAL), 1);
	close(fd);
	kill(daemon, SIGCONT);
	offer_ping(n.socket);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	check(&n, 0);
	nodes_done(&n);
}

/* A child of another thread may hold the connection; and the daemon may end first. */
static void counts_where_the_connection_stays_open(void **state)
{
	struct nodes n;
	pid_t daemon;
	int held, last;
	char none;

	nodes_init(&n, HALF_BYTES);
	hr_attach_pending_ns = 50000000;
	daemon = nodes_start(&n);
	nodes_pause(daemon); /* or it might wait for the notice itself for too long */
	held = notice(&n, 0);
	kill(daemon, SIGCONT);
	assert_true(recv(held, &none, 1, 0) <= 0); /* it has waited for the exec for too long */
	send(held, "", 1, MSG_NOSIGNAL);	   /* too late */
	nodes_pause(daemon);
	last = notice(&n, 0);
	kill(daemon, SIGCONT);
	offer_read_await(last);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	check(&n, 2);
	close(held);
	close(last);
	nodes_done(&n);
}

static void counts_once_across_a_kill(void **state)
{
	struct nodes n;
	pid_t daemon;

	nodes_init(&n, HALF_BYTES);
	daemon = nodes_start(&n);
	close(notice(&n, 0));
	offer_ping(n.socket);
	nodes_kill(daemon);
	daemon = nodes_start(&n);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	check(&n, 1);
	nodes_done(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(counts_after_the_exec),
	    cmocka_unit_test(does_not_count_after_a_failed_exec),
	    cmocka_unit_test(counts_where_the_connection_stays_open),
	    cmocka_unit_test(counts_once_across_a_kill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
