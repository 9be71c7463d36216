/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace status - what is recorded on this node, at a glance: the jobs of its service, and the caller's own runs. Exit status 0 ok,
 * 1 degraded, 2 down.
 */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/run/runs.h"
#include "cli/service/service_link.h"
#include "common/level.h"
#include "common/text.h"
#include "daemon/control/requests.h"
#include "proto/abi.h"

#define JOBS_MOST 4096u

enum { STATUS_OK, STATUS_DEGRADED, STATUS_DOWN };
enum { OPT_SOCKET = 256 };

const struct hr_option hr_status_option_table[] = {
    {"json", 'j', NULL, "as JSON", NULL},
    {"watch", 'w', NULL, "again each second, until Ctrl-C", NULL},
    {"socket", OPT_SOCKET, "PATH",
     "of headraced (/run/headrace/control.sock); alone, without your own runs", NULL},
    {"help", 'h', NULL, "this text", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

/* Keys of a `job` message, and fields of a row. */
#define JOB_NUMBERS(X)                                                                             \
	X(attempt)                                                                                 \
	X(pid)                                                                                     \
	X(probes)                                                                                  \
	X(uid)                                                                                     \
	X(announced)                                                                               \
	X(level)                                                                                   \
	X(level_for_ms)                                                                            \
	X(processes)                                                                               \
	X(processes_total)                                                                         \
	X(events)                                                                                  \
	X(events_per_s)                                                                            \
	X(bytes_moved)                                                                             \
	X(bytes_per_s)                                                                             \
	X(lost)                                                                                    \
	X(input_wait)                                                                              \
	X(steps)                                                                                   \
	X(kernel_ops)                                                                              \
	X(kernel_added)                                                                            \
	X(kernel_lost)                                                                             \
	X(refused)                                                                                 \
	X(store_error)                                                                             \
	X(stored_bytes)                                                                            \
	X(unsent_frames)                                                                           \
	X(unsent_ms)                                                                               \
	X(connected)

struct job_row {
	bool run; /* of the caller, by `headrace run`: no job of the service */
	char id[256], name[256], state[16], policy[16], collector[256], no_probes[512],
	    failing[512], store[1024], collectors[1024];
#define FIELD(field) int64_t field;
	JOB_NUMBERS(FIELD)
#undef FIELD
};

struct status {
	bool service; /* it has answered */
	char node[256], spool[1024], collectors[1024];
	int64_t pid, uptime_ms, refused, limited, unplaced, spool_bytes, spool_limit_bytes;
	struct job_row *jobs;
	size_t n;
};

/* ---- asking ----------------------------------------------------------------------------------------- */

/* NULL: there is no room. */
static struct job_row *take_job(struct status *s, const struct hr_message *m)
{
	struct job_row *row, *grown;

	if (s->n == JOBS_MOST)
		return NULL;
	grown = realloc(s->jobs, (s->n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	s->jobs = grown;
	row = &s->jobs[s->n++];
	memset(row, 0, sizeof(*row));
	hr_message_get(m, "id", row->id, sizeof(row->id));
	hr_message_get(m, "name", row->name, sizeof(row->name));
	hr_message_get(m, "state", row->state, sizeof(row->state));
	hr_message_get(m, "policy", row->policy, sizeof(row->policy));
	hr_message_get(m, "failing", row->failing, sizeof(row->failing));
	hr_message_get(m, "no_probes", row->no_probes, sizeof(row->no_probes));
	hr_message_get(m, "collector", row->collector, sizeof(row->collector));
	hr_message_get(m, "collectors", row->collectors, sizeof(row->collectors));
	hr_message_get(m, "store", row->store, sizeof(row->store));
#define TAKE(field) row->field = hr_message_get_int(m, #field, 0);
	JOB_NUMBERS(TAKE)
#undef TAKE
	return row;
}

static void take_run(void *arg, const char *socket, const struct hr_message *m)
{
	struct status *s = arg;
	struct job_row *row;
	int64_t pid = hr_message_get_int(m, "pid", 0);

	(void)socket;
	for (size_t i = 0; i < s->n; i++)
		if (s->jobs[i].run && s->jobs[i].pid == pid)
			return;
	row = take_job(s, m);
	if (row)
		row->run = true;
}

static void status_take(void *arg, const struct hr_message *m)
{
	struct status *s = arg;

	if (hr_message_is(m, "job")) {
		take_job(s, m);
	} else if (hr_message_is(m, "status")) {
		s->service = true;
		hr_message_get(m, "node", s->node, sizeof(s->node));
		hr_message_get(m, "spool", s->spool, sizeof(s->spool));
		hr_message_get(m, "collectors", s->collectors, sizeof(s->collectors));
		s->pid = hr_message_get_int(m, "pid", 0);
		s->uptime_ms = hr_message_get_int(m, "uptime_ms", 0);
		s->refused = hr_message_get_int(m, "refused", 0);
		s->limited = hr_message_get_int(m, "limited", 0);
		s->unplaced = hr_message_get_int(m, "unplaced", 0);
		s->spool_bytes = hr_message_get_int(m, "spool_bytes", 0);
		s->spool_limit_bytes = hr_message_get_int(m, "spool_limit_bytes", 0);
	}
}

/* A collector that is to have what it records has not taken it in. */
static bool cut_off(const struct status *s, const struct job_row *j)
{
	const char *collectors = j->run ? j->collectors : s->collectors;

	return collectors[0] != '\0' && !j->connected && strcmp(j->state, "running") == 0;
}

static int judge(const struct status *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct job_row *j = &s->jobs[i];

		if (j->lost > 0 || j->refused > 0 || j->store_error < 0 || j->failing[0] != '\0' ||
		    cut_off(s, j))
			return STATUS_DEGRADED;
	}
	return s->refused > 0 ? STATUS_DEGRADED : STATUS_OK;
}

/* ---- showing ---------------------------------------------------------------------------------------- */

/* The user's name, else the number. */
static const char *user_name(int64_t uid, char *ret, size_t bytes)
{
	const struct passwd *user =
	    getpwuid((uid_t)uid); // NOLINT(concurrency-mt-unsafe): one thread

	if (user)
		snprintf(ret, bytes, "%s", user->pw_name);
	else
		snprintf(ret, bytes, "%lld", (long long)uid);
	return ret;
}

/* Where what a run records goes. */
static void print_run(const struct job_row *j)
{
	const char *to = j->collectors[0] != '\0' ? j->collectors : j->store;

	char text[4 * sizeof(j->store)];

	hr_text_escape(text, sizeof(text), to, strlen(to));
	hr_text_print(stdout, "    headrace run, into %s\n", text);
}

static void print_job(const struct job_row *j)
{
	char user[64], rate[48], id[4 * sizeof(j->id)];

	hr_text_escape(id, sizeof(id), j->id, strlen(j->id));
	snprintf(rate, sizeof(rate), "%s/s", hr_text_size((uint64_t)j->bytes_per_s).s);
	hr_text_print(stdout, "%-14.32s %-9.9s %-8s %-8s %5lld %11s %11s %8s\n", id,
		      user_name(j->uid, user, sizeof(user)), j->state,
		      hr_level_name((uint32_t)j->level), (long long)j->processes,
		      hr_text_count((uint64_t)j->events_per_s).s, rate,
		      hr_text_count((uint64_t)(j->lost + j->refused)).s);
	if (j->run)
		print_run(j);
	if (j->input_wait >= 0)
		hr_text_print(stdout, "    input wait %.1f %% of the time, %s step%s\n",
			      (double)j->input_wait / 10, hr_text_count((uint64_t)j->steps).s,
			      j->steps == 1 ? "" : "s");
	if (j->kernel_ops > 0)
		hr_text_print(
		    stdout,
		    "    coverage: of %s operations that the kernel saw, probes added %s; not "
		    "recorded %s\n",
		    hr_text_count((uint64_t)j->kernel_ops).s,
		    hr_text_count((uint64_t)j->kernel_added).s,
		    hr_text_count((uint64_t)j->kernel_lost).s);
	if (j->level_for_ms > 0)
		hr_text_print(stdout, "    level %s for another %s\n",
			      hr_level_name((uint32_t)j->level),
			      hr_text_duration((uint64_t)j->level_for_ms * 1000000).s);
	if (j->failing[0] != '\0')
		hr_text_print(stdout, "    not recorded: its process failed: %s\n", j->failing);
	if (j->no_probes[0] != '\0')
		hr_text_print(stdout, "    without probes: %s\n", j->no_probes);
	if (j->store_error < 0)
		hr_text_print(stdout, "    cannot write to the spool: %s\n",
			      strerrordesc_np((int)-j->store_error));
	if (j->unsent_ms >= 10000)
		hr_text_print(stdout, "    %s frames wait for a collector, the oldest for %s\n",
			      hr_text_count((uint64_t)j->unsent_frames).s,
			      hr_text_duration((uint64_t)j->unsent_ms * 1000000).s);
}

static void print_service(const struct status *s)
{
	size_t jobs = 0;

	for (size_t i = 0; i < s->n; i++)
		jobs += !s->jobs[i].run;
	hr_text_print(stdout, "node %s: headraced %lld, up %s, %zu job%s\n", s->node,
		      (long long)s->pid, hr_text_duration((uint64_t)s->uptime_ms * 1000000).s, jobs,
		      jobs == 1 ? "" : "s");
	hr_text_print(stdout, "spool %s, %s of %s; %s%s\n", s->spool,
		      hr_text_size((uint64_t)s->spool_bytes).s,
		      hr_text_size((uint64_t)s->spool_limit_bytes).s,
		      s->collectors[0] != '\0' ? "collectors " : "no collector is configured",
		      s->collectors);
	if (s->refused > 0)
		hr_text_print(
		    stdout,
		    "%s processes were refused, %s of them by a limit: the log of headraced "
		    "says whose\n",
		    hr_text_count((uint64_t)s->refused).s, hr_text_count((uint64_t)s->limited).s);
}

static void print_text(const struct status *s)
{
	if (s->service)
		print_service(s);
	else
		hr_text_print(
		    stdout, "no service records on this node; %zu run%s of yours (headrace run):\n",
		    s->n, s->n == 1 ? "" : "s");
	if (s->n == 0)
		return;
	hr_text_print(stdout, "\n%-14s %-9s %-8s %-8s %5s %11s %11s %8s\n", "JOB", "USER", "STATE",
		      "LEVEL", "PROCS", "EVENTS/S", "BYTES", "LOST");
	for (size_t i = 0; i < s->n; i++)
		print_job(&s->jobs[i]);
}

static void print_json_job(struct hr_json *j, const struct job_row *row)
{
	hr_json_object(j, NULL);
	hr_json_string(j, "job", row->id);
	hr_json_string(j, "name", row->name[0] != '\0' ? row->name : NULL);
	hr_json_bool(j, "run", row->run);
	hr_json_string(j, "store", row->store[0] != '\0' ? row->store : NULL);
	hr_json_string(j, "state", row->state);
	hr_json_string(j, "failing", row->failing[0] != '\0' ? row->failing : NULL);
	hr_json_string(j, "policy", row->policy[0] != '\0' ? row->policy : NULL);
	hr_json_int(j, "attempt", row->attempt);
	hr_json_int(j, "uid", row->uid);
	hr_json_bool(j, "announced", row->announced != 0);
	hr_json_string(j, "level", hr_level_name((uint32_t)row->level));
	hr_json_bool(j, "probes", row->probes != 0);
	hr_json_string(j, "no_probes", row->no_probes[0] != '\0' ? row->no_probes : NULL);
	hr_json_double(j, "level_for_s", (double)row->level_for_ms / 1000);
	hr_json_int(j, "processes", row->processes);
	hr_json_int(j, "processes_total", row->processes_total);
	hr_json_int(j, "events", row->events);
	hr_json_int(j, "events_per_s", row->events_per_s);
	hr_json_int(j, "bytes", row->bytes_moved);
	hr_json_int(j, "bytes_per_s", row->bytes_per_s);
	hr_json_int(j, "lost", row->lost);
	if (row->input_wait < 0)
		hr_json_null(j, "input_wait");
	else
		hr_json_double(j, "input_wait", (double)row->input_wait / 1000);
	hr_json_int(j, "steps", row->steps);
	hr_json_int(j, "kernel_ops", row->kernel_ops);
	hr_json_int(j, "kernel_added", row->kernel_added);
	hr_json_int(j, "kernel_lost", row->kernel_lost);
	hr_json_int(j, "refused", row->refused);
	hr_json_string(j, "store_error",
		       row->store_error < 0 ? strerrordesc_np((int)-row->store_error) : NULL);
	hr_json_int(j, "stored_bytes", row->stored_bytes);
	hr_json_string(j, "collector", row->connected ? row->collector : NULL);
	hr_json_int(j, "unsent_frames", row->unsent_frames);
	hr_json_double(j, "unsent_s", (double)row->unsent_ms / 1000);
	hr_json_end(j);
}

static void print_json(const struct status *s, int verdict)
{
	static const char *const verdicts[] = {"ok", "degraded", "down"};
	struct hr_json j;

	hr_json_init(&j, stdout);
	hr_json_object(&j, NULL);
	hr_json_string(&j, "status", verdicts[verdict]);
	hr_json_bool(&j, "service", s->service);
	hr_json_string(&j, "node", s->node);
	hr_json_int(&j, "pid", s->pid);
	hr_json_double(&j, "uptime_s", (double)s->uptime_ms / 1000);
	hr_json_string(&j, "spool", s->spool);
	hr_json_int(&j, "spool_bytes", s->spool_bytes);
	hr_json_int(&j, "spool_limit_bytes", s->spool_limit_bytes);
	hr_json_string(&j, "collectors", s->collectors[0] != '\0' ? s->collectors : NULL);
	hr_json_int(&j, "refused", s->refused);
	hr_json_int(&j, "limited", s->limited);
	hr_json_int(&j, "unplaced", s->unplaced);
	hr_json_array(&j, "jobs");
	for (size_t i = 0; i < s->n; i++)
		print_json_job(&j, &s->jobs[i]);
	hr_json_end(&j);
	hr_json_end(&j);
}

/* ---- the command ------------------------------------------------------------------------------------ */

static bool status_absent(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED;
}

/* The service's answer, then the caller's runs' unless `alone`. 0, or -errno after saying why there is nothing to show. */
static int status_ask(const char *socket, bool alone, struct status *s)
{
	static struct hr_message m;
	int fd = -1, r = hr_control_connect(socket, &fd);

	if (r == 0) {
		hr_message_init(&m, "status");
		r = hr_service_ask_over(fd, &m, status_take, s);
		if (r < 0)
			return r;
	}
	if (!alone)
		hr_runs_ask(take_run, s);
	if (r < 0 && (s->n == 0 || !status_absent(r)))
		return hr_service_none(socket, r);
	return 0;
}

static int status_show(const char *socket, bool alone, bool json, bool again)
{
	struct status s = {0};
	int r = status_ask(socket, alone, &s), verdict = r < 0 ? STATUS_DOWN : judge(&s);

	if (again)
		fputs(isatty(STDOUT_FILENO) ? "\033[H\033[2J" : "\n", stdout);
	if (json && (r == 0 || status_absent(r)))
		print_json(&s, verdict);
	else if (r == 0)
		print_text(&s);
	fflush(stdout);
	free(s.jobs);
	return verdict;
}

int hr_status_main(int argc, char **argv)
{
	struct hr_options o = {
	    .table = hr_status_option_table, .argc = argc, .argv = argv, .next = 1};
	const char *socket = NULL;
	bool json = false, watch = false, alone;
	int id, verdict;

	while ((id = hr_option_next(&o)) >= 0) {
		if (id == 'h')
			return hr_command_help("status");
		json = json || id == 'j';
		watch = watch || id == 'w';
		if (id == OPT_SOCKET)
			socket = o.value;
	}
	if (id == HR_OPTION_BAD)
		return HR_EXIT_USAGE;
	if (o.next < argc) {
		hr_report("%s: status takes options only; `headrace query` asks about jobs",
			  argv[o.next]);
		return HR_EXIT_USAGE;
	}
	alone = socket != NULL;
	socket = hr_service_socket(socket);
	verdict = status_show(socket, alone, json, false);
	while (watch && verdict != STATUS_DOWN) {
		nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
		verdict = status_show(socket, alone, json, true);
	}
	return verdict;
}
