/* SPDX-License-Identifier: Apache-2.0 */
/* node_internal.h - the state of a node: node.c (start, stop, threads), node_stream.c (stream) */
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
	int journal_folder; /* the folder that contains the journal; -1: the journal is in memory */
	struct hr_engine *engine;
	struct hr_appender *appender;
	struct hr_page page;
	struct hr_drain *drain;
	struct hr_attach *attach;
	struct hr_prober prober;
	/* The highest process number; atomic, because two threads use it (attach, drain). */
	uint64_t last_proc;
	uint64_t instance; /* random number of this headraced, for pictures of the running job */
	/* Streams of this job that could not be continued: */
	uint64_t orphans;   /* how many processes these streams had */
	bool other_version; /* one of these streams has a journal of another version */
	bool given_up;	    /* one of these streams had a damaged journal, or one in memory */
	/* The journal was in memory, and headraced was killed before it stored a frame. */
	bool nothing_stored;
	bool stopped;
	struct hr_node_stats last; /* valid if `stopped` */
};

bool hr__node_disk_full(int r);

/* Opens the stream that this node writes. *ret_found: the stream has a journal with entries. */
int hr__node_open_stream(struct hr_node *n, bool *ret_found);

/*
 * Continues the open stream, or begins it. If the journal is damaged, ends the stream, begins the
 * next one and sets *found to false. `inherited`: the retained descriptors.
 */
int hr__node_start_stream(struct hr_node *n, bool *found, const struct hr_inherited *inherited,
			  size_t n_inherited);

/* Closes the folder of the journal. If `unlink`, removes the journal first. */
void hr__node_leave_folder(struct hr_node *n, bool unlink);

/* Closes and removes the journal. If it has another version, it was never opened, and stays. */
void hr__node_drop_journal(struct hr_node *n);

void hr__node_free_engine(struct hr_node *n); /* also frees the appender */

#endif
