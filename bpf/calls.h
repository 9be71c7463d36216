/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* calls.h - system calls from entry to exit, and their records and sums. Part of probe.bpf.c. */
#ifndef HEADRACE_BPF_CALLS_H
#define HEADRACE_BPF_CALLS_H

static inline uint64_t word(const uint64_t *words, uint8_t place)
{
	return words[(place - 1) & 7];
}

/* Stores a file's name, and its position if the call has no offset. False: do not record it. */
static inline bool note_file(struct task_struct *self, struct hr_probe_task *t,
			     const struct hr_call *call, int32_t fd)
{
	struct file *file = file_at(self, fd);
	/* preadv2 and pwritev2 use the offset -1 for the file's position */
	bool at_position = !call->offset || t->offset == -1;

	if (!file || !is_file(file))
		return false;
	t->fd = fd;
	t->name = name_of(self, t->image, file);
	if (at_position)
		t->offset = HR_OFFSET_NONE;
	if (call->moves && at_position &&
	    !(call->moves == HR_MOVES_OUT && BPF_CORE_READ(file, f_flags) & O_APPEND))
		t->offset = BPF_CORE_READ(file, f_pos);
	return true;
}

static inline bool note_pair(struct task_struct *self, struct hr_probe_task *t,
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

/* Reads the arguments for a record of this call. Returns false if the call is not recorded. */
static inline bool read_args(struct task_struct *self, struct hr_probe_task *t,
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
		return note_file(self, t, call, words[0]);
	case HR_CALL_FD:
		return note_file(self, t, call, word(words, call->file));
	case HR_CALL_MAP:
		return !(words[3] & MAP_ANONYMOUS) && note_file(self, t, call, words[4]);
	case HR_CALL_COPY:
		return note_pair(self, t, words, false);
	case HR_CALL_SENDFILE:
		return note_pair(self, t, words, true);
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

static __always_inline bool begins(const char *text, const char *with, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (text[i] != with[i])
			return false;
	return true;
}

/* Sets HR_IMAGE_SHIM if the file is the shim, which ld.so maps when the program starts. */
static inline void detect_shim(struct hr_image *image, struct file *file)
{
	char name[16] = {0};

	if (!file || image->covered || image->flags & HR_IMAGE_SHIM)
		return;
	bpf_probe_read_kernel_str(name, sizeof(name),
				  BPF_CORE_READ(file, f_path.dentry, d_name.name));
	if (begins(name, HR_SHIM_NAME, sizeof(HR_SHIM_NAME)))
		image->flags |= HR_IMAGE_SHIM;
}

/*
 * Call it if the cell that covers the call has no file. Returns false if the descriptor is a pipe
 * or a socket, which the shim does not record. For a stdio buffer or an asynchronous request, the
 * daemon uses the kernel's name of the file to decide whether it is excluded.
 */
static __always_inline bool is_of_files(struct task_struct *self, struct hr_probe_task *t,
					const struct hr_call *call, struct pt_regs *regs)
{
	struct file *file;

	if (call->how != HR_CALL_VECTOR && (call->how != HR_CALL_FD || call->file != 1))
		return true;
	file = file_at(self, WORD1(regs));
	if (!file)
		return true;
	if (!is_file(file))
		return false;
	if (HR_COVER_NAMED(t->cell_op))
		t->name = name_of(self, t->image, file);
	return true;
}

#ifdef TS_COMPAT
/* Returns true for 32-bit calls. They have other numbers and arguments, and are not recorded. */
static inline bool is_compat(struct task_struct *self)
{
	struct hr_image *image;

	if (!(self->thread_info.status & TS_COMPAT))
		return false;
	image = image_of(self);
	if (image && !(image->flags & (HR_IMAGE_32BIT | HR_IMAGE_QUIET)) &&
	    !(__sync_fetch_and_or(&image->flags, HR_IMAGE_32BIT) & HR_IMAGE_32BIT))
		__sync_fetch_and_add(&compat, 1);
	return true;
}
#else
static inline bool is_compat(struct task_struct *self)
{
	return false;
}
#endif

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
	settle_fault(self, t);
	if (is_compat(self))
		return 0;
	call = bpf_map_lookup_elem(&calls, &key);
	if (!call || !call->op)
		return 0;
	image = image_of(self);
	if (!image || image->flags & HR_IMAGE_QUIET)
		return 0;
	t->image = image->id;
	t->moves = call->moves;
	find_cover(self, image, t);
	if (t->cell_op == HR_COVER_OWN)
		return 0;
	if (!t->cell_op && t->aio && call->how == HR_CALL_FD) {
		t->cell_op = HR_COVER_AIO;
		t->cell_file = 0;
	}
	if (t->cell_op && call->how != HR_CALL_MAP) {
		if (t->cell_file == 0 && !is_of_files(self, t, call, regs))
			return 0;
		t->how = call->how;
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
	if (call->how == HR_CALL_MAP && !(words[3] & MAP_ANONYMOUS)) {
		note_inode(self, t->image, file_at(self, words[4]));
		detect_shim(image, file_at(self, words[4]));
	}
	if (!t->cell_op) {
		if (!read_args(self, t, call, words))
			return 0;
		if (!(image->flags & HR_IMAGE_ANNOUNCED))
			announce(self, image);
	}
	t->how = call->how;
	t->start_ns = bpf_ktime_get_boot_ns();
	t->settled = is_settled(image, t->start_ns);
	t->op = call->op;
	return 0;
}

/* Returns true if the call refers to the dirfd itself (AT_EMPTY_PATH), as in libc's fstat. */
static inline bool is_empty(uint64_t path)
{
	char first = 1;

	return bpf_probe_read_user(&first, 1, (void *)path) == 0 && first == 0;
}

/* Returns true if the path is a link to an open file, or the folder of an unnamed file. */
static inline bool is_indirect(const struct hr_probe_task *t)
{
	char text[16] = {0};

	if (t->flags & O_TMPFILE)
		return true;
	bpf_probe_read_user_str(text, sizeof(text), (void *)t->path);
	return begins(text, "/proc/", 6) || begins(text, "/dev/fd", 7) ||
	       begins(text, "/dev/std", 8);
}

/* Sends the names of paths, which the kernel has read by now. False: do not record the call. */
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
	if (file && is_indirect(t))
		t->name = send_name(self, t->image, file, &file->f_path, 0);
	else
		t->name = name_of_path(self, t->image, t->fd, t->path, file);
	t->fd = -1;
	if (file) {
		t->fd = ret;
		if (is_named(t->name))
			keep_name(file, t->name);
		else
			t->name = name_of(self, t->image, file);
	}
	if (t->path2)
		t->name2 = name_of_path(self, t->image, t->fd2, t->path2, NULL);
	t->fd2 = -1;
	return true;
}

static __always_inline bool send_op(const struct hr_probe_task *t, uint32_t tid, uint64_t dur_ns,
				    int64_t ret, uint8_t kind)
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
	r->settled = t->settled;
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

/* Raises *to to `v`. If two CPUs do this at once, the result is one of both values. */
static inline void raise(uint64_t *to, uint64_t v)
{
	if (*to < v)
		*to = v;
}

static const struct hr_tally no_tally;

/* Adds an operation to its tally, which replaces a record. Returns false if there is no room. */
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
 * Records an operation that no cell covers: adds it to a tally, except in three cases. A record is
 * sent if the shim may have recorded the operation (the daemon then drops this record), if the
 * operation has two files, or if it copies between a file and something else. If there is no room
 * for either, `sums` counts the operation as lost.
 */
static __always_inline void record_op(const struct hr_probe_task *t, uint32_t tid, uint64_t dur_ns,
				      int64_t ret, uint8_t kind)
{
	struct hr_sum_key lost = {
	    .image = t->image, .file = t->name, .op = t->op, .kind = HR_SUM_LOST};

	if (!events && t->settled && !t->name2 && t->how != HR_CALL_COPY &&
	    t->how != HR_CALL_SENDFILE && t->name != HR_PROBE_NO_NAME &&
	    add_tally(t, dur_ns, ret, kind))
		return;
	if (t->name == HR_PROBE_NO_NAME || t->name2 == HR_PROBE_NO_NAME ||
	    !send_op(t, tid, dur_ns, ret, kind))
		add_sum(&lost, ret > 0 ? ret : 0, ret < 0, dur_ns);
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
		if (t->how == HR_CALL_OPEN && ret >= 0)
			forget_name(file_at(self, ret));
		key.image = t->image;
		key.file = covered_file(t);
		key.op = t->op;
		key.cell_op = t->cell_op;
		add_sum(&key, ret > 0 ? ret : 0, ret < 0, dur_ns);
	} else if (!t->path || name_paths(self, t, ret)) {
		record_op(t, self->pid, dur_ns, ret, HR_SUM_CALL);
	}
	t->op = 0;
	return 0;
}

#endif
