/* SPDX-License-Identifier: Apache-2.0 */
/* waits.c - a preloaded program that compares headrace_api.waited with what it made its threads wait */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/headrace.h"

enum { SLEEP, NETWORK, LOCK };
#define MS 1000000ull

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "waits.c:%d: %s\n", __LINE__, #x);                         \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static const struct headrace_api *api;
static uint64_t before[3];

/* What each group has grown by since the last call, in milliseconds, rounded. */
static uint64_t grown[3];

static void look(void)
{
	uint64_t now[3];

	api->waited(now);
	for (int i = 0; i < 3; i++)
		grown[i] = (now[i] - before[i] + MS / 2) / MS;
	memcpy(before, now, sizeof(before));
}

/* A busy machine makes a wait longer, never shorter. */
static int about(uint64_t ms, uint64_t wanted)
{
	return ms >= wanted && ms < wanted + 25;
}

static void doze(unsigned ms)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)(ms * MS)}, NULL);
}

static void in_handler(int signal)
{
	(void)signal;
	doze(40);
}

static void alarm_in(unsigned ms, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler};
	struct itimerval timer = {.it_value.tv_usec = (suseconds_t)(ms * 1000)};

	CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static sigjmp_buf out;

static void jump(int signal)
{
	(void)signal;
	siglongjmp(out, 1);
}

static int pair[2];

static void *measured(void *arg)
{
	char c;

	(void)arg;
	look();
	recv(pair[0], &c, 1, 0);
	return NULL;
}

static void *plain(void *ret)
{
	doze(30);
	api->waited(ret); /* the first call: nothing was measured before it */
	return NULL;
}

int main(void)
{
	struct timespec past = {.tv_sec = 1};
	uint64_t others[3] = {1, 1, 1};
	pthread_t thread;
	int status;
	sem_t sem;
	char c;

	api = headrace_api ? headrace_api(HEADRACE_API_VERSION) : NULL;
	CHECK(api && api->bytes >= sizeof(*api));
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && sem_init(&sem, 0, 0) == 0);
	doze(30);
	look();
	CHECK(grown[SLEEP] == 0 && grown[NETWORK] == 0 && grown[LOCK] == 0);

	doze(30);
	errno = 77;
	CHECK(usleep(20000) == 0 && errno == 77);
	CHECK(sem_timedwait(&sem, &past) == -1 && errno == ETIMEDOUT);
	CHECK(recv(pair[0], &c, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	look();
	CHECK(about(grown[SLEEP], 50) && grown[NETWORK] == 0 && grown[LOCK] == 0);

	/* A handler that sleeps in the middle of recv(): each millisecond counts once. */
	alarm_in(30, in_handler);
	CHECK(recv(pair[0], &c, 1, 0) == -1 && errno == EINTR);
	look();
	CHECK(about(grown[NETWORK], 30) && about(grown[SLEEP], 40));

	/* The same in read(), which counts only for a socket. */
	alarm_in(30, in_handler);
	CHECK(read(pair[0], &c, 1) == -1 && errno == EINTR);
	look();
	CHECK(about(grown[NETWORK], 30) && about(grown[SLEEP], 40));
	CHECK(pipe(pair) == 0);
	alarm_in(30, in_handler);
	CHECK(read(pair[0], &c, 1) == -1 && errno == EINTR);
	look();
	CHECK(grown[NETWORK] == 0 && about(grown[SLEEP], 40));

	/* What a handler jumps out of does not count, and what comes after it does. */
	alarm_in(30, jump);
	if (sigsetjmp(out, 1) == 0)
		sem_wait(&sem);
	doze(20);
	look();
	CHECK(grown[LOCK] == 0 && about(grown[SLEEP], 20));

	/* Another thread's waits are its own; a cancelled one leaves. */
	CHECK(pthread_create(&thread, NULL, plain, others) == 0);
	CHECK(pthread_join(thread, NULL) == 0 && others[SLEEP] == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK(pthread_create(&thread, NULL, measured, NULL) == 0);
	doze(20);
	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);

	/* A forked child goes on with its parent's sums. */
	look();
	if (fork() == 0) {
		doze(30);
		look();
		_exit(about(grown[SLEEP], 30) ? 0 : 1);
	}
	CHECK(wait(&status) > 0 && status == 0);
	return 0;
}
