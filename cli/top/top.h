/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top.h - `headrace top`: a running job, looked at again and again
 *
 * Purpose   What the parts of the command say to each other.
 *
 *      top_find.c     which job is meant, and where it is asked for
 *      top_ask.c      one picture of it (proto/live.proto), without waiting
 *      top_sums.c     two pictures -> rows of a view: what was done between them, and in all
 *      top_lines.c    rows -> lines of a width, safe for a terminal
 *      top_json.c     rows -> an object on a line
 *      top_screen.c   the terminal: modes, size, keys, what is left behind
 *      top.c          options, and the loop of both kinds
 *
 * Owner     The caller of each init, which is paired with a done. Threads: one.
 */
#ifndef HEADRACE_CLI_TOP_TOP_H
#define HEADRACE_CLI_TOP_TOP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/control/control.h"
#include "proto/live.pb-c.h"

#define HR_TOP_BINS 64u

/* ---- which job (top_find.c) ------------------------------------------------------------------------- */

struct hr_top_source {
	char socket[256];
	char job[256]; /* its id */
	uint32_t attempt;
	bool private; /* of a run, not of the service */
};

/* By id or name (NULL: the only one of the caller's that runs). 0, or an exit status after saying what to do. */
int hr_top_find(const char *job, const char *socket, struct hr_top_source *ret);

/* ---- one picture (top_ask.c) ------------------------------------------------------------------------ */

struct hr_top_ask {
	int fd; /* readable: hr_top_ask_step; -1: none is under way */
	uint8_t *data;
	size_t bytes, used; /* bytes 0: not announced yet */
	char refusal[512];  /* the text of an error, "" else */
};

void hr_top_ask_init(struct hr_top_ask *a);

/* Sends the question. 0 or -errno. */
int hr_top_ask_begin(struct hr_top_ask *a, const struct hr_top_source *source);

/*
 * Takes what has come. 1: *ret is the picture, the caller's to free (headrace__live_job__free_unpacked); 0: there is more to come;
 * -errno: the asking is over (a->refusal may say more).
 */
int hr_top_ask_step(struct hr_top_ask *a, Headrace__LiveJob **ret);
void hr_top_ask_done(struct hr_top_ask *a);

/* ---- what was done (top_sums.c) --------------------------------------------------------------------- */

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
	uint64_t wait_ns, steps;    /* views of who, and of all */
	uint64_t max_ns;	    /* ever */
	uint64_t hist[HR_TOP_BINS]; /* of durations; nothing for files */
};

struct hr_top_row {
	uint64_t key;		    /* what the view tells apart */
	struct hr_top_sum all, now; /* since the begin, and between the two pictures */
	const Headrace__LiveProcess
	    *process; /* views of who: one of them; NULL: nobody in particular */
	const Headrace__LiveFile *file;
	const Headrace__LiveMount *mount; /* NULL: not known */
	uint16_t op;
	bool open;	  /* the file */
	uint32_t waiters; /* live processes that have waited for a batch, or made a step */
};

struct hr_top_table {
	struct hr_top_row *rows; /* sorted */
	size_t n;
	struct hr_top_sum all, now; /* of the whole job, whatever the view */
	uint64_t interval_ns;	    /* between the pictures; of a first one: since the begin */
	uint32_t processes, ranks;  /* alive; told apart */
	uint32_t waiters;
};

/*
 * Rows of `picture`, whose pointers they keep; `before` is an earlier picture, or NULL. Both are put in order on the way.
 * 0 or -ENOMEM.
 */
int hr_top_sums(Headrace__LiveJob *before, Headrace__LiveJob *picture, enum hr_top_view view,
		enum hr_top_sort sort, struct hr_top_table *ret);
void hr_top_table_done(struct hr_top_table *t);

/* Of the interval, the part in which its waiters waited for a batch; -1: there are none. */
double hr_top_wait(const struct hr_top_sum *now, uint32_t waiters, uint64_t interval_ns);

/* Of the durations in a histogram: the value that `part` of 1 are below, within its bin. 0: there are none. */
uint64_t hr_top_quantile(const struct hr_top_sum *s, double part);

const Headrace__LiveProcess *hr_top_process(const Headrace__LiveJob *m, uint64_t proc);
const Headrace__LiveFile *hr_top_file(const Headrace__LiveJob *m, uint32_t file);

/* Whether ranks are known: the view to begin with. */
bool hr_top_has_ranks(const Headrace__LiveJob *m);

/* ---- showing ---------------------------------------------------------------------------------------- */

struct hr_top_look {
	const Headrace__LiveJob *job;
	const struct hr_top_table *table;
	enum hr_top_view view;
	enum hr_top_sort sort;
	uint64_t every_ns;
	bool paused, help;
	const char *trouble; /* why what is shown is old; NULL: it is not */
};

/* Text that grows; `failed` when memory is out. */
struct hr_top_text {
	char *s;
	size_t bytes, room;
	bool failed;
};

/* A screen of `rows` lines of at most `columns` cells; each line ends by what clears the rest of it. top_lines.c */
void hr_top_draw(struct hr_top_text *to, const struct hr_top_look *look, unsigned columns,
		 unsigned rows);

/* A few lines for a file or a pipe, the time first. top_lines.c */
void hr_top_print(FILE *out, const struct hr_top_look *look);

/* One line. The keys are a contract: docs/top.md. top_json.c */
void hr_top_json(FILE *out, const struct hr_top_look *look);

/* "rank 3 worker 1", "/data/x", "pread64 (read)": raw bytes. top_lines.c */
void hr_top_label(const struct hr_top_row *row, enum hr_top_view view, char *ret, size_t bytes);

/* ---- the terminal (top_screen.c) -------------------------------------------------------------------- */

/* Whether standard input and output are a terminal that can be drawn on. */
bool hr_top_screen_usable(void);

/* Takes it over: no echo, keys at once, the other screen. *ret_fd: readable when a signal came. 0 or -errno. */
int hr_top_screen_open(int *ret_fd);

/* As it was, wherever it stands; does nothing when it is not open. */
void hr_top_screen_close(void);

enum hr_top_event { HR_TOP_NOTHING, HR_TOP_REDRAW, HR_TOP_END };

/* Takes the signals that came: a new size, stopped and continued, told to end (*ret_signal, else 0). */
enum hr_top_event hr_top_screen_signals(int *ret_signal);

void hr_top_screen_size(unsigned *ret_columns, unsigned *ret_rows);

/* Puts a whole screen at once. */
void hr_top_screen_put(const struct hr_top_text *text);

#endif
