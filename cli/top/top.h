/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top.h - `headrace top`: shows a running job periodically
 *
 * A picture is the totals of the job at one moment (proto/live.proto).
 *
 *      top_find.c     finds the job, and the socket of its headraced
 *      top_fetch.c    fetches a picture, without waiting
 *      top_sums.c     two pictures -> rows of a table: operations of the interval, and all
 *      top_finding.c  the largest loss of the last minute
 *      top_lines.c    rows -> lines on a terminal
 *      top_json.c     rows -> a line of JSON
 *      top.c          options, and the main loop
 */
#ifndef HEADRACE_CLI_TOP_TOP_H
#define HEADRACE_CLI_TOP_TOP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/screen.h"
#include "daemon/control/control.h"
#include "proto/live.pb-c.h"

#define HR_TOP_BINS  64u
#define HR_TOP_WAITS 60u

/* ---- which job (top_find.c) ---- */
struct hr_top_source {
	char socket[256];
	char job[256];
	char store[4096]; /* store of `headrace run`; "": a job of the node service */
	uint32_t attempt;
	bool private; /* a job of `headrace run`; false: of the node service */
};

/*
 * Finds the job with this id or name, or the only running job of the caller (NULL). Returns 0, or
 * the exit status after it has reported a failure.
 */
int hr_top_find(const char *job, const char *socket, struct hr_top_source *ret);

/* ---- one picture (top_fetch.c) ---- */
struct hr_top_fetch {
	int fd; /* if readable: call hr_top_fetch_step; -1: no request is active */
	uint8_t *data;
	size_t bytes, used; /* size of `data`, and received bytes; bytes 0: unknown yet */
	char refusal[512];  /* error text of headraced, or "" */
};

int hr_top_fetch_begin(struct hr_top_fetch *f, const struct hr_top_source *source);

/*
 * Reads the received bytes. 1: *ret is the picture (headrace__live_job__free_unpacked); 0: the
 * picture is incomplete; -errno: failed, f->refusal may contain the reason.
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
	uint64_t wait_ns, steps;    /* 0 in views of files, mounts and operations */
	uint64_t max_ns;	    /* the longest duration since the job began */
	uint64_t hist[HR_TOP_BINS]; /* histogram of durations; all 0 in the view of files */
};

struct hr_top_row {
	uint64_t key;
	struct hr_top_sum all, now; /* sums since the job began, and between the two pictures */
	/* in the views of ranks, workers and processes: one process of the row; NULL: unknown */
	const Headrace__LiveProcess *process;
	const Headrace__LiveFile *file;
	const Headrace__LiveMount *mount;
	uint16_t op;
	bool open;	  /* some process has the file open */
	uint32_t waiters; /* number of live processes that report input waits or steps */
};

struct hr_top_table {
	struct hr_top_row *rows; /* sorted */
	size_t n;
	struct hr_top_sum all, now; /* sums of the whole job */
	/* between the pictures, or since the job began if there is one picture */
	uint64_t interval_ns;
	uint32_t processes;
	uint32_t ranks;
	uint32_t waiters;
};

/*
 * Makes the table of `picture`, whose rows point into the picture. `before`: an earlier picture, or
 * NULL. Sorts both pictures. Returns 0 or -ENOMEM.
 */
int hr_top_sums(Headrace__LiveJob *before, Headrace__LiveJob *picture, enum hr_top_view view,
		enum hr_top_sort sort, struct hr_top_table *ret);
void hr_top_table_done(struct hr_top_table *t);

/* Returns the share of the interval that processes spent in input waits; -1: `waiters` is 0. */
double hr_top_wait(const struct hr_top_sum *now, uint32_t waiters, uint64_t interval_ns);

/* Returns a quantile of the durations (`part` 0.99: the 99th percentile); 0: there are none. */
uint64_t hr_top_quantile(const struct hr_top_sum *s, double part);

/* Returns whether ranks are known. If they are, the first view is by rank. */
bool hr_top_has_ranks(const Headrace__LiveJob *m);

/* ---- the largest loss (top_finding.c) ---- */
struct hr_top_finding {
	char loss[1024]; /* "": unknown */
	char action[1024];
};

/* Finds the largest loss in the store of the job. The texts are empty if it is not known. */
void hr_top_finding_make(const struct hr_top_source *source, struct hr_top_finding *ret);

/* ---- showing ---- */
struct hr_top_display {
	const Headrace__LiveJob *job;
	const struct hr_top_table *table;
	struct hr_top_finding finding; /* the largest loss in the last minute */
	/* The share of waits in each of the last intervals, the latest interval last. */
	double waits[HR_TOP_WAITS];
	unsigned n_waits;
	bool all_columns;
	enum hr_top_view view;
	enum hr_top_sort sort;
	uint64_t every_ns;
	bool paused, help;
	const char *trouble; /* why the picture could not be updated; NULL: it is current */
};

/* Draws a screen of `rows` lines of at most `columns` cells (top_lines.c). */
void hr_top_draw(struct hr_screen_text *to, const struct hr_top_display *display, unsigned columns,
		 unsigned rows);

/* Prints an update as lines for a file or pipe; each line begins with the time (top_lines.c). */
void hr_top_print(FILE *out, const struct hr_top_display *k);

/* Prints an update as a line of JSON (docs/top.md, top_json.c). */
void hr_top_json(FILE *out, const struct hr_top_display *display);

#endif
