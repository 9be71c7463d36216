/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.h - what a wrapper may use: begin and end of an operation, the fd table, paths
 *
 * Purpose   The border between the wrappers (shim/wrap/wrap_*.c, from proto/calls.def) and the machinery behind
 *           them (session, ring, fd table, path identity, filter, fork). Wrappers contain no policy: they
 *           say what the call is about, call the original, and say what came of it.
 * Threads   Everything here is callable from any thread, from a signal handler that interrupts any other
 *           function of this file, after fork, and in a vfork child. Nothing blocks longer than
 *           HEADRACE_ON_FULL allows, allocates with malloc, prints, or takes a lock that can be held across
 *           fork. errno is never changed: hr_begin_* and hr_end* preserve it.
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
 * Cost      An ignored fd costs one array load and a compare, inlined (hr_begin_fd); a tracked one about 20 ns.
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
 * A file as the shim knows it, one word, so that fd table entries change atomically: hr_path_id() in the
 * upper 61 bits, HR_FILE_* in the lower three. Values below 8 name no file.
 */
typedef uint64_t hr_file;
/* not looked at yet: resolve through /proc/self/fd on first use */
#define HR_FILE_UNKNOWN	   UINT64_C(0)
#define HR_FILE_IGNORED	   UINT64_C(1) /* excluded, or a pipe, socket, tty, anonymous inode */
#define HR_FILE_RUNTIME	   UINT64_C(1) /* with an id: scope = 'runtime' */
#define HR_FILE_DIR	   UINT64_C(2) /* with an id: a directory */
#define HR_FILE_ID(f)	   ((f) & ~UINT64_C(7))
#define hr_file_tracked(f) ((f) >= 8)

/* An operation between begin and end; lives on the wrapper's stack. `live` false: nothing is to be recorded. */
struct hr_op {
	bool live;
	/* began inside another operation of this thread (a signal handler): `outer` is restored */
	bool nested;
	uint16_t id;
	int32_t fd;
	uint64_t start;
	hr_file file;
	int64_t offset;
	uint64_t asked;
	struct hr_ring_hdr *ring; /* NULL: detached, counted privately */
	/* hr_begin_path: looked at by the end, when the real call has proved it readable */
	const char *path;
	int32_t dirfd;
	uint8_t outer_bare;    /* without a ring: enum hr_bare before */
	uintptr_t outer_frame; /* with `nested`: hr__thread.frame before */
	struct hr_inflight outer;
};

/* ---- begin ---------------------------------------------------------------------------------------- */

/* For a call on an open descriptor. Resolves an unknown fd once. offset: HR_OFFSET_NONE unless the call names one. */
static inline void hr_begin_fd(struct hr_op *op, enum hr_op_id id, int fd, uint64_t asked,
			       int64_t offset);

/*
 * For a call that names a path (open, stat, unlink...). Only notes the pointer: a bad one must fail in the
 * real call, not here. The end makes it absolute against dirfd (AT_FDCWD allowed), applies the filter, attaches
 * if need be, and sends the path if this process has not; only then is op->file known. The path must live
 * until the end (mkstemp: the end sees the name that was made). A NULL or empty path is not recorded; an
 * empty path with AT_EMPTY_PATH is hr_begin_fd's. chdir's is looked at here: afterwards it would be another.
 */
void hr_begin_path(struct hr_op *op, enum hr_op_id id, int dirfd, const char *path, uint64_t asked);

/* ---- end ------------------------------------------------------------------------------------------ */

/* Records the operation. ret: value or -errno (hr_ret); flags: as calls.def says for this call. */
static inline void hr_end(struct hr_op *op, int64_t ret, uint32_t flags);

/*
 * As hr_end for calls that return a new descriptor of the path begun (open family, fopen: fd = fileno):
 * enters fd into the table first; fd < 0 when the call failed. Looks at type, device and mount of a newly
 * seen file (one statx without sync), and makes the operation not live when it is no file. With O_TMPFILE in
 * flags the path is the directory, and the file DIR/#tmpfile.
 */
void hr_end_open(struct hr_op *op, int fd, int64_t ret, uint32_t flags);

/*
 * As hr_end, with a second file: rename, link, copy_file_range... The record is a pair even when `second` is not
 * tracked (its file is 0): of a copy, it tells the source from the target.
 */
void hr_end_pair(struct hr_op *op, hr_file second, int second_fd, int64_t second_offset,
		 int64_t ret, uint32_t flags);

/* Nothing is to be recorded after all (clears the in-flight cell). */
static inline void hr_end_none(struct hr_op *op);

/* Counts one call too cheap for a record (getc, putc) on fd, and what it moved. Not timed. */
static inline void hr_count(enum hr_op_id id, int fd, uint64_t bytes);

/*
 * Around a call that hr_count counts, where it will read or write the stream's buffer: those bytes are counted. The end takes what
 * the begin returned.
 */
uint8_t hr_begin_buffer(void);
void hr_end_buffer(uint8_t outer);

/* ---- fd table ------------------------------------------------------------------------------------- */

/* All of these do nothing in a vfork child. */
void hr_fd_set(int fd, hr_file file); /* dup target, fdopen, received */
hr_file hr_fd_get(int fd);	      /* resolves an unknown fd; HR_FILE_IGNORED when it is none */
void hr_fd_clear(int fd);	      /* before the real close: the number may be reused at once */
void hr_fd_clear_range(unsigned first, unsigned last); /* close_range, closefrom */
void hr_fd_forget(int fd); /* to HR_FILE_UNKNOWN: the number may hold anything now */
int64_t hr_fd_position(
    int fd); /* the kernel's file position, by a system call; negative: none, or no call is allowed */

/* ---- paths ---------------------------------------------------------------------------------------- */

/*
 * The file that a path names, filtered and announced as for hr_begin_path; HR_FILE_IGNORED when not tracked. Any
 * pointer will do, before or after the real call (it is probed with a system call).
 */
hr_file hr_path_file(int dirfd, const char *path);

/* after a successful chdir or fchdir: the cached cwd is read again when needed */
void hr_cwd_changed(void);

/* ---- mappings ------------------------------------------------------------------------------------- */

/* Tracked file mappings, for munmap, mremap, msync and madvise, which only know addresses. */
void hr_map_add(const void *addr, uint64_t bytes, hr_file file);
hr_file hr_map_find(
    const void *addr); /* HR_FILE_IGNORED when addr lies in none; inline fast answer when empty */
void hr_map_remove(const void *addr, uint64_t bytes);

/* For calls on a mapped address: as hr_begin_fd with the file of the mapping. */
void hr_begin_map(struct hr_op *op, enum hr_op_id id, const void *addr, uint64_t asked);

/*
 * For operations whose file the wrapper already knows (a mapping's). HR_FILE_UNKNOWN: the operation is on no file
 * (sync, fflush(NULL)), or on one that its end names.
 */
void hr_begin_file(struct hr_op *op, enum hr_op_id id, hr_file file, int fd, uint64_t asked,
		   int64_t offset);

/* ---- requests ------------------------------------------------------------------------------------- */

/*
 * An asynchronous request, known by an address that is no other's while it is under way. Its event has the time from its
 * begin, before it is submitted, to its end, which may be in another thread. One whose end is not told is recorded as cut:
 * when the address begins another one, when the process exits, and at once when there are too many.
 */
struct hr_request {
	uint16_t id; /* enum hr_op_id */
	int fd;
	uint64_t bytes; /* asked for, HR_ASKED_NONE */
	int64_t offset;
	uint32_t flags;
};
void hr_request_begin(const void *address, const struct hr_request *asked);
void hr_request_refused(const void *address);	       /* it never was */
void hr_request_end(const void *address, int64_t ret); /* of others that are not known: nothing */

/* ---- process events ------------------------------------------------------------------------------- */

void hr_before_vfork(void);   /* the calling thread is about to vfork: see wrap_process.c */
void hr_before_sharing(void); /* the same, but will run on beside its child (clone with CLONE_VM) */
void hr_after_fork_parent(int pid); /* announces the child (HR_CTL_FORK) */
/* in the child of fork or _Fork, before it returns to the program */
void hr_after_fork_child(void);
/* Can the word behind p be read? Asks the kernel; where that is forbidden (seccomp), only NULL cannot. */
bool hr_readable(const void *p);
void hr_before_seccomp(void);  /* attach now if ever; after it, no syscall of our own */
void hr_before_no_clock(void); /* the same, and no look at a clock */
/* attach now: the socket may soon be out of reach (chroot, setuid...) */
void hr_before_leaving(void);
/* A jump to env: an operation in flight on this thread whose frame it leaves is recorded as cut. */
void hr_before_longjmp(const void *env);
/*
 * A program is about to be started in place of this one, or (spawn) was in a child of libc's. Where it will not have this library, by
 * its environment or as a set-user-id program, the daemon gets a notice. It counts once the kernel closes the connection at the
 * exec: hr_exec_failed takes it back. For vfork children, too.
 */
int hr_before_exec(const char *path, char *const envp[]); /* -1: no notice */
void hr_exec_failed(int notice);
void hr_after_spawn(const char *path, char *const envp[]);
void hr_env_set(const char *name, const char *value); /* setenv/putenv: announces rank variables */
void hr_env_add(const char *name, const char *value); /* only one that has not been known before */

/* ---- originals ------------------------------------------------------------------------------------ */

/*
 * HR_REAL(name): the next definition after this library in link order (default version), found by walking
 * the link map's symbol tables (no dlsym: it may allocate and lives in libdl before glibc 2.34), in the
 * constructor, and on first use if a wrapper runs earlier. Never NULL: a name that this libc lacks gets a
 * function that fails with ENOSYS, since a program that finds our `statx` by dlsym may well call it.
 */
#define HR_REAL(name) ((hr_fn_##name *)hr_real_get(HR_OP_##name)) /* hr_fn_name: shim/wrap/wrap.h */
extern void *hr_real_table[HR_OP_MAX];
void *hr_real_resolve(uint16_t id); /* slow path: before the constructor */
/* The original is another library's, not libc's: it may call wrappers itself. */
extern bool hr_real_foreign[HR_OP_MAX];

static inline void *hr_real_get(uint16_t id)
{
	void *fn = __atomic_load_n(&hr_real_table[id], __ATOMIC_RELAXED);

	return hr_likely(fn != NULL) ? fn : hr_real_resolve(id);
}

/*
 * Of libaio, which may come with a program's plugin and go with it: looked for again when anything was unloaded. What is
 * not there fails with -ENOSYS as its result.
 */
#define HR_REAL_UNLOADABLE(name) ((hr_fn_##name *)hr_real_unloadable(HR_OP_##name))
void *hr_real_unloadable(uint16_t id);

static inline int64_t hr_ret(int64_t r)
{
	return hr_likely(r >= 0) ? r : -(int64_t)errno;
}

#include "shim/core/core_inline.h"

#endif
