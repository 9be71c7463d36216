/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/shim/core/regions.h"

const struct headrace_api *api(void)
{
	return headrace_api(HEADRACE_API_VERSION);
}

struct fake_daemon *start(void)
{
	return harness_start(NULL, NULL);
}

struct fake_daemon *start_short(uint32_t ticks)
{
	const struct fake_options o = {.monotonic = true, .short_ticks = ticks, .rings = 1};

	return harness_start(&o, NULL);
}

const struct fake_record *region(struct fake_daemon *d, size_t n)
{
	fake_settle(d);
	for (size_t i = 0; i < fake_records(d); i++)
		if (fake_record(d, i)->r.op == HR_CTL_REGION && n-- == 0)
			return fake_record(d, i);
	return NULL;
}

uint64_t regions(struct fake_daemon *d)
{
	fake_settle(d);
	return fake_count(d, HR_CTL_REGION);
}

uint64_t in_records(struct fake_daemon *d, const struct headrace_name *name)
{
	uint64_t n = 0;

	fake_settle(d);
	for (size_t i = 0; i < fake_records(d); i++) {
		const struct hr_record *r = &fake_record(d, i)->r;

		if (r->op == HR_CTL_REGION && (name == NULL || r->file == name->reserved[0]))
			n += r->asked;
	}
	return n;
}
