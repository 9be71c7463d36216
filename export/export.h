/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.h - writes a job in the format of another tool (formats.def)
 *
 * `headrace export` and the child processes of a collector use it: they open the stores by
 * hr_ask_open (query/ask.h), and then call hr_export_answer instead of hr_asking_answer.
 */
#ifndef HEADRACE_EXPORT_EXPORT_H
#define HEADRACE_EXPORT_EXPORT_H

#include <stdio.h>

#include "export/walk.h"
#include "query/ask.h"
#include "query/query.h"

enum hr_export_format {
#define HR_EXPORT(id, ...) HR_EXPORT_##id,
#include "export/formats.def"
#undef HR_EXPORT
	HR_EXPORT_FORMATS
};

/* Return "perfetto", ".pftrace" and what opens the files. */
const char *hr_export_name(enum hr_export_format format);
const char *hr_export_suffix(enum hr_export_format format);
const char *hr_export_reader(enum hr_export_format format);
/*
 * Returns the name of the file of one rank (malloc'ed), such as "rank3.pftrace". `run` is
 * "train.p8", the program and the number of ranks, which Extra-Deep reads from the names.
 */
char *hr_export_rank_name(enum hr_export_format format, const char *run, const char *rank);
bool hr_export_format(const char *name, enum hr_export_format *ret);

/* What a trace contains. Darshan's logs have sums, which are not counted. */
struct hr_export_counts {
	uint64_t operations, regions;
};

struct hr_export_options {
	enum hr_export_format format;
	const char *node; /* NULL: all */
	int64_t rank;	  /* -1: all */
	int scope;	  /* of operations: 0 data, 1 runtime; -1: both */
	/* ns since the begin of the job; below 0: before its end */
	int64_t from_ns, to_ns;	       /* INT64_MIN, INT64_MAX: no limit */
	int64_t first_step, last_step; /* -1: all */
	uint64_t max_bytes; /* of the output; 0: no limit; UINT64_MAX: the format's own */
	bool plain;	    /* formats of text are not compressed */
	/* NULL, or what a successful export adds its content to. */
	struct hr_export_counts *counts;
};

/* Returns options that select the whole job. */
struct hr_export_options hr_export_all(enum hr_export_format format);

/*
 * Sets the options from words such as "rank=3", which refer to the words. The names: node, rank,
 * scope, from, to_time (seconds), step (N or N-M), max_size (bytes, or 200M), plain (1). Reports a
 * mistake to `messages`, and returns false.
 */
bool hr_export_parse(struct hr_export_options *o, char *const *words, size_t n_words,
		     const struct hr_sink *messages);

/* One export, as its writer sees it. */
struct hr_export {
	const struct hr_export_options *options;
	struct hr_asking *asking;
	uint64_t done,
	    total; /* progress, in a unit that the writer chooses; by default operations */
	struct hr_query *query; /* SQL on the same job */
	struct hr_walk *walk;
	/* What the recording lacks, as lines of text that every answer about this job has. */
	char **notes;
	size_t n_notes, notes_room;
	int64_t start_ns, end_ns; /* wall clock: begin of the job, and its end or last message */
	/* Operations that the writer has read, and what is shorter than its limits. */
	uint64_t operations, operations_left_out, regions_left_out;
	uint64_t damaged; /* frames with operations that the writer could not read */
	char *error;	  /* malloc'ed advice of a writer that failed; NULL: none */
};

/* Writes the job. The status and messages are those of hr_asking_answer. */
enum hr_ask_status hr_export_answer(struct hr_asking *asking, const struct hr_export_options *o,
				    FILE *to);

/* For writers: reports progress. Returns -EINTR if the user has interrupted the export, else 0. */
int hr_export_advance(struct hr_export *x, uint64_t more);

/*
 * For writers: calls `batch` with the selected operations of each frame of a stream, until it does
 * not return 0. Reports progress, and counts damaged frames. Returns 0, -ENOMEM, -EINTR or the
 * result of `batch`.
 */
int hr_export_events(struct hr_export *x, const struct hr_walk_stream *ws, hr_walk_visit *batch,
		     void *self);

/* For writers: returns a note about frames that could not be read (malloc'ed), or NULL. */
char *hr_export_damage(const struct hr_export *x);

/* ---- writers: 0 or -errno ---- */
int hr_perfetto_write(struct hr_export *x, FILE *to);
int hr_chrome_write(struct hr_export *x, FILE *to);
int hr_pfw_write(struct hr_export *x, FILE *to);
int hr_darshan_export(struct hr_export *x, FILE *to);
int hr_nsys_write(struct hr_export *x, FILE *to);

#endif
