/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/config.h"

#include <stddef.h>

#include "common/frame.h"
#include "common/text.h"
#include "net/address.h"
#include "net/conn.h"
#include "net/wire.h"

#define KEY(key_name, key_type, field)                                                             \
	.name = (key_name), .type = HR_CONFIG_##key_type,                                          \
	.offset = offsetof(struct hr_collector_config, field)

const struct hr_config_key hr_collector_keys[] = {
    {KEY("store", TEXT, store), .fixed = true, .value_name = "FOLDER",
     .otherwise = "/var/lib/headrace",
     .help = "Where streams are kept. One collector has it alone."},
    {KEY("listen", LIST, listen), .fixed = true, .value_name = "ADDRESS",
     .otherwise = "tcp://127.0.0.1:4747",
     .help = "tcp://HOST[:PORT] or unix:///PATH. Port 0 takes a free one, which is said."},
    {KEY("tls_cert", TEXT, tls_cert), .value_name = "FILE",
     .help = "This collector's certificate (PEM)."},
    {KEY("tls_key", TEXT, tls_key), .value_name = "FILE", .help = "Its key."},
    {KEY("tls_ca", TEXT, tls_ca), .value_name = "FILE",
     .help = "Who may have signed the certificates of daemons and users."},
    {KEY("plain", CHOICE, plain), .fixed = true, .choices = "no loopback yes",
     .otherwise = "loopback",
     .help = "From where plain TCP is taken. With yes, anybody who can connect can stream."},
    {KEY("munge", FLAG, munge), .fixed = true, .otherwise = "no",
     .help = "MUNGE credentials say which user is asking."},
    {KEY("munge_socket", TEXT, munge_socket), .fixed = true, .value_name = "PATH",
     .help = "Of munged, when it is not at its usual place."},
    {KEY("operators", TEXT, operators), .value_name = "GROUP",
     .help = "Whose members may ask about all jobs; others ask about their own."},
    {KEY("metrics", TEXT, metrics), .fixed = true, .value_name = "ADDRESS",
     .help = "Where Prometheus reads metrics: tcp://127.0.0.1:PORT or unix:///PATH. (default: "
	     "nowhere)"},
    {KEY("retention_age", DURATION, retention_age_ms), .value_name = "TIME", .otherwise = "0",
     .help = "Jobs that nothing was heard of for so long are removed; 0: none."},
    {KEY("retention_size", BYTES, retention_size_bytes), .value_name = "SIZE", .otherwise = "0",
     .help = "Past it the jobs that ended first are removed; 0: no limit."},
    {KEY("forget_after", DURATION, forget_after_ms), .value_name = "TIME", .otherwise = "30d",
     .help = "Then nothing is known any more of a job that was removed: no daemon holds some of it "
	     "for longer; 0: never."},
    {KEY("query_memory", BYTES, query_memory_bytes), .fixed = true, .value_name = "SIZE",
     .otherwise = "4GiB", .help = "Memory of one query."},
    {KEY("query_time", DURATION, query_time_ms), .fixed = true, .value_name = "TIME",
     .otherwise = "5m", .help = "Time of one query."},
    {KEY("query_threads", NUMBER, query_threads), .fixed = true, .value_name = "N",
     .otherwise = "0", .help = "Threads of one query; 0: as many as there are CPUs."},
    {KEY("query_at_once", NUMBER, query_at_once), .fixed = true, .value_name = "N",
     .otherwise = "4", .help = "Queries that run at a time; further ones wait."},
    {KEY("query_per_caller", NUMBER, query_per_caller), .fixed = true, .value_name = "N",
     .otherwise = "8", .help = "Queries of one user that run or wait."},
    {KEY("query_spill", TEXT, query_spill), .fixed = true, .value_name = "FOLDER",
     .help = "For what a query cannot keep in memory, and for Parquet; none: such a query fails. "
	     "(default: STORE/spill)"},
    {KEY("query_spill_size", BYTES, query_spill_bytes), .fixed = true, .value_name = "SIZE",
     .otherwise = "16GiB", .help = "Room there of one query."},
    {KEY("max_connections", NUMBER, max_connections), .fixed = true, .value_name = "N",
     .otherwise = "16384", .help = "Past it those that have not said who they are go first."},
    {KEY("new_streams_per_user", NUMBER, new_streams_per_user), .fixed = true, .value_name = "N",
     .otherwise = "100000",
     .help = "Streams (one for each node of each run) that a user may begin in 24 hours, nodes and "
	     "root any number; 0: no limit."},
    {KEY("max_frame", BYTES, max_frame_bytes), .fixed = true, .value_name = "SIZE",
     .otherwise = "16MiB", .help = "Largest frame of a stream."},
    {KEY("window", BYTES, window_bytes), .fixed = true, .value_name = "SIZE", .otherwise = "32MiB",
     .help = "What a daemon may send ahead of the acknowledgements."},
    {KEY("memory", BYTES, memory_bytes), .fixed = true, .value_name = "SIZE", .otherwise = "512MiB",
     .help = "For frames that are not in the store yet, all daemons."},
    {KEY("ping", DURATION, ping_ms), .fixed = true, .value_name = "TIME", .otherwise = "10s",
     .help = "Daemons are asked so often for a sign of life; three in vain, and they are gone."},
    {KEY("silent_after", DURATION, silent_after_ms), .fixed = true, .value_name = "TIME",
     .otherwise = "1m", .help = "Answers call streams silent that were not heard of for so long."},
};
const size_t hr_collector_n_keys = sizeof(hr_collector_keys) / sizeof(hr_collector_keys[0]);

bool hr_collector_config_check(const struct hr_collector_config *c,
			       void (*report)(const char *text))
{
	struct hr_address listen[HR_ADDRESSES_MAX];
	bool tls = hr_text_given(c->tls_cert);
	size_t n;
	const struct hr_config_rule rules[] = {
	    {!hr_text_given(c->store), "store names no folder"},
	    {!hr_text_given(c->listen) ||
		 hr_address_parse_list(c->listen, listen, HR_ADDRESSES_MAX, &n) < 0,
	     "listen: addresses are tcp://HOST[:PORT] or unix:///PATH, 16 at most"},
	    {hr_text_given(c->metrics) && hr_address_parse(c->metrics, listen) < 0,
	     "metrics: an address is tcp://HOST:PORT or unix:///PATH"},
	    {tls != hr_text_given(c->tls_key) || tls != hr_text_given(c->tls_ca),
	     "tls_cert, tls_key and tls_ca go together"},
	    {tls && c->plain == HR_PLAIN_YES, "tls_cert and plain = yes exclude one another"},
	    {!tls && c->plain == HR_PLAIN_NO, "plain = no needs tls_cert, tls_key and tls_ca"},
	    {c->max_frame_bytes < HR_CONN_FIRST_BYTES ||
		 c->max_frame_bytes > HR_FRAME_HDR_BYTES + (uint64_t)HR_FRAME_MAX_BYTES,
	     "max_frame is between 64KiB and 64MiB"},
	    {c->window_bytes < c->max_frame_bytes || c->memory_bytes < c->window_bytes,
	     "max_frame <= window <= memory"},
	    {c->ping_ms < 100 || c->ping_ms > 3600000, "ping is between 100ms and 1h"},
	    {c->max_connections == 0 || c->query_at_once == 0 || c->query_per_caller == 0,
	     "max_connections, query_at_once and query_per_caller are 1 or more"},
	};

	_Static_assert(HR_ADDRESSES_MAX == 16, "the text of `listen` says how many");
	return hr_config_rules(rules, sizeof(rules) / sizeof(rules[0]), report);
}
