/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths.h - the stream's files: path hash to file id
 *
 * Owner     The engine; drain thread. The table keeps no texts: a second hash shows whether two
 *           texts with one path hash are equal. New files and late texts wait in `fresh` for the
 *           next Paths frame.
 * Lifetime  Indexes are stable until hr_paths_clear. Files from before a checkpoint that are used
 *           again are in `known` until a KNOWN entry names them: a replay gives them the same ids.
 */
#ifndef HEADRACE_DAEMON_ENGINE_PATHS_H
#define HEADRACE_DAEMON_ENGINE_PATHS_H

#include "common/arena.h"
#include "daemon/journal/entry.h"
#include "common/map64.h"

#define HR_PATHS_MOST (8u << 20) /* if the table has more files, the next checkpoint clears it */

struct hr_path {
	uint64_t hash;
	uint64_t check; /* hash of the text; 0: the text is unknown */
	uint32_t id;
	uint32_t epoch; /* number of the checkpoints before its last use */
	uint16_t mount;
	uint16_t scope : 1; /* 0 data, 1 runtime */
	/* the mount comes from an open descriptor, so links in the path do not matter */
	uint16_t mount_exact : 1;
	uint32_t fresh; /* index of the file's row in `fresh` + 1; 0: none */
};

struct hr_fresh_path {
	uint32_t path; /* index of the file */
	uint32_t bytes;
	const uint8_t *text; /* NULL: not known */
};

struct hr_paths {
	struct hr_path *v;
	uint32_t n, room;
	struct hr_map64 by_hash;
	uint32_t epoch;
	uint32_t next_id;
	struct hr_fresh_path *fresh;
	uint32_t n_fresh, room_fresh;
	struct hr_arena texts;
	uint32_t *known;
	uint32_t n_known, room_known;
};

/* Finds or makes the file with this hash. Returns its index; UINT32_MAX: out of memory. */
uint32_t hr_paths_use(struct hr_paths *p, uint64_t hash, uint16_t scope);

struct hr_path_name {
	uint64_t hash;
	const uint8_t *text;
	uint32_t bytes;
	uint16_t mount, scope;
	bool mount_exact;
};

/*
 * Sets the text of the file with this hash, and its mount unless the mount is already exact.
 * *ret_index: the file. Returns 0 or -ENOMEM. If the hash already had another text, returns 1 and
 * makes a second file, which hr_paths_use does not find.
 */
int hr_paths_name(struct hr_paths *p, const struct hr_path_name *name, uint32_t *ret_index);

/* Adds a file from a row of a KNOWN entry. */
int hr_paths_restore(struct hr_paths *p, const struct hr_known_row *row);

/* Puts a file from before the checkpoint into `known`. hr_paths_use calls it. */
void hr__paths_note(struct hr_paths *p, uint32_t index);

static inline struct hr_path *hr_paths_at(struct hr_paths *p, uint32_t index)
{
	struct hr_path *f = &p->v[index];

	if (__builtin_expect(f->epoch != p->epoch, 0))
		hr__paths_note(p, index);
	return f;
}

void hr_paths_fresh_sent(struct hr_paths *p);
/* removes all files; the ids of later files continue the sequence */
void hr_paths_clear(struct hr_paths *p);
void hr_paths_done(struct hr_paths *p);

#endif
