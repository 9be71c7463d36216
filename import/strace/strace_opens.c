/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that open, copy or close descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/strace/strace_state.h"

int hr__strace_open_call(struct strace *p, struct strace_step *k)
{
	struct strace_open *open = NULL;
	int64_t fd = k->c.returned ? k->c.ret : -1;
	uint32_t named;

	p->path[0] = '\0';
	named = k->shape->how == STRACE_OPEN ? hr__strace_path_at(p, k, k->shape->file) : 0;
	if (k->shape->op == HR_OP_creat)
		k->e.flags = O_CREAT | O_WRONLY | O_TRUNC;
	else if (arg_at(k, 3).n && *arg_at(k, 3).p == '{') /* openat2 */
		k->e.flags = hr__strace_flags(hr__strace_member(arg_at(k, 3), "flags"));
	k->e.file = k->c.ret_path.n ? hr__strace_shown_file(p, k->c.ret_path) : named;
	if (fd >= 0 && fd <= INT32_MAX) {
		k->e.fd = (int32_t)fd;
		/* A descriptor of an unknown file is unknown, too. */
		if (k->e.file || k->shape->op == HR_OP_memfd_create)
			open = hr__strace_open_new(p, k->of->fds, k->e.fd);
		else
			hr__strace_open_close(p, k->of->fds, k->e.fd);
	}
	if (open) {
		hr__strace_cloexec_set(p, k->of->fds, k->e.fd, k->e.flags & O_CLOEXEC);
		if (!k->c.ret_path.n && *p->path) /* that of the file that was found last */
			open->path = strdup(p->path);
		open->append = k->e.flags & O_APPEND;
		open->position = open->append ? -1 : 0;
		open->file = k->e.file;
		open->since_ns = k->e.start_ns + k->e.dur_ns;
	}
	return k->e.file ? hr__strace_send(p, k) : 0;
}

/* Another thread may open the number again before the trace has the result of its close. */
int hr__strace_close_call(struct strace *p, struct strace_step *k)
{
	const struct strace_open *open;
	struct hr_strace_fd fd;
	int r;

	if (!fd_at(k, k->shape->file, &fd))
		return -EBADMSG;
	open = hr__strace_open_get(p, k->of->fds, fd.fd);
	if (open && open->since_ns > k->e.start_ns) {
		k->e.fd = fd.fd;
		k->e.file = fd.path.n ? hr__strace_shown_file(p, fd.path) : 0;
		p->n_unknown_fds += !fd.shown;
		return k->e.file ? hr__strace_send(p, k) : 0;
	}
	r = hr__strace_fd_call(p, k);
	if (k->e.fd >= 0)
		hr__strace_open_close(p, k->of->fds, k->e.fd);
	return r;
}

int hr__strace_close_range_call(struct strace *p, struct strace_step *k)
{
	uint64_t first = (uint64_t)number_at(k, 1, 0), last = (uint64_t)number_at(k, 2, -1);
	uint32_t flags = hr__strace_flags(arg_at(k, 3));

	if (!k->c.returned || k->c.ret != 0)
		return 0;
	if (flags & CLOSE_RANGE_UNSHARE && hr__strace_fds_unshare(p, &k->of->fds))
		return -ENOMEM;
	if (flags & CLOSE_RANGE_CLOEXEC)
		hr__strace_fds_cloexec(p, k->of->fds, first, last);
	else
		hr__strace_fds_close(p, k->of->fds, first, last, false);
	return 0;
}

/* The result is another descriptor of the same description. */
static int fd_dup(struct strace *p, struct strace_step *k, bool cloexec)
{
	int32_t to = (int32_t)k->c.ret;
	int r;

	if (k->c.ret > INT32_MAX || to == k->e.fd)
		return 0;
	r = hr__strace_open_dup(p, k->of->fds, k->e.fd, to);
	if (!r)
		hr__strace_cloexec_set(p, k->of->fds, to, cloexec);
	return r;
}

int hr__strace_dup_call(struct strace *p, struct strace_step *k)
{
	int r = hr__strace_fd_call(p, k);

	if (r || !k->c.returned || k->c.ret < 0)
		return r;
	return fd_dup(p, k, k->e.flags & O_CLOEXEC);
}

int hr__strace_fcntl_call(struct strace *p, struct strace_step *k)
{
	int r = hr__strace_fd_call(p, k);
	struct strace_open *open = hr__strace_open_get(p, k->of->fds, k->e.fd);
	uint32_t cmd;

	if (r || !k->c.returned || k->c.ret < 0 || !hr__strace_constant(arg_at(k, 2), &cmd))
		return r;
	switch (cmd) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return fd_dup(p, k, cmd == F_DUPFD_CLOEXEC);
	case F_SETFD:
		hr__strace_cloexec_set(p, k->of->fds, k->e.fd,
				       hr__strace_flags(arg_at(k, 3)) & FD_CLOEXEC);
		return 0;
	case F_SETFL:
		if (open)
			open->append = hr__strace_flags(arg_at(k, 3)) & O_APPEND;
		return 0;
	default:
		return 0;
	}
}

/* A new descriptor, of something that is no file. */
static void no_file_set(struct strace *p, struct strace_step *k, int64_t fd)
{
	if (fd >= 0 && fd <= INT32_MAX)
		(void)hr__strace_open_new(p, k->of->fds, (int32_t)fd);
}

int hr__strace_no_file_call(struct strace *p, struct strace_step *k)
{
	if (k->c.returned)
		no_file_set(p, k, k->c.ret);
	return 0;
}

/* pipe and socketpair store two descriptors: "[3, 4]". */
int hr__strace_pair_call(struct strace *p, struct strace_step *k)
{
	struct hr_strace_text t = {0}, rest;
	const char *second;
	int64_t fd;

	if (!k->c.returned || k->c.ret != 0)
		return 0;
	for (unsigned i = 1; i <= k->c.n_args && !(t.n && *t.p == '['); i++)
		t = arg_at(k, i);
	second = t.n ? memmem(t.p, t.n, ", ", 2) : NULL;
	if (!second || *t.p != '[')
		return 0;
	if (hr__strace_number((struct hr_strace_text){t.p + 1, t.n - 1}, &fd, &rest))
		no_file_set(p, k, fd);
	rest = (struct hr_strace_text){second + 2, (size_t)(t.p + t.n - second) - 2};
	if (hr__strace_number(rest, &fd, &rest))
		no_file_set(p, k, fd);
	return 0;
}
