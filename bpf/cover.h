/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cover.h - finds the call of the shim during which a system call happens. Part of probe.bpf.c. */
#ifndef HEADRACE_BPF_COVER_H
#define HEADRACE_BPF_COVER_H

/* Reads the shim's in-flight cell from the memory of the process, which may contain anything. */
static inline void find_cover(struct task_struct *self, const struct hr_image *image,
			      struct hr_probe_task *t)
{
	struct hr_inflight cell;
	struct hr_cover head;

	t->cell_op = 0;
	t->name = 0;
	if (!image->covered ||
	    bpf_probe_read_user(&head, sizeof(head), (void *)(THREAD_POINTER(self) + image->cover)))
		return;
	t->cell_file = 0;
	if (head.slow[HR_COVER_BARE] || head.slow[HR_COVER_EXITING]) {
		t->cell_op = head.slow[HR_COVER_BARE] == HR_BARE_OWN	? HR_COVER_OWN
			     : head.slow[HR_COVER_BARE] == HR_BARE_CALL ? HR_COVER_CALL
									: HR_COVER_EXIT;
		return;
	}
	if (head.ring == 0 ||
	    bpf_probe_read_user(&cell, sizeof(cell),
				(void *)(head.ring + offsetof(struct hr_ring_hdr, inflight))))
		return;
	t->cell_op = cell.op;
	t->cell_file = cell.file;
}

/*
 * Returns the file of a system call: the number of a NAME record if the cell has no file, otherwise
 * the shim's hash of the path.
 */
static inline uint64_t covered_file(const struct hr_probe_task *t)
{
	return HR_COVER_NAMED(t->cell_op) ? t->name : t->cell_file;
}

/*
 * Returns true if `parent` starts a thread of libc for POSIX AIO. Such threads have no cells. A
 * call that submits a request starts the first one, and this thread may start another.
 */
static inline bool starts_aio_thread(struct task_struct *parent, const struct hr_image *image,
				     struct hr_probe_task *t)
{
	if (t->aio || t->op || !image)
		return t->aio;
	find_cover(parent, image, t);
	return t->cell_op >= HR_OP_AIO_FIRST && t->cell_op <= HR_OP_AIO_LAST;
}

#endif
