/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_regions - marks what it does with headrace.h, in threads and forked children, some of which end
 * in the middle
 *
 *      w_regions FILE          reads FILE. Prints a line for each name: NAME CLOSED OPEN NS WITHIN,
 *                              the sums of the closed ones' time by a clock read around them,
 *                              and by one read within them
 */
#include <fcntl.h>
#include <headrace.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 6
#define TURNS	200
#define STEPS	10

enum { OUTER, INNER, SPAN, HERE, SAVE, LEFT, KILLED, NAMES };
static struct headrace_name names[NAMES] = {
    [OUTER] = {.name = "outer", .domain = "w_regions", .category = "threads"},
    [INNER] = {.name = "inner", .domain = "w_regions", .category = "threads"},
    [SPAN] = {.name = "handed over"},
    [HERE] = {.name = "here"},
    [SAVE] = {.name = "save", .kind = HEADRACE_CHECKPOINT},
    [LEFT] = {.name = "left open"},
    [KILLED] = {.name = "killed in it"},
};
static unsigned long closed[NAMES], opened[NAMES], ns[NAMES], within[NAMES];
static uint64_t spans[TURNS];
static int fd;

static unsigned long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (unsigned long)t.tv_sec * 1000000000 + (unsigned long)t.tv_nsec;
}

static void look(void)
{
	char byte;

	if (pread(fd, &byte, 1, 0) != 1)
		abort();
}

static void ends(int name, unsigned long begun)
{
	__atomic_fetch_add(&within[name], now() - begun, __ATOMIC_RELAXED);
}

static void done(int name, unsigned long since)
{
	__atomic_fetch_add(&closed[name], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&ns[name], now() - since, __ATOMIC_RELAXED);
}

static void *turns(void *arg)
{
	(void)arg;
	for (int i = 0; i < TURNS; i++) {
		unsigned long outer = now(), outer_begun, inner, inner_begun;

		headrace_begin(&names[OUTER]);
		outer_begun = now();
		look();
		inner = now();
		headrace_begin(&names[INNER]);
		inner_begun = now();
		usleep(200);
		ends(INNER, inner_begun);
		headrace_end();
		done(INNER, inner);
		ends(OUTER, outer_begun);
		headrace_end();
		done(OUTER, outer);
	}
	return NULL;
}

static void *finishes(void *arg)
{
	(void)arg;
	for (int i = 0; i < TURNS; i++) {
		headrace_finish(spans[i]);
		closed[SPAN]++;
	}
	return NULL;
}

static void *leaves(void *arg)
{
	(void)arg;
	headrace_begin(&names[LEFT]);
	look();
	opened[LEFT]++;
	return NULL;
}

static void in_thread(void *(*what)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, what, NULL) != 0)
		abort();
	pthread_join(t, NULL);
}

static void hand_over(void)
{
	for (int i = 0; i < TURNS; i += 20) { /* so many are open at a time */
		for (int k = i; k < i + 20; k++)
			spans[k] = headrace_start(&names[SPAN]);
		for (int k = i; k < i + 20 && i + 20 < TURNS; k++) {
			headrace_finish(spans[k]);
			closed[SPAN]++;
			spans[k] = 0;
		}
	}
	in_thread(finishes); /* of which most are over, and known to be */
	closed[SPAN] -= TURNS - 20;
}

static void killed(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		headrace_end(); /* of nothing: what the parent began is the parent's */
		headrace_begin(&names[KILLED]);
		look();
		headrace_begin(&names[KILLED]);
		raise(SIGKILL);
	}
	waitpid(pid, NULL, 0);
	opened[KILLED] += 2;
}

int main(int argc, char **argv)
{
	static const char save[] = "{\"path\": \"/x\"}";
	pthread_t threads[THREADS];
	unsigned long since, begun;

	fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return 2;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, turns, NULL) != 0)
			return 1;
	for (int64_t i = 0; i < STEPS; i++) {
		if (i % (STEPS / 2) == 0)
			headrace_epoch(i / (STEPS / 2));
		headrace_step(i);
		headrace_mark(&names[HERE], NULL);
		done(HERE, now());
		since = now();
		headrace_begin(&names[SAVE]);
		begun = now();
		usleep(3000);
		ends(SAVE, begun);
		headrace_end_with(save);
		done(SAVE, since);
	}
	headrace_step(HEADRACE_NONE);
	headrace_epoch(HEADRACE_NONE);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	since = now();
	headrace_begin(&names[OUTER]);
	begun = now();
	hand_over();
	killed();
	in_thread(leaves);
	in_thread(leaves); /* on the ring of the one before */
	ends(OUTER, begun);
	headrace_end();
	done(OUTER, since);
	headrace_end(); /* one too many */
	headrace_begin(&names[LEFT]);
	opened[LEFT]++;
	for (int i = 0; i < NAMES; i++)
		printf("%s\t%lu\t%lu\t%lu\t%lu\n", names[i].name, closed[i], opened[i], ns[i],
		       within[i]);
	return 0;
}
