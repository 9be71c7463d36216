/* SPDX-License-Identifier: Apache-2.0 */
/* headrace job - registers, ends and lists jobs of this node's service. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/run/job.h"
#include "cli/service/service_link.h"
#include "common/level.h"
#include "common/near.h"
#include "common/text.h"
#include "proto/abi.h"

enum {
	OPT_UID = 256,
	OPT_ATTEMPT,
	OPT_LEVEL,
	OPT_PROBES,
	OPT_EXPECTED,
	OPT_NODES,
	OPT_LINGER,
	OPT_DRAIN,
	OPT_WAIT,
};

struct request {
	const char *job, *scheduler, *name, *partition, *ranks, *local_ranks, *state, *socket;
	const char *cgroup;
	uint64_t uid, attempt, expected, nodes, linger_ns, drain_ns, wait_ns;
	bool has_uid, has_attempt;
	int level, probes; /* -1: the default of the node service */
};

#define TEXT(member) HR_OPTION_TEXT(struct request, member)

const struct hr_option hr_job_option_table[] = {
    {"job", TEXT(job), "ID", "job id (default: from the scheduler's variables)", HR_VALUES_OTHER},
    {"uid", OPT_UID, "UID", "owner of the job (default: $SLURM_JOB_UID)", HR_VALUES_OTHER},
    {"attempt", OPT_ATTEMPT, "N", "requeue count (default for begin: Slurm's; for end: the latest)",
     HR_VALUES_OTHER},
    {"scheduler-id", TEXT(scheduler), "ID",
     "begin: the job's $SLURM_JOB_ID, if it differs from the job id", HR_VALUES_OTHER},
    {"name", TEXT(name), "NAME", "begin: name to show (default: $SLURM_JOB_NAME)", HR_VALUES_OTHER},
    {"partition", TEXT(partition), "NAME",
     "begin: the scheduler's partition (default: $SLURM_JOB_PARTITION)", HR_VALUES_OTHER},
    {"level", OPT_LEVEL, "LEVEL", "begin: counters or trace (default: $SPANK_HEADRACE_LEVEL)",
     "counters trace"},
    {"probes", OPT_PROBES, "WORD", "begin: on or off (default: as configured)", "on off"},
    {"cgroup", TEXT(cgroup), "PATH", "begin: cgroup (version 2) of the job, for probes", NULL},
    {"ranks", TEXT(ranks), "LIST", "begin: record only these ranks, for example 0-47,64",
     HR_VALUES_OTHER},
    {"local-ranks", TEXT(local_ranks), "LIST", "begin: record only these local ranks of each node",
     HR_VALUES_OTHER},
    {"ranks-expected", OPT_EXPECTED, "N", "begin: number of ranks", HR_VALUES_OTHER},
    {"nodes", OPT_NODES, "N", "begin: number of nodes (default: $SLURM_JOB_NUM_NODES)",
     HR_VALUES_OTHER},
    {"state", TEXT(state), "STATE",
     "end: ended, failed or killed (default: from $SLURM_JOB_EXIT_CODE)", "ended failed killed"},
    {"linger", OPT_LINGER, "TIME", "end: wait at most TIME for the job's processes (default: 0)",
     HR_VALUES_OTHER},
    {"drain", OPT_DRAIN, "TIME", "end: wait at most TIME for the collector (default: 0)",
     HR_VALUES_OTHER},
    {"wait", OPT_WAIT, "TIME", "give up if headraced does not answer within TIME (default: never)",
     HR_VALUES_OTHER},
    {"socket", TEXT(socket), "PATH", "control socket (default: /run/headrace/control.sock)", NULL},
    HR_OPTIONS_END,
};

#define A_TIME "a time such as 30s"

static int set_number(const char *name, const char *value, uint64_t most, uint64_t *ret)
{
	return hr_option_number(name, "a number", value, 0, most, ret);
}

static int job_command_set_option(struct request *q, int id, const char *value)
{
	switch (id) {
	case OPT_UID:
		q->has_uid = true;
		return set_number("uid", value, UINT32_MAX - 1, &q->uid);
	case OPT_ATTEMPT:
		q->has_attempt = true;
		return set_number("attempt", value, UINT32_MAX, &q->attempt);
	case OPT_LEVEL:
		q->level = hr_level_parse(value);
		return q->level >= 0 ? 0 : hr_option_wrong("level", "counters or trace", value);
	case OPT_PROBES:
		q->probes = strcmp(value, "on") == 0;
		return q->probes || strcmp(value, "off") == 0
			   ? 0
			   : hr_option_wrong("probes", "on or off", value);
	case OPT_EXPECTED:
		return set_number("ranks-expected", value, UINT32_MAX, &q->expected);
	case OPT_NODES:
		return set_number("nodes", value, UINT32_MAX, &q->nodes);
	case OPT_LINGER:
		return hr_option_time("linger", A_TIME, value, &q->linger_ns);
	case OPT_DRAIN:
		return hr_option_time("drain", A_TIME, value, &q->drain_ns);
	default:
		return hr_option_time("wait", A_TIME, value, &q->wait_ns);
	}
}

/* Sets missing values from the variables of a prolog or epilog. False: the job is unknown. */
static bool fill_in(struct request *q, struct hr_job *job)
{
	const char *uid = hr_getenv("SLURM_JOB_UID"), *code = hr_getenv("SLURM_JOB_EXIT_CODE");
	const char *nodes = hr_getenv("SLURM_JOB_NUM_NODES");
	/* set by hooks/slurm/spank_headrace.c */
	const char *level = hr_getenv("SPANK_HEADRACE_LEVEL");

	hr_job_find(NULL, q->job, job);
	if (!q->job && !hr_job_scheduled())
		return false;
	q->job = job->id;
	if (!q->scheduler)
		q->scheduler = hr_getenv("SLURM_JOB_ID") ? hr_getenv("SLURM_JOB_ID") : q->job;
	if (q->nodes == 0 && nodes && hr_text_parse_uint(nodes, UINT32_MAX, &q->nodes) < 0)
		q->nodes = 0;
	if (!q->name)
		q->name = hr_getenv("SLURM_JOB_NAME");
	if (!q->partition)
		q->partition = hr_getenv("SLURM_JOB_PARTITION");
	if (!q->has_attempt)
		q->attempt = job->attempt;
	if (!q->has_uid && uid && hr_text_parse_uint(uid, UINT32_MAX - 1, &q->uid) == 0)
		q->has_uid = true;
	if (!q->state && code && strcmp(code, "0") != 0)
		q->state = "failed";
	if (q->level < 0 && level)
		q->level =
		    hr_level_parse(level) == HR_LEVEL_TRACE ? HR_LEVEL_TRACE : HR_LEVEL_COUNTERS;
	return true;
}

/* Reports processes and frames that remain at the end of the job. */
static void report_end(void *arg, Headrace__Control *m)
{
	const char *job = arg;

	if (m->kind_case == HR_CONTROL(JOB_ENDED) && m->job_ended->processes_left > 0)
		hr_report("job %s: processes that still run and are no longer recorded: %u", job,
			  m->job_ended->processes_left);
	if (m->kind_case == HR_CONTROL(SENDING) && m->sending->finished && m->sending->left > 0)
		hr_report("job %s: %llu frames remain in the spool; headraced continues to send "
			  "them",
			  job, (unsigned long long)m->sending->left);
}

static int job_command_begin(struct request *q)
{
	Headrace__BeginJob b = HEADRACE__BEGIN_JOB__INIT;
	char folder[PATH_MAX];

	if (!q->has_uid) {
		hr_report("the owner of the job is unknown" HR_HINT
			  "use --uid UID, or set SLURM_JOB_UID");
		return HR_EXIT_USAGE;
	}
	if (q->cgroup && !realpath(q->cgroup, folder)) {
		hr_report("--cgroup %s: %s", q->cgroup, strerrordesc_np(errno));
		return EXIT_FAILURE;
	}
	b.job = hr_control_text(q->job);
	b.scheduler_id = hr_control_text(q->scheduler);
	b.name = hr_control_text(q->name);
	b.account = hr_control_text(hr_getenv("SLURM_JOB_ACCOUNT"));
	b.partition = hr_control_text(q->partition);
	b.ranks = hr_control_text(q->ranks);
	b.local_ranks = hr_control_text(q->local_ranks);
	b.cgroup = q->cgroup ? folder : NULL;
	b.has_uid = true;
	b.uid = (uint32_t)q->uid;
	b.attempt = (uint32_t)q->attempt;
	b.ranks_expected = (uint32_t)q->expected;
	b.nodes_expected = (uint32_t)q->nodes;
	b.has_level = q->level >= 0;
	b.level = (uint32_t)q->level;
	b.has_probes = q->probes >= 0;
	b.probes = q->probes > 0;
	return hr_service_request(q->socket, HR_CONTROL(BEGIN_JOB), &b.base, NULL, NULL);
}

static int job_command_end(struct request *q)
{
	Headrace__JobRequest end = HEADRACE__JOB_REQUEST__INIT;

	end.job = hr_control_text(q->job);
	end.has_attempt = q->has_attempt;
	end.attempt = (uint32_t)q->attempt;
	end.has_uid = q->has_uid;
	end.uid = (uint32_t)q->uid;
	end.state = hr_control_text(q->state);
	end.linger_ms = q->linger_ns / 1000000;
	end.drain_ms = q->drain_ns / 1000000;
	return hr_service_request(q->socket, HR_CONTROL(END_JOB), &end.base, report_end,
				  (void *)(uintptr_t)q->job);
}

static void list_one(void *arg, Headrace__Control *m)
{
	const Headrace__JobStatus *j = m->job_status;

	(void)arg;
	if (m->kind_case == HR_CONTROL(JOB_STATUS))
		hr_text_print(stdout, "%s\t%u\t%u\t%s\n", j->id, j->attempt, j->uid, j->state);
}

static int list(const struct request *q)
{
	return hr_service_request(q->socket, HR_CONTROL(GET_STATUS), NULL, list_one, NULL);
}

static void job_command_give_up(int signum)
{
	static const char text[] = "headrace: headraced has not answered in time\n";

	(void)signum;
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(HR_EXIT_NO_SERVICE);
}

/* Ends this process after a time, also during a system call that waits. */
static void give_up_after(uint64_t ns)
{
	const struct itimerval timer = {
	    .it_value = {(time_t)(ns / 1000000000), (suseconds_t)(ns % 1000000000 / 1000)}};

	signal(SIGALRM, job_command_give_up);
	setitimer(ITIMER_REAL, &timer, NULL);
}

int hr_job_main(int argc, char **argv)
{
	struct hr_options o = {.table = hr_job_option_table, .argc = argc, .argv = argv, .next = 1};
	struct request q = {.level = -1, .probes = -1};
	const char *verb = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
	struct hr_job job;
	int id;

	o.next = verb ? 2 : 1;
	while ((id = hr_option_next(&o)) >= 0) {
		if (id == 'h')
			return hr_command_help("job");
		if (!hr_option_store(&q, id, o.value) &&
		    job_command_set_option(&q, id, o.value) < 0)
			return HR_EXIT_USAGE;
	}
	if (id == HR_OPTION_BAD)
		return HR_EXIT_USAGE;
	if (!verb || o.next < argc) {
		hr_report("expected headrace job begin|end|list [OPTION...]" HR_HINT
			  "`headrace job --help` lists the options");
		return HR_EXIT_USAGE;
	}
	give_up_after(q.wait_ns);
	if (strcmp(verb, "list") == 0)
		return list(&q);
	if (strcmp(verb, "begin") != 0 && strcmp(verb, "end") != 0) {
		struct hr_near near = hr_near(verb);

		hr_near_add_list(&near, "begin end list");
		hr_report("expected begin, end or list, not %s", hr_near_text(&near).s);
		return HR_EXIT_USAGE;
	}
	if (!fill_in(&q, &job)) {
		hr_report("no job given" HR_HINT
			  "use --job ID, or run it with the variables of a scheduler's job");
		return HR_EXIT_USAGE;
	}
	return strcmp(verb, "begin") == 0 ? job_command_begin(&q) : job_command_end(&q);
}
