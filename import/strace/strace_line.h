/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strace_line.h - scans one line of strace
 *
 *      18973 1795678693.469718 pread64(3</data/a>, "\177ELF"..., 100, 200) = 100 <0.000011>
 *      | tid | time            | name   | arguments                        | result | duration
 *
 * All texts point into the line. Pure functions; any thread.
 */
#ifndef HEADRACE_IMPORT_STRACE_STRACE_LINE_H
#define HEADRACE_IMPORT_STRACE_STRACE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HR_STRACE_ARGS 8u

struct hr_strace_text {
	const char *p;
	size_t n;
};

enum hr_strace_kind {
	HR_STRACE_CALL,	       /* `text` is the call, with its result */
	HR_STRACE_UNFINISHED,  /* `text` is the call up to here */
	HR_STRACE_INTERRUPTED, /* the same, by a message; the next line may continue the call */
	HR_STRACE_RESUMED,     /* `text` continues an unfinished call of `name` */
	HR_STRACE_EXITED,      /* `text` is the status */
	HR_STRACE_KILLED,      /* `text` is the signal */
	HR_STRACE_SUPERSEDED,  /* `other` has called execve, and continues as `tid` */
	HR_STRACE_COUNTS,      /* the table of -c or -C begins, which ends the trace */
	HR_STRACE_NOTHING      /* signals, messages of strace, stacks (-k), dumps, empty lines */
};

enum hr_strace_clock {
	HR_STRACE_NO_CLOCK, /* no time */
	HR_STRACE_UNIX,	    /* since 1970 (-ttt) */
	HR_STRACE_DAY,	    /* since midnight (-t, -tt) */
	HR_STRACE_STEP	    /* since the line before (-r) */
};

struct hr_strace_line {
	enum hr_strace_kind kind;
	enum hr_strace_clock clock;
	int32_t tid; /* 0: not in the line */
	int32_t other;
	uint64_t time_ns;
	struct hr_strace_text name, text;
};

/* Scans a line without its line end. 0; -EBADMSG, and l->text is the line. */
int hr__strace_line(const char *p, size_t n, struct hr_strace_line *l);

struct hr_strace_call {
	struct hr_strace_text arg[HR_STRACE_ARGS];
	unsigned n_args;
	bool returned; /* false: "= ?" */
	bool restarts; /* the kernel restarts the call, which is then in a later line */
	int64_t ret;   /* -errno if it failed */
	bool has_dur;  /* strace had the option -T */
	uint64_t dur_ns;
	struct hr_strace_text ret_path; /* of a descriptor; n 0: none */
};

/* Scans the arguments and the result. `text` begins after the name and its bracket. 0, -EBADMSG. */
int hr__strace_call(struct hr_strace_text text, struct hr_strace_call *c);

/* Returns the position after a quoted string that begins at `i`. More than t.n: it has no end. */
size_t hr__strace_string_end(struct hr_strace_text t, size_t i);

/* ---- values ---------------------------------------------------------------------------------- */

/* Reads a number (decimal, 0x, 0), and what follows. False: none. */
bool hr__strace_number(struct hr_strace_text t, int64_t *ret, struct hr_strace_text *ret_rest);

/* Reads "F_DUPFD" or a number. False: unknown. */
bool hr__strace_constant(struct hr_strace_text t, uint32_t *ret);

/* Reads "O_RDWR|O_CREAT", "F_DUPFD", "0644". Unknown names are 0. */
uint32_t hr__strace_flags(struct hr_strace_text t);

/* Finds "name=" in a structure, and returns the value. n 0: none. */
struct hr_strace_text hr__strace_member(struct hr_strace_text t, const char *name);

/*
 * Reads a quoted string into `to`, without escapes. Returns its length; -1: no string, or too long.
 */
long hr__strace_string(struct hr_strace_text t, char *to, size_t room);

/*
 * Whether an absolute path begins after the first byte, which is a quote or a bracket. The options -x
 * and -xx write its slash as \x2f.
 */
bool hr__strace_absolute(struct hr_strace_text t);

/* What strace -y shows of a descriptor. */
struct hr_strace_fd {
	int32_t fd;		    /* AT_FDCWD */
	bool shown;		    /* with a path, or what else it is */
	struct hr_strace_text path; /* escaped; n 0: it is not a file */
};
bool hr__strace_fd(struct hr_strace_text t, struct hr_strace_fd *ret);

/* Copies the path of a descriptor without escapes. Returns its length; -1: too long. */
long hr__strace_unescape(struct hr_strace_text t, char *to, size_t room);

#endif
