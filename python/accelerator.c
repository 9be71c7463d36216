/* SPDX-License-Identifier: Apache-2.0 */
#include "python/accelerator.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/now.h"
#include "python/library.h"

/* Constants of cuda.h, which never change. */
enum { CUDA_OK = 0, CUDA_NOT_READY = 600 };
enum { CAPTURE_NONE = 0, CAPTURE_MODE_RELAXED = 2, EVENT_DISABLE_TIMING = 2 };

static struct {
	int (*context)(void **ret_context);
	int (*create)(void **ret_event, unsigned flags);
	int (*record)(void *event, void *stream);
	int (*query)(void *event);
	int (*capturing)(void *stream, int *ret_status);
	int (*exchange_mode)(int *mode);
	int (*device)(int *ret_device);
	int (*address)(char *ret, int size, int device);
} cuda;

static pid_t process;
static bool found;
static unsigned steps;

static __thread struct {
	void *event, *context;
	bool recorded;
} own;

void accelerator_init(void)
{
	process = getpid();
}

static bool cuda_find(void)
{
	static const struct library_function functions[] = {
	    {"cuCtxGetCurrent", offsetof(__typeof__(cuda), context)},
	    {"cuEventCreate", offsetof(__typeof__(cuda), create)},
	    {"cuEventRecord", offsetof(__typeof__(cuda), record)},
	    {"cuEventQuery", offsetof(__typeof__(cuda), query)},
	    {"cuStreamIsCapturing", offsetof(__typeof__(cuda), capturing)},
	    {"cuThreadExchangeStreamCaptureMode", offsetof(__typeof__(cuda), exchange_mode)},
	    {"cuCtxGetDevice", offsetof(__typeof__(cuda), device)},
	    {"cuDeviceGetPCIBusId", offsetof(__typeof__(cuda), address)},
	};

	if (found)
		return getpid() == process;
	/* CUDA may be loaded later: looks for it at steps 1, 2, 4, 8... Each look takes 15 us. */
	steps++;
	if ((steps & (steps - 1)) != 0 || getpid() != process)
		return false;
	found = library_functions("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD, functions,
				  sizeof(functions) / sizeof(functions[0]), &cuda);
	return found;
}

/*
 * Returns whether an event can be recorded: the thread has the same context as at its first step,
 * and no graph is being captured (an event would end the capture).
 */
static bool stream_is_usable(void)
{
	void *context = NULL;
	int status = CAPTURE_NONE;

	if (cuda.context(&context) != CUDA_OK || !context ||
	    cuda.capturing(NULL, &status) != CUDA_OK || status != CAPTURE_NONE)
		return false;
	if (!own.event && cuda.create(&own.event, EVENT_DISABLE_TIMING) == CUDA_OK)
		own.context = context;
	return own.event && own.context == context;
}

bool accelerator_stepped(void)
{
	int error = errno, mode = CAPTURE_MODE_RELAXED;
	bool usable = cuda_find();

	own.recorded = false;
	if (usable) {
		/* In a stricter mode, a capture on another stream could forbid these calls. */
		if (cuda.exchange_mode(&mode) == CUDA_OK) {
			own.recorded =
			    stream_is_usable() && cuda.record(own.event, NULL) == CUDA_OK;
			cuda.exchange_mode(&mode);
		}
	}
	errno = error;
	return usable && own.context;
}

enum accelerator_state accelerator_state(void)
{
	int error = errno, mode = CAPTURE_MODE_RELAXED, result = -1;

	if (!own.recorded)
		return ACCELERATOR_UNKNOWN;
	own.recorded = false;
	if (cuda_find() && cuda.exchange_mode(&mode) == CUDA_OK) {
		result = cuda.query(own.event);
		cuda.exchange_mode(&mode);
	}
	errno = error;
	return result == CUDA_NOT_READY ? ACCELERATOR_BUSY
	       : result == CUDA_OK	? ACCELERATOR_IDLE
					: ACCELERATOR_UNKNOWN;
}

/* ---- how busy it was ---------------------------------------------------------------------- */

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

static enum { UNTRIED, USABLE, UNUSABLE } nvml_state;
static void *nvml_device;
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
	int number;

	return cuda.device(&number) == CUDA_OK &&
	       cuda.address(address, sizeof(address), number) == CUDA_OK &&
	       library_functions("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL, functions,
				 sizeof(functions) / sizeof(functions[0]), &nvml) &&
	       nvml.init() == NVML_SUCCESS && nvml.device(address, &nvml_device) == NVML_SUCCESS;
}

/* Sets the mean of the samples since the last call. False: none, or they are not percentages. */
static bool mean(double *ret_percent)
{
	struct sample samples[SAMPLES_MAX];
	unsigned n = SAMPLES_MAX;
	double sum = 0;
	int type;

	if (nvml.samples(nvml_device, NVML_GPU_UTILIZATION_SAMPLES, seen_us, &type, &n, samples) !=
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

	if (nvml_state == UNUSABLE || now - since < APART_NS || (nvml_state == USABLE && !asks))
		return false;
	asked_ns = now;
	if (nvml_state == UNTRIED) {
		asks = true;
		nvml_state = nvml_find() ? USABLE : UNUSABLE;
	}
	if (nvml_state == USABLE)
		known = mean(&ret->percent);
	errno = error;
	ret->ns = now - since;
	return known && since > 0 && ret->ns <= MOST_NS;
}
