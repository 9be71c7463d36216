/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_parts.h - the parts of the summary: what reads them from streams, and what prints them
 *
 * A part without content prints nothing. Zero a struct before its first use.
 */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_PARTS_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_PARTS_H

#include "cli/summary/summary.h"
#include "common/region.h"
#include "query/diagnosis/diagnosis.h"
#include "store/store.h"

/* ---- runs (summary_runs.c) ------------------------------------------------------------------- */

/*
 * Streams that overlap in time, for example those of several nodes, are one run. A stream that
 * begins after all earlier streams have ended is another run of the job. The summary adds up all
 * runs.
 */

/* A stream, or several streams joined. Times are wall clock; 0: unknown. */
struct hr_run_part {
	uint64_t start_ns, end_ns;  /* start and end that headraced stored */
	uint64_t first_ns, last_ns; /* first and last time of a process or operation */
	bool running, unfinished, killed, failed;
};

struct hr_runs {
	struct hr_run_part *list;
	size_t n, room;
};

void hr_run_part_see(struct hr_run_part *part, uint64_t wall_ns);
void hr_run_part_join(struct hr_run_part *to, const struct hr_run_part *from);

/* Return the start and the end of the run, if they are known. */
uint64_t hr_run_part_start(const struct hr_run_part *part);
uint64_t hr_run_part_end(const struct hr_run_part *part);

int hr_runs_add(struct hr_runs *runs, const struct hr_run_part *stream); /* 0 or -ENOMEM */

/* Sets states and durations of the job and its last run. *ret_job: all runs. 0 or -ENOMEM. */
int hr_runs_take(struct hr_runs *runs, struct hr_summary *s, struct hr_run_part *ret_job);
void hr_runs_done(struct hr_runs *runs);

/* ---- ranks and DataLoader workers: lives, missing ranks, killed processes (summary_who.c) ---- */

/*
 * The summary shows I/O time as a share of the time in which at least one process of a rank or
 * worker was alive. Processes that overlap count once. Gaps between processes do not count, because
 * a worker has a new process each epoch.
 */

struct hr_life {
	int rank, worker;
	uint64_t start_ns, end_ns; /* wall clock; end_ns 0: the process is alive */
};

struct hr_lives {
	struct hr_life *list;
	size_t n, room;
};

int hr_lives_add(struct hr_lives *lives, const struct hr_life *life); /* 0 or -ENOMEM */

/* Sets life_ns of each rank and worker. Living processes count until now_ns. */
void hr_lives_sum(struct hr_lives *lives, uint64_t now_ns, struct hr_summary_who *who, size_t n);
void hr_lives_done(struct hr_lives *lives);

/*
 * Sorts s->who by rank and worker, counts ranks, and lists missing and excluded ones. `world`: the
 * world size; 0: unknown.
 */
void hr_ranks_count(struct hr_summary *s, uint32_t world);

/* Counts the process if a signal ended it. Returns 0 or -ENOMEM. */
int hr_ends_add(struct hr_summary *s, const struct hr_process *process);
void hr_ends_free(struct hr_summary *s);

/* Writes the name of a signal to `out`: "SIGKILL", or "SIG40" if it has no name. Returns `out`. */
const char *hr_ends_signal(int number, char *out, size_t bytes);

/* ---- the I/O that the kernel saw, and the recorded I/O (summary_cover.c) --------------------- */

/*
 * This compares the sums of each process (docs/probes.md), so extra records of one file can hide
 * missing records of another file. `headrace query STORE coverage` compares the sums of each file.
 */

struct hr_cover_cell;

struct hr_covers { /* sums of the current stream */
	struct hr_cover_cell *cells;
	bool probed;
};

/* Add a row of the stream. Return 0 or -ENOMEM. */
int hr_covers_rollup(struct hr_covers *c, const struct hr_stream *stream,
		     const Headrace__Rollup *row);
int hr_covers_kernel(struct hr_covers *c, const struct hr_stream *stream,
		     const Headrace__KernelRecord *row, struct hr_summary_cover *sum);

/* Call it at the end of a stream. If probes ran, adds what is not recorded. Resets the sums. */
void hr_covers_take(struct hr_covers *c, const struct hr_stream *stream,
		    struct hr_summary_cover *sum);
void hr_covers_done(struct hr_covers *c);

/* Prints the coverage, unless no probes ran. `store` is quoted. */
void hr_cover_print(const struct hr_summary_cover *cover, const char *store,
		    struct hr_sheet *sheet);

/* ---- the sums of files by path, and which folders have a row (summary_paths.c) --------------- */

/*
 * Files of all processes and nodes with the same path are one row. A folder has a row if its files
 * have a fifth of all I/O time or bytes. Its largest file does not count, and neither do folders
 * with their own row. The sums of a folder without a row go to its parent, so the thousand class
 * folders of ImageNet become one row. Folders of unrelated files, such as / and /tmp, have no row.
 */

struct hr_summary_paths;

struct hr_summary_paths *hr_paths_new(void); /* NULL: out of memory */
void hr_paths_free(struct hr_summary_paths *p);

/* Adds a file record of a stream, unless its file is unknown. Returns 0 or -ENOMEM. */
int hr_paths_add(struct hr_summary_paths *p, const struct hr_stream *s,
		 const Headrace__FileRecord *row);

/* Store the `max` files or folders with most I/O time. Return their number. Free the paths. */
size_t hr_paths_files(const struct hr_summary_paths *p, struct hr_summary_path *ret, size_t max);
size_t hr_paths_folders(const struct hr_summary_paths *p, struct hr_summary_path *ret, size_t max);

/* Adds up files in memory (on tmpfs, memfds), and counts mapped files. Returns 0 or -ENOMEM. */
int hr_paths_special(const struct hr_summary_paths *p, struct hr_summary_sums *ret_memory,
		     struct hr_summary_mapped *ret_mapped);

/* ---- what marks of _headrace contain on a program in Python (summary_python.c) --------------- */

/*
 * Those of functions.py and stacks.py have the reason why a process records no functions or stacks,
 * although the user asked for it. Those of hooks.py have the reason why a module has no marks.
 * Those of steps.py name a framework.
 */

/* Adds a region of the frame. Returns 0 or -ENOMEM. */
int hr_summary_python_add(struct hr_summary_python *p, const Headrace__Regions *frame,
			  const struct hr_region *region);
/* Takes a process into account, whose command line has a blank between words. */
void hr_summary_python_take(struct hr_summary_python *p, const ProtobufCBinaryData *cmdline);
void hr_summary_python_done(struct hr_summary_python *p);

/* Prints why functions, stacks or marks are missing and, without loops, how to mark them. */
void hr_summary_python_print(const struct hr_summary_python *p, bool loops, struct hr_sheet *sheet);

/* ---- how long training loops waited for batches (summary_loops.c) ---------------------------- */

/* Adds a region that a process of the rank reported. */
void hr_loop_add(struct hr_summary_loop *loop, const struct hr_region *region);

bool hr_loops_any(const struct hr_summary *s);

/* Prints a sentence: how long the training loops waited for data. */
void hr_loops_print(const struct hr_summary *s, struct hr_sheet *sheet);

/* Draws a bar for each part of the time of the training loops, if the parts are known. */
void hr_loops_draw(const struct hr_summary *s, struct hr_sheet *sheet);

/* ---- the largest loss of a training job (summary_finding.c) ---------------------------------- */

/* Adds the times of a process (its waits and its loops) to wait_ns and loop_ns. */
void hr_loop_add_life(struct hr_summary_loop *l, const struct hr_part_sums *sums);

/*
 * Sets the finding, the parts, the times of loops, and the bytes read for batches. Set s->events,
 * who, files and folders first. Reads all events, but does nothing if this would take more than
 * about a second. Returns 0 or -ENOMEM.
 */
int hr_summary_diagnose(struct hr_summary *s, const struct hr_catalog *catalog);
void hr_summary_finding_free(struct hr_summary_finding *f);

/* Prints the finding, if there is one. */
void hr_summary_finding_print(const struct hr_summary *s, struct hr_sheet *sheet);

/* ---- text ------------------------------------------------------------------------------------ */

/* Prints a sentence after a label, for example "  missing". */
#define hr__summary_say(sheet, style, label, ...)                                                  \
	hr_sheet_say(sheet, style, HR_SUMMARY_INDENT, label, __VA_ARGS__)

/* summary_missing.c */
/* Returns a text for a sentence: "nothing lost", "15 lost", "the recording has gaps". */
struct hr_human hr__summary_lost(const struct hr_summary *s, bool *ret_complete);
void hr__summary_print_missing(const struct hr_summary *s, struct hr_sheet *sheet);

/* summary_table.c: rates, counts, and rows of folders, files, ranks and workers */
void hr__summary_print_table(const struct hr_summary *s, struct hr_sheet *sheet);

#endif
