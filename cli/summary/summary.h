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

#define HR_SUMMARY_INDENT      12u    /* of sentences, after their labels */
#define HR_SUMMARY_SMALL_BYTES 65536u /* limit below which a read is small */

struct hr_totals {
	uint64_t ops, errors, io_ns; /* a copy is one operation, one read and one write */
	uint64_t reads, read_bytes, read_ns;
	uint64_t writes, written_bytes, write_ns;
	/* calls that neither read nor write; successful opens; time of `others` */
	uint64_t others, opens, meta_ns;
	uint64_t small_reads;
};

struct hr_summary_loop { /* the training loop; 0: not recorded */
	uint64_t waits, wait_ns;
	uint64_t steps, step_ns;
	/* boot time: start of the first wait, step or epoch, and end of the last */
	uint64_t from_ns, to_ns;
	uint64_t loop_ns; /* time in loops, as column loop_s of input-wait; 0: not known */
};

struct hr_summary_who {	  /* a rank's own processes, or one of its workers */
	int rank, worker; /* -1: none */
	bool deselected;
	uint32_t processes;
	uint64_t life_ns; /* time in which at least one of these processes was alive */
	struct hr_totals data;
	struct hr_summary_loop loop;
};

struct hr_summary_sums { /* sums of files */
	uint64_t files, io_ns, read_bytes, written_bytes, opens;
};

/* a file, or a folder with everything below it that has no row of its own */
struct hr_summary_path {
	char *path; /* escaped (common/text.h) */
	struct hr_summary_sums sums;
	/* reads that made batches, and how far they reached into the files; 0: not known */
	uint64_t batch_bytes, batch_extent_bytes;
};

/* Time of the training loops, summed over ranks, as in the table parts. */
struct hr_summary_part {
	const char *name;  /* in that table */
	const char *label; /* for people; parts of one label are one row */
	bool waits;	   /* for a batch */
	uint64_t ns;
};

struct hr_summary_mapped {
	uint64_t files, files_in_memory; /* mapped files; those on tmpfs or memfd */
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

struct hr_summary_cover {		       /* reads and writes of data; all 0: no probes ran */
	uint64_t count, bytes;		       /* seen by the kernel */
	uint64_t bpf_count, bpf_bytes;	       /* recorded by probes, or fetched by a mapping */
	uint64_t missing_count, missing_bytes; /* seen, but not recorded */
	uint64_t by_cause[HR_CAUSE_END];
};

struct hr_summary_loss {
	char *reason;
	uint64_t count, bytes; /* in the unit of the reason (proto/losses.def) */
	char *program; /* program of the first process with reason "no_preload"; else NULL */
};

/* The largest loss of a training job, which is a row of the table findings. */
struct hr_summary_finding {
	char *meaning; /* NULL: no training loop, or too many events to look for it */
	char *whose, *object, *place, *evidence, *action, *gain_note; /* NULL: none */
	uint64_t lost_ns, wall_ns; /* lost_ns 0: nothing is worth a change */
	uint64_t gain_low_ns, gain_high_ns;
};

struct hr_summary {
	char *store, *job;
	char *state; /* "running", "ended", "failed", "killed", "unfinished" */
	uint32_t streams, nodes, ranks, workers;
	uint32_t processes, processes_open;
	uint64_t span_ns; /* span of the job, as in table jobs */
	uint32_t runs;	  /* runs of the job, one after another */
	char *run_state;  /* state of the last run, as in `state` */
	uint64_t run_span_ns;
	int command; /* wait status of CMD, if this run started it; -1: unknown */
	uint64_t stored_bytes;
	uint32_t ranks_expected;
	char *ranks_missing;	/* "3 7-9"; NULL: none, or unknown */
	char *ranks_deselected; /* ranks that --ranks and --local-ranks exclude */
	/* recorded events; operations of level counters are only in the totals */
	uint64_t events;
	uint64_t regions;		/* also counts regions of which only sums are stored */
	struct hr_totals data, runtime; /* totals of the scopes `data` and `runtime` */
	struct hr_summary_sums memory;	/* part of `data`: files in memory, such as tmpfs */
	struct hr_summary_mapped mapped;
	struct hr_summary_cover cover;
	struct hr_summary_killed *killed; /* a row per signal */
	size_t n_killed;
	bool counters_only;	   /* the whole job or a part has only counters */
	uint64_t counters_from_ns; /* when counters_only became true, since the start of the job */
	struct hr_summary_who *who;
	size_t n_who;
	struct hr_summary_finding finding;
	struct hr_summary_part *parts; /* those that took time; none: they are not known */
	size_t n_parts;
	struct hr_summary_path *files, *folders; /* a few each, sorted by io_ns */
	size_t n_files, n_folders;
	struct hr_summary_loss *losses;
	size_t n_losses, losses_room;
	uint64_t lost; /* lost operations */
	struct hr_left_out left_out;
	uint32_t cut_short; /* streams whose headraced was killed or stopped */
	bool partial;	    /* a stream lacks its beginning, which a collector has */
	bool unreported;    /* the store had no room for a report of losses */
	char **problems;    /* problems that the catalogue found */
	size_t n_problems;
};

/* On failure, *ret_error (malloc'ed or NULL) explains the reason. */
int hr_summary_load(const char *store, const char *job, struct hr_summary **ret, char **ret_error);
void hr_summary_free(struct hr_summary *s);

/* Adds a loss that the store does not contain. Returns 0 or -ENOMEM. */
int hr_summary_add_loss(struct hr_summary *s, const char *reason, uint64_t count, uint64_t bytes);

/* Prints at most about 25 lines, and one for each reason of missing data. */
void hr_summary_print(const struct hr_summary *s, struct hr_sheet *sheet);

/* Writes JSON (docs/run.md), and replaces `file` atomically. 0 or -errno. */
int hr_summary_write(const struct hr_summary *s, const char *file);

/* Returns what hr_summary_write would return, and writes no file. */
int hr_summary_check(const char *file);

#endif
