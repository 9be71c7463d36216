/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what an export must know of the job before it begins, by a query of the stores. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/export/export.h"
#include "cli/query/query.h"
#include "common/array.h"
#include "common/near.h"
#include "common/text.h"

/* ---- the answer: one row for each node ---- */

/* Adds a name, which SQL has escaped. */
static bool add_node(struct hr_export_job *job, char *name)
{
	if (!hr_array_fit(job->nodes, job->n_nodes + 1, job->nodes_room))
		return false;
	job->nodes[job->n_nodes] = strdup(name);
	if (job->nodes[job->n_nodes] == NULL)
		return false;
	hr_text_unescape(job->nodes[job->n_nodes++]);
	return true;
}

enum { SEVERAL, RANKS, RUN, JOB, NODE, COLUMNS };

/* Takes what all rows have. Returns false if there is no memory, or if it is not as expected. */
static bool take_job(struct hr_export_job *job, const struct hr_answer_rows *rows)
{
	const char *ranks = hr_rows_cell(rows, 0, RANKS), *run = hr_rows_cell(rows, 0, RUN);
	const char *name = hr_rows_cell(rows, 0, JOB), *several = hr_rows_cell(rows, 0, SEVERAL);

	if (name == NULL || (run != NULL && strchr(run, '/') != NULL)) /* a hostile collector */
		return false;
	job->several = several != NULL && strcmp(several, "true") == 0;
	job->ranks = strdup(ranks != NULL ? ranks : "");
	job->run = strdup(run != NULL ? run : "");
	job->job = strdup(name);
	if (job->ranks == NULL || job->run == NULL || job->job == NULL)
		return false;
	hr_text_unescape(job->job);
	return true;
}

static bool take_rows(struct hr_export_job *job, const struct hr_answer_rows *rows)
{
	bool ok = rows->n_columns == COLUMNS && (rows->n_rows == 0 || take_job(job, rows));

	for (size_t i = 0; ok && i < rows->n_rows; i++) {
		char *node = hr_rows_cell(rows, i, NODE);

		ok = node == NULL || node[0] == '\0' || add_node(job, node);
	}
	return ok;
}

void hr_export_job_done(struct hr_export_job *job)
{
	for (size_t i = 0; i < job->n_nodes; i++)
		free(job->nodes[i]);
	free(job->nodes);
	free(job->job);
	free(job->ranks);
	free(job->run);
}

/* ---- the question ---- */

void hr_export_equals(FILE *sql, const char *column, const char *text)
{
	char *escaped = hr_text_escaped(text, strlen(text));

	fprintf(sql, " AND %s = ", column);
	hr_text_sql(sql, escaped != NULL ? escaped : text);
	free(escaped);
}

/* "train" for "/usr/bin/python3 -u /home/x/train.py --epochs 3" */
#define PROGRAM                                                                                    \
	"coalesce(nullif(regexp_extract(cmdline, '^(?:(?:\\S*/)?python\\S*\\s+(?:-[um]\\s+)*)?"    \
	"(?:\\S*/)?([A-Za-z0-9_][A-Za-z0-9_-]*)', 1), ''), 'program')"

/* Orders processes: last the one of the lowest rank that lived longest, apart from shells. */
#define MAIN                                                                                       \
	"(NOT regexp_matches(exe, '/(ba|da|z)?sh$'), -rank, worker IS NULL, "                      \
	"coalesce(end_ns, 9000000000000000000) - start_ns)"

/* Returns the statement that finds the job (malloc'ed). `node` NULL: the ranks of all nodes. */
static char *job_sql(const char *node)
{
	char *sql = NULL;
	size_t bytes;
	FILE *to = open_memstream(&sql, &bytes);

	if (to == NULL)
		return NULL;
	fputs("SELECT (SELECT count(DISTINCT job) > 1 FROM jobs) AS several, (SELECT "
	      "string_agg(rank, ' ' ORDER BY rank) FROM (SELECT DISTINCT rank FROM "
	      "processes p WHERE p.job = j.job AND rank IS NOT NULL",
	      to);
	if (node != NULL)
		hr_export_equals(to, "node", node);
	fputs(")) AS ranks, (SELECT arg_max(" PROGRAM ", " MAIN
	      ") FROM processes p WHERE p.job = j.job AND rank IS NOT NULL) || '.p' || "
	      "coalesce(ranks_expected, ranks_seen) AS run, j.job, n.node "
	      "FROM (FROM jobs ORDER BY start_ns DESC NULLS LAST LIMIT 1) j "
	      "LEFT JOIN (SELECT DISTINCT job, node FROM nodes) n ON n.job = j.job ORDER BY n.node",
	      to);
	if (fclose(to) == 0)
		return sql;
	free(sql);
	return NULL;
}

int hr_export_find_job(const struct hr_export_request *r, struct hr_export_job *ret)
{
	struct hr_query_request q = r->query;
	char *words[] = {job_sql(r->options.node)};
	struct hr_answer_rows rows = {0};
	int status = EXIT_FAILURE;

	q.without_notes = true;
	if (words[0] != NULL)
		status = hr_rows_read(&q, words, 1, "export", &rows);
	if (status == EXIT_SUCCESS && !take_rows(ret, &rows)) {
		hr_report("cannot read the list of jobs and nodes");
		status = EXIT_FAILURE;
	}
	hr_rows_done(&rows);
	free(words[0]);
	return status;
}

static bool has_node(const struct hr_export_job *job, const char *node)
{
	for (size_t i = 0; i < job->n_nodes; i++)
		if (strcmp(job->nodes[i], node) == 0)
			return true;
	return false;
}

static bool has_rank(const struct hr_export_job *job, int64_t rank)
{
	for (const char *at = job->ranks; *at != '\0'; at += strspn(at, " ")) {
		if (strtoll(at, NULL, 10) == rank)
			return true;
		at += strcspn(at, " ");
	}
	return false;
}

bool hr_export_has_rows(const struct hr_export_request *r, const struct hr_export_job *job)
{
	const char *node = r->options.node;

	if (node != NULL && !has_node(job, node)) {
		hr_report("nothing to export: the job has no node %s" HR_HINT
			  "`headrace query STORE nodes` lists the nodes",
			  hr_near_quoted(node).s);
		return false;
	}
	if (r->options.rank >= 0 && !has_rank(job, r->options.rank)) {
		hr_report("nothing to export: the job has no rank %lld%s" HR_HINT
			  "`headrace query STORE ranks` lists the ranks",
			  (long long)r->options.rank, node != NULL ? " on this node" : "");
		return false;
	}
	return true;
}

bool hr_export_needs_job(const struct hr_export_request *r)
{
	struct hr_store_outline outline;

	if (r->by_rank || r->parquet ||
	    (r->arrow && (r->options.node != NULL || r->options.rank >= 0)))
		return true;
	return r->query.job == NULL &&
	       (r->query.n_stores > 1 || hr_address_is(r->query.stores[0]) ||
		hr_store_outline(r->query.stores[0], false, &outline) < 0 || outline.jobs > 1);
}
