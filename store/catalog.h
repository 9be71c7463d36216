/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog.h - internals of an open catalogue
 *
 * catalog.c finds the streams, stream_load.c builds one from its segments, stream.c and files.c
 * answer questions about one. One thread opens the catalogue; later only `files` changes (files.c).
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

/* Small segments stay in memory: otherwise a query of many small jobs mostly opens files. */
#define HR__CONTENT_BYTES (16u << 10) /* per segment */

struct hr__segment {
	const char *store;  /* the folder that contains `name` */
	const char *name;   /* "jobs/7/n1.ab/000003.seg" */
	uint64_t bytes;	    /* when the catalogue was opened */
	uint8_t *content;   /* all of a small segment; NULL: read from the file */
	uint64_t first_seq; /* from its header */
	/* hr__stream_finish empties it, except for `memory` and mounts */
	struct hr__index index;
	/* the footer's frame of paths, not read yet; offset 0: index has the paths */
	struct hr__frame_entry paths;
	bool sealed;
};

struct hr__stream {
	struct hr_stream view;	 /* what callers get; they pass a pointer to it */
	struct hr__stream *next; /* in the same bucket of hr_catalog.buckets */
	struct hr__segment *segments;
	size_t n_segments, segments_room;
	Headrace__Frame **kept; /* frames that `view` points into */
	size_t n_kept, kept_room;
	bool locked; /* a writer holds the lock in one of the stores */
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
	struct hr_arena contents; /* of the segments kept in memory */
	uint64_t content_bytes;
	bool journals; /* see hr_catalog_journals */
};

struct hr__segment_file {
	char name[16];
	int fd; /* -1: none is open */
	uint64_t bytes;
	bool whole; /* `content` is all of it */
	uint8_t content[HR__CONTENT_BYTES];
};

struct hr__stream_folder {
	int fd;
	const char *store;
	const char *name; /* its path in the store: "jobs/7/n1.ab" */
	/*
	 * Whether a writer had the folder before its names were read. If not, the names are
	 * complete, because only a writer adds names.
	 */
	bool locked;
	struct hr__folder names;
	struct hr__segment_file segment; /* the last one opened */
};

/* Adds a line to hr_catalog_problems. Without memory for it the line is lost, but then the open fails. */
__attribute__((format(printf, 2, 3))) void hr__problem(struct hr_catalog *c, const char *format,
						       ...);

/* Adds a folder's segments to a stream, which may have those of another store already. */
int hr__stream_add_folder(struct hr_catalog *c, struct hr__stream *s, struct hr__stream_folder *f);

/* Reads a small segment. *ret is valid until another name, or hr__stream_folder_close. */
int hr__stream_folder_segment(struct hr__stream_folder *f, const char *name,
			      struct hr__source *ret);
void hr__stream_folder_close(struct hr__stream_folder *f);

/* The job's owner, from the collector's `state` or the first JobEvent. -ENODATA: no owner. */
int hr__folder_owner(int dir_fd, uint32_t *ret_uid);

/* Call it after the last folder: sorts and joins the frames, loads small ones, reports gaps. */
int hr__stream_finish(struct hr_catalog *c, struct hr__stream *s);
void hr__stream_free(struct hr__stream *s);

/* The segment's content, or its file, which the caller closes. 0 or -EIO. */
int hr__segment_source(const struct hr__segment *g, struct hr__source *ret);

/* hr_stream_read with an allocator. The frame must have its reference's kind. */
int hr__stream_read(const struct hr_stream *s, uint32_t frame, ProtobufCAllocator *allocator,
		    Headrace__Frame **ret);

void hr__files_free(struct hr__files *f);

#endif
