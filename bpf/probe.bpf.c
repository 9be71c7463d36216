/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* probe.bpf.c - the programs in the kernel: who belongs to the job, its system calls, io_uring, pages (docs/probes.md) */
#include "kernel.h"

#include "probe.h"
#include "proto/abi.h"

#define HR_OP_PAGES 506 /* page_cache_fill of kernel.def */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, HR_PROBE_BUFFER);
} buffer SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct hr_probe_task);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HR_PROBE_IMAGES);
	__type(key, uint32_t);
	__type(value, struct hr_image);
} images SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HR_PROBE_CALLS);
	__type(key, uint32_t);
	__type(value, struct hr_call);
} calls SEC(".maps");

struct sums_inner {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HR_PROBE_SUMS);
	__type(key, struct hr_sum_key);
	__type(value, struct hr_sum);
} sums_a SEC(".maps"), sums_b SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, uint32_t);
	__array(values, struct sums_inner);
} sums SEC(".maps") = {.values = {&sums_a, &sums_b}};

/*
 * Which of the two is added to. The daemon turns it, and reads the other one some milliseconds later: a program that has begun on that
 * side is over by then, since nothing interrupts one for long.
 */
uint32_t side;

struct tallies_inner {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HR_PROBE_TALLIES);
	__type(key, struct hr_tally_key);
	__type(value, struct hr_tally);
} tallies_a SEC(".maps"), tallies_b SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, uint32_t);
	__array(values, struct tallies_inner);
} tallies SEC(".maps") = {.values = {&tallies_a, &tallies_b}};

bool events;	    /* the daemon wants a record of each operation */
uint64_t filled[2]; /* entries of each side's maps, together */

uint64_t unsummed; /* calls that `sums` had no room for */
uint64_t unlisted; /* processes that `images` had no room for */
uint64_t last_image;
uint64_t marked; /* by the last pass of the iterator */

#include "names.h"

/* ---- sums ------------------------------------------------------------------------------------------- */

static inline void add_sum(const struct hr_sum_key *key, uint64_t bytes, bool failed,
			   uint64_t dur_ns)
{
	uint32_t which = *(volatile uint32_t *)&side;
	const struct hr_sum none = {0};
	void *inner = bpf_map_lookup_elem(&sums, &which);
	struct hr_sum *sum;

	if (!inner)
		return;
	sum = bpf_map_lookup_elem(inner, key);
	if (!sum) {
		bpf_map_update_elem(inner, key, &none, BPF_NOEXIST);
		__sync_fetch_and_add(&filled[which & 1], 1);
		sum = bpf_map_lookup_elem(inner, key);
	}
	if (!sum) {
		__sync_fetch_and_add(&unsummed, 1);
		return;
	}
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->bytes, bytes);
	__sync_fetch_and_add(&sum->dur_ns, dur_ns);
	if (failed)
		__sync_fetch_and_add(&sum->errors, 1);
}

/* ---- processes -------------------------------------------------------------------------------------- */

static inline struct hr_image *image_by_tgid(uint32_t tgid)
{
	return bpf_map_lookup_elem(&images, &tgid);
}

static inline struct hr_image *image_of(struct task_struct *task)
{
	return image_by_tgid(task->tgid);
}

static inline void new_image(struct task_struct *task, const struct hr_image *image)
{
	uint32_t tgid = task->tgid;
	struct hr_image value = *image;

	value.born_ns = bpf_ktime_get_boot_ns();
	value.id = __sync_fetch_and_add(&last_image, 1) + 1;
	if (bpf_map_update_elem(&images, &tgid, &value, BPF_ANY))
		__sync_fetch_and_add(&unlisted, 1);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_forks, struct task_struct *parent, struct task_struct *child)
{
	struct hr_image image = {.flags = HR_IMAGE_FORKED};
	const struct hr_image *of_parent;

	if (!bpf_task_storage_get(&tasks, parent, NULL, 0))
		return 0;
	bpf_task_storage_get(&tasks, child, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (child->tgid == parent->tgid)
		return 0;
	of_parent = image_of(parent);
	if (of_parent) {
		image.parent = of_parent->id;
		image.flags |= of_parent->flags & HR_IMAGE_QUIET;
		if (of_parent->covered && child->mm == parent->mm)
			image.flags |= HR_IMAGE_BORROWED;
	}
	new_image(child, &image);
	return 0;
}

static inline void say_exit(struct task_struct *task, const struct hr_image *image, bool exec)
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

	if (!bpf_task_storage_get(&tasks, task, NULL, 0))
		return 0;
	image = image_of(task);
	if (image) {
		next.parent = image->id;
		say_exit(task, image, true);
	}
	new_image(task, &next);
	image = image_of(task);
	mm = task->mm;
	if (image && mm && !(image->flags & HR_IMAGE_QUIET))
		know_inode(task, image->id, mm->exe_file);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exits, struct task_struct *task)
{
	uint32_t tgid = task->tgid;
	struct hr_image *image;

	if (!bpf_task_storage_get(&tasks, task, NULL, 0) || task->signal->live.counter != 0)
		return 0;
	image = bpf_map_lookup_elem(&images, &tgid);
	if (!image)
		return 0;
	say_exit(task, image, false);
	bpf_map_delete_elem(&images, &tgid);
	return 0;
}

/* Marks the threads of listed processes, and their children, which it lists. Run again until nothing is marked. */
SEC("iter/task")
int list_tasks(struct bpf_iter__task *it)
{
	struct task_struct *task = it->task;
	const struct hr_image none = {0};

	if (!task || bpf_task_storage_get(&tasks, task, NULL, 0))
		return 0;
	if (!image_of(task)) {
		if (!image_of(task->real_parent))
			return 0;
		new_image(task, &none);
	}
	if (bpf_task_storage_get(&tasks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE))
		__sync_fetch_and_add(&marked, 1);
	return 0;
}

struct image_text {
	struct hr_probe_image head;
	char text[2 * HR_PROBE_PATH + HR_PROBE_ENV];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct image_text);
} image_texts SEC(".maps");

/* A part of the process's memory; 0 where it cannot be read. */
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

/* ---- system calls ----------------------------------------------------------------------------------- */

/* Which call of the shim surrounds this one: memory of the process, which may say anything. */
static inline void find_cover(struct task_struct *self, const struct hr_image *image,
			      struct hr_probe_task *t)
{
	struct hr_inflight cell;
	struct hr_cover head;

	t->cell_op = 0;
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

static inline uint64_t word(const uint64_t *words, uint8_t place)
{
	return words[(place - 1) & 7];
}

/* The file of a descriptor, and its position where the call names none. False: of no interest. */
static inline bool know_file(struct task_struct *self, struct hr_probe_task *t,
			     const struct hr_call *call, int32_t fd)
{
	struct file *file = file_at(self, fd);

	if (!file || !is_file(file))
		return false;
	t->fd = fd;
	t->name = name_of(self, t->image, file);
	if (call->moves && !call->offset &&
	    !(call->moves == HR_MOVES_OUT && BPF_CORE_READ(file, f_flags) & O_APPEND))
		t->offset = BPF_CORE_READ(file, f_pos);
	return true;
}

static inline bool know_pair(struct task_struct *self, struct hr_probe_task *t,
			     const uint64_t *words, bool sendfile)
{
	int32_t in = sendfile ? words[1] : words[0], out = sendfile ? words[0] : words[2];
	uint64_t in_at = sendfile ? words[2] : words[1], out_at = sendfile ? 0 : words[3];
	struct file *from = file_at(self, in), *to = file_at(self, out);
	bool any = false;

	if (from && is_file(from)) {
		t->fd = in;
		t->name = name_of(self, t->image, from);
		t->offset = BPF_CORE_READ(from, f_pos);
		if (in_at)
			bpf_probe_read_user(&t->offset, 8, (void *)in_at);
		any = true;
	}
	if (to && is_file(to)) {
		t->fd2 = out;
		t->name2 = name_of(self, t->image, to);
		t->offset2 = BPF_CORE_READ(to, f_pos);
		if (out_at)
			bpf_probe_read_user(&t->offset2, 8, (void *)out_at);
		any = true;
	}
	return any;
}

/* Bytes that an iovec asks for. */
static inline uint64_t vector_bytes(uint64_t vector, uint32_t n)
{
	struct {
		uint64_t base, bytes;
	} iov[8];
	uint64_t sum = 0;

	if (n > 8)
		return HR_ASKED_NONE;
	if (bpf_probe_read_user(iov, (n & 15) * sizeof(iov[0]), (void *)vector))
		return HR_ASKED_NONE;
	for (uint32_t i = 0; i < 8; i++)
		if (i < n)
			sum += iov[i].bytes;
	return sum;
}

/* What an operation of its own needs to be told of. False: of no interest. */
static inline bool remember(struct task_struct *self, struct hr_probe_task *t,
			    const struct hr_call *call, const uint64_t *words)
{
	t->name = t->name2 = t->path = t->path2 = 0;
	t->fd = t->fd2 = -1;
	t->offset = call->offset ? (int64_t)word(words, call->offset) : HR_OFFSET_NONE;
	t->offset2 = HR_OFFSET_NONE;
	t->asked = call->asked ? word(words, call->asked) : HR_ASKED_NONE;
	t->flags = call->flags ? word(words, call->flags) : 0;
	t->at = call->at;
	switch (call->how) {
	case HR_CALL_VECTOR:
		t->asked = vector_bytes(words[1], words[2]);
		return know_file(self, t, call, words[0]);
	case HR_CALL_FD:
		return know_file(self, t, call, word(words, call->file));
	case HR_CALL_MAP:
		return !(words[3] & MAP_ANONYMOUS) && know_file(self, t, call, words[4]);
	case HR_CALL_COPY:
		return know_pair(self, t, words, false);
	case HR_CALL_SENDFILE:
		return know_pair(self, t, words, true);
	case HR_CALL_TWO:
		t->path2 = word(words, call->file + (call->at ? 2 : 1));
		t->fd2 = call->at ? (int32_t)word(words, call->file + 1) : AT_FDCWD;
		/* fall through */
	default:
		t->path = word(words, call->file);
		t->fd = call->at ? (int32_t)word(words, call->file - 1) : AT_FDCWD;
		return true;
	}
}

SEC("tp_btf/sys_enter")
int BPF_PROG(call_begins, struct pt_regs *regs, long number)
{
	struct task_struct *self = bpf_get_current_task_btf();
	struct hr_probe_task *t = bpf_task_storage_get(&tasks, self, NULL, 0);
	uint32_t key = number;
	const struct hr_call *call;
	struct hr_image *image;
	uint64_t words[8];

	if (!t)
		return 0;
	t->op = 0;
	call = bpf_map_lookup_elem(&calls, &key);
	if (!call || !call->op)
		return 0;
#ifdef TS_COMPAT
	if (self->thread_info.status & TS_COMPAT)
		return 0;
#endif
	image = image_of(self);
	if (!image || image->flags & HR_IMAGE_QUIET)
		return 0;
	t->image = image->id;
	t->moves = call->moves;
	find_cover(self, image, t);
	if (t->cell_op == HR_COVER_OWN)
		return 0;
	if (t->cell_op && call->how != HR_CALL_MAP) {
		t->start_ns = bpf_ktime_get_boot_ns();
		t->op = call->op;
		return 0;
	}
	if (image->flags & HR_IMAGE_BORROWED)
		return 0;
	words[0] = WORD1(regs);
	words[1] = WORD2(regs);
	words[2] = WORD3(regs);
	words[3] = WORD4(regs);
	words[4] = WORD5(regs);
	words[5] = WORD6(regs);
	words[6] = words[7] = 0;
	if (call->how == HR_CALL_MAP && !(words[3] & MAP_ANONYMOUS))
		know_inode(self, t->image, file_at(self, words[4]));
	if (!t->cell_op) {
		if (!remember(self, t, call, words))
			return 0;
		if (!(image->flags & HR_IMAGE_ANNOUNCED))
			announce(self, image);
	}
	t->how = call->how;
	t->start_ns = bpf_ktime_get_boot_ns();
	t->op = call->op;
	return 0;
}

/* A dirfd alone is meant (AT_EMPTY_PATH), as libc's fstat does it. */
static inline bool is_empty(uint64_t path)
{
	char first = 1;

	return bpf_probe_read_user(&first, 1, (void *)path) == 0 && first == 0;
}

/* Names of paths, which the kernel has read by now. False: of no interest. */
static inline bool name_paths(struct task_struct *self, struct hr_probe_task *t, long ret)
{
	struct file *file = NULL;

	if (t->how == HR_CALL_OPEN && ret >= 0) {
		file = file_at(self, ret);
		if (!file || !is_file(file))
			return false;
	}
	if (t->at && t->how == HR_CALL_PATH && is_empty(t->path)) {
		file = file_at(self, t->fd);
		if (!file || !is_file(file))
			return false;
		t->name = name_of(self, t->image, file);
		return true;
	}
	t->name = name_of_path(self, t->image, t->fd, t->path, file);
	t->fd = -1;
	if (file) {
		t->fd = ret;
		if (t->name)
			keep_name(file, t->name);
		else
			t->name = name_of(self, t->image, file);
	}
	if (t->path2)
		t->name2 = name_of_path(self, t->image, t->fd2, t->path2, NULL);
	t->fd2 = -1;
	return true;
}

/* A record for the buffer. False: it is full. */
static __always_inline bool say_op(const struct hr_probe_task *t, uint32_t tid, uint64_t dur_ns,
				   int64_t ret, uint16_t kind)
{
	struct hr_probe_op *r = bpf_ringbuf_reserve(&buffer, sizeof(*r), 0);

	if (!r)
		return false;
	r->kind = HR_PROBE_OP;
	r->tid = tid;
	r->image = t->image;
	r->name = t->name;
	r->name2 = t->name2;
	r->start_ns = t->start_ns;
	r->dur_ns = dur_ns;
	r->ret = ret;
	r->asked = t->asked;
	r->offset = t->offset;
	r->offset2 = t->offset2;
	r->fd = t->fd;
	r->fd2 = t->fd2;
	r->flags = t->flags;
	r->op = t->op;
	r->sum = kind;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return true;
}

static inline uint8_t log2_bin(uint64_t v)
{
	uint8_t bin = 0;

	for (uint32_t shift = 32; shift > 0; shift /= 2) {
		if (v >> shift) {
			v >>= shift;
			bin += shift;
		}
	}
	return bin;
}

/* Two at once: the later store stays, and both are among the greatest. */
static inline void raise(uint64_t *to, uint64_t v)
{
	if (*to < v)
		*to = v;
}

static const struct hr_tally no_tally;

/* Adds up an operation in place of a record. False: there is no room. */
static __always_inline bool add_tally(const struct hr_probe_task *t, uint64_t dur_ns, int64_t ret,
				      uint8_t kind)
{
	uint32_t which = *(volatile uint32_t *)&side, bin = log2_bin(dur_ns);
	void *inner = bpf_map_lookup_elem(&tallies, &which);
	uint64_t bytes = t->moves && ret > 0 ? ret : 0;
	struct hr_tally_key key = {.image = t->image,
				   .name = t->name,
				   .op = t->op,
				   .kind = kind,
				   .bin = log2_bin(bytes),
				   .failed = ret < 0};
	struct hr_tally *tally;

	if (!inner)
		return false;
	tally = bpf_map_lookup_elem(inner, &key);
	if (!tally) {
		bpf_map_update_elem(inner, &key, &no_tally, BPF_NOEXIST);
		__sync_fetch_and_add(&filled[which & 1], 1);
		tally = bpf_map_lookup_elem(inner, &key);
	}
	if (!tally)
		return false;
	__sync_fetch_and_add(&tally->sum.count, 1);
	__sync_fetch_and_add(&tally->sum.bytes, bytes);
	__sync_fetch_and_add(&tally->sum.dur_ns, dur_ns);
	if (ret < 0)
		__sync_fetch_and_add(&tally->sum.errors, 1);
	raise(&tally->max_dur_ns, dur_ns);
	raise(&tally->last_ns, t->start_ns + dur_ns);
	if (tally->first_ns == 0 || t->start_ns < tally->first_ns)
		tally->first_ns = t->start_ns;
	if (bin < HR_PROBE_BINS)
		__sync_fetch_and_add(&tally->dur_hist[bin], 1);
	return true;
}

/*
 * An operation of its own. What may turn out to be the shim's is always a record, which can still be dropped; so is one of two files.
 */
static __always_inline void tell(const struct hr_probe_task *t, const struct hr_image *image,
				 uint32_t tid, uint64_t dur_ns, int64_t ret, uint8_t kind)
{
	struct hr_sum_key key = {.image = t->image, .file = t->name, .op = t->op, .kind = kind};
	bool settled =
	    image && (image->covered || t->start_ns - image->born_ns > HR_PROBE_YOUNG_NS);

	if (!events && settled && !t->name2 && add_tally(t, dur_ns, ret, kind))
		return;
	if (!say_op(t, tid, dur_ns, ret, kind))
		key.kind = HR_SUM_LOST;
	add_sum(&key, ret > 0 ? ret : 0, ret < 0, dur_ns);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(call_ends, struct pt_regs *regs, long ret)
{
	struct task_struct *self = bpf_get_current_task_btf();
	struct hr_probe_task *t = bpf_task_storage_get(&tasks, self, NULL, 0);
	struct hr_sum_key key = {0};
	uint64_t dur_ns;

	if (!t || !t->op)
		return 0;
	dur_ns = bpf_ktime_get_boot_ns() - t->start_ns;
	if (t->cell_op) {
		key.image = t->image;
		key.file = t->cell_file;
		key.op = t->op;
		key.cell_op = t->cell_op;
		add_sum(&key, ret > 0 ? ret : 0, ret < 0, dur_ns);
	} else if (!t->path || name_paths(self, t, ret)) {
		tell(t, image_of(self), self->pid, dur_ns, ret, HR_SUM_CALL);
	}
	t->op = 0;
	return 0;
}

#include "pages.h"
#include "uring.h"
