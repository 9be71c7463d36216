/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml.c - a stand-in for libnvidia-ml.so.1: the three functions of it that accelerator.c uses, by
 * NVML's public ABI
 *
 * It has one sample for each tenth of a second, of one device. A call that NVML does not allow ends the program: before nvmlInit, of
 * a forked child, with another device.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
enum { UTILIZATION_SAMPLES = 1, UNSIGNED_INT = 1 };
#define PERIOD_US 100000u
#define KEPT	  100u

struct sample {
	unsigned long long at_us;
	union {
		double real;
		unsigned whole;
		unsigned long long large;
	} value;
};

static pid_t process;
static int n_calls, percent;
static char the_device;

/* ---- for the test ---- */

void stand_in_busy(int busy_percent); /* -1: samples are not supported */
int stand_in_asked(void);

void stand_in_busy(int busy_percent)
{
	percent = busy_percent;
}

int stand_in_asked(void)
{
	return n_calls;
}

/* ---- NVML ---- */

int nvmlInit_v2(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **ret);
int nvmlDeviceGetSamples(void *device, int which, unsigned long long after_us, int *ret_type,
			 unsigned *n, struct sample *ret);

int nvmlInit_v2(void)
{
	if (process)
		abort();
	process = getpid();
	return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **ret)
{
	*ret = &the_device;
	return strcmp(address, "0000:07:00.0") == 0 ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetSamples(void *device, int which, unsigned long long after_us, int *ret_type,
			 unsigned *n, struct sample *ret)
{
	struct timeval now;
	unsigned long long at, end;
	unsigned found = 0;

	if (getpid() != process || device != &the_device || which != UTILIZATION_SAMPLES || !ret)
		abort();
	n_calls++;
	if (percent < 0)
		return NOT_SUPPORTED;
	gettimeofday(&now, NULL);
	end = (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_usec;
	at = after_us + PERIOD_US > end - KEPT * PERIOD_US ? after_us + PERIOD_US
							   : end - KEPT * PERIOD_US;
	for (; at <= end && found < *n; at += PERIOD_US)
		ret[found++] = (struct sample){at, {.whole = (unsigned)percent}};
	*ret_type = UNSIGNED_INT;
	*n = found;
	return found ? SUCCESS : NOT_FOUND;
}
