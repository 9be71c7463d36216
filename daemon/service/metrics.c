/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a node for Prometheus (docs/metrics.md). */
#include "net/metrics.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/loss.h"
#include "common/text.h"
#include "daemon/service/internal.h"

#define COUNTER HR_METRIC_COUNTER
#define GAUGE	HR_METRIC_GAUGE

/* ---- counting -------------------------------------------------------------------------------- */

/*
 * Returns how much a counter has grown. If it is lower than before, it began at 0 again, like
 * `given_up` of a restarted recording process.
 */
static uint64_t grown(uint64_t now, uint64_t before)
{
	return now >= before ? now - before : now;
}

static void add_grown(Headrace__JobStatus *sum, const Headrace__JobStatus *now,
		      const Headrace__JobStatus *before)
{
#define ADD(name) sum->name += grown(now->name, before->name);
	COUNTS(ADD)
#undef ADD
}

/*
 * Returns whether a new job gets its own metrics. This never changes: if the job left `others`
 * later, the decrease would look like a restart.
 */
static bool may_be_shown(const struct service *s)
{
	uint64_t shown = 0;

	for (const struct job *job = s->jobs; job; job = job->next)
		shown += job->shown;
	return shown < s->c->metrics_jobs;
}

void hr__service_metrics_count(struct job *job, const Headrace__JobStatus *now)
{
	struct service *s = job->service;
	bool first = job->status_ms == 0;

	if (first)
		job->shown = may_be_shown(s);
	if (!first || !job->resumed) {
		add_grown(&s->total, now, job->status);
		if (!job->shown)
			add_grown(&s->others, now, job->status);
	}
}

static uint64_t lost(const Headrace__JobStatus *c)
{
	return c->ring_full + c->stray + c->detached + c->torn + c->given_up + c->hostile;
}

/* ---- the node -------------------------------------------------------------------------------- */

static void write_jobs(const struct service *s, FILE *out)
{
	unsigned n[JOB_STATES] = {0};

	for (const struct job *job = s->jobs; job; job = job->next)
		n[job->state]++;
	hr_metric(out, "headrace_node_jobs", GAUGE, "Jobs on this node.");
	for (size_t i = 0; i < JOB_STATES; i++)
		hr_metric_value(out, "headrace_node_jobs", n[i], "state",
				hr__service_job_state((enum job_state)i), NULL);
}

static void write_lost(const Headrace__JobStatus *c, FILE *out)
{
	const struct {
		enum hr_loss_reason reason;
		uint64_t n;
	} rows[] = {
	    {HR_LOSS_RING_FULL, c->ring_full}, {HR_LOSS_STRAY, c->stray},
	    {HR_LOSS_DETACHED, c->detached},   {HR_LOSS_TORN, c->torn},
	    {HR_LOSS_SPOOL_FULL, c->given_up}, {HR_LOSS_HOSTILE, c->hostile},
	};

	hr_metric(out, "headrace_node_lost_total", COUNTER,
		  "Operations that were lost, by reason as in the table losses.");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		hr_metric_value(out, "headrace_node_lost_total", (double)rows[i].n, "reason",
				hr_loss_name(rows[i].reason), NULL);
}

static void write_refused(const struct service *s, FILE *out)
{
	hr_metric(out, "headrace_node_refused_total", COUNTER,
		  "Processes and threads that are not recorded, by reason.");
	hr_metric_value(out, "headrace_node_refused_total", (double)(s->refused - s->limited),
			"reason", "job", NULL);
	hr_metric_value(out, "headrace_node_refused_total",
			(double)(s->total.refused + s->limited - s->limited_reported), "reason",
			"limit", NULL);
	hr_metric_value(out, "headrace_node_refused_total", (double)s->unplaced, "reason", "no_job",
			NULL);
}

static void write_sums(const struct service *s, FILE *out)
{
	const Headrace__JobStatus *c = &s->total;

	hr_metric_single(out, "headrace_node_sessions_total", COUNTER,
			 "Processes that have attached since the start.",
			 (double)c->processes_total);
	hr_metric_single(out, "headrace_node_events_total", COUNTER, "Operations recorded.",
			 (double)c->events);
	hr_metric_single(out, "headrace_node_read_bytes_total", COUNTER, "Bytes that jobs read.",
			 (double)c->read_bytes);
	hr_metric_single(out, "headrace_node_written_bytes_total", COUNTER,
			 "Bytes that jobs wrote.", (double)c->written_bytes);
	hr_metric_single(out, "headrace_node_stored_bytes_total", COUNTER,
			 "Bytes written to the spool.", (double)c->stored_bytes);
	write_lost(c, out);
	write_refused(s, out);
	hr_metric_single(out, "headrace_node_worker_restarts_total", COUNTER,
			 "Recording processes that were killed and restarted.",
			 (double)s->restarts);
}

static void write_sending(const struct service *s, FILE *out)
{
	uint64_t frames = 0, oldest_ms = 0, sessions = 0;
	unsigned unconnected = 0, failing = 0;
	bool sends = hr_text_given(s->c->collectors);

	for (const struct job *job = s->jobs; job; job = job->next) {
		uint64_t ms = job->status->unsent_ms;

		if (job->state == JOB_DRAINING) /* since then, there are no more status messages */
			ms += hr__service_now_ms(s) - job->status_ms;
		if (job->status->unsent_frames > 0 && ms > oldest_ms)
			oldest_ms = ms;
		frames += job->status->unsent_frames;
		sessions += job->status->processes;
		failing += job->status->store_error != 0;
		unconnected += sends && job->status_ms != 0 && !job->status->connected;
	}
	hr_metric_single(out, "headrace_node_sessions", GAUGE, "Processes attached now.",
			 (double)sessions);
	hr_metric_single(out, "headrace_node_spool_bytes", GAUGE,
			 "Bytes in the spool, from the last status of a job.",
			 (double)s->spool_bytes);
	hr_metric_single(out, "headrace_node_spool_limit_bytes", GAUGE, "Limit of the spool.",
			 (double)s->c->spool_bytes);
	hr_metric_single(out, "headrace_node_unsent_frames", GAUGE,
			 "Frames of jobs on this node that no collector has acknowledged.",
			 (double)frames);
	hr_metric_single(out, "headrace_node_ack_lag_seconds", GAUGE,
			 "Age of the oldest such frame.", (double)oldest_ms / 1000);
	hr_metric_single(out, "headrace_node_unconnected_jobs", GAUGE,
			 "Jobs that are not connected to a collector.", unconnected);
	hr_metric_single(out, "headrace_node_failing_jobs", GAUGE,
			 "Jobs whose frames the spool does not accept.", failing);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void write_job_value(const struct job *job, const char *name, uint64_t value, FILE *out)
{
	char attempt[16], uid[16];

	snprintf(attempt, sizeof(attempt), "%u", job->attempt);
	snprintf(uid, sizeof(uid), "%u", job->uid);
	hr_metric_value(out, name, (double)value, "job", job->id, "attempt", attempt, "uid", uid,
			NULL);
}

static uint64_t events_of(const Headrace__JobStatus *c)
{
	return c->events;
}

static uint64_t read_by(const Headrace__JobStatus *c)
{
	return c->read_bytes;
}

static uint64_t written_by(const Headrace__JobStatus *c)
{
	return c->written_bytes;
}

static void write_each_job(const struct service *s, const char *name, const char *help,
			   uint64_t (*value)(const Headrace__JobStatus *c), FILE *out)
{
	hr_metric(out, name, COUNTER, help);
	for (const struct job *job = s->jobs; job; job = job->next)
		if (job->shown)
			write_job_value(job, name, value(job->status), out);
	hr_metric_value(out, name, (double)value(&s->others), "job", "other", NULL);
}

static void write_job_sessions(const struct service *s, FILE *out)
{
	uint64_t others = 0;

	hr_metric(out, "headrace_job_sessions", GAUGE, "Processes of the job attached now.");
	for (const struct job *job = s->jobs; job; job = job->next) {
		if (job->shown)
			write_job_value(job, "headrace_job_sessions", job->status->processes, out);
		else
			others += job->status->processes;
	}
	hr_metric_value(out, "headrace_job_sessions", (double)others, "job", "other", NULL);
}

static void metrics_write_all(void *self, FILE *out)
{
	const struct service *s = self;

	write_jobs(s, out);
	write_sums(s, out);
	write_sending(s, out);
	write_each_job(s, "headrace_job_events_total", "Operations of the job recorded.", events_of,
		       out);
	write_each_job(s, "headrace_job_read_bytes_total", "Bytes that the job read.", read_by,
		       out);
	write_each_job(s, "headrace_job_written_bytes_total", "Bytes that the job wrote.",
		       written_by, out);
	write_each_job(s, "headrace_job_lost_total", "Operations of the job that were lost.", lost,
		       out);
	write_job_sessions(s, out);
}

void hr__service_metrics_open(struct service *s)
{
	const struct hr_metrics_config config = {.address = s->c->metrics,
						 .component = "node",
						 .version = HEADRACE_VERSION,
						 .write = metrics_write_all,
						 .self = s};

	s->metrics = hr_metrics_serve(&s->loop, &config);
}
