/* SPDX-License-Identifier: Apache-2.0 */
/* pfw_state.h - the state of one .pfw file while it is read; one thread */
#ifndef HEADRACE_IMPORT_PFW_PFW_STATE_H
#define HEADRACE_IMPORT_PFW_PFW_STATE_H

#include "common/arena.h"
#include "common/map64.h"
#include "import/pfw/pfw_line.h"
#include "import/stream.h"

/* A process of a node. A pid may be that of several processes, one after the other. */
struct pfw_pid {
	int32_t pid;
	uint32_t proc;	   /* number in the stream */
	uint32_t older;	   /* index of the process that had the pid before; UINT32_MAX: none */
	uint64_t start_ns; /* 0: unknown */
	bool described;	   /* a record PR or an event `start` belongs to it */
};

/* A node, with what its lines name. */
struct pfw_node {
	struct hr_import_stream *s;
	struct pfw_pid *pids;
	uint32_t n_pids, pids_room;
	struct hr_map64 pid_of;	   /* pid -> index of its last process */
	struct hr_map64 thread_of; /* pid and tid -> thread, of pids with one process */
	struct hr_map64 file_of;   /* hash of a name or of a name's hash -> file */
};

struct pfw_name { /* of a record FH or SH */
	const char *text;
	uint32_t bytes;
};

struct pfw {
	struct hr_import_file *f;
	struct hr_pfw_line line;
	bool own;	  /* headrace wrote the file: it has further arguments, and escaped texts */
	bool ranks;	  /* quoted pids are ranks */
	uint64_t unit_ns; /* of ts and dur */

	struct pfw_node *nodes;
	uint32_t n_nodes, nodes_room;
	struct hr_map64 node_of; /* hash of a host's name or hash -> node */
	uint64_t last_host;
	uint32_t last_node;
	bool hosts_complete; /* all HH records of the file are known */

	struct pfw_name *names;
	uint32_t n_names, names_room;
	struct hr_map64 name_of; /* hash of the name's hash -> name */
	struct hr_arena texts;
	struct hr_map64 op_of; /* hash of a function's name -> op; 0: unknown */

	char *text; /* a text without its escapes */
	size_t text_room;

	uint64_t n_lines, n_bad, first_bad, n_kinds, n_events;
	bool cut; /* the last line is cut */
};

/* pfw_names.c */
void hr__pfw_survey(struct hr_import_file *f, const uint8_t *head, size_t bytes);
/* Returns a string without escapes, until the next call. NULL: no memory. */
const char *hr__pfw_string(struct pfw *p, enum hr_pfw_key key, size_t *ret_bytes);
uint64_t hr__pfw_token(const struct pfw *p, enum hr_pfw_key key);
/* The current line is a record HH: keeps the name of the host. */
int hr__pfw_host_record(struct pfw *p);
/* The node of the current line. */
int hr__pfw_node(struct pfw *p, struct pfw_node **ret);
/* The process of the current line; `start_ns` chooses between processes with the same pid. */
uint32_t hr__pfw_process(struct pfw *p, struct pfw_node *n, uint64_t start_ns);
struct pfw_pid *hr__pfw_pid_add(struct pfw *p, struct pfw_node *n, int32_t pid);
uint32_t hr__pfw_thread(struct pfw *p, struct pfw_node *n, uint64_t start_ns);
/* The file of the current line: its name, or a hash of that. 0: none. */
uint32_t hr__pfw_file(struct pfw *p, struct pfw_node *n);
uint32_t hr__pfw_hashed_file(struct pfw *p, struct pfw_node *n, enum hr_pfw_key key);
int hr__pfw_name_add(struct pfw *p, uint64_t key, const char *text, size_t bytes);
const struct pfw_name *hr__pfw_name(const struct pfw *p, uint64_t key);
void hr__pfw_done(struct pfw *p);

/* pfw_meta.c: a metadata record. 0; -EBADMSG: it cannot be read; other errors are fatal. */
int hr__pfw_metadata(struct pfw *p);
/* An event `start` or `end` of dftracer. */
int hr__pfw_life(struct pfw *p, bool starts);

/* pfw_event.c: an event. 0; -EBADMSG: it cannot be read; other errors are fatal. */
int hr__pfw_event(struct pfw *p);
/* Adds the nanoseconds below two times in microseconds: [123,456]. */
void hr__pfw_ns(const struct hr_pfw_value *v, uint64_t *first_ns, uint64_t *second_ns);

/* Reads an integer argument of the current line. */
static inline int64_t hr__pfw_arg(const struct pfw *p, enum hr_pfw_key key, int64_t otherwise)
{
	int64_t v;

	return hr_pfw_has(&p->line, key) && hr__pfw_int(&p->line.v[key], &v) ? v : otherwise;
}

/* Whether a hash is long enough to mean the same in all files. Dialect B has short numbers. */
static inline bool hr__pfw_is_global(const struct hr_pfw_value *hash)
{
	return hash->n >= 16;
}

static inline bool hr__pfw_is(const struct hr_pfw_value *v, const char *text, size_t bytes)
{
	return v->n == bytes && memcmp(v->p, text, bytes) == 0;
}

#endif
