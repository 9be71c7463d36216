/* SPDX-License-Identifier: Apache-2.0 */
/*
 * darshan_state.h - the state of one Darshan log while it is read; one thread
 *
 *      darshan.c           header, job and messages
 *      darshan_names.c     names of files; ranks, nodes and times
 *      darshan_dxt.c       segments --> operations, and their sums for each (file, rank)
 *      darshan_records.c   counters without these sums --> file records and roll-ups
 */
#ifndef HEADRACE_IMPORT_DARSHAN_DARSHAN_STATE_H
#define HEADRACE_IMPORT_DARSHAN_DARSHAN_STATE_H

#include "common/arena.h"
#include "common/darshan.h"
#include "common/map64.h"
#include "import/stream.h"

struct darshan_name {
	const char *text;
	uint32_t bytes;
};

/* A rank of the log, or all ranks together. */
struct darshan_rank {
	struct hr_import_stream *s;
	uint32_t proc, thread; /* `thread`: of what has no known thread */
};

/* What DXT has of the reads and writes of a (file, rank), or of a file. */
struct darshan_traced {
	struct {
		uint64_t n, bytes, dur_ns;
	} way[2]; /* writes, reads */
};

struct darshan {
	struct hr_import_file *f;
	struct hr_darshan_header header; /* of version 3.41, in the byte order of this machine */
	uint32_t version;		 /* 341 */
	bool swapped;			 /* the log has the other byte order */
	uint64_t job_at, job_bytes;
	struct hr_input *source; /* of a region */
	bool cut;		 /* the size of a module does not match its data */

	uint64_t start_ns, end_ns;
	int64_t n_ranks;
	const char *exe, *cmdline; /* in `texts`; NULL: unknown */
	int32_t pid;		   /* of the only process; 0: unknown */

	struct hr_arena texts;
	struct darshan_name *names;
	uint32_t n_names, names_room;
	struct hr_map64 name_of; /* id of a record -> name */

	struct darshan_rank *ranks;
	uint32_t n_ranks_found, ranks_room;
	struct hr_map64 rank_of; /* rank + 1 -> index in `ranks` */
	const char *host;	 /* of all ranks so far, if `one_host` */
	bool one_host;
	uint32_t n_hosts;
	struct hr_map64 host_of; /* hash of a name that has a stream */

	struct darshan_traced *traced;
	uint32_t n_traced, traced_room;
	struct hr_map64 traced_of; /* hr__dlog_traced_key */
	struct hr_map64 thread_of; /* hash of rank and pthread_t -> thread */

	uint64_t n_segments, n_bad, n_nameless, n_mixed;
	bool hosts_left_out; /* more nodes than streams can be open */
};

/* Modules that are read. */
int hr__dlog_dxt(struct darshan *d);
int hr__dlog_posix(struct darshan *d);
int hr__dlog_stdio(struct darshan *d);

/* ---- darshan_names.c ---- */

int hr__dlog_names(struct darshan *d);
void hr__dlog_done(struct darshan *d);

/* Whether the log may have records of the rank. */
static inline bool hr__dlog_rank_possible(const struct darshan *d, int64_t rank)
{
	return rank >= HR_DARSHAN_SHARED && rank < d->n_ranks;
}

/* Finds or adds a rank (HR_DARSHAN_SHARED: all). `host` NULL: unknown. NULL: no memory. */
const struct darshan_rank *hr__dlog_rank(struct darshan *d, int64_t rank, const char *host);

/* Adds the ranks that have no records, if the log states a possible number. */
int hr__dlog_other_ranks(struct darshan *d);

/* The file of a record. 0: no memory. */
uint32_t hr__dlog_file(struct darshan *d, struct hr_import_stream *s, uint64_t id);

/* Converts seconds since the start of the job. False: not a time. */
bool hr__dlog_time(const struct darshan *d, double seconds, uint64_t *ret_ns);

/* Reverses the bytes of numbers of 64 bits, if the log has the other byte order. */
void hr__dlog_swap(const struct darshan *d, void *words, size_t n);

/* Begins the region of a module. False: the log does not have it, or in an unknown version. */
bool hr__dlog_module(struct darshan *d, enum hr_darshan_module module, uint32_t newest);

/* Finds or adds the sums of a file and rank; HR_DARSHAN_SHARED: of a file. NULL: no memory. */
struct darshan_traced *hr__dlog_traced(struct darshan *d, uint64_t id, int64_t rank);

/* ---- darshan.c ---- */

const char *hr__dlog_module_name(unsigned module);

/* Begins a compressed region of the log, which hr_input_fill(d->source) reads. */
void hr__dlog_region(struct darshan *d, uint64_t offset, uint64_t bytes);

#endif
