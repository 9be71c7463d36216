/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - the state of an import and of its streams
 *
 *      main thread    opens the files, surveys them, starts workers, waits
 *      workers        take the next file, read it, end its streams
 *      main thread    ends the streams that need names of other files, then the last one
 *
 * The last stream stays open until all files are read: it gets the losses and the number of ranks
 * of the whole job. Until then the job is incomplete, also for somebody who queries the store.
 */
#ifndef HEADRACE_IMPORT_INTERNAL_H
#define HEADRACE_IMPORT_INTERNAL_H

#include <pthread.h>

#include "common/arena.h"
#include "common/batch.h"
#include "common/rows.h"
#include "import/import.h"
#include "import/stream.h"
#include "store/store.h"

struct hr__shared_name {
	uint32_t file; /* index of the file that published it */
	uint32_t bytes;
	char *text;
};

struct hr__shared_names {
	struct hr__shared_name *list;
	uint32_t n, room;
	struct hr_map64 by_key;
};

/* The job, as its streams state it. */
struct hr__import_job {
	uint32_t largest_rank_plus1, world_size;
};

struct hr_import {
	const struct hr_import_options *options;
	const char *job_id;
	struct hr_import_file *files;
	size_t n_files, files_room;
	size_t next;	      /* the file that the next worker takes */
	uint64_t largest_pid; /* of the surveys */

	pthread_mutex_t lock; /* of everything below */
	int error;	      /* of the first worker that failed */
	char *error_text;
	struct hr_import_result *result;
	size_t problems_room, clocks_room;
	uint64_t losses[HR_LOSS_REASONS];
	struct hr__shared_names shared[HR_IMPORT_SHARED];
	struct hr__import_job job;
	const struct hr_reader *reader;	  /* of the file that was opened last */
	bool mixed;			  /* the files have several formats */
	struct hr_import_stream *waiting; /* read, but not ended */
	struct hr_import_stream *last;	  /* read; ended after all others */
	struct hr_catalog *catalog;	  /* of the job to which streams are added; or NULL */
	char **folders;			  /* of all streams that were opened */
	size_t n_folders, folders_room;
};

struct hr__import_thread {
	uint64_t proc;
	uint32_t tid;
	uint32_t batch; /* number of the batch in which it has the index `task` */
	uint32_t task;
};

struct hr__file {
	uint32_t named; /* 0: the path is not known yet; 1: a frame has it, or `fresh` */
	uint16_t scope;
};

struct hr__fresh_path {
	uint32_t id;
	uint32_t bytes;
	uint64_t hash;
	const void *text; /* in hr_import_stream.texts */
};

struct hr__unnamed {
	uint32_t id;
	uint64_t key;
	const char *fallback;
};

/* Memory that a stream needs only while its file is read. */
struct hr__istream_batch {
	uint32_t n, n_tasks;
	struct hr_task tasks[HR_BATCH_TASKS];
	struct hr_event events[HR_BATCH_EVENTS];
};

/* A moment that a trace and the recording have in common. */
struct hr__landmark {
	uint64_t key;	 /* kind of the region, or hash of its name */
	uint64_t number; /* of the step; of other regions: their order, from 0 */
	int64_t ns;	 /* start: wall clock of the recording, or clock of the stream */
};

struct hr__landmarks {
	struct hr__landmark *list;
	uint32_t n, room;
	struct hr_map64 counts; /* key -> number of regions */
};

/* How a clock was found. */
struct hr__alignment {
	int64_t offset_ns; /* recording minus trace: median */
	uint64_t error_ns; /* median of the deviations from it */
	uint64_t most_ns;  /* the largest deviation */
	uint64_t mean_ns;  /* of the deviations */
	uint32_t n;	   /* common landmarks; 0: none */
	bool steps;	   /* they are steps */
};

/* A step of the recording. Wall clock. */
struct hr__recorded_step {
	int64_t start_ns, end_ns;
	uint64_t step, epoch;
};

/* What a stream adds to a recorded job (into.c). */
struct hr__into {
	const struct hr_stream *to; /* NULL: the import makes a job of its own */
	const struct hr_process *main;
	int32_t main_pid; /* in the trace; 0: unknown */
	bool has_kinds;	  /* the recording has steps, waits or other regions with a purpose */
	struct hr__landmarks recorded, found;
	struct hr__recorded_step *steps; /* of `main`, sorted by start */
	uint32_t n_steps, steps_room;
	int64_t offset_ns;     /* to add to the clock of the stream, as far as is known */
	uint64_t n_operations; /* not added, because headrace recorded them */
	const char *name;      /* of the file, which the import owns */
	char *clock;	       /* how its clock was found, for people */
	uint64_t error_ns;
};

struct hr_import_stream {
	struct hr_import_stream *next;
	struct hr_import *import;
	struct hr_import_file *file; /* NULL after it was read */
	char *node;
	const char *reader;
	uint32_t part; /* of the file */
	uint64_t instance;
	struct hr_writer *writer; /* NULL while it waits for names of other files */
	int failed;		  /* -errno: an error after which nothing is written */

	struct hr_arena keep; /* texts of processes, fallbacks: until the stream ends */
	struct hr_import_process *processes;
	uint32_t n_processes, processes_room;
	struct hr__import_thread *threads;
	uint32_t n_threads, threads_room;
	struct hr_map64 thread_of;
	uint32_t last_thread;
	const char *program;

	struct hr__file *files;
	uint32_t n_files, files_room;
	struct hr_map64 file_of; /* path id -> file id */
	struct hr__fresh_path *fresh;
	uint32_t n_fresh, fresh_room;
	uint64_t fresh_bytes;
	struct hr_arena texts; /* of `fresh` */
	struct hr__unnamed *unnamed;
	uint32_t n_unnamed, unnamed_room;

	struct hr_encoder *encoder;
	struct hr__istream_batch *batch;
	uint32_t batch_number;
	struct hr__nest *nest; /* of hr_import_region_nest; NULL: none */
	struct hr_regions *regions;
	size_t region_bytes; /* of the texts in `regions` */
	struct hr_rollups rollups;
	uint32_t rollup_of[HR_OP_MAX];
	struct hr_filerecs records;
	uint32_t last_record;
	Headrace__FileRecord **given; /* of hr_import_record */
	uint32_t n_given, given_room;
	struct hr_arena given_memory;
	struct hr_op_info ops[HR_OP_MAX];

	int64_t clock_ns; /* wall clock minus the times of the stream */
	bool clock_unknown;
	struct hr__into into;

	Headrace__LossRow *losses;
	uint32_t n_losses, losses_room;
	uint64_t first_ns, last_ns; /* UINT64_MAX, 0: no data */
	uint64_t n_operations, n_regions, moved_bytes;
};

/* stream.c */
int hr__istream_open(struct hr_import_stream *s); /* unless it is open */
void hr__istream_free(struct hr_import_stream *s);
/* Counts a loss of operations with this op; 0: of any. Returns 0 or -ENOMEM. */
int hr__istream_lose(struct hr_import_stream *s, enum hr_loss_reason reason, uint32_t op,
		     uint64_t count, uint64_t bytes, uint64_t dur_ns);
void hr__istream_extend(struct hr_import_stream *s, uint32_t proc, uint64_t start_ns,
			uint64_t end_ns);

/* stream_frames.c: write what the stream has collected */
int hr__istream_send(struct hr_import_stream *s, Headrace__Frame *frame, bool compress);
/* Sends a message as the body of a frame: hr__istream_send_body(s, PATHS, paths, &m, true). */
#define hr__istream_send_body(s, body, member, message, compress)                                  \
	({                                                                                         \
		Headrace__Frame hr_frame = HEADRACE__FRAME__INIT;                                  \
                                                                                                   \
		hr_frame.body_case = HEADRACE__FRAME__BODY_##body;                                 \
		hr_frame.member = (message);                                                       \
		hr__istream_send(s, &hr_frame, compress);                                          \
	})
int hr__istream_send_batch(struct hr_import_stream *s);
int hr__istream_send_paths(struct hr_import_stream *s);
int hr__istream_send_regions(struct hr_import_stream *s);
int hr__istream_send_rollups(struct hr_import_stream *s, uint64_t up_to_window);
int hr__istream_send_given(struct hr_import_stream *s);
int hr__istream_send_records(struct hr_import_stream *s, bool all);

/* nest.c: frees what hr_import_region_nest has collected */
void hr__nest_free(struct hr_import_stream *s);

/* stream_end.c */
/* The file is read: writes what is left, and frees most of the memory. */
int hr__istream_finish_reading(struct hr_import_stream *s);
/* Whether hr__istream_end needs names of other files. */
bool hr__istream_is_waiting(const struct hr_import_stream *s);
/* Closes the files of a stream that waits, because there may be thousands. */
int hr__istream_rest(struct hr_import_stream *s);
/* Writes the last frames. `last`: with what concerns the whole job. Frees the stream. */
int hr__istream_end(struct hr_import_stream *s, bool last);

/* into.c: streams that are added to a recorded job */
int hr__into_open(struct hr_import *i, char **ret_error);
/* Chooses the recorded stream to which a stream of this origin is added. */
int hr__into_choose(struct hr_import_file *f, const struct hr_import_origin *origin,
		    struct hr__into *ret);
void hr__into_done(struct hr__into *into);
/* Notes a region as a landmark. Returns 0 or -ENOMEM. */
int hr__into_landmark(struct hr_import_stream *s, uint32_t thread,
		      const struct hr_import_region *g);
/* Sets into.offset_ns from the landmarks so far. *ret: how, if not NULL. */
int hr__into_align(struct hr_import_stream *s, struct hr__alignment *ret);
/* Sets step and epoch of a region to those of the recording at the middle of the region. */
void hr__into_step(const struct hr_import_stream *s, uint32_t thread, struct hr_region *g);
/* Returns the kind with which a region is stored. */
uint32_t hr__into_kind(const struct hr_import_stream *s, uint32_t kind);
/* The file is read: finds the clock of the stream, or refuses. */
int hr__into_clock(struct hr_import_stream *s, struct hr_import_file *f);
/* Sets what the recording has of a process, and returns it. NULL: it is not there. */
const Headrace__Process *hr__into_process(const struct hr_import_stream *s,
					  struct hr_import_process *p);

/* landmarks.c */
/* Adds a region's start. `only`: only if these have its key. */
int hr__landmark_add(struct hr__landmarks *l, const struct hr__landmarks *only,
		     const struct hr_region *region, const struct hr_import_slice *name,
		     int64_t ns);
void hr__landmarks_done(struct hr__landmarks *l);
/*
 * Steps may be counted from another number (torch 1.13 counts one less), which the deviations show.
 * `clock_ns`: to add to the times of `found`. `near`: it is right, so large differences of the
 * numbers are found, too.
 */
int hr__landmarks_align(struct hr__landmarks *recorded, struct hr__landmarks *found,
			int64_t clock_ns, bool near, struct hr__alignment *ret);

/* Removes the files of a folder, and the folder. */
void hr__folder_remove(const char *folder);

/* shared.c */
/*
 * Adds a text (malloc'ed; NULL: no memory), which it takes over, to a list of the import, which has
 * at most `most`. Returns 0 or -ENOMEM.
 */
int hr__text_add(struct hr_import *i, char ***list, size_t *n, size_t *room, size_t most,
		 char *text);
void hr__shared_done(struct hr__shared_names *s);

/* files.c: the operands */
int hr__files_open(struct hr_import *i, const char *const *files, size_t n);
void hr__files_done(struct hr_import *i);
char *hr__files_job(const char *const *files, size_t n); /* the job's id; NULL: no memory */
/* Makes a name of a folder and of a column: printable characters. NULL is allowed. */
void hr__name_clean(char *name);
/* Returns the length of the first of these ends that the name has, besides other bytes. 0: none. */
size_t hr__name_end(const char *name, size_t bytes, const char *const *ends, size_t n);

#endif
