/* SPDX-License-Identifier: Apache-2.0 */
/* A slice becomes a region of a thread or, in headrace's own files, an operation. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/fnv.h"
#include "common/gpu.h"
#include "common/ops.h"
#include "common/text.h"
#include "import/chrome/chrome.h"

#define GPU_PID	   "CUDA functions" /* of torch without kineto */
#define STEP_NAME  "ProfilerStep#"
#define WAIT_NAME  "enumerate(DataLoader)#"
#define OPTIM_NAME "Optimizer.step#"

enum { TEXT_DOMAIN, TEXT_CATEGORY, TEXT_NAME, TEXT_ARGS };

/* ---- processes ------------------------------------------------------------------------------- */

static int stream_open(struct chrome_trace *c, int32_t pid)
{
	const struct hr_import_origin origin = {.node = c->host, .pid = pid, .rank = c->rank};

	return c->s ? 0 : hr_import_stream_of(c->f, &origin, &c->s);
}

/* Returns the pid of a number; 0: it is a text, or not a pid of a program. */
static int32_t pid_read(const struct hr_json_part *pid)
{
	int64_t value;

	return pid->type == HR_JSON_NUMBER && hr_json_part_int(pid, &value) && value > 0 &&
		       value <= INT32_MAX
		   ? (int32_t)value
		   : 0;
}

uint32_t hr__chrome_process(struct chrome_trace *c, const struct hr_json_part *pid)
{
	uint64_t key = hr__chrome_key(pid, pid);
	uint32_t proc = hr_map64_get(&c->process_of, key);
	int32_t number = pid_read(pid);

	if (proc != HR_MAP64_NONE)
		return proc;
	if (stream_open(c, number))
		return 0;
	/* Events without a pid, and those of GPUs, belong to the first process that has one. */
	if (c->main && ((c->torch && !c->main_named) || !number)) {
		proc = c->main;
		if (number)
			hr_import_process_at(c->s, proc)->pid = number;
	} else {
		proc = hr_import_process(c->s, number);
		c->main = c->main ? c->main : proc;
	}
	c->main_named |= number != 0;
	return proc && hr_map64_set(&c->process_of, key, proc) == 0 ? proc : 0;
}

/* Whether a category is of the calls of a program, not of what its accelerator does. */
static bool host_is(const struct hr_json_part *cat)
{
	static const char *const ends[] = {"_runtime", "_driver"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t n = strlen(ends[i]);

		if (cat->n > n && memcmp(cat->p + cat->n - n, ends[i], n) == 0)
			return true;
	}
	return false;
}

/*
 * Returns the domain of the work of an accelerator. No bytes: the slice is of the program. The
 * categories of torch's profiler for GPUs do not name their maker; those for others begin with it.
 */
static struct hr_import_slice device_domain(const struct hr_json_part *cat)
{
	static const char *const gpu[] = {
	    "kernel",	 "gpu_memcpy", "gpu_memset", "gpu_user_annotation",
	    "cuda_sync", "Kernel",     "Memcpy",     "Memset"};
	static const char *const others[] = {"mtia", "hpu", "gcu", "musa", "npu", "mlu"};

	if (hr_json_part_is_any(cat, gpu, sizeof(gpu) / sizeof(gpu[0])))
		return (struct hr_import_slice){"cuda", 4};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		size_t n = strlen(others[i]);

		if (cat->n > n && cat->p[n] == '_' && memcmp(cat->p, others[i], n) == 0 &&
		    !host_is(cat))
			return (struct hr_import_slice){others[i], n};
	}
	return (struct hr_import_slice){0};
}

static uint32_t small_number(const struct hr_json_part *first, const struct hr_json_part *second)
{
	int64_t value;

	if (hr_json_part_int(first, &value) || hr_json_part_int(second, &value))
		return value >= 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
	return 0;
}

/* Returns the thread of a slice. 0: no memory. */
static uint32_t thread_find(struct chrome_trace *c, const struct chrome_event *e,
			    const struct chrome_args *args, bool gpu)
{
	static const struct hr_json_part none;
	int64_t tid;
	uint32_t proc;

	if (gpu) {
		proc = hr__chrome_process(c, &none);
		tid = hr_gpu_tid(small_number(&args->device, &e->pid),
				 small_number(&args->stream, &e->tid));
	} else {
		uint32_t own = hr_map64_get(&c->thread_of, hr__chrome_key(&e->pid, &e->tid));

		proc = hr__chrome_process(c, &e->pid);
		if (own != HR_MAP64_NONE)
			tid = own;
		else if (e->tid.type == HR_JSON_NONE)
			tid = 0;
		else if (!hr_json_part_int(&e->tid, &tid) || tid < 0 || tid >= HR_GPU_TID)
			tid = (int64_t)(hr_fnv(HR_FNV_BASIS, e->tid.p, e->tid.n) % HR_GPU_TID);
	}
	return proc ? hr_import_thread(c->s, proc, (uint32_t)tid) : 0;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Reads a text, which headrace's own files have in an escaped form. */
static int text_take(struct chrome_trace *c, unsigned which, const struct hr_json_part *v,
		     size_t most, struct hr_import_slice *ret)
{
	long bytes;

	*ret = (struct hr_import_slice){v->p, v->n};
	if (v->escaped) {
		if (!hr_array_fit(c->texts[which], v->n + 1, c->text_room[which]))
			return -ENOMEM;
		ret->p = c->texts[which];
		ret->n = hr_json_part_text(v, c->texts[which]);
		c->texts[which][ret->n] = '\0';
		if (c->own && (bytes = hr_text_unescape(c->texts[which])) >= 0)
			ret->n = (size_t)bytes;
	}
	ret->n = hr_import_cut(ret->p, ret->n, most);
	return 0;
}

/* Arguments that only number the events of torch's profiler. Each event has other ones. */
static bool argument_is_number(const struct hr_json_part *key)
{
	static const char *const names[] = {
	    "External id",   "Ev Idx",	  "Record function id", "Sequence number",
	    "Fwd thread id", "Python id", "Python parent id",	"Python thread"};

	return hr_json_part_is_any(key, names, sizeof(names) / sizeof(names[0]));
}

static void argument_write(char *to, size_t *n, const struct hr_json_part *key,
			   const struct hr_json_part *value)
{
	size_t quotes = value->type == HR_JSON_STRING;

	to[*n] = *n ? ',' : '{';
	++*n;
	to[(*n)++] = '"';
	memcpy(to + *n, key->p, key->n);
	*n += key->n;
	to[(*n)++] = '"';
	to[(*n)++] = ':';
	memcpy(to + *n, value->p - quotes, value->n + 2 * quotes);
	*n += value->n + 2 * quotes;
}

/* Copies the arguments without numbers of events, and without blanks between members. */
static int args_take(struct chrome_trace *c, const struct hr_json_part *args,
		     struct hr_import_slice *ret)
{
	const char *at;
	struct hr_json_part key, value;
	size_t n = 0;

	if (args->type != HR_JSON_OBJECT)
		return 0;
	at = args->p + 1;
	if (!hr_array_fit(c->texts[TEXT_ARGS], args->n + 2, c->text_room[TEXT_ARGS]))
		return -ENOMEM;
	while (hr_json_part_member(&at, args->p + args->n, &key, &value) == 1)
		if (!argument_is_number(&key) && !value.nan)
			argument_write(c->texts[TEXT_ARGS], &n, &key, &value);
	if (n == 0)
		return 0;
	c->texts[TEXT_ARGS][n++] = '}';
	if (n <= HR_IMPORT_ARGS_MOST)
		*ret = (struct hr_import_slice){c->texts[TEXT_ARGS], n};
	return 0;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static bool name_begins(const struct hr_json_part *name, const char *with)
{
	return name->n > strlen(with) && memcmp(name->p, with, strlen(with)) == 0;
}

/* Sets the kind of a range that torch's profiler names. */
static void kind_find(const struct hr_json_part *name, bool gpu, struct hr_region *g)
{
	struct hr_json_part number = {.type = HR_JSON_STRING};
	int64_t step;

	if (name_begins(name, STEP_NAME)) {
		number.p = name->p + strlen(STEP_NAME);
		number.n = name->n - strlen(STEP_NAME);
		if (!hr_json_part_int(&number, &step) || step < 0)
			return;
		g->step = (uint64_t)step;
		g->kind = gpu ? HR_REGION_RANGE : HR_REGION_STEP;
	} else if (!gpu && name_begins(name, WAIT_NAME)) {
		g->kind = HR_REGION_INPUT_WAIT;
	} else if (!gpu && name_begins(name, OPTIM_NAME)) {
		g->kind = HR_REGION_OPTIMIZER;
	}
}

static uint64_t own_number(const struct hr_json_part *v, uint64_t otherwise)
{
	int64_t value;

	return hr_json_part_int(v, &value) && value >= 0 ? (uint64_t)value : otherwise;
}

/* ---- headrace's own files -------------------------------------------------------------------- */

static int own_region(struct chrome_trace *c, uint32_t thread, const struct chrome_event *e,
		      const struct chrome_args *args, struct hr_import_region *g)
{
	int r;

	g->region.step = own_number(&args->step, HR_REGION_UNKNOWN);
	g->region.epoch = own_number(&args->epoch, HR_REGION_UNKNOWN);
	g->region.count = own_number(&args->count, 1);
	g->region.count += g->region.count == 0;
	if (g->region.count > 1)
		g->region.dur_ns = own_number(&args->sum_ns, 0);
	g->region.open = args->open.type == HR_JSON_WORD;
	g->region.depth = (uint32_t)own_number(&args->depth, 0);
	r = text_take(c, TEXT_NAME, &e->name, HR_IMPORT_NAME_MOST, &g->name);
	if (!r)
		r = text_take(c, TEXT_DOMAIN, &args->domain, HR_IMPORT_NAME_MOST, &g->domain);
	if (!r)
		r = text_take(c, TEXT_CATEGORY, &args->category, HR_IMPORT_NAME_MOST, &g->category);
	if (!r)
		r = text_take(c, TEXT_ARGS, &args->args, HR_IMPORT_ARGS_MOST, &g->args);
	if (!r)
		r = hr_import_region(c->s, thread, g);
	return r;
}

int hr__chrome_note(struct chrome_trace *c, const struct hr_json_part *text)
{
	struct hr_import_slice note;
	int r = text_take(c, TEXT_NAME, text, HR_IMPORT_NAME_MOST, &note);

	if (!r)
		hr_import_missing(c->f, HR_LOSS_IMPORT_NOTED, 1, "its recording states: %.*s",
				  (int)note.n, note.p);
	return r;
}

/* Returns a file by the text of an argument. 0: none. */
static int own_path(struct chrome_trace *c, const struct hr_json_part *path, bool runtime,
		    uint32_t *ret)
{
	struct hr_import_slice text = {0};
	int r = path->type == HR_JSON_STRING ? text_take(c, TEXT_ARGS, path, SIZE_MAX, &text) : 0;

	*ret = r || text.n == 0 ? 0 : hr_import_path(c->s, text.p, text.n, runtime);
	return r;
}

static int own_operation(struct chrome_trace *c, uint32_t thread, const struct chrome_event *e,
			 const struct chrome_args *args, const struct hr_region *times)
{
	struct hr_event event = hr_event_none();
	bool runtime = hr_json_part_is(&args->scope, "runtime");
	const struct hr_op_info *info;
	int64_t value = 0;
	int r;

	event.op = hr_import_op(e->name.p, e->name.n);
	if (!event.op)
		return -EBADMSG;
	info = hr_op_info(event.op);
	event.start_ns = times->start_ns;
	event.dur_ns = times->dur_ns;
	event.bits = runtime ? HR_EV_SCOPE_RUNTIME : 0;
	if (args->cut.type != HR_JSON_NONE) {
		event.ret = HR_RET_NONE;
	} else if (hr_json_part_int(&args->error, &value)) {
		event.ret = hr_ret_of_errno(value);
	} else if (hr_json_part_int(&args->bytes, &value) && value >= 0) {
		event.ret = value;
		if (info->bytes_rule == HR_BYTES_ASKED)
			event.asked = (uint64_t)value;
		event.flags = info->bytes_rule == HR_BYTES_ITEMS; /* items of one byte */
	} else {
		event.ret = 0; /* the export has no result of calls that move no bytes */
	}
	if (hr_json_part_int(&args->offset, &value))
		event.offset = value;
	r = own_path(c, &args->path, runtime, &event.file);
	if (!r)
		r = own_path(c, &args->path2, runtime, &event.file2);
	return r ? r : hr_import_operation(c->s, thread, &event);
}

/* ---- all slices ------------------------------------------------------------------------------ */

int hr__chrome_slice(struct chrome_trace *c, const struct chrome_event *e, int64_t start_ns,
		     int64_t dur_ns, uint32_t kind, bool open)
{
	struct hr_import_region g = hr_import_region_none(kind);
	struct chrome_args args;
	uint32_t thread;
	bool gpu;
	int r;

	g.region.open = open;
	g.region.start_ns = (uint64_t)start_ns + HR_IMPORT_CLOCK_NS;
	g.region.dur_ns = (uint64_t)dur_ns;
	g.domain = device_domain(&e->cat);
	if (hr_json_part_is(&e->pid, GPU_PID))
		g.domain = (struct hr_import_slice){"cuda", 4};
	gpu = g.domain.n > 0;

	if (e->name.type != HR_JSON_STRING || hr_json_part_is(&e->cat, "Trace"))
		return e->name.type == HR_JSON_STRING ? 0 : -EBADMSG;
	hr__chrome_args(&e->args, &args);
	thread = thread_find(c, e, &args, gpu && !c->own);
	if (!thread)
		return -ENOMEM;
	if (c->own) {
		g.region.kind = hr_region_kind_by_name(e->cat.p, e->cat.n);
		return g.region.kind ? own_region(c, thread, e, &args, &g)
				     : own_operation(c, thread, e, &args, &g.region);
	}
	if (kind == HR_REGION_RANGE && c->torch)
		kind_find(&e->name, gpu, &g.region);
	if (!gpu && c->torch)
		g.domain = (struct hr_import_slice){"torch", 5};
	r = text_take(c, TEXT_NAME, &e->name, HR_IMPORT_NAME_MOST, &g.name);
	if (!r)
		r = text_take(c, TEXT_CATEGORY, &e->cat, HR_IMPORT_NAME_MOST, &g.category);
	if (!r)
		r = args_take(c, &e->args, &g.args);
	return r ? r : hr_import_region_nest(c->s, thread, &g);
}
