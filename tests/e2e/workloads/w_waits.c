/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_waits - a training loop that waits for its batches: 70 ms of each step of 100, by its own clock
 *
 *      w_waits [SECONDS]
 *
 * Without SECONDS, trains until there is a byte to read at standard input. Prints
 * STEPS WAITED WAITED_WITHIN LOOP LOOP_WITHIN, in ns: by a clock that it reads around its waits and
 * its loop, and within them.
 */
#include <headrace.h>
#include <poll.h>
#include <stdbool.h>
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

static bool more(long steps, const char *seconds)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};

	return seconds ? steps < 10 * strtol(seconds, NULL, 10) : poll(&input, 1, 0) == 0;
}

int main(int argc, char **argv)
{
	long steps = 0, waited = 0, within = 0, began = now(), begun = 0, over;

	while (more(steps, argc > 1 ? argv[1] : NULL)) {
		long at = now(), waits;

		headrace_step(steps);
		if (steps == 0)
			begun = now();
		headrace_begin(&wait);
		waits = now();
		until(began + steps * 100000000 + 70000000);
		within += now() - waits;
		headrace_end();
		waited += now() - at;
		steps++;
		until(began + steps * 100000000);
	}
	over = now();
	headrace_step(HEADRACE_NONE);
	printf("%ld %ld %ld %ld %ld\n", steps, waited, within, now() - began, over - begun);
	return 0;
}
