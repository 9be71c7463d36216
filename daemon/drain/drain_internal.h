/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain_internal.h - the drain thread's own state, shared by drain.c (thread, requests, sleep), drain_sweep.c (rings) and
 * drain_entry.c (journal entries)
 *
 * All functions on the drain thread.
 */
#ifndef HEADRACE_DAEMON_DRAIN_DRAIN_INTERNAL_H
#define HEADRACE_DAEMON_DRAIN_DRAIN_INTERNAL_H

#include <pthread.h>

#include "daemon/drain/drain.h"
#include "daemon/engine/live.h"
#include "daemon/engine/losses.h"

enum message_kind { NEW_SESSION, NEW_MAP, ENDED, LEVEL, PROBES };

struct message {
	struct message *next;
	enum message_kind kind;
	uint64_t proc;
	struct hr_session *session;
	struct hr_map map;
	char exit[16];
	uint32_t level;
	struct hr_probes *probes;
};

struct live_request {
	uint64_t in_flight_ns;
	struct hr_live_picture *picture;
	int r;
};

struct hr_drain {
	struct hr_drain_config c;
	pthread_t thread;
	bool running;
	bool held;	/* the inbox is not taken: more messages belong to it; under the lock */
	bool wake_held; /* the release wakes the thread; likewise */
	pthread_mutex_t lock; /* inbox, requests, stats */
	pthread_cond_t served;
	struct message *inbox, **inbox_last;
	uint64_t flush_wanted, flush_done;
	const struct hr_job_end *end; /* not NULL: to stop */
	struct live_request *live;    /* not NULL: a picture is wanted */
	struct hr_node_stats stats;
	uint32_t level;
	uint64_t refused;     /* clients that got no rings; atomic */
	uint64_t missed;      /* clients that were gone before they could get any; atomic */
	uint64_t unrecovered; /* clients from before a restart, whose rings are gone; atomic */
	/* the thread's own */
	struct hr_session *sessions;
	uint64_t applied; /* bytes of the active half that the engine has seen */
	uint64_t last_tick_ns, last_clock_ns, last_mounts_ns, last_excluded_ns;
	uint32_t rings; /* of the last sweep */
	uint64_t sleep_ns;
	uint64_t rested_cpu_ns; /* of its thread, when it last went to rest */
	/* the last sweep found so much in a ring whose owner cannot ring our bell */
	bool deaf_full;
	uint64_t refused_noted, missed_noted, unrecovered_noted;
	bool counters_only;
	bool traffic;	      /* the last sweep found something */
	struct hr_feed *feed; /* NULL: no probes */
};

/* Locks the journal and returns room for an entry of at most `bytes`, after a checkpoint if need be; NULL: unlocked. */
void *hr__drain_begin(struct hr_drain *d, uint64_t bytes);

/* Commits it, unlocks, and applies it. */
void hr__drain_commit(struct hr_drain *d, uint32_t kind, uint64_t bytes);

/* Applies what was committed since, by the attach thread too, and hands the frames on. */
void hr__drain_catch_up(struct hr_drain *d);

void hr__drain_tick(struct hr_drain *d, uint64_t now_ns);
void hr__drain_seal(struct hr_drain *d);
void hr__drain_set_level(struct hr_drain *d, uint32_t level, bool full);
void hr__drain_read_mounts(struct hr_drain *d, int32_t pid, uint64_t now_ns);

/* One look at all sessions: takes what their rings hold, ends those whose process is gone. Returns slots taken. */
uint64_t hr__drain_sweep(struct hr_drain *d);

/* As much as all rings can hold: many sweeps where one entry has room for a part only. */
void hr__drain_sweep_out(struct hr_drain *d);

/* What the owners of a session's rings are in the middle of, or died in. */
void hr__drain_leave_cells(struct hr_drain *d, struct hr_session *s, uint64_t ticks);

/* drain_live.c: a picture, with what has been in flight for that long. 0 or -ENOMEM. */
int hr__drain_live(struct hr_drain *d, uint64_t in_flight_ns, struct hr_live_picture **ret);

/* A process is gone; `exit` as in hr_entry_end. */
void hr__drain_end(struct hr_drain *d, uint64_t proc, const char *exit);

/* The number of a process to come. */
uint64_t hr__drain_number(struct hr_drain *d);

/* A loss that no ring tells of. */
void hr__drain_note(struct hr_drain *d, enum hr_loss_reason reason, uint64_t count);

/* A rank learnt late may be one that nobody asked for: its processes are put to sleep. */
void hr__drain_deselect(struct hr_drain *d);

#endif
