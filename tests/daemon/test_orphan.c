/* SPDX-License-Identifier: Apache-2.0 */
/* Orphans in the node page of a daemon that was killed: who connects again is none. */
#include "daemon/attach/attach_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit.h"

enum { PID = 4711, UNKNOWN = -1 };

static struct hr_node_page page;

static struct hr_attach *attach_new(void)
{
	struct hr_attach *a = calloc(1, sizeof(*a));

	assert_non_null(a);
	a->c.page = &page;
	for (unsigned i = 0; i < PENDING_MOST; i++)
		a->pending[i].fd = -1;
	return a;
}

static void attach_free(struct hr_attach *a)
{
	free(a);
	memset(&page, 0, sizeof(page));
}

/*
 * The number of orphans after a client with this pid has connected, if a killed daemon left two
 * pids in the page.
 */
static unsigned left(int32_t first, int32_t second, pid_t came, bool again)
{
	struct hr_attach *a = attach_new();
	unsigned n;

	page.pending[0] = first;
	page.pending[PENDING_MOST - 1] = second;
	hr__orphans_find(a);
	assert_int_equal(a->n_orphans, 2);
	hr__orphan_came(a, came, again);
	n = a->n_orphans;
	attach_free(a);
	return n;
}

static void the_same_pid(void **state)
{
	assert_int_equal(left(PID, PID + 1, PID, false), 1);
	assert_int_equal(left(PID, PID, PID, false), 0);
	assert_int_equal(left(PID, PID + 1, PID + 2, true), 2);
}

/* The number of orphans of a daemon that was killed in accept4 for element 3. */
static unsigned left_while_accepting(uint16_t taken, int32_t pid)
{
	struct hr_attach *a = attach_new();
	unsigned n;

	page.accepting = 3;
	page.taken = taken;
	page.pending[3] = pid;
	hr__orphans_find(a);
	n = a->n_orphans;
	assert_int_equal(n, page.pending[3] != 0);
	assert_int_equal(page.taken, 0);
	attach_free(a);
	return n;
}

/* A connection that the kernel has not taken is still in the backlog. */
static void a_kill_during_accept(void **state)
{
	assert_int_equal(left_while_accepting(0, 0), 0);
	assert_int_equal(left_while_accepting(AF_UNIX, 0), 1);
	assert_int_equal(left_while_accepting(AF_UNIX, PID), 1);
	assert_int_equal(left_while_accepting(0, PID), 1);
}

/* The kernel writes `taken` when it takes a connection, and not before. */
static void the_kernel_notes_it(void **state)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	socklen_t bytes = sizeof(at);
	struct hr_attach *a = attach_new();
	int fd, client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	a->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(a->listen_fd, (struct sockaddr *)&at, sizeof(at.sun_family)), 0);
	assert_int_equal(listen(a->listen_fd, 1), 0);
	assert_int_equal(getsockname(a->listen_fd, (struct sockaddr *)&at, &bytes), 0);
	page.taken = 0;
	assert_int_equal(accept4(a->listen_fd, (struct sockaddr *)&page.taken,
				 &(socklen_t){sizeof(page.taken)}, SOCK_CLOEXEC),
			 -1);
	assert_int_equal(page.taken, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&at, bytes), 0);
	fd = accept4(a->listen_fd, (struct sockaddr *)&page.taken, &(socklen_t){sizeof(page.taken)},
		     SOCK_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(page.taken, AF_UNIX);
	close(fd);
	close(client);
	client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&at, bytes), 0);
	fd = hr__pending_accept(a, &a->pending[5]);
	assert_true(fd >= 0);
	assert_int_equal(page.taken, 0);
	assert_int_equal(page.accepting, 5);
	assert_int_equal(page.pending[5], getpid());
	assert_int_equal(hr__pending_accept(a, &a->pending[6]), -1);
	assert_int_equal(page.pending[6], 0);
	close(fd);
	close(client);
	close(a->listen_fd);
	attach_free(a);
}

/* Nothing shows whose connection it was. */
static void an_unknown_pid(void **state)
{
	assert_int_equal(left(PID, UNKNOWN, PID + 1, true), 1);
	assert_int_equal(left(PID, UNKNOWN, PID + 1, false), 2); /* its first connection */
	assert_int_equal(left(PID, UNKNOWN, PID, true), 1);
	assert_int_equal(left(UNKNOWN, PID, PID, true), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_same_pid),
	    cmocka_unit_test(an_unknown_pid),
	    cmocka_unit_test(a_kill_during_accept),
	    cmocka_unit_test(the_kernel_notes_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
