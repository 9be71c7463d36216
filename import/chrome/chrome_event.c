/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a Chrome trace, by their phase (ph). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/fnv.h"
#include "import/chrome/chrome.h"

#define NAME_BYTES 256u /* of a process */
#define OPEN_MOST  65536u

/* ---- parsing --------------------------------------------------------------------------------- */

struct chrome_member {
	const char *name;
	size_t offset; /* in the struct that gets the value */
};

/* Reads an object, after its '{', up to its end. 0, or an error of hr_json_part_member. */
static int members_read(const char **at, const char *end, const struct chrome_member *list,
			size_t n, void *to)
{
	struct hr_json_part key, value;
	int r;

	while ((r = hr_json_part_member(at, end, &key, &value)) == 1)
		for (size_t i = 0; i < n; i++)
			if (hr_json_part_is(&key, list[i].name))
				*(struct hr_json_part *)(void *)((char *)to + list[i].offset) =
				    value;
	return r;
}

int hr__chrome_event_read(const char **at, const char *end, struct chrome_event *ret)
{
	static const struct chrome_member members[] = {
#define M(name) {#name, offsetof(struct chrome_event, name)}
	    M(ph),  M(name), M(cat), M(pid), M(tid), M(ts),
	    M(dur), M(args), M(id),  M(id2)
#undef M
	};

	*ret = (struct chrome_event){0};
	if (**at != '{')
		return -EBADMSG;
	++*at;
	return members_read(at, end, members, sizeof(members) / sizeof(members[0]), ret);
}

bool hr__chrome_event_is_empty(const char *at)
{
	at++;
	while (*at && strchr(" \n\t\r", *at))
		at++;
	return *at == '}';
}

void hr__chrome_args(const struct hr_json_part *args, struct chrome_args *ret)
{
	static const struct chrome_member members[] = {
#define M(name, member) {name, offsetof(struct chrome_args, member)}
	    M("device", device),       M("stream", stream),
	    M("name", name),	       M("step", step),
	    M("epoch", epoch),	       M("domain", domain),
	    M("category", category),   M("args", args),
	    M("count", count),	       M("sum_ns", sum_ns),
	    M("open", open),	       M("path", path),
	    M("path2", path2),	       M("file_offset", offset),
	    M("bytes", bytes),	       M("errno", error),
	    M("not_returned", cut),    M("scope", scope),
	    M("depth", depth),	       M("tid", tid),
	    M("ppid", ppid),	       M("cpus", cpus),
	    M("first_cpu", first_cpu), M("cpu_quota_milli", quota),
#undef M
	};
	const char *at;

	*ret = (struct chrome_args){0};
	if (args->type != HR_JSON_OBJECT)
		return;
	at = args->p + 1;
	(void)members_read(&at, args->p + args->n, members, sizeof(members) / sizeof(members[0]),
			   ret);
}

uint64_t hr__chrome_key(const struct hr_json_part *a, const struct hr_json_part *b)
{
	uint64_t h = hr_fnv(HR_FNV_BASIS, &a->type, sizeof(a->type));

	if (a->n)
		h = hr_fnv(h, a->p, a->n);
	h = hr_fnv(h, "", 1);
	return b->n ? hr_fnv(h, b->p, b->n) : h;
}

/* ---- slices whose end comes later: stacks of threads (B, E) and of ids (b, e) ---------------- */

/* Copies the texts of an event that are needed at its end. */
static int event_copy(const struct chrome_event *e, struct chrome_open *to)
{
	struct hr_json_part *parts[] = {&to->e.name, &to->e.cat, &to->e.pid, &to->e.tid,
					&to->e.args};
	size_t bytes = 1;
	char *at;

	to->e = *e;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		bytes += parts[i]->n;
	at = to->memory = malloc(bytes);
	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i]->n > 0)
			memcpy(at, parts[i]->p, parts[i]->n);
		parts[i]->p = at;
		at += parts[i]->n;
	}
	return 0;
}

static int open_push(struct chrome_opens *o, uint64_t key, int64_t start_ns,
		     const struct chrome_event *e)
{
	uint32_t i, below = hr_map64_get(&o->last, key);
	struct chrome_open open = {.key = key, .start_ns = start_ns};
	int r;

	open.below = below == HR_MAP64_NONE ? 0 : below + 1;
	if (!o->free_list && o->n == OPEN_MOST)
		return -EBADMSG;
	r = event_copy(e, &open);
	if (r)
		return r;
	if (!o->free_list && !hr_array_reserve(o->list, o->n, o->room)) {
		free(open.memory);
		return -ENOMEM;
	}
	i = o->free_list ? o->free_list - 1 : o->n;
	r = hr_map64_set(&o->last, key, i);
	if (r) {
		free(open.memory);
		return r;
	}
	if (o->free_list)
		o->free_list = o->list[i].below;
	else
		o->n++;
	o->list[i] = open;
	return 0;
}

static void open_take(struct chrome_opens *o, uint32_t i, struct chrome_open *ret)
{
	*ret = o->list[i];
	if (ret->below)
		(void)hr_map64_set(&o->last, ret->key, ret->below - 1); /* the key exists */
	else
		hr_map64_remove(&o->last, ret->key);
	o->list[i] = (struct chrome_open){.below = o->free_list};
	o->free_list = i + 1;
}

/* Takes the last one with this key. The caller frees ->memory. False: none. */
static bool open_pop(struct chrome_opens *o, uint64_t key, struct chrome_open *ret)
{
	uint32_t i = hr_map64_get(&o->last, key);

	if (i == HR_MAP64_NONE)
		return false;
	open_take(o, i, ret);
	return true;
}

/* Takes any one. */
static bool open_pop_any(struct chrome_opens *o, struct chrome_open *ret)
{
	while (o->n > 0) {
		struct chrome_open *last = &o->list[o->n - 1];

		if (last->memory) {
			*ret = *last;
			last->memory = NULL;
			return true;
		}
		o->n--;
	}
	return false;
}

static void opens_done(struct chrome_opens *o)
{
	for (uint32_t i = 0; i < o->n; i++)
		free(o->list[i].memory);
	free(o->list);
	hr_map64_done(&o->last);
}

/* ---- phases ---------------------------------------------------------------------------------- */

static int time_read(struct chrome_trace *c, const struct hr_json_part *ts, int64_t *ret_ns)
{
	if (!hr_json_part_thousandths(ts, ret_ns) || *ret_ns < 0)
		return -EBADMSG;
	if (*ret_ns > c->last_ns)
		c->last_ns = *ret_ns;
	return 0;
}

static int complete_add(struct chrome_trace *c, const struct chrome_event *e)
{
	int64_t start_ns, dur_ns = 0;
	int r = time_read(c, &e->ts, &start_ns);

	if (r)
		return r;
	if (e->dur.type != HR_JSON_NONE && !hr_json_part_thousandths(&e->dur, &dur_ns))
		return -EBADMSG;
	if (dur_ns < 0 || start_ns + dur_ns < start_ns)
		return -EBADMSG;
	if (start_ns + dur_ns > c->last_ns)
		c->last_ns = start_ns + dur_ns;
	return hr__chrome_slice(c, e, start_ns, dur_ns, HR_REGION_RANGE, false);
}

/*
 * The key of a span: its category and id, within its process. A member id2 instead of the id is
 * {"local": ID}, or {"global": ID}, which all processes share.
 */
static uint64_t span_key(const struct chrome_event *e)
{
	uint64_t process = hr__chrome_key(&e->pid, &e->pid);
	struct hr_json_part where, id;
	const char *at;

	if (e->id2.type != HR_JSON_OBJECT)
		return hr__chrome_key(&e->cat, &e->id) ^ process;
	at = e->id2.p + 1;
	if (hr_json_part_member(&at, e->id2.p + e->id2.n, &where, &id) != 1)
		return hr__chrome_key(&e->cat, &e->id) ^ process;
	return hr__chrome_key(&e->cat, &id) ^ hr__chrome_key(&where, &where) ^
	       (hr_json_part_is(&where, "global") ? 0 : process);
}

static int open_add(struct chrome_opens *o, struct chrome_trace *c, const struct chrome_event *e,
		    uint64_t key)
{
	int64_t start_ns;
	int r = time_read(c, &e->ts, &start_ns);

	return r ? r : open_push(o, key, start_ns, e);
}

static int open_end(struct chrome_opens *o, struct chrome_trace *c, const struct chrome_event *e,
		    uint64_t key, uint32_t kind)
{
	struct chrome_open open;
	int64_t end_ns;
	int r = time_read(c, &e->ts, &end_ns);

	if (r)
		return r;
	if (!open_pop(o, key, &open)) {
		c->n_alone++;
		return 0;
	}
	r = end_ns < open.start_ns
		? -EBADMSG
		: hr__chrome_slice(c, &open.e, open.start_ns, end_ns - open.start_ns, kind, false);
	free(open.memory);
	return r;
}

static int mark_add(struct chrome_trace *c, const struct chrome_event *e)
{
	int64_t ns;
	int r;

	/* Marks of torch's profiler itself: "Iteration Start", "Record Window End". */
	if (e->pid.type == HR_JSON_STRING && (e->pid.n == 0 || hr_json_part_is(&e->pid, "Traces") ||
					      hr_json_part_is(&e->pid, "Spans")))
		return 0;
	if (c->own && hr_json_part_is(&e->cat, "note"))
		return hr__chrome_note(c, &e->name);
	r = time_read(c, &e->ts, &ns);
	return r ? r : hr__chrome_slice(c, e, ns, 0, HR_REGION_MARK, false);
}

/* Returns the number after `before` in a text, or -1. */
static int32_t number_after(const char *text, const char *before)
{
	const char *at = strstr(text, before);
	char *end;
	long value;

	if (!at)
		return -1;
	at += strlen(before);
	errno = 0;
	value = strtol(at, &end, 10);
	return end == at || errno || value < 0 || value > INT32_MAX ? -1 : (int32_t)value;
}

/* The tracks of `headrace export` have names such as "rank 3 worker 1 on n1 (pid 7)". */
static void own_process_name(struct hr_import_process *p, const char *name, size_t bytes)
{
	char text[256];
	int32_t pid;

	bytes = bytes < sizeof(text) - 1 ? bytes : sizeof(text) - 1;
	memcpy(text, name, bytes);
	text[bytes] = '\0';
	if (strncmp(text, "rank ", 5) == 0)
		p->rank = number_after(text, "rank ");
	p->worker = number_after(text, " worker ");
	pid = number_after(text, "(pid ");
	if (pid > 0)
		p->pid = pid;
}

/* Returns a number, or 0 if it is absent or out of range. */
static uint32_t small_number(const struct hr_json_part *v)
{
	int64_t value;

	return hr_json_part_int(v, &value) && value > 0 && value <= INT32_MAX ? (uint32_t)value : 0;
}

/* Sets what the export states of a process. */
static int own_process(struct chrome_trace *c, const struct chrome_event *e,
		       const struct chrome_args *args)
{
	uint32_t proc = hr__chrome_process(c, &e->pid);
	struct hr_import_process *p;
	char name[NAME_BYTES];

	if (!proc)
		return -ENOMEM;
	p = hr_import_process_at(c->s, proc);
	p->ppid = (int32_t)small_number(&args->ppid);
	p->cpus = small_number(&args->cpus);
	p->first_cpu = small_number(&args->first_cpu);
	p->cpu_quota_milli = small_number(&args->quota);
	own_process_name(p, name, hr_json_part_text(&args->name, name));
	return 0;
}

/* A track that is not the own one of a thread, and that of a thread with another id. */
static int own_thread(struct chrome_trace *c, const struct chrome_event *e,
		      const struct chrome_args *args)
{
	int64_t tid;

	if (!hr_json_part_int(&args->tid, &tid) || tid < 0 || tid >= UINT32_MAX)
		return 0;
	return hr_map64_set(&c->thread_of, hr__chrome_key(&e->pid, &e->tid), (uint32_t)tid);
}

static int metadata_add(struct chrome_trace *c, const struct chrome_event *e)
{
	bool thread = hr_json_part_is(&e->name, "thread_name");
	struct chrome_args args;

	if (e->pid.type != HR_JSON_NUMBER || !(thread || hr_json_part_is(&e->name, "process_name")))
		return 0;
	hr__chrome_args(&e->args, &args);
	if (!c->own || args.name.type != HR_JSON_STRING || args.name.n == 0 ||
	    args.name.n > NAME_BYTES)
		return 0;
	return thread ? own_thread(c, e, &args) : own_process(c, e, &args);
}

int hr__chrome_event(struct chrome_trace *c, const struct chrome_event *e)
{
	if (e->ph.type != HR_JSON_STRING || e->ph.n != 1)
		return -EBADMSG;
	switch (e->ph.p[0]) {
	case 'X':
		return complete_add(c, e);
	case 'B':
		return open_add(&c->opens, c, e, hr__chrome_key(&e->pid, &e->tid));
	case 'E':
		return open_end(&c->opens, c, e, hr__chrome_key(&e->pid, &e->tid), HR_REGION_RANGE);
	case 'b':
		return open_add(&c->spans, c, e, span_key(e));
	case 'e':
		return open_end(&c->spans, c, e, span_key(e), HR_REGION_SPAN);
	case 'i':
	case 'I':
	case 'R':
	case 'n':
		return mark_add(c, e);
	case 'M':
		return metadata_add(c, e);
	case 's':
	case 't':
	case 'f': /* flows connect other events */
		return 0;
	case 'C': /* headrace computes its own ones from the operations */
		c->n_other += !c->own;
		return 0;
	default:
		c->n_other++;
		return 0;
	}
}

/* ---- the end --------------------------------------------------------------------------------- */

static int opens_end(struct chrome_trace *c, struct chrome_opens *o, uint32_t kind)
{
	struct chrome_open open;
	int r = 0;

	while (!r && open_pop_any(o, &open)) {
		r = hr__chrome_slice(c, &open.e, open.start_ns, c->last_ns - open.start_ns, kind,
				     true);
		free(open.memory);
		r = r == -EBADMSG ? 0 : r;
	}
	return r;
}

int hr__chrome_finish(struct chrome_trace *c)
{
	int r = opens_end(c, &c->opens, HR_REGION_RANGE);

	if (!r)
		r = opens_end(c, &c->spans, HR_REGION_SPAN);
	if (!r && c->s)
		r = hr_import_region_flush(c->s);
	if (!r && c->main) {
		struct hr_import_process *p = hr_import_process_at(c->s, c->main);

		p->rank = c->rank >= 0 ? c->rank : p->rank;
		p->world_size = c->world_size ? c->world_size : p->world_size;
	}
	return r;
}

void hr__chrome_done(struct chrome_trace *c)
{
	opens_done(&c->opens);
	opens_done(&c->spans);
	hr_map64_done(&c->process_of);
	hr_map64_done(&c->thread_of);
	for (size_t i = 0; i < sizeof(c->texts) / sizeof(c->texts[0]); i++)
		free(c->texts[i]);
	free(c->host);
}
