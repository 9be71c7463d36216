/* SPDX-License-Identifier: Apache-2.0 */
/* Orphans in the node page of a daemon that was killed: who connects again is none. */
#include "daemon/attach/attach_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PID = 4711, UNKNOWN = -1 };

static struct hr_node_page page;

/* The number of orphans after a client with this pid has connected, if a killed daemon left two pids in the page. */
static unsigned left(int32_t first, int32_t second, pid_t came, bool again)
{
	struct hr_attach *a = calloc(1, sizeof(*a));
	unsigned n;

	assert_non_null(a);
	a->c.page = &page;
	for (unsigned i = 0; i < PENDING_MOST; i++)
		a->pending[i].fd = -1;
	page.pending[0] = first;
	page.pending[PENDING_MOST - 1] = second;
	hr__orphans_find(a);
	assert_int_equal(a->n_orphans, 2);
	hr__orphan_came(a, came, again);
	n = a->n_orphans;
	free(a);
	memset(&page, 0, sizeof(page));
	return n;
}

static void the_same_pid(void **state)
{
	(void)state;
	assert_int_equal(left(PID, PID + 1, PID, false), 1);
	assert_int_equal(left(PID, PID, PID, false), 0);
	assert_int_equal(left(PID, PID + 1, PID + 2, true), 2);
}

/* The daemon was killed while it accepted a connection, so nothing shows whose it was. */
static void an_unknown_pid(void **state)
{
	(void)state;
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
