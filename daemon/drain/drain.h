/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain.h - the thread that copies records from rings to the journal and passes them to the engine
 *
 * Owner     The node. From hr_drain_start to hr_drain_stop the thread owns all sessions and the
 *           engine.
 * Threads   The drain thread. The attach thread sends it sessions, maps and exits of processes; the
 *           loop thread requests flush and stop.
 *
 * For each session, a sweep copies the committed records into a RECORDS entry, commits the entry,
 * publishes the new tails, and applies the entry. A sweep takes only records that ended before it
 * began, and merges the rings of a session by time. So a cause always precedes its effect.
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
	const struct hr_node_config *node;
	struct hr_engine *engine;
	struct hr_journal *journal;
	struct hr_appender *appender;
	struct hr_clock *clock;
	struct hr_node_page *page;
	bool counters_only; /* max_bytes was already reached before a restart */
	bool journal_in_memory;
	/* A previous daemon began the stream, and the probes of that daemon have ended. */
	bool continued;
	struct hr_probes *probes; /* NULL: no probes */
	/* The highest process number; atomic, because the attach thread uses it, too. */
	uint64_t *last_proc;
};

int hr_drain_new(const struct hr_drain_config *config, struct hr_drain **ret);
int hr_drain_start(struct hr_drain *d);

/* These functions may be called by any thread. The drain thread then owns the session or map. */
void hr_drain_add_map(struct hr_drain *d, uint64_t proc, const struct hr_map *map);
void hr_drain_ended(struct hr_drain *d, uint64_t proc, const char *exit);

/* Sends a session with the exits of processes that died before it. The thread gets all together. */
#define HR_DRAIN_ENDS 64
struct hr_drain_end {
	uint64_t proc;
	char exit[HR_EXIT_TEXT];
};
void hr_drain_add_session(struct hr_drain *d, struct hr_session *s, const struct hr_drain_end *ends,
			  size_t n);

/*
 * Adds probes that were loaded late. Call it at most once, and only if hr_drain_new got no probes.
 * The probes must outlive the drain.
 */
void hr_drain_probes(struct hr_drain *d, struct hr_probes *probes);

/* Sets the level of all processes. Once max_bytes was reached, `trace` is refused. */
void hr_drain_set_level(struct hr_drain *d, uint32_t level);

/* Counts clients without rings: LIMIT, RESTART, or UNATTACHED (they exited before the attach). */
void hr_drain_lose(struct hr_drain *d, enum hr_loss_reason reason, uint64_t n);

/*
 * Takes all committed records, seals all open frames, and passes these to the appender. Blocks.
 * Loop thread.
 */
void hr_drain_flush(struct hr_drain *d);

/*
 * Makes the last sweep, journals operations in flight and the end of the job, and ends the thread.
 * Loop thread.
 */
void hr_drain_stop(struct hr_drain *d, const struct hr_job_end *end);

/*
 * Makes a picture (live.h) between two sweeps, with the operations that have been in flight for at
 * least in_flight_ns. Blocks for about a sweep. -ENOMEM; -ESHUTDOWN: the thread has ended. Loop
 * thread.
 */
struct hr_live_picture;
int hr_drain_live(struct hr_drain *d, uint64_t in_flight_ns, struct hr_live_picture **ret);

void hr_drain_stats(struct hr_drain *d, struct hr_node_stats *ret); /* any thread */
uint32_t hr_drain_level(const struct hr_drain *d);		    /* any thread */
/* Call it after hr_drain_stop, or if the thread never started. Accepts NULL. */
void hr_drain_free(struct hr_drain *d);

#endif
