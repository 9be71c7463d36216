/* SPDX-License-Identifier: Apache-2.0 */
#include "clickhouse/schema.h"

#include <string.h>

#include "clickhouse/block.h"
#include "common/cause.h"
#include "common/ops.h"
#include "common/region.h"

#define VIEW "\n-- view "

/* ---- tables ---- */

/* Times and numbers that grow compress better as differences; frames are compressed already. */
static const char *codec_of(const struct hr_ch_column_info *c)
{
	if (strcmp(c->name, "frame") == 0)
		return " CODEC(NONE)";
	return c->type == HR_CH_TIME ? " CODEC(Delta(8), ZSTD(1))" : " CODEC(ZSTD(1))";
}

static void print_column(const struct hr_ch_schema *s, const struct hr_ch_column_info *c, FILE *to)
{
	fprintf(to, "%s %s%s", c->name, hr_ch_type_name(c->type), s->old ? "" : codec_of(c));
}

/* Adds the columns that a table of an earlier release lacks. 18.16 has no statement for it. */
static void print_new_columns(const struct hr_ch_schema *s, const struct hr_ch_table_info *t,
			      FILE *to)
{
	fprintf(to, "ALTER TABLE `%s`.%s_rows", s->database, t->name);
	for (unsigned i = HR_CH_COMMON; i < t->n_columns; i++) {
		fputs(i > HR_CH_COMMON ? ", " : " ", to);
		fputs("ADD COLUMN IF NOT EXISTS ", to);
		print_column(s, hr_ch_column(t, i), to);
	}
	fputs(";\n", to);
}

static void print_table(const struct hr_ch_schema *s, const struct hr_ch_table_info *t, FILE *to)
{
	fprintf(to, "CREATE TABLE IF NOT EXISTS `%s`.%s_rows", s->database, t->name);
	for (unsigned i = 0; i < t->n_columns; i++) {
		fputs(i > 0 ? ", " : " (", to);
		print_column(s, hr_ch_column(t, i), to);
	}
	if (s->replicated)
		fprintf(to,
			")\nENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/%s/%s_rows', "
			"'{replica}')",
			s->database, t->name);
	else
		fprintf(to, ")\nENGINE = MergeTree()");
	fprintf(to, " PARTITION BY day ORDER BY (%s)", t->key);
	if (s->keep_days > 0 && !s->old)
		fprintf(to, " TTL day + INTERVAL %llu DAY", (unsigned long long)s->keep_days);
	/* A reader reads whole granules, and a frame can have megabytes. */
	if (t == &hr_ch_tables[HR_CH_TABLE_frames])
		fputs(" SETTINGS index_granularity = 16", to);
	fputs(";\n", to);
	if (!s->old)
		print_new_columns(s, t, to);
}

/* ---- views ---- */

/* Writes an expression that replaces the number in a column by its name. NULL: no such number. */
typedef const char *name_of(unsigned number);

static void put_names(const char *column, unsigned n, name_of *name, FILE *to)
{
	fprintf(to, "transform(%s, [", column);
	for (unsigned i = 0, written = 0; i < n; i++)
		if (name(i))
			fprintf(to, "%s%u", written++ > 0 ? "," : "", i);
	fputs("], [", to);
	for (unsigned i = 0, written = 0; i < n; i++)
		if (name(i))
			fprintf(to, "%s'%s'", written++ > 0 ? "," : "", name(i));
	fputs("], '')", to);
}

static const char *op_name(unsigned op)
{
	return hr_op_info((uint16_t)op)->name;
}

static const char *op_api(unsigned op)
{
	return op_name(op) ? hr_api_name(hr_op_info((uint16_t)op)->api) : NULL;
}

static const char *op_class(unsigned op)
{
	return op_name(op) ? hr_class_name(hr_op_info((uint16_t)op)->class) : NULL;
}

/*
 * Writes the valid rows (sink.h) of a table on one server, as a subquery. n: length of the name.
 * One subquery has both arrays, because a generation can begin between two: a question would fail.
 * ClickHouse 18.16 reads all days for it, which suffices for tests of inserts.
 */
static void put_rows(const struct hr_ch_schema *s, const char *table, size_t n, FILE *to)
{
	fprintf(to,
		"(WITH (SELECT (groupArray(stream_generation), groupArray(end_seq)) FROM "
		"`%1$s`.generation_ends) AS all_ends SELECT * FROM `%1$s`.%2$.*3$s_rows WHERE seq "
		"< transform(bitXor(stream, generation), tupleElement(all_ends, 1), "
		"tupleElement(all_ends, 2), toUInt64(18446744073709551615))) AS r",
		s->database, table, (int)n);
}

/* ---- words of views.sql ---- */

#define NONE "toInt64('-9223372036854775808')"

/* Writes the ids of the ops with one of two rules for the number of bytes. */
static void put_ops_with(enum hr_bytes_rule a, enum hr_bytes_rule b, FILE *to)
{
	fputs("r.op_id IN (0", to);
	for (uint16_t op = HR_OP_FIRST; op < HR_OP_MAX; op++) {
		const struct hr_op_info *info = hr_op_info(op);

		if (info->name && (info->bytes_rule == a || info->bytes_rule == b))
			fprintf(to, ",%u", op);
	}
	fputc(')', to);
}

/*
 * The same as hr_bytes_moved(): NULL for operations without bytes, and for those without a result.
 */
static void put_bytes(FILE *to)
{
	fputs("nullIf(multiIf(r.result = " NONE ", toInt64(-1), ", to);
	put_ops_with(HR_BYTES_RET, HR_BYTES_RET, to);
	fputs(", greatest(r.result, toInt64(0)), ", to);
	put_ops_with(HR_BYTES_ITEMS, HR_BYTES_ITEMS, to);
	fputs(", greatest(r.result, toInt64(0)) * toInt64(flags), ", to);
	put_ops_with(HR_BYTES_ASKED, HR_BYTES_ASKED, to);
	fputs(", if(r.result < 0 OR r.asked = toUInt64('18446744073709551615'), toInt64(0), "
	      "toInt64(r.asked)), toInt64(-1)), -1)",
	      to);
}

static bool is_word(const char *text, size_t n, const char *word)
{
	return strlen(word) == n && strncmp(text, word, n) == 0;
}

/* Writes what replaces `$word`; nothing, if the word has a table in parentheses. */
static void put_word(const struct hr_ch_schema *s, const char *word, size_t n, FILE *to)
{
	static const struct {
		const char *word;
		name_of *name;
	} names[] = {{"op", op_name}, {"api", op_api}, {"class", op_class}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is_word(word, n, names[i].word))
			put_names("r.op_id", HR_OP_MAX, names[i].name, to);
	if (is_word(word, n, "db"))
		fprintf(to, "`%s`", s->database);
	else if (is_word(word, n, "common"))
		fputs("day, cluster, job, attempt, node, stream", to);
	else if (is_word(word, n, "none"))
		fputs(NONE, to);
	else if (is_word(word, n, "bytes"))
		put_bytes(to);
}

static const char *scope_name(unsigned scope)
{
	static const char *const names[] = {"data", "runtime"};

	return scope < 2 ? names[scope] : NULL;
}

static const char *side_name(unsigned side)
{
	if (side == HR_SIDE_NONE)
		return "";
	return hr_side_single(side) ? "single" : "copy";
}

#define KINDS_MAX 64u

/* Columns `..._id`, and what they name. */
static const struct {
	const char *column;
	unsigned n;
	name_of *name;
} ids[] = {
    {"op_id", HR_OP_MAX, op_name},
    {"api_id", HR_API_URING + 1, hr_api_name},
    {"kind_id", KINDS_MAX, hr_region_kind_name},
    {"cause_id", HR_CAUSE_END, hr_cause_name},
    {"scope_id", 2, scope_name},
    {"side_id", HR_SIDE_END, side_name},
};
#define N_IDS (sizeof(ids) / sizeof(ids[0]))

/* Writes a column as people see it: names instead of ids, and NULL for what is not known. */
static void put_column(const struct hr_ch_column_info *c, bool latest, FILE *to)
{
	bool is_signed = c->type == HR_CH_I32 || c->type == HR_CH_I64;
	bool is_time = latest && c->type == HR_CH_TIME;
	const char *none = is_signed ? "-1" : "toInt64(0)";
	char value[64];

	snprintf(value, sizeof(value), latest ? "argMax(r.%s, seq)" : "r.%s", c->name);
	for (size_t i = 0; i < N_IDS; i++) {
		if (strcmp(c->name, ids[i].column) == 0) {
			put_names(value, ids[i].n, ids[i].name, to);
			fprintf(to, " AS %.*s", (int)(strlen(c->name) - strlen("_id")), c->name);
			return;
		}
	}
	if (is_signed || is_time)
		fprintf(to, "nullIf(%s, %s) AS %s", value, none, c->name);
	else
		fprintf(to, "%s AS %s", value, c->name);
}

/* Writes the own columns of a table; `latest`: of the last row of each process. */
static void put_columns(const char *table, size_t n, bool latest, FILE *to)
{
	for (unsigned t = 0; t < HR_CH_TABLES; t++) {
		const struct hr_ch_table_info *info = &hr_ch_tables[t];

		if (!is_word(table, n, info->name))
			continue;
		for (unsigned i = HR_CH_COMMON; i < info->n_columns; i++) {
			const struct hr_ch_column_info *c = hr_ch_column(info, i);

			if (latest && strcmp(c->name, "proc") == 0) /* the key of the rows */
				continue;
			fputs(i > HR_CH_COMMON + (unsigned)latest ? ", " : "", to);
			put_column(c, latest, to);
		}
	}
}

/* Writes the text of a view, and replaces `$word` and `$word(TABLE)`. */
static void put_view(const struct hr_ch_schema *s, const char *text, size_t n, FILE *to)
{
	for (size_t i = 0; i < n;) {
		const char *word = text + i + 1;
		size_t length = text[i] == '$' ? strspn(word, "abcdefghijklmnopqrstuvwxyz") : 0;

		if (text[i] != '$') {
			fputc(text[i++], to);
			continue;
		}
		i += 1 + length;
		put_word(s, word, length, to);
		if (word[length] == '(') {
			const char *table = word + length + 1;
			size_t bytes = strcspn(table, ")");

			if (is_word(word, length, "rows"))
				put_rows(s, table, bytes, to);
			else
				put_columns(table, bytes, is_word(word, length, "latest"), to);
			i += bytes + 2;
		}
	}
}

/* Prints one view, and on a cluster the table over all its shards. */
static void print_view(const struct hr_ch_schema *s, const char *name, size_t name_bytes,
		       const char *text, size_t n, FILE *to)
{
	bool spread = s->cluster && strncmp(name, "generation_ends", name_bytes) != 0;
	const char *suffix = spread ? "_shard" : "";

	/* A view is replaced, because a later release may have more columns. */
	fprintf(to, "DROP TABLE IF EXISTS `%s`.%.*s%s", s->database, (int)name_bytes, name, suffix);
	fprintf(to, ";\nCREATE VIEW `%s`.%.*s%s", s->database, (int)name_bytes, name, suffix);
	fputs(" AS ", to);
	put_view(s, text, n, to);
	fputs(";\n", to);
	if (!spread)
		return;
	fprintf(to, "DROP TABLE IF EXISTS `%s`.%.*s", s->database, (int)name_bytes, name);
	fprintf(to, ";\nCREATE TABLE `%1$s`.%2$.*3$s", s->database, name, (int)name_bytes);
	fprintf(to,
		" AS `%1$s`.%2$.*3$s_shard ENGINE = Distributed(%4$s, '%1$s', '%2$.*3$s_shard');\n",
		s->database, name, (int)name_bytes, s->cluster);
}

static void print_views(const struct hr_ch_schema *s, FILE *to)
{
	const char *at = strstr(hr_ch_views[0].text, VIEW);

	while (at) {
		const char *name = at + strlen(VIEW), *text = strchr(name, '\n') + 1;
		const char *next = strstr(text, VIEW);
		size_t n = next ? (size_t)(next - text) : strlen(text);

		while (n > 0 && text[n - 1] == '\n')
			n--;
		print_view(s, name, strcspn(name, ":"), text, n, to);
		at = next;
	}
}

void hr_ch_schema_print(const struct hr_ch_schema *s, FILE *to)
{
	fprintf(to, "CREATE DATABASE IF NOT EXISTS `%s`", s->database);
	fputs(";\n", to);
	for (unsigned i = 0; i < HR_CH_TABLES; i++)
		print_table(s, &hr_ch_tables[i], to);
	print_views(s, to);
}
