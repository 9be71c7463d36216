/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strace_state.h - the state of a trace of strace while it is read; one thread
 *
 *      strace.c          files and lines
 *      strace_task.c     processes, threads and their births
 *      strace_fd.c       descriptors, file positions, mappings, paths
 *      strace_call.c     finished calls --> operations
 *
 * A trace is one file (strace -f), or one file for each task (strace -ff), whose lines are then
 * merged by their times.
 */
#ifndef HEADRACE_IMPORT_STRACE_STRACE_STATE_H
#define HEADRACE_IMPORT_STRACE_STRACE_STATE_H

#include "common/map64.h"
#include "import/strace/strace_line.h"
#include "import/stream.h"

#define HR__STRACE_NONE	      UINT32_MAX
#define HR__STRACE_PATH_BYTES 8192u
#define HR__STRACE_CLOEXEC    (1u << 31) /* execve closes the descriptor */

enum strace_how {
	STRACE_NONE,
	STRACE_FD,
	STRACE_PATH,
	STRACE_TWO, /* two paths */
	STRACE_OPEN,
	STRACE_OPEN_FD, /* no path; the result has one */
	STRACE_NO_FILE, /* its result is a descriptor of something that is no file */
	STRACE_PAIR,	/* the same for two descriptors, which are in an argument */
	STRACE_CLOSE,
	STRACE_CLOSE_RANGE,
	STRACE_DUP,
	STRACE_DUP_TO,
	STRACE_FCNTL,
	STRACE_VECTOR,
	STRACE_COPY, /* copy_file_range, splice */
	STRACE_SENDFILE,
	STRACE_CHDIR,
	STRACE_FCHDIR,
	STRACE_MMAP,
	STRACE_MUNMAP,
	STRACE_MREMAP,
	STRACE_MAP,    /* madvise, msync */
	STRACE_SUBMIT, /* its operations are not in the trace */
	STRACE_CLONE,
	STRACE_EXEC,
	/* Hooks of the shim that change nothing here. */
	STRACE_SECCOMP = STRACE_NONE,
	STRACE_PRCTL = STRACE_NONE,
	STRACE_REAP = STRACE_NONE,
	STRACE_LEAVE = STRACE_NONE
};

/* Positions of arguments, from 1; 0: none. */
struct strace_shape {
	const char *name;
	uint16_t op;
	uint8_t how;
	uint8_t file, asked, offset, flags, at;
};

/* An open file description: its position is shared by dup and fork. */
struct strace_open {
	int64_t position;  /* -1: unknown */
	uint64_t since_ns; /* end of the open; 0: unknown */
	uint32_t file;	   /* 0: unknown */
	uint32_t refs;	   /* 0: unused */
	uint32_t renames;  /* how many there were when `file` was set */
	char *path; /* of the open, if strace does not show paths of descriptors; NULL: unknown */
	bool append;
};

struct strace_fds {	       /* descriptors of a process */
	struct hr_map64 opens; /* -> index of the description, with HR__STRACE_CLOEXEC */
	uint32_t refs;
};

struct strace_map {
	uint64_t start, end;
	uint32_t file;
};

struct strace_process {
	int32_t pid;
	uint32_t proc; /* in the stream */
	uint32_t fds;
	char *cwd; /* NULL: unknown */
	struct strace_map *maps;
	uint32_t n_maps, maps_room;
	bool described; /* it has called execve, or an operation */
};

struct strace_task {
	int32_t tid;
	uint32_t process;
	bool dead;
	bool seen; /* the trace has lines of it */
};

/* A task that a clone, fork or vfork has made. */
struct strace_birth {
	int32_t tid, parent;
	uint32_t next; /* later birth of the same tid */
	bool thread, shares_files;
};

struct strace_pending { /* an unfinished call */
	char *text;	/* NULL: none */
	size_t n;
	uint64_t time_ns;
	const struct strace_shape *shape;
	int32_t tid;
};

struct strace {
	struct hr_import_file *f;
	struct hr_import_stream *s;
	struct hr_map64 shape_of;   /* hash of a name -> index in the table */
	bool births_only;	    /* first pass over the file */
	enum hr_strace_clock clock; /* of all lines */
	bool merged;		    /* strace -ff */

	struct strace_task *tasks;
	uint32_t n_tasks, tasks_room;
	struct hr_map64 task_of; /* tid -> its last task */
	struct strace_process *processes;
	uint32_t n_processes, processes_room;
	struct strace_birth *births;
	uint32_t n_births, births_room;
	struct hr_map64 birth_of; /* tid -> its next birth */
	struct strace_pending *pending;
	uint32_t n_pending, pending_room;
	struct hr_map64 pending_of; /* tid -> pending */
	int32_t main_tid;	    /* of lines without a tid; 0: unknown */
	/* In output to a terminal: a call that the next line may continue. NULL: none. */
	const char *interrupted_name;
	int32_t interrupted_tid;

	struct strace_fds *fds;
	uint32_t n_fds, fds_room;
	struct strace_open *opens;
	uint32_t n_opens, opens_room, free_open; /* `free_open`: index + 1, 0: none */
	uint32_t n_renames;

	char path[HR__STRACE_PATH_BYTES], text[HR__STRACE_PATH_BYTES];

	uint64_t n_lines, n_bad, first_bad, n_calls, n_timed;
	uint64_t n_fds_shown, n_fds_bare, n_unknown_fds, n_submits, n_torn;
	uint64_t last_ns;
};

/* ---- strace_task.c ---- */

/* Finds the task of a line, or adds it. NULL: no memory. */
struct strace_task *hr__strace_task(struct strace *p, int32_t tid, uint64_t time_ns);
/* The trace has a line of the task. */
void hr__strace_seen(struct strace *p, int32_t tid);
/* Number of tasks without lines. */
uint64_t hr__strace_unseen(const struct strace *p);
int hr__strace_birth_add(struct strace *p, int32_t tid, int32_t parent, bool thread,
			 bool shares_files);
/* Whether a birth of the tid was added whose task has not begun. */
bool hr__strace_birth_known(const struct strace *p, int32_t tid);
/* The process has become another program. */
int hr__strace_exec(struct strace *p, struct strace_task *t, uint64_t time_ns, const char *exe,
		    struct hr_strace_text argv);
/* A task has ended, with the status or signal `how`. */
int hr__strace_exit(struct strace *p, int32_t tid, uint64_t time_ns, struct hr_strace_text how);

/* Sets the unfinished call of a task, and copies `text`. */
int hr__strace_pending_set(struct strace *p, int32_t tid, const struct strace_shape *shape,
			   uint64_t time_ns, struct hr_strace_text text);
struct strace_pending *hr__strace_pending(struct strace *p, int32_t tid); /* NULL: none */
/* Ends the unfinished call with `rest` of its text. 0; -EBADMSG; other errors are fatal. */
int hr__strace_pending_finish(struct strace *p, struct strace_pending *pending,
			      struct hr_strace_text rest, uint64_t end_ns);
/* An execve of `from` continues as `to`. */
int hr__strace_supersede(struct strace *p, int32_t from, int32_t to);
/* Forgets unfinished calls. */
void hr__strace_pending_forget(struct strace *p);

void hr__strace_done(struct strace *p);

/* ---- strace_fd.c ---- */

uint32_t hr__strace_fds_new(struct strace *p);
uint32_t hr__strace_fds_copy(struct strace *p, uint32_t from);
void hr__strace_fds_drop(struct strace *p, uint32_t fds);
/* Ends that processes share descriptors: `fds` gets an index that belongs to the caller. */
int hr__strace_fds_unshare(struct strace *p, uint32_t *fds);
/* Closes descriptors. `only_cloexec`: those that execve closes. */
void hr__strace_fds_close(struct strace *p, uint32_t fds, uint64_t first, uint64_t last,
			  bool only_cloexec);
/* Sets that execve closes the descriptors. */
void hr__strace_fds_cloexec(struct strace *p, uint32_t fds, uint64_t first, uint64_t last);
struct strace_open *hr__strace_open_get(struct strace *p, uint32_t fds, int32_t fd);
/* Gives fd a new description. `refs` of the result is 1. NULL: no memory. */
struct strace_open *hr__strace_open_new(struct strace *p, uint32_t fds, int32_t fd);
int hr__strace_open_dup(struct strace *p, uint32_t fds, int32_t from, int32_t to);
/* Sets whether execve closes the descriptor. A new one remains open. */
void hr__strace_cloexec_set(struct strace *p, uint32_t fds, int32_t fd, bool cloexec);
void hr__strace_open_close(struct strace *p, uint32_t fds, int32_t fd);

/* The file of a descriptor. 0: not a file, or not known. Updates its description. */
uint32_t hr__strace_fd_file(struct strace *p, struct strace_process *of,
			    const struct hr_strace_fd *fd);
/* The file of a path argument, relative to the folder `dir` (NULL: unknown). 0: none. */
uint32_t hr__strace_path_file(struct strace *p, const char *dir, struct hr_strace_text path);
/* The file of a path that strace shows. */
uint32_t hr__strace_shown_file(struct strace *p, struct hr_strace_text shown);

int hr__strace_map_add(struct strace_process *of, uint64_t start, uint64_t bytes, uint32_t file);
void hr__strace_map_remove(struct strace_process *of, uint64_t start, uint64_t bytes);
uint32_t hr__strace_map_file(const struct strace_process *of, uint64_t at);

/* ---- strace_call.c ---- */

/* The table's row of a system call. NULL: it is not file I/O. */
const struct strace_shape *hr__strace_shape(struct strace *p, struct hr_strace_text name);

/* Converts a finished call. `text` begins after the bracket. 0; -EBADMSG; other errors are fatal. */
int hr__strace_finish(struct strace *p, int32_t tid, const struct strace_shape *shape,
		      struct hr_strace_text text, uint64_t start_ns, uint64_t end_ns);

#endif
