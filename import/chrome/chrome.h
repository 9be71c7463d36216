/* SPDX-License-Identifier: Apache-2.0 */
/* chrome.h - the state of one Chrome trace while it is read; one thread */
#ifndef HEADRACE_IMPORT_CHROME_CHROME_H
#define HEADRACE_IMPORT_CHROME_CHROME_H

#include "common/arena.h"
#include "common/map64.h"
#include "common/json_part.h"
#include "import/stream.h"

/* Members of an event. An absent one has the type HR_JSON_NONE. */
struct chrome_event {
	struct hr_json_part ph, name, cat, pid, tid, ts, dur, args, id, id2;
};

/* Arguments that headrace reads. */
struct chrome_args {
	struct hr_json_part device, stream, name, step, epoch, domain, category, args, count,
	    sum_ns;
	struct hr_json_part open, path, path2, offset, bytes, error, cut, scope, depth;
	struct hr_json_part tid, ppid, cpus, first_cpu, quota; /* of metadata */
};

/* A slice whose end is not known yet. */
struct chrome_open {
	struct chrome_event e; /* slices of `memory` */
	char *memory;
	uint64_t key; /* of its thread (B), or its id (b) */
	int64_t start_ns;
	uint32_t below; /* index + 1 of the slice that was opened before it; 0: none */
};

struct chrome_opens {
	struct chrome_open *list;
	uint32_t n, room;
	uint32_t free_list;   /* index + 1 of an unused element, linked by `below` */
	struct hr_map64 last; /* key -> index of the last one that was opened */
};

struct chrome_trace {
	struct hr_import_file *f;
	struct hr_import_stream *s; /* NULL: no event needed it yet */
	bool own;		    /* `headrace export` wrote the file */
	bool torch;		    /* torch's profiler wrote it */
	int64_t clock_ns;	    /* wall clock minus the time of the trace */
	bool clock_known;
	int32_t rank;
	uint32_t world_size;
	char *host; /* NULL: the file does not name it */

	struct hr_map64 process_of; /* key of a pid -> number in the stream */
	struct hr_map64 thread_of;  /* own: key of pid and tid -> recorded tid, if another one */
	uint32_t main;		    /* process of the program; 0: none yet */
	bool main_named;	    /* its pid is known */
	int64_t last_ns;	    /* latest end */

	struct chrome_opens opens, spans;
	char *texts[4]; /* texts without escapes: one for each of domain, category, name, args */
	size_t text_room[4];

	bool is_trace; /* it has a member of Chrome traces, or is an array */
	uint64_t n_events, n_bad, n_alone;
	uint64_t n_other; /* counters, and events of unknown kinds */
	bool cut;
};

/* chrome_probe.c */
bool hr__chrome_probe(const uint8_t *head, size_t bytes);
/* Whether only Chrome traces have a member with this name in the object of the file. */
bool hr__chrome_member_is(const struct hr_json_part *key);

/* chrome_event.c */
/* Reads an event, which is an object, and moves *at after it. 0, -EBADMSG or -EAGAIN. */
int hr__chrome_event_read(const char **at, const char *end, struct chrome_event *ret);
/*
 * Whether an event that was read has no members: NCCL, TensorFlow and others begin or end their
 * arrays with one, because of the commas.
 */
bool hr__chrome_event_is_empty(const char *at);
/* Adds an event. 0; -EBADMSG: it is not valid; other errors are fatal. */
int hr__chrome_event(struct chrome_trace *c, const struct chrome_event *e);
/* Adds what is still open, and ends the stream. */
int hr__chrome_finish(struct chrome_trace *c);
void hr__chrome_done(struct chrome_trace *c);

/* chrome_slice.c: a slice becomes a region or an operation */
int hr__chrome_slice(struct chrome_trace *c, const struct chrome_event *e, int64_t start_ns,
		     int64_t dur_ns, uint32_t kind, bool open);
/* Reports a note of headrace's own files: what the recording lacks. */
int hr__chrome_note(struct chrome_trace *c, const struct hr_json_part *text);
uint64_t hr__chrome_key(const struct hr_json_part *a, const struct hr_json_part *b);
/* The process of an event. 0: no memory. */
uint32_t hr__chrome_process(struct chrome_trace *c, const struct hr_json_part *pid);
/* The arguments of an event, which the parser has checked. */
void hr__chrome_args(const struct hr_json_part *args, struct chrome_args *ret);

#endif
