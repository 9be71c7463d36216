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
#include <sys/syscall.h>
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

/* Nanoseconds since the last call: by which each group has grown, and that have passed. */
static uint64_t grown[3], passed;

static void look(void)
{
	static uint64_t last;
	struct timespec t;
	uint64_t now[3], clock;

	api->waited(now);
	clock_gettime(CLOCK_MONOTONIC, &t);
	clock = (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
	for (int i = 0; i < 3; i++)
		grown[i] = now[i] - before[i];
	memcpy(before, now, sizeof(before));
	passed = clock - last;
	last = clock;
}

/*
 * The waits are as long as was asked for. A busy machine makes them longer, and also a call that
 * does not wait. Each nanosecond counts once, so the sum is at most what passed (1 ms for the
 * difference between the clocks).
 */
static int waited(uint64_t sleep_ms, uint64_t network_ms)
{
	return grown[SLEEP] >= sleep_ms * MS && grown[NETWORK] >= network_ms * MS &&
	       grown[SLEEP] + grown[NETWORK] + grown[LOCK] <= passed + MS;
}

static void doze(unsigned ms)
{
	struct timespec left = {.tv_nsec = (long)(ms * MS)};

	nanosleep(&left, NULL);
}

static void in_handler(int signal)
{
	(void)signal;
	doze(40);
}

/* Waits until the thread is in the system call, and blocked. */
static void blocked_await(pid_t tid, long call)
{
	char path[64], text[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	do {
		doze(1);
		f = fopen(path, "r");
		CHECK(f != NULL);
		if (fgets(text, sizeof(text), f) == NULL)
			text[0] = '\0';
		fclose(f);
	} while (text[0] < '0' || text[0] > '9' || strtol(text, NULL, 10) != call);
}

/* A signal for the main thread when it has been blocked in a call for 30 ms. */
static struct interrupt {
	pthread_t from, to;
	pid_t tid;
	long call;
} interrupt;

static void *interrupt_send(void *arg)
{
	(void)arg;
	blocked_await(interrupt.tid, interrupt.call);
	doze(30);
	CHECK(pthread_kill(interrupt.to, SIGALRM) == 0);
	return NULL;
}

static void interrupt_begin(long call, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler};

	interrupt.to = pthread_self();
	interrupt.tid = (pid_t)syscall(SYS_gettid);
	interrupt.call = call;
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	CHECK(pthread_create(&interrupt.from, NULL, interrupt_send, NULL) == 0);
}

/* What the main thread has waited since the last time, without this function itself. */
static void interrupt_end(void)
{
	look();
	CHECK(pthread_join(interrupt.from, NULL) == 0);
}

static sigjmp_buf out;

static void jump(int signal)
{
	(void)signal;
	siglongjmp(out, 1);
}

static int pair[2];

static pid_t measured_tid;

static void *measured(void *arg)
{
	char c;

	(void)arg;
	look();
	__atomic_store_n(&measured_tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
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
	CHECK(waited(50, 0));

	/* A handler that sleeps in the middle of recv(): each millisecond counts once. */
	interrupt_begin(SYS_recvfrom, in_handler);
	CHECK(recv(pair[0], &c, 1, 0) == -1 && errno == EINTR);
	interrupt_end();
	CHECK(waited(40, 30));

	/* The same in read(), which counts only for a socket. */
	interrupt_begin(SYS_read, in_handler);
	CHECK(read(pair[0], &c, 1) == -1 && errno == EINTR);
	interrupt_end();
	CHECK(waited(40, 30));
	CHECK(pipe(pair) == 0);
	interrupt_begin(SYS_read, in_handler);
	CHECK(read(pair[0], &c, 1) == -1 && errno == EINTR);
	interrupt_end();
	CHECK(grown[NETWORK] == 0 && waited(40, 0));

	/* What a handler jumps out of does not count, and what comes after it does. */
	interrupt_begin(SYS_futex, jump);
	if (sigsetjmp(out, 1) == 0)
		sem_wait(&sem);
	doze(20);
	interrupt_end();
	CHECK(grown[LOCK] == 0 && waited(20, 0));

	/* Another thread's waits are its own; a cancelled one leaves. */
	CHECK(pthread_create(&thread, NULL, plain, others) == 0);
	CHECK(pthread_join(thread, NULL) == 0 && others[SLEEP] == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK(pthread_create(&thread, NULL, measured, NULL) == 0);
	while (__atomic_load_n(&measured_tid, __ATOMIC_ACQUIRE) == 0)
		doze(1);
	blocked_await(measured_tid, SYS_recvfrom);
	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);

	/* A forked child goes on with its parent's sums. */
	look();
	if (fork() == 0) {
		doze(30);
		look();
		_exit(waited(30, 0) ? 0 : 1);
	}
	CHECK(wait(&status) > 0 && status == 0);
	return 0;
}
