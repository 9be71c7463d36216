/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_load - many processes with threads that read at a given rate together: the load of node_load.py
 *
 *      node_load FILE PROCESSES THREADS RATE SECONDS        RATE: reads a second of all together; THREADS of each process
 *
 * Each thread reads 4 KiB blocks of FILE, ten bursts a second. Says "ready" when all have read once, and at the end how many reads
 * there were. The main process itself reads nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BURSTS_PER_S 10
#define BLOCK_BYTES  4096
#define BLOCKS	     256
#define STACK_BYTES  (64u << 10)

static struct shared {
	atomic_ulong reads;
	atomic_uint ready;
	atomic_uint go;
	struct timespec begin;
} * shared;
static const char *path;
static unsigned long burst; /* reads of a thread at a time, in thousandths */
static unsigned seconds;

static void until(struct timespec at, long more_ns)
{
	at.tv_sec += (at.tv_nsec + more_ns) / 1000000000;
	at.tv_nsec = (at.tv_nsec + more_ns) % 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static unsigned long read_some(int fd, unsigned long n, unsigned long from)
{
	char block[BLOCK_BYTES];
	unsigned long done = 0;

	for (; done < n; done++)
		if (pread(fd, block, sizeof(block),
			  (off_t)((from + done) % BLOCKS * BLOCK_BYTES)) != sizeof(block))
			abort();
	return done;
}

static void *work(void *arg)
{
	long phase = (long)((uintptr_t)arg % 1000) * (1000000000L / BURSTS_PER_S / 1000);
	int fd = (int)((uintptr_t)arg >> 32);
	unsigned long reads = read_some(fd, 1, 0), owed = 0;

	atomic_fetch_add(&shared->ready, 1);
	while (atomic_load(&shared->go) == 0)
		syscall(SYS_futex, &shared->go, FUTEX_WAIT, 0, NULL, NULL, 0);
	for (unsigned i = 0; i < seconds * BURSTS_PER_S; i++) {
		struct timespec at = shared->begin;

		at.tv_sec += i / BURSTS_PER_S;
		until(at, phase + (long)(i % BURSTS_PER_S) * (1000000000L / BURSTS_PER_S));
		owed += burst;
		reads += read_some(fd, owed / 1000, reads);
		owed %= 1000;
	}
	atomic_fetch_add(&shared->reads, reads);
	return NULL;
}

static int child(unsigned number, unsigned threads)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	pthread_t ids[64];
	pthread_attr_t attr;

	if (fd < 0 || threads > 64)
		return EXIT_FAILURE;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&ids[i], &attr, work,
				   (void *)((uintptr_t)fd << 32 | (number * threads + i))) != 0)
			return EXIT_FAILURE;
	for (unsigned i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	unsigned processes, threads;
	int status, bad = 0;

	if (argc != 6) {
		fputs("node_load FILE PROCESSES THREADS RATE SECONDS\n", stderr);
		return 2;
	}
	path = argv[1];
	processes = (unsigned)strtoul(argv[2], NULL, 10);
	threads = (unsigned)strtoul(argv[3], NULL, 10);
	seconds = (unsigned)strtoul(argv[5], NULL, 10);
	burst = strtoul(argv[4], NULL, 10) * 1000 / BURSTS_PER_S / processes / threads;
	shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return EXIT_FAILURE;
	for (unsigned i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(child(i, threads));
		bad += pid < 0;
	}
	while (bad == 0 && atomic_load(&shared->ready) < processes * threads)
		usleep(10000);
	puts("ready");
	(void)fflush(stdout);
	(void)getchar(); /* the driver has looked at who is there */
	clock_gettime(CLOCK_MONOTONIC, &shared->begin);
	atomic_store(&shared->go, 1);
	syscall(SYS_futex, &shared->go, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	while (wait(&status) > 0)
		bad += status != 0;
	printf("%lu\n", atomic_load(&shared->reads));
	return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
