/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_internal.h - a node's own state, shared by node.c (its threads, its life) and node_stream.c (its stream: opened, continued
 * from a journal, given up)
 */
#ifndef HEADRACE_DAEMON_NODE_NODE_INTERNAL_H
#define HEADRACE_DAEMON_NODE_NODE_INTERNAL_H

#include "store/store.h"
#include "daemon/base/clock.h"
#include "common/fdstore.h"
#include "daemon/node/node.h"
#include "daemon/base/page.h"
#include "daemon/probes/prober.h"

struct hr_node {
	struct hr_node_config c;
	struct hr_clock clock;
	struct hr_writer *writer;
	struct hr_batch_pool *pool;
	struct hr_journal *journal;
	int journal_folder; /* that the journal lies in; -1: it is in memory */
	struct hr_engine *engine;
	struct hr_appender *appender;
	struct hr_page page;
	struct hr_drain *drain;
	struct hr_attach *attach;
	struct hr_prober prober;
	uint64_t last_proc; /* attach and drain thread; atomic */
	uint64_t instance;  /* of this process: what counts for a picture */
	uint64_t orphans;   /* processes of streams that we could not continue */
	bool other_version; /* there is such a stream: its journal is another version's */
	bool given_up;	    /* there is such a stream: its journal is damaged, or was in memory */
	bool stopped;
	struct hr_node_stats last; /* once stopped */
};

bool hr__node_disk_full(int r); /* an error of a store */

/* Opens the stream that this node writes; *ret_found: its journal holds entries. */
int hr__node_open_stream(struct hr_node *n, bool *ret_found);

/*
 * Continues the stream that is open, or begins it; a damaged one ends, and the next begins (*found becomes false). `inherited`:
 * the descriptors of the daemon before.
 */
int hr__node_start_stream(struct hr_node *n, bool *found, const struct hr_inherited *inherited,
			  size_t n_inherited);

/* Closes the folder of the journal; `unlink`: removes the journal first. */
void hr__node_leave_folder(struct hr_node *n, bool unlink);

/* Removes the journal, if it is open: another version's stays. */
void hr__node_drop_journal(struct hr_node *n);

void hr__node_free_engine(struct hr_node *n); /* and the appender */

#endif
