/* SPDX-License-Identifier: Apache-2.0 */
/* query_clickhouse.c - questions about all jobs, in the SQL of ClickHouse */
#include "cli/query/query_clickhouse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/outfile.h"
#include "common/text.h"

/* ---- the statement ---- */

static const struct hr_query_arg *find_arg(const struct hr_named_args *args, const char *name,
					   size_t n)
{
	for (size_t i = 0; i < args->n; i++)
		if (strlen(args->list[i].name) == n && strncmp(args->list[i].name, name, n) == 0)
			return &args->list[i];
	return NULL;
}

/* Writes the SQL of a named query with its arguments in place of `$name`. */
static void put_sql(FILE *to, const char *sql, const struct hr_named_args *args)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";

	while (*sql) {
		size_t n = *sql == '$' ? strspn(sql + 1, letters) : 0;
		const struct hr_query_arg *arg = n > 0 ? find_arg(args, sql + 1, n) : NULL;

		if (!arg) {
			fputc(*sql++, to);
			continue;
		}
		sql += 1 + n;
		if (!arg->text)
			fputs("NULL", to);
		else if (arg->type == HR_ARG_VARCHAR)
			hr_ch_put_literal(to, arg->text);
		else
			fputs(arg->text, to);
	}
}

static int report_name(const char *name, const char *address)
{
	struct hr_near near = hr_near(name);

	if (hr_named_find(name)) {
		hr_report("`%s` is a question about one job" HR_HINT
			  "headrace query %s --job JOB %s; `jobs` lists the jobs",
			  name, address, name);
		return HR_EXIT_USAGE;
	}
	for (const struct hr_named *q = hr_fleet_queries; q->name; q++)
		hr_near_add(&near, q->name);
	hr_question_no_name(&near, "query", &hr_request_messages);
	return HR_EXIT_USAGE;
}

/* Makes the statement, malloc'ed. Returns an exit status. */
static int make_statement(const struct hr_query_request *r, const char *address, char **ret)
{
	const struct hr_named *q = hr_named_in(hr_fleet_queries, r->words[0]);
	struct hr_named_args args;
	char *error = NULL;
	size_t bytes;
	FILE *to;

	if (!q && hr_question_is_name(r->words[0]))
		return report_name(r->words[0], address);
	if (!q) {
		*ret = strdup(r->words[0]);
		return *ret ? 0 : HR_ASK_FAILED;
	}
	if (hr_named_args_init(q, r->words + 1, r->n_words - 1, &args, &error) < 0) {
		hr_report("%s", error ? error : "out of memory");
		free(error);
		return HR_EXIT_USAGE;
	}
	to = open_memstream(ret, &bytes);
	if (to) {
		put_sql(to, q->sql, &args);
		fclose(to);
	}
	hr_named_args_done(&args);
	return to && *ret ? 0 : HR_ASK_FAILED;
}

/* ---- the server ---- */

int hr__query_client(const struct hr_ch_target *target, const atomic_bool *stop,
		     struct hr_ch_client **ret, char **ret_error)
{
	struct hr_ch_client *client = NULL;
	char *text = NULL;
	unsigned release = 0;
	int e = hr_ch_client_new(target, stop, &client, ret_error);

	if (e == 0)
		e = hr_ch_release(client, &release, &text, ret_error);
	if (e == 0 && release < HR_CH_ANSWERS_FROM)
		e = hr_text_fail(-ENOTSUP, ret_error,
				 "ClickHouse %s cannot answer questions: they need ClickHouse %u "
				 "or later. It keeps all data that collectors insert" HR_HINT
				 "upgrade ClickHouse, and run the SQL of `headrace-collector "
				 "schema clickhouse` again",
				 text, HR_CH_ANSWERS_FROM);
	free(text);
	if (e < 0)
		hr_ch_client_free(client);
	else
		*ret = client;
	return e;
}

/* ---- answers ---- */

/* Returns the answer in a format of ClickHouse as a text, malloc'ed. */
static int get_text(struct hr_ch_client *client, const char *sql, const char *format, char **ret,
		    char **ret_error)
{
	size_t bytes;
	FILE *memory = open_memstream(ret, &bytes);
	int error;

	if (!memory)
		return -ENOMEM;
	error = hr_ch_print(client, sql, format, memory, ret_error);
	if (fclose(memory) != 0 && error == 0)
		error = -ENOMEM;
	return error;
}

static int answer_tsv(const struct hr_query_request *r, struct hr_ch_client *client,
		      const char *sql, FILE *to, char **ret_error)
{
	char *text = NULL;
	int error = get_text(client, sql, "TabSeparatedWithNamesAndTypes", &text, ret_error);

	if (error == 0 && r->format == HR_FORMAT_CSV)
		error = hr_tsv_csv(text, to);
	else if (error == 0)
		error = hr_tsv_table(text, r, hr_named_in(hr_fleet_queries, r->words[0]), to);
	free(text);
	return error;
}

/* JSON of headrace is one array, with a row on each line. */
static int answer_json(struct hr_ch_client *client, const char *sql, FILE *to, char **ret_error)
{
	char *text = NULL, *rest, *line;
	size_t n = 0;
	int error = get_text(client, sql, "JSONEachRow", &text, ret_error);

	rest = text;
	fputs(error == 0 ? "[" : "", to);
	while (error == 0 && (line = strsep(&rest, "\n")) && rest)
		fprintf(to, "%s\n%s", n++ > 0 ? "," : "", line);
	fputs(error == 0 ? "\n]\n" : "", to);
	free(text);
	return error;
}

static int write_answer(const struct hr_query_request *r, struct hr_ch_client *client,
			const char *sql, FILE *to, char **ret_error)
{
	switch (r->format) {
	case HR_FORMAT_JSON:
		return answer_json(client, sql, to, ret_error);
	case HR_FORMAT_PARQUET:
		return hr_ch_print(client, sql, "Parquet", to, ret_error);
	case HR_FORMAT_ARROW:
		return hr_ch_print(client, sql, "ArrowStream", to, ret_error);
	default:
		return answer_tsv(r, client, sql, to, ret_error);
	}
}

static int answer(const struct hr_query_request *r, const struct hr_ch_target *target,
		  const char *sql)
{
	struct hr_ch_client *client = NULL;
	struct hr_outfile file = {0};
	char *error = NULL;
	FILE *to = r->into ? r->into : stdout;
	int e = hr__query_client(target, NULL, &client, &error), closed = 0;

	if (e == 0 && r->output)
		to = hr_outfile_open(&file, r->output, &e);
	if (e == 0)
		e = write_answer(r, client, sql, to, &error);
	if (r->output && to)
		closed = hr_outfile_close(&file, to, e == 0);
	if (e == 0)
		e = r->output ? closed : fflush(to) == 0 ? 0 : -errno;
	if (e < 0 && e != -EPIPE)
		hr_report("%s", error ? error : strerrordesc_np(-e));
	free(error);
	hr_outfile_done(&file);
	hr_ch_client_free(client);
	return e == 0 ? HR_ASK_ANSWERED : HR_ASK_FAILED;
}

int hr_query_fleet(const struct hr_query_request *r, const char *address)
{
	struct hr_ch_target target;
	char *error = NULL, *sql = NULL;
	int status = HR_ASK_ANSWERED;

	if (hr_ch_target_parse(address, &target, &error) < 0) {
		hr_report("%s", error ? error : "out of memory");
		status = HR_EXIT_USAGE;
	} else if (r->n_words == 0) {
		if (r->format != HR_FORMAT_JSON)
			printf("Ask about all jobs (or about one of them with --job JOB, as a "
			       "store):\n\n");
		hr_request_list(hr_fleet_queries, r->format);
	} else {
		status = make_statement(r, address, &sql);
	}
	if (status == 0 && sql)
		status = answer(r, &target, sql);
	free(sql);
	free(error);
	hr_ch_target_done(&target);
	return status;
}
