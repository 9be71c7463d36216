/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain_internal.h - the drain thread's state: drain.c (requests, sleep), drain_sweep.c (rings),
 * drain_entry.c (journal entries). All functions run on this thread.
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
	uint32_t level;
	uint64_t proc;
	struct hr_session *session;
	struct hr_map map;
	char exit[HR_EXIT_TEXT];
	struct hr_probes *probes;
};

struct live_request {
	uint64_t in_flight_ns;
	struct hr_live_picture *picture;
	int r;
};

#define HR__TICK_NS UINT64_C(250000000) /* time between two ticks while operations arrive */

struct hr_drain {
	struct hr_drain_config c;
	pthread_t thread;
	bool running;
	pthread_mutex_t lock; /* protects inbox, requests and stats */
	pthread_cond_t served;
	struct message *inbox, **inbox_last;
	uint64_t flush_wanted, flush_done;
	/* the requested end of the job; NULL: no stop is requested */
	const struct hr_job_end *end;
	struct live_request *live; /* the requested picture; NULL: none */
	struct hr_node_stats stats;
	uint32_t level;
	uint64_t lost[HR_LOSS_REASONS]; /* clients without rings; atomic */
	/* Only the drain thread uses the following fields. */
	struct hr_session *sessions;
	uint64_t applied; /* how many bytes of the active half the engine has applied */
	uint64_t last_tick_ns, last_mounts_ns, last_excluded_ns;
	uint32_t rings;
	uint64_t sleep_ns;
	uint64_t rested_cpu_ns; /* CPU time of the thread when it last went to sleep */
	/* The last sweep took many records from probes or clients without a doorbell. */
	bool deaf_full;
	uint64_t lost_noted[HR_LOSS_REASONS]; /* the journal has these of `lost` */
	bool counters_only;
	uint64_t oom_ns, oom_kills[2]; /* hr_oom_kills() at oom_ns, and at least OOM_NS before */
	bool traffic;		       /* the last sweep took something */
	struct hr_feed *feed;	       /* NULL: no probes */
};

/* Locks the journal and reserves `bytes`, maybe after a checkpoint. NULL: no room, no lock. */
void *hr__drain_begin(struct hr_drain *d, uint64_t bytes);

/* Commits the entry, unlocks the journal, and applies the entry. */
void hr__drain_commit(struct hr_drain *d, uint32_t kind, uint64_t bytes);

/* Applies all new entries, also those of the attach thread, and passes frames to the appender. */
void hr__drain_catch_up(struct hr_drain *d);

/* Measures the clocks, and journals the line. */
void hr__drain_tick(struct hr_drain *d, uint64_t now_ns);
void hr__drain_seal(struct hr_drain *d);
void hr__drain_set_level(struct hr_drain *d, uint32_t level, bool full);
void hr__drain_read_mounts(struct hr_drain *d, int32_t pid, uint64_t now_ns);

/*
 * Takes the records of all sessions, and ends the sessions of exited processes. Returns the number
 * of slots taken.
 */
uint64_t hr__drain_sweep(struct hr_drain *d);

/*
 * Repeats the sweep until it takes nothing, or until it has taken as many slots as the rings have.
 */
void hr__drain_sweep_out(struct hr_drain *d);

/* Journals the operations and regions that the threads of a session have begun and not finished. */
void hr__drain_leave_cells(struct hr_drain *d, struct hr_session *s, uint64_t ticks);

/* drain_live.c: makes the picture for hr_drain_live. Returns 0 or -ENOMEM. */
int hr__drain_live(struct hr_drain *d, uint64_t in_flight_ns, struct hr_live_picture **ret);

/* Journals the end of a process. `exit`: see struct hr_entry_end. */
void hr__drain_end(struct hr_drain *d, uint64_t proc, const char *exit);

/* Journals a loss for which no ring has a counter. */
void hr__drain_note(struct hr_drain *d, enum hr_loss_reason reason, uint64_t count);

/* Deselects processes whose rank was found late and is not to be recorded. */
void hr__drain_deselect(struct hr_drain *d);

#endif
