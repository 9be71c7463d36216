/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/ringpool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_TARGET 8u
#define MOST	     (sizeof(((struct hr_ringpool *)0)->fds) / sizeof(int))

/*
 * Allocates the first pages of each ring, without mapping them here. A process with few operations
 * needs no other pages. If memory is short, this function fails, so that the client gets no SIGBUS.
 * For later pages, the client checks the memory itself (shim/core/ring.c).
 */
static int allocate(int fd)
{
	uint64_t bytes = sizeof(struct hr_ring_hdr) + (uint64_t)HR_RING_EARLY * HR_SLOT_BYTES;

	if (fallocate(fd, 0, 0, sizeof(struct hr_map_hdr)) < 0)
		return -errno;
	for (uint32_t i = 0; i < HR_MAP_RINGS; i++)
		if (fallocate(fd, 0, (off_t)hr_ring_offset(i, HR_RING_SLOTS_LOG2), (off_t)bytes) <
		    0)
			return -errno;
	return 0;
}

/* Makes a sealed map, and maps it at *ret. Returns a descriptor or -errno. */
static int ringpool_make(struct hr_map *ret)
{
	int fd = memfd_create("headrace-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)hr_map_bytes(HR_MAP_RINGS, HR_RING_SLOTS_LOG2)) < 0)
		r = -errno;
	else
		r = allocate(fd);
	if (!r && fcntl(fd, F_ADD_SEALS, HR_SIZE_SEALS) < 0)
		r = -errno;
	if (!r)
		r = hr_map_open(fd, ret);
	if (r) {
		close(fd);
		return r;
	}
	return fd;
}

void hr_ringpool_init(struct hr_ringpool *p)
{
	p->n = 0;
	p->target = FIRST_TARGET;
}

void hr_ringpool_done(struct hr_ringpool *p)
{
	while (p->n) {
		p->n--;
		hr_map_close(&p->maps[p->n]);
		close(p->fds[p->n]);
	}
}

int hr_ringpool_take(struct hr_ringpool *p, struct hr_map *ret)
{
	if (p->n == 0 && p->target < MOST)
		p->target *= 2;
	if (p->n == 0)
		return ringpool_make(ret);
	p->n--;
	*ret = p->maps[p->n];
	return p->fds[p->n];
}

bool hr_ringpool_low(const struct hr_ringpool *p)
{
	return p->n < p->target / 2;
}

bool hr_ringpool_refill(struct hr_ringpool *p)
{
	int fd;

	if (p->n >= p->target)
		return false;
	fd = ringpool_make(&p->maps[p->n]);
	if (fd < 0)
		return false;
	p->fds[p->n++] = fd;
	return true;
}
