/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* faults.h - major faults of mapped files: noted when they begin, counted when the task comes by again. Part of probe.bpf.c. */
#ifndef HEADRACE_BPF_FAULTS_H
#define HEADRACE_BPF_FAULTS_H

/*
 * Whether a fault is a major one is known when it is over, and no tracepoint is there: the kernel counts it in the task (getrusage). So that is
 * looked at when the task faults on a file again, makes a system call, or ends. A page of its own that comes from swap meanwhile, and is the
 * only one, is taken for the file's.
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
