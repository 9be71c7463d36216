/* SPDX-License-Identifier: Apache-2.0 */
/* headrace ls - lists the stores of folders, and the caller's jobs that run on this node. */
#include "cli/ls/ls.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/run/runs.h"
#include "cli/table.h"
#include "query/ask.h"
#include "common/array.h"
#include "common/now.h"
#include "common/text.h"

/* Limit of the events that are read for the column WAITED. Reading them takes a second. */
#define EVENTS_MAX 10000000u
#define SECOND_NS  UINT64_C(1000000000)

const struct hr_option hr_ls_option_table[] = {
    HR_OPTIONS_FORMAT("text json"),
    {"help", 'h', NULL, "print this text", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

struct ls {
	struct hr_found_stores stores;
	struct hr_ls_row *rows;
	size_t n, room;
	bool json, folders; /* --json; whether folders are given */
};

static bool is_listed(const struct ls *ls, const char *store)
{
	struct stat wanted, st;

	if (stat(store, &wanted) < 0)
		return true; /* a removed store is not listed again */
	for (size_t i = 0; i < ls->stores.n; i++)
		if (stat(ls->stores.list[i].path, &st) == 0 && st.st_ino == wanted.st_ino &&
		    st.st_dev == wanted.st_dev)
			return true;
	return false;
}

/* Adds a run that sends to a collector. It has no store, so headraced describes it. */
static void add_sending(struct ls *ls, const Headrace__JobStatus *j)
{
	for (size_t i = 0; i < ls->n; i++)
		if (strcmp(ls->rows[i].job, j->id) == 0)
			return;
	if (!hr_array_reserve(ls->rows, ls->n, ls->room))
		return;
	ls->rows[ls->n++] =
	    (struct hr_ls_row){.store = strdup(j->collectors),
			       .job = strdup(j->id),
			       .state = strdup(j->state),
			       .program = strdup(j->name),
			       .jobs = 1,
			       .bytes = j->stored_bytes,
			       .waited = j->has_input_wait ? (double)j->input_wait / 1000 : -1};
}

static void add_run(void *arg, const char *socket, Headrace__Control *m)
{
	const Headrace__JobStatus *j = m->job_status;
	struct ls *ls = arg;

	(void)socket;
	if (j->collectors[0] != '\0')
		add_sending(ls, j);
	else if (!is_listed(ls, j->store))
		hr_stores_add(j->store, true, &ls->stores);
}

static void print_json(const struct ls *ls)
{
	struct hr_json j;

	hr_json_init(&j, stdout);
	hr_json_document(&j, "headrace-ls/1");
	for (size_t i = 0; hr_json_row(&j, "stores", i, ls->n); i++) {
		const struct hr_ls_row *row = &ls->rows[i];

		hr_json_path(&j, "store", row->store, strlen(row->store));
		hr_json_string(&j, "job", hr_text_or_null(row->job));
		hr_json_uint(&j, "jobs", row->jobs);
		hr_json_string(&j, "state", row->state);
		hr_json_string(&j, "program", row->program);
		hr_json_uint(&j, "start_ns", row->start_ns);
		hr_json_double(&j, "seconds", (double)row->span_ns / 1e9);
		hr_json_double(&j, "input_wait", row->waited >= 0 ? row->waited : NAN);
		hr_json_uint(&j, "bytes", row->bytes);
	}
	hr_json_end(&j);
}

/* ---- the table ------------------------------------------------------------------------------- */

enum { WHEN, STORE, JOBS, STATE, TIME, WAITED, SIZE, PROGRAM, COLUMNS };

/* Names of programs are shortened first, because users copy names of stores to other commands. */
static const struct hr_table_column columns[COLUMNS] = {
    [WHEN] = {.title = "WHEN"},
    [STORE] = {.title = "STORE", .least = 20},
    [JOBS] = {.title = "JOBS", .number = true},
    [STATE] = {.title = "STATE"},
    [TIME] = {.title = "TIME", .number = true},
    [WAITED] = {.title = "WAITED", .number = true},
    [SIZE] = {.title = "SIZE", .number = true},
    [PROGRAM] = {.title = "PROGRAM", .least = 10},
};

/* Sets "21:14" for today, else "Nov 25", or "2025" if it is not this year. */
static void set_when(struct hr_table *t, size_t row, uint64_t real_ns)
{
	time_t at = (time_t)(real_ns / SECOND_NS),
	       now = (time_t)(hr_now_ns(CLOCK_REALTIME) / SECOND_NS);
	struct tm then, today;
	const char *format = "%b %e";
	char text[32];

	if (real_ns == 0 || localtime_r(&at, &then) == NULL || localtime_r(&now, &today) == NULL)
		return;
	if (then.tm_year != today.tm_year)
		format = "%Y";
	else if (then.tm_yday == today.tm_yday)
		format = "%H:%M";
	if (strftime(text, sizeof(text), format, &then) > 0)
		hr_table_set(t, row, WHEN, "%s", text);
}

static void set_row(struct hr_table *t, size_t i, const struct hr_ls_row *row)
{
	const char *store = row->store != NULL ? row->store : "";

	set_when(t, i, row->start_ns);
	hr_table_name(t, i, STORE, strncmp(store, "./", 2) == 0 ? store + 2 : store, NULL,
		      SIZE_MAX);
	hr_table_name(t, i, STATE, row->state, NULL, SIZE_MAX);
	hr_table_name(t, i, PROGRAM, row->program, NULL, SIZE_MAX);
	if (row->jobs > 1)
		hr_table_set(t, i, JOBS, "%zu", row->jobs);
	if (row->span_ns > 0)
		hr_table_set(t, i, TIME, "%s", hr_text_duration(row->span_ns).s);
	if (row->waited >= 0)
		hr_table_set(t, i, WAITED, "%.0f %%", 100 * row->waited);
	hr_table_set(t, i, SIZE, "%s", hr_text_size(row->bytes).s);
}

static void print_table(const struct ls *ls)
{
	struct hr_sheet sheet = {.out = stdout};
	struct hr_table t;

	if (!hr_table_init(&t, columns, COLUMNS, ls->n))
		return;
	for (size_t i = 0; i < ls->n; i++)
		set_row(&t, i + 1, &ls->rows[i]);
	hr_table_fit(&t, hr_terminal_width(STDOUT_FILENO));
	for (size_t i = 0; i <= ls->n; i++)
		hr_table_print(&t, i, "", &sheet);
	hr_table_done(&t);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int list(struct ls *ls)
{
	uint64_t events_left = EVENTS_MAX;
	bool whole = hr_runs_request_status(add_run, ls);

	if (!whole)
		hr_runs_report_missing();
	hr_stores_sort(&ls->stores);
	for (size_t i = 0; i < ls->stores.n; i++) {
		if (!hr_array_reserve(ls->rows, ls->n, ls->room))
			return EXIT_FAILURE;
		hr_ls_read(&ls->stores.list[i], &events_left, &ls->rows[ls->n++]);
	}
	if (ls->json)
		print_json(ls);
	else if (ls->n > 0)
		print_table(ls);
	else if (whole)
		hr_report("no stores, and no running job of yours" HR_HINT
			  "`headrace run -- CMD` records CMD into a store; `headrace ls FOLDER` "
			  "lists another folder");
	return EXIT_SUCCESS;
}

static int add_folder(struct ls *ls, const char *folder)
{
	int r = hr_stores_find(folder, true, &ls->stores);

	if (r == 0)
		return 0;
	hr_report("cannot list %s: %s", hr_near_quoted(folder).s, strerrordesc_np(-r));
	return HR_ASK_NO_STORE;
}

static int take_argument(void *self, int id, const char *value)
{
	struct ls *ls = self;

	if (id == HR_OPTION_FORMAT) {
		ls->json = hr_option_is_json(value);
		return 0;
	}
	ls->folders = true;
	return add_folder(ls, value);
}

int hr_ls_main(int argc, char **argv)
{
	struct ls ls = {0};
	int status;

	if (hr_arguments(argc, argv, hr_ls_option_table, take_argument, &ls, &status)) {
		if (!ls.folders)
			status = add_folder(&ls, ".");
		if (status == EXIT_SUCCESS)
			status = list(&ls);
	}
	for (size_t i = 0; i < ls.n; i++)
		hr_ls_row_done(&ls.rows[i]);
	free(ls.rows);
	hr_stores_done(&ls.stores);
	return status;
}
