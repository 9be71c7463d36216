/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "page" /* name of the page in the descriptor store */

void hr_page_init(struct hr_page *p)
{
	*p = (struct hr_page){.fd = -1, .shared_fd = -1};
}

/* Maps a node page. The caller keeps the descriptor. -EINVAL: it is not a node page. */
static int map(int fd, struct hr_node_page **ret)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	struct hr_node_page *page;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) < 0 ||
	    st.st_size != (off_t)sizeof(*page))
		return -EINVAL;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	page->magic = HR_ABI_MAGIC;
	page->abi = HR_ABI_VERSION;
	*ret = page;
	return 0;
}

bool hr_page_is_kept(const struct hr_inherited *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].name, NAME) == 0)
			return true;
	return false;
}

static bool take_kept(struct hr_page *p, struct hr_inherited *list, size_t n)
{
	for (size_t i = 0; i < n && !p->kept; i++) {
		if (list[i].fd < 0 || strcmp(list[i].name, NAME) != 0 || map(list[i].fd, &p->at))
			continue;
		p->fd = list[i].fd;
		list[i].fd = -1;
		p->kept = true;
	}
	return p->kept;
}

static int page_make(struct hr_page *p)
{
	p->fd = memfd_create("headrace-node", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* The next daemon writes to the page, so it is not sealed. Other users cannot open it. */
	if (p->fd < 0 || fchmod(p->fd, 0400) < 0 || ftruncate(p->fd, sizeof(*p->at)) < 0 ||
	    fcntl(p->fd, F_ADD_SEALS, HR_SIZE_SEALS) < 0)
		return -errno;
	return map(p->fd, &p->at);
}

static int share(struct hr_page *p)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->fd);
	p->shared_fd = open(path, O_RDONLY | O_CLOEXEC);
	return p->shared_fd < 0 ? -errno : 0;
}

int hr_page_open(struct hr_page *p, struct hr_inherited *list, size_t n)
{
	int r = take_kept(p, list, n) ? 0 : page_make(p);

	if (r)
		return r;
	if (!p->kept)
		hr_fdstore_push(NAME, p->fd);
	return share(p);
}

void hr_page_forget(void)
{
	hr_fdstore_remove(NAME);
}

void hr_page_done(struct hr_page *p)
{
	if (p->at)
		munmap(p->at, sizeof(*p->at));
	if (p->fd >= 0)
		close(p->fd);
	if (p->shared_fd >= 0)
		close(p->shared_fd);
}
