/* SPDX-License-Identifier: Apache-2.0 */
#include "python/spent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/now.h"

#define CORE_WAIT_NS 20000000u
#define BLOCK_BYTES  512u /* unit of ru_inblock */

static __thread struct {
	unsigned long long read_at_ns, waited_ns;
	bool known; /* waited_ns is known */
} core_wait;

/* getrusage has the CPU time of the last tick, so a fetch of 2 ms would have none. */
struct spent spent_now(const struct headrace_api *api)
{
	struct rusage usage = {0};
	struct spent now = {0};
	int error = errno;

	getrusage(RUSAGE_THREAD, &usage);
	errno = error;
	now.at_ns = hr_now_ns(CLOCK_MONOTONIC);
	now.cpu_ns = hr_now_ns(CLOCK_THREAD_CPUTIME_ID);
	now.major_faults = (unsigned long long)usage.ru_majflt;
	now.storage_bytes = BLOCK_BYTES * (unsigned long long)usage.ru_inblock;
	api->waited(now.waited_ns);
	return now;
}

/*
 * Reads the second number of schedstat. False: no descriptor is free, or the file does not exist.
 */
static bool read_core_wait(unsigned long long *ret)
{
	int error = errno, fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	char text[96], *at, *end;
	ssize_t n = -1;

	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	errno = error;
	if (n <= 0)
		return false;
	text[n] = '\0';
	at = strchr(text, ' ');
	if (!at)
		return false;
	*ret = strtoull(at, &end, 10);
	return end != at;
}

/* A read can cover time before `from`. Assumes that waits are spread evenly over this time. */
bool spent_core_wait(unsigned long long from, unsigned long long *ret_ns)
{
	unsigned long long now = hr_now_ns(CLOCK_MONOTONIC), waited, before = core_wait.waited_ns;
	unsigned long long since = core_wait.read_at_ns;
	bool known = core_wait.known;

	if (since > 0 && now - since < CORE_WAIT_NS)
		return false;
	core_wait.read_at_ns = now;
	core_wait.known = read_core_wait(&waited);
	if (!core_wait.known)
		return false;
	core_wait.waited_ns = waited;
	*ret_ns = waited - before;
	if (from > since && now > since)
		*ret_ns = (unsigned long long)((double)*ret_ns * (double)(now - from) /
					       (double)(now - since));
	return known && waited >= before; /* a smaller value is that of a forked child */
}

size_t spent_put(char *room, size_t size, size_t n, const char *format, ...)
{
	va_list args;
	int more = 0;

	va_start(args, format);
	if (n < size)
		more = vsnprintf(room + n, size - n, format, args);
	va_end(args);
	return more < 0 ? size : n + (size_t)more;
}

size_t spent_put_since(char *room, size_t size, size_t n, const struct spent *before,
		       const struct spent *now)
{
	static const char *const waits[SPENT_WAITS] = {
	    ",\"sleep_ns\":", ",\"network_ns\":", ",\"lock_ns\":"};
	unsigned long long waited;

	if (now->cpu_ns < before->cpu_ns) /* a child forked since `before` starts from 0 */
		return n;
	n = spent_put(room, size, n, ",\"cpu_ns\":%llu,\"storage_bytes\":%llu",
		      now->cpu_ns - before->cpu_ns, now->storage_bytes - before->storage_bytes);
	if (now->major_faults > before->major_faults)
		n = spent_put(room, size, n, ",\"major_faults\":%llu",
			      now->major_faults - before->major_faults);
	if (spent_core_wait(before->at_ns, &waited))
		n = spent_put(room, size, n, ",\"core_wait_ns\":%llu", waited);
	for (int i = 0; i < SPENT_WAITS; i++)
		if (now->waited_ns[i] > before->waited_ns[i])
			n = spent_put(
			    room, size, n, "%s%llu", waits[i],
			    (unsigned long long)(now->waited_ns[i] - before->waited_ns[i]));
	return n;
}
