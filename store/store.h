/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - writing streams into a store folder, and reading them back
 *
 *      STORE/                              mode 0700
 *        headrace.store                    "headrace store 1", checked first; a collector holds
 *                                          F_OFD_SETLK on it while it runs
 *        collector                         for people: "tcp://127.0.0.1:4747 (pid 17 on n1)"
 *        spill/                            temporary files of a collector's queries
 *        jobs/<job>/<node>.<stream>/       one stream, one writer at a time
 *            lock                          F_OFD_SETLK, held by the writer
 *            000001.seg 000002.seg ...     frames in order of arrival; an index footer when sealed
 *            journal                       daemon/journal/journal.h, private mode only
 *            state                         store/stream_state.h, of streams from the network
 *
 *      segment = | file header 64 | frame | frame | ... [ | index frame | trailer 32 ] |
 *
 * A segment without trailer is open or torn. Readers stop after the last whole frame and need no
 * lock; the next writer cuts the rest. The mark of a stream is the seq of its last whole frame. In
 * job and node names, bytes outside [A-Za-z0-9._-] and a leading dot are encoded as %XX.
 */
#ifndef HEADRACE_STORE_STORE_H
#define HEADRACE_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "common/arena.h"
#include "common/frame.h"

#define HR_SEGMENT_BYTES	(256u << 20) /* a larger segment is sealed */
#define HR_WRITER_RESERVE_BYTES (64u << 10)  /* disk space kept for hr_writer_append_last */

struct hr_segment_hdr {
	uint8_t magic[8]; /* "HRSEG\r\n\x1a" */
	uint32_t version; /* HR_STORE_VERSION */
	uint32_t incompatible;
	uint64_t first_seq; /* seq of the segment's first stream frame */
	uint8_t pad[40];
};
_Static_assert(sizeof(struct hr_segment_hdr) == 64, "segment header");

struct hr_segment_trailer {
	uint64_t index_offset; /* offset of the index frame */
	uint64_t index_bytes;
	uint32_t crc32c; /* of the preceding 16 bytes */
	uint32_t spare;
	uint8_t magic[8]; /* "HRSEGEND" */
};
_Static_assert(sizeof(struct hr_segment_trailer) == 32, "segment trailer");

/* ---- files ----------------------------------------------------------------------------------- */

/*
 * The owner of a store controls the names in it. So these two functions open all files. They never
 * follow a symbolic link, open a FIFO or device, or wait. They return a descriptor or -errno
 * (-ELOOP: the name is a link, FIFO, socket or device). O_CREAT creates the file with mode 0600.
 */
int hr_store_open_file(int dir_fd, const char *name, int flags);
int hr_store_open_folder(int dir_fd, const char *name);

/*
 * Calls `visit` for each folder in the open folder `fd`, in the order of names, until a call does
 * not return 0. Skips names that begin with a dot. Returns the last result, or -errno.
 */
typedef int hr_store_visit(void *context, const char *name, int folder_fd);
int hr_store_each_folder(int fd, hr_store_visit *visit, void *context);

/* Reads at most `bytes` of a small file. Returns their number, or -errno. */
int hr_store_read_file(int dir_fd, const char *name, void *ret, size_t bytes);

/*
 * Writes the file NAME.new and renames it, so that a crash leaves the old file or the new one.
 * `sync`: the content is on disk before the rename. `times`: as in futimens; NULL: now. After an
 * error, the old file remains.
 */
int hr_store_replace_file(int dir_fd, const char *name, const void *data, size_t bytes, bool sync,
			  const struct timespec times[2]);

/* Returns whether only this process's user owns the open file or folder and may write it. */
bool hr_store_is_own(int fd);

/* Returns whether a writer holds the lock of a stream. Does not take the lock. */
bool hr_stream_locked(int stream_fd);

/* Takes the lock of a stream until the caller closes the returned descriptor. -EBUSY. */
int hr_stream_lock(int stream_fd, int *ret_fd);

/* ---- writing --------------------------------------------------------------------------------- */

/*
 * If they are missing, creates the folder (0700) and headrace.store. -EACCES, -EROFS, -ENOSPC,
 * -ENOTDIR; -EPROTONOSUPPORT: a newer version; -ENOTEMPTY: a folder with other files; -EBUSY: a
 * collector holds the store (hr_store_holder).
 */
int hr_store_create(const char *path);

/* Returns what hr_store_create would return for this path. Leaves no folder there. */
int hr_store_check(const char *path);

/*
 * For a collector: hr_store_create, then locks the store until *ret_fd is closed. -EBUSY: another
 * collector holds it. Runs that already write into the store continue; new runs are refused.
 */
int hr_store_hold(const char *path, int *ret_fd);

/*
 * As hr_store_hold, for a store on a read-only file system. When the file system is writable again,
 * close *ret_fd and call hr_store_hold. -ENOENT: no store; -EBUSY: another collector holds it.
 */
int hr_store_hold_read_only(const char *path, int *ret_fd);

/* Writes the line that refused users see: "tcp://127.0.0.1:4747 (pid 17 on n1)". */
int hr_store_write_holder(const char *path, const char *text);

/* Returns whether a collector holds the store. *ret: the line of hr_store_write_holder, or "". */
bool hr_store_holder(const char *path, char *ret, size_t bytes);

/* Returns whether the path is a store, even if it is damaged or unreadable. */
bool hr_store_is(const char *path);

/* What the folders of a store show, without its data. */
struct hr_store_outline {
	uint32_t uid; /* owner of the folder */
	size_t jobs;
	char last_job[256];  /* the job whose last stream is the newest; "": no job */
	uint64_t changed_ns; /* wall clock: when this stream or, without a job, the store began */
	uint64_t bytes;	     /* size of all streams, if requested */
};

/* Reads the outline. Unlike hr_store_is, needs the file headrace.store. `sizes`: sets `bytes`. */
int hr_store_outline(const char *path, bool sizes, struct hr_store_outline *ret);

/* Returns whether a run of this job has written into the store. */
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
 * Opens a stream for appending. Writes the StreamStart of a new stream, as seq 1; the caller
 * appends StreamEnd. Cuts a torn tail, and stores its size in *ret_cut_bytes unless that is NULL. A
 * retired stream (store/stream_state.h) continues after its mark. -EBUSY: another writer has the
 * stream, or a collector holds the store. Other errors as hr_store_create.
 */
int hr_writer_open(const char *store, const struct hr_stream_id *id, struct hr_writer **ret,
		   uint64_t *ret_cut_bytes);

/*
 * As hr_writer_open, but -EPERM if the stream's folder is missing or fails hr_store_is_own. The
 * folders above may belong to other users: they can rename this folder, but not change its content.
 */
int hr_writer_open_own(int store_fd, const char *store, const struct hr_stream_id *id,
		       struct hr_writer **ret);

/* As hr_writer_open, for the collector that holds the store. */
int hr_writer_open_held(const char *store, const struct hr_stream_id *id, struct hr_writer **ret,
			uint64_t *ret_cut_bytes);

/* Return path and descriptor of the stream's folder, which are valid while the writer exists. */
const char *hr_writer_dir(const struct hr_writer *w);
int hr_writer_dir_fd(const struct hr_writer *w);

/* Returns the seq of the last frame, or 0 for a new stream. */
uint64_t hr_writer_mark(const struct hr_writer *w);

/* Returns the checksum in the last frame's header. False: unknown (another writer sealed it). */
bool hr_writer_last_crc(const struct hr_writer *w, uint32_t *ret);

uint64_t hr_writer_bytes(const struct hr_writer *w);

/*
 * Appends a frame (hr_frame_pack) whose seq is mark + 1. -EALREADY: seq <= mark, and nothing is
 * done; -ERANGE: a gap; -ENOSPC and other write errors. After an error, only whole frames remain.
 */
int hr_writer_append(struct hr_writer *w, const uint8_t *frame, size_t bytes);

/* As hr_writer_append, for a caller that also has the frame as `msg`, so it is not unpacked. */
int hr_writer_append_packed(struct hr_writer *w, const Headrace__Frame *msg, const uint8_t *frame,
			    size_t bytes);

/* As hr_writer_append, for the last frames on a full disk: uses the reserved space. */
int hr_writer_append_last(struct hr_writer *w, const uint8_t *frame, size_t bytes);

/* Seals segments at `bytes`. With small segments, a spool drops few frames at a time. */
void hr_writer_segment_bytes(struct hr_writer *w, uint64_t bytes);

/* Seals the open segment, and starts the next. After a failure, the old one stays open. */
int hr_writer_roll(struct hr_writer *w);

/*
 * Continues after `mark`, in a new segment. The frames up to `mark` are missing here, because
 * another collector has acknowledged them, and the daemon has dropped them. -EINVAL: `mark` is
 * below the writer's mark. A failure changes nothing.
 */
int hr_writer_skip(struct hr_writer *w, uint64_t mark);

int hr_writer_sync(struct hr_writer *w); /* fdatasync */

/* Call this after a sync of the whole file system. The next hr_writer_sync has nothing to do. */
void hr_writer_synced(struct hr_writer *w);

/*
 * After a failed sync, data since the last successful sync may be missing on disk, even if reads
 * and later syncs succeed, because the kernel drops such pages and marks them clean. Cuts the
 * stream back to the last successful sync of this writer, and continues there (hr_writer_mark). If
 * this returns an error, call only hr_writer_abandon.
 */
int hr_writer_rewind(struct hr_writer *w);

/* Returns whether the open segment or the folder was removed: appended data would be lost. */
bool hr_writer_removed(const struct hr_writer *w);

/* Limits the memory of the index: a segment that needs more than `bytes` is sealed, too. */
void hr_writer_limit_index(struct hr_writer *w, size_t bytes);

/* Seals the open segment, and frees the writer. Accepts NULL. */
int hr_writer_close(struct hr_writer *w);

/* After errors: closes without sealing. The next writer recovers the stream. Accepts NULL. */
void hr_writer_abandon(struct hr_writer *w);

/* ---- reading --------------------------------------------------------------------------------- */

/*
 * A catalogue: all streams of some stores. Frames are indexed, found by kind, and read with
 * hr_stream_read. Processes and mounts are loaded. A catalogue never changes, so any number of
 * threads may read it.
 */
struct hr_catalog;

/* A line for the user: "jobs/7/n1.ab/000003.seg: frame at 4711 is damaged; 18234 bytes skipped". */
struct hr_problem {
	char *text;
};

struct hr_frame_ref {
	uint32_t segment; /* index in the stream's segments */
	uint32_t bytes;	  /* with the header */
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
	const uint64_t *procs; /* the processes that have rows in the frame */
	uint32_t n_procs;
};

struct hr_process { /* all rows of a process, merged: mostly, the last one counts */
	const Headrace__Process *msg;
	int32_t rank; /* -1: the process has no rank */
	int32_t local_rank;
	int32_t worker;
};

struct hr_stream {
	const char *store;
	const char *cluster, *job, *node, *boot_id;
	uint32_t attempt;
	uint64_t instance;
	uint64_t proc_base;	    /* added to numbers by hr_stream_proc */
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
	bool ended; /* the stream has a StreamEnd */
	bool live;  /* a writer holds the stream's lock */
	/* From the collector's file (store/stream_state.h); zero without that file. */
	bool collected;
	bool uid_known; /* uid is the job's owner at the time when the stream was opened */
	uint32_t uid;
	bool connected;	   /* the daemon is connected, or was connected when the collector ended */
	uint64_t heard_ns; /* last message of the daemon, in ns of the collector's wall clock */
	bool clock_known;
	int64_t clock_offset_ns; /* wall clock of the node minus that of the collector */
	uint64_t clock_offset_error_ns;
	uint64_t closed_ns; /* when an operator declared the stream complete; 0: never */
	/* when frames were removed because of their age or size, or by an operator; 0: never */
	uint64_t retired_ns;
	uint64_t last_seq;
	uint64_t bytes;		/* size on disk */
	struct hr__stream *own; /* internal */
};

/*
 * Returns the wall clock at boot_ns. The sender may have chosen both numbers, so the sum may wrap,
 * which is harmless.
 */
static inline int64_t hr_stream_real_ns(const struct hr_stream *s, uint64_t boot_ns)
{
	return (int64_t)(boot_ns + (uint64_t)s->real_minus_boot_ns);
}

/*
 * Selects streams to open. Other streams appear nowhere, not even in problems, names or counts.
 * `one_user` also excludes the streams of nodes themselves (job "_node"), and those with an unknown
 * owner.
 */
struct hr_catalog_filter {
	const char *job; /* NULL: all jobs */
	bool one_user;	 /* only jobs of `uid` */
	uint32_t uid;
};

/* `filter` NULL: all. -ENOENT: no store; -EPROTONOSUPPORT: newer version. *ret_error: malloc'ed. */
int hr_catalog_open(const char *const *stores, size_t n, const struct hr_catalog_filter *filter,
		    struct hr_catalog **ret, char **ret_error);
void hr_catalog_free(struct hr_catalog *c);

/* Both return arrays. Streams are sorted by job, cluster, attempt, node and instance. */
size_t hr_catalog_streams(const struct hr_catalog *c, const struct hr_stream **ret);
size_t hr_catalog_problems(const struct hr_catalog *c, const struct hr_problem **ret);

/* True: a stream has a journal and no writer. Then call hr_store_recover (daemon/node). */
bool hr_catalog_journals(const struct hr_catalog *c);

/* A job of which whole streams were removed, because of their age or size, or by an operator. */
struct hr_retired {
	char *job;
	unsigned streams;
	uint64_t heard_ns;   /* time of their last message; 0: unknown */
	uint64_t retired_ns; /* time of the last removal; 0: unknown */
};

/* Returns the retired jobs, in the order of the stores and their folders. */
size_t hr_catalog_retired(const struct hr_catalog *c, const struct hr_retired **ret);

/* Unpacks one frame, in any thread. Free it with headrace__frame__free_unpacked. -EBADMSG, -EIO. */
int hr_stream_read(const struct hr_stream *s, uint32_t frame, Headrace__Frame **ret);

/* As hr_stream_read. The frame is part of the arena, so do not free it. -ENOMEM. */
int hr_stream_read_into(const struct hr_stream *s, uint32_t frame, struct hr_arena *arena,
			Headrace__Frame **ret);

/*
 * Returns a process's number outside its stream. Each stream of a job on a node counts from 1. The
 * next stream, by start time, continues the count. 0 (no process) stays 0.
 */
static inline uint64_t hr_stream_proc(const struct hr_stream *s, uint64_t proc)
{
	return proc ? s->proc_base + proc : 0;
}

const struct hr_process *hr_stream_process(const struct hr_stream *s, uint64_t proc);

/*
 * A file of the stream. The first use loads the table of files; the path comes from its Paths
 * frame, which is read on demand. The path has no NUL at the end and may contain any byte. -ENOENT:
 * the id is unknown, because its Paths frame was lost.
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

/* Numbers the files by id, from 1 to *ret_n. Ids have gaps, from 1 to UINT32_MAX. -ENOMEM. */
int hr_stream_files(const struct hr_stream *s, uint32_t *ret_n);
uint32_t hr_stream_file_number(const struct hr_stream *s, uint32_t id); /* 0: unknown id */
int hr_stream_file_at(const struct hr_stream *s, uint32_t number, bool want_path,
		      struct hr_file_info *ret); /* as hr_stream_file */

/* True: this Paths frame is lost. Its files lack a path (-EBADMSG) or are unknown (-ENOENT). */
bool hr_stream_paths_lost(const struct hr_stream *s, uint32_t frame);

#endif
