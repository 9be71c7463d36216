/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace query: SQL or a named query over stores; the answer on standard output, what is
 * missing on standard error.
 */
#include "cli/query.h"

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/outfile.h"
#include "cli/commands.h"
#include "collector/query/named.h"
#include "collector/query/notes.h"
#include "collector/query/output.h"
#include "collector/query/query.h"
#include "common/text.h"

#define EXIT_NO_DUCKDB 69 /* EX_UNAVAILABLE */
#define MAX_NOTES      20

int (*hr_query_recover)(const char *store, char **ret_note);

enum { OPT_EXPLAIN = 256, OPT_LIST, OPT_MEMORY, OPT_THREADS, OPT_FORMAT, OPT_JOB, OPT_HELP };

const struct hr_option hr_query_option_table[] = {
    {"job", OPT_JOB, "JOB", "only this job"},
    {"format", OPT_FORMAT, "FORMAT", "table (default), json, csv or parquet"},
    {"output", 'o', "FILE", "write the answer there; needed for parquet"},
    {"list", OPT_LIST, NULL, "list the named queries"},
    {"explain", OPT_EXPLAIN, "NAME",
     "print a named query: what it answers, its arguments and its SQL"},
    {"threads", OPT_THREADS, "N", "use at most N threads (default: all that this process may use)"},
    {"memory", OPT_MEMORY, "SIZE", "memory for the query (default: half of the machine's)"},
    {"help", OPT_HELP, NULL, "show this"},
    {NULL, 0, NULL, NULL},
};

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV, FORMAT_PARQUET };

struct request {
	const char **stores;
	size_t n_stores;
	const char *job;
	enum format format;
	const char *output;
	struct hr_outfile file; /* of -o */
	uint64_t memory_bytes;
	unsigned threads;
	const char *query; /* SQL or NAME as typed */
	char **words;	   /* arguments of a NAME */
	size_t n_words;
	const char *sql;
	struct hr_named_args args;
};

/* ---- the command line ------------------------------------------------------------------------ */

static int usage(void)
{
	puts("usage: headrace query STORE... [OPTION...] 'SQL' | NAME [ARG...]\n"
	     "       headrace query --list | --explain NAME\n\n"
	     "Runs one read-only SQL statement, or a named query, over stores. The tables are in "
	     "docs/sql.md;\n`DESCRIBE events` shows one. Arguments of a named query are NAME=VALUE "
	     "or values in order.\n");
	hr_options_print(hr_query_option_table);
	return EXIT_SUCCESS;
}

static int list_queries(void)
{
	for (const struct hr_named *q = hr_named_list; q->name != NULL; q++) {
		const char *about;
		size_t n;

		hr_named_about(q, &about, &n);
		printf("%-10s  %.*s\n", q->name, (int)n, about);
	}
	return EXIT_SUCCESS;
}

static int no_such_name(const char *name)
{
	hr_say("'%s' is no named query; `headrace query --list` lists them (SQL is one argument: "
	       "quote it)",
	       name);
	return HR_EXIT_USAGE;
}

static int explain(const char *name)
{
	const struct hr_named *q = hr_named_find(name);

	if (q == NULL)
		return no_such_name(name);
	fputs(q->sql, stdout);
	return EXIT_SUCCESS;
}

static bool parse_format(const char *text, enum format *ret)
{
	static const char *const names[] = {"table", "json", "csv", "parquet"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = i;
			return true;
		}
	}
	hr_say("--format must be table, json, csv or parquet, not '%s'", text);
	return false;
}

/* A lone identifier is a NAME. */
static bool is_identifier(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t n = strspn(text, letters);

	if (n == 0)
		return false;
	for (; text[n] != '\0'; n++) {
		if (strchr("0123456789_-", text[n]) == NULL && strchr(letters, text[n]) == NULL)
			return false;
	}
	return true;
}

/* The first operand is a store; later ones are while they look like one and are no named query. */
static bool is_store(const char *text, size_t index)
{
	struct stat st;

	if (index == 0)
		return true;
	if (hr_named_find(text) != NULL)
		return false;
	if (strncmp(text, "tcp://", 6) == 0)
		return true;
	return stat(text, &st) == 0 && S_ISDIR(st.st_mode);
}

static void take_operand(struct request *r, char *text)
{
	if (r->query == NULL && is_store(text, r->n_stores))
		r->stores[r->n_stores++] = text;
	else if (r->query == NULL)
		r->query = text;
	else
		r->words[r->n_words++] = text;
}

/* Takes one option. 0 to go on, 1 when *ret_status is the end. */
static int take_option(struct request *r, int id, const char *value, int *ret_status)
{
	char *end;

	*ret_status = HR_EXIT_USAGE;
	switch (id) {
	case OPT_JOB:
		r->job = value;
		return 0;
	case OPT_FORMAT:
		return parse_format(value, &r->format) ? 0 : 1;
	case 'o':
		r->output = value;
		return 0;
	case OPT_THREADS:
		r->threads = (unsigned)strtoul(value, &end, 10);
		if (*end == '\0' && r->threads > 0 && r->threads <= 4096)
			return 0;
		hr_say("--threads must be a number from 1 to 4096, not '%s'", value);
		return 1;
	case OPT_MEMORY:
		if (hr_text_parse_size(value, &r->memory_bytes) == 0)
			return 0;
		hr_say("--memory must be a size such as 4GiB, not '%s'", value);
		return 1;
	case OPT_LIST:
		*ret_status = list_queries();
		return 1;
	case OPT_EXPLAIN:
		*ret_status = explain(value);
		return 1;
	case OPT_HELP:
		*ret_status = usage();
		return 1;
	default:
		return 1;
	}
}

/* Options may stand anywhere. 0 to go on, 1 when *ret_status is the end. */
static int parse(struct request *r, int argc, char **argv, int *ret_status)
{
	struct hr_options o = {
	    .table = hr_query_option_table, .argv = argv, .argc = argc, .next = 1};

	for (;;) {
		int id = hr_option_next(&o);

		if (id == HR_OPTION_END) {
			if (o.next >= argc)
				return 0;
			take_operand(r, argv[o.next++]);
		} else if (take_option(r, id, o.value, ret_status) != 0) {
			return 1;
		}
	}
}

static int check(struct request *r)
{
	if (r->n_stores == 0) {
		hr_say("which store? `headrace query STORE summary`; `headrace query --help` says "
		       "more");
		return HR_EXIT_USAGE;
	}
	for (size_t i = 0; i < r->n_stores; i++) {
		if (strncmp(r->stores[i], "tcp://", 6) != 0)
			continue;
		hr_say("%s: querying a collector comes with the collector and is not available "
		       "yet; name a store folder",
		       r->stores[i]);
		return HR_EXIT_USAGE;
	}
	if (r->query == NULL) {
		hr_say("what is the question? `headrace query %s summary`, or SQL in quotes; "
		       "`headrace query --list` lists the named queries",
		       r->stores[0]);
		return HR_EXIT_USAGE;
	}
	if (r->format == FORMAT_PARQUET && r->output == NULL) {
		hr_say("Parquet is no text: name a file with -o FILE");
		return HR_EXIT_USAGE;
	}
	return 0;
}

/* Finds the SQL and its arguments. */
static int resolve(struct request *r)
{
	const struct hr_named *named;
	char *error = NULL;

	if (!is_identifier(r->query)) {
		r->sql = r->query;
		if (r->n_words == 0)
			return 0;
		hr_say("SQL is one argument; what is '%s'? Quote the whole statement", r->words[0]);
		return HR_EXIT_USAGE;
	}
	named = hr_named_find(r->query);
	if (named == NULL)
		return no_such_name(r->query);
	r->sql = named->sql;
	if (hr_named_args_init(named, r->words, r->n_words, &r->args, &error) == 0)
		return 0;
	hr_say("%s", error != NULL ? error : "out of memory");
	free(error);
	return HR_EXIT_USAGE;
}

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

/*
 * Turns the first SIGINT or SIGTERM into an interrupt of the statement; the second one kills as
 * usual.
 */
struct watcher {
	pthread_t thread;
	struct hr_query *query;
	sigset_t set;
};

static void *watch(void *arg)
{
	struct watcher *w = arg;
	int signal;

	if (sigwait(&w->set, &signal) == 0 && signal != SIGUSR1) {
		hr_query_interrupt(w->query);
		pthread_sigmask(SIG_UNBLOCK, &w->set, NULL);
	}
	return NULL;
}

/* Signals must be blocked before DuckDB makes threads, which inherit the mask. */
static void watcher_block(struct watcher *w)
{
	sigemptyset(&w->set);
	sigaddset(&w->set, SIGINT);
	sigaddset(&w->set, SIGTERM);
	sigaddset(&w->set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &w->set, NULL);
}

static bool watcher_start(struct watcher *w, struct hr_query *q)
{
	w->query = q;
	return pthread_create(&w->thread, NULL, watch, w) == 0;
}

static void watcher_stop(struct watcher *w)
{
	pthread_kill(w->thread, SIGUSR1);
	pthread_join(w->thread, NULL);
}

/* ---- running --------------------------------------------------------------------------------- */

static unsigned terminal_width(FILE *to)
{
	struct winsize size;

	if (!isatty(fileno(to)) || ioctl(fileno(to), TIOCGWINSZ, &size) < 0)
		return 0;
	return size.ws_col;
}

/* Who may write to a store that we may not: its owner, by name where there is one. */
static void say_owner(const char *store)
{
	struct passwd entry, *found = NULL;
	char names[1024];
	struct stat st;

	if (stat(store, &st) < 0)
		return;
	if (getpwuid_r(st.st_uid, &entry, names, sizeof(names), &found) != 0 || found == NULL)
		snprintf(names, sizeof(names), "%u", (unsigned)st.st_uid);
	hr_say("the answer lacks what that journal holds; `headrace query %s summary`, run once by "
	       "the store's owner (%s), takes it over",
	       store, found != NULL ? found->pw_name : names);
}

/* What became of journals that killed daemons left: `text` has a line for each, or is NULL. */
static void say_recovered(const char *store, char *text, int err)
{
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0')
			hr_say("%s", line);
	if (err < 0 && text == NULL)
		hr_say("%s: what a killed run left behind could not be recovered: %s", store,
		       strerrordesc_np(-err));
	if (err == -EROFS)
		hr_say("the answer lacks what that journal holds: copy %s to a file system that "
		       "can be written and ask the copy",
		       store);
	else if (err == -EACCES || err == -EPERM)
		say_owner(store);
}

static int open_stores(const struct request *r, struct hr_catalog **ret)
{
	char *text = NULL;
	int err;

	for (size_t i = 0; hr_query_recover != NULL && i < r->n_stores; i++) {
		err = hr_query_recover(r->stores[i], &text);
		say_recovered(r->stores[i], text, err);
		free(text);
		text = NULL;
	}
	err = hr_catalog_open(r->stores, r->n_stores, r->job, ret, &text);
	if (err == 0)
		return 0;
	if (text != NULL)
		hr_say("%s", text);
	else
		hr_say("%s: cannot be read as a store: %s", r->stores[0], strerrordesc_np(-err));
	free(text);
	return HR_EXIT_NO_STORE;
}

static void say_note(const char *text)
{
	hr_say("note: %s", text);
}

static int failed(int err, char *error, const struct hr_output *out)
{
	const char *problem = out != NULL ? hr_output_problem(out) : NULL;

	if (err == -EPIPE) { /* the reader has seen enough */
		free(error);
		return EXIT_SUCCESS;
	}
	if (problem != NULL)
		hr_say("%s", problem);
	else if (error != NULL)
		hr_say("%s", error);
	else
		hr_say("the answer could not be written: %s", strerrordesc_np(-err));
	free(error);
	return err == -EINTR ? HR_EXIT_SIGNAL + SIGINT : EXIT_FAILURE;
}

static int answer_parquet(const struct request *r, struct hr_query *q)
{
	char *error = NULL;
	int err = hr_query_parquet(q, r->sql, r->args.list, r->args.n, &error);

	if (err == 0)
		err = hr_outfile_end(&r->file, true);
	else
		hr_outfile_end(&r->file, false);
	return err == 0 ? EXIT_SUCCESS : failed(err, error, NULL);
}

static int answer_text(const struct request *r, struct hr_query *q, FILE *to)
{
	static const enum hr_output_format formats[] = {HR_OUTPUT_TABLE, HR_OUTPUT_JSON,
							HR_OUTPUT_CSV};
	struct hr_query_sink sink;
	struct hr_output *out;
	char *error = NULL;
	int err = hr_output_new(formats[r->format], to, terminal_width(to), &out);

	if (err < 0)
		return failed(err, NULL, NULL);
	sink = hr_output_sink(out);
	err = hr_query_run(q, r->sql, r->args.list, r->args.n, &sink, &error);
	err = err == 0 ? EXIT_SUCCESS : failed(err, error, out);
	hr_output_free(out);
	return err;
}

/* A file appears under its name when it is whole. */
static int answer_file(const struct request *r, struct hr_query *q)
{
	FILE *to = fopen(hr_outfile_name(&r->file), "we");
	int status, err;

	if (to == NULL) {
		hr_say("%s: %s", r->output, strerrordesc_np(errno));
		return EXIT_FAILURE;
	}
	status = answer_text(r, q, to);
	if (fclose(to) != 0 && status == EXIT_SUCCESS)
		status = failed(-errno, NULL, NULL);
	err = hr_outfile_end(&r->file, status == EXIT_SUCCESS);
	return err < 0 ? failed(err, NULL, NULL) : status;
}

static int answer(const struct request *r, struct hr_query *q)
{
	if (r->format == FORMAT_PARQUET)
		return answer_parquet(r, q);
	return r->output != NULL ? answer_file(r, q) : answer_text(r, q, stdout);
}

static int ask(const struct request *r, const struct hr_catalog *catalog)
{
	const char *tmp = getenv("TMPDIR");
	struct hr_query_options o = {.memory_bytes = r->memory_bytes, .threads = r->threads};
	struct watcher watcher;
	struct hr_query *q;
	char *error = NULL, *spill = NULL;
	bool watching;
	int status;

	if (asprintf(&spill, "%s/headrace-query-%d", tmp != NULL ? tmp : "/tmp", (int)getpid()) < 0)
		return EXIT_FAILURE;
	o.spill = spill;
	o.parquet = r->format == FORMAT_PARQUET ? hr_outfile_name(&r->file) : NULL;
	watcher_block(&watcher);
	status = hr_query_new(catalog, &o, &q, &error);
	free(spill);
	if (status < 0) {
		hr_say("%s", error != NULL ? error : strerrordesc_np(-status));
		free(error);
		return status == -ENOENT || status == -ELIBACC ? EXIT_NO_DUCKDB : EXIT_FAILURE;
	}
	watching = watcher_start(&watcher, q);
	status = answer(r, q);
	if (watching)
		watcher_stop(&watcher);
	if (status == EXIT_SUCCESS)
		hr_query_notes(q, MAX_NOTES, say_note);
	hr_query_free(q);
	return status;
}

static int plan_output(struct request *r)
{
	int err = r->output != NULL ? hr_outfile_init(&r->file, r->output) : 0;

	if (err < 0) {
		hr_say("%s: %s", r->output, strerrordesc_np(-err));
		return EXIT_FAILURE;
	}
	if (r->output != NULL && r->format == FORMAT_PARQUET && r->file.partial == NULL) {
		hr_say("%s is no regular file: parquet cannot be written there", r->output);
		return HR_EXIT_USAGE;
	}
	return 0;
}

int hr_query_main(int argc, char **argv)
{
	struct request r = {0};
	struct hr_catalog *catalog = NULL;
	int status = EXIT_FAILURE;

	signal(SIGPIPE, SIG_IGN);
	r.stores = calloc((size_t)argc, sizeof(*r.stores));
	r.words = calloc((size_t)argc, sizeof(*r.words));
	if (r.stores == NULL || r.words == NULL || parse(&r, argc, argv, &status) != 0)
		goto out;
	status = check(&r);
	if (status == 0)
		status = resolve(&r);
	if (status != 0)
		goto out;
	status = plan_output(&r);
	if (status != 0)
		goto out;
	status = open_stores(&r, &catalog);
	if (status == 0)
		status = ask(&r, catalog);
out:
	hr_catalog_free(catalog);
	hr_named_args_done(&r.args);
	hr_outfile_done(&r.file);
	free(r.stores);
	free(r.words);
	return status;
}
