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

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "common/arena.h"
#include "common/frame.h"

#define HR_SEGMENT_BYTES	(256u << 20) /* a larger segment is sealed */
#define HR_WRITER_RESERVE_BYTES (64u << 10)  /* disk space that only hr_writer_append_last uses */

struct hr_segment_hdr {
	uint8_t magic[8];
	uint32_t version; /* HR_STORE_VERSION */
	uint32_t incompatible;
	uint64_t first_seq; /* seq of the segment's first frame of the stream */
	uint8_t pad[40];
};
_Static_assert(sizeof(struct hr_segment_hdr) == 64, "segment header");

struct hr_segment_trailer {
	uint64_t index_offset; /* offset of the frame with the index */
	uint64_t index_bytes;
	uint32_t crc32c; /* checksum of the preceding 16 bytes */
	uint32_t spare;
	uint8_t magic[8];
};
_Static_assert(sizeof(struct hr_segment_trailer) == 32, "segment trailer");

/* ---- files ----------------------------------------------------------------------------------- */

/*
 * These two functions open all files of a store, because its owner chooses the names in it. They
 * never follow a symbolic link, open a FIFO or device, or wait. They return a descriptor or -errno
 * (-ELOOP: the name is a link, FIFO, socket or device). O_CREAT creates a file with mode 0600.
 */
int hr_store_open_file(int dir_fd, const char *name, int flags);
int hr_store_open_folder(int dir_fd, const char *name);

/*
 * Calls `visit` for each folder in the open folder `fd`, in the order of names, until a call does
 * not return 0. Skips names that begin with a dot. Returns the last result, or -errno.
 */
typedef int hr_store_visit(void *context, const char *name, int folder_fd);
int hr_store_each_folder(int fd, hr_store_visit *visit, void *context);

/* Reads at most `bytes` bytes of a small file. Returns how many were read, or -errno. */
int hr_store_read_file(int dir_fd, const char *name, void *ret, size_t bytes);

/*
 * Writes the file NAME.new and renames it, so that after a crash the old file or the new one is
 * there. `sync`: the content is on disk before the rename. `times`: see futimens; NULL: now. After
 * an error, the old file remains.
 */
int hr_store_replace_file(int dir_fd, const char *name, const void *data, size_t bytes, bool sync,
			  const struct timespec times[2]);

/* Whether this process's user owns the open file or folder, and no other user may write it. */
bool hr_store_is_own(int fd);

/*
 * Whether a writer holds the lock of a stream. Does not take the lock. True if the file system has
 * no locks, because a writer may be there.
 */
bool hr_stream_locked(int stream_fd);

/*
 * Takes the lock of a stream, and holds it until the caller closes *ret_fd. -EBUSY; -ENOLCK: the
 * file system has no locks.
 */
int hr_stream_lock(int stream_fd, int *ret_fd);

/* ---- writing --------------------------------------------------------------------------------- */

/* The longest path of a store, in bytes. It leaves room for names of jobs, nodes and files. */
#define HR_STORE_PATH_MOST (PATH_MAX - 1024)

/* Creates a folder (0700), and those above it (mode `above`), if they are missing. */
int hr_folder_make(const char *path, mode_t above);

/*
 * Creates the folder (0700), those above it, and headrace.store, if they are missing. -EACCES,
 * -EROFS, -ENOSPC, -ENOTDIR. -ENAMETOOLONG: longer than HR_STORE_PATH_MOST. -EPROTONOSUPPORT: a
 * newer version. -ENOTEMPTY: a folder with other files. -EBUSY: a collector holds the store
 * (hr_store_holder).
 */
int hr_store_create(const char *path);

/* Returns what hr_store_create would return for this path, but creates nothing that remains. */
int hr_store_check(const char *path);

/*
 * For a collector: hr_store_create, then locks the store until *ret_fd is closed. -EBUSY: another
 * collector holds it. Runs that already write into the store continue; new runs are refused.
 */
int hr_store_hold(const char *path, int *ret_fd);

/*
 * Like hr_store_hold, for a store on a read-only file system. -ENOENT: no store; -EBUSY: another
 * collector holds it.
 */
int hr_store_hold_read_only(const char *path, int *ret_fd);

/* Whether the file system of a store has locks, as far as is known. */
bool hr_store_has_locks(const char *path);

/*
 * Makes the lock of hr_store_hold_read_only that of hr_store_hold, when the file system has become
 * writable. The store is locked all the time, and *fd remains valid after an error. -EROFS: it is
 * still read-only; -EBUSY: another collector has locked it in the same way.
 */
int hr_store_hold_writable(const char *path, int *fd);

/* Writes a line for users whose run is refused: "tcp://127.0.0.1:4747 (pid 17 on n1)". */
int hr_store_write_holder(const char *path, const char *text);

/* Whether a collector holds the store. *ret: the line of hr_store_write_holder, or "". */
bool hr_store_holder(const char *path, char *ret, size_t bytes);

/* Whether the path is a store, even if the store is damaged or unreadable. */
bool hr_store_is(const char *path);

/* What the folders of a store show, without reading its data. */
struct hr_store_outline {
	uint32_t uid; /* owner of the folder */
	size_t jobs;
	char last_job[256];  /* the job with the newest stream; "": no job */
	uint64_t changed_ns; /* wall clock: when that stream began or, without a job, the store */
	uint64_t bytes;	     /* size of all streams, only if `sizes` */
};

/* Fails without the file headrace.store, unlike hr_store_is. `sizes`: sets `bytes`, too. */
int hr_store_outline(const char *path, bool sizes, struct hr_store_outline *ret);

/* Whether a run of this job has written into the store. */
bool hr_store_has_job(const char *path, const char *job);

struct hr_stream_id {
	const char *cluster; /* can be "" */
	const char *job;
	uint32_t attempt;
	const char *node;
	const char *boot_id;
	uint64_t instance;
	uint64_t added_to; /* instance of the stream to which headrace import adds this one; or 0 */
};

/* Whether the stream was begun. */
bool hr_store_has_stream(const char *path, const struct hr_stream_id *id);

struct hr_writer;

/*
 * Opens a stream for appending. For a new stream, writes the StreamStart, as seq 1. The caller
 * appends the StreamEnd. Cuts a torn tail, and stores its size in *ret_cut_bytes unless that is
 * NULL. A retired stream (store/stream_state.h) continues after its mark. -EBUSY: another writer
 * has the stream, or a collector holds the store. Other errors: see hr_store_create.
 */
int hr_writer_open(const char *store, const struct hr_stream_id *id, struct hr_writer **ret,
		   uint64_t *ret_cut_bytes);

/*
 * Like hr_writer_open, but -EPERM if the stream's folder is missing or fails hr_store_is_own. The
 * folders above may belong to other users, who can rename this folder, but not change its content.
 */
int hr_writer_open_own(int store_fd, const char *store, const struct hr_stream_id *id,
		       struct hr_writer **ret);

/* Like hr_writer_open, for the collector that holds the store. */
int hr_writer_open_held(const char *store, const struct hr_stream_id *id, struct hr_writer **ret,
			uint64_t *ret_cut_bytes);

/* Return path and descriptor of the stream's folder. They are valid while the writer exists. */
const char *hr_writer_dir(const struct hr_writer *w);
int hr_writer_dir_fd(const struct hr_writer *w);

/* Returns the seq of the last frame; 0 for a new stream. */
uint64_t hr_writer_mark(const struct hr_writer *w);

uint64_t hr_writer_bytes(const struct hr_writer *w);

/*
 * Appends a frame (hr_frame_pack) whose seq is mark + 1. -EALREADY: seq <= mark, nothing is done;
 * -ERANGE: a gap; -ENOSPC and other write errors. After an error, only whole frames remain.
 */
int hr_writer_append(struct hr_writer *w, const uint8_t *frame, size_t bytes);

/* Like hr_writer_append, for a caller that has the unpacked frame `msg`, too. */
int hr_writer_append_packed(struct hr_writer *w, const Headrace__Frame *msg, const uint8_t *frame,
			    size_t bytes);

/* Like hr_writer_append, for the last frames on a full disk: uses the reserved space. */
int hr_writer_append_last(struct hr_writer *w, const uint8_t *frame, size_t bytes);

/* Seals segments at this size. From small segments, a spool can remove few frames at a time. */
void hr_writer_segment_bytes(struct hr_writer *w, uint64_t bytes);

/* Seals the open segment, if any, and starts the next. After a failure, the old one stays open. */
int hr_writer_roll(struct hr_writer *w);

/*
 * Continues after `mark`, in a new segment. The frames up to `mark` are missing here: another
 * collector has acknowledged them, so the daemon no longer has them. -EINVAL: `mark` is below the
 * writer's mark. A failure changes nothing.
 */
int hr_writer_skip(struct hr_writer *w, uint64_t mark);

int hr_writer_sync(struct hr_writer *w);

/* Call this after a sync of the whole file system, so that hr_writer_sync need not repeat it. */
void hr_writer_synced(struct hr_writer *w);

/*
 * Call this after a failed sync. After such a sync, data since the last successful sync may be
 * missing on disk, even if reads and later syncs succeed, because the kernel drops such pages. Cuts
 * the stream back to the last successful sync of this writer, and continues there (hr_writer_mark).
 * If this returns an error, call only hr_writer_abandon.
 */
int hr_writer_rewind(struct hr_writer *w);

/* Whether the open segment or the folder was removed. Appended data would be lost. */
bool hr_writer_removed(const struct hr_writer *w);

/* Limits the memory of the index: a segment whose index needs more than `bytes` is sealed. */
void hr_writer_limit_index(struct hr_writer *w, size_t bytes);

/* Seals the open segment, and frees the writer. Accepts NULL. */
int hr_writer_close(struct hr_writer *w);

/* Call it after errors: closes without sealing. The next writer recovers. Accepts NULL. */
void hr_writer_abandon(struct hr_writer *w);

/* ---- reading --------------------------------------------------------------------------------- */

/*
 * A catalogue has all streams of some stores. It indexes the frames, which hr_stream_read reads,
 * and has loaded the processes and mounts. It never changes, so any number of threads may read it.
 */
struct hr_catalog;

/* A text for the user: "jobs/7/n1.ab/000003.seg: frame at 4711 is damaged; 18234 bytes skipped". */
struct hr_problem {
	char *text;
};

struct hr_frame_ref {
	uint32_t segment; /* index in the segments of the stream */
	uint32_t bytes;	  /* size, with the header */
	uint64_t offset;
	uint64_t seq;
	uint32_t kind; /* Headrace__Frame__BodyCase */
};

struct hr_batch_ref {
	uint32_t frame; /* index in the frames of the stream */
	uint32_t count;
	uint64_t base_ns;
	uint64_t last_ns;
	uint32_t classes;
	const uint8_t *ops; /* bitmap of the ops that occur */
	uint32_t ops_bytes;
	const uint64_t *procs; /* processes that have rows in the frame */
	uint32_t n_procs;
};

struct hr_process { /* all rows of a process, merged: mostly, the last one counts */
	const Headrace__Process *msg;
	int32_t rank; /* -1: no rank */
	int32_t local_rank;
	int32_t worker;
};

struct hr_stream {
	const char *store;
	const char *cluster, *job, *node, *boot_id;
	uint32_t attempt;
	uint64_t instance;
	/*
	 * The recorded stream of this job and node to which headrace import has added this one, which
	 * has only regions. NULL: this is a recorded stream.
	 */
	const struct hr_stream *added_to;
	uint64_t proc_base;	    /* hr_stream_proc adds it to numbers of processes */
	int64_t real_minus_boot_ns; /* wall clock minus boot time, from the last Clock sample */
	uint64_t clock_error_ns;
	const struct hr_frame_ref *frames;
	uint32_t n_frames;
	const struct hr_batch_ref *batches;
	uint32_t n_batches;
	const struct hr_process *processes; /* sorted by proc */
	uint32_t n_processes;
	const Headrace__Mount *const *mounts; /* index: Mount.id; [0] is NULL */
	uint32_t n_mounts;
	bool ended;
	bool live; /* a writer holds the lock */
	/* the members up to retired_ns are from store/stream_state.h; zero without it */
	bool collected;
	bool uid_known; /* uid is the owner of the job */
	uint32_t uid;
	bool connected;	   /* the daemon is connected, or was so when the collector ended */
	uint64_t heard_ns; /* collector's wall clock: last message of the daemon */
	bool clock_known;
	int64_t clock_offset_ns; /* wall clock of the node minus that of the collector */
	uint64_t clock_offset_error_ns;
	uint64_t closed_ns; /* when an operator declared the stream complete; 0: never */
	/* when frames were removed because of their age or size, or by an operator; 0: never */
	uint64_t retired_ns;
	uint64_t last_seq;
	uint64_t bytes;
	struct hr__stream *own;
};

/*
 * Returns the wall clock at boot_ns. The sender chose both numbers, so the sum may overflow, which
 * is harmless.
 */
static inline int64_t hr_stream_real_ns(const struct hr_stream *s, uint64_t boot_ns)
{
	return (int64_t)(boot_ns + (uint64_t)s->real_minus_boot_ns);
}

/*
 * Selects the streams to open. Other streams appear nowhere, not even in problems, names or counts.
 * `one_user` also excludes the streams of nodes (job "_node"), and those with an unknown owner.
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

/* Return arrays. Streams are sorted by job, cluster, attempt, node and instance. */
size_t hr_catalog_streams(const struct hr_catalog *c, const struct hr_stream **ret);
size_t hr_catalog_problems(const struct hr_catalog *c, const struct hr_problem **ret);

/* Whether a stream has a journal and no writer. If so, call hr_store_recover (daemon/node). */
bool hr_catalog_journals(const struct hr_catalog *c);

/* A job whose streams were removed: by age, by size, or by an operator. */
struct hr_retired {
	char *job;
	unsigned streams;
	uint64_t heard_ns;   /* last message; 0: unknown */
	uint64_t retired_ns; /* last removal; 0: unknown */
};

/* Returns the retired jobs, in the order of the stores and their folders. */
size_t hr_catalog_retired(const struct hr_catalog *c, const struct hr_retired **ret);

/* Unpacks one frame. Any thread. Free it with headrace__frame__free_unpacked. -EBADMSG, -EIO. */
int hr_stream_read(const struct hr_stream *s, uint32_t frame, Headrace__Frame **ret);

/*
 * Calls `visit` for each frame of some kinds, in their order, until it does not return 0. `kinds`:
 * bits HR_FRAME_BIT(body). The frame is freed after the call. Unreadable frames are skipped, and
 * counted in *damaged, if it is not NULL. Returns the last result of `visit`, 0 or -ENOMEM.
 */
#define HR_FRAME_BIT(body) (UINT64_C(1) << HEADRACE__FRAME__BODY_##body)
typedef int hr_frame_visit(void *context, Headrace__Frame *frame);
int hr_stream_each_frame(const struct hr_stream *s, uint64_t kinds, hr_frame_visit *visit,
			 void *context, uint64_t *damaged);

/* Like hr_stream_read, but the arena owns the frame, so do not free it. -ENOMEM. */
int hr_stream_read_into(const struct hr_stream *s, uint32_t frame, struct hr_arena *arena,
			Headrace__Frame **ret);

/*
 * Returns the number of a process outside its stream. In each stream of a job on a node, processes
 * count from 1. Outside, the next stream (by start time) continues the count. 0 means no process.
 * A process of an added stream has the number that it has in the recorded stream, if it is there.
 */
uint64_t hr_stream_added_proc(const struct hr_stream *s, uint64_t proc);
static inline uint64_t hr_stream_proc(const struct hr_stream *s, uint64_t proc)
{
	if (__builtin_expect(s->added_to != NULL, 0))
		return hr_stream_added_proc(s, proc);
	return proc ? s->proc_base + proc : 0;
}

const struct hr_process *hr_stream_process(const struct hr_stream *s, uint64_t proc);

/*
 * A file of the stream. The first use loads the table of files. The path is read from its Paths
 * frame when it is needed. It has no NUL at the end and may contain any byte. -ENOENT: the id is
 * unknown, because its Paths frame was lost.
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

/* Numbers the files from 1 to *ret_n, in the order of their ids, which have gaps. 0 or -ENOMEM. */
int hr_stream_files(const struct hr_stream *s, uint32_t *ret_n);
uint32_t hr_stream_file_number(const struct hr_stream *s, uint32_t id); /* 0: unknown id */
int hr_stream_file_at(const struct hr_stream *s, uint32_t number, bool want_path,
		      struct hr_file_info *ret); /* like hr_stream_file */

/*
 * Calls `visit` for each file whose path is known, in the order of their numbers, until it returns
 * another value than 0. The paths are not kept in memory. Returns that value, 0 or -ENOMEM.
 */
typedef int hr_file_visit(void *context, uint32_t number, const struct hr_file_info *info);
int hr_stream_each_path(const struct hr_stream *s, hr_file_visit *visit, void *context);

/* Whether a Paths frame is lost. Its files have no path (-EBADMSG) or are unknown (-ENOENT). */
bool hr_stream_paths_lost(const struct hr_stream *s, uint32_t frame);

#endif
