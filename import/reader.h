/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - what a reader of a format implements, and what it may call besides stream.h
 *
 * To add a format: write a struct hr_reader, and add a row to readers.def. The first reader whose
 * probe accepts the content gets the file. A reader converts as much as it can: it counts what
 * it cannot convert with hr_import_missing() or hr_import_lose(), and fails only if the store or
 * the memory does.
 *
 * Threads   A file belongs to one thread at a time. Readers of several files run at the same time.
 */
#ifndef HEADRACE_IMPORT_READER_H
#define HEADRACE_IMPORT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/loss.h"
#include "import/input.h"

struct hr_import; /* one call of hr_import */
struct hr_import_stream;

struct hr_import_file {
	struct hr_import *import;
	const char *path; /* as the user named it */
	const char *name; /* relative to the folder that all files share */
	uint32_t index;	  /* number of the file, from 0 */
	bool found;	  /* in a folder that the user named */
	struct hr_input *input;
	struct hr_import_stream *streams; /* of the nodes in this file, see hr_import_stream */
	uint32_t part; /* a reader that finds another recording in the file adds 1: new streams */
};

#define HR_READER_OTHER 1

struct hr_reader {
	const char *name; /* "pfw": the value of the job's label `imported` */
	const char *what; /* for messages: "DFTracer trace" */
	/* Whether `head` (hr_input_head) is the begin of a file of this format. */
	bool (*probe)(const uint8_t *head, size_t bytes);
	/*
	 * Called for each file before the first `read`, by one thread, with the same bytes. For
	 * facts that other files need. NULL: nothing to do.
	 */
	void (*survey)(struct hr_import_file *f, const uint8_t *head, size_t bytes);
	/*
	 * Reads f->input from its begin. 0 or -errno; HR_READER_OTHER: it is of another format,
	 * which the probe could not see, and nothing was added.
	 */
	int (*read)(struct hr_import_file *f);
};

#define HR_READER(name) extern const struct hr_reader hr_reader_##name;
#include "import/readers.def"
#undef HR_READER

/* Whether the import was cancelled. A reader checks it now and then, and returns -ECANCELED. */
bool hr_import_stopped(const struct hr_import_file *f);

/* Adds a line for the user, which begins with the path of the file. */
void hr_import_problem(struct hr_import_file *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ends the import, with a message that begins with the path of the file. Returns `error`. */
int hr_import_fail(struct hr_import_file *f, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define hr_import_refuse(f, ...) hr_import_fail(f, -EINVAL, __VA_ARGS__)

/* Counts a loss that belongs to no stream, because nothing is known about its node. */
void hr_import_lose(struct hr_import_file *f, enum hr_loss_reason reason, uint64_t count);

/* Does both: adds a line, and counts the loss that it reports. count 0: does nothing. */
void hr_import_missing(struct hr_import_file *f, enum hr_loss_reason reason, uint64_t count,
		       const char *format, ...) __attribute__((format(printf, 4, 5)));

struct hr_import_bad {
	uint64_t n, all;
	const char *unit; /* what they are, in the plural */
	uint64_t first;	  /* number of the first line of them; 0: unknown */
};

/*
 * Reports parts of a file that could not be read, and counts them as a loss. n 0: does nothing. If
 * they are more than a half, the import counts the file in `bad_files`.
 */
void hr_import_bad(struct hr_import_file *f, const struct hr_import_bad *bad);

/* File i of the import, in the order in which they are read. */
const struct hr_import_file *hr_import_file_at(const struct hr_import_file *f, size_t i);

/* Number of files, and of ranks that the user stated (0: none). */
size_t hr_import_files(const struct hr_import_file *f);
uint32_t hr_import_ranks(const struct hr_import_file *f);

/* The largest pid that any file has noted before files are read (in `survey`). 0: none. */
void hr_import_pid_note(struct hr_import_file *f, uint64_t pid);
uint64_t hr_import_largest_pid(const struct hr_import_file *f);

/*
 * Names that all files share: texts by a number, for example a hash. If files publish different
 * texts, that of the first file counts. hr_import_shared_find is complete only after all surveys
 * (for what surveys have published), or after all files. Both are thread-safe.
 */
enum hr_import_shared { HR_IMPORT_HOSTS, HR_IMPORT_PATHS, HR_IMPORT_TEXTS, HR_IMPORT_SHARED };
int hr_import_shared_add(struct hr_import_file *f, enum hr_import_shared kind, uint64_t key,
			 const void *text, size_t bytes);
/* Copies the text (malloc'ed, with a NUL). NULL: unknown. */
char *hr_import_shared_find(struct hr_import *i, enum hr_import_shared kind, uint64_t key,
			    size_t *ret_bytes);

#endif
