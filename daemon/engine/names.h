/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - the paths of files in use, for pictures of a running job
 *
 * Purpose   The engine sends a path and drops its text (paths.h). This table keeps the text while
 *           the file has a record (filerec.h). It only takes files that are open when their path is
 *           sent, or are among the last to be closed: most small files of a job are closed between
 *           two frames.
 * Owner     The engine; drain thread. The store does not depend on it.
 */
#ifndef HEADRACE_DAEMON_ENGINE_NAMES_H
#define HEADRACE_DAEMON_ENGINE_NAMES_H

#include "common/arena.h"
#include "common/filerec.h"
#include "daemon/engine/paths.h"

/* maximum bytes of all texts, unless the files in use need more */
#define HR_NAMES_BYTES (1u << 20)
#define HR_NAMES_IDLE  256u /* how many of the files that were closed last have a text */

struct hr_name {
	const uint8_t *text;
	uint32_t file; /* stream file id */
	uint16_t bytes;
	uint16_t mount;
};

struct hr_names {
	struct hr_name *v; /* a file may occur twice: the later element is valid */
	uint32_t n, room;
	struct hr_arena texts;
	size_t limit;
};

/* Copies the new paths of files in use. Call it before hr_paths_fresh_sent. */
void hr_names_take(struct hr_names *n, const struct hr_paths *paths,
		   const struct hr_filerecs *records);

/* If the texts exceed the limit, removes files without a file record. */
void hr_names_tidy(struct hr_names *n, const struct hr_filerecs *records);

void hr_names_done(struct hr_names *n);

#endif
