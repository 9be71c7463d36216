/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - the inside of a writer
 *
 * writer.c opens, appends, seals; writer_recover.c finds out where a stream ends. One thread.
 */
#ifndef HEADRACE_STORE_WRITER_H
#define HEADRACE_STORE_WRITER_H

#include "store/index.h"

#define HR__WRITER_WHOLE UINT64_MAX

struct hr_writer {
	char *dir;
	int dir_fd;
	int lock_fd;
	int fd;		     /* open segment, -1: none */
	uint32_t number;     /* of the last segment there is, 0: none */
	uint32_t unsynced;   /* first segment with data that hr_writer_sync has not seen, 0: none */
	bool folder_changed; /* likewise for the names of segments */
	uint64_t offset;     /* where the next frame goes in the open segment */
	uint64_t room_end;   /* up to where the file system's room is taken */
	bool no_room_ahead;  /* the file system takes none */
	uint64_t mark;
	uint64_t other_bytes; /* of segments that are not open */
	uint64_t segment_bytes;
	size_t index_bytes; /* of memory, at which a segment is sealed, too */
	/* the last segment that hr_writer_sync has seen or recovery found, 0: none */
	uint32_t synced_number;
	uint64_t synced_offset; /* its end then; HR__WRITER_WHOLE: it was closed already */
	struct hr__index index; /* of the open segment */
	Headrace__StreamStart start;
	struct hr_arena memory; /* of `start` and `dir` */
};

/*
 * Makes the next segment with its reserve, and seals the open one; that of a new stream brings it to seq 1. On failure the
 * open one stays.
 */
int hr__writer_start_segment(struct hr_writer *w);

/* Closes the open segment without sealing it. */
void hr__writer_leave_segment(struct hr_writer *w);

/* Takes the reserve of an open segment that another writer left, if there is room. */
void hr__writer_reserve(struct hr_writer *w);

/*
 * Goes on where the folder's last segment ends, or starts the first. *cut_bytes grows by what was
 * cut.
 */
int hr__writer_resume(struct hr_writer *w, uint64_t *cut_bytes);

/* What there is now is what a later rewind goes back to. */
void hr__writer_note_synced(struct hr_writer *w);

#endif
