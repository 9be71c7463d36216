/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* images.h - the processes of the job, their images and page faults. Part of probe.bpf.c. */
#ifndef HEADRACE_BPF_IMAGES_H
#define HEADRACE_BPF_IMAGES_H

static inline struct hr_image *image_of(struct task_struct *task)
{
	uint32_t tgid = task->tgid;

	return bpf_map_lookup_elem(&images, &tgid);
}

/* Returns true if the shim records only operations with a cell, and a hello cannot change this. */
static inline bool is_settled(const struct hr_image *image, uint64_t now_ns)
{
	return image->covered ||
	       (!(image->flags & HR_IMAGE_SHIM) && now_ns - image->born_ns > HR_PROBE_YOUNG_NS);
}

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

/* `how`: BPF_NOEXIST if fork or exec may have just added the process, with more details. */
static inline void new_image(struct task_struct *task, const struct hr_image *image, uint64_t how)
{
	uint32_t tgid = task->tgid;
	struct hr_image value = *image;
	long r;

	value.born_ns = bpf_ktime_get_boot_ns();
	value.id = __sync_fetch_and_add(&last_image, 1) + 1;
	r = bpf_map_update_elem(&images, &tgid, &value, how);
	if (r && r != -EEXIST)
		__sync_fetch_and_add(&unlisted, 1);
}

/* Returns true if the task is in one of `cgroups`, or in a cgroup below one of them. */
static inline bool in_cgroup(struct task_struct *task)
{
	struct cgroup *cgroup;
	uint64_t id;

	if (!*(volatile uint32_t *)&n_cgroups)
		return false;
	cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	for (uint32_t i = 0; i < HR_PROBE_LEVELS && cgroup; i++) {
		struct cgroup_subsys_state *above = BPF_CORE_READ(cgroup, self.parent);

		id = BPF_CORE_READ(cgroup, kn, id);
		if (bpf_map_lookup_elem(&cgroups, &id))
			return true;
		cgroup = above ? (void *)above - bpf_core_field_offset(struct cgroup, self) : NULL;
	}
	return false;
}

/*
 * Adds a task in one of `cgroups` whose parent does not belong to the job. headraced then marks the
 * other threads and the children of the process.
 */
static inline void join(struct task_struct *task, uint32_t flags)
{
	const struct hr_image image = {.flags = flags};

	if (!bpf_task_storage_get(&tasks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE))
		return;
	new_image(task, &image, BPF_NOEXIST);
	if (!(flags & HR_IMAGE_FORKED))
		__sync_fetch_and_add(&unmarked, 1);
}

/*
 * Adds tasks that move to the job's cgroups. The programs for fork and exec add those that start.
 */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(task_moves, struct cgroup *to, const char *path, struct task_struct *task)
{
	if (in_cgroup(task) && !bpf_task_storage_get(&tasks, task, NULL, 0))
		join(task, 0);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_forks, struct task_struct *parent, struct task_struct *child)
{
	struct hr_image image = {.flags = HR_IMAGE_FORKED};
	struct hr_probe_task *t = bpf_task_storage_get(&tasks, parent, NULL, 0), *of_child;
	const struct hr_image *of_parent;

	if (!t) {
		if (in_cgroup(child))
			join(child, child->tgid == parent->tgid ? 0 : HR_IMAGE_FORKED);
		return 0;
	}
	of_child = bpf_task_storage_get(&tasks, child, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	of_parent = image_of(parent);
	if (child->tgid == parent->tgid) {
		if (of_child)
			of_child->aio = starts_aio_thread(parent, of_parent, t);
		return 0;
	}
	if (of_parent) {
		image.parent = of_parent->id;
		image.flags |= of_parent->flags & (HR_IMAGE_QUIET | HR_IMAGE_SHIM);
		if (of_parent->covered)
			image.flags |= HR_IMAGE_SHIM;
		if (of_parent->covered && child->mm == parent->mm)
			image.flags |= HR_IMAGE_BORROWED;
	}
	new_image(child, &image, BPF_ANY);
	return 0;
}

static inline void send_exit(struct task_struct *task, const struct hr_image *image, bool exec)
{
	struct hr_probe_exit *r;

	if (!(image->flags & HR_IMAGE_ANNOUNCED))
		return;
	r = bpf_ringbuf_reserve(&buffer, sizeof(*r), 0);
	if (!r)
		return;
	r->kind = HR_PROBE_EXIT;
	r->tgid = task->tgid;
	r->image = image->id;
	r->now_ns = bpf_ktime_get_boot_ns();
	r->status = task->exit_code;
	r->exec = exec;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_execs, struct task_struct *task)
{
	struct hr_image next = {0};
	const struct hr_image *image;
	struct mm_struct *mm;

	if (!bpf_task_storage_get(&tasks, task, NULL, 0) &&
	    (!in_cgroup(task) ||
	     !bpf_task_storage_get(&tasks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE)))
		return 0;
	image = image_of(task);
	if (image) {
		next.parent = image->id;
		send_exit(task, image, true);
	}
	new_image(task, &next, BPF_ANY);
	image = image_of(task);
	mm = task->mm;
	if (image && mm && !(image->flags & HR_IMAGE_QUIET))
		note_inode(task, image->id, mm->exe_file);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exits, struct task_struct *task)
{
	uint32_t tgid = task->tgid;
	struct hr_probe_task *t = bpf_task_storage_get(&tasks, task, NULL, 0);
	struct hr_image *image;

	if (!t)
		return 0;
	settle_fault(task, t);
	if (task->signal->live.counter != 0)
		return 0;
	image = bpf_map_lookup_elem(&images, &tgid);
	if (!image)
		return 0;
	send_exit(task, image, false);
	bpf_map_delete_elem(&images, &tgid);
	return 0;
}

/*
 * Marks the threads of processes in `images`. Adds and marks their children, and processes in the
 * job's cgroups. headraced repeats this program until it marks no more tasks.
 */
SEC("iter/task")
int list_tasks(struct bpf_iter__task *it)
{
	struct task_struct *task = it->task;
	const struct hr_image none = {0};

	if (!task || bpf_task_storage_get(&tasks, task, NULL, 0))
		return 0;
	if (!image_of(task)) {
		if (!image_of(task->real_parent) && !in_cgroup(task))
			return 0;
		new_image(task, &none, BPF_NOEXIST);
	}
	if (bpf_task_storage_get(&tasks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE))
		__sync_fetch_and_add(&marked, 1);
	return 0;
}

struct image_text {
	struct hr_probe_image head;
	char text[2 * HR_PROBE_PATH + HR_PROBE_ENV];
};

MAP(image_texts, PERCPU_ARRAY, 1, uint32_t, struct image_text);

static inline uint32_t copy_user(char *to, uint64_t from, uint64_t end, uint32_t most)
{
	uint64_t n = end - from;

	if (from == 0 || end <= from)
		return 0;
	if (n > most - 1)
		n = most - 1;
	return bpf_probe_read_user(to, n, (void *)from) ? 0 : n;
}

static __attribute__((noinline)) int announce(struct task_struct *self, struct hr_image *image)
{
	uint32_t zero = 0, at, n;
	struct image_text *t = bpf_map_lookup_elem(&image_texts, &zero);
	struct mm_struct *mm;
	struct file *exe;

	if (!t || !image)
		return 0;
	mm = BPF_CORE_READ(self, mm);
	exe = BPF_CORE_READ(mm, exe_file);
	t->head.kind = HR_PROBE_IMAGE;
	t->head.tgid = BPF_CORE_READ(self, tgid);
	t->head.image = image->id;
	t->head.now_ns = bpf_ktime_get_boot_ns();
	t->head.start_ns = BPF_CORE_READ(self, group_leader, start_boottime);
	t->head.ppid = BPF_CORE_READ(self, real_parent, tgid);
	t->head.flags = image->flags;
	t->head.parent = image->parent;
	t->head.uid = BPF_CORE_READ(self, cred, uid.val);
	at = exe ? walk_text(walk(self, &exe->f_path), t->text) : 0;
	t->head.exe_bytes = at;
	n = copy_user(t->text + at, BPF_CORE_READ(mm, arg_start), BPF_CORE_READ(mm, arg_end),
		      HR_PROBE_ARGS);
	t->head.args_bytes = n;
	at = (at + n) & (2 * HR_PROBE_PATH - 1);
	n = copy_user(t->text + at, BPF_CORE_READ(mm, env_start), BPF_CORE_READ(mm, env_end),
		      HR_PROBE_ENV);
	t->head.env_bytes = n;
	n = (sizeof(t->head) + at + n) & (2 * HR_PROBE_ENV - 1);
	if (n > sizeof(*t))
		return 0;
	if (bpf_ringbuf_output(&buffer, t, n, BPF_RB_NO_WAKEUP) == 0)
		image->flags |= HR_IMAGE_ANNOUNCED;
	return 0;
}

#endif
