/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - writing streams into a store folder, and reading them back
 *
 *      STORE/                              mode 0700
 *        headrace.store                    "headrace store 1\n", checked before anything else; F_OFD_SETLK, held by a
 *                                          collector, to which the whole store belongs while it runs
 *        collector                         who that is, for people: "tcp://127.0.0.1:4747 (pid 17 on n1)\n"
 *        spill/                            of a collector's queries, while they run
 *        jobs/<job>/<node>.<stream>/       one stream, one writer at a time
 *            lock                          F_OFD_SETLK, held by the writer
 *            000001.seg 000002.seg ...     frames as they came; an index footer when sealed
 *            journal                       daemon/journal/journal.h, private mode only
 *            state                         store/stream_state.h, of streams that came over the network
 *
 *      segment = | file header 64 | frame | frame | ... [ | index frame | trailer 32 ] |
 *
 * A segment without trailer is open or was torn: the writer cuts its tail at the last whole frame;
 * readers stop there, and need no lock. The stream's mark is the seq of its last whole frame. Job
 * and node names are encoded for file names: bytes outside [A-Za-z0-9._-] as %XX, a leading dot
 * too.
 */
#ifndef HEADRACE_STORE_STORE_H
#define HEADRACE_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/frame.h"

#define HR_SEGMENT_BYTES	(256u << 20) /* a segment is sealed past this */
#define HR_WRITER_RESERVE_BYTES (64u << 10)  /* of disk, kept for hr_writer_append_last */

struct hr_segment_hdr {
	uint8_t magic[8]; /* "HRSEG\r\n\x1a" */
	uint32_t version; /* HR_STORE_VERSION */
	uint32_t incompatible;
	uint64_t first_seq; /* of its first stream frame */
	uint8_t pad[40];
};
_Static_assert(sizeof(struct hr_segment_hdr) == 64, "segment header");

struct hr_segment_trailer {
	uint64_t index_offset; /* of the index frame */
	uint64_t index_bytes;
	uint32_t crc32c; /* of the sixteen bytes before */
	uint32_t spare;
	uint8_t magic[8]; /* "HRSEGEND" */
};
_Static_assert(sizeof(struct hr_segment_trailer) == 32, "segment trailer");

/* ---- files ----------------------------------------------------------------------------------- */

/*
 * The owner of a store decides what its names stand for. So every file in a store is opened by these two: no symbolic link is
 * followed, no FIFO or device is opened, no open waits. Both return a descriptor or -errno; -ELOOP means that the name is a
 * symbolic link, a FIFO, a socket or a device. O_CREAT makes the file with mode 0600.
 */
int hr_store_open_file(int dir_fd, const char *name, int flags);
int hr_store_open_folder(int dir_fd, const char *name);

/* Does the open file or folder belong to the user of this process, and may no other user write to it? */
bool hr_store_is_own(int fd);

/* ---- writing --------------------------------------------------------------------------------- */

/*
 * Makes the folder (0700) and headrace.store when absent. Errors: -EACCES, -EROFS, -ENOSPC,
 * -ENOTDIR, -EPROTONOSUPPORT (a newer version), -ENOTEMPTY (a folder that is something else), -EBUSY
 * (a collector holds it: hr_store_holder).
 */
int hr_store_create(const char *path);

/* Would hr_store_create take this path? 0 or its error; leaves nothing behind. */
int hr_store_check(const char *path);

/*
 * For a collector: makes the store when absent and takes it whole, for as long as *ret_fd is open. Runs that write into it
 * already go on to their end; new ones are refused. As hr_store_create; -EBUSY when another collector has it.
 */
int hr_store_hold(const char *path, int *ret_fd);

/*
 * The same while the store's file system is read-only: *ret_fd keeps others out as that of hr_store_hold does. Once the file system can
 * be written, close it and call hr_store_hold. -ENOENT: no store there; -EBUSY: another collector has it.
 */
int hr_store_hold_read_only(const char *path, int *ret_fd);

/* Leaves a line about the holder for those who are refused: "tcp://127.0.0.1:4747 (pid 17 on n1)\n". */
int hr_store_write_holder(const char *path, const char *text);

/* Does a collector hold it? `ret` gets that line, "" when there is none. */
bool hr_store_holder(const char *path, char *ret, size_t bytes);

/* Is there a store, as far as can be seen? True for one that is damaged or unreadable, too. */
bool hr_store_is(const char *path);

/* Has a run of this job written into it? */
bool hr_store_has_job(const char *path, const char *job);

struct hr_stream_id {
	const char *cluster; /* "" allowed */
	const char *job;
	uint32_t attempt;
	const char *node;
	const char *boot_id;
	uint64_t instance;
};

struct hr_writer;

/*
 * Opens a stream for appending; a new one gets its StreamStart here, as seq 1 (StreamEnd is the
 * caller's to append). Recovers a torn tail (*ret_cut_bytes says how much was cut; may be NULL).
 * A retired stream (store/stream_state.h) goes on at the mark that its state names. -EBUSY when
 * another writer has it or a collector the store, else as hr_store_create.
 */
int hr_writer_open(const char *store, const struct hr_stream_id *id, struct hr_writer **ret,
		   uint64_t *ret_cut_bytes);

/*
 * The same in a store folder that is open already, and only where the stream's folder exists and passes hr_store_is_own, else
 * -EPERM. The folders above may belong to other users: these can rename the stream's folder, but not change what is in it.
 */
int hr_writer_open_own(int store_fd, const char *store, const struct hr_stream_id *id,
		       struct hr_writer **ret);

/* The same for the collector that holds the store. */
int hr_writer_open_held(const char *store, const struct hr_stream_id *id, struct hr_writer **ret,
			uint64_t *ret_cut_bytes);

/* Folder of the stream, as a path and as a descriptor; both are valid while the writer lives. */
const char *hr_writer_dir(const struct hr_writer *w);
int hr_writer_dir_fd(const struct hr_writer *w);

/* Seq of the last frame appended or found, 0 for a new stream. */
uint64_t hr_writer_mark(const struct hr_writer *w);

/* Checksum in that frame's header; false: not known (it was sealed by another writer). */
bool hr_writer_last_crc(const struct hr_writer *w, uint32_t *ret);

/* Bytes in the stream, all segments. */
uint64_t hr_writer_bytes(const struct hr_writer *w);

/*
 * Appends one frame (hr_frame_pack) whose seq is mark + 1. -EALREADY when seq <= mark (nothing
 * done), -ERANGE on a gap, -ENOSPC and other write errors with the file cut back to where it was:
 * nothing half-written stays.
 */
int hr_writer_append(struct hr_writer *w, const uint8_t *frame, size_t bytes);

/* The same for who has just packed the frame from `msg`, which need not be unpacked again. */
int hr_writer_append_packed(struct hr_writer *w, const Headrace__Frame *msg, const uint8_t *frame,
			    size_t bytes);

/*
 * The same for the last words of a stream whose disk is full: from the room that hr_writer_append
 * leaves alone. (None where the file system cannot take room ahead.)
 */
int hr_writer_append_last(struct hr_writer *w, const uint8_t *frame, size_t bytes);

/* Segments are sealed past `bytes` instead of HR_SEGMENT_BYTES: a spool's are small, so that it can give some up. */
void hr_writer_segment_bytes(struct hr_writer *w, uint64_t bytes);

/* Seals the open segment now and goes on in the next. On failure the open one stays. */
int hr_writer_roll(struct hr_writer *w);

/*
 * Goes on behind `mark`, in a segment of its own: the frames between are in no segment of this store, since another collector
 * has acknowledged them and the daemon has forgotten them. -EINVAL below the mark; on failure all stays as it is.
 */
int hr_writer_skip(struct hr_writer *w, uint64_t mark);

int hr_writer_sync(struct hr_writer *w); /* fdatasync */

/* Somebody else has synced the file system since the last append: nothing is left for hr_writer_sync. */
void hr_writer_synced(struct hr_writer *w);

/*
 * After a sync that failed: what was appended since the last good one may be on disk or not, whatever reads and further syncs
 * say (the kernel drops such pages and calls them clean). Cuts the stream back to that sync, as far as it was this writer's, and
 * goes on there: see hr_writer_mark. An error leaves nothing to go on with: hr_writer_abandon.
 */
int hr_writer_rewind(struct hr_writer *w);

/* Has somebody removed the open segment, or the folder? What is appended then is on disk, and nobody will find it. */
bool hr_writer_removed(const struct hr_writer *w);

/* Seals the open segment, too, when its index takes more memory: for who has thousands of streams. */
void hr_writer_limit_index(struct hr_writer *w, size_t bytes);

/* Seals the open segment with its index, closes. Accepts NULL. */
int hr_writer_close(struct hr_writer *w);

/* Closes without a seal, after errors: the next writer finds out what is there. Accepts NULL. */
void hr_writer_abandon(struct hr_writer *w);

/* ---- reading --------------------------------------------------------------------------------- */

/*
 * A catalogue: every stream of one or more stores, its frames indexed, its processes and mounts
 * loaded; other frames are found by their kind and read with hr_stream_read. Immutable after
 * opening, so any number of threads may read it.
 */
struct hr_catalog;

/*
 * What is wrong but does not stop the reading:
 * "jobs/7/n1.ab/000003.seg: frame at 4711 is damaged; 18234 bytes skipped"
 */
struct hr_problem {
	char *text;
};

struct hr_frame_ref {
	uint32_t segment; /* index in the stream's segments */
	uint32_t bytes;	  /* header included */
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
	const uint64_t *procs; /* processes with rows in it */
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
	bool ended; /* a StreamEnd was seen */
	bool live;  /* its lock is held now */
	/* What a collector knows of it (store/stream_state.h); all zero when it came from none. */
	bool collected;
	bool uid_known; /* of the job's owner, noted when the stream was opened */
	uint32_t uid;
	bool connected;	   /* its daemon is, or was when the collector ended */
	uint64_t heard_ns; /* real ns of the collector */
	bool clock_known;
	int64_t clock_offset_ns; /* node's wall clock minus the collector's */
	uint64_t clock_offset_error_ns;
	uint64_t closed_ns;  /* an operator expects no more of it; 0: no */
	uint64_t retired_ns; /* frames were removed by age, size or hand; 0: never */
	uint64_t last_seq;
	uint64_t bytes;		/* on disk */
	struct hr__stream *own; /* the library's part */
};

/* On the wall clock. Both numbers are what somebody sent: it may wrap, and nothing else. */
static inline int64_t hr_stream_real_ns(const struct hr_stream *s, uint64_t boot_ns)
{
	return (int64_t)(boot_ns + (uint64_t)s->real_minus_boot_ns);
}

/*
 * What of the stores is opened. A stream that is left out leaves no trace: no problem, no name, no count. `one_user` leaves out
 * streams of the node (job "_node") and those whose owner is not known, too.
 */
struct hr_catalog_filter {
	const char *job; /* NULL: all */
	bool one_user;	 /* only jobs of `uid` */
	uint32_t uid;
};

/*
 * Opens the stores. `filter` NULL: all of them. -ENOENT no store there, -EPROTONOSUPPORT newer
 * version (message in *ret_error, malloc'ed).
 */
int hr_catalog_open(const char *const *stores, size_t n, const struct hr_catalog_filter *filter,
		    struct hr_catalog **ret, char **ret_error);
void hr_catalog_free(struct hr_catalog *c);

/* In the order of job, cluster, attempt, node and instance. */
size_t hr_catalog_streams(const struct hr_catalog *c, const struct hr_stream **ret);
size_t hr_catalog_problems(const struct hr_catalog *c, const struct hr_problem **ret);

/* True if the folder of an opened stream has a journal and no writer: hr_store_recover (daemon/node/recover.h) replays it. */
bool hr_catalog_journals(const struct hr_catalog *c);

/* A job of which streams were removed whole, by age, by size or by hand: what is left of them is this. */
struct hr_retired {
	char *job;
	unsigned streams;
	uint64_t heard_ns;   /* the last that was heard of them; 0: not known */
	uint64_t retired_ns; /* when the last was removed; 0: not known */
};

/* In the order of the stores and their folders. */
size_t hr_catalog_retired(const struct hr_catalog *c, const struct hr_retired **ret);

/* Unpacks one frame (any thread). Free with headrace__frame__free_unpacked. -EBADMSG, -EIO. */
int hr_stream_read(const struct hr_stream *s, uint32_t frame, Headrace__Frame **ret);

/*
 * A process's number outside of its stream: the streams of a job's runs on one node each count from 1, one after the
 * other in the order of their starts. 0 (none) stays 0.
 */
static inline uint64_t hr_stream_proc(const struct hr_stream *s, uint64_t proc)
{
	return proc ? s->proc_base + proc : 0;
}

/* Process by id, NULL if unknown. */
const struct hr_process *hr_stream_process(const struct hr_stream *s, uint64_t proc);

/*
 * A file of the stream. Hash, mount and scope come from a table loaded on first use of any of
 * these; path text is read from its Paths frame when asked for and kept. The path is not
 * NUL-terminated and may hold any byte. -ENOENT: unknown id (its Paths frame was lost).
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

/*
 * The ids of a stream's files are what its writer chose: any of 1 to UINT32_MAX. For tables by file, its files have the numbers
 * 1 to *ret_n, in the order of their ids. -ENOMEM.
 */
int hr_stream_files(const struct hr_stream *s, uint32_t *ret_n);
uint32_t hr_stream_file_number(const struct hr_stream *s, uint32_t id); /* 0: unknown id */
int hr_stream_file_at(const struct hr_stream *s, uint32_t number, bool want_path,
		      struct hr_file_info *ret); /* as hr_stream_file */

/*
 * Whether hr_stream_file has met this frame and could not read it: what it knew of some files is
 * lost, and they have no path (-EBADMSG) or are unknown (-ENOENT).
 */
bool hr_stream_paths_lost(const struct hr_stream *s, uint32_t frame);

#endif
