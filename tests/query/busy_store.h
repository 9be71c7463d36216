/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy_store.h - a store whose operations overlap in every way
 *
 * Purpose   Two jobs, one of them requeued; ranks on one node and on two, with workers, in one stream
 *           and in several that ran at the same time; processes without a rank, and some that nothing is
 *           known of. Threads whose operations nest and end out of order, take no time, or take nearly
 *           all of the job's (cut short, too); batches that follow each other, and batches that all
 *           cover the same time.
 * Owner     The test. The same seed makes the same store.
 */
#ifndef HEADRACE_TESTS_QUERY_BUSY_STORE_H
#define HEADRACE_TESTS_QUERY_BUSY_STORE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Makes a folder; build_remove() takes it. `lie`: a batch states an end that is before the end of
 * its last event.
 */
char *busy_store_make(uint64_t seed, bool lie);

#endif
