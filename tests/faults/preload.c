/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults that only the process itself can have: preloaded into daemons and collectors, by tests/faults/schedule.py and
 * tests/collector/client.h.
 *
 *      $HR_FAULTS     a file of numbers that the test changes while the process runs:
 *                     bytes 0-7   nanoseconds added to CLOCK_REALTIME
 *                     bytes 8-15  n > 0: the n-th pwrite of more than 512 bytes from now on writes a part of them and the
 *                                 process gets SIGKILL: what a power failure leaves of an append
 *                     bytes 16-23 how often that has happened, counted here
 *                     bytes 24-31 nanoseconds added to CLOCK_MONOTONIC
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct faults {
	int64_t clock_ns;
	int64_t torn_write;
	int64_t torn;
	int64_t steady_ns;
} none, *faults = &none;

static ssize_t (*real_pwrite)(int fd, const void *buf, size_t bytes, off_t offset);

/* Under the names of the functions that they take the place of. */
ssize_t torn_pwrite(int fd, const void *buf, size_t bytes, off_t offset) __asm__("pwrite");
ssize_t torn_pwrite64(int fd, const void *buf, size_t bytes, off_t offset) __asm__("pwrite64");
int shifted_clock(clockid_t clock, struct timespec *ret) __asm__("clock_gettime");
time_t shifted_time(time_t *ret) __asm__("time");

__attribute__((constructor)) static void start(void)
{
	const char *name = getenv("HR_FAULTS");
	int fd = name != NULL ? open(name, O_RDWR | O_CLOEXEC) : -1;
	void *map;

	real_pwrite = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
	if (fd < 0)
		return;
	map = mmap(NULL, sizeof(*faults), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		faults = map;
}

ssize_t torn_pwrite(int fd, const void *buf, size_t bytes, off_t offset)
{
	if (bytes > 512 && __atomic_load_n(&faults->torn_write, __ATOMIC_RELAXED) > 0 &&
	    __atomic_sub_fetch(&faults->torn_write, 1, __ATOMIC_RELAXED) == 0) {
		(void)!real_pwrite(fd, buf, bytes / 3, offset);
		__atomic_add_fetch(&faults->torn, 1, __ATOMIC_RELAXED);
		raise(SIGKILL);
	}
	return real_pwrite(fd, buf, bytes, offset);
}

ssize_t torn_pwrite64(int fd, const void *buf, size_t bytes, off_t offset)
{
	return torn_pwrite(fd, buf, bytes, offset);
}

/* Of the numbers, the one that is added to this clock; NULL: none. */
static const int64_t *shift_of(clockid_t clock)
{
	if (clock == CLOCK_REALTIME)
		return &faults->clock_ns;
	return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ? &faults->steady_ns
									   : NULL;
}

int shifted_clock(clockid_t clock, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, clock, ret);
	const int64_t *shift = shift_of(clock);
	int64_t ns = shift ? __atomic_load_n(shift, __ATOMIC_RELAXED) : 0;

	if (r != 0 || ns == 0)
		return r;
	ns += ret->tv_nsec;
	ret->tv_sec += ns / 1000000000;
	ns %= 1000000000;
	if (ns < 0) {
		ns += 1000000000;
		ret->tv_sec--;
	}
	ret->tv_nsec = ns;
	return 0;
}

time_t shifted_time(time_t *ret)
{
	struct timespec t;

	shifted_clock(CLOCK_REALTIME, &t);
	if (ret)
		*ret = t.tv_sec;
	return t.tv_sec;
}
