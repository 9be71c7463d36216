/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide_store.h - a job with every operation, kind of region and reason of a loss
 *
 * Purpose   Hardly two numbers of it are equal, so an answer with a wrong column, sum, unit or
 *           filter differs from tests/query/wide.txt. The job, w, ran on the nodes n1 and n2. Each
 *           node has a launcher, two ranks with workers, a process that exec replaced, and one of a
 *           rank that is not recorded.
 * Owner     The test, which removes it with build_remove(). The same numbers each time.
 */
#ifndef HEADRACE_TESTS_QUERY_WIDE_STORE_H
#define HEADRACE_TESTS_QUERY_WIDE_STORE_H

char *wide_make(void);

#endif
