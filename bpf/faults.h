/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* faults.h - major faults of mapped files. Part of probe.bpf.c. */
#ifndef HEADRACE_BPF_FAULTS_H
#define HEADRACE_BPF_FAULTS_H

/*
 * Only the end of a fault shows whether it was major, but has no tracepoint. The kernel counts
 * the major faults of a task (getrusage), so this function reads the count at the task's next
 * fault, system call or exit. If an anonymous page was swapped in since, it counts as a major fault
 * of the file.
 */
static inline void settle_fault(struct task_struct *self, struct hr_probe_task *t)
{
	struct hr_sum_key key = {.op = HR_OP_FAULT, .kind = HR_SUM_FAULT};
	struct hr_inode_key inode = {.ino = t->fault_ino, .dev = t->fault_dev};
	const struct hr_file_name *known;
	const struct hr_image *image;

	if (!t->faulted)
		return;
	t->faulted = 0;
	if (self->maj_flt == t->majors)
		return;
	image = image_of(self);
	if (!image || image->flags & HR_IMAGE_QUIET)
		return;
	known = bpf_map_lookup_elem(&inodes, &inode);
	key.image = image->id;
	key.file = known ? known->name : 0;
	add_sum(&key, 0, false, 0);
}

static inline void note_fault(struct task_struct *self, struct hr_probe_task *t,
			      struct address_space *mapping)
{
	settle_fault(self, t);
	t->majors = self->maj_flt;
	t->fault_ino = BPF_CORE_READ(mapping, host, i_ino);
	t->fault_dev = BPF_CORE_READ(mapping, host, i_sb, s_dev);
	t->faulted = 1;
}

#endif
