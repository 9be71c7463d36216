/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* uring.h - requests of io_uring, from submission to completion. Part of probe.bpf.c. */
#ifndef HEADRACE_BPF_URING_H
#define HEADRACE_BPF_URING_H

#define REQ_F_FIXED_FILE 1u
#define URING_CLOSE	 19u /* IORING_OP_CLOSE */

MAP(uring, ARRAY, HR_PROBE_URING, uint32_t, struct hr_call);

MAP(requests, HASH, HR_PROBE_REQUESTS, uint64_t, struct hr_probe_request);

/* Also accepts unmarked tasks, because the kernel thread of SQPOLL is never marked. */
static inline int submitted(struct io_kiocb *req)
{
	struct task_struct *self = bpf_get_current_task_btf();
	struct hr_image *image = image_of(self);
	/* The data of each opcode begins with the file of the request. */
	struct io_rw *rw = (void *)req;
	uint32_t opcode = BPF_CORE_READ(req, opcode);
	uint64_t key = (uint64_t)req;
	struct hr_sum_key lost = {0};
	struct hr_probe_request r = {0};
	const struct hr_call *call;
	struct file *file;

	if (!image || image->flags & HR_IMAGE_QUIET)
		return 0;
	/* The kernel reuses the memory, so an old entry is of a request whose end was missed. */
	bpf_map_delete_elem(&requests, &key);
	call = bpf_map_lookup_elem(&uring, &opcode);
	if (!call || !call->op)
		return 0;
	r.image = image->id;
	r.op = call->op;
	r.moves = call->moves;
	r.tid = self->pid;
	r.tgid = self->tgid;
	r.fd = -1;
	r.asked = HR_ASKED_NONE;
	r.offset = HR_OFFSET_NONE;
	if (call->moves) {
		r.offset = BPF_CORE_READ(rw, kiocb.ki_pos);
		if (call->asked)
			r.asked = BPF_CORE_READ(rw, len);
	}
	if (opcode == URING_CLOSE && BPF_CORE_READ((struct io_close *)req, file_slot))
		return 0;
	r.fixed = call->how == HR_CALL_FD && BPF_CORE_READ(req, flags) & REQ_F_FIXED_FILE;
	if (call->how == HR_CALL_FD && !r.fixed) {
		r.fd = BPF_CORE_READ(req, cqe.fd);
		file = file_at(self, r.fd);
		if (!file || !is_file(file))
			return 0;
		r.name = name_of(self, r.image, file);
		if (r.offset == -1)
			r.offset = BPF_CORE_READ(file, f_pos);
	}
	if (call->how == HR_CALL_OPEN) {
		struct io_open *open = (void *)req;

		r.opens = BPF_CORE_READ(open, file_slot) == 0;
		r.name = name_of_path(self, r.image, BPF_CORE_READ(open, dfd),
				      (uint64_t)BPF_CORE_READ(open, filename, uptr), NULL);
	}
	if (!(image->flags & HR_IMAGE_ANNOUNCED))
		announce(self, image);
	r.start_ns = bpf_ktime_get_boot_ns();
	r.settled = is_settled(image, r.start_ns);
	if (bpf_map_update_elem(&requests, &key, &r, BPF_ANY)) {
		lost.image = r.image;
		lost.file = r.name;
		lost.op = r.op;
		lost.kind = HR_SUM_LOST;
		add_sum(&lost, 0, false, 0);
	}
	return 0;
}

static inline int completed(struct io_kiocb *req, int32_t res)
{
	struct task_struct *self = bpf_get_current_task_btf();
	uint64_t key = (uint64_t)req;
	const struct hr_probe_request *r = bpf_map_lookup_elem(&requests, &key);
	struct hr_probe_task t = {0};
	struct file *file;
	uint64_t dur_ns;

	if (!r)
		return 0;
	dur_ns = bpf_ktime_get_boot_ns() - r->start_ns;
	t.start_ns = r->start_ns;
	t.image = r->image;
	t.name = r->name;
	t.asked = r->asked;
	t.offset = r->offset;
	t.offset2 = HR_OFFSET_NONE;
	t.fd = r->fd;
	t.fd2 = -1;
	t.op = r->op;
	t.moves = r->moves;
	t.settled = r->settled;
	if (r->opens && res >= 0 && (uint32_t)self->tgid == r->tgid) {
		t.fd = res;
		file = file_at(self, res);
		if (file && is_named(t.name))
			keep_name(file, t.name);
	} else if (!t.name) {
		file = BPF_CORE_READ(req, file);
		if (file && is_file(file)) {
			t.name = name_of(self, t.image, file);
		} else if (r->fixed) { /* the file is a pipe, a socket, or absent */
			bpf_map_delete_elem(&requests, &key);
			return 0;
		}
	}
	record_op(&t, r->tid, dur_ns, res, HR_SUM_URING);
	bpf_map_delete_elem(&requests, &key);
	return 0;
}

/* Linux 6.4 and later */
SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(uring_submits, struct io_kiocb *req)
{
	return submitted(req);
}

/* Linux 6.0 to 6.3 */
SEC("tp_btf/io_uring_submit_sqe")
int BPF_PROG(uring_submits_sqe, struct io_kiocb *req)
{
	return submitted(req);
}

/* The argument is an entry of the completion queue or, before Linux 6.15, its fields. */
SEC("tp_btf/io_uring_complete")
int BPF_PROG(uring_completes, void *ring, struct io_kiocb *req, struct io_uring_cqe *cqe)
{
	return completed(req, BPF_CORE_READ(cqe, res));
}

SEC("tp_btf/io_uring_complete")
int BPF_PROG(uring_completes_words, void *ring, struct io_kiocb *req, uint64_t user_data, int res)
{
	return completed(req, res);
}

#endif
