/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_waits - a training loop that waits for its batches: 70 ms of each step of 100, by its own clock
 *
 *      w_waits SECONDS         prints WAITED_NS STEPS ALL_NS
 */
#include <headrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NS_PER_S 1000000000L

static struct headrace_name wait = {.name = "next batch", .kind = HEADRACE_INPUT_WAIT};

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void until(long ns)
{
	struct timespec t = {ns / NS_PER_S, ns % NS_PER_S};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

int main(int argc, char **argv)
{
	long steps = argc == 2 ? strtol(argv[1], NULL, 10) * 10 : 0, waited = 0, begin = now();

	for (long i = 0; i < steps; i++) {
		long at = now();

		headrace_step(i);
		headrace_begin(&wait);
		until(begin + i * 100000000 + 70000000);
		headrace_end();
		waited += now() - at;
		until(begin + (i + 1) * 100000000);
	}
	headrace_step(HEADRACE_NONE);
	printf("%ld %ld %ld\n", waited, steps, now() - begin);
	return 0;
}
