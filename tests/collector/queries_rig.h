/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queries_rig.h - a store of two jobs and a server of queries over it
 *
 * Job 7 is of user 1000 by its JobEvents, job 8 of 1001 by the collector's word.
 */
#ifndef HEADRACE_TESTS_COLLECTOR_QUERIES_RIG_H
#define HEADRACE_TESTS_COLLECTOR_QUERIES_RIG_H

#include <stdbool.h>
#include <string.h>

#include "tests/collector/asker.h"
#include "tests/unit.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

#define ENDLESS "SELECT count(*) FROM range(100000000000000) t WHERE range % 7 = 8"
/* Some tenths of a second. */
#define STEADY	      "SELECT count(*) AS n FROM range(40000000) t WHERE range % 3 = 1"
#define STEADY_ANSWER "n\r\n13333333\r\n"

extern struct server server;

/* Of the group: the store; nothing may be left of what queries spilled. */
int rig_setup(void **state);
int rig_teardown(void **state);

/* With two more words for query_server, or NULL. */
extern char rig_spill[];
void rig_start(const char *first, const char *second);
int rig_start_usual(void **state);
int rig_stop_usual(void **state);
void rig_wait_for_no_child(void); /* 10 s at most */

#define USUAL(f) cmocka_unit_test_setup_teardown(f, rig_start_usual, rig_stop_usual)

#define SAID(asker, text)                                                                          \
	do {                                                                                       \
		if (strstr((asker)->notes, text) == NULL)                                          \
			fail_msg("'%s' is not in: %s", text, (asker)->notes);                      \
	} while (0)

#endif
