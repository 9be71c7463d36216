/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what an export must know of the job before it begins, by a query of the stores. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/export/export.h"
#include "common/text.h"

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

/* Splits a line of CSV whose first three fields have no comma. */
static void take_job(struct hr_export_job *job, char *line)
{
	char *ranks = strsep(&line, ","), *nodes = strsep(&line, ","), *run = strsep(&line, ",");

	if (line == NULL || strchr(run, '/') != NULL) /* a collector may be hostile */
		return;
	job->ranks = strdup(ranks);
	job->nodes = strdup(nodes);
	job->run = strdup(run);
	job->job = strdup(line);
	if (job->job != NULL)
		read_cell(job->job);
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
	fputs("SELECT (SELECT string_agg(rank, ' ' ORDER BY rank) FROM (SELECT DISTINCT rank FROM "
	      "processes p WHERE p.job = j.job AND rank IS NOT NULL",
	      to);
	if (node != NULL) {
		fputs(" AND node = ", to);
		hr_text_sql(to, node);
	}
	fputs(")) AS ranks, (SELECT string_agg(DISTINCT node, ' ') FROM nodes n WHERE n.job = "
	      "j.job) AS nodes, (SELECT arg_max(" PROGRAM ", " MAIN
	      ") FROM processes p WHERE p.job = j.job AND rank IS NOT NULL) || '.p' || "
	      "coalesce(ranks_expected, ranks_seen) AS run, job "
	      "FROM jobs j ORDER BY start_ns DESC NULLS LAST LIMIT 1",
	      to);
	if (fclose(to) == 0)
		return sql;
	free(sql);
	return NULL;
}

int hr_export_find_job(const struct hr_export_request *r, struct hr_export_job *ret)
{
	struct hr_query_request q = r->query;
	char *folder = hr_temporary_folder("export"), *file = NULL, *line = NULL;
	char *words[] = {job_sql(r->options.node)};
	int status = EXIT_FAILURE;

	if (folder != NULL && words[0] != NULL && asprintf(&file, "%s/job", folder) > 0) {
		q.words = words;
		q.n_words = 1;
		q.format = HR_FORMAT_CSV;
		q.output = file;
		q.without_notes = true;
		status = hr_query_answer(&q);
		if (status == EXIT_SUCCESS && second_line(file, &line) != NULL)
			take_job(ret, line);
		unlink(file);
		free(q.folder);
		hr_question_done(&q.question);
	}
	if (folder != NULL)
		rmdir(folder);
	free(folder);
	free(file);
	free(line);
	free(words[0]);
	return status;
}

bool hr_export_needs_job(const struct hr_export_request *r)
{
	struct hr_store_outline outline;

	if (r->by_rank || r->parquet)
		return true;
	return r->query.job == NULL &&
	       (r->query.n_stores > 1 || hr_address_is(r->query.stores[0]) ||
		hr_store_outline(r->query.stores[0], false, &outline) < 0 || outline.jobs > 1);
}
