/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what an export must know of the job before it begins, by a query of the stores. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/export/export.h"
#include "common/array.h"
#include "common/near.h"
#include "common/text.h"

/* ---- the answer: one row of CSV for each node ---- */

/* Removes the first cell of a line of CSV. Returns it without quotes; NULL: there is none. */
static char *next_cell(char **line)
{
	char *cell = *line, *from = cell, *to = cell;
	bool quoted;

	if (cell == NULL)
		return NULL;
	quoted = *from == '"';
	for (from += quoted; *from != '\0' && (quoted || *from != ','); from++) {
		if (quoted && *from == '"' && *++from != '"')
			break;
		*to++ = *from;
	}
	*line = *from == ',' ? from + 1 : NULL;
	*to = '\0';
	return cell;
}

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

/* Takes a row. Returns false if there is no memory, or if the row is not as expected. */
static bool take_row(struct hr_export_job *job, char *line)
{
	char *several = next_cell(&line), *ranks = next_cell(&line), *run = next_cell(&line),
	     *name = next_cell(&line), *node = next_cell(&line);

	if (node == NULL || strchr(run, '/') != NULL) /* a collector may be hostile */
		return false;
	if (job->job == NULL) {
		job->several = strcmp(several, "true") == 0;
		job->ranks = strdup(ranks);
		job->run = strdup(run);
		job->job = strdup(name);
		if (job->ranks == NULL || job->run == NULL || job->job == NULL)
			return false;
		hr_text_unescape(job->job);
	}
	return node[0] == '\0' || add_node(job, node);
}

/* Escaped texts have no line breaks, so each line is a row. */
static bool take_rows(struct hr_export_job *job, const char *path)
{
	FILE *from = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	bool ok = from != NULL && getline(&line, &size, from) >= 0; /* the names of the columns */

	while (ok && getline(&line, &size, from) >= 0) {
		line[strcspn(line, "\r\n")] = '\0';
		ok = take_row(job, line);
	}
	if (from != NULL)
		fclose(from);
	free(line);
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
	char *folder = hr_temporary_folder("export"), *file = NULL;
	char *words[] = {job_sql(r->options.node)};
	int status = EXIT_FAILURE;

	if (folder != NULL && words[0] != NULL && asprintf(&file, "%s/job", folder) > 0) {
		q.words = words;
		q.n_words = 1;
		q.format = HR_FORMAT_CSV;
		q.output = file;
		q.without_notes = true;
		status = hr_query_answer(&q);
		if (status == EXIT_SUCCESS && !take_rows(ret, file)) {
			hr_report("cannot read the list of jobs and nodes");
			status = EXIT_FAILURE;
		}
		unlink(file);
		free(q.folder);
		hr_question_done(&q.question);
	}
	if (folder != NULL)
		rmdir(folder);
	free(folder);
	free(file);
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
