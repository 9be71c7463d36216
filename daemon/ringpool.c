/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ringpool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define FIRST_TARGET 8u
#define MOST	     (sizeof(((struct hr_ringpool *)0)->fds) / sizeof(int))
#define SIZE_SEALS   (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int make(void)
{
	int fd = memfd_create("headrace-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = 0;

	if (fd < 0)
		return -errno;
	/* Allocates zeroed pages without mapping them here. */
	if (fallocate(fd, 0, 0, (off_t)hr_map_bytes(HR_MAP_RINGS, HR_RING_SLOTS_LOG2)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, SIZE_SEALS) < 0)
		r = -errno;
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
	while (p->n)
		close(p->fds[--p->n]);
}

int hr_ringpool_take(struct hr_ringpool *p, uint64_t session, uint32_t index, uint32_t level)
{
	struct hr_map_hdr hdr = {
	    .magic = HR_ABI_MAGIC,
	    .abi = HR_ABI_VERSION,
	    .index = index,
	    .session = session,
	    .ring_count = HR_MAP_RINGS,
	    .slots_log2 = HR_RING_SLOTS_LOG2,
	    .level = level,
	};
	int fd;

	if (p->n == 0 && p->target < MOST)
		p->target *= 2;
	fd = p->n ? p->fds[--p->n] : make();
	if (fd < 0)
		return fd;
	if (pwrite(fd, &hdr, sizeof(hdr), 0) != (ssize_t)sizeof(hdr)) {
		close(fd);
		return -EIO;
	}
	return fd;
}

bool hr_ringpool_refill(struct hr_ringpool *p)
{
	int fd;

	if (p->n >= p->target)
		return false;
	fd = make();
	if (fd < 0)
		return false;
	p->fds[p->n++] = fd;
	return true;
}

int hr_node_page_new(struct hr_node_page **ret, int *ret_fd)
{
	int fd = memfd_create("headrace-node", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct hr_node_page *page = MAP_FAILED;
	int r = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(*page)) < 0)
		r = -errno;
	if (!r) {
		page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		r = page == MAP_FAILED ? -errno : 0;
	}
	/* Our mapping was made before the seal, and stays writable. */
	if (!r && fcntl(fd, F_ADD_SEALS, SIZE_SEALS | F_SEAL_FUTURE_WRITE) < 0)
		r = -errno;
	if (r) {
		if (page != MAP_FAILED)
			munmap(page, sizeof(*page));
		close(fd);
		return r;
	}
	page->magic = HR_ABI_MAGIC;
	page->abi = HR_ABI_VERSION;
	*ret = page;
	*ret_fd = fd;
	return 0;
}
