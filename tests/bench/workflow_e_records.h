/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workflow_e_records.h - file records of the job of workflow E, as its daemon would have summed them
 *
 * Owner     One per node, one thread. What hr_we_records_take() hands out is valid until the next call.
 */
#ifndef HEADRACE_TESTS_BENCH_WORKFLOW_E_RECORDS_H
#define HEADRACE_TESTS_BENCH_WORKFLOW_E_RECORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/event.h"
#include "proto/headrace.pb-c.h"

struct hr_we_records;

struct hr_we_records *hr_we_records_new(size_t n_tasks);
void hr_we_records_free(struct hr_we_records *r);

/* Adds an event; a close ends the record of its file. */
void hr_we_records_add(struct hr_we_records *r, const struct hr_event *e);

/* The records that have ended; with `all` those of open files, too. */
Headrace__FileRecords hr_we_records_take(struct hr_we_records *r, bool all);

#endif
