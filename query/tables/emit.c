/* SPDX-License-Identifier: Apache-2.0 */
#include "query/tables/emit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum op_text { OP_NAME, OP_API, OP_CLASS, OP_TEXTS };
static duckdb_string_t op_texts[OP_TEXTS][HR_OP_MAX];
static uint8_t op_rules[HR_OP_MAX];
static pthread_once_t op_once = PTHREAD_ONCE_INIT;
static const duckdb_string_t no_text = {0};

static duckdb_string_t constant(const char *text)
{
	return text != NULL ? hr_string(text, strlen(text)) : no_text;
}

static void make_op_texts(void)
{
	for (unsigned op = 0; op < HR_OP_MAX; op++) {
		const struct hr_op_info *info = hr_op_info((uint16_t)op);

		op_texts[OP_NAME][op] = constant(info->name);
		op_texts[OP_API][op] = constant(hr_api_name(info->api));
		op_texts[OP_CLASS][op] = constant(hr_class_name(info->class));
		op_rules[op] = info->bytes_rule;
	}
}

/* ---- columns ---- */

static inline int64_t bytes_moved(const struct hr_columns *c, uint32_t i)
{
	return (int64_t)hr_bytes_moved(op_rules[c->op[i] % HR_OP_MAX], c->ret[i], c->asked[i],
				       c->flags != NULL ? c->flags[i] : 0);
}

/* An operation that did not return has unknown bytes. */
static inline bool bytes_unknown(const struct hr_columns *c, uint32_t i)
{
	return op_rules[c->op[i] % HR_OP_MAX] == HR_BYTES_NONE || c->ret[i] == HR_RET_NONE;
}

static inline bool errno_unknown(int64_t ret)
{
	return ret >= 0 || ret == HR_RET_NONE || ret == HR_RET_FAILED;
}

/*
 * X(TABLE, column, type, value, whether it is NULL, WANT, NAMES, KEY, constants)
 *
 * The value is that of row `i` of the decoded columns `c` in the stream `st`; NULL can depend on
 * the value `v`. WANT, NAMES and KEY: see struct hr_event_column. The constants are read before the
 * loop over the rows: otherwise the compiler reads them again after each store.
 */
/* NOLINTBEGIN(bugprone-macro-parentheses): arguments are types, values and declarations */
/* clang-format off */
#define C(column) HR_COL_BIT(HR_COL_##column)
#define NO_TEXT	  (v.value.inlined.length == 0)

#define OF_STREAM(X, name, type, value)                                                            \
	X(STREAM, name, type, same, false, 0, 0, STREAM, const type same = value;)
#define OF_TASK(X, table, name)                                                                    \
	X(table, name, int64_t, tasks[c.task[i]].values[HR_##table##_##name - HR_STREAM_END],      \
	  v == HR_VALUE_NULL, 0, 0, TASK, const struct hr_task_values *tasks = e->tasks;)
#define OF_OP(X, name, text)                                                                       \
	X(EVENTS, name, duckdb_string_t, op_texts[text][c.op[i] % HR_OP_MAX], NO_TEXT, C(OP), 0,   \
	  OP, )
#define OF_BIT(X, name, bit, set, clear)                                                           \
	X(EVENTS, name, duckdb_string_t, choice[(c.bits[i] & (bit)) != 0], false, C(BITS), 0,      \
	  BITS, const duckdb_string_t choice[2] = {constant(clear), constant(set)};)
#define OF_MOUNT(X, name, member)                                                                  \
	X(EVENTS, name, duckdb_string_t, of[c.file[i]] ? mounts[of[c.file[i]]].member : no_text,   \
	  of[c.file[i]] == 0, C(FILE), HR_NAMES_INFO, MOUNT,                                       \
	  const uint32_t *of = st->names.mount; const struct hr_qmount *mounts = st->mounts;)

#define COLUMNS(X)                                                                                 \
	OF_STREAM(X, cluster, duckdb_string_t, st->cluster)                                        \
	OF_STREAM(X, job, duckdb_string_t, st->job)                                                \
	OF_STREAM(X, attempt, int64_t, st->s->attempt)                                             \
	OF_STREAM(X, node, duckdb_string_t, st->node)                                              \
	OF_TASK(X, PROCESS, proc)                                                                  \
	OF_TASK(X, PROCESS, pid)                                                                   \
	OF_TASK(X, PROCESS, rank)                                                                  \
	OF_TASK(X, PROCESS, local_rank)                                                            \
	OF_TASK(X, PROCESS, worker)                                                                \
	OF_TASK(X, PROCESS, loader)                                                                \
	OF_TASK(X, PROCESS, loader_worker)                                                         \
	OF_TASK(X, EVENTS, tid)                                                                    \
	OF_OP(X, op, OP_NAME)                                                                      \
	OF_OP(X, api, OP_API)                                                                      \
	OF_OP(X, class, OP_CLASS)                                                                  \
	OF_BIT(X, scope, HR_EV_SCOPE_RUNTIME, "runtime", "data")                                   \
	X(EVENTS, path, duckdb_string_t, texts[c.file[i]], NO_TEXT, C(FILE), HR_NAMES_PATH, FILE,  \
	  const duckdb_string_t *texts = st->names.path;)                                          \
	X(EVENTS, path2, duckdb_string_t, texts[c.file2[i]], NO_TEXT, C(FILE2), HR_NAMES_PATH,     \
	  NONE, const duckdb_string_t *texts = st->names.path;)                                    \
	OF_MOUNT(X, mount, path)                                                                   \
	OF_MOUNT(X, fs_type, fs_type)                                                              \
	X(EVENTS, base, duckdb_string_t, texts[c.file[i]], NO_TEXT, C(FILE), HR_NAMES_BASE, FILE,  \
	  const duckdb_string_t *texts = st->names.base;)                                          \
	X(EVENTS, pattern, duckdb_string_t, of[c.file[i]] ? texts[of[c.file[i]]] : no_text,        \
	  of[c.file[i]] == 0, C(FILE), HR_NAMES_PATTERN, PATTERN,                                  \
	  const uint32_t *of = st->names.pattern;                                                  \
	  const duckdb_string_t *texts = st->names.patterns;)                                      \
	X(EVENTS, fd, int64_t, c.fd[i], v < 0, C(FD), 0, NONE, )                                   \
	X(EVENTS, file_offset, int64_t, c.offset[i], v == HR_OFFSET_NONE, C(OFFSET), 0, NONE, )    \
	X(EVENTS, asked, uint64_t, c.asked[i], v == HR_ASKED_NONE, C(ASKED), 0, NONE, )            \
	X(EVENTS, bytes, int64_t, bytes_moved(&c, i), bytes_unknown(&c, i),                        \
	  C(OP) | C(RET) | C(ASKED) | C(FLAGS), 0, NONE, )                                         \
	/* the result that the program got, which is -1 for all failed calls */                    \
	X(EVENTS, ret, int64_t, c.ret[i] < 0 ? -1 : c.ret[i], c.ret[i] == HR_RET_NONE, C(RET), 0,  \
	  NONE, )                                                                                  \
	X(EVENTS, errno, uint64_t, -(uint64_t)c.ret[i], errno_unknown(c.ret[i]), C(RET), 0,        \
	  NONE, )                                                                                  \
	X(EVENTS, flags, int64_t, c.flags[i], false, C(FLAGS), 0, NONE, )                          \
	X(EVENTS, start_ns, uint64_t, wall_ns + c.start_ns[i], false, C(START), 0, NONE,           \
	  const uint64_t wall_ns = (uint64_t)hr_wall_ns(st, 0);)                                   \
	X(EVENTS, end_ns, uint64_t, wall_ns + c.start_ns[i] + c.dur_ns[i], false,                  \
	  C(START) | C(DUR), 0, NONE, const uint64_t wall_ns = (uint64_t)hr_wall_ns(st, 0);)       \
	X(EVENTS, dur_ns, uint64_t, c.dur_ns[i], false, C(DUR), 0, NONE, )                         \
	OF_BIT(X, source, HR_EV_BPF, "bpf", "shim")                                                \
	X(EVENTS, file_id, uint64_t, hash[c.file[i]], v == 0, C(FILE), HR_NAMES_INFO, FILE,        \
	  const uint64_t *hash = st->names.hash;)
/* clang-format on */

#define EMITTER(table, name, type, value, null, want, names, key, ...)                             \
	static void emit_##name(const struct hr_emit *e, const uint32_t *rows, uint32_t n,         \
				struct hr_query_out *out)                                          \
	{                                                                                          \
		const struct hr_columns c = e->c;                                                  \
		const struct hr_qstream *st = e->st;                                               \
		type *to = out->data;                                                              \
		__VA_ARGS__                                                                        \
                                                                                                   \
		    (void)                                                                         \
		c;                                                                                 \
		(void)st;                                                                          \
		for (uint32_t k = 0; k < n; k++) {                                                 \
			const uint32_t i = rows[k];                                                \
			const type v = value;                                                      \
			const bool is_null = null;                                                 \
                                                                                                   \
			(void)i;                                                                   \
			to[k] = v;                                                                 \
			if (is_null)                                                               \
				hr__out_null(out, k);                                              \
		}                                                                                  \
	}
COLUMNS(EMITTER)

#define ENTRY(table, name, type, value, null, want, names, key, ...)                               \
	[HR_##table##_##name] = {emit_##name, want, names, HR_KEY_##key},
const struct hr_event_column hr__event_columns[HR_EVENTS_END] = {COLUMNS(ENTRY)};

#define ONE(...) +1
_Static_assert(0 COLUMNS(ONE) == HR_EVENTS_END, "each column of `events` has a row above");
/* NOLINTEND(bugprone-macro-parentheses) */

/* ---- batches ---- */

int hr__emit_tasks(struct hr_emit *e)
{
	pthread_once(&op_once, make_op_texts);
	if (e->c.n_tasks > e->tasks_size) {
		free(e->tasks);
		e->tasks_size = 0;
		e->tasks = malloc(e->c.n_tasks * sizeof(*e->tasks));
		if (e->tasks == NULL)
			return -ENOMEM;
		e->tasks_size = e->c.n_tasks;
	}
	for (uint32_t i = 0; i < e->c.n_tasks; i++) {
		int64_t *values = e->tasks[i].values;

		hr__process_values(e->st->s, e->c.tasks[i].proc, values);
		values[HR_EVENTS_tid - HR_STREAM_END] = e->c.tasks[i].tid;
	}
	return 0;
}

static int number_files(const struct hr_emit *e, bool by_id, uint32_t n_files,
			const uint32_t **file, uint32_t **room)
{
	uint32_t count = e->c.count, highest = 0, id = 0, number = 0;
	const uint32_t *ids = *file;

	if (ids == NULL)
		return 0;
	for (uint32_t i = 0; i < count; i++)
		highest = ids[i] > highest ? ids[i] : highest;
	if (by_id && highest <= n_files)
		return 0;
	if (*room == NULL)
		*room = malloc(HR_BATCH_EVENTS * sizeof(**room));
	if (*room == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		if (ids[i] != id) {
			id = ids[i];
			number = hr_stream_file_number(e->st->s, id);
		}
		(*room)[i] = number;
	}
	*file = *room;
	return 0;
}

int hr__emit_files(struct hr_emit *e)
{
	struct hr_file_info last;
	uint32_t n_files;
	bool by_id;
	int r;

	if (e->c.file == NULL && e->c.file2 == NULL)
		return 0;
	r = hr_stream_files(e->st->s, &n_files);
	if (r < 0)
		return r;
	/* Usually, file ids have no gaps, so they equal the file numbers. */
	by_id = hr_stream_file_at(e->st->s, n_files, false, &last) == 0 && last.id == n_files;
	r = number_files(e, by_id, n_files, &e->c.file, &e->numbers[0]);
	return r < 0 ? r : number_files(e, by_id, n_files, &e->c.file2, &e->numbers[1]);
}

void hr__emit_done(struct hr_emit *e)
{
	free(e->tasks);
	free(e->numbers[0]);
	free(e->numbers[1]);
}

/* ---- groups of rows with equal values ---- */

#define SCOPE_AND_SOURCE (HR_EV_SCOPE_RUNTIME | HR_EV_BPF)

static void file_keys(const struct hr_emit *e, const uint32_t *key_of_file, const uint32_t *rows,
		      uint32_t n, uint32_t *values)
{
	const uint32_t *file_of = e->c.file;

	for (uint32_t k = 0; k < n; k++)
		values[k] = key_of_file[file_of[rows[k]]];
}

void hr__emit_keys(const struct hr_emit *e, enum hr_emit_key key, const uint32_t *rows, uint32_t n,
		   uint32_t *values)
{
	const uint32_t *task = e->c.task;
	const uint16_t *bits = e->c.bits, *op = e->c.op;

	switch (key) {
	case HR_KEY_MOUNT:
		file_keys(e, e->st->names.mount, rows, n, values);
		break;
	case HR_KEY_PATTERN:
		file_keys(e, e->st->names.pattern, rows, n, values);
		break;
	case HR_KEY_BITS:
		for (uint32_t k = 0; k < n; k++)
			values[k] = bits[rows[k]] & SCOPE_AND_SOURCE;
		break;
	case HR_KEY_OP:
		for (uint32_t k = 0; k < n; k++)
			values[k] = op[rows[k]];
		break;
	default:
		for (uint32_t k = 0; k < n; k++)
			values[k] = task[rows[k]];
	}
}

/* Writes n single NULLs, because DuckDB's C API cannot make a constant NULL of a given type. */
static void emit_nulls(uint32_t n, enum hr_sql_type type, duckdb_vector vector)
{
	uint64_t *validity;

	hr_duckdb.vector_ensure_validity_writable(vector);
	validity = hr_duckdb.vector_get_validity(vector);
	memset(validity, 0, (n + 63) / 64 * sizeof(*validity));
	memset(hr_duckdb.vector_get_data(vector), 0,
	       n * (type == HR_SQL_VARCHAR ? sizeof(duckdb_string_t) : sizeof(int64_t)));
}

void hr__emit_constant(const struct hr_emit *e, unsigned column, uint32_t row, uint32_t n,
		       duckdb_vector vector)
{
	enum hr_sql_type type = hr_table_column(HR_TABLE_EVENTS, column)->type;
	union {
		duckdb_string_t text;
		int64_t number;
		uint64_t id;
	} cell = {.number = 0};
	uint64_t valid = 1;
	struct hr_query_out out = {.data = &cell, .validity = &valid};
	duckdb_value value;

	hr__event_columns[column].emit(e, &row, 1, &out);
	if (valid == 0) {
		emit_nulls(n, type, vector);
		return;
	}
	if (type == HR_SQL_VARCHAR)
		value = hr_duckdb.create_varchar_length(hr_string_text(&cell.text),
							cell.text.value.inlined.length);
	else if (type == HR_SQL_UBIGINT)
		value = hr_duckdb.create_uint64(cell.id);
	else
		value = hr_duckdb.create_int64(cell.number);
	hr_duckdb.vector_reference_value(vector, value);
	hr_duckdb.destroy_value(&value);
}
