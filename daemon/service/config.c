/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "common/text.h"
#include "net/address.h"

#define KEY(key_name, key_type, field)                                                             \
	.name = (key_name), .type = HR_CONFIG_##key_type,                                          \
	.offset = offsetof(struct hr_service_config, field)

const struct hr_config_key hr_service_keys[] = {
    {KEY("runtime", TEXT, runtime), .value_name = "FOLDER", .otherwise = "/run/headrace",
     .help = "Where shim.sock and control.sock are, unless systemd has made them, and what is "
	     "known of running jobs."},
    {KEY("cluster", TEXT, cluster), .value_name = "NAME", .otherwise = "",
     .help = "Column cluster of all tables."},
    {KEY("node", TEXT, node), .value_name = "NAME",
     .help = "This node's name. (default: that of the host)"},
    {KEY("spool", TEXT, spool), .value_name = "FOLDER", .otherwise = "/var/spool/headrace",
     .help = "Where frames wait for a collector, on a disk of this node."},
    {KEY("spool_size", BYTES, spool_bytes), .value_name = "SIZE", .otherwise = "4GiB",
     .help = "Past it the oldest events are given up, counted."},
    {KEY("collectors", LIST, collectors), .value_name = "ADDRESS",
     .help = "tcp://HOST[:PORT] in order of preference; none: all stays in the spool."},
    {KEY("tls_cert", TEXT, tls_cert), .value_name = "FILE",
     .help = "This node's certificate (PEM)."},
    {KEY("tls_key", TEXT, tls_key), .value_name = "FILE", .help = "Its key."},
    {KEY("tls_ca", TEXT, tls_ca), .value_name = "FILE",
     .help = "Who may have signed the certificates of collectors."},
    {KEY("level", CHOICE, level), .choices = "counters trace", .otherwise = "counters",
     .help = "Of jobs that do not ask for one."},
    {KEY("unregistered", CHOICE, unregistered), .choices = "record refuse", .otherwise = "record",
     .help = "Processes of jobs that no prolog has announced."},
    {KEY("operators", TEXT, operators), .value_name = "GROUP",
     .help = "Whose members see and control all jobs, as root does."},
    {KEY("metrics", TEXT, metrics), .value_name = "ADDRESS",
     .help = "Where Prometheus reads metrics: tcp://127.0.0.1:PORT or unix:///PATH. Whoever can "
	     "connect sees the ids and rates of all jobs. (default: nowhere)"},
    {KEY("metrics_jobs", NUMBER, metrics_jobs), .value_name = "N", .otherwise = "100",
     .help = "Jobs that have metrics of their own; further ones are summed as job=\"other\"."},
    {KEY("max_jobs", NUMBER, max_jobs), .value_name = "N", .otherwise = "256",
     .help = "At a time on this node."},
    {KEY("max_jobs_per_user", NUMBER, max_jobs_per_user), .value_name = "N", .otherwise = "64",
     .help = "That no prolog has announced."},
    {KEY("max_sessions", NUMBER, max_sessions), .value_name = "N", .otherwise = "65536",
     .help = "Processes of a job at a time."},
    {KEY("max_ring_memory", BYTES, max_ring_bytes), .value_name = "SIZE", .otherwise = "0",
     .help = "Shared memory of a job's processes; 0: an eighth of the machine's."},
    {KEY("max_size", BYTES, max_size_bytes), .value_name = "SIZE", .otherwise = "0",
     .help = "Of a job's stream; past it only counters are kept; 0: no limit."},
    {KEY("idle_end", DURATION, idle_end_ms), .value_name = "TIME", .otherwise = "1m",
     .help = "A job that no prolog has announced ends so long after its last process."},
};
const size_t hr_service_n_keys = sizeof(hr_service_keys) / sizeof(hr_service_keys[0]);

static bool set(const char *text)
{
	return text && *text;
}

int hr_service_config_check(const struct hr_service_config *c, char **ret_error)
{
	struct hr_address to[HR_ADDRESSES_MAX];
	size_t n;

	*ret_error = NULL;
	if (!set(c->runtime) || c->runtime[0] != '/' || strlen(c->runtime) > HR_SERVICE_PATH_MOST)
		return hr_text_fail(-EINVAL, ret_error,
				    "runtime is an absolute path of at most %u bytes",
				    HR_SERVICE_PATH_MOST);
	if (!set(c->spool))
		return hr_text_fail(-EINVAL, ret_error, "spool names no folder");
	if (set(c->collectors) &&
	    hr_address_parse_list(c->collectors, to, HR_ADDRESSES_MAX, &n) < 0)
		return hr_text_fail(-EINVAL, ret_error,
				    "collectors = %s: addresses are tcp://HOST[:PORT], %u at most",
				    c->collectors, HR_ADDRESSES_MAX);
	if (set(c->tls_cert) != set(c->tls_key) || set(c->tls_cert) != set(c->tls_ca))
		return hr_text_fail(-EINVAL, ret_error, "tls_cert, tls_key and tls_ca go together");
	if (set(c->metrics) && hr_address_parse(c->metrics, to) < 0)
		return hr_text_fail(-EINVAL, ret_error,
				    "metrics = %s: an address is tcp://HOST:PORT or unix:///PATH",
				    c->metrics);
	if (c->max_jobs == 0 || c->max_sessions == 0)
		return hr_text_fail(-EINVAL, ret_error, "max_jobs and max_sessions are 1 or more");
	return 0;
}
