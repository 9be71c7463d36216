/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - internals of a writer (writer.c) and of its segments (writer_segment.c). One thread.
 */
#ifndef HEADRACE_STORE_WRITER_H
#define HEADRACE_STORE_WRITER_H

#include "store/index.h"

#define HR__WRITER_WHOLE UINT64_MAX

struct hr_writer {
	char *dir;
	int dir_fd;
	int lock_fd;
	int fd;		     /* the open segment; -1: none */
	uint32_t number;     /* number of the last segment; 0: none */
	uint32_t unsynced;   /* number of the first segment with unsynced data; 0: none */
	bool folder_changed; /* names of segments are not synced */
	uint64_t offset;     /* where the next frame goes in the open segment */
	uint64_t room_end;   /* end of the reserved disk space */
	bool no_room_ahead;  /* the file system cannot reserve space */
	uint64_t mark;
	uint64_t other_bytes; /* size of all segments except the open one */
	uint64_t segment_bytes;
	size_t index_bytes; /* a segment whose index is larger is sealed */
	/* number of the last segment that was synced or recovered; 0: none */
	uint32_t synced_number;
	uint64_t synced_offset; /* its size at that time; HR__WRITER_WHOLE: it was closed before */
	struct hr_index index;
	Headrace__StreamStart start;
	struct hr_arena memory;
};

/* Reserves disk space for `bytes` in the open segment, and for the end of the stream. */
int hr__writer_make_room(struct hr_writer *w, uint64_t bytes);

/* Cuts the open segment after its last frame: removes a failed write and the reserved space. */
void hr__writer_cut(struct hr_writer *w);

/* Appends to the open segment. On failure, the segment is unchanged. */
int hr__writer_append_bytes(struct hr_writer *w, const uint8_t *buf, size_t bytes);

/* Writes the footer. If this fails, the segment stays readable without a footer. */
int hr__writer_seal(struct hr_writer *w);

void hr__writer_leave_segment(struct hr_writer *w);

/* Continues the last segment, or starts the first. Adds the number of cut bytes to *cut_bytes. */
int hr__writer_resume(struct hr_writer *w, uint64_t *cut_bytes);

/* Stores the current end of the stream, to which hr_writer_rewind returns. */
void hr__writer_note_synced(struct hr_writer *w);

#endif
