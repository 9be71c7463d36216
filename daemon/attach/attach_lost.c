/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that are not recorded, and orphans: clients whose connections a killed daemon had
 * accepted. The node page has the pids of these.
 */
#include "daemon/attach/attach_internal.h"

#include <unistd.h>

void *hr__journal_reserve(struct hr_attach *a, uint64_t bytes, uint64_t wait_ns)
{
	uint64_t give_up_ns = hr_boot_ns() + wait_ns;

	for (;;) {
		void *in;

		hr_journal_lock(a->c.journal);
		in = hr_journal_reserve(a->c.journal, bytes, HR_KNOWN_SLACK);
		if (in)
			return in;
		hr_journal_unlock(a->c.journal);
		if (hr_boot_ns() > give_up_ns)
			return NULL;
		usleep(500);
	}
}

void hr__attach_lose(struct hr_attach *a, enum hr_loss_reason reason, pid_t pid, uint32_t image)
{
	struct hr_entry_note *in = hr__journal_reserve(a, sizeof(*in), HR__JOURNAL_WAIT_NS);

	if (in) {
		*in = (struct hr_entry_note){
		    .reason = reason, .count = 1, .pid = pid, .image = image};
		hr_journal_commit(a->c.journal, HR_ENTRY_NOTE, sizeof(*in));
		hr_journal_unlock(a->c.journal);
	} else {
		hr_drain_lose(a->c.drain, reason, 1);
	}
}

/* ---- orphans ---- */

#define UNKNOWN (-1) /* the daemon was killed before it had the pid */

static int32_t *slot(const struct hr_attach *a, const struct pending_attach *g)
{
	return &a->c.page->pending[g - a->pending];
}

int hr__pending_accept(struct hr_attach *a, const struct pending_attach *g)
{
	struct hr_node_page *page = a->c.page;
	struct ucred cred = {0};
	socklen_t bytes = sizeof(cred), taken_bytes = sizeof(page->taken);
	int fd;

	if (!page)
		return accept4(a->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	__atomic_store_n(&page->accepting, (uint16_t)(g - a->pending), __ATOMIC_RELAXED);
	fd = accept4(a->listen_fd, (struct sockaddr *)&page->taken, &taken_bytes,
		     SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes) == 0)
		__atomic_store_n(slot(a, g), cred.pid, __ATOMIC_RELAXED);
	__atomic_store_n(&page->taken, 0, __ATOMIC_RELEASE);
	return fd;
}

void hr__pending_forget(struct hr_attach *a, const struct pending_attach *g)
{
	if (a->c.page)
		__atomic_store_n(slot(a, g), 0, __ATOMIC_RELAXED);
}

bool hr__orphan_has(const struct hr_attach *a, const struct pending_attach *g)
{
	return a->n_orphans > 0 && g->fd < 0 && *slot(a, g) != 0;
}

void hr__orphans_find(struct hr_attach *a)
{
	struct hr_node_page *page = a->c.page;

	if (page && page->taken && page->accepting < PENDING_MOST &&
	    !page->pending[page->accepting])
		page->pending[page->accepting] = UNKNOWN;
	if (page)
		__atomic_store_n(&page->taken, 0, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < PENDING_MOST && page; i++)
		a->n_orphans += *slot(a, &a->pending[i]) != 0;
}

static bool orphans_remove(struct hr_attach *a, int32_t pid)
{
	bool found = false;

	for (unsigned i = 0; i < PENDING_MOST && a->n_orphans > 0; i++) {
		const struct pending_attach *g = &a->pending[i];

		if (!hr__orphan_has(a, g) || *slot(a, g) != pid)
			continue;
		hr__pending_forget(a, g);
		a->n_orphans--;
		found = true;
	}
	return found;
}

void hr__orphan_came(struct hr_attach *a, pid_t pid, bool again)
{
	if (!orphans_remove(a, pid) && again)
		orphans_remove(a, UNKNOWN);
}

void hr__orphans_missed(struct hr_attach *a)
{
	for (unsigned i = 0; i < PENDING_MOST && a->n_orphans > 0; i++) {
		const struct pending_attach *g = &a->pending[i];

		if (!hr__orphan_has(a, g))
			continue;
		hr__attach_lose(a, HR_LOSS_UNATTACHED, *slot(a, g) > 0 ? *slot(a, g) : 0, 0);
		hr__pending_forget(a, g);
		a->n_orphans--;
	}
}
