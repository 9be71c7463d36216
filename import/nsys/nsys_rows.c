/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the tables of Nsight Systems: ranges, work of GPUs, and calls of the operating system. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/gpu.h"
#include "common/ops.h"
#include "common/text.h"
#include "common/json_part.h"
#include "import/nsys/nsys.h"

#define NSYS_RANGES "eventType IN (34, 59, 60, 70, 71)"
#define TID_OF(g)   ((uint32_t)((uint64_t)(g)&0xffffff))

enum { EVENT_CATEGORY = 33, EVENT_MARK = 34, EVENT_PUSH_POP = 59, EVENT_START_END = 60 };
enum { EVENT_TEXT_PUSH_POP = 70, EVENT_TEXT_START_END = 71 }; /* of text files that nsys read */
enum { EVENT_DOMAIN = 75 };

/* ---- values ---------------------------------------------------------------------------------- */

static bool value_is_null(sqlite3_stmt *row, int column)
{
	return sqlite3_column_type(row, column) == SQLITE_NULL;
}

/* Returns the text of a column, of which headrace's own files have an escaped form. */
static struct hr_import_slice text_of(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	int bytes = sqlite3_column_bytes(row, column);

	return (struct hr_import_slice){text, text ? (size_t)bytes : 0};
}

/* Removes the escapes of a text of headrace's own files. The result is in the buffer `which`. */
static int text_unescape(struct nsys *n, enum nsys_buffer which, struct hr_import_slice *text)
{
	long bytes;

	if (!n->own_file || !text->n || !memchr(text->p, '\\', text->n))
		return 0;
	if (!hr_array_fit(n->texts[which], text->n + 1, n->text_room[which]))
		return -ENOMEM;
	memcpy(n->texts[which], text->p, text->n);
	n->texts[which][text->n] = '\0';
	bytes = hr_text_unescape(n->texts[which]);
	if (bytes >= 0)
		*text = (struct hr_import_slice){n->texts[which], (size_t)bytes};
	return 0;
}

/* Reads a name, which is cut at the begin of a character. */
static int name_read(struct nsys *n, enum nsys_buffer which, sqlite3_stmt *row, int column,
		     struct hr_import_slice *ret)
{
	int r;

	*ret = text_of(row, column);
	r = text_unescape(n, which, ret);
	ret->n = hr_import_cut(ret->p, ret->n, HR_IMPORT_NAME_MOST);
	return r;
}

/* Returns a text of StringIds, until the next call. */
static struct hr_import_slice string_find(struct nsys *n, sqlite3_stmt *row, int column)
{
	struct hr_import_slice text = {0};

	if (!n->string || value_is_null(row, column))
		return text;
	sqlite3_reset(n->string);
	sqlite3_bind_int64(n->string, 1, sqlite3_column_int64(row, column));
	if (sqlite3_step(n->string) != SQLITE_ROW || name_read(n, NSYS_NAME, n->string, 0, &text))
		return (struct hr_import_slice){0};
	return text;
}

static struct hr_import_slice literal(const char *text)
{
	return (struct hr_import_slice){text, strlen(text)};
}

/* Reads start and end. An end that is NULL is the last moment of the trace. */
static int times_read(const struct nsys *n, sqlite3_stmt *row, struct hr_region *g)
{
	int64_t start = sqlite3_column_int64(row, 0), end = sqlite3_column_int64(row, 1);

	if (value_is_null(row, 1)) {
		g->open = true;
		end = n->last_ns > start ? n->last_ns : start;
	}
	if (value_is_null(row, 0) || start < -n->before_ns || end < start ||
	    end > INT64_MAX - n->before_ns)
		return -EBADMSG;
	g->start_ns = (uint64_t)(start + n->before_ns) + HR_IMPORT_CLOCK_NS;
	g->dur_ns = (uint64_t)(end - start);
	return 0;
}

/* Keeps a text as the last one of n->names. */
static int name_add(struct nsys *n, const struct hr_import_slice *text)
{
	if (!hr_array_reserve(n->names, n->n_names, n->names_room))
		return -ENOMEM;
	n->names[n->n_names] = strndup(text->p, text->n);
	if (!n->names[n->n_names])
		return -ENOMEM;
	n->n_names++;
	return 0;
}

/* The process is added with its first row in another table: without data, it has no times. */
static int processes_row(struct nsys *n, sqlite3_stmt *row)
{
	uint64_t key = hr__nsys_process_key(sqlite3_column_int64(row, 0));
	struct hr_import_slice name;
	int r = name_read(n, NSYS_NAME, row, 1, &name);

	if (r || value_is_null(row, 0) || name.n == 0)
		return r;
	r = name_add(n, &name);
	return r ? r : hr_map64_set(&n->exe_of, key, n->n_names - 1);
}

const struct nsys_table hr__nsys_processes = {
    .name = "PROCESSES", .columns = {"globalPid", "name"}, .row = processes_row};

/* ---- NVTX ------------------------------------------------------------------------------------ */

static uint64_t name_key(int64_t domain, int64_t category)
{
	return (uint64_t)domain << 32 ^ (uint64_t)category;
}

/* A row that names a domain (75) or a category (33). Category -1: of a domain. */
static int names_row(struct nsys *n, sqlite3_stmt *row)
{
	bool domain = sqlite3_column_int64(row, 1) == EVENT_DOMAIN;
	uint64_t key = name_key(sqlite3_column_int64(row, 2),
				domain ? UINT32_MAX : sqlite3_column_int64(row, 3));
	struct hr_import_slice text;
	int r = name_read(n, NSYS_NAME, row, 4, &text);

	if (text.n == 0)
		text = string_find(n, row, 5);
	if (r || text.n == 0)
		return r;
	r = name_add(n, &text);
	return r ? r : hr_map64_set(&n->named, key, n->n_names - 1);
}

const struct nsys_table hr__nsys_names = {
    .name = "NVTX_EVENTS",
    .columns = {"start", "eventType", "domainId", "category", "text", "textId"},
    .row = names_row,
    .where = "eventType IN (33, 75)"};

static struct hr_import_slice name_find(const struct nsys *n, int64_t domain, int64_t category)
{
	uint32_t i = hr_map64_get(&n->named, name_key(domain, category));

	return i == HR_MAP64_NONE ? (struct hr_import_slice){0} : literal(n->names[i]);
}

/* Sets the rank and worker of a process, if the columns have them. */
static void rank_read(struct nsys *n, sqlite3_stmt *row, int column, int64_t global)
{
	struct hr_import_process *p = hr__nsys_process(n, global);

	if (!value_is_null(row, column))
		p->rank = sqlite3_column_int(row, column);
	if (!value_is_null(row, column + 1))
		p->worker = sqlite3_column_int(row, column + 1);
}

/*
 * Reads what headrace's own export knows of a region. Of a step, an epoch and their like, the kind
 * replaces the category in NVTX_EVENTS. Returns 1, 0 if HEADRACE_REGIONS has no row of the region,
 * or -errno.
 */
static int own_read(struct nsys *n, sqlite3_stmt *row, int64_t global, struct hr_import_region *ret)
{
	struct hr_region *g = &ret->region;
	struct hr_import_slice name;
	uint32_t kind;

	if (!n->own || value_is_null(row, 3))
		return 0;
	sqlite3_reset(n->own);
	sqlite3_bind_int64(n->own, 1, sqlite3_column_int64(row, 3));
	if (sqlite3_step(n->own) != SQLITE_ROW)
		return 0;
	name = text_of(n->own, 0);
	kind = hr_region_kind_by_name(name.p, name.n);
	if (kind)
		g->kind = kind;
	if (!value_is_null(n->own, 1))
		g->step = (uint64_t)sqlite3_column_int64(n->own, 1);
	if (!value_is_null(n->own, 2))
		g->epoch = (uint64_t)sqlite3_column_int64(n->own, 2);
	if (sqlite3_column_int64(n->own, 3) > 1)
		g->count = (uint64_t)sqlite3_column_int64(n->own, 3);
	g->open |= sqlite3_column_int64(n->own, 4) > 0;
	rank_read(n, n->own, 5, global);
	if (g->kind > HR_REGION_MARK) {
		int r = name_read(n, NSYS_CATEGORY, n->own, 7, &ret->category);

		if (r)
			return r;
	}
	g->depth = (uint32_t)sqlite3_column_int64(n->own, 8);
	return 1;
}

static bool text_is_object(const struct hr_import_slice *text, struct hr_import_slice *ret)
{
	const char *at = text->p;
	struct hr_json_part json;

	if (text->n == 0 || text->n > HR_IMPORT_ARGS_MOST ||
	    hr_json_part_read(&at, text->p + text->n, &json) != 0 || json.type != HR_JSON_OBJECT ||
	    json.nan)
		return false;
	*ret = (struct hr_import_slice){json.p, json.n};
	return true;
}

/*
 * Reads the payload as JSON: an object as it is, or a number, written to `room`. The export escapes
 * an object only if it has other bytes than backslashes to escape: the result is no JSON.
 */
static int payload_read(struct nsys *n, sqlite3_stmt *row, char *room, size_t bytes,
			struct hr_import_slice *ret)
{
	struct hr_import_slice text = text_of(row, 9);
	int at = 0, r;

	if (text_is_object(&text, ret))
		return 0;
	r = text_unescape(n, NSYS_ARGS, &text);
	if (r || text_is_object(&text, ret))
		return r;
	for (int c = 10; c < 16 && at == 0; c++)
		if (sqlite3_column_type(row, c) == SQLITE_INTEGER)
			at = snprintf(room, bytes, "{\"payload\":%" PRId64 "}",
				      (int64_t)sqlite3_column_int64(row, c));
		else if (sqlite3_column_type(row, c) == SQLITE_FLOAT &&
			 isfinite(sqlite3_column_double(row, c))) /* JSON has no infinity */
			at = snprintf(room, bytes, "{\"payload\":%.15g}",
				      sqlite3_column_double(row, c));
	*ret = (struct hr_import_slice){room, (size_t)at};
	return 0;
}

/* Reads name, domain, category and arguments. `room`: for a payload that is a number. */
static int texts_read(struct nsys *n, sqlite3_stmt *row, struct hr_import_region *g, char *room,
		      size_t bytes)
{
	int r = name_read(n, NSYS_NAME, row, 5, &g->name);

	if (!r)
		r = payload_read(n, row, room, bytes, &g->args);
	if (g->name.n == 0)
		g->name = string_find(n, row, 6);
	g->domain = name_find(n, sqlite3_column_int64(row, 7), UINT32_MAX);
	if (!value_is_null(row, 8))
		g->category =
		    name_find(n, sqlite3_column_int64(row, 7), sqlite3_column_int64(row, 8));
	return r;
}

static int ranges_row(struct nsys *n, sqlite3_stmt *row)
{
	int64_t type = sqlite3_column_int64(row, 2), tid = sqlite3_column_int64(row, 4);
	struct hr_import_region g = hr_import_region_none(
	    type == EVENT_MARK					      ? HR_REGION_MARK
	    : type == EVENT_START_END || type == EVENT_TEXT_START_END ? HR_REGION_SPAN
								      : HR_REGION_RANGE);
	uint32_t thread;
	char payload[64];
	int own, r = hr__nsys_thread(n, tid, TID_OF(tid), &thread);

	if (!r)
		r = times_read(n, row, &g.region);
	if (r)
		return r;
	if (type == EVENT_MARK) {
		g.region.dur_ns = 0;
		g.region.open = false;
	}
	r = texts_read(n, row, &g, payload, sizeof(payload));
	own = r ? r : own_read(n, row, tid, &g);
	if (own < 0)
		return own;
	return own ? hr_import_region(n->at->s, thread, &g)
		   : hr_import_region_nest(n->at->s, thread, &g);
}

const struct nsys_table hr__nsys_ranges = {
    .name = "NVTX_EVENTS",
    .columns = {"start", "end", "eventType", "rangeId", "globalTid", "text", "textId", "domainId",
		"category", "jsonText", "uint64Value", "int64Value", "doubleValue", "uint32Value",
		"int32Value", "floatValue"},
    .row = ranges_row,
    .where = NSYS_RANGES};

/* ---- GPUs ------------------------------------------------------------------------------------ */

#define GPU_COLUMNS "start", "end", "deviceId", "streamId", "correlationId", "globalPid"

/* Columns 0 to 5 are GPU_COLUMNS. */
static int gpu_add(struct nsys *n, sqlite3_stmt *row, const char *category,
		   struct hr_import_slice name, const char *more)
{
	struct hr_import_region g = hr_import_region_none(HR_REGION_RANGE);
	uint32_t device = (uint32_t)sqlite3_column_int64(row, 2);
	uint32_t stream = (uint32_t)sqlite3_column_int64(row, 3);
	uint32_t thread;
	char args[256];
	int r =
	    hr__nsys_thread(n, sqlite3_column_int64(row, 5), hr_gpu_tid(device, stream), &thread);

	if (!r)
		r = times_read(n, row, &g.region);
	if (r)
		return r;
	g.name = name;
	g.category = literal(category);
	g.domain = literal("cuda");
	g.args.p = args;
	g.args.n = (size_t)snprintf(args, sizeof(args),
				    "{\"device\":%u,\"stream\":%u,\"correlation\":%" PRId64 "%s}",
				    device, stream, (int64_t)sqlite3_column_int64(row, 4), more);
	return hr_import_region_nest(n->at->s, thread, &g);
}

static int kernels_row(struct nsys *n, sqlite3_stmt *row)
{
	struct hr_import_slice name = string_find(n, row, 6);
	char more[128];

	if (name.n == 0)
		name = string_find(n, row, 7);
	snprintf(more, sizeof(more), ",\"grid\":[%d,%d,%d],\"block\":[%d,%d,%d]",
		 sqlite3_column_int(row, 8), sqlite3_column_int(row, 9),
		 sqlite3_column_int(row, 10), sqlite3_column_int(row, 11),
		 sqlite3_column_int(row, 12), sqlite3_column_int(row, 13));
	return gpu_add(n, row, "kernel", name, more);
}

const struct nsys_table hr__nsys_kernels = {.name = "CUPTI_ACTIVITY_KIND_KERNEL",
					    .columns = {GPU_COLUMNS, "demangledName", "shortName",
							"gridX", "gridY", "gridZ", "blockX",
							"blockY", "blockZ"},
					    .row = kernels_row};

static int memcpys_row(struct nsys *n, sqlite3_stmt *row)
{
	static const char *const kinds[] = {
	    [1] = "Memcpy HtoD", [2] = "Memcpy DtoH", [8] = "Memcpy DtoD", [10] = "Memcpy PtoP"};
	int64_t kind = sqlite3_column_int64(row, 7);
	bool known = kind >= 0 && kind < (int64_t)(sizeof(kinds) / sizeof(kinds[0])) && kinds[kind];
	char more[64];

	snprintf(more, sizeof(more), ",\"bytes\":%" PRId64, (int64_t)sqlite3_column_int64(row, 6));
	return gpu_add(n, row, "gpu_memcpy", literal(known ? kinds[kind] : "Memcpy"), more);
}

const struct nsys_table hr__nsys_memcpys = {.name = "CUPTI_ACTIVITY_KIND_MEMCPY",
					    .columns = {GPU_COLUMNS, "bytes", "copyKind"},
					    .row = memcpys_row};

static int memsets_row(struct nsys *n, sqlite3_stmt *row)
{
	char more[64];

	snprintf(more, sizeof(more), ",\"bytes\":%" PRId64, (int64_t)sqlite3_column_int64(row, 6));
	return gpu_add(n, row, "gpu_memset", literal("Memset"), more);
}

const struct nsys_table hr__nsys_memsets = {
    .name = "CUPTI_ACTIVITY_KIND_MEMSET", .columns = {GPU_COLUMNS, "bytes"}, .row = memsets_row};

/* A launch of a graph, whose kernels nsys does not record unless --cuda-graph-trace=node. */
static int graphs_row(struct nsys *n, sqlite3_stmt *row)
{
	char name[48] = "graph", more[64] = "";

	if (!value_is_null(row, 6)) {
		int64_t graph = sqlite3_column_int64(row, 6);

		snprintf(name, sizeof(name), "graph %" PRId64, graph);
		snprintf(more, sizeof(more), ",\"graph\":%" PRId64, graph);
	}
	return gpu_add(n, row, "cuda_graph", literal(name), more);
}

const struct nsys_table hr__nsys_graphs = {.name = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
					   .columns = {GPU_COLUMNS, "graphId"},
					   .row = graphs_row};

static int syncs_row(struct nsys *n, sqlite3_stmt *row)
{
	return gpu_add(n, row, "cuda_sync", literal("Synchronize"), "");
}

const struct nsys_table hr__nsys_syncs = {
    .name = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", .columns = {GPU_COLUMNS}, .row = syncs_row};

static int runtime_row(struct nsys *n, sqlite3_stmt *row)
{
	struct hr_import_region g = hr_import_region_none(HR_REGION_RANGE);
	int64_t tid = sqlite3_column_int64(row, 2);
	uint32_t thread;
	char args[64];
	int r = hr__nsys_thread(n, tid, TID_OF(tid), &thread);

	if (!r)
		r = times_read(n, row, &g.region);
	if (r)
		return r;
	g.name = string_find(n, row, 4);
	g.category = literal("cuda_runtime");
	g.domain = literal("cuda");
	g.args.p = args;
	g.args.n = (size_t)snprintf(args, sizeof(args), "{\"correlation\":%" PRId64 "}",
				    (int64_t)sqlite3_column_int64(row, 3));
	return hr_import_region_nest(n->at->s, thread, &g);
}

const struct nsys_table hr__nsys_runtime = {
    .name = "CUPTI_ACTIVITY_KIND_RUNTIME",
    .columns = {"start", "end", "globalTid", "correlationId", "nameId"},
    .row = runtime_row};

/* ---- calls ----------------------------------------------------------------------------------- */

/* Returns the operation with this name. 0: the call is no file I/O. */
static int op_find(struct nsys *n, sqlite3_stmt *row, int column, uint16_t *ret)
{
	uint64_t key = (uint64_t)sqlite3_column_int64(row, column);
	uint32_t op = hr_map64_get(&n->op_of, key);
	struct hr_import_slice name;

	if (op == HR_MAP64_NONE) {
		name = string_find(n, row, column);
		op = hr_import_op(name.p, name.n);
		if (hr_map64_set(&n->op_of, key, op))
			return -ENOMEM;
	}
	*ret = (uint16_t)op;
	return 0;
}

/* Columns 0 to 3: start, end, globalTid, nameId. Returns 1 and the event, or 0: no file I/O. */
static int call_read(struct nsys *n, sqlite3_stmt *row, struct hr_event *e, uint32_t *ret_thread)
{
	struct hr_region times = {0};
	int64_t tid = sqlite3_column_int64(row, 2);
	int r = op_find(n, row, 3, &e->op);

	if (r)
		return r;
	if (!e->op) {
		n->n_other++;
		return 0;
	}
	r = times_read(n, row, &times);
	if (!r)
		r = hr__nsys_thread(n, tid, TID_OF(tid), ret_thread);
	if (r)
		return r;
	e->start_ns = times.start_ns;
	e->dur_ns = times.dur_ns;
	return 1;
}

static int calls_row(struct nsys *n, sqlite3_stmt *row)
{
	struct hr_event e = hr_event_none();
	uint32_t thread;
	int r = call_read(n, row, &e, &thread);

	if (r <= 0)
		return r;
	e.ret = sqlite3_column_int64(row, 4);
	if (e.ret < 0)
		e.ret = HR_RET_FAILED;
	return hr_import_operation(n->at->s, thread, &e);
}

const struct nsys_table hr__nsys_calls = {
    .name = "OSRT_API",
    .columns = {"start", "end", "globalTid", "nameId", "returnValue"},
    .row = calls_row};

static int path_find(struct nsys *n, sqlite3_stmt *row, int column, bool runtime, uint32_t *ret)
{
	struct hr_import_slice path = text_of(row, column);
	int r = text_unescape(n, NSYS_PATH, &path);

	*ret = r || path.n == 0 ? 0 : hr_import_path(n->at->s, path.p, path.n, runtime);
	return r;
}

static bool text_is(sqlite3_stmt *row, int column, const char *text)
{
	const char *value = (const char *)sqlite3_column_text(row, column);

	return value && strcmp(value, text) == 0;
}

static int own_calls_row(struct nsys *n, sqlite3_stmt *row)
{
	struct hr_event e = hr_event_none();
	const struct hr_op_info *info;
	uint32_t thread;
	int64_t error;
	bool runtime;
	int r = call_read(n, row, &e, &thread);

	if (r <= 0)
		return r;
	info = hr_op_info(e.op);
	rank_read(n, row, 11, sqlite3_column_int64(row, 2));
	runtime = text_is(row, 10, "runtime");
	e.bits = (uint16_t)((runtime ? HR_EV_SCOPE_RUNTIME : 0) |
			    (text_is(row, 13, "bpf") ? HR_EV_BPF : 0));
	r = path_find(n, row, 4, runtime, &e.file);
	if (!r)
		r = path_find(n, row, 5, runtime, &e.file2);
	if (r)
		return r;
	if (!value_is_null(row, 6))
		e.offset = sqlite3_column_int64(row, 6);
	e.ret = value_is_null(row, 8) ? HR_RET_NONE : sqlite3_column_int64(row, 8);
	error = sqlite3_column_int64(row, 9);
	if (e.ret < 0 && e.ret != HR_RET_NONE)
		e.ret = hr_ret_of_errno(error);
	else if (!value_is_null(row, 7) && info->bytes_rule == HR_BYTES_ASKED)
		e.asked = (uint64_t)sqlite3_column_int64(row, 7);
	else if (!value_is_null(row, 7) && e.ret > 0 && info->bytes_rule == HR_BYTES_ITEMS)
		e.flags = (uint32_t)(sqlite3_column_int64(row, 7) / e.ret);
	else if (!value_is_null(row, 7) && e.ret != HR_RET_NONE && info->bytes_rule == HR_BYTES_RET)
		e.ret = sqlite3_column_int64(row, 7);
	return hr_import_operation(n->at->s, thread, &e);
}

const struct nsys_table hr__nsys_own_calls = {
    .name = "HEADRACE_IO",
    .columns = {"start", "end", "globalTid", "nameId", "path", "path2", "offset", "bytes", "ret",
		"errno", "scope", "rank", "worker", "source"},
    .row = own_calls_row};
