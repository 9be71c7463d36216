/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/metrics.h"

#include <stddef.h>
#include <string.h>

#define COUNTER HR_METRIC_COUNTER
#define GAUGE	HR_METRIC_GAUGE
#define COMMIT	"headrace_collector_commit_seconds"
#define TOP	10u /* jobs and mounts with series of their own, so that these stay few */

static void write_connections(const struct hr_peers *peers, FILE *out)
{
	struct hr_peers_stats s;

	hr_peers_stats(peers, &s);
	hr_metric(out, "headrace_collector_connections", GAUGE, "Open connections.");
	hr_metric_value(out, "headrace_collector_connections", (double)s.known, "state", "known",
			NULL);
	hr_metric_value(out, "headrace_collector_connections", (double)s.strangers, "state",
			"strange", NULL);
	hr_metric_single(out, "headrace_collector_paused_connections", GAUGE,
			 "Connections that are paused until memory is free.", (double)s.paused);
	hr_metric_single(out, "headrace_collector_refused_connections_total", COUNTER,
			 "Refused connections.", (double)s.refused);
	hr_metric_single(out, "headrace_collector_in_flight_bytes", GAUGE,
			 "Received frames that are not in the store yet.",
			 (double)s.in_flight_bytes);
}

static void write_commits(const struct hr_ingest_stats *s, FILE *out)
{
	uint64_t n = 0;
	char step[32];

	hr_metric(out, COMMIT, HR_METRIC_HISTOGRAM, "Time to write a round of frames to disk.");
	for (unsigned i = 0; i < HR_INGEST_COMMIT_STEPS; i++) {
		n += s->commits[i];
		snprintf(step, sizeof(step), "%g", hr_ingest_commit_steps[i]);
		hr_metric_value(out, COMMIT "_bucket", (double)n, "le", step, NULL);
	}
	n += s->commits[HR_INGEST_COMMIT_STEPS];
	hr_metric_value(out, COMMIT "_bucket", (double)n, "le", "+Inf", NULL);
	hr_metric_value(out, COMMIT "_sum", (double)s->commit_ns / 1e9, NULL);
	hr_metric_value(out, COMMIT "_count", (double)n, NULL);
}

static void write_streams(struct hr_ingest *ingest, FILE *out)
{
	struct hr_ingest_stats s;

	hr_ingest_stats(ingest, &s);
	hr_metric(out, "headrace_collector_streams", GAUGE, "Open streams.");
	hr_metric_value(out, "headrace_collector_streams", (double)s.connected, "state",
			"connected", NULL);
	hr_metric_value(out, "headrace_collector_streams", (double)(s.streams - s.connected),
			"state", "idle", NULL);
	hr_metric_single(out, "headrace_collector_silent_streams", GAUGE,
			 "Streams that have not ended and have had no daemon for up to a day.",
			 (double)s.silent);
	hr_metric_single(out, "headrace_collector_silent_seconds", GAUGE,
			 "Time since the first of these streams lost its daemon.",
			 (double)s.silent_ms / 1000);
	hr_metric_single(out, "headrace_collector_frames_total", COUNTER,
			 "Frames added to the store.", (double)s.frames);
	hr_metric_single(out, "headrace_collector_ingested_bytes_total", COUNTER,
			 "Bytes of frames added to the store.", (double)s.bytes);
	hr_metric_single(out, "headrace_collector_repeated_frames_total", COUNTER,
			 "Received frames that the store already had.", (double)s.repeated);
	hr_metric_single(out, "headrace_collector_acks_total", COUNTER, "Acknowledgements.",
			 (double)s.acks);
	hr_metric_single(out, "headrace_collector_nacks_total", COUNTER,
			 "Rejected frames and streams.", (double)s.nacks);
	write_commits(&s, out);
}

static void write_queries(const struct hr_queries *queries, FILE *out)
{
	struct hr_queries_stats s;

	hr_queries_stats(queries, &s);
	hr_metric(out, "headrace_collector_queries", GAUGE, "Queries that run or wait.");
	hr_metric_value(out, "headrace_collector_queries", s.running, "state", "running", NULL);
	hr_metric_value(out, "headrace_collector_queries", s.waiting, "state", "waiting", NULL);
	hr_metric(out, "headrace_collector_queries_total", COUNTER, "Finished queries.");
	hr_metric_value(out, "headrace_collector_queries_total", (double)s.answered, "result",
			"answered", NULL);
	hr_metric_value(out, "headrace_collector_queries_total", (double)s.failed, "result",
			"failed", NULL);
	hr_metric_value(out, "headrace_collector_queries_total", (double)s.cancelled, "result",
			"cancelled", NULL);
}

static void write_store(struct hr_retention *retention, FILE *out)
{
	struct hr_retention_stats s;

	if (!hr_retention_stats(retention, &s))
		return;
	hr_metric_single(out, "headrace_collector_store_bytes", GAUGE,
			 "Size of the segments in the store.", (double)s.store_bytes);
	hr_metric_single(out, "headrace_collector_removed_jobs_total", COUNTER,
			 "Jobs removed by retention.", (double)s.removed_jobs);
	hr_metric_single(out, "headrace_collector_removed_bytes_total", COUNTER,
			 "Bytes removed by retention.", (double)s.removed_bytes);
}

/* ---- what jobs do now ---- */

/* One value of a metric whose series are jobs or mounts. */
struct fleet_value {
	const char *kind; /* value of the label `kind` */
	size_t offset;	  /* of the rate in Headrace__FleetRate */
};

static const struct fleet_value operations[] = {
    {"metadata", offsetof(Headrace__FleetRate, metadata)},
    {"read", offsetof(Headrace__FleetRate, reads)},
    {"write", offsetof(Headrace__FleetRate, writes)},
};

static const struct fleet_value bytes[] = {
    {"read", offsetof(Headrace__FleetRate, bytes_read)},
    {"write", offsetof(Headrace__FleetRate, bytes_written)},
};

static double rate_of(const Headrace__FleetRate *r, const struct fleet_value *v)
{
	return *(const double *)((const char *)r + v->offset);
}

static void write_job(const Headrace__FleetJob *j, const char *name, const char *kind, double value,
		      FILE *out)
{
	char attempt[16];

	snprintf(attempt, sizeof(attempt), "%u", j->attempt);
	hr_metric_value(out, name, value, "cluster", j->cluster, "job", j->job, "attempt", attempt,
			"user", j->user, kind ? "kind" : NULL, kind, NULL);
}

static void write_jobs(const Headrace__Fleet *f, const char *name, const char *help,
		       const struct fleet_value *values, size_t n, FILE *out)
{
	hr_metric(out, name, GAUGE, help);
	for (size_t i = 0; i < f->n_jobs; i++)
		for (size_t k = 0; k < n; k++)
			write_job(f->jobs[i], name, values[k].kind,
				  rate_of(f->jobs[i]->rate, &values[k]), out);
}

static void write_mounts(const Headrace__Fleet *f, const char *name, const char *help,
			 const struct fleet_value *values, size_t n, struct hr_arena *memory,
			 FILE *out)
{
	hr_metric(out, name, GAUGE, help);
	for (size_t i = 0; i < f->n_mounts && i < TOP; i++) {
		const Headrace__FleetMount *m = f->mounts[i];
		char *path = hr_arena_alloc(memory, m->path.len + 1);

		if (!path)
			return;
		memcpy(path, m->path.data, m->path.len);
		for (size_t k = 0; k < n; k++)
			hr_metric_value(out, name, rate_of(m->rate, &values[k]), "mount", path,
					"fs_type", m->fs_type, "kind", values[k].kind, NULL);
	}
}

static void write_fleet(const struct hr_peers *peers, FILE *out)
{
	struct hr_arena memory = {0};
	Headrace__Fleet f;

	if (hr_peers_fleet(peers, TOP, 0, &memory, &f) == 0) {
		hr_metric_single(out, "headrace_collector_jobs", GAUGE,
				 "Running jobs with a connected node.", f.jobs_total);
		hr_metric_single(out, "headrace_collector_training_loops", GAUGE,
				 "Processes with a training loop.", f.loops);
		hr_metric_single(out, "headrace_collector_waiting_training_loops", GAUGE,
				 "Training loops that wait for data, on average.", f.waiting);
		write_jobs(&f, "headrace_collector_job_operations_per_second",
			   "Operations of the jobs with the most operations.", operations,
			   sizeof(operations) / sizeof(*operations), out);
		write_jobs(&f, "headrace_collector_job_bytes_per_second",
			   "Bytes that these jobs read and write.", bytes,
			   sizeof(bytes) / sizeof(*bytes), out);
		hr_metric(out, "headrace_collector_job_waiting_training_loops", GAUGE,
			  "Training loops of these jobs that wait for data, on average.");
		for (size_t i = 0; i < f.n_jobs; i++)
			write_job(f.jobs[i], "headrace_collector_job_waiting_training_loops", NULL,
				  f.jobs[i]->waiting, out);
		write_mounts(&f, "headrace_collector_mount_operations_per_second",
			     "Operations on the mounts with the most operations.", operations,
			     sizeof(operations) / sizeof(*operations), &memory, out);
		write_mounts(&f, "headrace_collector_mount_bytes_per_second",
			     "Bytes that all jobs read from and write to these mounts.", bytes,
			     sizeof(bytes) / sizeof(*bytes), &memory, out);
	}
	hr_arena_free(&memory);
}

/* ---- alerts ---- */

static void write_sent(const struct hr_alerting_stats *s, FILE *out)
{
	static const char name[] = "headrace_collector_alert_messages_total";
	static const struct {
		const char *to;
		enum hr_alert_sink sink;
	} sinks[] = {{"url", HR_ALERT_URL}, {"command", HR_ALERT_COMMAND}};

	hr_metric(out, name, COUNTER, "Messages about alerts.");
	for (size_t i = 0; i < sizeof(sinks) / sizeof(*sinks); i++) {
		hr_metric_value(out, name, (double)s->delivered[sinks[i].sink], "to", sinks[i].to,
				"result", "delivered", NULL);
		hr_metric_value(out, name, (double)s->failed[sinks[i].sink], "to", sinks[i].to,
				"result", "failed", NULL);
	}
}

static void write_alerts(const struct hr_alerting *alerting, FILE *out)
{
	struct hr_alerting_stats s;

	hr_alerting_stats(alerting, &s);
	hr_metric(out, "headrace_collector_alerts", GAUGE, "Active alerts.");
	for (unsigned i = 0; i < HR_ALERT_N_KINDS; i++)
		hr_metric_value(out, "headrace_collector_alerts", (double)s.firing[i], "kind",
				hr_alert_kind_name(i), NULL);
	hr_metric_single(out, "headrace_collector_ignored_alerts_total", COUNTER,
			 "Alerts that were ignored because there were too many.",
			 (double)s.ignored);
	write_sent(&s, out);
}

void hr_collector_metrics_write(const struct hr_collector_parts *parts, FILE *out)
{
	write_connections(parts->peers, out);
	write_streams(parts->ingest, out);
	write_queries(parts->queries, out);
	write_store(parts->retention, out);
	write_fleet(parts->peers, out);
	write_alerts(parts->alerting, out);
}
