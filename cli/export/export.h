/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - the request of `headrace export`, for its formats */
#ifndef HEADRACE_CLI_EXPORT_EXPORT_H
#define HEADRACE_CLI_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/query/query.h"
#include "export/export.h"

struct hr_export_request {
	struct hr_query_request query; /* stores and job */
	struct hr_export_options options;
	/* The format is one of tables; then options.format is unused. */
	bool parquet, arrow;
	char **words; /* "rank=3"; room for all options */
	size_t n_words;
	const char *output;
	bool to, by_rank, standard_output;
};

/* What must be known about the job before the export (malloc'ed texts, or NULL). */
struct hr_export_job {
	char *job;
	bool several; /* the stores have other jobs, too */
	char *ranks;  /* "0 1 2" */
	char *run;    /* "train.p8": the program, and the number of ranks */
	char **nodes;
	size_t n_nodes, nodes_room;
};

void hr_export_job_done(struct hr_export_job *job);

/* Whether the job, or its ranks or nodes, must be found by a query. */
bool hr_export_needs_job(const struct hr_export_request *r);

/* Whether the job has the node and the rank of the options. Reports if it does not. */
bool hr_export_has_rows(const struct hr_export_request *r, const struct hr_export_job *job);

/* Finds the newest job, unless the user named one. Returns an exit status. */
int hr_export_find_job(const struct hr_export_request *r, struct hr_export_job *ret);

/* Writes " AND column = 'text'" for a text that the tables of SQL have in escaped form. */
void hr_export_equals(FILE *sql, const char *column, const char *text);

/*
 * Returns a statement that selects `columns` of the job's rows of a table (malloc'ed), or NULL.
 * `node` NULL: all nodes.
 */
char *hr_export_table_sql(const struct hr_export_request *r, const char *columns, const char *table,
			  const char *node);

/*
 * Writes the job's tables into the folder, which is new or empty:
 *
 *      FOLDER/events/job=JOB/node=NODE/events.parquet
 *      FOLDER/jobs/job=JOB/jobs.parquet
 *
 * Returns an exit status, after it has reported an error.
 */
int hr_export_parquet(struct hr_export_request *r, const struct hr_export_job *job,
		      const char *folder);

/* ---- an output folder, whose content appears when it is complete (folder.c) ---- */

/*
 *      hr_export_folder_begin --> write into `partial` --> hr_export_folder_end
 *
 * `partial` is a new folder in the folder of the target, or, if the target exists, in it. From
 * begin on, the calling thread blocks SIGINT and SIGTERM: a query takes them, and removes `partial`
 * (hr_query_request.folder_partial) if it must end the process at once.
 */
struct hr_export_folder {
	char *target;
	char *partial; /* NULL: none was created */
	bool exists;   /* the target existed before */
};

/*
 * Creates `partial`. `add`: the folder may have other files; otherwise it is empty or new. Returns
 * an exit status, after it has reported an error. Call hr_export_folder_end in all cases.
 */
int hr_export_folder_begin(struct hr_export_folder *f, const char *path, bool add);

/*
 * `status` EXIT_SUCCESS: the content gets its name. Otherwise it is removed. Frees everything, and
 * returns the exit status.
 */
int hr_export_folder_end(struct hr_export_folder *f, int status);

#endif
