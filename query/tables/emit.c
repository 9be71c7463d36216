/* SPDX-License-Identifier: Apache-2.0 */
#include "query/tables/emit.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

struct emit_job {
	const struct hr_emit *e;
	const uint32_t *rows;
	uint32_t n;
	struct hr_query_out *out;
};

/* Emitters copy pointers of `j`: otherwise the compiler reads them again after each store. */
typedef void (*emitter)(const struct emit_job *j);

enum op_text { OP_NAME, OP_API, OP_CLASS, OP_TEXTS };
static duckdb_string_t op_texts[OP_TEXTS][HR_OP_MAX];
static uint8_t op_rules[HR_OP_MAX];
static pthread_once_t op_once = PTHREAD_ONCE_INIT;

static duckdb_string_t constant(const char *text)
{
	return text != NULL ? hr_string(text, strlen(text)) : hr_string(NULL, 0);
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

/* ---- columns that are constant in a stream or task ---- */

static void emit_text(const struct emit_job *j, duckdb_string_t text)
{
	duckdb_string_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++)
		to[k] = text;
}

static void emit_cluster(const struct emit_job *j)
{
	emit_text(j, j->e->st->cluster);
}

static void emit_job(const struct emit_job *j)
{
	emit_text(j, j->e->st->job);
}

static void emit_node(const struct emit_job *j)
{
	emit_text(j, j->e->st->node);
}

static void emit_attempt(const struct emit_job *j)
{
	int64_t *to = j->out->data, attempt = j->e->st->s->attempt;

	for (uint32_t k = 0, n = j->n; k < n; k++)
		to[k] = attempt;
}

static void emit_task(const struct emit_job *j, size_t member)
{
	const char *base = (const char *)j->e->tasks + member;
	const uint32_t *rows = j->rows, *task = j->e->c.task;
	int64_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++) {
		memcpy(&to[k], base + task[rows[k]] * sizeof(struct hr_task_values), sizeof(to[k]));
		if (to[k] == HR_TASK_NULL)
			hr__out_null(j->out, k);
	}
}

#define TASK_EMITTER(name)                                                                         \
	static void emit_##name(const struct emit_job *j)                                          \
	{                                                                                          \
		emit_task(j, offsetof(struct hr_task_values, name));                               \
	}
TASK_EMITTER(proc)
TASK_EMITTER(pid)
TASK_EMITTER(rank)
TASK_EMITTER(local_rank)
TASK_EMITTER(worker)
TASK_EMITTER(loader)
TASK_EMITTER(loader_worker)
TASK_EMITTER(tid)

/* ---- columns of the operation ---- */

static void emit_op_text(const struct emit_job *j, enum op_text which)
{
	const duckdb_string_t *texts = op_texts[which];
	const uint32_t *rows = j->rows;
	const uint16_t *op = j->e->c.op;
	duckdb_string_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++) {
		to[k] = texts[op[rows[k]] % HR_OP_MAX];
		if (to[k].value.inlined.length == 0)
			hr__out_null(j->out, k);
	}
}

static void emit_op(const struct emit_job *j)
{
	emit_op_text(j, OP_NAME);
}

static void emit_api(const struct emit_job *j)
{
	emit_op_text(j, OP_API);
}

static void emit_class(const struct emit_job *j)
{
	emit_op_text(j, OP_CLASS);
}

static void emit_bit(const struct emit_job *j, unsigned bit, const char *set, const char *clear)
{
	duckdb_string_t choice[2] = {constant(clear), constant(set)};
	const uint32_t *rows = j->rows;
	const uint16_t *bits = j->e->c.bits;
	duckdb_string_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++)
		to[k] = choice[(bits[rows[k]] & bit) != 0];
}

static void emit_scope(const struct emit_job *j)
{
	emit_bit(j, HR_EV_SCOPE_RUNTIME, "runtime", "data");
}

static void emit_source(const struct emit_job *j)
{
	emit_bit(j, HR_EV_BPF, "bpf", "shim");
}

static void emit_fd(const struct emit_job *j)
{
	const uint32_t *rows = j->rows;
	const int32_t *fd = j->e->c.fd;
	int64_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++) {
		to[k] = fd[rows[k]];
		if (to[k] < 0)
			hr__out_null(j->out, k);
	}
}

static void emit_file_offset(const struct emit_job *j)
{
	const uint32_t *rows = j->rows;
	const int64_t *offset = j->e->c.offset;
	int64_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++) {
		to[k] = offset[rows[k]];
		if (to[k] == HR_OFFSET_NONE)
			hr__out_null(j->out, k);
	}
}

static void emit_asked(const struct emit_job *j)
{
	const uint32_t *rows = j->rows;
	const uint64_t *asked = j->e->c.asked;
	uint64_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++) {
		to[k] = asked[rows[k]];
		if (to[k] == HR_ASKED_NONE)
			hr__out_null(j->out, k);
	}
}

/* An operation that did not return has unknown bytes: NULL. */
static void emit_bytes(const struct emit_job *j)
{
	const struct hr_columns c = j->e->c;
	const uint32_t *rows = j->rows;
	int64_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++) {
		uint32_t i = rows[k];
		unsigned rule = op_rules[c.op[i] % HR_OP_MAX];

		if (rule == HR_BYTES_NONE || c.ret[i] == HR_RET_NONE)
			hr__out_null(j->out, k);
		else
			to[k] = (int64_t)hr_bytes_moved(rule, c.ret[i], c.asked[i],
							c.flags != NULL ? c.flags[i] : 0);
	}
}

/* The column has the result that the program got, which is -1 for all failed calls. */
static void emit_ret(const struct emit_job *j)
{
	const uint32_t *rows = j->rows;
	const int64_t *from = j->e->c.ret;
	int64_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++) {
		int64_t ret = from[rows[k]];

		to[k] = ret < 0 ? -1 : ret;
		if (ret == HR_RET_NONE)
			hr__out_null(j->out, k);
	}
}

static void emit_errno(const struct emit_job *j)
{
	const uint32_t *rows = j->rows;
	const int64_t *from = j->e->c.ret;
	int64_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++) {
		int64_t ret = from[rows[k]];

		if (ret >= 0 || ret == HR_RET_NONE || ret == HR_RET_FAILED)
			hr__out_null(j->out, k);
		else
			to[k] = -ret;
	}
}

static void emit_flags(const struct emit_job *j)
{
	const uint32_t *rows = j->rows, *flags = j->e->c.flags;
	int64_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++)
		to[k] = flags[rows[k]];
}

static void emit_start_ns(const struct emit_job *j)
{
	const uint32_t *rows = j->rows;
	const uint64_t *start_ns = j->e->c.start_ns;
	uint64_t wall_ns = (uint64_t)hr_wall_ns(j->e->st, 0);
	int64_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++)
		to[k] = (int64_t)(wall_ns + start_ns[rows[k]]);
}

static void emit_end_ns(const struct emit_job *j)
{
	const uint32_t *rows = j->rows;
	const uint64_t *start_ns = j->e->c.start_ns, *dur_ns = j->e->c.dur_ns;
	uint64_t wall_ns = (uint64_t)hr_wall_ns(j->e->st, 0);
	int64_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++)
		to[k] = (int64_t)(wall_ns + start_ns[rows[k]] + dur_ns[rows[k]]);
}

static void emit_dur_ns(const struct emit_job *j)
{
	const uint32_t *rows = j->rows;
	const uint64_t *dur_ns = j->e->c.dur_ns;
	int64_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++)
		to[k] = (int64_t)dur_ns[rows[k]];
}

/* ---- columns of the file ---- */

static void emit_name(const struct emit_job *j, const duckdb_string_t *text, const uint32_t *file)
{
	const uint32_t *rows = j->rows;
	duckdb_string_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++) {
		to[k] = text[file[rows[k]]];
		if (to[k].value.inlined.length == 0)
			hr__out_null(j->out, k);
	}
}

static void emit_path(const struct emit_job *j)
{
	emit_name(j, j->e->st->names.path, j->e->c.file);
}

static void emit_path2(const struct emit_job *j)
{
	emit_name(j, j->e->st->names.path, j->e->c.file2);
}

static void emit_base(const struct emit_job *j)
{
	emit_name(j, j->e->st->names.base, j->e->c.file);
}

static void emit_pattern(const struct emit_job *j)
{
	const struct hr_query_names *names = &j->e->st->names;
	const uint32_t *rows = j->rows, *file = j->e->c.file, *patterns = names->pattern;
	const duckdb_string_t *texts = names->patterns;
	duckdb_string_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++) {
		uint32_t pattern = patterns[file[rows[k]]];

		if (pattern == 0)
			hr__out_null(j->out, k);
		else
			to[k] = texts[pattern];
	}
}

static void emit_mount_text(const struct emit_job *j, size_t member)
{
	const char *base = (const char *)j->e->st->mounts + member;
	const uint32_t *rows = j->rows, *file = j->e->c.file, *mounts = j->e->st->names.mount;
	duckdb_string_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++) {
		uint32_t mount = mounts[file[rows[k]]];

		if (mount == 0)
			hr__out_null(j->out, k);
		else
			memcpy(&to[k], base + mount * sizeof(struct hr_qmount), sizeof(to[k]));
	}
}

static void emit_mount(const struct emit_job *j)
{
	emit_mount_text(j, offsetof(struct hr_qmount, path));
}

static void emit_fs_type(const struct emit_job *j)
{
	emit_mount_text(j, offsetof(struct hr_qmount, fs_type));
}

static void emit_file_id(const struct emit_job *j)
{
	const uint64_t *hash = j->e->st->names.hash;
	const uint32_t *rows = j->rows, *file = j->e->c.file;
	uint64_t *to = j->out->data;

	for (uint32_t k = 0, n = j->n; k < n; k++) {
		to[k] = hash[file[rows[k]]];
		if (to[k] == 0)
			hr__out_null(j->out, k);
	}
}

/* ---- the table of columns ---- */

#define C(column) HR_COL_BIT(HR_COL_##column)

struct event_column {
	emitter emit;
	uint32_t want;
	unsigned names;
	enum hr_emit_key key;
};

static const struct event_column columns[HR_EVENTS_END] = {
    [HR_EVENTS_cluster] = {emit_cluster, 0, 0, HR_KEY_STREAM},
    [HR_EVENTS_job] = {emit_job, 0, 0, HR_KEY_STREAM},
    [HR_EVENTS_attempt] = {emit_attempt, 0, 0, HR_KEY_STREAM},
    [HR_EVENTS_node] = {emit_node, 0, 0, HR_KEY_STREAM},
    [HR_EVENTS_proc] = {emit_proc, 0, 0, HR_KEY_TASK},
    [HR_EVENTS_pid] = {emit_pid, 0, 0, HR_KEY_TASK},
    [HR_EVENTS_rank] = {emit_rank, 0, 0, HR_KEY_TASK},
    [HR_EVENTS_local_rank] = {emit_local_rank, 0, 0, HR_KEY_TASK},
    [HR_EVENTS_worker] = {emit_worker, 0, 0, HR_KEY_TASK},
    [HR_EVENTS_loader] = {emit_loader, 0, 0, HR_KEY_TASK},
    [HR_EVENTS_loader_worker] = {emit_loader_worker, 0, 0, HR_KEY_TASK},
    [HR_EVENTS_tid] = {emit_tid, 0, 0, HR_KEY_TASK},
    [HR_EVENTS_op] = {emit_op, C(OP), 0, HR_KEY_OP},
    [HR_EVENTS_api] = {emit_api, C(OP), 0, HR_KEY_OP},
    [HR_EVENTS_class] = {emit_class, C(OP), 0, HR_KEY_OP},
    [HR_EVENTS_scope] = {emit_scope, C(BITS), 0, HR_KEY_BITS},
    [HR_EVENTS_path] = {emit_path, C(FILE), HR_NAMES_PATH, HR_KEY_FILE},
    [HR_EVENTS_path2] = {emit_path2, C(FILE2), HR_NAMES_PATH, HR_KEY_NONE},
    [HR_EVENTS_mount] = {emit_mount, C(FILE), HR_NAMES_INFO, HR_KEY_MOUNT},
    [HR_EVENTS_fs_type] = {emit_fs_type, C(FILE), HR_NAMES_INFO, HR_KEY_MOUNT},
    [HR_EVENTS_base] = {emit_base, C(FILE), HR_NAMES_BASE, HR_KEY_FILE},
    [HR_EVENTS_pattern] = {emit_pattern, C(FILE), HR_NAMES_PATTERN, HR_KEY_PATTERN},
    [HR_EVENTS_fd] = {emit_fd, C(FD), 0, HR_KEY_NONE},
    [HR_EVENTS_file_offset] = {emit_file_offset, C(OFFSET), 0, HR_KEY_NONE},
    [HR_EVENTS_asked] = {emit_asked, C(ASKED), 0, HR_KEY_NONE},
    [HR_EVENTS_bytes] = {emit_bytes, C(OP) | C(RET) | C(ASKED) | C(FLAGS), 0, HR_KEY_NONE},
    [HR_EVENTS_ret] = {emit_ret, C(RET), 0, HR_KEY_NONE},
    [HR_EVENTS_errno] = {emit_errno, C(RET), 0, HR_KEY_NONE},
    [HR_EVENTS_flags] = {emit_flags, C(FLAGS), 0, HR_KEY_NONE},
    [HR_EVENTS_start_ns] = {emit_start_ns, C(START), 0, HR_KEY_NONE},
    [HR_EVENTS_end_ns] = {emit_end_ns, C(START) | C(DUR), 0, HR_KEY_NONE},
    [HR_EVENTS_dur_ns] = {emit_dur_ns, C(DUR), 0, HR_KEY_NONE},
    [HR_EVENTS_source] = {emit_source, C(BITS), 0, HR_KEY_BITS},
    [HR_EVENTS_file_id] = {emit_file_id, C(FILE), HR_NAMES_INFO, HR_KEY_FILE},
};

void hr__emit_needs(unsigned column, uint32_t *want, unsigned *names)
{
	if (column >= HR_EVENTS_END)
		return;
	*want |= columns[column].want;
	*names |= columns[column].names;
}

enum hr_emit_key hr__emit_key(unsigned column)
{
	return columns[column].key;
}

static int64_t plus1(uint32_t value)
{
	return value == 0 ? HR_TASK_NULL : (int64_t)value - 1;
}

static int64_t emit_known(int32_t value)
{
	return value < 0 ? HR_TASK_NULL : value;
}

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
		const struct hr_process *p = hr_stream_process(e->st->s, e->c.tasks[i].proc);
		struct hr_task_values *v = &e->tasks[i];

		v->proc = hr_stream_proc(e->st->s, e->c.tasks[i].proc);
		v->tid = e->c.tasks[i].tid;
		v->pid = p != NULL ? p->msg->pid : HR_TASK_NULL;
		v->rank = p != NULL ? emit_known(p->rank) : HR_TASK_NULL;
		v->local_rank = p != NULL ? emit_known(p->local_rank) : HR_TASK_NULL;
		v->worker = p != NULL ? emit_known(p->worker) : HR_TASK_NULL;
		v->loader = p != NULL ? plus1(p->msg->loader_plus1) : HR_TASK_NULL;
		v->loader_worker = p != NULL ? plus1(p->msg->loader_worker_plus1) : HR_TASK_NULL;
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

void hr__emit_column(const struct hr_emit *e, unsigned column, const uint32_t *rows, uint32_t n,
		     struct hr_query_out *out)
{
	struct emit_job j = {e, rows, n, out};

	columns[column].emit(&j);
}
