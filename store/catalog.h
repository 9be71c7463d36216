/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog.h - internals of an open catalogue
 *
 * catalog.c finds the streams, stream_load.c builds a stream from its segments, stream.c and
 * files.c read from a stream. One thread opens the catalogue. Afterwards only the member `files`
 * changes (files.c).
 */
#ifndef HEADRACE_STORE_CATALOG_H
#define HEADRACE_STORE_CATALOG_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/map64.h"
#include "store/folder.h"
#include "store/index.h"
#include "store/segment.h"
#include "store/stream_state.h"

struct hr__files;

/* Smaller segments stay in memory. A query of many small jobs would otherwise open many files. */
#define HR__CONTENT_BYTES (16u << 10)

struct hr__segment {
	const char *store; /* folder that contains `name` */
	const char *name;
	uint64_t bytes;	  /* size when the catalogue was opened */
	uint8_t *content; /* content of a small segment; NULL: read the file */
	/* hr__stream_finish frees all parts except `memory` and the mounts */
	struct hr_index index;
	/* the footer's frame with the paths, if not read yet; offset 0: `index` has the paths */
	struct hr_frame_entry paths;
};

struct hr__stream {
	struct hr_stream view;	 /* the part that callers see */
	struct hr__stream *next; /* with the same key (hr_catalog.by_key) */
	struct hr__segment *segments;
	size_t n_segments, segments_room;
	Headrace__Frame **kept; /* frames to which `view` points */
	size_t n_kept, kept_room;
	uint64_t added_to; /* of its StreamStart */
	bool locked;	   /* in one of the stores, a writer holds the lock */
	pthread_mutex_t files_lock;
	_Atomic(struct hr__files *) files;
	struct hr_arena memory;
};

struct hr_catalog {
	struct hr__stream **streams;
	size_t n_streams, streams_room;
	struct hr_map64 by_key; /* the first stream with a key; only while opening */
	struct hr_stream *views;
	struct hr_problem *problems;
	size_t n_problems, problems_room;
	struct hr_retired *retired;
	size_t n_retired, retired_room;
	struct hr_arena contents;
	uint64_t content_bytes;
	bool journals;
};

struct hr__segment_file {
	char name[16];
	int fd; /* -1: no file is open */
	uint64_t bytes;
	bool whole; /* `content` is the whole file */
	uint8_t content[HR__CONTENT_BYTES];
};

struct hr__stream_folder {
	int fd;
	const char *store;
	const char *name; /* path in the store: "jobs/7/n1.ab" */
	/*
	 * A writer held the lock before the names in the folder were read. If not, no name can be
	 * missing, because only writers add names.
	 */
	bool locked;
	struct hr__folder names;
	struct hr__segment_file segment;
};

/* Adds a line to hr_catalog_problems. If there is no memory for the line, the open will fail. */
__attribute__((format(printf, 2, 3))) void hr__problem(struct hr_catalog *c, const char *format,
						       ...);

/* Adds a folder's segments to a stream, which may already have segments of another store. */
int hr__stream_add_folder(struct hr_catalog *c, struct hr__stream *s, struct hr__stream_folder *f);

/* Reads a small segment. *ret is valid until the next call, or until hr__stream_folder_close. */
int hr__stream_folder_segment(struct hr__stream_folder *f, const char *name, struct hr_source *ret);
void hr__stream_folder_close(struct hr__stream_folder *f);

/* Finds the job's owner in the collector's file `state` or the first JobEvent. -ENODATA: none. */
int hr__folder_owner(int dir_fd, uint32_t *ret_uid);

/* Call this after the last folder. Sorts and joins frames, loads small ones, and reports gaps. */
int hr__stream_finish(struct hr_catalog *c, struct hr__stream *s);
void hr__stream_free(struct hr__stream *s);

/*
 * catalog_order.c: all folders are read. Sorts everything, so that the order does not depend on
 * the file system, and numbers the processes. Returns 0 or -ENOMEM.
 */
int hr__catalog_finish(struct hr_catalog *c);

/* Returns the segment's content, or opens its file, which the caller closes. 0 or -EIO. */
int hr__segment_source(const struct hr__segment *g, struct hr_source *ret);

void hr__files_free(struct hr__files *f);

#endif
