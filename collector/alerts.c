/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/alerts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/fnv.h"
#include "common/log.h"
#include "common/map64.h"

#define GAP_MS	   3000u /* after a longer pause between two ticks, nodes count as not silent */
#define AGE_MOST_S 1e9	 /* an older operation is a mistake of the node */
#define SAVE_LEAST_NS                                                                              \
	UINT64_C(5000000000) /* shorter checkpoints cost little, and their times vary much */
#define MEAN_LEAST_MS 1000.0
#define MEAN_PART     10.0 /* the mean is over this part of a rule's time */

static uint64_t job_key(const Headrace__FleetJob *j)
{
	uint64_t hash = hr_fnv(HR_FNV_BASIS, j->cluster, strlen(j->cluster) + 1);

	hash = hr_fnv(hash, j->job, strlen(j->job) + 1);
	hash = hr_fnv(hash, &j->attempt, sizeof(j->attempt));
	return hr_fnv(hash, &j->uid, sizeof(j->uid));
}

static uint64_t alert_key(uint64_t job, const struct hr_alert_rule *rule)
{
	return hr_fnv(job, rule->text, strlen(rule->text));
}

const Headrace__FleetJob *hr_alert_job(const struct hr_alert *alert, const Headrace__Fleet *fleet)
{
	for (size_t i = 0; i < fleet->n_jobs; i++)
		if (strcmp(fleet->jobs[i]->job, alert->job) == 0 &&
		    job_key(fleet->jobs[i]) == alert->job_key)
			return fleet->jobs[i];
	return NULL;
}

/* ---- conditions ------------------------------------------------------------------------------ */

static double silence_of(const Headrace__FleetJob *j, uint64_t awake_ms)
{
	uint64_t ms = j->silent_nodes > 0 ? j->silent_ms : 0;

	return (double)(ms < awake_ms ? ms : awake_ms) / 1000;
}

/* The time of the last checkpoint as a multiple of the usual time. 0: it is short, or unknown. */
static double slowness_of(const Headrace__FleetSave *s)
{
	if (!s || s->usual_ns == 0 || s->dur_ns < SAVE_LEAST_NS)
		return 0;
	return (double)s->dur_ns / (double)s->usual_ns;
}

/* `awake_ms`: for how long the collector has been running without a pause. */
static double value_of(enum hr_alert_kind kind, const Headrace__FleetJob *j, uint64_t awake_ms)
{
	switch (kind) {
	case HR_ALERT_WAITING:
		return j->loops > 0 ? j->waiting / j->loops : 0;
	case HR_ALERT_METADATA:
		return j->rate->metadata;
	case HR_ALERT_STUCK:
		return j->n_stuck > 0 ? (double)j->stuck[0]->op->age_ns / 1e9 : 0;
	case HR_ALERT_SILENT:
		return silence_of(j, awake_ms);
	case HR_ALERT_CHECKPOINT:
		return slowness_of(j->save);
	default:
		return 0;
	}
}

/*
 * Updates the value, which is a mean if the rule has a time. Returns whether the condition holds.
 */
static bool condition_update(struct hr_alert *x, double value, uint64_t now_ms)
{
	double over_ms = (double)x->rule.for_ms / MEAN_PART;

	if (over_ms > MEAN_LEAST_MS)
		x->value +=
		    (value - x->value) * (1 - exp(-(double)(now_ms - x->seen_ms) / over_ms));
	else
		x->value = value;
	x->seen_ms = now_ms;
	return x->value > x->rule.limit;
}

/* ---- states ---------------------------------------------------------------------------------- */

static void alert_remove(struct hr_alerts *a, size_t i)
{
	hr_arena_free(&a->list[i].memory);
	a->list[i] = a->list[--a->n];
}

static void note_firing(struct hr_alert *x, struct hr_alert_time now)
{
	if (now.ms - x->since_ms < x->rule.for_ms)
		return;
	x->state = HR_ALERT_FIRING;
	x->fired_real_ns = now.real_ns;
}

/* Whether no sink needs a further message about an alert that is over. */
static bool is_finished(const struct hr_alerts *a, const struct hr_alert *x, uint64_t now_ms)
{
	for (size_t i = 0; i < HR_ALERT_N_SINKS; i++) {
		const struct hr_alert_delivery *d = &x->to[i];

		if (d->busy || (a->sinks[i] && d->sent == HR_ALERT_SENT_FIRING &&
				now_ms - x->over_ms < HR_ALERT_UNSENT_MS))
			return false;
	}
	return true;
}

/*
 * Advances the state of an alert; `j` is NULL if the job is gone. If nodes of the job are silent,
 * an operation that is not reported now has perhaps not returned. Returns false if the alert is
 * gone.
 */
static bool alert_update(struct hr_alerts *a, struct hr_alert *x, const Headrace__FleetJob *j,
			 struct hr_alert_time now)
{
	bool holds;

	if (x->state == HR_ALERT_OVER)
		return !is_finished(a, x, now.ms);
	holds = j && condition_update(x, value_of(x->rule.kind, j, now.ms - a->awake_ms), now.ms);
	if (x->state == HR_ALERT_FIRING && x->rule.kind == HR_ALERT_STUCK && j)
		holds |= j->silent_nodes > 0;
	if (holds)
		x->true_ms = now.ms;
	if (x->state == HR_ALERT_PENDING) {
		if (holds)
			note_firing(x, now);
		return holds;
	}
	if (now.ms - x->true_ms < HR_ALERT_OVER_MS)
		return true;
	x->state = HR_ALERT_OVER;
	x->over_ms = now.ms;
	x->over_real_ns = now.real_ns;
	return true;
}

/* ---- a tick ---------------------------------------------------------------------------------- */

struct alerts_tick {
	struct hr_alerts *a;
	const Headrace__Fleet *fleet;
	struct hr_alert_time now;
	struct hr_map64 jobs;  /* key of a job: its index in the fleet */
	struct hr_map64 known; /* keys of the alerts that are not over */
	struct hr_map64 users; /* uid: number of alerts that are not over */
	size_t n_over;
};

static uint32_t alerts_of_user(const struct alerts_tick *t, uint32_t uid)
{
	uint32_t n = hr_map64_get(&t->users, uid);

	return n == HR_MAP64_NONE ? 0 : n;
}

static int note_known(struct alerts_tick *t, const struct hr_alert *x)
{
	int r = hr_map64_set(&t->known, x->key, 0);

	return r < 0 ? r : hr_map64_set(&t->users, x->uid, alerts_of_user(t, x->uid) + 1);
}

/* Removes an alert that is over, to make room. */
static void remove_one_over(struct alerts_tick *t)
{
	size_t i = 0;

	while (t->a->list[i].state != HR_ALERT_OVER)
		i++;
	alert_remove(t->a, i);
	t->n_over--;
}

static bool has_room(struct alerts_tick *t, uint32_t uid)
{
	if (alerts_of_user(t, uid) >= HR_ALERTS_PER_USER)
		return false;
	if (t->a->n >= HR_ALERTS_MOST && t->n_over > 0)
		remove_one_over(t);
	return t->a->n < HR_ALERTS_MOST;
}

static int alert_add(struct alerts_tick *t, const struct hr_alert_rule *rule,
		     const Headrace__FleetJob *j, double value)
{
	struct hr_alerts *a = t->a;
	struct hr_alert x = {.id = t->now.real_ns + a->next_id++,
			     .rule = *rule,
			     .attempt = j->attempt,
			     .uid = j->uid,
			     .value = value,
			     .seen_ms = t->now.ms,
			     .since_ms = t->now.ms,
			     .true_ms = t->now.ms,
			     .since_real_ns = t->now.real_ns};

	if (!has_room(t, j->uid)) {
		a->ignored++;
		hr_log_about(HR_LOG_WARNING, "alerts",
			     "alerts: ignoring an alert of job %s of user %s (%s): limit of %u "
			     "alerts, %u of one user",
			     j->job, j->user, rule->text, HR_ALERTS_MOST, HR_ALERTS_PER_USER);
		return 0;
	}
	if (rule->kind == HR_ALERT_STUCK || rule->kind == HR_ALERT_SILENT)
		x.since_real_ns -= (uint64_t)(fmin(value, AGE_MOST_S) * 1e9);
	x.job_key = job_key(j);
	x.key = alert_key(x.job_key, rule);
	x.cluster = hr_arena_text(&x.memory, j->cluster);
	x.job = hr_arena_text(&x.memory, j->job);
	x.name = hr_arena_text(&x.memory, j->name);
	x.user = hr_arena_text(&x.memory, j->user);
	if (x.memory.failed || !hr_array_reserve(a->list, a->n, a->room)) {
		hr_arena_free(&x.memory);
		return -ENOMEM;
	}
	note_firing(&x, t->now);
	a->list[a->n++] = x;
	return note_known(t, &x);
}

/* Adds an alert for each condition that holds and has none. */
static int add_alerts(struct alerts_tick *t)
{
	const struct hr_alerts *a = t->a;
	int r = 0;

	for (size_t i = 0; i < t->fleet->n_jobs && r == 0; i++) {
		const Headrace__FleetJob *j = t->fleet->jobs[i];
		uint64_t key = job_key(j);

		for (size_t k = 0; k < a->rules.n && r == 0; k++) {
			const struct hr_alert_rule *rule = &a->rules.list[k];
			double value = value_of(rule->kind, j, t->now.ms - a->awake_ms);

			if (value > rule->limit &&
			    hr_map64_get(&t->known, alert_key(key, rule)) == HR_MAP64_NONE)
				r = alert_add(t, rule, j, value);
		}
	}
	return r;
}

/* Advances all alerts. */
static int update_alerts(struct alerts_tick *t)
{
	struct hr_alerts *a = t->a;
	int r = 0;

	for (size_t i = a->n; i-- > 0 && r == 0;) {
		struct hr_alert *x = &a->list[i];
		uint32_t at = hr_alert_rules_have(&a->rules, &x->rule)
				  ? hr_map64_get(&t->jobs, x->job_key)
				  : HR_MAP64_NONE;

		if (!alert_update(a, x, at == HR_MAP64_NONE ? NULL : t->fleet->jobs[at], t->now))
			alert_remove(a, i);
		else if (x->state == HR_ALERT_OVER)
			t->n_over++;
		else
			r = note_known(t, x);
	}
	return r;
}

int hr_alerts_tick(struct hr_alerts *a, const Headrace__Fleet *fleet, struct hr_alert_time now)
{
	struct alerts_tick t = {.a = a, .fleet = fleet, .now = now};
	int r = 0;

	if (now.ms - a->ticked_ms > GAP_MS)
		a->awake_ms = now.ms;
	a->ticked_ms = now.ms;
	for (size_t i = 0; i < fleet->n_jobs && r == 0; i++)
		r = hr_map64_set(&t.jobs, job_key(fleet->jobs[i]), (uint32_t)i);
	if (r == 0)
		r = update_alerts(&t);
	if (r == 0)
		r = add_alerts(&t);
	hr_map64_done(&t.jobs);
	hr_map64_done(&t.known);
	hr_map64_done(&t.users);
	return r;
}

void hr_alerts_done(struct hr_alerts *a)
{
	while (a->n > 0)
		alert_remove(a, a->n - 1);
	free(a->list);
	*a = (struct hr_alerts){0};
}

size_t hr_alerts_count(const struct hr_alerts *a, enum hr_alert_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++)
		n += a->list[i].state == HR_ALERT_FIRING && a->list[i].rule.kind == kind;
	return n;
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool is_due(const struct hr_alert *x, enum hr_alert_sink sink, bool repeat, uint64_t now_ms)
{
	const struct hr_alert_delivery *d = &x->to[sink];

	if (d->busy || now_ms < d->retry_ms)
		return false;
	if (x->state == HR_ALERT_FIRING)
		return d->sent == HR_ALERT_UNSENT ||
		       (repeat && now_ms - d->sent_ms >= HR_ALERT_REPEAT_MS);
	return x->state == HR_ALERT_OVER && d->sent == HR_ALERT_SENT_FIRING;
}

/* Of the alerts that are due, returns the one that has failed least often. */
const struct hr_alert *hr_alerts_due(struct hr_alerts *a, enum hr_alert_sink sink, bool repeat,
				     uint64_t now_ms)
{
	struct hr_alert *found = NULL;

	for (size_t i = 0; i < a->n; i++)
		if (is_due(&a->list[i], sink, repeat, now_ms) &&
		    (!found || a->list[i].to[sink].failures < found->to[sink].failures))
			found = &a->list[i];
	if (!found)
		return NULL;
	found->to[sink].busy = true;
	found->to[sink].sending =
	    found->state == HR_ALERT_OVER ? HR_ALERT_SENT_OVER : HR_ALERT_SENT_FIRING;
	return found;
}

void hr_alerts_sent(struct hr_alerts *a, enum hr_alert_sink sink, uint64_t id, bool good,
		    uint64_t now_ms)
{
	struct hr_alert_delivery *d = NULL;

	for (size_t i = 0; i < a->n && !d; i++)
		if (a->list[i].id == id)
			d = &a->list[i].to[sink];
	if (!d)
		return;
	d->busy = false;
	if (good) {
		d->sent = d->sending;
		d->sent_ms = now_ms;
		d->failures = 0;
		return;
	}
	d->retry_ms = now_ms + HR_ALERT_RETRY_MOST;
	if (d->failures < 5)
		d->retry_ms = now_ms + ((uint64_t)HR_ALERT_RETRY_MS << d->failures);
	d->failures++;
}
