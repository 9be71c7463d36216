/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog.h - the inside of an open catalogue
 *
 * catalog.c finds the streams, stream_load.c puts one together from its segments, stream.c and
 * files.c answer about one. Written by the thread that opens; afterwards only `files` changes,
 * under its own rules (files.c).
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

/*
 * Small segments are read once and kept in memory: opening a file for each frame is most of what a query of
 * many small jobs costs.
 */
#define HR__CONTENT_BYTES (16u << 10) /* of a segment */

struct hr__segment {
	const char *store;  /* the folder that `name` is below */
	const char *name;   /* "jobs/7/n1.ab/000003.seg" */
	uint64_t bytes;	    /* when the catalogue was opened */
	uint8_t *content;   /* all of a small segment; NULL: read from the file */
	uint64_t first_seq; /* of its header */
	/* emptied once the stream is put together, but for `memory` and mounts */
	struct hr__index index;
	/* footer's frame of paths, still to be read; offset 0: index has them */
	struct hr__frame_entry paths;
	bool sealed;
};

struct hr__stream {
	struct hr_stream view;	 /* what callers see; they hand back a pointer to it */
	struct hr__stream *next; /* in its bucket of hr_catalog.buckets */
	struct hr__segment *segments;
	size_t n_segments, segments_room;
	Headrace__Frame **kept; /* frames that `view` points into */
	size_t n_kept, kept_room;
	bool locked; /* a writer holds it in one of its stores */
	pthread_mutex_t files_lock;
	_Atomic(struct hr__files *) files;
	struct hr_arena memory;
};

struct hr_catalog {
	struct hr__stream **streams;
	size_t n_streams, streams_room;
	struct hr__stream **buckets; /* by job, node, attempt and instance; used while opening */
	size_t n_buckets;	     /* a power of two */
	struct hr_stream *views;     /* what hr_catalog_streams returns */
	struct hr_problem *problems;
	size_t n_problems, problems_room;
	struct hr_retired *retired;
	size_t n_retired, retired_room;
	struct hr_arena contents; /* of the segments that are kept in memory */
	uint64_t content_bytes;
	bool journals; /* see hr_catalog_journals */
};

/* A segment while its folder is read. */
struct hr__segment_file {
	char name[16];
	int fd; /* -1: none is open */
	uint64_t bytes;
	bool whole; /* `content` has all of it */
	uint8_t content[HR__CONTENT_BYTES];
};

/* The folder of a stream while it is read. */
struct hr__stream_folder {
	int fd;
	const char *store;
	const char *name; /* its place in the store: "jobs/7/n1.ab" */
	/* Tested before the names are read: no writer adds to the names of an unlocked folder. */
	bool locked;
	struct hr__folder names;
	struct hr__segment_file segment; /* the one that was opened last */
};

/* Adds a line for people. Loses it silently when memory is short: then the open fails elsewhere. */
__attribute__((format(printf, 2, 3))) void hr__problem(struct hr_catalog *c, const char *format,
						       ...);

/* Adds one folder of segments to a stream that may already have others (another store's copy). */
int hr__stream_add_folder(struct hr_catalog *c, struct hr__stream *s, struct hr__stream_folder *f);

/*
 * Opens a segment of the folder and reads it if it is small. *ret is valid until the next call with another name. A further call with
 * the same name returns what the first one read, unless hr__stream_folder_close came between.
 */
int hr__stream_folder_segment(struct hr__stream_folder *f, const char *name,
			      struct hr__source *ret);
void hr__stream_folder_close(struct hr__stream_folder *f);

/*
 * Whose job it is: what the collector's file `state` says, else the first JobEvent. -ENODATA: neither says, or the file is
 * damaged.
 */
int hr__folder_owner(int dir_fd, uint32_t *ret_uid);

/* All folders are in: sorts and joins the frames, loads the small ones, reports what is missing. */
int hr__stream_finish(struct hr_catalog *c, struct hr__stream *s);
void hr__stream_free(struct hr__stream *s);

/* Where to read a segment: its content, or its file, which the caller closes where *ret has a descriptor. 0 or -EIO. */
int hr__segment_source(const struct hr__segment *g, struct hr__source *ret);

/* hr_stream_read with the memory of `allocator`. The frame's kind is that of its reference. */
int hr__stream_read(const struct hr_stream *s, uint32_t frame, ProtobufCAllocator *allocator,
		    Headrace__Frame **ret);

void hr__files_free(struct hr__files *f);

#endif
