/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - how long a thread has waited in calls that are not recorded as operations */
#include <errno.h>
#include <sys/stat.h>

#include "shim/core/clock.h"
#include "shim/core/internal.h"

/* Shorter reads and writes do not count: it takes a system call to check whether fd is a socket. */
#define LEAST_NS 10000u

__thread struct hr_waits hr_waits;

static uint64_t waits_sum(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < HR_WAIT_GROUPS; i++)
		sum += hr_waits.ns[i];
	return sum;
}

/* Does not measure under seccomp, because the clock could be a forbidden system call. */
void hr_wait_begin(struct hr_waiting *wait)
{
	int error = errno;

	wait->counted = waits_sum();
	wait->start = hr_shim_image.quiet ? 0 : hr__clock_ns();
	errno = error;
}

static uint64_t wait_ns(const struct hr_waiting *wait)
{
	uint64_t now, inner = waits_sum() - wait->counted;

	if (wait->start == 0 || hr_shim_image.quiet)
		return 0;
	now = hr__clock_ns();
	return now > wait->start + inner ? now - wait->start - inner : 0;
}

void hr_wait_end(const struct hr_waiting *wait, enum hr_wait_group group)
{
	int error = errno;

	hr_waits.ns[group] += wait_ns(wait);
	errno = error;
}

void hr_wait_end_fd(const struct hr_waiting *wait, int fd)
{
	int error = errno;
	uint64_t ns = wait_ns(wait);
	struct hr__stat st;

	if (ns >= LEAST_NS && hr__stat_fd(fd, &st) && S_ISSOCK(st.mode))
		hr_waits.ns[HR_WAIT_NETWORK] += ns;
	errno = error;
}
