/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/target.h"
#include "collector/alert_rules.h"
#include "collector/alert_url.h"
#include "common/frame.h"
#include "common/text.h"
#include "net/address.h"
#include "net/conn.h"

#define KEY(name, type, field) HR_CONFIG_KEY(struct hr_collector_config, name, type, field)

const struct hr_config_key hr_collector_keys[] = {
    {KEY("store", TEXT, store), .fixed = true, .value_name = "FOLDER",
     .otherwise = "/var/lib/headrace",
     .help = "Folder of the store. Only one collector may use it."},
    {KEY("sink", TEXT, sink), .fixed = true, .value_name = "ADDRESS",
     .help =
	 "Keep all data in ClickHouse instead of in a store: "
	 "clickhouse://[USER@]HOST[:PORT]/DATABASE. Such a collector has no data of its own, so "
	 "several can run, and questions go to ClickHouse (clickhouse.md)."},
    {KEY("listen", LIST, listen), .fixed = true, .value_name = "ADDRESS",
     .otherwise = "tcp://127.0.0.1:4747",
     .help = "Address to listen on: tcp://HOST[:PORT] or unix:///PATH; repeatable. Port 0 selects "
	     "a free port, which is logged."},
    {KEY("tls_cert", TEXT, tls_cert), .value_name = "FILE",
     .help = "This collector's certificate (PEM)."},
    {KEY("tls_key", TEXT, tls_key), .value_name = "FILE", .help = "Key of tls_cert (PEM)."},
    {KEY("tls_ca", TEXT, tls_ca), .value_name = "FILE",
     .help = "CA certificates (PEM) that verify daemons and users."},
    {KEY("plain", CHOICE, plain), .fixed = true, .choices = "no loopback yes",
     .otherwise = "loopback",
     .help = "Who may connect by TCP without TLS: no client, clients on this machine, or all. With "
	     "yes, anyone who can connect can send streams."},
    {KEY("munge", FLAG, munge), .fixed = true, .otherwise = "no",
     .help = "Identify users by MUNGE credentials."},
    {KEY("munge_socket", TEXT, munge_socket), .fixed = true, .value_name = "PATH",
     .help = "Socket of munged, if it is not at its default path."},
    {KEY("operators", TEXT, operators), .value_name = "GROUP",
     .help = "Group whose members may query all jobs; other users query their own."},
    {KEY("metrics", TEXT, metrics), .fixed = true, .value_name = "ADDRESS",
     .help = "Address for Prometheus: tcp://127.0.0.1:PORT or unix:///PATH. (default: no metrics)"},
    {KEY("alerts", LIST, alerts), .value_name = "RULE",
     .help = "When to send an alert: waiting > 80% for 5m (share of a job's training loops), "
	     "metadata > 50000 for 10s (operations per second), stuck > 60s, silent > 20s, "
	     "checkpoint > 3x (of the usual time); "
	     "repeatable. (default: no alerts)"},
    {KEY("alert_command", TEXT, alert_command), .value_name = "COMMAND",
     .help = "Program to run for each alert, with its arguments; it reads the alert as JSON. "
	     "(default: none)"},
    {KEY("alert_url", TEXT, alert_url), .value_name = "URL",
     .help = "HTTP receiver of alerts. (default: none)"},
    {KEY("alert_format", CHOICE, alert_format), .choices = "json alertmanager", .otherwise = "json",
     .help = "What alert_url receives: an object for each alert, or the format of Alertmanager."},
    {KEY("retention_age", DURATION, retention_age_ms), .value_name = "TIME", .otherwise = "0",
     .help = "Remove jobs that have sent nothing for this time; 0: never."},
    {KEY("retention_size", BYTES, retention_size_bytes), .value_name = "SIZE", .otherwise = "0",
     .help = "Maximum size of all segments: if it is exceeded, the jobs that ended first are "
	     "removed; 0: no limit."},
    {KEY("forget_after", DURATION, forget_after_ms), .value_name = "TIME", .otherwise = "30d",
     .help = "How long the collector remembers a removed job, so that it drops old data of the job "
	     "that a node sends again. Choose a time that is longer than the longest disconnection "
	     "of a node; 0: forever."},
    {KEY("query_memory", BYTES, query_memory_bytes), .fixed = true, .value_name = "SIZE",
     .otherwise = "4GiB", .help = "Memory limit of one query."},
    {KEY("query_time", DURATION, query_time_ms), .fixed = true, .value_name = "TIME",
     .otherwise = "5m", .help = "Time limit of one query."},
    {KEY("query_threads", NUMBER, query_threads), .fixed = true, .value_name = "N",
     .otherwise = "0", .help = "Threads of one query; 0: one per CPU."},
    {KEY("query_at_once", NUMBER, query_at_once), .fixed = true, .value_name = "N",
     .otherwise = "4", .help = "Queries that run at a time; others wait."},
    {KEY("query_per_caller", NUMBER, query_per_caller), .fixed = true, .value_name = "N",
     .otherwise = "8", .help = "Queries of one user that run or wait."},
    {KEY("query_spill", TEXT, query_spill), .fixed = true, .value_name = "FOLDER",
     .help = "Folder for data that exceeds the memory of a query, and for Parquet. With an empty "
	     "value, a query that needs it fails. (default: STORE/spill)"},
    {KEY("query_spill_size", BYTES, query_spill_bytes), .fixed = true, .value_name = "SIZE",
     .otherwise = "16GiB", .help = "Space in query_spill for one query."},
    {KEY("max_connections", NUMBER, max_connections), .fixed = true, .value_name = "N",
     .otherwise = "16384",
     .help = "Connections at a time. At the limit, the oldest connection that has not identified "
	     "itself is closed."},
    {KEY("new_streams_per_user", NUMBER, new_streams_per_user), .fixed = true, .value_name = "N",
     .otherwise = "100000",
     .help =
	 "Streams (one per node and run) that a user may begin in 24 hours; 0: no limit. Streams "
	 "of the services of nodes and of root have no limit."},
    {KEY("max_frame", BYTES, max_frame_bytes), .fixed = true, .value_name = "SIZE",
     .otherwise = "16MiB", .help = "Largest frame of a stream."},
    {KEY("window", BYTES, window_bytes), .fixed = true, .value_name = "SIZE", .otherwise = "32MiB",
     .help = "Bytes that a daemon may send before they are acknowledged."},
    {KEY("memory", BYTES, memory_bytes), .fixed = true, .value_name = "SIZE", .otherwise = "512MiB",
     .help = "Memory for frames that are not in the store yet, for all daemons together."},
    {KEY("ping", DURATION, ping_ms), .fixed = true, .value_name = "TIME", .otherwise = "10s",
     .help = "Interval of pings to daemons. Without an answer to three of them, the connection is "
	     "closed."},
    {KEY("silent_after", DURATION, silent_after_ms), .fixed = true, .value_name = "TIME",
     .otherwise = "1m",
     .help = "Queries report a stream as silent if it has sent nothing for this time."},
};
const size_t hr_collector_n_keys = sizeof(hr_collector_keys) / sizeof(hr_collector_keys[0]);

/* Checks the address of ClickHouse, and the files that it names. */
static bool check_sink(const char *sink, void (*report)(const char *text))
{
	struct hr_ch_target target;
	char *error = NULL, *text = NULL;
	int r = hr_text_given(sink) ? hr_ch_target_parse(sink, &target, &error) : 0;

	if (hr_text_given(sink))
		hr_ch_target_done(&target);
	if (r < 0 && asprintf(&text, "sink: %s", error ? error : strerrordesc_np(-r)) >= 0)
		report(text);
	free(text);
	free(error);
	return r == 0;
}

bool hr_collector_config_check(const struct hr_collector_config *c,
			       void (*report)(const char *text))
{
	struct hr_address listen[HR_ADDRESSES_MAX];
	bool tls = hr_text_given(c->tls_cert);
	struct hr_alert_rules alerts;
	size_t n;
	const struct hr_config_rule rules[] = {
	    {!hr_text_given(c->store), "store: a folder is required"},
	    {!hr_text_given(c->listen) ||
		 hr_address_parse_list(c->listen, listen, HR_ADDRESSES_MAX, &n) < 0,
	     "listen: must be at most 16 addresses tcp://HOST[:PORT] or unix:///PATH"},
	    {hr_text_given(c->metrics) && hr_address_parse(c->metrics, listen) < 0,
	     "metrics: must be tcp://HOST:PORT or unix:///PATH"},
	    {tls != hr_text_given(c->tls_key) || tls != hr_text_given(c->tls_ca),
	     "tls_cert, tls_key and tls_ca must be set together"},
	    {tls && c->plain == HR_PLAIN_YES, "plain: must not be yes if tls_cert is set"},
	    {!tls && c->plain == HR_PLAIN_NO, "plain: no requires tls_cert, tls_key and tls_ca"},
	    {c->max_frame_bytes < HR_CONN_FIRST_BYTES ||
		 c->max_frame_bytes > HR_FRAME_HDR_BYTES + (uint64_t)HR_FRAME_MAX_BYTES,
	     "max_frame: must be from 64KiB to 64MiB"},
	    {c->window_bytes < c->max_frame_bytes || c->memory_bytes < c->window_bytes,
	     "max_frame, window and memory: must be max_frame <= window <= memory"},
	    {c->ping_ms < 100 || c->ping_ms > 3600000, "ping: must be from 100ms to 1h"},
	    {hr_text_given(c->alert_url) && !hr_alert_url_valid(c->alert_url),
	     "alert_url: must be http://HOST[:PORT]/PATH or https://..."},
	    {c->alert_command && strspn(c->alert_command, " \t") == strlen(c->alert_command) &&
		 c->alert_command[0] != '\0',
	     "alert_command: must begin with a program"},
	    {c->max_connections == 0 || c->query_at_once == 0 || c->query_per_caller == 0,
	     "max_connections, query_at_once and query_per_caller: must be at least 1"},
	};

	_Static_assert(HR_ADDRESSES_MAX == 16, "the number in the text of `listen`");
	return (hr_alert_rules_parse(c->alerts, &alerts, report) == 0) &
	       hr_config_rules(rules, sizeof(rules) / sizeof(rules[0]), report) &
	       check_sink(c->sink, report);
}
