/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.h - the functions for wrappers: begin and end of an operation, the fd table, paths
 *
 * Purpose   The border between the wrappers (shim/wrap/wrap_*.c, from proto/calls.def) and the rest
 *           of the shim (session, ring, fd table, path identity, filter, fork). A wrapper has no
 *           policy: it describes the call, calls the original, and passes on its result.
 * Threads   Any thread may call all of this, also a signal handler that interrupts any function of
 *           this file, a process after fork, and a vfork child. Nothing blocks longer than
 *           HEADRACE_ON_FULL allows, allocates with malloc, prints, or takes a lock that can be
 *           held across fork. hr_begin_* and hr_end* preserve errno.
 *
 *      ssize_t read(int fd, void *buf, size_t count)
 *      {
 *              struct hr_op op;
 *              hr_begin_fd(&op, HR_OP_read, fd, count, HR_OFFSET_NONE);     in-flight cell, clock
 *              ssize_t r = HR_REAL(read)(fd, buf, count);
 *              hr_end(&op, hr_ret(r), 0);                                   clock, record
 *              return r;
 *      }
 *
 * Cost      An ignored fd costs one array load and a compare, inlined (hr_begin_fd); a tracked one
 * about 20 ns.
 */
#ifndef HEADRACE_SHIM_CORE_CORE_H
#define HEADRACE_SHIM_CORE_CORE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ops.h"
#include "proto/abi.h"

#define hr_likely(x)   __builtin_expect(!!(x), 1)
#define hr_unlikely(x) __builtin_expect(!!(x), 0)

/*
 * A file in the shim: one word, so that fd table entries change atomically. hr_path_id() in the
 * upper 61 bits, HR_FILE_* in the lower three. Values below 8 are no file.
 */
typedef uint64_t hr_file;
/* resolved through /proc/self/fd on first use */
#define HR_FILE_UNKNOWN	   UINT64_C(0)
#define HR_FILE_IGNORED	   UINT64_C(1) /* excluded, or a pipe, socket, tty, anonymous inode */
#define HR_FILE_RUNTIME	   UINT64_C(1) /* with an id: scope = 'runtime' */
#define HR_FILE_DIR	   UINT64_C(2) /* with an id: a directory */
#define HR_FILE_ID(f)	   ((f) & ~UINT64_C(7))
#define hr_file_tracked(f) ((f) >= 8)

/* An operation between begin and end, on the wrapper's stack. `live` false: it is not recorded. */
struct hr_op {
	bool live;
	/*
	 * began inside another operation of this thread (in a signal handler): `outer` is restored
	 */
	bool nested;
	uint16_t id;
	int32_t fd;
	uint64_t start;
	hr_file file;
	int64_t offset;
	uint64_t asked;
	struct hr_ring_hdr *ring; /* NULL: detached, counted privately */
	/* hr_begin_path: the end reads it, once the real call has shown that it is readable */
	const char *path;
	int32_t dirfd;
	uint8_t outer_bare;    /* without a ring: enum hr_bare before this operation */
	uintptr_t outer_frame; /* with `nested`: hr__thread.frame before */
	struct hr_inflight outer;
};

/* ---- begin ---------------------------------------------------------------------------------------- */

/* For a call on an open descriptor; resolves an unknown fd once. HR_OFFSET_NONE: without offset. */
static inline void hr_begin_fd(struct hr_op *op, enum hr_op_id id, int fd, uint64_t asked,
			       int64_t offset);

/*
 * For a call with a path (open, stat, unlink...). It only stores the pointer: a bad one must fail
 * in the real call, not here. The end makes the path absolute against dirfd (AT_FDCWD allowed),
 * applies the filter, attaches if need be, and sends the path if this process has not; only then
 * op->file is known. The path must be valid until the end (mkstemp changes it). A NULL or empty
 * path is not recorded; for an empty path with AT_EMPTY_PATH use hr_begin_fd. The path of chdir is
 * resolved here, because afterwards it would be another file.
 */
void hr_begin_path(struct hr_op *op, enum hr_op_id id, int dirfd, const char *path, uint64_t asked);

/* ---- end ------------------------------------------------------------------------------------------ */

/* Records the operation. ret: value or -errno (hr_ret); flags: the column `flags` of calls.def. */
static inline void hr_end(struct hr_op *op, int64_t ret, uint32_t flags);

/*
 * Like hr_end, for calls that return a new descriptor of the path (open family, fopen: fd =
 * fileno). Enters fd into the table first; fd < 0: the call failed. It reads type, device and mount
 * of a new file (one statx without sync), and drops the operation if it is no file. With O_TMPFILE
 * in flags the path is the directory, and the file DIR/#tmpfile.
 */
void hr_end_open(struct hr_op *op, int fd, int64_t ret, uint32_t flags);

/*
 * Like hr_end, with a second file: rename, link, copy_file_range... The record is a pair even if
 * `second` is not tracked (its file is 0): the pair distinguishes source and target of a copy.
 */
void hr_end_pair(struct hr_op *op, hr_file second, int second_fd, int64_t second_offset,
		 int64_t ret, uint32_t flags);

/* Drops the operation (clears the in-flight cell). */
static inline void hr_end_none(struct hr_op *op);

/* Counts one call too cheap for a record (getc, putc) on fd, and its bytes. Not timed. */
static inline void hr_count(enum hr_op_id id, int fd, uint64_t bytes);

/*
 * Around a call that hr_count counts, if it will read or write the stream's buffer: hr_count has
 * counted those bytes. The end takes the result of the begin.
 */
uint8_t hr_begin_buffer(void);
void hr_end_buffer(uint8_t outer);

/* ---- fd table ------------------------------------------------------------------------------------- */

/* In a vfork child these do nothing. */
void hr_fd_set(int fd, hr_file file); /* dup target, fdopen, received */
hr_file hr_fd_get(int fd);	      /* resolves an unknown fd; HR_FILE_IGNORED: no file */
/* now HR_FILE_UNKNOWN; call before the real close, which frees the number */
void hr_fd_clear(int fd);
void hr_fd_clear_range(unsigned first, unsigned last); /* close_range, closefrom */
int64_t hr_fd_position(
    /* the file position, by a system call; negative: none, or system calls are forbidden */
    int fd);

/* ---- paths ---------------------------------------------------------------------------------------- */

/*
 * The file of a path, filtered and sent as for hr_begin_path; HR_FILE_IGNORED: not tracked. Any
 * pointer is valid, before and after the real call (a system call tests it).
 */
hr_file hr_path_file(int dirfd, const char *path);

/* After a successful chdir or fchdir: the cached cwd is read again when needed. */
void hr_cwd_changed(void);

/* ---- mappings ------------------------------------------------------------------------------------- */

/* Tracked file mappings, for munmap, mremap, msync and madvise, which have only addresses. */
void hr_map_add(const void *addr, uint64_t bytes, hr_file file);
hr_file hr_map_find(
    /* HR_FILE_IGNORED: addr is in none */
    const void *addr);
void hr_map_remove(const void *addr, uint64_t bytes);

/* For calls on a mapped address: like hr_begin_fd, with the file of the mapping. */
void hr_begin_map(struct hr_op *op, enum hr_op_id id, const void *addr, uint64_t asked);

/*
 * For operations whose file the wrapper already has (a mapping's). HR_FILE_UNKNOWN: the operation
 * has no file (sync, fflush(NULL)), or its end sets one.
 */
void hr_begin_file(struct hr_op *op, enum hr_op_id id, hr_file file, int fd, uint64_t asked,
		   int64_t offset);

/* ---- requests ------------------------------------------------------------------------------------- */

/*
 * An asynchronous request, identified by an address that is unique until its end. The event lasts
 * from its begin, before the submission, to its end, perhaps in another thread. A request without
 * an end is recorded as cut: when its address begins another one, when the process exits, or at
 * once if there are too many.
 */
struct hr_request {
	uint16_t id; /* enum hr_op_id */
	int fd;
	uint64_t bytes; /* requested; HR_ASKED_NONE */
	int64_t offset;
	uint32_t flags;
};
void hr_request_begin(const void *address, const struct hr_request *asked);
void hr_request_refused(const void *address);	       /* the submission failed */
void hr_request_end(const void *address, int64_t ret); /* ignores unknown requests */

/* ---- process events ------------------------------------------------------------------------------- */

void hr_before_vfork(void); /* this thread is about to vfork: see wrap_process.c */
/* the same, but both continue at the same time (clone with CLONE_VM) */
void hr_before_sharing(void);
void hr_after_fork_parent(int pid); /* records the child (HR_CTL_FORK) */
/* In the child of fork or _Fork, before it returns to the program. */
void hr_after_fork_child(void);
/* True: the word at p is readable (by a system call; under seccomp, false for NULL only). */
bool hr_readable(const void *p);
void hr_before_seccomp(void);  /* attaches now; from then on the shim makes no system call */
void hr_before_no_clock(void); /* the same, and it reads no clock */
/* Attaches now: the socket may soon be unreachable (chroot, setuid...). */
void hr_before_leaving(void);
/* A jump to env: records the operation in flight as cut, if the jump leaves its frame. */
void hr_before_longjmp(const void *env);
/*
 * A program is about to replace this one, or (spawn) libc has started it in a child. If it will not
 * have this library, because of its environment or because it is set-user-id, the daemon gets a
 * notice. The notice counts once the kernel closes the connection at the exec; hr_exec_failed
 * withdraws it. Also for vfork children.
 */
int hr_before_exec(const char *path, char *const envp[]); /* -1: no notice */
void hr_exec_failed(int notice);
void hr_after_spawn(const char *path, char *const envp[]);
void hr_env_set(const char *name, const char *value); /* setenv, putenv: records rank variables */
void hr_env_add(const char *name, const char *value); /* only if the variable is not known yet */

/* ---- originals ------------------------------------------------------------------------------------ */

/*
 * HR_REAL(name): the next definition after this library in link order (default version). It is
 * found in the symbol tables of the link map (no dlsym: it may allocate, and is in libdl before
 * glibc 2.34), in the constructor, or on first use if a wrapper runs earlier. Never NULL: for a
 * name that this libc lacks it is a function that fails with ENOSYS, since a program that finds the
 * shim's `statx` by dlsym may call it.
 */
#define HR_REAL(name) ((hr_fn_##name *)hr_real_get(HR_OP_##name)) /* hr_fn_name: shim/wrap/wrap.h */
extern void *hr_real_table[HR_OP_MAX];
void *hr_real_resolve(uint16_t id); /* slow path: before the constructor */
/* The original is another library's, not libc's: it may call wrappers. */
extern bool hr_real_foreign[HR_OP_MAX];

static inline void *hr_real_get(uint16_t id)
{
	void *fn = __atomic_load_n(&hr_real_table[id], __ATOMIC_RELAXED);

	return hr_likely(fn != NULL) ? fn : hr_real_resolve(id);
}

/*
 * For libaio, which a program's plugin may load and unload: searched again after any unload. A
 * missing function fails with the result -ENOSYS.
 */
#define HR_REAL_UNLOADABLE(name) ((hr_fn_##name *)hr_real_unloadable(HR_OP_##name))
void *hr_real_unloadable(uint16_t id);

static inline int64_t hr_ret(int64_t r)
{
	return hr_likely(r >= 0) ? r : -(int64_t)errno;
}

#include "shim/core/core_inline.h"

#endif
