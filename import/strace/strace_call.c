/* SPDX-License-Identifier: Apache-2.0 */
/* Finished calls: what they change, and their operations. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/pathid.h"
#include "import/strace/strace_state.h"

/* A trace of another machine may have these, too. */
#ifndef SYS_open
#define SYS_open (-1)
#endif
#ifndef SYS_renameat
#define SYS_renameat (-1)
#endif

static const struct strace_shape shapes[] = {
#define ROW(number, name, how, ...) {#number, HR_OP_##name, STRACE_##how, __VA_ARGS__},
#include "proto/syscalls.def"
#undef ROW
#define HOOK(number, how) {#number, HR_OP_NONE, STRACE_##how, 0, 0, 0, 0, 0},
#include "import/strace/strace_calls.def"
#include "proto/syscalls.def"
#undef HOOK
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

const struct strace_shape *hr__strace_shape(struct strace *p, struct hr_strace_text name)
{
	uint32_t i;

	for (uint32_t k = p->shape_of.used; k < SHAPES; k++)
		if (hr_map64_set(&p->shape_of, hr_path_id(shapes[k].name, strlen(shapes[k].name)),
				 k))
			return NULL;
	i = hr_map64_get(&p->shape_of, hr_path_id(name.p, name.n));
	return i == HR_MAP64_NONE || shapes[i].how == STRACE_NONE ? NULL : &shapes[i];
}

/* A finished call while it is converted. */
struct strace_step {
	const struct strace_shape *shape;
	struct hr_strace_call c;
	struct strace_task *task;
	struct strace_process *of;
	struct hr_event e;
};

/* The argument at a position of the table. strace shows an offset in two halves as one. */
static struct hr_strace_text arg_at(const struct strace_step *k, unsigned position)
{
	if (position > k->c.n_args)
		position = k->c.n_args;
	return position ? k->c.arg[position - 1] : (struct hr_strace_text){0};
}

static int64_t number_at(const struct strace_step *k, unsigned position, int64_t otherwise)
{
	struct hr_strace_text rest;
	int64_t v;

	return position && hr__strace_number(arg_at(k, position), &v, &rest) ? v : otherwise;
}

static bool fd_at(const struct strace_step *k, unsigned position, struct hr_strace_fd *ret)
{
	return hr__strace_fd(arg_at(k, position), ret);
}

/* Converts a call, and adds its operation. 0; -EBADMSG; other errors are fatal. */
typedef int converter(struct strace *p, struct strace_step *k);

/* ---- arguments ------------------------------------------------------------------------------- */

/* The number that a pointer refers to: "[4096]", "[0] => [100]"; NULL: `otherwise`. */
static int64_t pointed_at(const struct strace_step *k, unsigned position, int64_t otherwise)
{
	struct hr_strace_text t = arg_at(k, position), rest;
	int64_t v;

	if (t.n < 2 || *t.p != '[')
		return otherwise;
	return hr__strace_number((struct hr_strace_text){t.p + 1, t.n - 1}, &v, &rest) ? v
										       : otherwise;
}

/* Sum of the lengths in an array of struct iovec. HR_ASKED_NONE: strace shows only a part. */
static uint64_t vector_bytes(struct hr_strace_text t)
{
	uint64_t sum = 0;

	if (t.n < 5 || *t.p != '[' || memcmp(t.p + t.n - 4, "...]", 4) == 0)
		return HR_ASKED_NONE;
	for (;;) {
		struct hr_strace_text len = hr__strace_member(t, "iov_len"), rest;
		int64_t v;

		if (!len.n)
			return sum;
		if (!hr__strace_number(len, &v, &rest) || v < 0)
			return HR_ASKED_NONE;
		sum += (uint64_t)v;
		t.n -= (size_t)(len.p + len.n - t.p);
		t.p = len.p + len.n;
	}
}

/* Sets the current folder, which strace shows. */
static void cwd_set(struct strace *p, struct strace_process *of, struct hr_strace_text shown)
{
	long n = hr__strace_unescape(shown, p->text, sizeof(p->text) - 1);

	if (n <= 0)
		return;
	p->text[n] = '\0';
	if (of->cwd && strcmp(of->cwd, p->text) == 0)
		return;
	free(of->cwd);
	of->cwd = strdup(p->text);
}

/* The file of a path that is relative to a descriptor. */
static uint32_t path_below(struct strace *p, struct strace_step *k, const struct hr_strace_fd *dir,
			   struct hr_strace_text path)
{
	const struct strace_open *open = hr__strace_open_get(p, k->of->fds, dir->fd);
	const char *folder = open ? open->path : NULL;
	long n;

	if (path.n >= 2 && path.p[0] == '"' && path.p[1] == '"') { /* AT_EMPTY_PATH */
		k->e.fd = dir->fd;
		return hr__strace_fd_file(p, k->of, dir);
	}
	if (dir->path.n) {
		n = hr__strace_unescape(dir->path, p->text, sizeof(p->text) - 1);
		p->text[n > 0 ? n : 0] = '\0';
		folder = n > 0 ? p->text : NULL;
	}
	if (folder || hr__strace_absolute(path))
		return hr__strace_path_file(p, folder, path);
	p->n_unknown_fds += !open && dir->fd >= 0;
	return 0;
}

/* The file of the path at `position`, whose folder is before it if the table has `at`. */
static uint32_t path_at(struct strace *p, struct strace_step *k, unsigned position)
{
	struct hr_strace_text path = arg_at(k, position);
	struct hr_strace_fd dir = {.fd = AT_FDCWD};

	if (k->shape->at && position > 1 && fd_at(k, position - 1, &dir) && dir.fd != AT_FDCWD)
		return path_below(p, k, &dir, path);
	if (dir.path.n)
		cwd_set(p, k->of, dir.path);
	return hr__strace_path_file(p, k->of->cwd, path);
}

/* ---- operations ------------------------------------------------------------------------------ */

static int operation_send(struct strace *p, struct strace_step *k)
{
	uint32_t thread = hr_import_thread(p->s, k->of->proc, (uint32_t)k->task->tid);

	k->of->described = true;
	k->e.ret = k->c.returned ? k->e.ret : HR_RET_NONE;
	return hr_import_operation(p->s, thread, &k->e);
}

/* Sets the offset of a read or write without one, and moves the position. */
static void position_use(struct strace *p, struct strace_step *k)
{
	uint8_t class = hr_op_info(k->shape->op)->class;
	struct strace_open *open = hr__strace_open_get(p, k->of->fds, k->e.fd);

	bool own = k->e.offset != HR_OFFSET_NONE; /* the call has an offset */

	if (class == HR_CLASS_WRITE && ((open && open->append) || (k->shape->op == HR_OP_pwritev2 &&
								   k->e.flags & RWF_APPEND))) {
		k->e.offset = HR_OFFSET_NONE; /* at the end of the file, even with an offset */
		if (open && !own)
			open->position = -1;
		return;
	}
	if (!open || own || (class != HR_CLASS_READ && class != HR_CLASS_WRITE) ||
	    open->position < 0)
		return;
	k->e.offset = open->position;
	if (!k->c.returned ||
	    __builtin_add_overflow(open->position, k->c.ret > 0 ? k->c.ret : 0, &open->position))
		open->position = -1;
}

static void seek_set(struct strace *p, struct strace_step *k)
{
	struct strace_open *open = hr__strace_open_get(p, k->of->fds, k->e.fd);

	if (!open && k->c.ret >= 0)
		open = hr__strace_open_new(p, k->of->fds, k->e.fd);
	if (!open)
		return;
	open->position = k->c.returned && k->c.ret >= 0 ? k->c.ret : -1;
	if (!open->file)
		open->file = k->e.file;
}

static int fd_call(struct strace *p, struct strace_step *k)
{
	struct hr_strace_fd fd;

	if (!fd_at(k, k->shape->file, &fd))
		return -EBADMSG;
	k->e.fd = fd.fd;
	k->e.file = hr__strace_fd_file(p, k->of, &fd);
	if (k->shape->op == HR_OP_ioctl && k->c.returned && k->c.ret == 0 &&
	    (k->e.flags == FIOCLEX || k->e.flags == FIONCLEX))
		hr__strace_cloexec_set(p, k->of->fds, fd.fd, k->e.flags == FIOCLEX);
	if (!k->e.file)
		return 0;
	if (k->shape->how == STRACE_VECTOR) {
		k->e.asked = vector_bytes(arg_at(k, 2));
		if (k->e.offset == -1)
			k->e.offset = HR_OFFSET_NONE;
	}
	position_use(p, k);
	if (k->shape->op == HR_OP_lseek)
		seek_set(p, k);
	return operation_send(p, k);
}

static int path_call(struct strace *p, struct strace_step *k)
{
	k->e.file = path_at(p, k, k->shape->file);
	if (k->shape->how == STRACE_TWO) {
		k->e.file2 = path_at(p, k, k->shape->file + (k->shape->at ? 2 : 1));
		p->n_renames += k->c.returned && k->c.ret == 0;
	}
	return k->e.file ? operation_send(p, k) : 0;
}

static void copy_advance(struct strace *p, struct strace_step *k, int32_t fd)
{
	struct strace_open *open = hr__strace_open_get(p, k->of->fds, fd);

	if (open && open->position >= 0 && k->c.ret > 0 &&
	    __builtin_add_overflow(open->position, k->c.ret, &open->position))
		open->position = -1;
}

static int copy_call(struct strace *p, struct strace_step *k)
{
	bool sends = k->shape->how == STRACE_SENDFILE;
	struct hr_strace_fd in, out;
	struct strace_open *open;

	if (!fd_at(k, sends ? 2 : 1, &in) || !fd_at(k, sends ? 1 : 3, &out))
		return -EBADMSG;
	k->e.fd = in.fd;
	k->e.file = hr__strace_fd_file(p, k->of, &in);
	k->e.file2 = hr__strace_fd_file(p, k->of, &out);
	k->e.offset = pointed_at(k, sends ? 3 : 2, HR_OFFSET_NONE);
	if (k->e.offset == HR_OFFSET_NONE) {
		open = hr__strace_open_get(p, k->of->fds, in.fd);
		if (open && open->position >= 0)
			k->e.offset = open->position;
		copy_advance(p, k, in.fd);
	}
	if (sends || pointed_at(k, 4, HR_OFFSET_NONE) == HR_OFFSET_NONE)
		copy_advance(p, k, out.fd);
	return k->e.file || k->e.file2 ? operation_send(p, k) : 0;
}

static int chdir_call(struct strace *p, struct strace_step *k)
{
	const struct strace_open *open;
	const char *cwd = p->path; /* the path of the file that is found last */
	int r;

	p->path[0] = '\0';
	r = k->shape->how == STRACE_CHDIR ? path_call(p, k) : fd_call(p, k);
	if (r || !k->c.returned || k->c.ret != 0)
		return r;
	open = hr__strace_open_get(p, k->of->fds, k->e.fd);
	if (!*cwd && open && open->path)
		cwd = open->path;
	free(k->of->cwd);
	k->of->cwd = k->e.file && *cwd == '/' ? strdup(cwd) : NULL;
	if (k->of->cwd)
		k->of->cwd[hr_path_resolve(k->of->cwd, strlen(k->of->cwd))] = '\0';
	return 0;
}

static int mmap_call(struct strace *p, struct strace_step *k)
{
	uint64_t start = (uint64_t)k->c.ret, bytes = (uint64_t)number_at(k, 2, 0);
	bool works = k->c.returned && k->c.ret >= 0;
	struct hr_strace_fd fd;
	int r;

	if (works)
		hr__strace_map_remove(k->of, start, bytes);
	if (!fd_at(k, 5, &fd) || fd.fd < 0)
		return 0;
	k->e.fd = fd.fd;
	k->e.file = hr__strace_fd_file(p, k->of, &fd);
	if (!k->e.file)
		return 0;
	k->e.asked = bytes;
	k->e.offset = number_at(k, 6, HR_OFFSET_NONE);
	k->e.flags = hr__strace_flags(arg_at(k, 3)) | hr__strace_flags(arg_at(k, 4)) << 4;
	k->e.ret = works ? 0 : k->c.ret;
	r = works ? hr__strace_map_add(k->of, start, bytes, k->e.file) : 0;
	return r ? r : operation_send(p, k);
}

static int map_call(struct strace *p, struct strace_step *k)
{
	uint64_t start = (uint64_t)number_at(k, 1, 0), bytes = (uint64_t)number_at(k, 2, 0);
	bool works = k->c.returned && k->c.ret >= 0;
	int r = 0;

	k->e.file = hr__strace_map_file(k->of, start);
	k->e.asked = bytes;
	if (k->shape->how == STRACE_MUNMAP && works)
		hr__strace_map_remove(k->of, start, bytes);
	if (k->shape->how == STRACE_MREMAP) {
		uint64_t more = (uint64_t)number_at(k, 3, 0);

		k->e.asked = more;
		k->e.ret = works ? 0 : k->c.ret;
		if (works) {
			hr__strace_map_remove(k->of, start, bytes);
			if (k->e.file)
				r = hr__strace_map_add(k->of, (uint64_t)k->c.ret, more, k->e.file);
		}
	}
	return r || !k->e.file ? r : operation_send(p, k);
}

/* ---- calls that open, copy or close descriptors ---------------------------------------------- */

static int open_call(struct strace *p, struct strace_step *k)
{
	struct strace_open *open = NULL;
	int64_t fd = k->c.returned ? k->c.ret : -1;
	uint32_t named;

	p->path[0] = '\0';
	named = k->shape->how == STRACE_OPEN ? path_at(p, k, k->shape->file) : 0;
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
	return k->e.file ? operation_send(p, k) : 0;
}

/* Another thread may open the number again before the trace has the result of its close. */
static int close_call(struct strace *p, struct strace_step *k)
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
		return k->e.file ? operation_send(p, k) : 0;
	}
	r = fd_call(p, k);
	if (k->e.fd >= 0)
		hr__strace_open_close(p, k->of->fds, k->e.fd);
	return r;
}

static int close_range_call(struct strace *p, struct strace_step *k)
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

static int dup_call(struct strace *p, struct strace_step *k)
{
	int r = fd_call(p, k);

	if (r || !k->c.returned || k->c.ret < 0)
		return r;
	return fd_dup(p, k, k->e.flags & O_CLOEXEC);
}

static int fcntl_call(struct strace *p, struct strace_step *k)
{
	int r = fd_call(p, k);
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

static int no_file_call(struct strace *p, struct strace_step *k)
{
	if (k->c.returned)
		no_file_set(p, k, k->c.ret);
	return 0;
}

/* pipe and socketpair store two descriptors: "[3, 4]". */
static int pair_call(struct strace *p, struct strace_step *k)
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

/* ---- processes ------------------------------------------------------------------------------- */

static int clone_call(struct strace *p, struct strace_step *k, int32_t parent, uint64_t time_ns)
{
	struct hr_strace_text flags = {0};
	bool thread = false, files = false;

	if (!k->c.returned || k->c.ret <= 0 || k->c.ret > INT32_MAX)
		return 0;
	for (unsigned i = 1; i <= k->c.n_args && !flags.n; i++) {
		struct hr_strace_text t = arg_at(k, i);

		flags = hr__strace_member(t, "flags");
	}
	thread = flags.n && memmem(flags.p, flags.n, "CLONE_THREAD", strlen("CLONE_THREAD"));
	files = flags.n && memmem(flags.p, flags.n, "CLONE_FILES", strlen("CLONE_FILES"));
	if (p->births_only)
		return hr__strace_birth_add(p, (int32_t)k->c.ret, parent, thread, files);
	if (p->merged && hr__strace_birth_add(p, (int32_t)k->c.ret, parent, thread, files))
		return -ENOMEM;
	if (!hr__strace_birth_known(p, (int32_t)k->c.ret))
		return 0; /* the child has run before this result, and may have ended */
	/* The descriptors of the child are those of now. */
	return hr__strace_task(p, (int32_t)k->c.ret, time_ns) ? 0 : -ENOMEM;
}

static int exec_call(struct strace *p, struct strace_step *k)
{
	bool at = strcmp(k->shape->name, "execveat") == 0;
	char exe[HR__STRACE_PATH_BYTES];
	long n;

	if (!k->c.returned || k->c.ret != 0)
		return 0;
	n = hr__strace_string(arg_at(k, at ? 2 : 1), exe, sizeof(exe) - 1);
	if (n < 0)
		return -EBADMSG;
	exe[n] = '\0';
	return hr__strace_exec(p, k->task, k->e.start_ns + k->e.dur_ns, exe, arg_at(k, at ? 3 : 2));
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* io_uring_enter and io_submit have the number of operations. */
static int submit_call(struct strace *p, struct strace_step *k)
{
	p->n_submits += number_at(k, 2, 1) != 0;
	return 0;
}

static converter *const converters[] = {
    [STRACE_FD] = fd_call,	     [STRACE_VECTOR] = fd_call,
    [STRACE_PATH] = path_call,	     [STRACE_TWO] = path_call,
    [STRACE_OPEN] = open_call,	     [STRACE_OPEN_FD] = open_call,
    [STRACE_NO_FILE] = no_file_call, [STRACE_PAIR] = pair_call,
    [STRACE_CLOSE] = close_call,     [STRACE_CLOSE_RANGE] = close_range_call,
    [STRACE_DUP] = dup_call,	     [STRACE_DUP_TO] = dup_call,
    [STRACE_FCNTL] = fcntl_call,     [STRACE_COPY] = copy_call,
    [STRACE_SENDFILE] = copy_call,   [STRACE_CHDIR] = chdir_call,
    [STRACE_FCHDIR] = chdir_call,    [STRACE_MMAP] = mmap_call,
    [STRACE_MUNMAP] = map_call,	     [STRACE_MREMAP] = map_call,
    [STRACE_MAP] = map_call,	     [STRACE_SUBMIT] = submit_call,
    [STRACE_EXEC] = exec_call,
};

int hr__strace_finish(struct strace *p, int32_t tid, const struct strace_shape *shape,
		      struct hr_strace_text text, uint64_t start_ns, uint64_t end_ns)
{
	struct strace_step k = {.shape = shape};
	int r = hr__strace_call(text, &k.c);

	if (r || k.c.restarts)
		return r;
	if (k.c.has_dur)
		end_ns = start_ns + k.c.dur_ns;
	if (shape->how == STRACE_CLONE) {
		if (!p->births_only && !hr__strace_task(p, tid, start_ns))
			return -ENOMEM;
		return clone_call(p, &k, tid, start_ns);
	}
	k.task = hr__strace_task(p, tid, start_ns);
	if (!k.task)
		return -ENOMEM;
	k.task->seen = true;
	p->n_calls++;
	p->n_timed += k.c.has_dur || !k.c.returned;
	k.of = &p->processes[k.task->process];
	k.e = hr_event_none();
	k.e.start_ns = start_ns;
	k.e.dur_ns = end_ns - start_ns;
	k.e.offset = number_at(&k, shape->offset, k.e.offset);
	k.e.asked = (uint64_t)number_at(&k, shape->asked, (int64_t)k.e.asked);
	k.e.ret = k.c.ret;
	k.e.flags = shape->flags ? hr__strace_flags(arg_at(&k, shape->flags)) : 0;
	k.e.op = shape->op;
	return converters[shape->how](p, &k);
}
