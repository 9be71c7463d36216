/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pages.h - pages that calls and faults read into the page cache. Part of probe.bpf.c. */
#ifndef HEADRACE_BPF_PAGES_H
#define HEADRACE_BPF_PAGES_H

static inline void note_fault(struct task_struct *self, struct hr_probe_task *t,
			      struct address_space *mapping)
{
	settle_fault(self, t);
	t->majors = self->maj_flt;
	t->fault_ino = BPF_CORE_READ(mapping, host, i_ino);
	t->fault_dev = BPF_CORE_READ(mapping, host, i_sb, s_dev);
	t->faulted = 1;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(page_comes, struct folio *folio)
{
	struct task_struct *self = bpf_get_current_task_btf();
	struct hr_probe_task *t = bpf_task_storage_get(&tasks, self, NULL, 0);
	const struct hr_file_name *known;
	struct hr_inode_key inode = {0};
	struct hr_sum_key key = {0};
	struct hr_image *image;

	/* Other pages belong to the file system itself, which reads them at each open or sync. */
	if (!t || (BPF_CORE_READ(folio, mapping, host, i_mode) & S_IFMT) != S_IFREG)
		return 0;
	image = image_of(self);
	if (!image || image->flags & HR_IMAGE_QUIET)
		return 0;
	key.image = image->id;
	key.op = HR_OP_PAGES;
	if (t->op && t->moves == HR_MOVES_OUT) /* a write only makes room in the page cache */
		return 0;
	if (t->op) {
		key.kind = HR_SUM_FETCH;
		key.cell_op = t->cell_op;
		key.file = covered_file(t);
	} else {
		inode.ino = BPF_CORE_READ(folio, mapping, host, i_ino);
		inode.dev = BPF_CORE_READ(folio, mapping, host, i_sb, s_dev);
		known = bpf_map_lookup_elem(&inodes, &inode);
		key.kind = HR_SUM_FILL;
		key.file = known ? known->name : 0;
		if (!faults_traced)
			note_fault(self, t, BPF_CORE_READ(folio, mapping));
	}
	add_sum(&key, folio_bytes(folio), false, 0);
	return 0;
}

/* Since Linux 6.12. May run twice for a fault, but only the task's count matters. */
SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(page_faults, struct address_space *mapping)
{
	struct task_struct *self = bpf_get_current_task_btf();
	struct hr_probe_task *t = bpf_task_storage_get(&tasks, self, NULL, 0);

	if (t)
		note_fault(self, t, mapping);
	return 0;
}

#endif
