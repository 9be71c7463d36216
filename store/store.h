/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - writing streams into a store folder, and reading them back
 *
 *      STORE/                              mode 0700
 *        headrace.store                    "headrace store 1", checked first; a collector holds
 *                                          F_OFD_SETLK on it while it runs
 *        collector                         for people: "tcp://127.0.0.1:4747 (pid 17 on n1)"
 *        spill/                            of a collector's running queries
 *        jobs/<job>/<node>.<stream>/       one stream, one writer at a time
 *            lock                          F_OFD_SETLK, held by the writer
 *            000001.seg 000002.seg ...     frames in order of arrival; an index footer when sealed
 *            journal                       daemon/journal/journal.h, private mode only
 *            state                         store/stream_state.h, of streams from the network
 *
 *      segment = | file header 64 | frame | frame | ... [ | index frame | trailer 32 ] |
 *
 * A segment without trailer is open or torn: the writer cuts its tail after the last whole frame;
 * readers stop there and need no lock. The stream's mark is the seq of its last whole frame. Job
 * and node names are encoded for file names: bytes outside [A-Za-z0-9._-] as %XX, a leading dot
 * too.
 */
#ifndef HEADRACE_STORE_STORE_H
#define HEADRACE_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/frame.h"

#define HR_SEGMENT_BYTES	(256u << 20) /* a larger segment is sealed */
#define HR_WRITER_RESERVE_BYTES (64u << 10)  /* of disk, kept for hr_writer_append_last */

struct hr_segment_hdr {
	uint8_t magic[8]; /* "HRSEG\r\n\x1a" */
	uint32_t version; /* HR_STORE_VERSION */
	uint32_t incompatible;
	uint64_t first_seq; /* of the segment's first stream frame */
	uint8_t pad[40];
};
_Static_assert(sizeof(struct hr_segment_hdr) == 64, "segment header");

struct hr_segment_trailer {
	uint64_t index_offset; /* of the index frame */
	uint64_t index_bytes;
	uint32_t crc32c; /* of the preceding sixteen bytes */
	uint32_t spare;
	uint8_t magic[8]; /* "HRSEGEND" */
};
_Static_assert(sizeof(struct hr_segment_trailer) == 32, "segment trailer");

/* ---- files ----------------------------------------------------------------------------------- */

/*
 * The owner of a store controls the names in it. So every file is opened by these two functions:
 * they never follow a symbolic link, open a FIFO or device, or wait. They return a descriptor or
 * -errno (-ELOOP: a link, FIFO, socket or device). O_CREAT creates the file with mode 0600.
 */
int hr_store_open_file(int dir_fd, const char *name, int flags);
int hr_store_open_folder(int dir_fd, const char *name);

/* Whether only this process's user owns the open file or folder and may write to it. */
bool hr_store_is_own(int fd);

/* ---- writing --------------------------------------------------------------------------------- */

/*
 * Creates the folder (0700) and headrace.store if absent. -EACCES, -EROFS, -ENOSPC, -ENOTDIR;
 * -EPROTONOSUPPORT: a newer version; -ENOTEMPTY: another folder; -EBUSY: a collector holds it
 * (hr_store_holder).
 */
int hr_store_create(const char *path);

/* What hr_store_create would return for this path. Leaves nothing there. */
int hr_store_check(const char *path);

/*
 * For a collector: hr_store_create, and locks the store until *ret_fd is closed. -EBUSY: another
 * collector has it. Runs that write into it already continue; new ones are refused.
 */
int hr_store_hold(const char *path, int *ret_fd);

/*
 * As hr_store_hold, for a store on a read-only file system. When the file system is writable again,
 * close *ret_fd and call hr_store_hold. -ENOENT: no store there; -EBUSY: another collector has it.
 */
int hr_store_hold_read_only(const char *path, int *ret_fd);

/* Writes the line that refused users see: "tcp://127.0.0.1:4747 (pid 17 on n1)". */
int hr_store_write_holder(const char *path, const char *text);

/* Whether a collector holds the store. *ret: the line of hr_store_write_holder, or "". */
bool hr_store_holder(const char *path, char *ret, size_t bytes);

/* Whether the path is a store, even a damaged or unreadable one. */
bool hr_store_is(const char *path);

/* Whether a run of this job has written into the store. */
bool hr_store_has_job(const char *path, const char *job);

struct hr_stream_id {
	const char *cluster; /* may be "" */
	const char *job;
	uint32_t attempt;
	const char *node;
	const char *boot_id;
	uint64_t instance;
};

struct hr_writer;

/*
 * Opens a stream for appending, and writes the StreamStart of a new one, as seq 1; the caller
 * appends StreamEnd. Cuts a torn tail (*ret_cut_bytes, unless NULL: its size). A retired stream
 * (store/stream_state.h) continues after its mark. -EBUSY: another writer has the stream, or a
 * collector the store; else as hr_store_create.
 */
int hr_writer_open(const char *store, const struct hr_stream_id *id, struct hr_writer **ret,
		   uint64_t *ret_cut_bytes);

/*
 * The same, only if the stream's folder exists and passes hr_store_is_own, else -EPERM. The folders
 * above it may belong to other users, who can rename it but not change its content.
 */
int hr_writer_open_own(int store_fd, const char *store, const struct hr_stream_id *id,
		       struct hr_writer **ret);

/* As hr_writer_open, for the collector that holds the store. */
int hr_writer_open_held(const char *store, const struct hr_stream_id *id, struct hr_writer **ret,
			uint64_t *ret_cut_bytes);

/* The stream's folder: path and descriptor, valid while the writer exists. */
const char *hr_writer_dir(const struct hr_writer *w);
int hr_writer_dir_fd(const struct hr_writer *w);

/* Seq of the last frame, 0 for a new stream. */
uint64_t hr_writer_mark(const struct hr_writer *w);

/* Checksum in the last frame's header; false: unknown (another writer sealed it). */
bool hr_writer_last_crc(const struct hr_writer *w, uint32_t *ret);

uint64_t hr_writer_bytes(const struct hr_writer *w);

/*
 * Appends a frame (hr_frame_pack) whose seq is mark + 1. -EALREADY: seq <= mark, nothing done;
 * -ERANGE: a gap; -ENOSPC and other write errors. An error leaves whole frames only.
 */
int hr_writer_append(struct hr_writer *w, const uint8_t *frame, size_t bytes);

/* As hr_writer_append. The caller also has the frame as `msg`, so that it need not be unpacked. */
int hr_writer_append_packed(struct hr_writer *w, const Headrace__Frame *msg, const uint8_t *frame,
			    size_t bytes);

/* As hr_writer_append, for the last frames on a full disk: uses the space that the writer reserved. */
int hr_writer_append_last(struct hr_writer *w, const uint8_t *frame, size_t bytes);

/* Seals segments at `bytes` instead of HR_SEGMENT_BYTES: a spool needs small ones, to drop few frames. */
void hr_writer_segment_bytes(struct hr_writer *w, uint64_t bytes);

/* Seals the open segment now and starts the next. After a failure the old one stays open. */
int hr_writer_roll(struct hr_writer *w);

/*
 * Continues after `mark`, in a new segment. The frames before it are missing here: another
 * collector has acknowledged them, and the daemon has dropped them. -EINVAL: below the mark. A
 * failure changes nothing.
 */
int hr_writer_skip(struct hr_writer *w, uint64_t mark);

int hr_writer_sync(struct hr_writer *w); /* fdatasync */

/* Call it after a sync of the whole file system: the next hr_writer_sync then has nothing to do. */
void hr_writer_synced(struct hr_writer *w);

/*
 * After a failed sync, data since the last good one may be on disk or not, whatever reads and later
 * syncs return: the kernel drops such pages and marks them clean. Cuts the stream back to the last
 * good sync of this writer, and continues there (hr_writer_mark). After an error, call only
 * hr_writer_abandon.
 */
int hr_writer_rewind(struct hr_writer *w);

/* Whether the open segment or the folder was removed: appended data would be lost. */
bool hr_writer_removed(const struct hr_writer *w);

/* Also seals a segment when its index needs more than `bytes` of memory: for thousands of streams. */
void hr_writer_limit_index(struct hr_writer *w, size_t bytes);

/* Seals the open segment, and closes. Accepts NULL. */
int hr_writer_close(struct hr_writer *w);

/* Closes without sealing, after errors: the next writer recovers the stream. Accepts NULL. */
void hr_writer_abandon(struct hr_writer *w);

/* ---- reading --------------------------------------------------------------------------------- */

/*
 * A catalogue: all streams of some stores. Frames are indexed, found by kind and read with
 * hr_stream_read; processes and mounts are loaded. It never changes: any number of threads may
 * read it.
 */
struct hr_catalog;

/* "jobs/7/n1.ab/000003.seg: frame at 4711 is damaged; 18234 bytes skipped": the rest is read. */
struct hr_problem {
	char *text;
};

struct hr_frame_ref {
	uint32_t segment; /* index in the stream's segments */
	uint32_t bytes;	  /* with header */
	uint64_t offset;
	uint64_t seq;
	uint32_t kind; /* Headrace__Frame__BodyCase */
};

struct hr_batch_ref {
	uint32_t frame; /* index in the stream's frames */
	uint32_t count;
	uint64_t base_ns;
	uint64_t last_ns;
	uint32_t classes;
	const uint8_t *ops; /* bitmap */
	uint32_t ops_bytes;
	const uint64_t *procs; /* processes that have rows in the frame */
	uint32_t n_procs;
};

struct hr_process { /* last row of each proc, merged */
	const Headrace__Process *msg;
	int32_t rank; /* -1: none */
	int32_t local_rank;
	int32_t worker;
};

struct hr_stream {
	const char *store;
	const char *cluster, *job, *node, *boot_id;
	uint32_t attempt;
	uint64_t instance;
	uint64_t proc_base;	    /* hr_stream_proc */
	int64_t real_minus_boot_ns; /* from the stream's last Clock sample */
	uint64_t clock_error_ns;
	const struct hr_frame_ref *frames;
	uint32_t n_frames;
	const struct hr_batch_ref *batches;
	uint32_t n_batches;
	const struct hr_process *processes; /* sorted by proc */
	uint32_t n_processes;
	const Headrace__Mount *const *mounts; /* index = id; [0] NULL */
	uint32_t n_mounts;
	bool ended; /* it has a StreamEnd */
	bool live;  /* a writer holds its lock */
	/* From the collector (store/stream_state.h); all zero without one. */
	bool collected;
	bool uid_known; /* of the job's owner when the stream was opened */
	uint32_t uid;
	bool connected;	   /* the daemon is connected, or was when the collector ended */
	uint64_t heard_ns; /* real ns of the collector */
	bool clock_known;
	int64_t clock_offset_ns; /* node's wall clock minus the collector's */
	uint64_t clock_offset_error_ns;
	uint64_t closed_ns;  /* when an operator declared the stream complete; 0: not */
	uint64_t retired_ns; /* when frames were removed by age, size or hand; 0: never */
	uint64_t last_seq;
	uint64_t bytes;		/* on disk */
	struct hr__stream *own; /* internal */
};

/* On the wall clock. The sender sent both numbers: the sum may wrap, nothing worse. */
static inline int64_t hr_stream_real_ns(const struct hr_stream *s, uint64_t boot_ns)
{
	return (int64_t)(boot_ns + (uint64_t)s->real_minus_boot_ns);
}

/*
 * Which streams to open. A stream that is left out appears nowhere: not in problems, names or
 * counts. `one_user` also leaves out streams of a node (job "_node") and of unknown owners.
 */
struct hr_catalog_filter {
	const char *job; /* NULL: all */
	bool one_user;	 /* only jobs of `uid` */
	uint32_t uid;
};

/* `filter` NULL: all. -ENOENT: no store; -EPROTONOSUPPORT: newer. *ret_error is malloc'ed. */
int hr_catalog_open(const char *const *stores, size_t n, const struct hr_catalog_filter *filter,
		    struct hr_catalog **ret, char **ret_error);
void hr_catalog_free(struct hr_catalog *c);

/* Sorted by job, cluster, attempt, node and instance. */
size_t hr_catalog_streams(const struct hr_catalog *c, const struct hr_stream **ret);
size_t hr_catalog_problems(const struct hr_catalog *c, const struct hr_problem **ret);

/* Whether a stream has a journal and no writer: then call hr_store_recover (daemon/node). */
bool hr_catalog_journals(const struct hr_catalog *c);

/* A job that lost whole streams, by age, by size or by hand. */
struct hr_retired {
	char *job;
	unsigned streams;
	uint64_t heard_ns;   /* of their last message; 0: not known */
	uint64_t retired_ns; /* of the last removal; 0: not known */
};

/* In the order of the stores and their folders. */
size_t hr_catalog_retired(const struct hr_catalog *c, const struct hr_retired **ret);

/* Unpacks one frame (any thread). Free with headrace__frame__free_unpacked. -EBADMSG, -EIO. */
int hr_stream_read(const struct hr_stream *s, uint32_t frame, Headrace__Frame **ret);

/*
 * The number of a process outside its stream. A job's streams on a node each count from 1; here the
 * next stream, by start time, continues the count. 0 (none) stays 0.
 */
static inline uint64_t hr_stream_proc(const struct hr_stream *s, uint64_t proc)
{
	return proc ? s->proc_base + proc : 0;
}

const struct hr_process *hr_stream_process(const struct hr_stream *s, uint64_t proc);

/*
 * A file of the stream, from a table that is loaded on first use; the path comes from its Paths
 * frame, on demand. The path is not NUL-terminated and may hold any byte. -ENOENT: unknown id (its
 * Paths frame was lost).
 */
struct hr_file_info {
	uint32_t id;
	uint64_t hash;
	const uint8_t *path;
	uint32_t path_bytes;
	uint32_t mount;
	uint32_t scope;
};
int hr_stream_file(const struct hr_stream *s, uint32_t id, bool want_path,
		   struct hr_file_info *ret);

/* Numbers the files 1 to *ret_n, by id, for tables: ids may be any of 1 to UINT32_MAX. -ENOMEM. */
int hr_stream_files(const struct hr_stream *s, uint32_t *ret_n);
uint32_t hr_stream_file_number(const struct hr_stream *s, uint32_t id); /* 0: unknown id */
int hr_stream_file_at(const struct hr_stream *s, uint32_t number, bool want_path,
		      struct hr_file_info *ret); /* as hr_stream_file */

/* Whether this Paths frame is lost: files have no path (-EBADMSG) or are unknown (-ENOENT). */
bool hr_stream_paths_lost(const struct hr_stream *s, uint32_t frame);

#endif
