/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * probe.h - maps and records between the programs in the kernel (probe.bpf.c) and headraced
 * (daemon/probes); docs/probes.md explains their use
 *
 * Owner     The daemon of a job loads its own programs and maps, to which no other process can
 *           write. Traced processes control texts (paths, arguments, environments) and the head of
 *           the shim's thread memory.
 *
 *      map        key                value                    written by
 *      tasks      task storage       struct hr_probe_task     programs; the daemon marks roots
 *      images     tgid               struct hr_image          programs; the daemon: roots, `cover`
 *      cgroups    cgroup (v2)        1                        the daemon: its processes are roots
 *      calls      system call        struct hr_call           the daemon, before the programs run
 *      files      struct file *      struct hr_file_name      programs: files with a name
 *      inodes     device, inode      struct hr_file_name      programs: mapped files
 *      texts      hash of a NAME     its number               programs: NAMEs that were sent
 *      uring      opcode             op                       the daemon, before the programs run
 *      requests   struct io_kiocb *  struct hr_probe_request  programs: io_uring requests
 *      sums       [side] -> hash     hr_sum_key, hr_sum       programs, into the side `side`
 *      tallies    [side] -> hash     hr_tally_key, hr_tally   the same: operations without a record
 *      buffer     ring buffer        struct hr_probe_*        programs
 */
#ifndef HEADRACE_BPF_PROBE_H
#define HEADRACE_BPF_PROBE_H

#include <stdint.h>

#define HR_PROBE_CALLS	512u /* system calls with higher numbers are not recorded */
#define HR_PROBE_PATH	4096u
#define HR_PROBE_ARGS	2048u
#define HR_PROBE_ENV	16384u
#define HR_PROBE_DEPTH	160u /* maximum number of components of a path */
#define HR_PROBE_MOUNTS 32u  /* maximum number of mounts that a path crosses */
#define HR_PROBE_FILES	32768u
/* How many names the daemon keeps. A name that is older than half of them is sent again. */
#define HR_PROBE_NAMES	  65536u
#define HR_PROBE_NO_NAME  UINT64_MAX /* replaces a number if the buffer had no room for the name */
#define HR_PROBE_IMAGES	  16384u
#define HR_PROBE_CGROUPS  1024u
#define HR_PROBE_LEVELS	  32u /* maximum number of parent cgroups to check */
#define HR_PROBE_REQUESTS 16384u
#define HR_PROBE_SUMS	  32768u
/* The last entries of HR_PROBE_SUMS: they are for sums without a file only. */
#define HR_PROBE_REST	 2048u
#define HR_PROBE_TALLIES 16384u
#define HR_PROBE_BINS	 48u /* the last bin has durations of 2^47 ns and more */
/* An image that is younger than this may still send a hello, and so may its parent. */
#define HR_PROBE_YOUNG_NS 2000000000ull
#define HR_SHIM_NAME	  "libheadrace.so"
#define HR_PROBE_BUFFER	  (16u << 20)

/* ---- maps ------------------------------------------------------------------------------------------- */

/*
 * How to read the arguments of a system call. Positions of arguments count from 1; 0: there is no
 * such argument. If `at` is 1, a dirfd precedes each path.
 */
enum hr_call_how {
	HR_CALL_NONE,
	HR_CALL_FD,
	HR_CALL_VECTOR, /* like HR_CALL_FD; arguments 2 and 3 are an iovec and its length */
	HR_CALL_OPEN,	/* the file is a path, and the result a descriptor */
	HR_CALL_PATH,
	HR_CALL_TWO,	  /* the file is a path, followed by another path */
	HR_CALL_COPY,	  /* copy_file_range, splice: in, offset pointer, out, offset pointer */
	HR_CALL_SENDFILE, /* out, in, offset pointer */
	HR_CALL_MAP	  /* mmap: argument 5 is a descriptor */
};

#define HR_MOVES_IN  1u
#define HR_MOVES_OUT 2u

struct hr_call {
	uint16_t op; /* enum hr_op_id; 0: the call is not recorded */
	uint8_t how; /* enum hr_call_how */
	uint8_t file, asked, offset, flags, at;
	/* HR_MOVES_*: the result is a number of bytes. `offset` 0: at the file's position. */
	uint8_t moves;
	uint8_t spare[7];
};

#define HR_PROBE_URING 64u /* io_uring opcodes from this on are not recorded */

#define HR_IMAGE_ANNOUNCED 1u  /* the IMAGE record was sent */
#define HR_IMAGE_BORROWED  2u  /* a vfork child: the shim of its parent records it */
#define HR_IMAGE_QUIET	   4u  /* `headrace run` itself: only its child processes are recorded */
#define HR_IMAGE_FORKED	   8u  /* no exec has followed the fork from `parent` */
#define HR_IMAGE_SHIM	   16u /* it loaded the shim, so it may send a hello at any time */
#define HR_IMAGE_32BIT	   32u /* it made 32-bit system calls, which are not recorded */

/* A process image: a process from its fork or exec to its next exec, or to its end. */
struct hr_image {
	uint64_t id;	 /* unique in this job's programs; 0: none */
	uint64_t parent; /* id before fork or exec; 0: the process is a root */
	uint64_t born_ns;
	int64_t cover; /* struct hr_item_cover.thread (proto/abi.h) */
	uint32_t covered;
	uint32_t flags; /* HR_IMAGE_* */
};

/* The current system call of a task that belongs to the job. */
struct hr_probe_task {
	uint64_t start_ns; /* CLOCK_BOOTTIME */
	uint64_t image;
	uint64_t name, name2; /* numbers of file names that are known at the start */
	uint64_t path, path2; /* addresses of the path arguments */
	uint64_t cell_file;   /* file of the cell that covers the call */
	uint64_t asked;
	int64_t offset, offset2;
	int32_t fd, fd2;
	uint32_t flags;
	uint32_t settled; /* is_settled(): the shim records only calls with a cell */
	uint16_t op;	  /* 0: the task is in no system call */
	uint16_t cell_op; /* operation of the covering cell: enum hr_op_id, HR_COVER_* */
	uint8_t how;
	uint8_t at;    /* 1: fd and fd2 are the dirfds of path and path2 */
	uint8_t moves; /* HR_MOVES_* */
	uint8_t aio;   /* 1: the task is a thread of libc for POSIX AIO */
	/* The task's last fault on a mapped file. It is counted later, if it was major. */
	uint64_t majors; /* how many major faults the task had before this fault */
	uint64_t fault_ino;
	uint32_t fault_dev;
	uint32_t faulted; /* 0: no fault, or it is already counted */
};
/* stdio reads or writes the buffer of a stream, for single characters or at exit */
#define HR_COVER_EXIT 65535u
#define HR_COVER_CALL 65534u /* a call of the shim without a cell */
#define HR_COVER_OWN  65533u /* a system call of the shim itself, which the program did not make */
#define HR_COVER_AIO  65532u /* a thread of libc that handles a request of POSIX AIO */

/* From proto/calls.def: the calls that submit requests, and aio_return. */
#define HR_OP_AIO_FIRST 416u
#define HR_OP_AIO_LAST	425u

/* True if the cell contains no file, so that the kernel's name identifies the file. */
#define HR_COVER_NAMED(cell_op)                                                                    \
	((cell_op) == 0 || (cell_op) == HR_COVER_EXIT || (cell_op) == HR_COVER_AIO)

struct hr_file_name {
	uint64_t name; /* number of a NAME record */
	uint64_t ino;
	uint32_t dev; /* as in the kernel: major << 20 | minor */
	uint32_t spare;
};

struct hr_inode_key {
	uint64_t ino;
	uint64_t dev;
};

struct hr_probe_request {
	uint64_t image;
	uint64_t start_ns;
	uint64_t name; /* 0: a fixed file, whose name is read when the request ends */
	uint64_t asked;
	int64_t offset;
	uint32_t tid, tgid;
	int32_t fd; /* -1: a fixed file */
	uint16_t op;
	uint8_t moves;
	uint8_t opens;
	uint8_t settled;
	uint8_t fixed; /* the file is in the io_uring's own table of files */
	uint8_t spare[6];
};

struct hr_sum_key {
	uint64_t image;
	uint64_t file; /* HR_COVER_NAMED: number of a NAME; otherwise the shim's hash; 0: no file */
	uint16_t op;
	uint16_t cell_op;
	uint32_t kind; /* enum hr_sum_kind */
};

enum hr_sum_kind {
	HR_SUM_CALL, /* operations that a cell covers */
	HR_SUM_LOST, /* operations whose record had no room */
	HR_SUM_URING,
	HR_SUM_FILL,  /* pages that faults added to the page cache */
	HR_SUM_FETCH, /* pages that a system call added to the page cache */
	HR_SUM_FAULT
};

struct hr_sum {
	uint64_t count;
	uint64_t bytes;
	uint64_t errors;
	uint64_t dur_ns;
};

/* A tally has the operations with the same file, op and size class. */
struct hr_tally_key {
	uint64_t image;
	uint64_t name;
	uint16_t op;
	uint8_t kind; /* enum hr_sum_kind */
	uint8_t bin;  /* size class: from 2^bin up to 2^(bin+1) bytes; bin 0 includes 0 */
	uint32_t failed;
};

struct hr_tally {
	struct hr_sum sum;
	uint64_t max_dur_ns;
	uint64_t first_ns, last_ns; /* first start and last end, CLOCK_BOOTTIME */
	uint32_t dur_hist[HR_PROBE_BINS];
};

/* ---- records in the buffer --------------------------------------------------------------------------- */

enum hr_probe_kind { HR_PROBE_IMAGE = 1, HR_PROBE_NAME, HR_PROBE_OP, HR_PROBE_EXIT };

/* Precedes an image's first OP. Texts follow: executable (like a NAME), arguments, environment. */
struct hr_probe_image {
	uint32_t kind;
	uint32_t tgid; /* pid in the initial pid namespace */
	uint64_t image;
	uint64_t now_ns;
	uint64_t start_ns; /* CLOCK_BOOTTIME at the start of the process */
	uint32_t ppid;
	uint32_t uid;
	uint32_t exe_bytes, args_bytes, env_bytes;
	uint32_t flags; /* HR_IMAGE_* */
	uint64_t parent;
};

/*
 * A file's name. The first walked_bytes are components up to the root of the process, the last
 * first, each with NUL. If there are too many, the walk ends with "...". The path argument of the
 * call follows, absolute or relative to these components. If there is none, the components are the
 * path.
 */
struct hr_probe_name {
	uint32_t kind;
	uint32_t dev;
	uint64_t image;
	uint64_t name;
	uint64_t ino;
	uint32_t mode; /* 0: unknown, because the call failed or has only a path */
	int32_t mount; /* mount id as in mountinfo; -1: unknown */
	uint32_t walked_bytes;
	uint32_t given_bytes; /* size of the path argument without NUL */
};

struct hr_probe_op {
	uint32_t kind;
	uint32_t tid;
	uint64_t image;
	uint64_t name, name2; /* 0: no file */
	uint64_t start_ns;
	uint64_t dur_ns;
	int64_t ret; /* the return value, or -errno */
	uint64_t asked;
	int64_t offset, offset2;
	int32_t fd, fd2;
	uint32_t flags;
	uint16_t op;
	uint8_t sum;	 /* enum hr_sum_kind */
	uint8_t settled; /* 0: the shim may have recorded the same call */
};

struct hr_probe_exit {
	uint32_t kind;
	uint32_t tgid;
	uint64_t image;
	uint64_t now_ns;
	int32_t status; /* as of wait(2) */
	uint32_t exec;	/* 1: an exec ended this image */
};

#endif
