/* SPDX-License-Identifier: Apache-2.0 */
#include "python/accelerator.h"

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

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

bool accelerator_address(char *ret, int size)
{
	int error = errno, device;
	bool known = cuda.device(&device) == CUDA_OK && cuda.address(ret, size, device) == CUDA_OK;

	errno = error;
	return known;
}
