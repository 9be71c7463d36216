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

#define KEY(name, type, field) HR_CONFIG_KEY(struct hr_service_config, name, type, field)

const struct hr_config_key hr_service_keys[] = {
    {KEY("runtime", TEXT, runtime), .value_name = "FOLDER", .otherwise = "/run/headrace",
     .fixed = true,
     .help = "Folder of shim.sock and control.sock (unless systemd creates them) and of the state "
	     "of running jobs."},
    {KEY("cluster", TEXT, cluster), .value_name = "NAME", .otherwise = "", .fixed = true,
     .help = "Name of the cluster: column cluster of all tables."},
    {KEY("node", TEXT, node), .value_name = "NAME", .fixed = true,
     .help = "Name of this node. (default: the host name)"},
    {KEY("spool", TEXT, spool), .value_name = "FOLDER", .otherwise = "/var/spool/headrace",
     .fixed = true,
     .help = "Folder on a local disk for frames that no collector has acknowledged."},
    {KEY("spool_size", BYTES, spool_bytes), .value_name = "SIZE", .otherwise = "0",
     .help = "Maximum size of the spool. If it is full, headraced deletes and counts the oldest "
	     "data, events first. 0: 4GiB, or 256MiB if the spool is in memory (tmpfs)."},
    {KEY("collectors", LIST, collectors), .value_name = "ADDRESS",
     .help = "tcp://HOST[:PORT] in order of preference; repeatable. Without this key, all "
	     "data stays in the spool."},
    {KEY("tls_cert", TEXT, tls_cert), .value_name = "FILE",
     .help = "This node's certificate (PEM)."},
    {KEY("tls_key", TEXT, tls_key), .value_name = "FILE", .help = "Key of tls_cert (PEM)."},
    {KEY("tls_ca", TEXT, tls_ca), .value_name = "FILE",
     .help = "CA certificates (PEM) that verify collectors."},
    {KEY("level", CHOICE, level), .choices = "counters trace", .otherwise = "counters",
     .help = "Level of jobs that do not request one."},
    {KEY("probes", CHOICE, probes), .choices = "off on", .otherwise = "off",
     .help = "Record with BPF programs what the shim cannot see, in jobs that start afterwards. "
	     "Needs CAP_BPF and CAP_PERFMON, and slows down each system call of the node."},
    {KEY("policy", CHOICE, policy), .choices = "record asked off", .otherwise = "record",
     .help = "Jobs to record: all, those with HEADRACE=on in their environment, or none."},
    {KEY("partition", LIST, policy_partitions), .value_name = "NAME=WORD",
     .help = "Policy or level of the jobs of a partition: record, counters, trace, asked or off; "
	     "repeatable."},
    {KEY("user", LIST, policy_users), .value_name = "NAME=WORD",
     .help = "Policy or level of the jobs of a user, in any partition; repeatable."},
    {KEY("paths", CHOICE, paths), .choices = "full hash cut", .otherwise = "full",
     .help = "How paths are stored: in full, as pseudonyms, or as their first components and "
	     "extension only."},
    {KEY("paths_keep", NUMBER, paths_keep), .value_name = "N", .otherwise = "1",
     .help = "With paths = hash or cut: number of first components that are stored in full."},
    {KEY("privacy_key", TEXT, privacy_key), .value_name = "FILE",
     .help = "File of at least 16 random bytes, the same on all nodes: the key of the pseudonyms."},
    {KEY("command_lines", CHOICE, command_lines), .choices = "full program none",
     .otherwise = "full",
     .help = "How command lines are stored: in full, only the program, or not at all."},
    {KEY("unregistered", CHOICE, unregistered), .choices = "record refuse", .otherwise = "record",
     .help = "Whether to record processes of jobs that no prolog has registered."},
    {KEY("operators", TEXT, operators), .value_name = "GROUP",
     .help = "Group whose members may see and control all jobs, like root."},
    {KEY("metrics", TEXT, metrics), .value_name = "ADDRESS", .fixed = true,
     .help = "Address for Prometheus: tcp://127.0.0.1:PORT or unix:///PATH. Anyone who can connect "
	     "can read the ids and rates of all jobs. (default: no metrics)"},
    {KEY("metrics_jobs", NUMBER, metrics_jobs), .value_name = "N", .otherwise = "100",
     .help = "Number of jobs with metrics of their own; the others are added up as job=\"other\"."},
    {KEY("max_jobs", NUMBER, max_jobs), .value_name = "N", .otherwise = "256",
     .help = "Jobs at a time on this node."},
    {KEY("max_jobs_per_user", NUMBER, max_jobs_per_user), .value_name = "N", .otherwise = "64",
     .help = "Jobs of one user at a time that no prolog has registered."},
    {KEY("max_sessions", NUMBER, max_sessions), .value_name = "N", .otherwise = "65536",
     .help = "Processes of one job at a time."},
    {KEY("max_ring_memory", BYTES, max_ring_bytes), .value_name = "SIZE", .otherwise = "0",
     .help = "Shared memory for the processes of one job; 0: an eighth of the machine's memory."},
    {KEY("max_sessions_per_user", NUMBER, max_user_sessions), .value_name = "N",
     .otherwise = "65536", .help = "Processes of all jobs of one user at a time."},
    {KEY("max_sessions_per_node", NUMBER, max_node_sessions), .value_name = "N",
     .otherwise = "131072", .help = "Processes of all jobs at a time."},
    {KEY("max_ring_memory_per_user", BYTES, max_user_ring_bytes), .value_name = "SIZE",
     .otherwise = "0",
     .help = "Shared memory for all jobs of one user; 0: an eighth of the machine's memory."},
    {KEY("max_ring_memory_per_node", BYTES, max_node_ring_bytes), .value_name = "SIZE",
     .otherwise = "0", .help = "Shared memory for all jobs; 0: a quarter of the machine's memory."},
    {KEY("max_size", BYTES, max_size_bytes), .value_name = "SIZE", .otherwise = "0",
     .help = "Size of a job's stream on this node, after which only counters are recorded; 0: no "
	     "limit."},
    {KEY("idle_end", DURATION, idle_end_ms), .value_name = "TIME", .otherwise = "1m",
     .help = "Time without processes after which a job that no prolog has registered ends."},
};
const size_t hr_service_n_keys = sizeof(hr_service_keys) / sizeof(hr_service_keys[0]);

bool hr_service_config_check(const struct hr_service_config *c, void (*report)(const char *text))
{
	struct hr_address to[HR_ADDRESSES_MAX];
	bool tls = hr_text_given(c->tls_cert);
	size_t n;
	const struct hr_config_rule rules[] = {
	    {!hr_text_given(c->runtime) || c->runtime[0] != '/' ||
		 strlen(c->runtime) > HR_SERVICE_PATH_MOST,
	     "runtime: must be an absolute path of at most 60 bytes"},
	    {!hr_text_given(c->spool), "spool: a folder is required"},
	    {hr_text_given(c->collectors) &&
		 hr_address_parse_list(c->collectors, to, HR_ADDRESSES_MAX, &n) < 0,
	     "collectors: must be at most 16 addresses tcp://HOST[:PORT]"},
	    {tls != hr_text_given(c->tls_key) || tls != hr_text_given(c->tls_ca),
	     "tls_cert, tls_key and tls_ca must be set together"},
	    {hr_text_given(c->metrics) && hr_address_parse(c->metrics, to) < 0,
	     "metrics: must be tcp://HOST:PORT or unix:///PATH"},
	    {!hr_policy_valid(c->policy_partitions) || !hr_policy_valid(c->policy_users),
	     "partition and user: must be NAME=WORD, with WORD record, counters, trace, asked or "
	     "off"},
	    {c->paths != HR_PATHS_FULL && !hr_text_given(c->privacy_key),
	     "paths: hash and cut require privacy_key"},
	    {c->paths_keep > UINT32_MAX, "paths_keep: is too large"},
	    {c->spool_bytes != 0 && c->spool_bytes < 16u << 20,
	     "spool_size: must be at least 16MiB"},
	    {c->max_jobs == 0 || c->max_sessions == 0 || c->max_user_sessions == 0 ||
		 c->max_node_sessions == 0,
	     "max_jobs, max_sessions, max_sessions_per_user and max_sessions_per_node: must be at "
	     "least 1"},
	};

	_Static_assert(HR_SERVICE_PATH_MOST == 60 && HR_ADDRESSES_MAX == 16,
		       "the numbers in the texts");
	return hr_config_rules(rules, sizeof(rules) / sizeof(rules[0]), report);
}

/* Returns whether the folder or, if it is absent, its first parent that exists, is in memory. */
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
