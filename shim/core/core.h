/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.h - the functions for wrappers: begin and end of an operation, the fd table, paths
 *
 * Wrappers (shim/wrap/wrap_*.c) use only this header of the shim's core. A wrapper describes the
 * call, calls the original, and passes its result to the end; it makes no decisions.
 *
 * Threads   Any thread may call all of this, also in a signal handler that interrupts any function
 *           of this file, after fork, and in a vfork child. No function blocks longer than
 *           HEADRACE_ON_FULL allows, calls malloc or prints. None takes a lock that can be held
 *           across fork. hr_begin_* and hr_end* preserve errno.
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
 * Cost      An ignored fd: one inlined load and comparison. A tracked fd: about 20 ns.
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
 * A file as the shim represents it: hr_path_id() in the upper 61 bits, HR_FILE_* in the lower
 * three. It is one word, so that an entry of the fd table changes atomically. Values below 8 are
 * not files.
 */
typedef uint64_t hr_file;
#define HR_FILE_UNKNOWN	   UINT64_C(0) /* the shim asks the kernel at the first use */
#define HR_FILE_IGNORED	   UINT64_C(1) /* excluded, or a pipe, socket, tty or anonymous inode */
#define HR_FILE_RUNTIME	   UINT64_C(1) /* with an id: the file has scope 'runtime' */
#define HR_FILE_DIR	   UINT64_C(2) /* with an id: the file is a directory */
#define HR_FILE_ID(f)	   ((f) & ~UINT64_C(7))
#define hr_file_tracked(f) ((f) >= 8)

/* A call between its begin and its end, on the wrapper's stack. live: it will be recorded. */
struct hr_op {
	bool live;
	/* a signal handler makes this call inside another operation (`outer`) */
	bool nested;
	uint16_t id;
	int32_t fd;
	uint64_t start;
	hr_file file;
	int64_t offset;
	uint64_t asked;
	struct hr_ring_hdr *ring; /* NULL: the thread has no ring */
	const char *path;	  /* argument of hr_begin_path(), which the end reads */
	int32_t dirfd;
	uint8_t outer_bare;    /* value of HR__SLOW_BARE before this operation, if ring is NULL */
	uintptr_t outer_frame; /* value of hr__thread.frame before this operation, if nested */
	struct hr_inflight outer;
};

/* ---- begin ---------------------------------------------------------------------------------------- */

/* Begins a call on a descriptor. `offset` may be HR_OFFSET_NONE. */
static inline void hr_begin_fd(struct hr_op *op, enum hr_op_id id, int fd, uint64_t asked,
			       int64_t offset);

/*
 * Begins a call with a path (open, stat, unlink...). Only stores the pointer, because a bad pointer
 * must fail in the real call. The path must be valid until hr_end*(), which makes the path absolute
 * against dirfd (AT_FDCWD allowed), applies the filter, attaches if needed, sends the path if this
 * process has not sent it, and sets op->file. If the call can change the path or its meaning
 * (readlink, truncate, chdir), this function does all this itself. A call with a NULL or empty path
 * is not recorded; for an empty path with AT_EMPTY_PATH use hr_begin_fd().
 */
void hr_begin_path(struct hr_op *op, enum hr_op_id id, int dirfd, const char *path, uint64_t asked);

/* ---- end ------------------------------------------------------------------------------------------ */

/* Records the operation. ret: the result or -errno (hr_ret). flags: see proto/calls.def. */
static inline void hr_end(struct hr_op *op, int64_t ret, uint32_t flags);

/*
 * Like hr_end, for calls that return a new descriptor for the path (open family; for fopen, the
 * stream's fileno). A negative fd means that the call failed. Enters fd into the table, and reads
 * type, device and mount of a new file (one statx without sync). If fd is not a file, the call is
 * not recorded. With O_TMPFILE in flags, the path is a directory, and the file is DIR/#tmpfile.
 */
void hr_end_open(struct hr_op *op, int fd, int64_t ret, uint32_t flags);

/*
 * Like hr_end, for a call with a second file: rename, link, copy_file_range... The record is a pair
 * even if `second` is not tracked (file 0), to distinguish the source of a copy from its target.
 */
void hr_end_pair(struct hr_op *op, hr_file second, int second_fd, int64_t second_offset,
		 int64_t ret, uint32_t flags);

static inline void hr_end_none(struct hr_op *op);

/* Counts a call on fd and its bytes. For calls that are too cheap for a record (getc, putc). */
static inline void hr_count(enum hr_op_id id, int fd, uint64_t bytes);

/*
 * Enclose the original function of a call that hr_count() counts, if it fills or writes the
 * stream's buffer by a system call. The probes must not count these bytes again. Pass the result of
 * the begin to the end.
 */
uint8_t hr_begin_buffer(void);
void hr_end_buffer(uint8_t outer);

/* ---- fd table ------------------------------------------------------------------------------------- */

/* In a vfork child, the functions that change the fd table do nothing. */
void hr_fd_set(int fd, hr_file file); /* for the target of a dup, fdopen, a received descriptor */
hr_file hr_fd_get(int fd);	      /* HR_FILE_IGNORED: fd is no file */
void hr_fd_clear(int fd);	      /* call it before the real close, which frees the number fd */
void hr_fd_clear_range(unsigned first, unsigned last); /* for close_range and closefrom */
/*
 * Call it before the threads of this process get different descriptors (unshare, a thread by clone
 * without CLONE_FILES), or share them with another process. The shim then asks the kernel for the
 * file of each operation.
 */
void hr_fds_split(void);
/* Returns the file position. Negative: it has none, or system calls are forbidden. */
int64_t hr_fd_position(int fd);

/* ---- paths ---------------------------------------------------------------------------------------- */

/*
 * Returns the file of a path, and sends the path, like hr_begin_path() with hr_end().
 * HR_FILE_IGNORED: not tracked. A bad pointer is allowed, because a system call tests the path,
 * unless its call succeeded (`proved`).
 */
hr_file hr_path_file(int dirfd, const char *path, bool proved);

/* Call it after a successful chdir or fchdir: forgets the cached working directory. */
void hr_cwd_changed(void);
/* Like hr_fds_split, for the working directory. */
void hr_cwd_split(void);

/* ---- mappings ------------------------------------------------------------------------------------- */

/* Mappings of tracked files, for calls that get only an address: munmap, mremap, msync, madvise. */
void hr_map_add(const void *addr, uint64_t bytes, hr_file file);
hr_file hr_map_find(const void *addr); /* HR_FILE_IGNORED: not a mapping of a tracked file */
void hr_map_remove(const void *addr, uint64_t bytes);

/* Begins a call on a mapped address. Works like hr_begin_fd(), with the file of the mapping. */
void hr_begin_map(struct hr_op *op, enum hr_op_id id, const void *addr, uint64_t asked);

/* Begins a call on a file. HR_FILE_UNKNOWN: it has none (sync), or its file is set at the end. */
void hr_begin_file(struct hr_op *op, enum hr_op_id id, hr_file file, int fd, uint64_t asked,
		   int64_t offset);

/* ---- requests ------------------------------------------------------------------------------------- */

/*
 * An asynchronous request, identified by an address that is unique until its end. Its event lasts
 * from hr_request_begin(), before the submission, to hr_request_end(), possibly in another thread.
 * A request without an end is recorded as cut when the next request at this address begins, or when
 * the process exits. If the table is full, the request is recorded as cut at once.
 */
struct hr_request {
	uint16_t id; /* enum hr_op_id */
	int fd;
	uint64_t bytes; /* requested, or HR_ASKED_NONE */
	int64_t offset;
	uint32_t flags;
};
void hr_request_begin(const void *address, const struct hr_request *asked);
void hr_request_refused(const void *address);
void hr_request_end(const void *address, int64_t ret);

/* ---- waits ---------------------------------------------------------------------------------------- */

/*
 * How long this thread has waited in calls that are not recorded as operations. A wrapper measures
 * a call only while `on` is set: otherwise it tail-calls the original. If a call runs inside
 * another one (in a signal handler or a function of another library), its time counts only for the
 * inner call. A call that siglongjmp or a cancellation leaves does not count.
 */
enum hr_wait_group { HR_WAIT_SLEEP, HR_WAIT_NETWORK, HR_WAIT_LOCK, HR_WAIT_GROUPS };
struct hr_waits {
	uint64_t ns[HR_WAIT_GROUPS];
	bool on; /* this thread has called headrace_api.waited */
};
extern __thread struct hr_waits hr_waits __attribute__((tls_model("initial-exec")));

struct hr_waiting {
	uint64_t start;	  /* 0: not measured */
	uint64_t counted; /* sum of hr_waits.ns when the wait started */
};
void hr_wait_begin(struct hr_waiting *wait);
void hr_wait_end(const struct hr_waiting *wait, enum hr_wait_group group);
/* Ends the measurement of a read or write, which counts as a wait if fd is a socket. */
void hr_wait_end_fd(const struct hr_waiting *wait, int fd);

/* ---- process events ------------------------------------------------------------------------------- */

void hr_before_vfork(void);
/* Like hr_before_vfork, for a clone after which parent and child run at the same time. */
void hr_before_sharing(void);
void hr_after_fork_parent(int pid); /* records the child (HR_CTL_FORK) */
/* Call it in the child of fork or _Fork, before fork returns to the program. */
void hr_after_fork_child(void);
/* Whether the kernel can read the word at p. Without system calls: whether p is not NULL. */
bool hr_readable(const void *p);
void hr_before_seccomp(void);  /* attaches now; the shim makes no system call later */
void hr_seccomp_failed(void);  /* call it if the filter was not installed */
void hr_before_no_clock(void); /* also: the shim reads no clock later */
/* Attaches now, because the call may make the daemon's socket unreachable (chroot, setuid...). */
void hr_before_leaving(void);
/* Call it before a jump to env: if the jump leaves the current operation, records it as cut. */
void hr_before_longjmp(const void *env);
/*
 * Call them before a program replaces this one, or (hr_after_spawn) after libc has started a
 * program in a child. Sends a notice to the daemon if that program will not load this library,
 * because of its environment or set-user-id. The notice is valid when the exec closes its
 * connection; hr_exec_failed() withdraws it. A vfork child may call these functions, too.
 */
int hr_before_exec(const char *path, char *const envp[]); /* -1: no notice was sent */
void hr_exec_failed(int notice);
void hr_after_spawn(const char *path, char *const envp[]);
void hr_env_set(const char *name, const char *value); /* call it after setenv or putenv */
void hr_env_add(const char *name, const char *value);

/*
 * Call it before a library is loaded that will call libc without this library (RTLD_DEEPBIND,
 * dlmopen). Attaches, and counts the library as a loss. Such a library may close and open
 * descriptors unseen, so this includes hr_fds_split().
 */
void hr_before_unseen_library(void);

/* ---- originals ------------------------------------------------------------------------------------ */

/*
 * HR_REAL(name): the original function, which the wrapper calls. It is the default version of
 * `name` in the first library after this one, in link order, that defines it. The constructor finds
 * all originals in the symbol tables of the link map; a call before the constructor finds only the
 * one that it needs. dlsym is not used, because it may allocate memory, and is in libdl before
 * glibc 2.34. HR_REAL is never NULL: if this libc lacks the function, it fails with ENOSYS, because
 * programs may find the wrapper by dlsym.
 */
#define HR_REAL(name) ((hr_fn_##name *)hr_real_get(HR_OP_##name))
extern void *hr_real_table[HR_OP_MAX];
void *hr_real_resolve(uint16_t id); /* slow path, for calls before the constructor */
/* Whether the original function is outside libc. Such a function may call wrappers. */
extern bool hr_real_foreign[HR_OP_MAX];

static inline void *hr_real_get(uint16_t id)
{
	void *fn = __atomic_load_n(&hr_real_table[id], __ATOMIC_RELAXED);

	return hr_likely(fn != NULL) ? fn : hr_real_resolve(id);
}

bool hr_real_exists(uint16_t id); /* whether some library has the original function */
/*
 * Call it with a function that a program has found by dlsym with a handle, under the name that it
 * asked for. Returns the wrapper if `fn` is the original function of one, otherwise fn.
 */
void *hr_real_wrapper(void *fn, const char *name);

/* HR_REAL for libaio, which a plugin may unload. -ENOSYS: the function is missing now. */
#define HR_REAL_UNLOADABLE(name) ((hr_fn_##name *)hr_real_unloadable(HR_OP_##name))
void *hr_real_unloadable(uint16_t id);

static inline int64_t hr_ret(int64_t r)
{
	return hr_likely(r >= 0) ? r : -(int64_t)errno;
}

#include "shim/core/core_inline.h"

#endif
