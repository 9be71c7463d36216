/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/metrics.h"

#include <stddef.h>

#define COUNTER HR_METRIC_COUNTER
#define GAUGE	HR_METRIC_GAUGE
#define COMMIT	"headrace_collector_commit_seconds"

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

void hr_collector_metrics_write(const struct hr_collector_parts *parts, FILE *out)
{
	write_connections(parts->peers, out);
	write_streams(parts->ingest, out);
	write_queries(parts->queries, out);
	write_store(parts->retention, out);
}
