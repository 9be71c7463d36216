/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format "parquet": the tables that were recorded, as one file for each table and node. The
 * folders have names that Spark, DuckDB and pyarrow read as the columns `job` and `node`.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/export/export.h"
#include "common/text.h"

static const struct parquet_table {
	const char *name;
	bool node; /* has the column `node` */
	bool rank;
} tables[] = {
    {"jobs", false, false},	    {"labels", false, false},  {"nodes", true, false},
    {"levels", true, false},	    {"processes", true, true}, {"files", true, false},
    {"events", true, true},	    {"rollups", true, true},   {"file_records", true, true},
    {"kernel_records", true, true}, {"regions", true, true},   {"losses", true, true},
};

/* Appends a name as SQL has it. Hive-style folders encode some of its characters. */
static void print_folder_value(FILE *to, const char *name)
{
	char *escaped = hr_text_escaped(name, strlen(name));

	for (const char *at = escaped != NULL ? escaped : name; *at != '\0'; at++)
		fprintf(to, strchr("\"#%'*/:=?\\{}[]^", *at) != NULL ? "%%%02X" : "%c",
			(unsigned char)*at);
	free(escaped);
}

/* Returns the path of a table's file (malloc'ed), or NULL. `node` NULL: the table has no nodes. */
static char *file_path(const char *folder, const struct parquet_table *t, const char *job,
		       const char *node)
{
	char *path = NULL;
	size_t bytes;
	FILE *to = open_memstream(&path, &bytes);

	if (to == NULL)
		return NULL;
	fprintf(to, "%s/%s/job=", folder, t->name);
	print_folder_value(to, job);
	if (node != NULL) {
		fputs("/node=", to);
		print_folder_value(to, node);
	}
	fprintf(to, "/%s.parquet", t->name);
	if (fclose(to) == 0)
		return path;
	free(path);
	return NULL;
}

char *hr_export_table_sql(const struct hr_export_request *r, const char *columns, const char *table,
			  const char *node)
{
	bool rank = false;
	char *sql = NULL;
	size_t bytes;
	FILE *to = open_memstream(&sql, &bytes);

	if (to == NULL)
		return NULL;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		rank |= tables[i].rank && strcmp(tables[i].name, table) == 0;
	fprintf(to, "SELECT %s FROM %s WHERE true", columns, table);
	if (r->query.job != NULL)
		hr_export_equals(to, "job", r->query.job);
	if (node != NULL)
		hr_export_equals(to, "node", node);
	if (rank && r->options.rank >= 0)
		fprintf(to, " AND rank = %lld", (long long)r->options.rank);
	if (fclose(to) == 0)
		return sql;
	free(sql);
	return NULL;
}

/* Creates the folders of a path below the first `from` bytes. Returns 0 or -errno. */
static int make_folders(char *path, size_t from)
{
	for (char *at = strchr(path + from + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
		int made;

		*at = '\0';
		made = mkdir(path, 0777);
		*at = '/';
		if (made < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int write_table(struct hr_export_request *r, const struct parquet_table *t,
		       const char *folder, const char *job, const char *node)
{
	char *path = file_path(folder, t, job, node);
	char *sql = hr_export_table_sql(r, "* EXCLUDE (job, node)", t->name, node);
	struct hr_query_request q = r->query;
	int err = path != NULL && sql != NULL ? make_folders(path, strlen(folder)) : -ENOMEM;
	int status = EXIT_FAILURE;

	if (err < 0) {
		hr_report("cannot create the folders of %s: %s", path != NULL ? path : folder,
			  strerrordesc_np(-err));
	} else {
		q.words = &sql;
		q.n_words = 1;
		q.format = HR_FORMAT_PARQUET;
		q.output = path;
		q.without_notes = strcmp(t->name, tables[0].name) != 0; /* once */
		status = hr_query_answer(&q);
		free(q.folder);
		hr_question_done(&q.question);
	}
	free(path);
	free(sql);
	return status;
}

/* Writes a table for each node, or for the node that the user named. */
static int write_nodes(struct hr_export_request *r, const struct parquet_table *t,
		       const char *folder, const struct hr_export_job *job)
{
	int status = EXIT_SUCCESS;

	for (size_t i = 0; i < job->n_nodes && status == EXIT_SUCCESS; i++)
		if (r->options.node == NULL || strcmp(r->options.node, job->nodes[i]) == 0)
			status = write_table(r, t, folder, job->job, job->nodes[i]);
	return status;
}

int hr_export_parquet(struct hr_export_request *r, const struct hr_export_job *job,
		      const char *folder)
{
	struct hr_export_folder f;
	int status = hr_export_folder_begin(&f, folder, false);

	r->query.folder_partial = f.partial;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && status == EXIT_SUCCESS; i++)
		status = tables[i].node ? write_nodes(r, &tables[i], f.partial, job)
					: write_table(r, &tables[i], f.partial, job->job, NULL);
	status = hr_export_folder_end(&f, status);
	if (status == EXIT_SUCCESS)
		hr_report("wrote %s for Spark, pandas, DuckDB and other readers of Parquet",
			  folder);
	return status;
}
