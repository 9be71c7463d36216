/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace export: writes a job in the format of another tool. `headrace query` opens the stores or
 * asks the collector, and the export (export/export.h) takes the place of the answer.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/query/query.h"
#include "cli/stores.h"
#include "common/array.h"
#include "common/text.h"
#include "export/export.h"

enum {
	OPT_TO = 256,
	OPT_JOB,
	OPT_RANK,
	OPT_NODE,
	OPT_FROM,
	OPT_TO_TIME,
	OPT_STEP,
	OPT_MAX_SIZE,
	OPT_BY
};

#define FORMATS "perfetto chrome pfw"

const struct hr_option hr_export_option_table[] = {
    {"to", OPT_TO, "FORMAT", "the format: " FORMATS, FORMATS},
    {"output", 'o', "PATH",
     "write to this file, with --by to this folder; -: standard output (default: STORE and the "
     "format's suffix, in this folder)",
     NULL},
    {"job", OPT_JOB, "JOB", "export this job (default: the newest one)", HR_VALUES_OTHER},
    {"rank", OPT_RANK, "N", "only this rank and its workers", HR_VALUES_OTHER},
    {"node", OPT_NODE, "NODE", "only this node", HR_VALUES_OTHER},
    {"from", OPT_FROM, "SECONDS", "skip the first SECONDS of the job; -N: only its last N seconds",
     HR_VALUES_OTHER},
    {"to-time", OPT_TO_TIME, "SECONDS",
     "skip what comes after SECONDS; -N: skip the last N seconds", HR_VALUES_OTHER},
    {"step", OPT_STEP, "N[-M]", "only this step, or these steps, of each rank", HR_VALUES_OTHER},
    {"max-size", OPT_MAX_SIZE, "SIZE",
     "leave out the shortest operations and regions, so that the file has about SIZE at most; 0: "
     "no limit (default: 200M for perfetto and chrome; pfw has no limit)",
     HR_VALUES_OTHER},
    {"by", OPT_BY, "rank", "write one file for each rank", "rank"},
    {"help", 'h', NULL, "print this text", NULL},
    {NULL, 0, NULL, NULL, NULL},
};

struct export_request {
	struct hr_query_request query; /* stores and job; its words are the options of the export */
	struct hr_export_options options;
	char **words; /* "rank=3"; room for all options */
	size_t n_words;
	const char *output;
	bool to, by_rank, standard_output;
};

/* Adds an option as a word. The export checks its value (hr_export_parse). */
static bool export_option(struct export_request *r, const char *name, const char *value)
{
	char *word;

	if (asprintf(&word, "%s=%s", name, value) < 0)
		return false;
	r->words[r->n_words++] = word;
	return true;
}

static bool take_value(struct export_request *r, int id, const char *value)
{
	switch (id) {
	case OPT_TO:
		r->to = hr_export_format(value, &r->options.format);
		return r->to || hr_option_wrong_word("to", FORMATS, value) == 0;
	case OPT_BY:
		r->by_rank = strcmp(value, "rank") == 0;
		return r->by_rank || hr_option_wrong_word("by", "rank", value) == 0;
	case OPT_JOB:
		r->query.job = value;
		return true;
	case OPT_RANK:
		return export_option(r, "rank", value);
	case OPT_NODE:
		return export_option(r, "node", value);
	case OPT_FROM:
		return export_option(r, "from", value);
	case OPT_TO_TIME:
		return export_option(r, "to_time", value);
	case OPT_STEP:
		return export_option(r, "step", value);
	case OPT_MAX_SIZE:
		return export_option(r, "max_size", value);
	default: /* -o */
		r->standard_output = strcmp(value, "-") == 0;
		r->output = value;
		return true;
	}
}

/* Returns 0 to continue, or 1 to end with *ret_status. */
static int export_arguments(struct hr_options *o, struct export_request *r, int *ret_status)
{
	struct hr_query_request *q = &r->query;

	*ret_status = HR_EXIT_USAGE;
	for (;;) {
		int id = hr_option_next(o);

		if (id == HR_OPTION_END && o->next >= o->argc)
			break;
		if (id == 'h') {
			*ret_status = hr_command_help("export");
			return 1;
		}
		if (id == HR_OPTION_END)
			q->stores[q->n_stores++] = o->argv[o->next++];
		else if (id == HR_OPTION_BAD || !take_value(r, id, o->value))
			return 1;
	}
	if (!r->to) {
		hr_report("--to is missing: the formats are " FORMATS);
		return 1;
	}
	if (!hr_export_parse(&r->options, r->words, r->n_words, &hr_request_messages))
		return 1;
	if (r->by_rank && r->options.rank >= 0) {
		hr_report("--by rank writes all ranks: remove --rank");
		return 1;
	}
	if (q->n_stores == 0 && (q->newest = hr_stores_take_newest()) != NULL)
		q->stores[q->n_stores++] = q->newest;
	*ret_status = HR_ASK_NO_STORE;
	return q->n_stores > 0 ? 0 : 1;
}

/* ---- the job and its ranks ---- */

/* Reads the first two lines of a file into *ret (malloc'ed). Returns the second one, or NULL. */
static char *second_line(const char *path, char **ret)
{
	FILE *from = fopen(path, "re");
	size_t size = 0;
	ssize_t n = -1;

	if (from == NULL)
		return NULL;
	if (getline(ret, &size, from) >= 0)
		n = getline(ret, &size, from);
	fclose(from);
	return n > 0 ? *ret : NULL;
}

/* Removes the quotes and escapes of a cell of CSV with the name of a job. */
static void read_cell(char *cell)
{
	bool quoted = cell[0] == '"';
	char *to = cell;

	cell[strcspn(cell, "\r\n")] = '\0';
	for (const char *from = cell + quoted; *from != '\0'; from++)
		if (!quoted || *from != '"' || *++from == '"')
			*to++ = *from;
		else
			break;
	*to = '\0';
	hr_text_unescape(cell);
}

/* Returns the SQL of find_job (malloc'ed). `node` NULL: the ranks of all nodes. */
static char *job_sql(const char *node)
{
	static const char sql[] =
	    "SELECT (SELECT string_agg(rank, ' ' ORDER BY rank) FROM (SELECT DISTINCT rank FROM "
	    "processes p WHERE p.job = j.job AND rank IS NOT NULL AND (%s OR node = '%s'))) AS "
	    "ranks, job FROM jobs j ORDER BY start_ns DESC NULLS LAST LIMIT 1";
	char *name = calloc(2 * (node != NULL ? strlen(node) : 0) + 1, 1), *to = name, *text;

	if (name == NULL)
		return NULL;
	for (const char *from = node; from != NULL && *from != '\0'; from++) {
		if (*from == '\'')
			*to++ = '\'';
		*to++ = *from;
	}
	if (asprintf(&text, sql, node != NULL ? "false" : "true", name) < 0)
		text = NULL;
	free(name);
	return text;
}

/*
 * Finds the newest job, unless the user named one, and its ranks as "0 1 2" (malloc'ed). Returns an
 * exit status.
 */
static int find_job(struct export_request *r, char **ret_job, char **ret_ranks)
{
	struct hr_query_request q = r->query;
	char *folder = hr_temporary_folder("export"), *file = NULL, *line = NULL, *comma;
	char *words[] = {job_sql(r->options.node)};
	int status = EXIT_FAILURE;

	if (folder != NULL && words[0] != NULL && asprintf(&file, "%s/job", folder) > 0) {
		q.export = NULL;
		q.words = words;
		q.n_words = 1;
		q.format = HR_FORMAT_CSV;
		q.output = file;
		q.without_notes = true;
		status = hr_query_answer(&q);
		if (status == EXIT_SUCCESS && second_line(file, &line) != NULL &&
		    (comma = strchr(line, ',')) != NULL) {
			*comma = '\0';
			*ret_ranks = strdup(line);
			*ret_job = strdup(comma + 1);
			if (*ret_job != NULL)
				read_cell(*ret_job);
		}
		unlink(file);
		free(q.folder);
		hr_question_done(&q.question);
	}
	if (folder != NULL)
		rmdir(folder);
	free(words[0]);
	free(folder);
	free(file);
	free(line);
	return status;
}

/* Whether the job, or the ranks, must be found by a query. */
static bool needs_job(const struct export_request *r)
{
	struct hr_store_outline outline;

	if (r->by_rank)
		return true;
	return r->query.job == NULL &&
	       (r->query.n_stores > 1 || hr_address_is(r->query.stores[0]) ||
		hr_store_outline(r->query.stores[0], false, &outline) < 0 || outline.jobs > 1);
}

/* ---- output ---- */

/* Returns the default name (malloc'ed): that of the store's folder, or of the job. */
static char *default_name(const struct export_request *r, const char *job, const char *suffix)
{
	const char *store = r->query.stores[0], *name = store;
	size_t n = strlen(store);
	char *text;

	while (n > 1 && store[n - 1] == '/')
		n--;
	if (hr_address_is(store)) {
		name = job != NULL ? job : "job";
		n = strcspn(name, "/");
	} else if (memrchr(store, '/', n) != NULL) {
		name = (const char *)memrchr(store, '/', n) + 1;
		n = (size_t)(store + n - name);
	}
	if (n == 0 || strncmp(name, ".", n) == 0 || strncmp(name, "..", n) == 0) {
		name = "headrace";
		n = strlen(name);
	}
	return asprintf(&text, "%.*s%s", (int)n, name, suffix) > 0 ? text : NULL;
}

static void report_written(const struct export_request *r, const char *path)
{
	struct stat st;

	hr_report("wrote %s (%s) for %s", path,
		  stat(path, &st) == 0 ? hr_text_size((uint64_t)st.st_size).s : "?",
		  hr_export_reader(r->options.format));
}

/* Writes one file. `path` NULL: standard output. Returns an exit status. */
static int export_file(struct export_request *r, const char *path)
{
	struct hr_query_request q = r->query;
	int status;

	q.export = &r->options;
	q.words = r->words;
	q.n_words = r->n_words;
	q.output = path;
	status = hr_query_answer(&q);
	free(q.folder);
	if (status == EXIT_SUCCESS && path != NULL)
		report_written(r, path);
	return status;
}

static int export_by_rank(struct export_request *r, const char *folder, const char *ranks)
{
	size_t n_words = r->n_words;
	int status = EXIT_SUCCESS;

	if (mkdir(folder, 0777) < 0 && errno != EEXIST) {
		hr_report("cannot create %s: %s", folder, strerrordesc_np(errno));
		return EXIT_FAILURE;
	}
	for (const char *at = ranks; status == EXIT_SUCCESS && *at != '\0';) {
		char rank[24], *path = NULL;
		size_t n = strcspn(at, " ");

		snprintf(rank, sizeof(rank), "%.*s", (int)n, at);
		at += n + strspn(at + n, " ");
		if (!export_option(r, "rank", rank) ||
		    asprintf(&path, "%s/rank%s%s", folder, rank,
			     hr_export_suffix(r->options.format)) < 0 ||
		    !hr_export_parse(&r->options, r->words + n_words, 1, &hr_request_messages))
			status = EXIT_FAILURE;
		else
			status = export_file(r, path);
		r->query.without_notes = true; /* the same for all files */
		free(path);
		while (r->n_words > n_words)
			free(r->words[--r->n_words]);
	}
	return status;
}

/* Returns the output's path (malloc'ed), or NULL. */
static char *output_path(const struct export_request *r, const char *job)
{
	if (r->output != NULL)
		return strdup(r->output);
	return default_name(r, job, r->by_rank ? "" : hr_export_suffix(r->options.format));
}

static int run_export(struct export_request *r)
{
	char *job = NULL, *ranks = NULL, *path;
	int status = EXIT_SUCCESS;

	if (r->standard_output && (r->by_rank || isatty(STDOUT_FILENO))) {
		hr_report(r->by_rank ? "--by rank needs a folder: -o FOLDER"
				     : "an export is no text for a terminal: -o FILE");
		return HR_EXIT_USAGE;
	}
	if (needs_job(r))
		status = find_job(r, &job, &ranks);
	if (status == EXIT_SUCCESS && r->by_rank && (ranks == NULL || ranks[0] == '\0')) {
		hr_report("the job has no ranks%s: export it without --by",
			  r->options.node != NULL ? " on this node" : "");
		status = EXIT_FAILURE;
	}
	if (status == EXIT_SUCCESS && job != NULL && r->query.job == NULL)
		r->query.job = job;
	path = output_path(r, job);
	if (status == EXIT_SUCCESS && path == NULL)
		status = EXIT_FAILURE;
	else if (status == EXIT_SUCCESS && r->by_rank)
		status = export_by_rank(r, path, ranks);
	else if (status == EXIT_SUCCESS)
		status = export_file(r, r->standard_output ? NULL : path);
	free(path);
	free(ranks);
	free(job);
	return status;
}

int hr_export_main(int argc, char **argv)
{
	struct hr_options o = {
	    .table = hr_export_option_table, .argv = argv, .argc = argc, .next = 1};
	struct export_request r = {.query.stores =
				       calloc((size_t)argc + 1, sizeof(*r.query.stores)),
				   .options = hr_export_all(HR_EXPORT_PERFETTO),
				   .words = calloc((size_t)argc + 1, sizeof(*r.words))};
	int status = EXIT_FAILURE;

	if (r.query.stores != NULL && r.words != NULL && export_arguments(&o, &r, &status) == 0)
		status = run_export(&r);
	for (size_t i = 0; i < r.n_words; i++)
		free(r.words[i]);
	free(r.words);
	hr_request_done(&r.query);
	return status;
}
