/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of files, and the helpers of counters. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "export/darshan/darshan_internal.h"

/* ---- names ---- */

/* Finds or adds the file of a path. Returns its index in d->names; UINT32_MAX: no memory. */
static uint32_t name_index(struct hr__darshan *d, const uint8_t *path, uint32_t bytes)
{
	uint64_t id = hr_darshan_id(path, bytes);
	uint32_t i = hr_map64_get(&d->name_by_id, id);

	if (i != HR_MAP64_NONE)
		return i;
	i = (uint32_t)d->n_names;
	if (!hr_array_fit(d->names, d->n_names + 1, d->names_room) ||
	    hr_map64_set(&d->name_by_id, id, i) < 0)
		return UINT32_MAX;
	d->names[d->n_names++] = (struct hr__darshan_name){id, path, bytes, false};
	return i;
}

/* Returns the index of the name of file `number`; UINT32_MAX: no memory. */
static uint32_t file_name(struct hr__darshan *d, const struct hr_stream *s, uint32_t number)
{
	struct hr_file_info info = {0};
	uint32_t bytes;
	char *text;
	int r = hr_stream_file_at(s, number, true, &info);

	if (r == 0 && info.path_bytes > 0) {
		bytes = info.path_bytes;
		return name_index(d, info.path,
				  bytes < HR_DARSHAN_PATH_BYTES ? bytes : HR_DARSHAN_PATH_BYTES);
	}
	text = hr_arena_get(&d->memory, 64);
	if (text == NULL || r == -ENOMEM)
		return UINT32_MAX;
	bytes = (uint32_t)snprintf(text, 64, "<lost path %016llx>", (unsigned long long)info.hash);
	return name_index(d, (const uint8_t *)text, bytes);
}

static int stream_names(struct hr__darshan *d, uint32_t index)
{
	const struct hr_stream *s = d->x->walk->streams[index].s;
	uint32_t n, *names;
	int r = hr_stream_files(s, &n);

	if (r < 0)
		return r;
	names = calloc((size_t)n + 1, sizeof(*names));
	d->file_names[index] = names;
	if (names == NULL)
		return -ENOMEM;
	for (uint32_t i = 1; i <= n; i++) {
		names[i] = file_name(d, s, i);
		if (names[i] == UINT32_MAX)
			return -ENOMEM;
	}
	return 0;
}

int hr__darshan_files_init(struct hr__darshan *d)
{
	static const char unknown[] = "<unknown file>";
	int r = 0;

	d->file_names = calloc(d->x->walk->n_streams, sizeof(*d->file_names));
	if (d->file_names == NULL)
		return -ENOMEM;
	/* Index 0 is that of files that are in no Paths frame. */
	if (name_index(d, (const uint8_t *)unknown, sizeof(unknown) - 1) != 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->x->walk->n_streams && r == 0; i++)
		r = stream_names(d, i);
	return r;
}

void hr__darshan_files_done(struct hr__darshan *d)
{
	for (size_t i = 0; d->file_names != NULL && i < d->x->walk->n_streams; i++)
		free(d->file_names[i]);
	free(d->file_names);
	free(d->names);
	free(d->uses);
	hr_map64_done(&d->name_by_id);
	hr_map64_done(&d->use_by_key);
	hr_arena_free(&d->memory);
}

/* ---- streams ---- */

int hr__darshan_stream_begin(struct hr__darshan *d, uint32_t index)
{
	d->stream = &d->x->walk->streams[index];
	d->stream_index = index;
	d->processes = calloc(d->stream->s->n_processes + 1, sizeof(*d->processes));
	return d->processes != NULL ? 0 : -ENOMEM;
}

static void process_done(struct hr__darshan_process *p)
{
	hr_map64_done(&p->by_file);
	free(p->states);
	*p = (struct hr__darshan_process){0};
}

void hr__darshan_stream_end(struct hr__darshan *d)
{
	for (uint32_t i = 0; d->processes != NULL && i < d->stream->s->n_processes; i++)
		process_done(&d->processes[i]);
	free(d->processes);
	d->processes = NULL;
}

void hr__darshan_stream_pass(struct hr__darshan *d, uint64_t boot_ns)
{
	for (uint32_t i = 0; i < d->stream->s->n_processes; i++) {
		uint64_t end_ns = d->stream->s->processes[i].msg->end_ns;

		if (end_ns != 0 && end_ns < boot_ns && d->processes[i].n > 0)
			process_done(&d->processes[i]);
	}
}

int64_t hr__darshan_ns(const struct hr__darshan *d, uint64_t boot_ns)
{
	int64_t ns;

	if (__builtin_sub_overflow(hr_stream_real_ns(d->stream->s, boot_ns), d->start_ns, &ns))
		return 0;
	/* Sums of such times do not overflow, even if a sender sent wrong ones. */
	return ns < 0 ? 0 : ns < INT64_MAX / 4 ? ns : INT64_MAX / 4;
}

int32_t hr__darshan_rank(const struct hr_walk_process *p)
{
	return p->p->rank >= 0 ? p->p->rank : 0;
}

/* ---- files of ranks and processes ---- */

struct hr__darshan_use *hr__darshan_use(struct hr__darshan *d, uint32_t file, int32_t rank)
{
	uint32_t number = hr_stream_file_number(d->stream->s, file);
	uint32_t name = d->file_names[d->stream_index][number];
	uint64_t key = (uint64_t)name << 32 | (uint32_t)rank;
	uint32_t i = hr_map64_get(&d->use_by_key, key);

	if (i != HR_MAP64_NONE)
		return &d->uses[i];
	if (d->n_uses >= HR_MAP64_NONE || !hr_array_fit(d->uses, d->n_uses + 1, d->uses_room) ||
	    hr_map64_set(&d->use_by_key, key, (uint32_t)d->n_uses) < 0)
		return NULL;
	d->uses[d->n_uses] = (struct hr__darshan_use){.name = name, .rank = rank};
	return &d->uses[d->n_uses++];
}

struct hr__darshan_state *hr__darshan_state(struct hr__darshan *d, const struct hr__darshan_op *o,
					    uint32_t file, enum hr__darshan_group group)
{
	struct hr__darshan_process *p = &d->processes[o->process - d->stream->processes];
	uint64_t key = (uint64_t)file << 1 | group;
	uint32_t i = hr_map64_get(&p->by_file, key);
	struct hr__darshan_use *u;

	if (i != HR_MAP64_NONE)
		return &p->states[i];
	u = hr__darshan_use(d, file, hr__darshan_rank(o->process));
	if (u == NULL || !hr_array_fit(p->states, p->n + 1, p->room) ||
	    hr_map64_set(&p->by_file, key, (uint32_t)p->n) < 0)
		return NULL;
	p->states[p->n] =
	    (struct hr__darshan_state){.use = (uint32_t)(u - d->uses), .position = -1};
	return &p->states[p->n++];
}

struct hr__darshan_posix *hr__darshan_posix_record(struct hr__darshan *d, struct hr__darshan_use *u)
{
	struct hr__darshan_posix *rec = u->posix;
	struct hr__darshan_name *name = &d->names[u->name];

	if (rec != NULL)
		return rec;
	rec = hr_arena_alloc(&d->memory, sizeof(*rec));
	if (rec == NULL)
		return NULL;
	name->used = true;
	rec->host = d->stream->s->node;
	rec->log.id = name->id;
	rec->log.rank = u->rank;
	rec->log.c[HR_DP_FILENOS] = HR_DARSHAN_UNKNOWN;
	rec->log.c[HR_DP_MEM_NOT_ALIGNED] = HR_DARSHAN_UNKNOWN;
	rec->log.c[HR_DP_MEM_ALIGNMENT] = HR_DARSHAN_UNKNOWN;
	rec->log.c[HR_DP_FILE_ALIGNMENT] = HR_DARSHAN_ALIGN_BYTES;
	u->posix = rec;
	return rec;
}

struct hr__darshan_stdio *hr__darshan_stdio_record(struct hr__darshan *d, struct hr__darshan_use *u)
{
	struct hr__darshan_stdio *rec = u->stdio;
	struct hr__darshan_name *name = &d->names[u->name];

	if (rec != NULL)
		return rec;
	rec = hr_arena_alloc(&d->memory, sizeof(*rec));
	if (rec == NULL)
		return NULL;
	name->used = true;
	rec->log.id = name->id;
	rec->log.rank = u->rank;
	u->stdio = rec;
	return rec;
}

/* ---- counters ---- */

int hr__darshan_value_add(struct hr__darshan *d, struct hr__darshan_values *v, int64_t value)
{
	for (unsigned i = 0; i < v->n; i++) {
		if (v->list[i].value == value) {
			v->list[i].count++;
			return 0;
		}
	}
	if (v->n == HR__DARSHAN_VALUES)
		return 0;
	if (v->n == v->room) {
		uint8_t room = v->room == 0 ? 4 : (uint8_t)(2 * v->room);
		struct hr__darshan_value *list =
		    hr_arena_get(&d->memory, (size_t)room * sizeof(*v->list));

		if (list == NULL)
			return -ENOMEM;
		if (v->n > 0)
			memcpy(list, v->list, v->n * sizeof(*list));
		v->list = list;
		v->room = room;
	}
	v->list[v->n++] = (struct hr__darshan_value){value, 1};
	return 0;
}

static int by_count(const void *a, const void *b)
{
	const struct hr__darshan_value *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->value > y->value ? -1 : x->value < y->value;
}

void hr__darshan_common(struct hr__darshan_value *list, size_t n, int64_t *ret)
{
	size_t used = 0;

	if (n > 1)
		qsort(list, n, sizeof(*list), by_count);
	memset(ret, 0, sizeof(*ret) * 2 * HR_DARSHAN_COMMON);
	for (size_t i = 0; i < n && used < HR_DARSHAN_COMMON; i++) {
		if (list[i].value == 0)
			continue;
		ret[used] = list[i].value;
		ret[HR_DARSHAN_COMMON + used] = list[i].count;
		used++;
	}
}

unsigned hr__darshan_bucket(uint64_t bytes)
{
	static const uint64_t most[HR_DARSHAN_SIZES - 1] = {
	    100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30,
	};
	unsigned i = 0;

	while (i < HR_DARSHAN_SIZES - 1 && bytes > most[i])
		i++;
	return i;
}

void hr__darshan_time_add(double *seconds, const struct hr__darshan_op *o, int64_t *last_ns)
{
	int64_t from = o->start_ns > *last_ns ? o->start_ns : *last_ns;

	if (o->end_ns > from)
		*seconds += (double)(o->end_ns - from) / 1e9;
	if (o->end_ns > *last_ns)
		*last_ns = o->end_ns;
}

void hr__darshan_span(double *first, double *last, const struct hr__darshan_op *o)
{
	double start = (double)o->start_ns / 1e9, end = (double)o->end_ns / 1e9;

	if (*first == 0 || start < *first)
		*first = start;
	if (end > *last)
		*last = end;
}
