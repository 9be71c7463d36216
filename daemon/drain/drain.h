/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain.h - the thread that copies records from rings to the journal and passes them to the engine
 *
 * Owner     The node. From hr_drain_start to hr_drain_stop the thread owns all sessions and the
 *           engine.
 * Threads   Its own. The attach thread sends it sessions, maps and ends; the loop thread requests
 *           flush and stop.
 *
 * A sweep, for each session: copies the committed records into a RECORDS entry, commits it, returns
 * the slots, applies the entry. It takes only records that ended before it began, and merges the
 * rings of a session by time: an operation never precedes one that it depends on.
 */
#ifndef HEADRACE_DAEMON_DRAIN_DRAIN_H
#define HEADRACE_DAEMON_DRAIN_DRAIN_H

#include "daemon/spool/appender.h"
#include "daemon/engine/engine.h"
#include "daemon/base/exit.h"
#include "daemon/base/node_stats.h"
#include "daemon/control/node_config.h"
#include "daemon/session/session.h"

struct hr_drain;

struct hr_drain_config {
	struct hr_engine *engine;
	struct hr_journal *journal;
	struct hr_appender *appender;
	struct hr_clock *clock;
	struct hr_node_page *page;
	uint64_t max_bytes; /* of the stream; 0: no limit */
	/* A process with a rank that is found late sleeps if these do not select it. */
	const char *ranks;
	const char *local_ranks;
	bool counters_only; /* max_bytes was reached before a restart */
	bool journal_in_memory;
	bool continued;		  /* the stream of a previous daemon, whose probes are gone */
	struct hr_probes *probes; /* NULL: none */
	/* highest process number; atomic, shared with the attach thread */
	uint64_t *last_proc;
};

int hr_drain_new(const struct hr_drain_config *config, struct hr_drain **ret);
int hr_drain_start(struct hr_drain *d);

/* Any thread. The drain thread owns the sessions and maps that it gets. */
void hr_drain_add_map(struct hr_drain *d, uint64_t proc, const struct hr_map *map);
void hr_drain_ended(struct hr_drain *d, uint64_t proc, const char *exit);

/* A session, and the ends of processes that died before: the thread gets them together. */
#define HR_DRAIN_ENDS 64
struct hr_drain_end {
	uint64_t proc;
	char exit[HR_EXIT_TEXT];
};
void hr_drain_add_session(struct hr_drain *d, struct hr_session *s, const struct hr_drain_end *ends,
			  size_t n);

/* Late probes, which outlive the drain: once, and only if hr_drain_new got none. */
void hr_drain_probes(struct hr_drain *d, struct hr_probes *probes);

/* For all processes, from now on, unless max_bytes has lowered the level. */
void hr_drain_set_level(struct hr_drain *d, uint32_t level);

/* Counts clients without rings: by a limit, a restart, or an exit before their hello. */
void hr_drain_refused(struct hr_drain *d, uint64_t n);
void hr_drain_unrecovered(struct hr_drain *d, uint64_t n);
void hr_drain_missed(struct hr_drain *d);

/* Loop thread: sweeps all committed records, seals, passes all frames to the appender. Blocks. */
void hr_drain_flush(struct hr_drain *d);

/* Loop thread: last sweep, operations in flight, the job's end. Ends the thread. */
void hr_drain_stop(struct hr_drain *d, const struct hr_job_end *end);

/*
 * Loop thread: a picture (live.h) between two sweeps, with operations in flight for in_flight_ns or
 * longer. Blocks for about a sweep. -ENOMEM; -ESHUTDOWN: the thread does not run.
 */
struct hr_live_picture;
int hr_drain_live(struct hr_drain *d, uint64_t in_flight_ns, struct hr_live_picture **ret);

void hr_drain_stats(struct hr_drain *d, struct hr_node_stats *ret); /* any thread */
uint32_t hr_drain_level(const struct hr_drain *d);		    /* any thread */
void hr_drain_free(struct hr_drain *d); /* stopped, or never started; accepts NULL */

#endif
