/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top.h - `headrace top`: shows a running job periodically
 *
 *      top_find.c     finds the job, and the socket of its headraced
 *      top_fetch.c    fetches a picture (totals of the job at one moment: proto/live.proto), without waiting
 *      top_sums.c     two pictures -> rows of a view: operations between them, and in all
 *      top_finding.c  the largest loss of the last minute
 *      top_lines.c    rows -> lines of a width, safe for a terminal
 *      top_json.c     rows -> an object on a line
 *      top_screen.c   the terminal: modes, size, keys
 *      top.c          options, and the main loop
 */
#ifndef HEADRACE_CLI_TOP_TOP_H
#define HEADRACE_CLI_TOP_TOP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/control/control.h"
#include "proto/live.pb-c.h"

#define HR_TOP_BINS  64u
#define HR_TOP_WAITS 60u

/* ---- which job (top_find.c) ---- */
struct hr_top_source {
	char socket[256];
	char job[256];	  /* id of the job */
	char store[4096]; /* of a job of `headrace run`; else "" */
	uint32_t attempt;
	bool private; /* a job of `headrace run`, not of the service */
};

/*
 * Finds a job by id or name; NULL: the caller's only running job. Returns 0, or the command's exit
 * status after it has reported the failure.
 */
int hr_top_find(const char *job, const char *socket, struct hr_top_source *ret);

/* ---- one picture (top_fetch.c) ---- */
struct hr_top_fetch {
	int fd; /* readable: call hr_top_fetch_step; -1: no request is active */
	uint8_t *data;
	size_t bytes, used; /* sizes of `data`; 0: the size is not known yet */
	char refusal[512];  /* the text of headraced's error, else "" */
};

int hr_top_fetch_begin(struct hr_top_fetch *f, const struct hr_top_source *source);

/*
 * Reads what has arrived. 1: *ret is the picture (headrace__live_job__free_unpacked); 0: more
 * follows; -errno: the request failed, and f->refusal may contain the cause.
 */
int hr_top_fetch_step(struct hr_top_fetch *f, Headrace__LiveJob **ret);
void hr_top_fetch_done(struct hr_top_fetch *f);

/* ---- sums (top_sums.c) ---- */
enum hr_top_view {
	HR_TOP_RANK,
	HR_TOP_WORKER,
	HR_TOP_PROCESS,
	HR_TOP_FILE,
	HR_TOP_MOUNT,
	HR_TOP_CLASS,
	HR_TOP_OP,
	HR_TOP_VIEWS
};
enum hr_top_sort { HR_TOP_TIME, HR_TOP_BYTES, HR_TOP_OPS, HR_TOP_LATENCY, HR_TOP_SORTS };

extern const char *const hr_top_view_names[HR_TOP_VIEWS]; /* "rank", "worker"... */
extern const char *const hr_top_sort_names[HR_TOP_SORTS];

struct hr_top_sum {
	uint64_t ops, bytes, errors, dur_ns;
	uint64_t wait_ns, steps;    /* only in views of processes, and in sums of the job */
	uint64_t max_ns;	    /* longest duration since the job began */
	uint64_t hist[HR_TOP_BINS]; /* histogram of durations; empty for files */
};

struct hr_top_row {
	uint64_t key;		    /* identifies the row in its view */
	struct hr_top_sum all, now; /* sums since the job began; sums between the two pictures */
	/* in views of processes: one process of the row; NULL: unknown */
	const Headrace__LiveProcess *process;
	const Headrace__LiveFile *file;
	const Headrace__LiveMount *mount; /* NULL: unknown */
	uint16_t op;
	bool open;	  /* a process has the file open */
	uint32_t waiters; /* live processes with input waits or steps */
};

struct hr_top_table {
	struct hr_top_row *rows; /* sorted */
	size_t n;
	struct hr_top_sum all, now; /* sums of the whole job, in every view */
	uint64_t interval_ns; /* between the pictures; with one picture: since the job began */
	uint32_t processes;   /* live processes */
	uint32_t ranks;
	uint32_t waiters;
};

/*
 * Makes the rows of `picture`; the rows point into the picture. `before`: an earlier picture, or
 * NULL. Sorts both pictures. 0 or -ENOMEM.
 */
int hr_top_sums(Headrace__LiveJob *before, Headrace__LiveJob *picture, enum hr_top_view view,
		enum hr_top_sort sort, struct hr_top_table *ret);
void hr_top_table_done(struct hr_top_table *t);

/* Returns the share of the interval that waiters spent in input waits; -1: no waiters. */
double hr_top_wait(const struct hr_top_sum *now, uint32_t waiters, uint64_t interval_ns);

/* Returns the quantile `part` (0 to 1) of the durations, interpolated in a bin. 0: no durations. */
uint64_t hr_top_quantile(const struct hr_top_sum *s, double part);

const Headrace__LiveProcess *hr_top_process(const Headrace__LiveJob *m, uint64_t proc);
const Headrace__LiveFile *hr_top_file(const Headrace__LiveJob *m, uint32_t file);

/* Returns whether ranks are known. If so, the first view is by rank. */
bool hr_top_has_ranks(const Headrace__LiveJob *m);

/* ---- the largest loss (top_finding.c) ---- */
struct hr_top_finding {
	char loss[1024];   /* share of the time, and cause; "": not known */
	char action[1024]; /* what would help; "": not known */
};

/* Reads the store of the job, if it has one. Returns 0 or -errno; then, the texts are empty. */
int hr_top_finding_make(const struct hr_top_source *source, struct hr_top_finding *ret);

/* ---- showing ---- */
struct hr_top_display {
	const Headrace__LiveJob *job;
	const struct hr_top_table *table;
	struct hr_top_finding finding; /* of the last minute */
	/* Shares of the last intervals in which training loops waited, the latest one last. */
	double waits[HR_TOP_WAITS];
	unsigned n_waits;
	bool all_columns;
	enum hr_top_view view;
	enum hr_top_sort sort;
	uint64_t every_ns;
	bool paused, help;
	const char *trouble; /* why the picture is old; NULL: it is current */
};

/* Growing text; `failed`: memory was short, and text is missing. */
struct hr_top_text {
	char *s;
	size_t bytes, room;
	bool failed;
};

/* Draws a screen of `rows` lines of at most `columns` cells (top_lines.c). */
void hr_top_draw(struct hr_top_text *to, const struct hr_top_display *display, unsigned columns,
		 unsigned rows);

/* Prints some lines for a file or a pipe, each with the time first (top_lines.c). */
void hr_top_print(FILE *out, const struct hr_top_display *k);

/* Prints one line of JSON, whose keys docs/top.md documents (top_json.c). */
void hr_top_json(FILE *out, const struct hr_top_display *display);

/* ---- the terminal (top_screen.c) ---- */
/* Returns whether standard output is a terminal that top can draw on. */
bool hr_top_screen_usable(void);

/* Opens the alternate screen, without echo. *ret_fd: readable after a signal. */
int hr_top_screen_open(int *ret_fd);

/* Restores the terminal if the screen is open. */
void hr_top_screen_close(void);

enum hr_top_event { HR_TOP_NOTHING, HR_TOP_REDRAW, HR_TOP_END };

/* Handles signals: a new size, stop and continue, and the end (*ret_signal, else 0). */
enum hr_top_event hr_top_screen_signals(int *ret_signal);

void hr_top_screen_size(unsigned *ret_columns, unsigned *ret_rows);

void hr_top_screen_put(const struct hr_top_text *text);

#endif
