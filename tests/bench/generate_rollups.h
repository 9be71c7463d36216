/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate_rollups.h - the rollups of the generated job, as its daemon would have summed them
 *
 * Owner     One per node, one thread. What hr_gen_rollups_take() hands out belongs to it and is valid
 *           until the next call.
 */
#ifndef HEADRACE_TESTS_BENCH_GENERATE_ROLLUPS_H
#define HEADRACE_TESTS_BENCH_GENERATE_ROLLUPS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/event.h"
#include "proto/headrace.pb-c.h"

struct hr_gen_rollups;

int hr_gen_rollups_new(size_t n_tasks, struct hr_gen_rollups **ret);
void hr_gen_rollups_free(struct hr_gen_rollups *r);

/* Whether the event, by its end, lies behind the open window: then that is to be taken first. */
bool hr_gen_rollups_full(const struct hr_gen_rollups *r, const struct hr_event *e);

/* Adds an event of process `task + 1` to the open window. */
void hr_gen_rollups_add(struct hr_gen_rollups *r, const struct hr_event *e, uint32_t mount);

/* The open window's rows, which are then zero. No rows: nothing happened. 0 or -ENOMEM. */
int hr_gen_rollups_take(struct hr_gen_rollups *r, Headrace__RollupBatch *ret);

#endif
