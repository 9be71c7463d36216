/* SPDX-License-Identifier: Apache-2.0 */
/* life_internal.h - shared by life.c, marks.c (regions), loops.c and waits.c (waits for batches) */
#ifndef HEADRACE_QUERY_DIAGNOSIS_LIFE_INTERNAL_H
#define HEADRACE_QUERY_DIAGNOSIS_LIFE_INTERNAL_H

#include "common/json_part.h"
#include "common/map64.h"
#include "query/diagnosis/life.h"

#define HR_UNKNOWN UINT64_MAX

/* A region of a thread, with the numbers and flags that its args contain. */
struct hr_mark {
	uint64_t proc;
	uint32_t tid, kind; /* enum hr_region_kind, or HR_MARK_... */
	int64_t from, to;
	uint64_t step, epoch;
	uint64_t loader, batch; /* of a wait or fetch; else HR_UNKNOWN */
	uint64_t workers;	/* wait: number of workers; fetch: the worker's number */
	uint64_t prefetch;	/* wait: prefetch_factor of the loader; else HR_UNKNOWN */
	uint64_t batch_size;	/* wait: samples in a batch; else HR_UNKNOWN */
	/* Wait: added to between_cpu_ns, between_ns, others_cpu_ns and core_ns of struct hr_loop. */
	uint64_t before_cpu_ns, before_ns, others_cpu_ns, before_core_ns;
	/* In a wait or fetch, or in the last since_ns of an optimizer's step. */
	struct hr_used used;
	/* HR_MARK_BUSY: the share of the last since_ns in which the accelerator was busy. */
	uint64_t since_ns, busy_percent;
	uint64_t about_tid; /* HR_MARK_HANG: the thread that hangs */
	/* Wait: until this time it cost nothing, because the accelerator worked. */
	int64_t hidden_to;
	uint32_t first_line, n_lines; /* wait or fetch: its samples, as in hr_fetch */
	const char *made;	      /* HR_MARK_CREATES: as in hr_loop */
	bool open;		      /* the region had not ended, so it has no args */
	bool added;		      /* the sum of several short regions, see hr_added */
	bool end;		      /* a wait that returned no batch */
	bool hidden;		      /* a wait at whose end the accelerator still worked */
	bool own;		      /* a wait that the program itself has marked */
	bool outer;		      /* the same, with loaders' waits in it */
	bool persistent, iterable;    /* wait: properties of its loader */
	bool other_kind;	      /* wait: see hr_loop.other_kind */
};
/* Further values of hr_mark.kind: calls that are regions of kind RANGE, and a mark. */
#define HR_MARK_CREATES	   UINT32_MAX
#define HR_MARK_BACKWARD   (UINT32_MAX - 1)
#define HR_MARK_COLLECTIVE (UINT32_MAX - 2)
#define HR_MARK_BUSY	   (UINT32_MAX - 3)
#define HR_MARK_SAMPLES	   (UINT32_MAX - 4)
#define HR_MARK_HANG	   (UINT32_MAX - 5)
#define HR_MARK_EXCEPTION  (UINT32_MAX - 6)
#define HR_MARK_UPDATES	   (UINT32_MAX - 7)
#define HR_MARK_PADDING	   (UINT32_MAX - 8)

/* Indexes in the lists steps, epochs and edges for the next block in the order of time. */
struct hr_life_place {
	size_t step, epoch, edge;
	/* The start of the first loop or step, and the end of the last one. */
	int64_t first_loop, last_loop;
};

/* A batch that a worker of the current training process made. */
struct hr_made {
	uint64_t loader, batch;
	int64_t from;
	uint32_t fetch;
};

struct hr_line_point {
	uint64_t proc;
	int64_t at;
	uint64_t every_ns;	  /* the sample stands for so much time */
	const char *line, *inner; /* as in hr_own_line; NULL: in the model */
	const char *compiler;	  /* as in hr_own_line */
};

/* What headrace has marked about a process. */
struct hr_process_marks {
	uint64_t proc;
	struct hr_hang hang;	    /* the last one; at 0: none */
	struct hr_exception raised; /* the first one; at 0: none */
	struct hr_updates updates;
	struct hr_padding padding;
};

/*
 * Reads the regions of a stream as marks, and makes the blocks of each training process from its
 * marks. A thread uses one reader for many streams.
 */
struct hr_life_reader {
	struct hr_query *q;
	struct hr_op_scan *scan;
	struct hr_train_lives *to; /* receives the training processes and workers */
	const struct hr_scope *scope;
	uint32_t stream;
	struct hr_job_span span; /* regions outside this span are left out */
	struct hr_mark *marks;	 /* sorted by process and time */
	size_t n_marks, marks_room;
	bool saves;

	struct hr_train_life *life;
	struct hr_life_place at;
	const struct hr_mark **steps, **epochs; /* sorted by time */
	size_t n_steps, steps_room, n_epochs, epochs_room;
	int64_t *edges; /* times at which steps, epochs and loops begin and end, sorted */
	size_t n_edges, edges_room;
	struct hr_made *made; /* sorted by loader, batch and time */
	size_t n_made, made_room;
	struct hr_map64 line_numbers; /* from a hash of the text to its index in line_texts */
	const char **line_texts;
	size_t n_line_texts, line_texts_room;
	/* The samples of training threads outside of waits for batches. */
	struct hr_line_point *points;
	size_t n_points, points_room;
	struct hr_process_marks *of_process; /* of the stream's processes */
	size_t n_of_process, of_process_room;
};

static inline bool hr__in_scope(const struct hr_life_reader *r, int32_t rank)
{
	return r->scope->rank == HR_ANY_RANK || r->scope->rank == rank;
}

/* Reads the next value of a JSON list. `*at`: the end of the value before it, or of the '['. */
static inline bool hr__next_of(const struct hr_json_part *list, const char **at,
			       struct hr_json_part *ret)
{
	*at += **at == ',';
	return hr_json_part_read(at, list->p + list->n, ret) == 0;
}

/* marks.c: reads the regions of r->stream within r->span into r->marks. -ENOMEM. */
int hr__marks_read(struct hr_life_reader *r);

/*
 * lines.c: returns a copy of the text, one for each text that this reader finds. NULL: memory is
 * short.
 */
const char *hr__line_text(struct hr_life_reader *r, const struct hr_json_part *line);
/* lines.c: adds the samples of a fetch, a JSON list, to r->to, and refers to them. -ENOMEM. */
int hr__lines_add(struct hr_life_reader *r, const uint8_t *at, const uint8_t *end,
		  struct hr_mark *to);

/* lines.c: adds the samples of a mark of this process and time to r->points. -ENOMEM. */
int hr__points_add(struct hr_life_reader *r, const ProtobufCBinaryData *args, uint64_t proc,
		   int64_t at);
/* lines.c: sorts r->points by time. */
void hr__points_sort(struct hr_life_reader *r);
/* lines.c: sums the samples of r->life by line. -ENOMEM. */
int hr__own_lines_add(struct hr_life_reader *r);

/* hangs.c: returns a positive member of a JSON object; 0: there is none. */
uint64_t hr__number_of(const struct hr_json_part *object, const char *key);
/* hangs.c: returns a text of a JSON object, escaped; "": there is none. NULL: memory is short. */
const char *hr__text_of(struct hr_life_reader *r, const struct hr_json_part *object,
			const char *key);
/* hangs.c: keeps the args of a mark `hang` at this time, if it is the last one. -ENOMEM. */
int hr__hang_add(struct hr_life_reader *r, const struct hr_json_part *args, struct hr_hang *to,
		 int64_t at);
/*
 * hangs.c: returns the hang of the process of these marks, if no region of `tid` (0: of any thread)
 * has ended since then. at 0: none.
 */
struct hr_hang hr__hang_now(struct hr_hang hang, const struct hr_mark *marks, size_t n,
			    uint32_t tid);

/*
 * process_marks.c: returns what is marked about a process, until the next call. NULL: memory is
 * short.
 */
struct hr_process_marks *hr__process_marks(struct hr_life_reader *r, uint64_t proc);
/* process_marks.c: adds a mark `hang`, `exception`, `optimizer` or `padding`. -ENOMEM. */
int hr__process_mark_add(struct hr_life_reader *r, uint32_t kind, const ProtobufCBinaryData *args,
			 uint64_t proc, int64_t at);

/* loops.c: finds the loops of r->life from the marks of its process. -ENOMEM. */
int hr__loops_find(struct hr_life_reader *r, const struct hr_mark *marks, size_t n);
/* Returns the latest loop over this loader that began at or before `time`; NULL: none. */
struct hr_loop *hr__loop_at(const struct hr_life_reader *r, uint64_t loader, int64_t time);
/* Returns the index of the innermost loop that contains `time`; HR_NO_LOOP: none. */
uint32_t hr__loop_around(const struct hr_life_reader *r, int64_t time);
enum hr_phase hr__phase_at(const struct hr_life_reader *r, int64_t time, uint32_t loop);

/* waits.c: finds the batches that workers of r->life made, and stores them in r->made. -ENOMEM. */
int hr__made_find(struct hr_life_reader *r);
/* Adds the blocks of a wait: one of kind HIDDEN until its hidden_to, then others. -ENOMEM. */
int hr__wait_add(struct hr_life_reader *r, const struct hr_mark *wait);
/* Adds the time of a fetch before `to` that has no block to the scan. -ENOMEM. */
int hr__fetch_hide(struct hr_life_reader *r, struct hr_fetch *f, int64_t to);

/* life.c: adds what the regions of r->stream contain to the empty r->to and to r->scan. -ENOMEM. */
int hr__lives_read(struct hr_life_reader *r);
void hr__life_reader_done(struct hr_life_reader *r);

/*
 * Adds a block. Operations of the process and thread in `explains` explain the block;
 * hr__block_add_own uses those of the training thread. -ENOMEM.
 */
int hr__block_add(struct hr_life_reader *r, enum hr_block_kind kind, int64_t from, int64_t to,
		  struct hr_interval explains, uint32_t fetch);
int hr__block_add_own(struct hr_life_reader *r, enum hr_block_kind kind, int64_t from, int64_t to,
		      uint32_t fetch);
int hr__fetch_add(struct hr_life_reader *r, const struct hr_mark *m, uint32_t worker,
		  uint32_t *ret);

#endif
