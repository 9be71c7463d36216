/* SPDX-License-Identifier: Apache-2.0 */
/* headrace status - shows the jobs of this node's service, and the caller's own runs. */
#include <inttypes.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/fleet/fleet.h"
#include "cli/table.h"
#include "cli/service/runs.h"
#include "cli/service/service_link.h"
#include "common/array.h"
#include "common/level.h"
#include "common/text.h"
#include "net/address.h"
#include "proto/abi.h"

#define JOBS_MAX 4096u

enum { STATUS_OK, STATUS_DEGRADED, STATUS_DOWN };

struct status_request {
	const char *socket, *collector; /* NULL: the service and the runs of this node */
	bool json, watch;
};

const struct hr_option hr_status_option_table[] = {
    HR_OPTIONS_FORMAT("text json"),
    {"watch", 'w', NULL, "repeat every second until Ctrl-C", NULL},
    {"socket", HR_OPTION_TEXT(struct status_request, socket), "PATH",
     "control socket of a service; your own runs are not shown", NULL},
    HR_OPTIONS_END,
};

struct job_row {
	bool run; /* a `headrace run` of the caller; false: a job of the node service */
	Headrace__JobStatus *j;
};

struct status_view {
	Headrace__NodeStatus *node; /* NULL: no node service runs */
	struct job_row *jobs;
	size_t n, room;
};

static void add_job(struct status_view *s, bool run, Headrace__Control *m)
{
	if (s->n == JOBS_MAX || !hr_array_reserve(s->jobs, s->n, s->room))
		return;
	s->jobs[s->n++] = (struct job_row){run, m->job_status};
	hr_control_keep(m);
}

static void add_run(void *arg, const char *socket, Headrace__Control *m)
{
	struct status_view *s = arg;

	(void)socket;
	for (size_t i = 0; i < s->n; i++)
		if (s->jobs[i].run && s->jobs[i].j->pid == m->job_status->pid)
			return;
	add_job(s, true, m);
}

static void add_answer(void *arg, Headrace__Control *m)
{
	struct status_view *s = arg;

	if (m->kind_case == HR_CONTROL(JOB_STATUS)) {
		add_job(s, false, m);
	} else if (m->kind_case == HR_CONTROL(NODE_STATUS) && !s->node) {
		s->node = m->node_status;
		hr_control_keep(m);
	}
}

static void status_done(struct status_view *s)
{
	for (size_t i = 0; i < s->n; i++)
		headrace__job_status__free_unpacked(s->jobs[i].j, NULL);
	free(s->jobs);
	headrace__node_status__free_unpacked(s->node, NULL);
}

/* Returns whether the job has collectors, but no connection to any of them. */
static bool is_cut_off(const Headrace__JobStatus *j)
{
	return j->collectors[0] != '\0' && !j->connected && strcmp(j->state, "running") == 0;
}

static int overall_status(const struct status_view *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const Headrace__JobStatus *j = s->jobs[i].j;

		if (j->lost > 0 || j->refused > 0 || j->store_error < 0 || j->failing[0] != '\0' ||
		    is_cut_off(j))
			return STATUS_DEGRADED;
	}
	return s->node && s->node->refused > 0 ? STATUS_DEGRADED : STATUS_OK;
}

static void print_hang(const Headrace__JobHang *h)
{
	char rank[32] = "", worker[32] = "";

	if (h->rank_plus1 > 0)
		snprintf(rank, sizeof(rank), "rank %u, ", h->rank_plus1 - 1);
	if (h->worker_plus1 > 0)
		snprintf(worker, sizeof(worker), "worker %u, ", h->worker_plus1 - 1);
	hr_text_print(stdout, "    no step for %s: %s%spid %u%s%s",
		      hr_text_duration(h->ms * 1000000).s, rank, worker, h->pid,
		      h->line[0] != '\0' ? ", at " : "", h->line);
	if (h->processes > 1)
		hr_text_print(stdout, "; %u training processes make no step", h->processes);
	fputs("\n", stdout);
}

/* Prints the details of a job that are not in the table, each on its own line. */
static void print_job_details(const Headrace__JobStatus *j)
{
	if (j->kernel_ops > 0)
		hr_text_print(stdout,
			      "    coverage: the kernel saw %s operations, probes added %s; not "
			      "recorded: %s\n",
			      hr_text_count(j->kernel_ops).s, hr_text_count(j->kernel_added).s,
			      hr_text_count(j->kernel_lost).s);
	if (j->hang != NULL)
		print_hang(j->hang);
	if (j->level_for_ms > 0)
		hr_text_print(stdout, "    level %s for another %s\n", hr_level_name(j->level),
			      hr_text_duration(j->level_for_ms * 1000000).s);
	if (j->failing[0] != '\0')
		hr_text_print(stdout, "    not recorded: the recording process failed: %s\n",
			      j->failing);
	if (j->no_probes[0] != '\0')
		hr_text_print(stdout, "    without probes: %s\n", j->no_probes);
	if (j->store_error < 0)
		hr_text_print(stdout, "    cannot write to the spool: %s\n",
			      strerrordesc_np(-j->store_error));
	if (j->unsent_ms >= 10000)
		hr_text_print(stdout, "    %s frames wait for a collector, the oldest for %s\n",
			      hr_text_count(j->unsent_frames).s,
			      hr_text_duration(j->unsent_ms * 1000000).s);
}

enum {
	COLUMN_JOB,
	COLUMN_USER,
	COLUMN_STATE,
	COLUMN_SINCE,
	COLUMN_LEVEL,
	COLUMN_PROCESSES,
	COLUMN_WAITING,
	COLUMN_STEPS,
	COLUMN_BYTES,
	COLUMN_LOST,
	COLUMN_PROGRAM,
	COLUMN_INTO,
	STATUS_COLUMNS
};

#define JOB_CELLS     32u
#define STATE_CELLS   16u
#define PROGRAM_CELLS 20u

static const struct hr_table_column status_columns[STATUS_COLUMNS] = {
    [COLUMN_JOB] = {.title = "JOB"},
    [COLUMN_USER] = {.title = "USER"},
    [COLUMN_STATE] = {.title = "STATE"},
    [COLUMN_SINCE] = {.title = "SINCE", .number = true, .leaves = 3},
    [COLUMN_LEVEL] = {.title = "LEVEL", .leaves = 5},
    [COLUMN_PROCESSES] = {.title = "PROCS", .number = true},
    [COLUMN_WAITING] = {.title = "WAITING", .number = true},
    [COLUMN_STEPS] = {.title = "STEPS/S", .number = true, .leaves = 2},
    [COLUMN_BYTES] = {.title = "I/O", .number = true},
    [COLUMN_LOST] = {.title = "LOST", .number = true},
    [COLUMN_PROGRAM] = {.title = "PROGRAM", .leaves = 4},
    [COLUMN_INTO] = {.title = "INTO", .path = true, .least = 16, .leaves = 1},
};

/* Returns the time without milliseconds, so that the column is easy to read. */
static struct hr_human since(uint64_t ms)
{
	struct hr_human h = {""};

	if (ms < 60000)
		snprintf(h.s, sizeof(h.s), "%" PRIu64 " s", ms / 1000);
	else
		h = hr_text_duration(ms * 1000000);
	return h;
}

/* Sets the user's name, or the number of a user without a name. */
static void set_user(struct hr_table *t, size_t i, uint32_t uid)
{
	const struct passwd *user = getpwuid(uid); // NOLINT(concurrency-mt-unsafe): one thread

	if (user)
		hr_table_set(t, i, COLUMN_USER, "%s", user->pw_name);
	else
		hr_table_set(t, i, COLUMN_USER, "%u", uid);
}

/* Sets the cells of a job. Paths are relative to `folder`. */
static void set_row(struct hr_table *t, size_t i, const struct job_row *row, const char *folder)
{
	const Headrace__JobStatus *j = row->j;

	hr_table_name(t, i, COLUMN_JOB, j->id, NULL, JOB_CELLS);
	if (j->uid != geteuid())
		set_user(t, i, j->uid);
	hr_table_name(t, i, COLUMN_STATE, j->state, NULL, STATE_CELLS);
	if (j->since_ms > 0)
		hr_table_set(t, i, COLUMN_SINCE, "%s", since(j->since_ms).s);
	if (j->level != HR_LEVEL_TRACE)
		hr_table_set(t, i, COLUMN_LEVEL, "%s", hr_level_name(j->level));
	hr_table_set(t, i, COLUMN_PROCESSES, "%u", j->processes);
	if (j->has_input_wait)
		hr_table_set(t, i, COLUMN_WAITING, "%.0f %%", (double)j->input_wait / 10);
	if (j->input_wait >= 200)
		hr_table_cell(t, i, COLUMN_WAITING)->style = HR_STYLE_WARN;
	if (j->steps > 0)
		hr_table_set(t, i, COLUMN_STEPS, "%.1f", (double)j->steps_per_ks / 1000);
	hr_table_set(t, i, COLUMN_BYTES, "%s/s", hr_text_size(j->bytes_per_s).s);
	hr_table_set(t, i, COLUMN_LOST, "%s", hr_text_count(j->lost + j->refused).s);
	if (j->lost + j->refused > 0)
		hr_table_cell(t, i, COLUMN_LOST)->style = HR_STYLE_BAD;
	hr_table_name(t, i, COLUMN_PROGRAM, j->name, NULL, PROGRAM_CELLS);
	if (row->run)
		hr_table_name(t, i, COLUMN_INTO,
			      j->collectors[0] != '\0' ? j->collectors : j->store, folder,
			      SIZE_MAX);
}

static void print_jobs(struct hr_sheet *sheet, const struct status_view *s)
{
	struct hr_table t;

	if (!hr_table_init(&t, status_columns, STATUS_COLUMNS, s->n))
		return;
	for (size_t i = 0; i < s->n; i++)
		set_row(&t, i + 1, &s->jobs[i], sheet->folder);
	hr_table_fit(&t, sheet->columns);
	hr_table_print(&t, 0, "", sheet);
	for (size_t i = 0; i < s->n; i++) {
		hr_table_print(&t, i + 1, "-", sheet);
		print_job_details(s->jobs[i].j);
	}
	hr_table_done(&t);
	hr_sheet_line(sheet, HR_STYLE_PLAIN, "more: headrace top%s", s->n > 1 ? " JOB" : "");
}

static void print_node(const struct status_view *s)
{
	const Headrace__NodeStatus *node = s->node;
	size_t jobs = 0;

	for (size_t i = 0; i < s->n; i++)
		jobs += !s->jobs[i].run;
	hr_text_print(stdout, "node %s: headraced %d, up %s, %zu job%s\n", node->node, node->pid,
		      hr_text_duration(node->uptime_ms * 1000000).s, jobs, jobs == 1 ? "" : "s");
	hr_text_print(stdout, "spool %s, %s of %s; %s%s\n", node->spool,
		      hr_text_size(node->spool_bytes).s, hr_text_size(node->spool_limit_bytes).s,
		      node->collectors[0] != '\0' ? "collectors " : "no collector is configured",
		      node->collectors);
	if (node->refused > 0)
		hr_text_print(stdout,
			      "%s processes were refused, %s of them by a limit: the log of "
			      "headraced names their users\n",
			      hr_text_count(node->refused).s, hr_text_count(node->limited).s);
}

static void print_text(const struct status_view *s)
{
	struct hr_sheet sheet;

	if (s->node)
		print_node(s);
	else
		hr_text_print(
		    stdout,
		    "no headraced service on this node; %zu run%s of yours (headrace run):\n", s->n,
		    s->n == 1 ? "" : "s");
	if (s->n == 0)
		return;
	hr_sheet_init(&sheet, stdout);
	hr_sheet_end(&sheet);
	print_jobs(&sheet, s);
}

static void print_json_hang(struct hr_json *j, const Headrace__JobHang *h)
{
	if (h == NULL) {
		hr_json_string(j, "hang", NULL);
		return;
	}
	hr_json_object(j, "hang");
	hr_json_double(j, "seconds", (double)h->ms / 1000);
	hr_json_int(j, "processes", h->processes);
	hr_json_int(j, "pid", h->pid);
	hr_json_plus1(j, "rank", h->rank_plus1);
	hr_json_plus1(j, "worker", h->worker_plus1);
	hr_json_string(j, "line", hr_text_or_null(h->line));
	hr_json_end(j);
}

static void print_json_job(struct hr_json *j, const struct job_row *row)
{
	const Headrace__JobStatus *s = row->j;

	hr_json_string(j, "job", s->id);
	hr_json_string(j, "name", hr_text_or_null(s->name));
	hr_json_bool(j, "run", row->run);
	hr_json_string(j, "store", hr_text_or_null(s->store));
	hr_json_string(j, "state", s->state);
	hr_json_string(j, "failing", hr_text_or_null(s->failing));
	hr_json_string(j, "policy", hr_text_or_null(s->policy));
	hr_json_int(j, "attempt", s->attempt);
	hr_json_int(j, "uid", s->uid);
	hr_json_bool(j, "announced", s->announced);
	hr_json_string(j, "level", hr_level_name(s->level));
	hr_json_bool(j, "probes", s->probes);
	hr_json_string(j, "no_probes", hr_text_or_null(s->no_probes));
	hr_json_double(j, "level_for_s", (double)s->level_for_ms / 1000);
	hr_json_int(j, "processes", s->processes);
	hr_json_int(j, "processes_total", (int64_t)s->processes_total);
	hr_json_int(j, "events", (int64_t)s->events);
	hr_json_int(j, "events_per_s", (int64_t)s->events_per_s);
	hr_json_int(j, "bytes", (int64_t)s->bytes_moved);
	hr_json_int(j, "bytes_per_s", (int64_t)s->bytes_per_s);
	hr_json_int(j, "lost", (int64_t)s->lost);
	hr_json_double(j, "input_wait", s->has_input_wait ? (double)s->input_wait / 1000 : NAN);
	hr_json_int(j, "steps", (int64_t)s->steps);
	hr_json_double(j, "steps_per_s", (double)s->steps_per_ks / 1000);
	hr_json_double(j, "since_s", s->since_ms > 0 ? (double)s->since_ms / 1000 : NAN);
	print_json_hang(j, s->hang);
	hr_json_int(j, "kernel_ops", (int64_t)s->kernel_ops);
	hr_json_int(j, "kernel_added", (int64_t)s->kernel_added);
	hr_json_int(j, "kernel_lost", (int64_t)s->kernel_lost);
	hr_json_int(j, "refused", (int64_t)s->refused);
	hr_json_string(j, "store_error",
		       s->store_error < 0 ? strerrordesc_np(-s->store_error) : NULL);
	hr_json_int(j, "stored_bytes", (int64_t)s->stored_bytes);
	hr_json_string(j, "collector", s->connected ? s->collector : NULL);
	hr_json_int(j, "unsent_frames", (int64_t)s->unsent_frames);
	hr_json_double(j, "unsent_s", (double)s->unsent_ms / 1000);
}

static void print_json(const struct status_view *s, int verdict)
{
	static const char *const verdicts[] = {"ok", "degraded", "down"};
	static const Headrace__NodeStatus none = HEADRACE__NODE_STATUS__INIT;
	const Headrace__NodeStatus *node = s->node ? s->node : &none;
	struct hr_json j;

	hr_json_init(&j, stdout);
	hr_json_document(&j, "headrace-status/1");
	hr_json_string(&j, "status", verdicts[verdict]);
	hr_json_bool(&j, "service", s->node != NULL);
	hr_json_string(&j, "node", node->node);
	hr_json_int(&j, "pid", node->pid);
	hr_json_double(&j, "uptime_s", (double)node->uptime_ms / 1000);
	hr_json_string(&j, "spool", node->spool);
	hr_json_int(&j, "spool_bytes", (int64_t)node->spool_bytes);
	hr_json_int(&j, "spool_limit_bytes", (int64_t)node->spool_limit_bytes);
	hr_json_string(&j, "collectors", hr_text_or_null(node->collectors));
	hr_json_int(&j, "refused", (int64_t)node->refused);
	hr_json_int(&j, "limited", (int64_t)node->limited);
	hr_json_int(&j, "unplaced", (int64_t)node->unplaced);
	for (size_t i = 0; hr_json_row(&j, "jobs", i, s->n); i++)
		print_json_job(&j, &s->jobs[i]);
	hr_json_end(&j);
}

/*
 * Requests the status of the node service and, unless `alone`, of the runs of the caller. Returns
 * 0, or -errno after it has reported why there is nothing to print.
 */
static int status_request(const char *socket, bool alone, struct status_view *s)
{
	int fd = -1, r = hr_control_connect(socket, &fd);

	if (r == 0) {
		r = hr_service_request_over(fd, HR_CONTROL(GET_STATUS), NULL, add_answer, s);
		if (r < 0)
			return r;
	}
	if (!alone && !hr_runs_request_status(add_run, s))
		hr_runs_report_missing();
	if (r < 0 && (s->n == 0 || !hr_service_is_absent(r)))
		return hr_service_report_absent(socket, r);
	return 0;
}

static int status_print(const char *socket, bool alone, bool json, bool again)
{
	struct status_view s = {0};
	int r = status_request(socket, alone, &s),
	    verdict = r < 0 ? STATUS_DOWN : overall_status(&s);

	if (again)
		fputs(isatty(STDOUT_FILENO) ? "\033[H\033[2J" : "\n", stdout);
	if (json && (r == 0 || hr_service_is_absent(r)))
		print_json(&s, verdict);
	else if (r == 0)
		print_text(&s);
	fflush(stdout);
	status_done(&s);
	return verdict;
}

static int take_argument(void *self, int id, const char *value)
{
	struct status_request *q = self;

	if (id == HR_OPTION_FORMAT) {
		q->json = hr_option_is_json(value);
	} else if (id == 'w') {
		q->watch = true;
	} else if (q->collector != NULL || !hr_address_meant(value)) {
		hr_report("unexpected argument: '%s'" HR_HINT
			  "`headrace query` answers questions about jobs",
			  value);
		return -1;
	} else {
		q->collector = value;
	}
	return 0;
}

int hr_status_main(int argc, char **argv)
{
	struct status_request q = {0};
	const char *socket;
	bool alone;
	int verdict;

	if (!hr_arguments(argc, argv, hr_status_option_table, take_argument, &q, &verdict))
		return verdict;
	if (q.collector != NULL)
		return hr_fleet_run(&(struct hr_fleet_command){
		    .collector = q.collector,
		    .every_ns = UINT64_C(1000000000),
		    .count = q.watch ? 0 : 1,
		    .json = q.json,
		    .status = true,
		});
	alone = q.socket != NULL;
	socket = hr_service_socket(q.socket);
	verdict = status_print(socket, alone, q.json, false);
	while (q.watch && verdict != STATUS_DOWN) {
		nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
		verdict = status_print(socket, alone, q.json, true);
	}
	return verdict;
}
