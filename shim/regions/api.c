/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - the functions of headrace.h, which do nothing in a program that is not recorded */
#include <string.h>

#include "shim/core/clock.h"
#include "shim/regions/region.h"

/* They do nothing in a process that is not recorded, or without a name. */
/* NOLINTBEGIN(bugprone-macro-parentheses): parameters, types and names cannot have parentheses */
#define API(name, params, condition, call)                                                         \
	static void api_##name params                                                              \
	{                                                                                          \
		if (hr_shim_image.on && (condition))                                               \
			call;                                                                      \
	}
/* NOLINTEND(bugprone-macro-parentheses) */

API(begin, (struct headrace_name * n), n != NULL, hr__region_begin(n, HR__REGIONS_API, NULL))
API(end, (const char *args), true, hr__region_end(HR__REGIONS_API, args))
API(finish, (uint64_t span, const char *args), true, hr__region_finish(span, args))
API(mark, (struct headrace_name * n, const char *args), n != NULL, hr__region_mark(n, args))
API(enter, (struct headrace_name * n), n != NULL, hr__region_begin(n, HR__REGIONS_FUNCTIONS, NULL))
API(leave, (void), true, hr__region_end(HR__REGIONS_FUNCTIONS, NULL))
API(passed, (struct headrace_name * n, uint64_t at), n != NULL, hr__region_passed(n, at))
API(step, (int64_t step), true, hr__region_step(step, 0))
API(step_at, (int64_t step, uint64_t moment), true, hr__region_step(step, moment))
API(step_undo, (void), true, hr__region_step_undo())
API(epoch, (int64_t epoch), true, hr__region_epoch(epoch, 0))
API(epoch_at, (int64_t epoch, uint64_t moment), true, hr__region_epoch(epoch, moment))

static uint64_t api_start(struct headrace_name *name)
{
	return hr_shim_image.on && name != NULL ? hr__region_start(name, NULL) : 0;
}

static void api_variable(const char *text)
{
	const char *is = text != NULL ? strchr(text, '=') : NULL;

	if (is != NULL)
		hr_env_set(text, is + 1);
}

static int api_recording(void)
{
	return hr_shim_image.on && hr__regions_recorded();
}

static uint64_t api_now(void)
{
	return hr_shim_image.on ? hr_shim_ticks() : 0;
}

_Static_assert(sizeof(hr_waits.ns) == 3 * sizeof(uint64_t), "headrace_api.waited");

static void api_waited(uint64_t ret_ns[3])
{
	hr_waits.on = hr_shim_image.on;
	memcpy(ret_ns, hr_waits.ns, sizeof(hr_waits.ns));
}

static const struct headrace_api api = {
    .version = HEADRACE_API_VERSION,
    .bytes = sizeof(api),
    .begin = api_begin,
    .end = api_end,
    .start = api_start,
    .finish = api_finish,
    .mark = api_mark,
    .step = api_step,
    .epoch = api_epoch,
    .variable = api_variable,
    .recording = api_recording,
    .now = api_now,
    .step_at = api_step_at,
    .epoch_at = api_epoch_at,
    .step_undo = api_step_undo,
    .waited = api_waited,
    .enter = api_enter,
    .leave = api_leave,
    .passed = api_passed,
    .record = hr_session_record,
};

__attribute__((visibility("default"))) const struct headrace_api *headrace_api(uint32_t version)
{
	return version == HEADRACE_API_VERSION ? &api : NULL;
}
