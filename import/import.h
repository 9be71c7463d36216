/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - makes a job of a store from the files of another tool
 *
 * The content of a file decides which reader (reader.h) reads it. Each file is read by one thread,
 * which writes a stream (stream.h) for each node in it. After an error, or when `stop` is set, the
 * streams of the job are removed.
 *
 * With `into`, the files are traces of a run that headrace has recorded. Their regions become
 * further streams of the recorded job.
 *
 * Owner     The caller; hr_import_done() frees the result.
 * Threads   The call starts and ends its own.
 */
#ifndef HEADRACE_IMPORT_IMPORT_H
#define HEADRACE_IMPORT_IMPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hr_import_options {
	const char *store; /* an existing store, or the folder to create */
	const char *job;   /* NULL: the name of the file, or of the folder of all files */
	bool into;	   /* adds regions to this job; NULL: to the last job of the store */
	const char *node;  /* of data that names no host; NULL: "unknown" */
	/* With `into`: the rank of traces that name none, plus 1. 0: unknown. */
	uint32_t rank_plus1;
	uint32_t ranks;		 /* number of ranks that the job had; 0: as the files state */
	unsigned threads;	 /* number of files at a time; 0: number of CPUs */
	const atomic_bool *stop; /* set by a signal handler; NULL: never */
};

struct hr_import_result {
	char *job;
	uint64_t files;	      /* files that were read, at least in part */
	uint64_t bad_files;   /* of these, files of which more than a half could not be read */
	uint64_t input_bytes; /* of all files, as they are on disk */
	uint64_t operations, regions, processes;
	uint64_t moved_bytes; /* that the operations read and wrote */
	char **clocks;	      /* with `into`: how the clock of each file was found */
	size_t n_clocks;
	char **problems; /* one line for each thing that is missing */
	size_t n_problems;
};

/*
 * Imports n files. Returns 0; -EEXIST: the store has this job; -ENODATA: no file has data of a
 * known format; -ECANCELED: `stop` was set; or another error. *ret_error: malloc'ed text.
 */
int hr_import(const struct hr_import_options *o, const char *const *files, size_t n,
	      struct hr_import_result *ret, char **ret_error);
void hr_import_done(struct hr_import_result *r);

#endif
