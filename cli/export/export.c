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
#include "cli/export/export.h"
#include "cli/query/query.h"
#include "common/array.h"
#include "common/text.h"

enum {
	OPT_TO = 256,
	OPT_RANK,
	OPT_NODE,
	OPT_SCOPE,
	OPT_FROM,
	OPT_TO_TIME,
	OPT_STEP,
	OPT_MAX_SIZE,
	OPT_BY
};

#define FORMATS "perfetto chrome pfw darshan nsys parquet arrow"
#define ARROW	"arrow"
#define PARQUET "parquet"

const struct hr_option hr_export_option_table[] = {
    {"to", OPT_TO, "FORMAT", "the format: " FORMATS, FORMATS},
    {"output", 'o', "PATH",
     "write to this file, with --by to this folder; -: standard output (default: STORE and the "
     "format's suffix, in this folder)",
     NULL},
    {"job", HR_OPTION_TEXT(struct hr_export_request, query.job), "JOB",
     "export this job (default: the newest one)", HR_VALUES_OTHER},
    {"rank", OPT_RANK, "N", "only this rank and its workers", HR_VALUES_OTHER},
    {"node", OPT_NODE, "NODE", "only this node", HR_VALUES_OTHER},
    {"scope", OPT_SCOPE, "data|runtime",
     "only operations on data, or only those on files of the Python installation", "data runtime"},
    {"from", OPT_FROM, "SECONDS", "skip the first SECONDS of the job; -N: only its last N seconds",
     HR_VALUES_OTHER},
    {"to-time", OPT_TO_TIME, "SECONDS",
     "skip what comes after SECONDS; -N: skip the last N seconds", HR_VALUES_OTHER},
    {"step", OPT_STEP, "N[-M]", "only this step, or these steps, of each rank", HR_VALUES_OTHER},
    {"max-size", OPT_MAX_SIZE, "SIZE",
     "leave out the shortest operations and regions (darshan: the last DXT segments), so that the "
     "file has about SIZE at most; 0: no limit (default: 200M for perfetto and chrome, 128M for "
     "darshan, else "
     "0)",
     HR_VALUES_OTHER},
    {"by", OPT_BY, "rank", "write one file for each rank", "rank"},
    HR_OPTIONS_END,
};

/* Adds an option as a word. The export checks its value (hr_export_parse). Returns 0 or -1. */
static int export_option(struct hr_export_request *r, const char *name, const char *value)
{
	char *word;

	if (asprintf(&word, "%s=%s", name, value) < 0)
		return -1;
	r->words[r->n_words++] = word;
	return 0;
}

static int take_argument(void *self, int id, const char *value)
{
	struct hr_export_request *r = self;

	switch (id) {
	case OPT_TO:
		r->parquet = strcmp(value, PARQUET) == 0;
		r->arrow = strcmp(value, ARROW) == 0;
		r->to = r->parquet || r->arrow || hr_export_format(value, &r->options.format);
		return r->to ? 0 : hr_option_wrong_word("to", FORMATS, value);
	case OPT_BY:
		r->by_rank = strcmp(value, "rank") == 0;
		return r->by_rank ? 0 : hr_option_wrong_word("by", "rank", value);
	case OPT_RANK:
		return export_option(r, "rank", value);
	case OPT_NODE:
		return export_option(r, "node", value);
	case OPT_SCOPE:
		return export_option(r, "scope", value);
	case OPT_FROM:
		return export_option(r, "from", value);
	case OPT_TO_TIME:
		return export_option(r, "to_time", value);
	case OPT_STEP:
		return export_option(r, "step", value);
	case OPT_MAX_SIZE:
		return export_option(r, "max_size", value);
	case 'o':
		if (value[0] == '\0')
			return hr_option_wrong("output", "a path, or - for standard output", value);
		r->standard_output = strcmp(value, "-") == 0;
		r->output = value;
		return 0;
	default: /* an operand */
		r->query.stores[r->query.n_stores++] = value;
		return 0;
	}
}

/* Whether the name of the file states that its text is not compressed. */
static bool plain_name(const struct hr_export_request *r)
{
	const char *end = r->output != NULL ? strrchr(r->output, '.') : NULL;

	if (r->options.format != HR_EXPORT_CHROME && r->options.format != HR_EXPORT_PFW)
		return false;
	return end != NULL && !r->by_rank &&
	       (strcmp(end, ".json") == 0 || strcmp(end, ".pfw") == 0);
}

/* Returns 0, or the exit status after it has reported a mistake. */
static int check_arguments(struct hr_export_request *r)
{
	if (!r->to) {
		hr_report("--to is missing: the formats are " FORMATS);
		return HR_EXIT_USAGE;
	}
	if ((plain_name(r) && export_option(r, "plain", "1") < 0) ||
	    !hr_export_parse(&r->options, r->words, r->n_words, &hr_request_messages))
		return HR_EXIT_USAGE;
	if (r->by_rank && r->options.rank >= 0) {
		hr_report("--by rank writes all ranks: remove --rank");
		return HR_EXIT_USAGE;
	}
	return hr_operands_newest(&r->query);
}

/* ---- output ---- */

/* Returns the default name (malloc'ed): that of the store's folder, or of the job. */
static char *default_name(const struct hr_export_request *r, const char *job, const char *suffix)
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

static uint64_t file_bytes(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

struct written_text {
	char s[160];
};

/* Returns what an export has written: its size, and its content if this process has made it. */
static struct written_text written(const struct hr_export_request *r, uint64_t bytes,
				   const struct hr_export_counts *counts)
{
	bool counted = !hr_address_is(r->query.stores[0]) && r->options.format != HR_EXPORT_DARSHAN;
	struct written_text t;

	snprintf(t.s, sizeof(t.s), counted ? "%s, %s operations, %s regions" : "%s",
		 hr_text_size(bytes).s, hr_text_count(counts->operations).s,
		 hr_text_count(counts->regions).s);
	return t;
}

/* Writes the table `events` as a stream of Arrow. `path` NULL: standard output. */
static int export_arrow(struct hr_export_request *r, const char *path)
{
	struct hr_query_request q = r->query;
	char *sql = hr_export_table_sql(r, "*", "events", r->options.node);
	int status;

	if (sql == NULL)
		return EXIT_FAILURE;
	q.words = &sql;
	q.n_words = 1;
	q.format = HR_FORMAT_ARROW;
	q.output = path;
	status = hr_query_answer(&q);
	free(q.folder);
	hr_question_done(&q.question);
	free(sql);
	if (status == EXIT_SUCCESS && path != NULL)
		hr_report("wrote %s for pyarrow, pandas, polars and other readers of Arrow", path);
	return status;
}

/* Writes one file. `path` NULL: standard output. Returns an exit status. */
static int export_file(struct hr_export_request *r, const char *path)
{
	struct hr_query_request q = r->query;
	int status;

	q.export = &r->options;
	q.words = r->words;
	q.n_words = r->n_words;
	q.output = path;
	status = hr_query_answer(&q);
	free(q.folder);
	return status;
}

/* Writes a file for each rank into `folder`. *ret_files, *ret_bytes: how many, and their sizes. */
static int export_ranks(struct hr_export_request *r, const char *folder,
			const struct hr_export_job *job, uint64_t *ret_files, uint64_t *ret_bytes)
{
	size_t n_words = r->n_words;
	int status = EXIT_SUCCESS;

	for (const char *at = job->ranks; status == EXIT_SUCCESS && *at != '\0';) {
		char rank[24], *name, *path = NULL;
		size_t n = strcspn(at, " ");

		snprintf(rank, sizeof(rank), "%.*s", (int)n, at);
		at += n + strspn(at + n, " ");
		name = hr_export_rank_name(r->options.format, job->run, rank);
		if (name == NULL || export_option(r, "rank", rank) < 0 ||
		    asprintf(&path, "%s/%s", folder, name) < 0 ||
		    !hr_export_parse(&r->options, r->words + n_words, 1, &hr_request_messages))
			status = EXIT_FAILURE;
		else
			status = export_file(r, path);
		if (status == EXIT_SUCCESS) {
			++*ret_files;
			*ret_bytes += file_bytes(path);
		}
		r->query.without_notes = true; /* the same for all files */
		free(path);
		free(name);
		while (r->n_words > n_words)
			free(r->words[--r->n_words]);
	}
	return status;
}

/* The folder may have other files, for example those of another job. */
static int export_by_rank(struct hr_export_request *r, const char *folder,
			  const struct hr_export_job *job)
{
	struct hr_export_counts counts = {0};
	uint64_t files = 0, bytes = 0;
	struct hr_export_folder f;
	int status = hr_export_folder_begin(&f, folder, true);

	r->query.folder_partial = f.partial;
	r->options.counts = &counts;
	if (status == EXIT_SUCCESS)
		status = export_ranks(r, f.partial, job, &files, &bytes);
	status = hr_export_folder_end(&f, status);
	if (status == EXIT_SUCCESS)
		hr_report("wrote %s (%s file%s, %s) for %s", folder, hr_text_count(files).s,
			  files == 1 ? "" : "s", written(r, bytes, &counts).s,
			  hr_export_reader(r->options.format));
	return status;
}

/* Exports all ranks into one file. `path` NULL: standard output. */
static int export_whole(struct hr_export_request *r, const char *path)
{
	struct hr_export_counts counts = {0};
	int status;

	r->options.counts = &counts;
	status = export_file(r, path);
	if (status == EXIT_SUCCESS && path != NULL)
		hr_report("wrote %s (%s) for %s", path, written(r, file_bytes(path), &counts).s,
			  hr_export_reader(r->options.format));
	return status;
}

/* Returns the output's path (malloc'ed), or NULL. */
static char *output_path(const struct hr_export_request *r, const char *job)
{
	if (r->output != NULL)
		return strdup(r->output);
	if (r->parquet || r->arrow)
		return default_name(r, job, r->parquet ? "." PARQUET : "." ARROW);
	return default_name(r, job, r->by_rank ? "" : hr_export_suffix(r->options.format));
}

/* Whether the options can be used together. Reports a mistake. */
static bool export_check(const struct hr_export_request *r)
{
	const struct hr_export_options *o = &r->options;
	bool part = r->by_rank || o->scope >= 0 || o->from_ns != INT64_MIN ||
		    o->to_ns != INT64_MAX || o->first_step >= 0 || o->max_bytes != UINT64_MAX;

	if (r->standard_output && (r->by_rank || r->parquet)) {
		hr_report("this export needs a folder: -o FOLDER");
	} else if (r->standard_output && isatty(STDOUT_FILENO)) {
		hr_report("an export is no text for a terminal: -o FILE");
	} else if ((r->parquet || r->arrow) && part) {
		hr_report("--to %s takes --job, --rank and --node only" HR_HINT
			  "headrace query STORE --format %s -o FILE 'SELECT ...' selects rows",
			  r->parquet ? PARQUET : ARROW, r->parquet ? PARQUET : ARROW);
	} else {
		return true;
	}
	return false;
}

static int write_files(struct hr_export_request *r, const struct hr_export_job *job)
{
	char *path = output_path(r, job->job);
	int status = EXIT_FAILURE;

	if (path == NULL)
		return EXIT_FAILURE;
	if (r->by_rank && (job->ranks == NULL || job->ranks[0] == '\0'))
		hr_report("the job has no ranks%s: export it without --by",
			  r->options.node != NULL ? " on this node" : "");
	else if ((r->parquet || r->arrow) && job->job != NULL && !hr_export_has_rows(r, job))
		status = EXIT_FAILURE;
	else if (r->parquet)
		status = hr_export_parquet(r, job, path);
	else if (r->by_rank)
		status = export_by_rank(r, path, job);
	else if (r->arrow)
		status = export_arrow(r, r->standard_output ? NULL : path);
	else
		status = export_whole(r, r->standard_output ? NULL : path);
	free(path);
	return status;
}

static int run_export(struct hr_export_request *r)
{
	struct hr_export_job job = {0};
	int status = check_arguments(r);

	if (status != 0)
		return status;
	if (!export_check(r))
		return HR_EXIT_USAGE;
	if (hr_export_needs_job(r)) {
		status = hr_export_find_job(r, &job);
		if (status == EXIT_SUCCESS && job.job == NULL) {
			hr_report("%s contains no job", r->query.stores[0]);
			status = HR_ASK_NO_STORE;
		}
		if (r->query.n_stores > 1 && r->query.job == NULL && job.several) {
			hr_report("the stores have several jobs, and an export has one: name one "
				  "store, or add --job");
			status = HR_EXIT_USAGE;
		}
		if (r->query.job == NULL)
			r->query.job = job.job;
	}
	if (status == EXIT_SUCCESS)
		status = write_files(r, &job);
	hr_export_job_done(&job);
	return status;
}

int hr_export_main(int argc, char **argv)
{
	struct hr_export_request r = {.query.stores =
					  calloc((size_t)argc + 1, sizeof(*r.query.stores)),
				      .options = hr_export_all(HR_EXPORT_PERFETTO),
				      .words = calloc((size_t)argc + 2, sizeof(*r.words))};
	int status = EXIT_FAILURE;

	if (r.query.stores != NULL && r.words != NULL &&
	    hr_arguments(argc, argv, hr_export_option_table, take_argument, &r, &status))
		status = run_export(&r);
	for (size_t i = 0; i < r.n_words; i++)
		free(r.words[i]);
	free(r.words);
	hr_request_done(&r.query);
	return status;
}
