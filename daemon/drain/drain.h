/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain.h - the thread that empties rings into the journal and feeds the engine
 *
 * Owner     The node. The drain thread owns all sessions and the engine, from hr_drain_start to hr_drain_stop.
 * Threads   Its own. The attach thread hands it sessions, maps and deaths; the loop thread asks it to flush and stop.
 *
 * One sweep: for each session, copy what is committed into one RECORDS entry, commit the journal, give the slots back, apply the
 * entry. Only records that ended before the sweep began are taken, and the rings of a session are merged by time, so that an
 * operation never comes before one that it depends on.
 */
#ifndef HEADRACE_DAEMON_DRAIN_DRAIN_H
#define HEADRACE_DAEMON_DRAIN_DRAIN_H

#include "daemon/spool/appender.h"
#include "daemon/engine/engine.h"
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
	uint64_t max_bytes; /* of the stream, 0: no limit */
	/* processes whose rank is learnt late are put to sleep when it is not in these */
	const char *ranks;
	const char *local_ranks;
	bool counters_only; /* max_bytes was reached before a restart */
	bool journal_in_memory;
	bool continued;		  /* another daemon's stream: its probes are gone with it */
	struct hr_probes *probes; /* NULL: none */
	/* the highest number of a process; atomic, shared with the attach thread */
	uint64_t *last_proc;
};

int hr_drain_new(const struct hr_drain_config *config, struct hr_drain **ret);
int hr_drain_start(struct hr_drain *d);

/* Any thread. The drain thread owns what it is given. */
void hr_drain_add_session(struct hr_drain *d, struct hr_session *s);
void hr_drain_add_map(struct hr_drain *d, uint64_t proc,
		      const struct hr_map *map); /* takes it over */
void hr_drain_ended(struct hr_drain *d, uint64_t proc, const char *exit);
/* From the hold to the release the thread takes no message: it gets them together. */
void hr_drain_hold(struct hr_drain *d);
void hr_drain_release(struct hr_drain *d);

/* Probes are there now; once, and not where hr_drain_new got them. They live longer than the drain. */
void hr_drain_probes(struct hr_drain *d, struct hr_probes *probes);

/* From now on, for all processes; a level that max_bytes has lowered stays. */
void hr_drain_set_level(struct hr_drain *d, uint32_t level);

/* A client got no rings because of a limit. */
void hr_drain_refused(struct hr_drain *d, uint64_t n);
void hr_drain_unrecovered(struct hr_drain *d,
			  uint64_t n);	  /* n processes live whose rings are gone */
void hr_drain_missed(struct hr_drain *d); /* a process was gone when its hello was read */

/* Loop thread: sweeps what was committed before the call, seals, and hands all frames to the appender. Blocks. */
void hr_drain_flush(struct hr_drain *d);

/* Loop thread: last sweep, cells of operations in flight, the job's end. The thread is gone afterwards. */
void hr_drain_stop(struct hr_drain *d, const struct hr_job_end *end);

/*
 * Loop thread: a picture of the job (live.h), made between two sweeps, with operations that have been in flight for that long.
 * Blocks for about a sweep. -ENOMEM; -ESHUTDOWN: the thread is not running.
 */
struct hr_live_picture;
int hr_drain_live(struct hr_drain *d, uint64_t in_flight_ns, struct hr_live_picture **ret);

void hr_drain_stats(struct hr_drain *d, struct hr_node_stats *ret); /* any thread */
uint32_t hr_drain_level(const struct hr_drain *d);		    /* any thread */
void hr_drain_free(struct hr_drain *d); /* stopped, or never started; accepts NULL */

#endif
