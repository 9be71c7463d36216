/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.h - the summary at the end of a run, computed from rollups and file records
 *
 * It answers "where did my I/O time go?" without DuckDB. It reads only the small frames of a job's
 * streams, never events, so it is fast even for long jobs. Strings belong to the summary.
 *
 * `io_ns` sums durations over threads, and may exceed the wall clock. `span_ns` is wall time.
 */
#ifndef HEADRACE_CLI_SUMMARY_SUMMARY_H
#define HEADRACE_CLI_SUMMARY_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/left_out.h"
#include "cli/sheet.h"
#include "common/cause.h"

#define HR_SUMMARY_INDENT      12u    /* column at which sentences begin, after their labels */
#define HR_SUMMARY_SMALL_BYTES 65536u /* a smaller read counts as small */

struct hr_totals {
	/* a copy counts in ops once, and in reads and writes once each */
	uint64_t ops, errors, io_ns;
	uint64_t reads, read_bytes, read_ns;
	uint64_t writes, written_bytes, write_ns;
	/* number of other calls; of successful opens; duration of the other calls */
	uint64_t others, opens, meta_ns;
	uint64_t small_reads;
};

struct hr_summary_loop { /* the training loop of a process; 0: not recorded */
	uint64_t waits, wait_ns;
	uint64_t steps, step_ns;
	/* boot time: start of the first wait, step or epoch; end of the last one */
	uint64_t from_ns, to_ns;
	/* time in loops, like column loop_s of the query input-wait; 0: unknown */
	uint64_t loop_ns;
};

/* the main processes of a rank, or the processes of a DataLoader worker */
struct hr_summary_who {
	int rank, worker; /* -1: none */
	bool deselected;
	uint32_t processes;
	uint64_t life_ns; /* time in which at least one of these processes was alive */
	struct hr_totals data;
	struct hr_summary_loop loop;
};

struct hr_summary_sums {
	uint64_t files, io_ns, read_bytes, written_bytes, opens;
};

/* A file; or a folder, whose sums leave out files and folders that have their own row. */
struct hr_summary_path {
	char *path; /* escaped (common/text.h) */
	struct hr_summary_sums sums;
	/* bytes read for batches; sum of the ends of the farthest reads of each file; 0: unknown */
	uint64_t batch_bytes, batch_extent_bytes;
};

/* A part of the time of the training loops, summed over ranks, as in the table `parts`. */
struct hr_summary_part {
	const char *name;  /* name of the part in the table */
	const char *label; /* text for people; parts with the same label have one row */
	bool waits;	   /* time in which the loop waited for a batch */
	uint64_t ns;
};

struct hr_summary_mapped {
	uint64_t files, files_in_memory; /* mapped files in all; mapped files on tmpfs or memfd */
	uint64_t maps;
};

#define HR_KILLED_NAMED 3u
struct hr_summary_killed { /* processes that a signal ended */
	char *signal;	   /* "SIGKILL" */
	uint32_t processes;
	struct {
		int rank, worker, pid; /* -1: none */
	} first[HR_KILLED_NAMED];
};

/* reads and writes of data files; all 0: no probes ran */
struct hr_summary_cover {
	uint64_t count, bytes; /* operations that the kernel saw */
	/* operations that probes recorded, or pages that a mapping read */
	uint64_t bpf_count, bpf_bytes;
	/* operations that the kernel saw, and that are not recorded */
	uint64_t missing_count, missing_bytes;
	uint64_t by_cause[HR_CAUSE_END];
};

struct hr_summary_loss {
	char *reason;
	uint64_t count, bytes; /* in the unit of the reason (proto/losses.def) */
	char *program;	       /* reason "no_preload": program of the first process; else NULL */
};

/* The largest loss of a training job, from the table `findings`. */
struct hr_summary_finding {
	bool failed;   /* the training: it has no loss of time */
	char *meaning; /* NULL: there is no training loop, or too many events to read */
	char *whose, *object, *place, *evidence, *action, *gain_note;
	uint64_t lost_ns, wall_ns; /* lost_ns 0: no change is worthwhile, or `failed` */
	uint64_t gain_low_ns, gain_high_ns;
};

enum { HR_SUMMARY_FUNCTIONS, HR_SUMMARY_STACKS, HR_SUMMARY_MARKS, HR_SUMMARY_PYTHON_KINDS };

/* Functions and stacks of Python, and its frameworks (summary_python.c). */
struct hr_summary_python {
	const char *globs;  /* `--functions` of this run; NULL: not given */
	uint64_t functions; /* recorded calls */
	char
	    *reasons[HR_SUMMARY_PYTHON_KINDS]; /* why a process lacks them; NULL: none lacks them */
	/* A framework that the program has imported, and whose steps may be unknown; NULL: none. */
	char *framework;
	bool hangs;	   /* something lasted much longer than usual */
	uint32_t ignoring; /* processes whose options let Python ignore PYTHONPATH */
};

struct hr_summary {
	char *store, *job;
	char *state; /* "running", "ended", "failed", "killed", "unfinished" */
	uint32_t streams, nodes, ranks, workers;
	uint32_t processes, processes_open;
	uint64_t span_ns; /* duration of the job, as in the table `jobs` */
	uint32_t runs;	  /* number of runs of the job, one after another */
	char *run_state;  /* like `state`, of the last run */
	uint64_t run_span_ns;
	int command; /* wait status of CMD, if this run started it; -1: unknown */
	uint64_t stored_bytes;
	uint32_t ranks_expected;
	char *ranks_missing;	/* "3 7-9"; NULL: none is missing, or it is unknown */
	char *ranks_deselected; /* ranks that --ranks and --local-ranks exclude */
	/* recorded events; at the level `counters`, operations are only in the totals */
	uint64_t events;
	uint64_t regions; /* includes regions that are stored as sums only */
	struct hr_totals data, runtime;
	/* files in memory, such as on tmpfs; `data` includes them */
	struct hr_summary_sums memory;
	struct hr_summary_mapped mapped;
	struct hr_summary_cover cover;
	struct hr_summary_killed *killed; /* one entry per signal */
	size_t n_killed;
	struct hr_summary_python python;
	bool counters_only;	   /* a part of the job, or the whole job, has counters only */
	uint64_t counters_from_ns; /* start of this part, as a time since the start of the job */
	struct hr_summary_who *who;
	size_t n_who;
	struct hr_summary_finding finding;
	struct hr_summary_part *parts; /* parts with time; n_parts 0: unknown */
	size_t n_parts;
	/* the files and folders with most I/O time, sorted by io_ns */
	struct hr_summary_path *files, *folders;
	size_t n_files, n_folders;
	struct hr_summary_loss *losses;
	size_t n_losses, losses_room;
	uint64_t lost;
	struct hr_left_out left_out;
	uint32_t cut_short; /* number of streams whose headraced was killed or stopped */
	bool partial;	    /* a stream lacks its beginning, which only the collector has */
	bool unreported;    /* the store had no space for a report of losses */
	char **problems;    /* texts of problems that the catalogue found */
	size_t n_problems;
};

/* On failure, *ret_error (malloc'ed or NULL) explains the reason. */
int hr_summary_load(const char *store, const char *job, struct hr_summary **ret, char **ret_error);
void hr_summary_free(struct hr_summary *s);

/* Adds a loss that the store does not contain. Returns 0 or -ENOMEM. */
int hr_summary_add_loss(struct hr_summary *s, const char *reason, uint64_t count, uint64_t bytes);

/* Prints about 25 lines, and a line for each reason of missing data. */
void hr_summary_print(const struct hr_summary *s, struct hr_sheet *sheet);

/* Writes JSON (docs/run.md) to `file`, which it replaces atomically. Returns 0 or -errno. */
int hr_summary_write(const struct hr_summary *s, const char *file);

/* Returns the result that hr_summary_write would return, but writes nothing. */
int hr_summary_check(const char *file);

#endif
