/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - the functions of headrace.h, which do nothing in a program that is not recorded */
#include <string.h>

#include "shim/core/clock.h"
#include "shim/regions/region.h"

static void api_begin(struct headrace_name *name)
{
	if (hr_shim_image.on && name != NULL)
		hr__region_begin(name, HR__REGIONS_API, NULL);
}

static void api_end(const char *args)
{
	if (hr_shim_image.on)
		hr__region_end(HR__REGIONS_API, args);
}

static uint64_t api_start(struct headrace_name *name)
{
	return hr_shim_image.on && name != NULL ? hr__region_start(name, NULL) : 0;
}

static void api_finish(uint64_t span, const char *args)
{
	if (hr_shim_image.on)
		hr__region_finish(span, args);
}

static void api_mark(struct headrace_name *name, const char *args)
{
	if (hr_shim_image.on && name != NULL)
		hr__region_mark(name, args);
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

static void api_step_at(int64_t step, uint64_t moment)
{
	if (hr_shim_image.on)
		hr__region_step(step, moment);
}

static void api_step(int64_t step)
{
	api_step_at(step, 0);
}

static void api_epoch_at(int64_t epoch, uint64_t moment)
{
	if (hr_shim_image.on)
		hr__region_epoch(epoch, moment);
}

static void api_epoch(int64_t epoch)
{
	api_epoch_at(epoch, 0);
}

static void api_step_undo(void)
{
	if (hr_shim_image.on)
		hr__region_step_undo();
}

_Static_assert(sizeof(hr_waits.ns) == 3 * sizeof(uint64_t), "headrace_api.waited");

static void api_waited(uint64_t ret_ns[3])
{
	hr_waits.on = hr_shim_image.on;
	memcpy(ret_ns, hr_waits.ns, sizeof(hr_waits.ns));
}

static void api_enter(struct headrace_name *name)
{
	if (hr_shim_image.on && name != NULL)
		hr__region_begin(name, HR__REGIONS_FUNCTIONS, NULL);
}

static void api_leave(void)
{
	if (hr_shim_image.on)
		hr__region_end(HR__REGIONS_FUNCTIONS, NULL);
}

static void api_passed(struct headrace_name *name, uint64_t moment)
{
	if (hr_shim_image.on && name != NULL)
		hr__region_passed(name, moment);
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
