/* SPDX-License-Identifier: Apache-2.0 */
#include "python/accelerator_use.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "common/now.h"
#include "python/accelerator.h"
#include "python/library.h"

#define APART_NS UINT64_C(1000000000)
/* NVML keeps about 100 samples, so after this time the first one may be gone. */
#define MOST_NS	    UINT64_C(10000000000)
#define SAMPLES_MAX 128

/* Constants of nvml.h, which never change. */
enum { NVML_SUCCESS = 0, NVML_GPU_UTILIZATION_SAMPLES = 1, NVML_VALUE_TYPE_UNSIGNED_INT = 1 };

struct sample {
	unsigned long long at_us; /* wall clock */
	union {
		unsigned percent;
		unsigned long long whole;
	};
};

static struct {
	int (*init)(void);
	int (*device)(const char *address, void **ret);
	int (*samples)(void *device, int which, unsigned long long after_us, int *ret_type,
		       unsigned *n, struct sample *ret);
} nvml;

static enum { UNTRIED, USABLE, UNUSABLE } state;
static void *device;
static unsigned long long seen_us; /* wall clock of the newest sample that was read */
static uint64_t asked_ns;
static __thread bool asks; /* this thread was the first one, and reads the samples */

static bool nvml_find(void)
{
	static const struct library_function functions[] = {
	    {"nvmlInit_v2", offsetof(__typeof__(nvml), init)},
	    {"nvmlDeviceGetHandleByPciBusId_v2", offsetof(__typeof__(nvml), device)},
	    {"nvmlDeviceGetSamples", offsetof(__typeof__(nvml), samples)},
	};
	char address[32];

	return accelerator_address(address, sizeof(address)) &&
	       library_functions("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL, functions,
				 sizeof(functions) / sizeof(functions[0]), &nvml) &&
	       nvml.init() == NVML_SUCCESS && nvml.device(address, &device) == NVML_SUCCESS;
}

/* Sets the mean of the samples since the last call. False: none, or they are not percentages. */
static bool mean(double *ret_percent)
{
	struct sample samples[SAMPLES_MAX];
	unsigned n = SAMPLES_MAX;
	double sum = 0;
	int type;

	if (nvml.samples(device, NVML_GPU_UTILIZATION_SAMPLES, seen_us, &type, &n, samples) !=
		NVML_SUCCESS ||
	    type != NVML_VALUE_TYPE_UNSIGNED_INT || n == 0 || n > SAMPLES_MAX)
		return false;
	for (unsigned i = 0; i < n; i++) {
		sum += samples[i].percent;
		seen_us = samples[i].at_us > seen_us ? samples[i].at_us : seen_us;
	}
	*ret_percent = sum / n;
	return *ret_percent <= 100;
}

bool accelerator_use(struct accelerator_use *ret)
{
	uint64_t now = hr_now_ns(CLOCK_MONOTONIC), since = asked_ns;
	int error = errno;
	bool known = false;

	if (state == UNUSABLE || now - since < APART_NS || (state == USABLE && !asks))
		return false;
	asked_ns = now;
	if (state == UNTRIED) {
		asks = true;
		state = nvml_find() ? USABLE : UNUSABLE;
	}
	if (state == USABLE)
		known = mean(&ret->percent);
	errno = error;
	ret->ns = now - since;
	return known && since > 0 && ret->ns <= MOST_NS;
}
