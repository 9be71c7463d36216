/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork.c - fork, vfork, and the attach before a call that would prevent it
 *
 * The kernel zeroes hr_wiped in a forked child, so the child never uses the parent's session, even
 * if another thread was attaching. The child maps private memory over the parent's rings, because
 * fork may interrupt a store to a ring (if a signal handler forks).
 */
#include "shim/core/internal.h"

#include <sys/mman.h>

#include "shim/core/clock.h"
#include "shim/core/path.h"
#include "shim/core/sys.h"

/* Private memory counts for RLIMIT_DATA. Shared memory does not, but takes longer to map. */
void hr__cover(void *addr, uint64_t bytes)
{
	const int flags = MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;

	if (HR_SYS6(mmap, addr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | flags, -1, 0) < 0)
		HR_SYS6(mmap, addr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, -1, 0);
}

/*
 * Maps private memory over the shared rings, because interrupted code may store to their addresses
 * later. No other code uses that memory. The heads of the maps stay shared: interrupted code does
 * not store there, and the child counts in the strays of the first map until it attaches.
 */
void hr__cover_mappings(void)
{
	struct hr_shim_image *im = &hr_shim_image;

	for (uint32_t i = 0; i < im->mapping_count; i++)
		hr__cover(im->mappings[i].addr, im->mappings[i].bytes);
	im->mapping_count = 0;
}

void hr__fork_child(void)
{
	hr_self.nonce = HR__NONCE_NEVER;
	hr_self.slow.why[HR__SLOW_RING] = 1;
	hr_self.slow.why[HR__SLOW_AGGREGATE] = 0;
	hr_self.slow.why[HR__SLOW_VFORK] = HR__VFORK_NO;
	hr_self.slow.why[HR__SLOW_BARE] = HR_BARE_NOT;
	hr_self.began = 0;
	hr__fdtab_forget_announced();
	hr_shim_image.clock_switched = false;
	if (!hr_shim_image.quiet) {
		hr__session_fds_drop();
		hr__cover_mappings();
		hr_wiped.pid = hr__sys_getpid();
	}
	hr_wiped.born = HR__BORN_FORKED;
}

void hr_after_fork_child(void)
{
	if (hr_shim_image.on && hr_wiped.born == HR__BORN_WIPED)
		hr__fork_child();
}

void hr__announce_child(int pid, uint32_t vforked)
{
	struct hr_record head = {
	    .op = HR_CTL_FORK, .fd = pid, .flags = vforked, .offset = HR_OFFSET_NONE};

	if (hr__ring_any() == NULL)
		return;
	head.start_ticks = hr_shim_ticks();
	hr_ring_control(&head, NULL, 0);
}

void hr_after_fork_parent(int pid)
{
	if (pid > 0)
		hr__announce_child(pid, 0);
}

void hr_before_vfork(void)
{
	/* hr_in_vfork_child() clears the mark of an earlier vfork, unless this is the child. */
	if (!hr_shim_image.on)
		return;
	hr_self.quiet_vfork = hr_shim_image.quiet > 0;
	if (hr_shim_image.quiet || hr_in_vfork_child() || hr__shared())
		return;
	if (__atomic_load_n(&hr_wiped.nonce, __ATOMIC_ACQUIRE) != 0)
		hr_ring_find(HR__SEEK_FIRST);
	hr_self.child_fds = false;
	hr_self.slow.why[HR__SLOW_VFORK] = HR__VFORK_MARKED;
}

/*
 * Prepares for a parent and a child that share this thread's memory and may interrupt each other
 * anywhere. From now on, both reserve slots by locked instructions, and use no in-flight cell and
 * no aggregate. Each operation makes a system call, which returns the process that runs.
 */
void hr_before_sharing(void)
{
	if (!hr_shim_image.on || hr_shim_image.quiet || hr_in_vfork_child())
		return;
	if (hr_self.slow.why[HR__SLOW_AGGREGATE] != 0)
		hr__ring_aggregate_flush();
	hr_self.slow.why[HR__SLOW_VFORK] = HR__VFORK_SHARED;
}

/* Parent and child share memory and thread pointer. Only a system call can identify the child. */
bool hr__vfork_child(void)
{
	struct hr__thread *t = &hr_self;
	int pid;

	if (hr_shim_image.quiet)
		return true;
	pid = hr__sys_getpid();
	if (pid == hr_wiped.pid) {
		if (!hr__shared())
			t->slow.why[HR__SLOW_VFORK] = HR__VFORK_NO;
		return false;
	}
	if (t->slow.why[HR__SLOW_VFORK] == HR__VFORK_MARKED) {
		t->slow.why[HR__SLOW_VFORK] = HR__VFORK_CHILD;
		hr__announce_child(pid, 1);
	}
	return true;
}

void hr_before_seccomp(void)
{
	if (!hr_shim_image.on || hr_in_vfork_child())
		return;
	if (!hr_shim_image.quiet) {
		hr_ring_find(HR__SEEK_FORCE);
		/* The system calls for these are still allowed. */
		hr__path_know_cwd();
		hr__fdtab_resolve_open();
	}
	__atomic_fetch_add(&hr_shim_image.quiet, 1, __ATOMIC_SEQ_CST);
}

void hr_seccomp_failed(void)
{
	if (hr_shim_image.on && !hr_in_vfork_child())
		__atomic_fetch_sub(&hr_shim_image.quiet, 1, __ATOMIC_SEQ_CST);
}

void hr_before_no_clock(void)
{
	hr_before_seccomp();
	hr__clock_freeze();
	hr_self.slow.why[HR__SLOW_CLOCK] = 1;
}

void hr_before_unseen_library(void)
{
	if (!hr_shim_image.on || hr_in_vfork_child())
		return;
	hr_fds_split();
	if (!hr_shim_image.quiet)
		hr_ring_find(HR__SEEK_RETRY);
	hr__counters_add(HR_CTL_LIBRARY, 0, HR_ASKED_NONE, 0, 0);
}

void hr_before_leaving(void)
{
	if (!hr_shim_image.on || hr_shim_image.quiet || hr_in_vfork_child())
		return;
	hr__ring_last_chance();
	hr_ring_find(HR__SEEK_RETRY);
	hr__ring_set_aside();
	hr_shim_image.left = true;
}
