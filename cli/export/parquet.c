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

/* Appends `text`, in which Hive-style folders encode some characters. */
static void print_folder_value(FILE *to, const char *text)
{
	for (; *text != '\0'; text++) {
		if (strchr("\"#%'*/:=?\\{}[]^", *text) != NULL || (unsigned char)*text < ' ')
			fprintf(to, "%%%02X", (unsigned char)*text);
		else
			fputc(*text, to);
	}
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
	if (r->query.job != NULL) {
		fputs(" AND job = ", to);
		hr_text_sql(to, r->query.job);
	}
	if (node != NULL) {
		fputs(" AND node = ", to);
		hr_text_sql(to, node);
	}
	if (rank && r->options.rank >= 0)
		fprintf(to, " AND rank = %lld", (long long)r->options.rank);
	if (fclose(to) == 0)
		return sql;
	free(sql);
	return NULL;
}

/* Creates the folders of a path. Returns 0 or -errno. */
static int make_folders(char *path)
{
	for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
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
	int err = path != NULL && sql != NULL ? make_folders(path) : -ENOMEM;
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
	char *list = strdup(r->options.node != NULL ? r->options.node : job->nodes), *at = list;
	char *node;
	int status = list != NULL ? EXIT_SUCCESS : EXIT_FAILURE;

	while (status == EXIT_SUCCESS && (node = strsep(&at, " ")) != NULL)
		status = write_table(r, t, folder, job->job, node);
	free(list);
	return status;
}

int hr_export_parquet(struct hr_export_request *r, const struct hr_export_job *job,
		      const char *folder)
{
	int status = EXIT_SUCCESS;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && status == EXIT_SUCCESS; i++)
		status = tables[i].node ? write_nodes(r, &tables[i], folder, job)
					: write_table(r, &tables[i], folder, job->job, NULL);
	if (status == EXIT_SUCCESS)
		hr_report("wrote %s for Spark, pandas, DuckDB and other readers of Parquet",
			  folder);
	return status;
}
