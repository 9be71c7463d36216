/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alerts.h - which rules the running jobs break, and which messages about it are due
 *
 * Purpose   Compares what jobs do (fleet.h) with the rules, once a second. Sends nothing:
 *           alerting.h asks which messages are due, and returns their results.
 * Owner     struct hr_alerts owns its alerts.
 * Threads   The loop.
 * Memory    At most HR_ALERTS_MOST alerts of about 2 KiB, and HR_ALERTS_PER_USER of one user.
 *           Further ones are counted and ignored.
 *
 *      pending --(condition holds for its time)--> firing --(false for HR_ALERT_OVER_MS)--> over
 *         +---(it is false)---> gone                                 (both messages sent)---> gone
 *
 * A condition with a time applies to the mean over about a tenth of this time, so that one second
 * with another value does not start the time again.
 *
 * A sink is a receiver of messages. It gets one message when an alert fires, and one when the alert
 * is over. If it gets no message while an alert fires, it gets none about its end.
 */
#ifndef HEADRACE_COLLECTOR_ALERTS_H
#define HEADRACE_COLLECTOR_ALERTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/alert_rules.h"
#include "common/arena.h"
#include "proto/wire.pb-c.h"

#define HR_ALERTS_MOST	    4096u
#define HR_ALERTS_PER_USER  512u
#define HR_ALERT_OVER_MS    10000u
#define HR_ALERT_UNSENT_MS  300000u /* how long the collector tries to send the end of an alert */
#define HR_ALERT_RETRY_MS   1000u   /* after the first failure; doubles with each further one */
#define HR_ALERT_RETRY_MOST 30000u
#define HR_ALERT_REPEAT_MS  60000u  /* for Alertmanager, which else ends an alert */
#define HR_ALERT_EXPIRES_MS 240000u /* when Alertmanager ends an alert that is not repeated */
#define HR_ALERT_STUCK_MOST 1024u   /* operations in a message */

enum hr_alert_sink { HR_ALERT_LOG, HR_ALERT_URL, HR_ALERT_COMMAND, HR_ALERT_N_SINKS };

enum hr_alert_state { HR_ALERT_PENDING, HR_ALERT_FIRING, HR_ALERT_OVER };

/* What a sink knows about an alert. */
enum hr_alert_sent { HR_ALERT_UNSENT, HR_ALERT_SENT_FIRING, HR_ALERT_SENT_OVER };

struct hr_alert_delivery {
	enum hr_alert_sent sent, sending;
	bool busy;	   /* a message is on its way; `sending` is what it reports */
	uint64_t retry_ms; /* not before this time */
	uint64_t sent_ms;  /* when the last message arrived */
	unsigned failures; /* since then */
};

struct hr_alert {
	uint64_t id;
	uint64_t key; /* of the rule and the job */
	uint64_t job_key;
	struct hr_alert_rule rule;
	struct hr_arena memory; /* has the texts */
	char *cluster, *job, *name, *user;
	uint32_t attempt, uid;
	enum hr_alert_state state;
	double value;	   /* as struct hr_alert_rule.limit; the mean, if the rule has a time */
	uint64_t seen_ms;  /* when `value` was computed */
	uint64_t since_ms; /* when the condition became true */
	uint64_t true_ms;  /* when it was last true */
	uint64_t over_ms;
	/*
	 * On the wall clock; 0: not yet. Stuck, silent: `since` is the start of the operation, or
	 * silence.
	 */
	uint64_t since_real_ns, fired_real_ns, over_real_ns;
	struct hr_alert_delivery to[HR_ALERT_N_SINKS];
};

struct hr_alerts {
	struct hr_alert_rules rules;
	bool sinks[HR_ALERT_N_SINKS]; /* those that are configured */
	struct hr_alert *list;
	size_t n, room;
	uint64_t next_id;
	uint64_t ignored; /* alerts without room, since the start */
	uint64_t ticked_ms, awake_ms;
};

/* The moment of a tick, on both clocks. */
struct hr_alert_time {
	uint64_t ms;
	uint64_t real_ns;
};

/*
 * Compares all jobs with all rules. Call it once a second with a Fleet of all jobs, which are in
 * force until the next call. Alerts of rules that are gone end. Returns 0 or -ENOMEM.
 */
int hr_alerts_tick(struct hr_alerts *a, const Headrace__Fleet *fleet, struct hr_alert_time now);
void hr_alerts_done(struct hr_alerts *a);

/* The job of an alert in a Fleet. NULL: it is not there. */
const Headrace__FleetJob *hr_alert_job(const struct hr_alert *alert, const Headrace__Fleet *fleet);

/*
 * The next alert about which the sink must get a message now, and marks the message as on its way.
 * NULL: none. `repeat`: the sink must get an alert again each HR_ALERT_REPEAT_MS. The alert is
 * valid until the next call of another function.
 */
const struct hr_alert *hr_alerts_due(struct hr_alerts *a, enum hr_alert_sink sink, bool repeat,
				     uint64_t now_ms);

/* The result of such a message. */
void hr_alerts_sent(struct hr_alerts *a, enum hr_alert_sink sink, uint64_t id, bool good,
		    uint64_t now_ms);

/* How many alerts of a kind fire. */
size_t hr_alerts_count(const struct hr_alerts *a, enum hr_alert_kind kind);

#endif
