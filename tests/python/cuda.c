/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.c - a stand-in for libcuda.so.1: the eight functions that accelerator.c uses, by CUDA's public ABI
 *
 * An event completes a given time after it was recorded. A call that CUDA does not allow ends the program: of a forked child, with
 * an event of no one, on another stream than the legacy one.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, INVALID_VALUE = 1, NOT_READY = 600 };
enum { CONTEXT, CREATE, RECORD, QUERY, CALLS };

struct event {
	long long done_ns;
	void *context;
};

static int n_calls[CALLS], capture, mode;
static long long work_ns;
static __thread void *current;
static pid_t process;

__attribute__((constructor)) static void start(void)
{
	process = getpid();
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void called(int which)
{
	if (getpid() != process || (which != CONTEXT && mode != 2 /* relaxed */))
		abort();
	n_calls[which]++;
}

/* ---- for the test ---- */

void stand_in_set(void *context, long long ms, int capturing);
int stand_in_calls(int which);

void stand_in_set(void *context, long long ms, int capturing)
{
	current = context;
	work_ns = ms * 1000000;
	capture = capturing;
}

int stand_in_calls(int which)
{
	return n_calls[which];
}

/* ---- CUDA ---- */

int cuCtxGetCurrent(void **ret);
int cuEventCreate(void **ret, unsigned flags);
int cuEventRecord(void *event, void *stream);
int cuEventQuery(void *event);
int cuStreamIsCapturing(void *stream, int *ret);
int cuThreadExchangeStreamCaptureMode(int *exchanged);
int cuCtxGetDevice(int *ret);
int cuDeviceGetPCIBusId(char *ret, int size, int device);

int cuCtxGetCurrent(void **ret)
{
	called(CONTEXT);
	*ret = current;
	return OK;
}

int cuEventCreate(void **ret, unsigned flags)
{
	struct event *event = calloc(1, sizeof(*event));

	called(CREATE);
	if (!current || flags != 2 /* CU_EVENT_DISABLE_TIMING */)
		abort();
	event->context = current;
	*ret = event;
	return OK;
}

int cuEventRecord(void *event, void *stream)
{
	called(RECORD);
	if (!event || stream || capture || ((struct event *)event)->context != current)
		abort();
	((struct event *)event)->done_ns = now_ns() + work_ns;
	return OK;
}

int cuEventQuery(void *event)
{
	called(QUERY);
	if (!event || !((struct event *)event)->done_ns)
		abort();
	return now_ns() < ((struct event *)event)->done_ns ? NOT_READY : OK;
}

int cuStreamIsCapturing(void *stream, int *ret)
{
	if (stream)
		abort();
	*ret = capture;
	return OK;
}

int cuThreadExchangeStreamCaptureMode(int *exchanged)
{
	int before = mode;

	mode = *exchanged;
	*exchanged = before;
	return OK;
}

int cuCtxGetDevice(int *ret)
{
	if (getpid() != process || !current)
		abort();
	*ret = 3;
	return OK;
}

int cuDeviceGetPCIBusId(char *ret, int size, int device)
{
	static const char address[] = "0000:07:00.0";

	if (device != 3 || size < (int)sizeof(address))
		return INVALID_VALUE;
	memcpy(ret, address, sizeof(address));
	return OK;
}
