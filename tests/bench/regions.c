/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regions.c - what a range costs the program that names it
 *
 *     bench_regions [PAIRS]                           alone: nobody listens
 *     headrace run -o STORE -- bench_regions [PAIRS]  recorded
 *     bench_regions pace SECONDS                      a million ranges a second, for a look at how many rows they become
 *
 * Nanoseconds for a begin and an end, the best of five rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/headrace.h"
#include "tests/e2e/workloads/nvtx_stand_in.h"

static struct headrace_name short_one = {.name = "short"},
			    own_record = {.name = "record", .kind = HEADRACE_INPUT_WAIT};
static nvtxDomainHandle_t domain;
static nvtxEventAttributes_t attributes;

static void api_short(void)
{
	headrace_begin(&short_one);
	headrace_end();
}

static void api_record(void)
{
	headrace_begin(&own_record);
	headrace_end();
}

static void nvtx_text(void)
{
	nvtxRangePushA("forward pass of a layer");
	nvtxRangePop();
}

static void nvtx_registered(void)
{
	nvtxDomainRangePushEx(domain, &attributes);
	nvtxDomainRangePop(domain);
}

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double pair_ns(void (*pair)(void), long n)
{
	double best = 1e18;

	for (int round = 0; round < 5; round++) {
		double from = now_ns(), took;

		for (long i = 0; i < n; i++)
			pair();
		took = (now_ns() - from) / (double)n;
		best = took < best ? took : best;
	}
	return best;
}

static void pace(double seconds)
{
	long n = (long)(seconds * 1e6);
	double from = now_ns();

	for (long i = 0; i < n; i++) {
		while (now_ns() < from + 1000 * (double)i)
			;
		nvtx_text();
	}
	printf("%ld ranges in %.2f s\n", n, (now_ns() - from) / 1e9);
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000000;

	if (argc > 2 && strcmp(argv[1], "pace") == 0) {
		pace(atof(argv[2]));
		return 0;
	}
	domain = nvtxDomainCreateA("bench");
	attributes.version = NVTX_VERSION;
	attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	attributes.message.registered = nvtxDomainRegisterStringA(domain, "registered");
	printf("headrace.h, added up   %6.1f ns\n", pair_ns(api_short, n));
	printf("headrace.h, a record   %6.1f ns\n", pair_ns(api_record, n / 10));
	printf("NVTX, a text           %6.1f ns\n", pair_ns(nvtx_text, n));
	printf("NVTX, registered       %6.1f ns\n", pair_ns(nvtx_registered, n));
	return 0;
}
