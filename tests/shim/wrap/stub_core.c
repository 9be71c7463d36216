/* SPDX-License-Identifier: Apache-2.0 */
#include "stub_core.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/core/core.h"

#define EVENTS 256u
#define FILES  256u
#define FDS    4096

char stub_root[PATH_MAX];
unsigned stub_buffers;

static bool on;
static struct stub_event events[EVENTS];
static unsigned n_events, taken;
static char files[FILES][PATH_MAX]; /* file i has id (i + 1) * 8 */
static unsigned n_files;
static hr_file fds[FDS];
static struct {
	uintptr_t begin, end;
	hr_file file;
} map;

/* ---- test side ------------------------------------------------------------------------------ */

void stub_reset(void)
{
	on = false;
	n_events = taken = n_files = stub_buffers = 0;
	memset(fds, 0, sizeof(fds));
	memset(&map, 0, sizeof(map));
}

void stub_on(void)
{
	on = true;
}

void stub_off(void)
{
	on = false;
}

const struct stub_event *stub_take(void)
{
	return taken < n_events ? &events[taken++] : NULL;
}

static const char *path_of(hr_file file)
{
	return hr_file_tracked(file) ? files[file / 8 - 1] : NULL;
}

const char *stub_fd_path(int fd)
{
	if (fds[fd] == HR_FILE_UNKNOWN)
		return NULL;
	return hr_file_tracked(fds[fd]) ? path_of(fds[fd]) : "";
}

static struct stub_event *note(enum stub_kind kind)
{
	static struct stub_event overflow;
	struct stub_event *e = n_events < EVENTS ? &events[n_events++] : &overflow;

	memset(e, 0, sizeof(*e));
	e->kind = kind;
	e->fd = e->fd2 = -1;
	e->offset = e->offset2 = HR_OFFSET_NONE;
	e->asked = HR_ASKED_NONE;
	return e;
}

static struct stub_event *note_hook(const char *name)
{
	struct stub_event *e = note(STUB_HOOK);

	e->hook = name;
	return e;
}

/* ---- files ---------------------------------------------------------------------------------- */

static hr_file file_of(const char *path)
{
	unsigned i;

	if (strncmp(path, stub_root, strlen(stub_root)) != 0 &&
	    strncmp(path, "/dev/shm/hr-", 12) != 0 && strstr(path, " (deleted)") == NULL)
		return HR_FILE_IGNORED;
	for (i = 0; i < n_files; i++) {
		if (strcmp(files[i], path) == 0)
			return (i + 1) * 8;
	}
	if (n_files == FILES || strlen(path) >= PATH_MAX)
		return HR_FILE_IGNORED;
	strcpy(files[n_files++], path);
	return n_files * 8;
}

static hr_file resolve(int fd)
{
	char link[64], path[PATH_MAX];
	bool was = on;
	ssize_t n;

	on = false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof(path) - 1);
	on = was;
	if (n < 0)
		return HR_FILE_IGNORED;
	path[n] = '\0';
	return file_of(path);
}

hr_file hr_fd_get(int fd)
{
	int saved = errno;

	if (!on || fd < 0 || fd >= FDS)
		return HR_FILE_IGNORED;
	if (fds[fd] == HR_FILE_UNKNOWN)
		fds[fd] = resolve(fd);
	errno = saved;
	return fds[fd];
}

void hr_fd_set(int fd, hr_file file)
{
	if (on && fd >= 0 && fd < FDS)
		fds[fd] = file;
}

void hr_fd_clear(int fd)
{
	hr_fd_set(fd, HR_FILE_UNKNOWN);
}

void hr_fd_clear_range(unsigned first, unsigned last)
{
	for (unsigned fd = first; fd <= last && fd < FDS; fd++)
		hr_fd_clear((int)fd);
}

hr_file hr_path_file(int dirfd, const char *path, bool proved)
{
	char full[2 * PATH_MAX];
	int saved = errno;
	bool was = on;
	size_t n = 0;

	(void)proved;
	if (!on || path == NULL || (uintptr_t)path < 4096 || *path == '\0')
		return HR_FILE_IGNORED;
	on = false;
	if (*path != '/') {
		char link[64];

		snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
		n = (size_t)syscall(SYS_readlinkat, AT_FDCWD,
				    dirfd == AT_FDCWD ? "/proc/self/cwd" : link, full, PATH_MAX);
		full[n++] = '/';
	}
	snprintf(full + n, sizeof(full) - n, "%s", path);
	on = was;
	errno = saved;
	return file_of(full);
}

/* ---- operations ----------------------------------------------------------------------------- */

void hr_begin_file(struct hr_op *op, enum hr_op_id id, hr_file file, int fd, uint64_t asked,
		   int64_t offset)
{
	memset(op, 0, sizeof(*op));
	op->live = on && file != HR_FILE_IGNORED;
	op->id = (uint16_t)id;
	op->fd = fd;
	op->file = file;
	op->asked = asked;
	op->offset = offset;
}

void stub_begin_fd(struct hr_op *op, enum hr_op_id id, int fd, uint64_t asked, int64_t offset)
{
	hr_begin_file(op, id, on ? hr_fd_get(fd) : HR_FILE_IGNORED, fd, asked, offset);
}

void hr_begin_path(struct hr_op *op, enum hr_op_id id, int dirfd, const char *path, uint64_t asked)
{
	hr_begin_file(op, id, path != NULL ? HR_FILE_UNKNOWN : HR_FILE_IGNORED, -1, asked,
		      HR_OFFSET_NONE);
	op->path = path;
	op->dirfd = dirfd;
	if (op->live && id == HR_OP_chdir) {
		op->file = hr_path_file(dirfd, path, false);
		op->path = NULL;
	}
}

void hr_begin_map(struct hr_op *op, enum hr_op_id id, const void *addr, uint64_t asked)
{
	hr_begin_file(op, id, hr_map_find(addr), -1, asked, HR_OFFSET_NONE);
}

static struct stub_event *note_end(struct hr_op *op, int64_t ret, uint32_t flags)
{
	struct stub_event *e;

	if (ret == -EFAULT && op->path != NULL)
		return NULL;
	if (op->live && op->path != NULL)
		op->file = hr_path_file(op->dirfd, op->path, false);
	if (!op->live || op->file == HR_FILE_IGNORED)
		return NULL;
	e = note(STUB_END);
	e->id = op->id;
	e->fd = op->fd;
	e->path = path_of(op->file);
	e->asked = op->asked;
	e->offset = op->offset;
	e->ret = ret;
	e->flags = flags;
	return e;
}

void stub_end(struct hr_op *op, int64_t ret, uint32_t flags)
{
	note_end(op, ret, flags);
}

void hr_end_open(struct hr_op *op, int fd, int64_t ret, uint32_t flags)
{
	op->fd = fd;
	if (op->live && fd >= 0 && (flags & O_TMPFILE) == O_TMPFILE) {
		op->file = resolve(fd);
		op->path = NULL;
	}
	note_end(op, ret, flags);
	if (op->live && fd >= 0)
		hr_fd_set(fd, op->file);
}

void hr_end_pair(struct hr_op *op, hr_file second, int second_fd, int64_t second_offset,
		 int64_t ret, uint32_t flags)
{
	struct stub_event *e = note_end(op, ret, flags);

	if (e == NULL)
		return;
	e->path2 = path_of(second);
	e->fd2 = second_fd;
	e->offset2 = second_offset;
}

void stub_count(enum hr_op_id id, int fd, uint64_t bytes)
{
	hr_file file = on ? hr_fd_get(fd) : HR_FILE_IGNORED;
	struct stub_event *e;

	if (file == HR_FILE_IGNORED)
		return;
	e = note(STUB_COUNT);
	e->id = (uint16_t)id;
	e->fd = fd;
	e->path = path_of(file);
	e->ret = (int64_t)bytes;
}

#define OUTER 77 /* of what the buffer's call is a part */

uint8_t hr_begin_buffer(void)
{
	stub_buffers += on;
	return OUTER;
}

void hr_end_buffer(uint8_t outer)
{
	if (outer != OUTER)
		abort();
}

/* ---- mappings: one will do ------------------------------------------------------------------ */

void hr_map_add(const void *addr, uint64_t bytes, hr_file file)
{
	map.begin = (uintptr_t)addr;
	map.end = map.begin + bytes;
	map.file = file;
}

hr_file hr_map_find(const void *addr)
{
	bool hit = (uintptr_t)addr >= map.begin && (uintptr_t)addr < map.end;

	return on && hit ? map.file : HR_FILE_IGNORED;
}

void hr_map_remove(const void *addr, uint64_t bytes)
{
	if (on && (uintptr_t)addr < map.end && (uintptr_t)addr + bytes > map.begin)
		memset(&map, 0, sizeof(map));
}

bool hr_readable(const void *p)
{
	return (uintptr_t)p >= 4096;
}

/* ---- requests: a few at a time -------------------------------------------------------------- */

static struct {
	const void *address;
	struct hr_request asked;
} requests[8];

void hr_request_begin(const void *address, const struct hr_request *asked)
{
	unsigned i = 0;

	if (!on)
		return;
	while (requests[i].address != NULL)
		i++;
	requests[i].address = address;
	requests[i].asked = *asked;
}

/* The place of a request, which is free from here on; -1: not known. */
static int request_take(const void *address)
{
	for (int i = 0; i < (int)(sizeof(requests) / sizeof(requests[0])); i++) {
		if (requests[i].address == address) {
			requests[i].address = NULL;
			return i;
		}
	}
	return -1;
}

void hr_request_refused(const void *address)
{
	request_take(address);
}

void hr_request_end(const void *address, int64_t ret)
{
	int i = request_take(address);
	struct hr_op op;

	if (i < 0)
		return;
	stub_begin_fd(&op, requests[i].asked.id, requests[i].asked.fd, requests[i].asked.bytes,
		      requests[i].asked.offset);
	stub_end(&op, ret, requests[i].asked.flags);
}

/* ---- hooks ---------------------------------------------------------------------------------- */

#define HOOK(name)                                                                                 \
	void name(void)                                                                            \
	{                                                                                          \
		if (on)                                                                            \
			note_hook(#name);                                                          \
	}

HOOK(hr_cwd_changed)
HOOK(hr_before_vfork)
HOOK(hr_before_sharing)
HOOK(hr_after_fork_child)
HOOK(hr_before_seccomp)
HOOK(hr_seccomp_failed)
HOOK(hr_before_no_clock)
HOOK(hr_before_leaving)
HOOK(hr_before_unseen_library)
HOOK(hr_fds_split)
HOOK(hr_cwd_split)

void hr_before_longjmp(const void *env)
{
	(void)env;
	if (on)
		note_hook("hr_before_longjmp");
}

void hr_after_fork_parent(int pid)
{
	if (on)
		note_hook("hr_after_fork_parent")->ret = pid;
}

static void note_env(const char *hook, const char *name, const char *value)
{
	struct stub_event *e;

	if (!on)
		return;
	e = note_hook(hook);
	snprintf(e->text, sizeof(e->text), "%s=%s", name, value);
}

void hr_env_set(const char *name, const char *value)
{
	note_env("hr_env_set", name, value);
}

void hr_env_add(const char *name, const char *value)
{
	note_env("hr_env_add", name, value);
}

/* The program and the first variable of its environment. */
static void note_program(const char *hook, const char *path, char *const envp[])
{
	struct stub_event *e = note_hook(hook);

	snprintf(e->text, sizeof(e->text), "%s %s", path,
		 envp != NULL && envp[0] != NULL ? envp[0] : "");
}

int hr_before_exec(const char *path, char *const envp[])
{
	if (on)
		note_program("hr_before_exec", path, envp);
	return STUB_NOTICE;
}

void hr_exec_failed(int notice)
{
	if (on)
		note_hook("hr_exec_failed")->ret = notice;
}

void hr_after_spawn(const char *path, char *const envp[])
{
	if (on)
		note_program("hr_after_spawn", path, envp);
}

int64_t hr_fd_position(int fd)
{
	return ((off_t(*)(int, off_t, int))hr_real_get(HR_OP_lseek))(fd, 0, SEEK_CUR);
}

/* ---- waits ---------------------------------------------------------------------------------- */

__thread struct hr_waits hr_waits;

void hr_wait_begin(struct hr_waiting *wait)
{
	wait->start = 1;
}

void hr_wait_end(const struct hr_waiting *wait, enum hr_wait_group group)
{
	if (on && wait->start == 1)
		note_hook("hr_wait_end")->ret = group;
}

void hr_wait_end_fd(const struct hr_waiting *wait, int fd)
{
	if (on && wait->start == 1)
		note_hook("hr_wait_end_fd")->ret = fd;
}
