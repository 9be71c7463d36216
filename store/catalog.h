/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog.h - internals of an open catalogue
 *
 * catalog.c finds the streams, stream_load.c builds a stream from its segments, stream.c and
 * files.c read from a stream. One thread opens the catalogue; afterwards only `files` changes
 * (files.c).
 */
#ifndef HEADRACE_STORE_CATALOG_H
#define HEADRACE_STORE_CATALOG_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/folder.h"
#include "store/index.h"
#include "store/segment.h"
#include "store/stream_state.h"

struct hr__files;

/* Small segments stay in memory. Otherwise, a query of many small jobs would mostly open files. */
#define HR__CONTENT_BYTES (16u << 10) /* per segment */

struct hr__segment {
	const char *store;  /* folder that contains `name` */
	const char *name;   /* "jobs/7/n1.ab/000003.seg" */
	uint64_t bytes;	    /* at the time when the catalogue was opened */
	uint8_t *content;   /* the whole content of a small segment; NULL: read the file */
	uint64_t first_seq; /* from the header */
	/* hr__stream_finish frees all of it except `memory` and mounts */
	struct hr__index index;
	/* the footer's paths frame if it is not read yet; offset 0: index contains the paths */
	struct hr__frame_entry paths;
	bool sealed;
};

struct hr__stream {
	struct hr_stream view;	 /* callers get a pointer to it */
	struct hr__stream *next; /* next stream in the same bucket of hr_catalog.buckets */
	struct hr__segment *segments;
	size_t n_segments, segments_room;
	Headrace__Frame **kept; /* frames to which pointers of `view` refer */
	size_t n_kept, kept_room;
	bool locked; /* a writer holds the lock in one of the stores */
	pthread_mutex_t files_lock;
	_Atomic(struct hr__files *) files;
	struct hr_arena memory;
};

struct hr_catalog {
	struct hr__stream **streams;
	size_t n_streams, streams_room;
	struct hr__stream **buckets; /* by job, node, attempt and instance; only for the opening */
	size_t n_buckets;	     /* is a power of two */
	struct hr_stream *views;     /* result of hr_catalog_streams */
	struct hr_problem *problems;
	size_t n_problems, problems_room;
	struct hr_retired *retired;
	size_t n_retired, retired_room;
	struct hr_arena contents; /* content of the segments in memory */
	uint64_t content_bytes;
	bool journals; /* result of hr_catalog_journals */
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
	 * Whether a writer had the lock before the folder's names were read. Only a writer adds
	 * names, so without one the names are complete.
	 */
	bool locked;
	struct hr__folder names;
	struct hr__segment_file segment; /* the segment that was opened last */
};

/* Adds a line to hr_catalog_problems. If memory is short, drops the line; the open then fails. */
__attribute__((format(printf, 2, 3))) void hr__problem(struct hr_catalog *c, const char *format,
						       ...);

/* Adds a folder's segments to a stream, which may already have segments of another store. */
int hr__stream_add_folder(struct hr_catalog *c, struct hr__stream *s, struct hr__stream_folder *f);

/* Reads a small segment. *ret is valid until the next call, or until hr__stream_folder_close. */
int hr__stream_folder_segment(struct hr__stream_folder *f, const char *name,
			      struct hr__source *ret);
void hr__stream_folder_close(struct hr__stream_folder *f);

/* Finds the job's owner, in the collector's `state` or the first JobEvent. -ENODATA: no owner. */
int hr__folder_owner(int dir_fd, uint32_t *ret_uid);

/* Call this after the last folder. Sorts and joins the frames, loads small ones, reports gaps. */
int hr__stream_finish(struct hr_catalog *c, struct hr__stream *s);
void hr__stream_free(struct hr__stream *s);

/* Returns the segment's content, or its file, which the caller closes. 0 or -EIO. */
int hr__segment_source(const struct hr__segment *g, struct hr__source *ret);

void hr__files_free(struct hr__files *f);

#endif
