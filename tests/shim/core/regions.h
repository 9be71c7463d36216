/* SPDX-License-Identifier: Apache-2.0 */
/* regions.h - tests of regions: the functions of headrace.h, and the records that the daemon has */
#ifndef HEADRACE_TESTS_SHIM_CORE_REGIONS_H
#define HEADRACE_TESTS_SHIM_CORE_REGIONS_H

#include "shim/regions/region.h"
#include "tests/shim/core/harness.h"

/* of CLOCK_MONOTONIC: 4 s, which no loaded machine takes for a range */
#define SHORT_TICKS 4000000000u

const struct headrace_api *api(void);

struct fake_daemon *start(void);
/* One ring; adds up ranges that are shorter than `ticks`, which are nanoseconds. */
struct fake_daemon *start_short(uint32_t ticks);

/* Region number n, in the order of the rings. */
const struct fake_record *region(struct fake_daemon *d, size_t n);
uint64_t regions(struct fake_daemon *d); /* number of records of regions */
/* Number of regions in the records, which may be sums; of one name or (NULL) of all. */
uint64_t in_records(struct fake_daemon *d, const struct headrace_name *name);

#endif
