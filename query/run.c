/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one statement. Four independent measures prevent changes: a check of its kind, a read-only
 * transaction, no access to files, and locked settings (query.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "query/query.h"
#include "query/tables/internal.h"
#include "common/text.h"

/* Reports an error of DuckDB, without its advice to change settings, which are locked. */
static int run_failed(char **ret_error, const char *text)
{
	static const char memory[] = "Out of Memory Error", own[] = "Binder Error: ";

	/*
	 * An error of headrace's table functions: reports only its first line, which names the
	 * parameter, without "Binder Error".
	 */
	if (text != NULL && strncmp(text, own, sizeof(own) - 1) == 0 &&
	    strncmp(text + sizeof(own) - 1, "hr_", 3) == 0) {
		text += sizeof(own) - 1;
		return hr_text_fail(-EBADMSG, ret_error, "%.*s", (int)strcspn(text, "\n"), text);
	}
	if (text != NULL && strncmp(text, memory, sizeof(memory) - 1) == 0)
		return hr_text_fail(-EBADMSG, ret_error,
				    "%.*s: use more --memory or fewer --threads",
				    (int)strcspn(text, "\n"), text);
	return hr_text_fail(-EBADMSG, ret_error, "%s",
			    text != NULL ? text : "DuckDB failed without a message");
}

static void plain_statement(struct hr_query *q, const char *sql)
{
	duckdb_result result;

	hr_duckdb.query(q->connection, sql, &result);
	hr_duckdb.destroy_result(&result);
}

/* ---- pruning, preparing ---- */

/* Returns the statement's parse tree as JSON (malloc'ed). NULL: DuckDB cannot make one. */
static char *parse_tree(struct hr_query *q, const char *sql)
{
	duckdb_prepared_statement statement = NULL;
	duckdb_pending_result pending = NULL;
	duckdb_result result = {0};
	duckdb_data_chunk chunk = NULL;
	char *json = NULL;

	if (hr_duckdb.prepare(q->connection, "SELECT json_serialize_sql($1::VARCHAR)",
			      &statement) == DuckDBSuccess &&
	    hr_duckdb.bind_varchar(statement, 1, sql) == DuckDBSuccess &&
	    hr_duckdb.pending_prepared_streaming(statement, &pending) == DuckDBSuccess &&
	    hr_duckdb.execute_pending(pending, &result) == DuckDBSuccess)
		chunk = hr_duckdb.fetch_chunk(result);
	if (chunk != NULL && hr_duckdb.data_chunk_get_size(chunk) == 1) {
		duckdb_vector v = hr_duckdb.data_chunk_get_vector(chunk, 0);
		const duckdb_string_t *s = hr_duckdb.vector_get_data(v);
		uint32_t n = s->value.inlined.length;

		if (n > sizeof(s->value.inlined.inlined))
			json = strndup(s->value.pointer.ptr, n);
	}
	hr_duckdb.destroy_data_chunk(&chunk);
	hr_duckdb.destroy_result(&result);
	hr_duckdb.destroy_pending(&pending);
	hr_duckdb.destroy_prepare(&statement);
	return json;
}

static int prune(struct hr_query *q, const char *sql, const struct hr_query_arg *args, size_t n)
{
	char *json;
	int r;

	hr_prune_done(&q->prune);
	hr_prune_init(&q->prune);
	atomic_store(&q->batches_read, 0);
	atomic_store(&q->batches_pruned, 0);
	atomic_store(&q->batches, 0);
	atomic_store(&q->interrupted, false);
	json = parse_tree(q, sql);
	if (json == NULL)
		return 0;
	r = hr_prune_parse(&q->prune, json, args, n);
	free(json);
	return r;
}

static const char *first_word(const char *sql)
{
	for (;;) {
		const char *end;

		sql += strspn(sql, " \t\r\n");
		if (strncmp(sql, "--", 2) == 0)
			end = strchr(sql, '\n');
		else if (strncmp(sql, "/*", 2) == 0)
			end = strstr(sql + 2, "*/");
		else
			return sql;
		if (end == NULL)
			return "";
		sql = end + (*end == '*' ? 2 : 1);
	}
}

static bool changes_table(const char *sql)
{
	static const char *const words[] = {"INSERT", "UPDATE", "DELETE", "MERGE"};
	const char *word = first_word(sql);

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i]);

		if (strncasecmp(words[i], word, n) == 0 && strchr(" \t\r\n", word[n]) != NULL)
			return true;
	}
	return false;
}

static int not_allowed(char **ret_error)
{
	return hr_text_fail(-EINVAL, ret_error,
			    "only SELECT, EXPLAIN, DESCRIBE, SHOW and SUMMARIZE are allowed: "
			    "queries are read-only");
}

static int too_many(const char *sql, idx_t n, char **ret_error)
{
	return hr_text_fail(
	    -EINVAL, ret_error, "only one statement is allowed, not %llu%s", (unsigned long long)n,
	    strcasestr(sql, "PIVOT") == NULL ? ""
					     : " (a PIVOT counts as two, unless it lists its "
					       "values: ON op IN ('read', 'write'))");
}

/* Prepares `sql`, which must be one statement. */
static int run_prepare(struct hr_query *q, const char *sql, duckdb_prepared_statement *ret,
		       char **ret_error)
{
	duckdb_extracted_statements list = NULL;
	idx_t n = hr_duckdb.extract_statements(q->connection, sql, &list);
	int r = 0;

	if (n == 0) {
		const char *error = hr_duckdb.extract_statements_error(list);

		r = error != NULL && error[0] != '\0'
			? run_failed(ret_error, error)
			: hr_text_fail(-EINVAL, ret_error, "the SQL statement is empty");
	} else if (n > 1) {
		r = too_many(sql, n, ret_error);
	} else if (hr_duckdb.prepare_extracted_statement(q->connection, list, 0, ret) !=
		   DuckDBSuccess) {
		r = changes_table(sql) ? not_allowed(ret_error)
				       : run_failed(ret_error, hr_duckdb.prepare_error(*ret));
	}
	hr_duckdb.destroy_extracted(&list);
	return r;
}

/* Returns the kind of a statement. INVALID: `sql` is several statements, or cannot be prepared. */
static duckdb_statement_type run_kind_of(struct hr_query *q, const char *sql)
{
	duckdb_statement_type kind = DUCKDB_STATEMENT_TYPE_INVALID;
	duckdb_prepared_statement statement = NULL;
	char *error = NULL;

	if (run_prepare(q, sql, &statement, &error) == 0)
		kind = hr_duckdb.prepared_statement_type(statement);
	hr_duckdb.destroy_prepare(&statement);
	free(error);
	return kind;
}

/* Whether an EXPLAIN is of a SELECT. EXPLAIN ANALYZE of another statement could write. */
static bool explains_select(struct hr_query *q, const char *sql)
{
	sql = first_word(sql) + strlen("EXPLAIN");
	for (int options = 0; options < 3; options++) {
		duckdb_statement_type kind;
		const char *end;

		sql = first_word(sql);
		kind = run_kind_of(q, sql);
		if (kind != DUCKDB_STATEMENT_TYPE_INVALID)
			return kind == DUCKDB_STATEMENT_TYPE_SELECT;
		end = *sql == '(' ? strchr(sql, ')') : sql + strcspn(sql, " \t\r\n(-/");
		if (end == NULL || *end == '\0')
			return false;
		sql = end + (*end == ')');
	}
	return false;
}

static int check_kind(struct hr_query *q, const char *sql, duckdb_prepared_statement statement,
		      bool select_only, char **ret_error)
{
	duckdb_statement_type kind = hr_duckdb.prepared_statement_type(statement);

	if (kind == DUCKDB_STATEMENT_TYPE_SELECT)
		return 0;
	if (kind == DUCKDB_STATEMENT_TYPE_EXPLAIN && !select_only && explains_select(q, sql))
		return 0;
	if (select_only)
		return hr_text_fail(-EINVAL, ret_error,
				    "cannot write Parquet: the statement is not a SELECT");
	return not_allowed(ret_error);
}

static const struct hr_query_arg *find_arg(const struct hr_query_arg *args, size_t n,
					   const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(args[i].name, name) == 0)
			return &args[i];
	}
	return NULL;
}

static duckdb_state bind_arg(duckdb_prepared_statement statement, idx_t index,
			     const struct hr_query_arg *arg)
{
	if (arg->text == NULL)
		return hr_duckdb.bind_null(statement, index);
	switch (arg->type) {
	case HR_ARG_BIGINT:
		return hr_duckdb.bind_int64(statement, index, strtoll(arg->text, NULL, 10));
	case HR_ARG_DOUBLE:
		return hr_duckdb.bind_double(statement, index, strtod(arg->text, NULL));
	default:
		return hr_duckdb.bind_varchar(statement, index, arg->text);
	}
}

static int run_bind(duckdb_prepared_statement statement, const struct hr_query_arg *args, size_t n,
		    char **ret_error)
{
	idx_t count = hr_duckdb.nparams(statement);
	int r = 0;

	for (idx_t i = 1; r == 0 && i <= count; i++) {
		const char *name = hr_duckdb.parameter_name(statement, i);
		const struct hr_query_arg *arg = find_arg(args, n, name != NULL ? name : "");

		if (arg == NULL)
			r = hr_text_fail(-EINVAL, ret_error, "the parameter $%s has no value",
					 name);
		else if (bind_arg(statement, i, arg) != DuckDBSuccess)
			r = hr_text_fail(-EINVAL, ret_error,
					 "the value of $%s does not fit the type of this parameter",
					 name);
		hr_duckdb.free((void *)name);
	}
	return r;
}

/* ---- running ---- */

static int execution_failed(const struct hr_query *q, const char *text, char **ret_error)
{
	static const char interrupt[] = "INTERRUPT Error";

	if (atomic_load(&q->interrupted) ||
	    (text != NULL && strncmp(text, interrupt, sizeof(interrupt) - 1) == 0))
		return hr_text_fail(-EINTR, ret_error, "interrupted");
	return run_failed(ret_error, text);
}

static int drain(struct hr_query *q, duckdb_result *result, const struct hr_query_sink *sink,
		 char **ret_error)
{
	int r = 0;

	if (sink != NULL && sink->begin != NULL)
		r = sink->begin(sink->self, result, ret_error);
	while (r == 0) {
		duckdb_data_chunk chunk = hr_duckdb.fetch_chunk(*result);

		if (chunk == NULL)
			break;
		if (sink != NULL)
			r = sink->chunk(sink->self, chunk);
		hr_duckdb.destroy_data_chunk(&chunk);
	}
	if (r == 0 && hr_duckdb.result_error(result) != NULL)
		return execution_failed(q, hr_duckdb.result_error(result), ret_error);
	return r == 0 && sink != NULL && sink->end != NULL ? sink->end(sink->self) : r;
}

#define PAUSE_MIN_NS 20000
#define PAUSE_MAX_NS 500000

/*
 * Works on the query until its first rows are ready. This thread sleeps while other threads run all
 * its tasks, because execute_pending would poll without a pause.
 */
static duckdb_pending_state work(duckdb_pending_result pending)
{
	struct timespec pause = {.tv_nsec = PAUSE_MIN_NS};
	duckdb_pending_state state;

	do {
		state = hr_duckdb.pending_execute_task(pending);
		if (state == DUCKDB_PENDING_NO_TASKS_AVAILABLE) {
			nanosleep(&pause, NULL);
			if (pause.tv_nsec < PAUSE_MAX_NS)
				pause.tv_nsec *= 2;
		} else {
			pause.tv_nsec = PAUSE_MIN_NS;
		}
	} while (state == DUCKDB_PENDING_RESULT_NOT_READY ||
		 state == DUCKDB_PENDING_NO_TASKS_AVAILABLE);
	return state;
}

static int execute(struct hr_query *q, duckdb_prepared_statement statement,
		   const struct hr_query_sink *sink, char **ret_error)
{
	duckdb_pending_result pending = NULL;
	duckdb_result result = {0};
	int r;

	if (hr_duckdb.pending_prepared_streaming(statement, &pending) != DuckDBSuccess) {
		r = run_failed(ret_error, hr_duckdb.pending_error(pending));
	} else {
		if (work(pending) == DUCKDB_PENDING_ERROR)
			r = execution_failed(q, hr_duckdb.pending_error(pending), ret_error);
		else if (hr_duckdb.execute_pending(pending, &result) != DuckDBSuccess)
			r = execution_failed(q, hr_duckdb.result_error(&result), ret_error);
		else
			r = drain(q, &result, sink, ret_error);
	}
	hr_duckdb.destroy_result(&result);
	hr_duckdb.destroy_pending(&pending);
	return r;
}

/* Begins a transaction, and prepares `sql` if its kind is allowed. Call run_end() after it. */
static int run_begin(struct hr_query *q, const char *sql, const struct hr_query_arg *args,
		     size_t n_args, bool select_only, duckdb_prepared_statement *ret,
		     char **ret_error)
{
	int r = prune(q, sql, args, n_args);

	plain_statement(q, "BEGIN TRANSACTION READ ONLY");
	if (r < 0)
		return run_failed(ret_error, "out of memory");
	r = run_prepare(q, sql, ret, ret_error);
	return r == 0 ? check_kind(q, sql, *ret, select_only, ret_error) : r;
}

static void run_end(struct hr_query *q, duckdb_prepared_statement *statement, const char *end)
{
	hr_duckdb.destroy_prepare(statement);
	plain_statement(q, end);
}

/* Returns the statement, without its semicolon, between two texts (malloc'ed). NULL: no memory. */
static char *wrap_statement(const char *before, const char *sql, const char *after)
{
	size_t n = strlen(sql);
	char *text;

	while (n > 0 && (sql[n - 1] == ';' || strchr(" \t\r\n", sql[n - 1]) != NULL))
		n--;
	/* The newline ends a comment at the end of `sql`, which would hide the parenthesis. */
	return asprintf(&text, "%s(%.*s\n)%s", before, (int)n, sql, after) < 0 ? NULL : text;
}

int hr_query_run(struct hr_query *q, const char *sql, const struct hr_query_arg *args,
		 size_t n_args, const struct hr_query_sink *sink, char **ret_error)
{
	duckdb_prepared_statement statement = NULL;
	int r = run_begin(q, sql, args, n_args, false, &statement, ret_error);

	if (r == 0)
		r = run_bind(statement, args, n_args, ret_error);
	if (r == 0)
		r = execute(q, statement, sink, ret_error);
	run_end(q, &statement, "ROLLBACK");
	return r;
}

static char *copy_statement(const char *sql, const char *path, const char *notes)
{
	char *after = NULL, *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&after, &bytes);

	if (to == NULL)
		return NULL;
	fputs(" TO ", to);
	hr_text_sql(to, path);
	fputs(" (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false, KV_METADATA "
	      "{headrace_notes: ",
	      to);
	hr_text_sql(to, notes);
	fputs("})", to);
	if (fclose(to) == 0)
		text = wrap_statement("COPY ", sql, after);
	free(after);
	return text;
}

/*
 * Runs `text`, a statement of `kind` that contains the SELECT `sql`. Frees `text`, which may be
 * NULL (no memory).
 */
static int run_around(struct hr_query *q, const char *sql, char *text, duckdb_statement_type kind,
		      const struct hr_query_arg *args, size_t n_args, char **ret_error)
{
	bool copy = kind == DUCKDB_STATEMENT_TYPE_COPY;
	duckdb_prepared_statement statement = NULL, outer = NULL;
	int r = run_begin(q, sql, args, n_args, copy, &statement, ret_error);

	if (r == 0)
		r = text != NULL ? run_prepare(q, text, &outer, ret_error)
				 : run_failed(ret_error, "out of memory");
	if (r == 0 && hr_duckdb.prepared_statement_type(outer) != kind)
		r = hr_text_fail(-EINVAL, ret_error, "cannot %s the answer of this statement%s",
				 copy ? "write" : "keep", copy ? " as Parquet" : "");
	if (r == 0)
		r = run_bind(outer, args, n_args, ret_error);
	if (r == 0)
		r = execute(q, outer, NULL, ret_error);
	hr_duckdb.destroy_prepare(&outer);
	run_end(q, &statement, r == 0 && !copy ? "COMMIT" : "ROLLBACK");
	free(text);
	return r;
}

int hr_query_parquet(struct hr_query *q, const char *sql, const struct hr_query_arg *args,
		     size_t n_args, const char *notes, char **ret_error)
{
	return run_around(q, sql, copy_statement(sql, q->parquet, notes),
			  DUCKDB_STATEMENT_TYPE_COPY, args, n_args, ret_error);
}

int hr_query_keep(struct hr_query *q, const char *sql, const struct hr_query_arg *args,
		  size_t n_args, char **ret_error)
{
	static const char create[] = "CREATE OR REPLACE TEMP TABLE answer AS "
				     "SELECT *, row_number() OVER () AS hr_row FROM ";

	return run_around(q, sql, wrap_statement(create, sql, ""), DUCKDB_STATEMENT_TYPE_CREATE,
			  args, n_args, ret_error);
}
