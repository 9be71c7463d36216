/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/config.h"

#include <linux/magic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/text.h"
#include "daemon/base/privacy.h"
#include "daemon/service/policy.h"
#include "net/address.h"

#define KEY(key_name, key_type, field)                                                             \
	.name = (key_name), .type = HR_CONFIG_##key_type,                                          \
	.offset = offsetof(struct hr_service_config, field)

const struct hr_config_key hr_service_keys[] = {
    {KEY("runtime", TEXT, runtime), .value_name = "FOLDER", .otherwise = "/run/headrace",
     .fixed = true,
     .help = "Where shim.sock and control.sock are, unless systemd has made them, and what is "
	     "known of running jobs."},
    {KEY("cluster", TEXT, cluster), .value_name = "NAME", .otherwise = "", .fixed = true,
     .help = "Column cluster of all tables."},
    {KEY("node", TEXT, node), .value_name = "NAME", .fixed = true,
     .help = "This node's name. (default: that of the host)"},
    {KEY("spool", TEXT, spool), .value_name = "FOLDER", .otherwise = "/var/spool/headrace",
     .fixed = true, .help = "Where frames wait for a collector, on a disk of this node."},
    {KEY("spool_size", BYTES, spool_bytes), .value_name = "SIZE", .otherwise = "0",
     .help = "Past it the oldest events are given up, counted; 0: 4GiB, or 256MiB where the spool "
	     "lies in memory (tmpfs)."},
    {KEY("collectors", LIST, collectors), .value_name = "ADDRESS",
     .help = "tcp://HOST[:PORT] in order of preference; none: all stays in the spool."},
    {KEY("tls_cert", TEXT, tls_cert), .value_name = "FILE",
     .help = "This node's certificate (PEM)."},
    {KEY("tls_key", TEXT, tls_key), .value_name = "FILE", .help = "Its key."},
    {KEY("tls_ca", TEXT, tls_ca), .value_name = "FILE",
     .help = "Who may have signed the certificates of collectors."},
    {KEY("level", CHOICE, level), .choices = "counters trace", .otherwise = "counters",
     .help = "Of jobs that do not ask for one."},
    {KEY("probes", CHOICE, probes), .choices = "off on", .otherwise = "off",
     .help = "BPF programs tell of what no shim sees, in jobs that begin from now on; they need "
	     "CAP_BPF and CAP_PERFMON and cost each system call of the node."},
    {KEY("policy", CHOICE, policy), .choices = "record asked off", .otherwise = "record",
     .help = "Which jobs are recorded: all, those with HEADRACE=on in their environment, none."},
    {KEY("partition", LIST, policy_partitions), .value_name = "NAME=WORD",
     .help = "Policy or level of the jobs of a partition: record, counters, trace, asked or off."},
    {KEY("user", LIST, policy_users), .value_name = "NAME=WORD",
     .help = "The same of a user's jobs, in whichever partition."},
    {KEY("paths", CHOICE, paths), .choices = "full hash cut", .otherwise = "full",
     .help = "What is kept of paths: all, pseudonyms, or their begin and extension alone."},
    {KEY("paths_keep", NUMBER, paths_keep), .value_name = "N", .otherwise = "1",
     .help = "Components at a path's begin that stay as they are."},
    {KEY("privacy_key", TEXT, privacy_key), .value_name = "FILE",
     .help = "16 random bytes or more, the same on all nodes, that pseudonyms are made with."},
    {KEY("command_lines", CHOICE, command_lines), .choices = "full program none",
     .otherwise = "full", .help = "What is kept of command lines."},
    {KEY("unregistered", CHOICE, unregistered), .choices = "record refuse", .otherwise = "record",
     .help = "Processes of jobs that no prolog has announced."},
    {KEY("operators", TEXT, operators), .value_name = "GROUP",
     .help = "Whose members see and control all jobs, as root does."},
    {KEY("metrics", TEXT, metrics), .value_name = "ADDRESS", .fixed = true,
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
    {KEY("max_sessions_per_user", NUMBER, max_user_sessions), .value_name = "N",
     .otherwise = "65536", .help = "Processes of all jobs of a user."},
    {KEY("max_sessions_per_node", NUMBER, max_node_sessions), .value_name = "N",
     .otherwise = "131072", .help = "Processes of all jobs."},
    {KEY("max_ring_memory_per_user", BYTES, max_user_ring_bytes), .value_name = "SIZE",
     .otherwise = "0", .help = "Of all jobs of a user; 0: an eighth of the machine's."},
    {KEY("max_ring_memory_per_node", BYTES, max_node_ring_bytes), .value_name = "SIZE",
     .otherwise = "0", .help = "Of all jobs; 0: a quarter of the machine's."},
    {KEY("max_size", BYTES, max_size_bytes), .value_name = "SIZE", .otherwise = "0",
     .help = "Of a job's stream; past it only counters are kept; 0: no limit."},
    {KEY("idle_end", DURATION, idle_end_ms), .value_name = "TIME", .otherwise = "1m",
     .help = "A job that no prolog has announced ends so long after its last process."},
};
const size_t hr_service_n_keys = sizeof(hr_service_keys) / sizeof(hr_service_keys[0]);

bool hr_service_config_check(const struct hr_service_config *c, void (*say)(const char *text))
{
	struct hr_address to[HR_ADDRESSES_MAX];
	bool tls = hr_text_given(c->tls_cert);
	size_t n;
	const struct hr_config_rule rules[] = {
	    {!hr_text_given(c->runtime) || c->runtime[0] != '/' ||
		 strlen(c->runtime) > HR_SERVICE_PATH_MOST,
	     "runtime is an absolute path of at most 60 bytes"},
	    {!hr_text_given(c->spool), "spool names no folder"},
	    {hr_text_given(c->collectors) &&
		 hr_address_parse_list(c->collectors, to, HR_ADDRESSES_MAX, &n) < 0,
	     "collectors: addresses are tcp://HOST[:PORT], 16 at most"},
	    {tls != hr_text_given(c->tls_key) || tls != hr_text_given(c->tls_ca),
	     "tls_cert, tls_key and tls_ca go together"},
	    {hr_text_given(c->metrics) && hr_address_parse(c->metrics, to) < 0,
	     "metrics: an address is tcp://HOST:PORT or unix:///PATH"},
	    {!hr_policy_valid(c->policy_partitions) || !hr_policy_valid(c->policy_users),
	     "partition and user are NAME=WORD, the word record, counters, trace, asked or off"},
	    {c->paths != HR_PATHS_FULL && !hr_text_given(c->privacy_key),
	     "paths = hash and cut need privacy_key"},
	    {c->paths_keep > UINT32_MAX, "paths_keep is too large"},
	    {c->spool_bytes != 0 && c->spool_bytes < 16u << 20, "spool_size is 16MiB or more"},
	    {c->max_jobs == 0 || c->max_sessions == 0 || c->max_user_sessions == 0 ||
		 c->max_node_sessions == 0,
	     "max_jobs and max_sessions are 1 or more"},
	};

	_Static_assert(HR_SERVICE_PATH_MOST == 60 && HR_ADDRESSES_MAX == 16, "the texts say so");
	return hr_config_rules(rules, sizeof(rules) / sizeof(rules[0]), say);
}

/* Of the folder, or where it will be made. */
static bool in_memory(const char *path)
{
	char *folder = strdup(path), *slash;
	struct statfs fs;
	bool found = false;

	while (folder && folder[0] != '\0' && !(found = statfs(folder, &fs) == 0)) {
		slash = strrchr(folder, '/');
		if (!slash || slash == folder)
			break;
		*slash = '\0';
	}
	free(folder);
	return found && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

void hr_service_config_settle(struct hr_service_config *c)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	if (c->max_user_ring_bytes == 0)
		c->max_user_ring_bytes = memory / 8;
	if (c->max_node_ring_bytes == 0)
		c->max_node_ring_bytes = memory / 4;
	if (c->spool_bytes == 0)
		c->spool_bytes = in_memory(c->spool) ? UINT64_C(256) << 20 : UINT64_C(4) << 30;
}
