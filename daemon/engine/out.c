/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/engine/out.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/rows.h"
#include "daemon/engine/state.h"

struct hr_batch_pool {
	pthread_mutex_t lock;
	pthread_cond_t back;
	struct hr_batch *idle;
	unsigned made;
	unsigned max;
};

int hr_batch_pool_new(unsigned max, struct hr_batch_pool **ret)
{
	struct hr_batch_pool *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->back, NULL);
	p->max = max;
	*ret = p;
	return 0;
}

void hr_batch_pool_free(struct hr_batch_pool *p)
{
	if (!p)
		return;
	while (p->idle) {
		struct hr_batch *next = p->idle->next;

		free(p->idle);
		p->idle = next;
	}
	pthread_cond_destroy(&p->back);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

struct hr_batch *hr_batch_get(struct hr_batch_pool *p)
{
	struct hr_batch *b = NULL;

	pthread_mutex_lock(&p->lock);
	while (!p->idle && p->made >= p->max)
		pthread_cond_wait(&p->back, &p->lock);
	if (p->idle) {
		b = p->idle;
		p->idle = b->next;
	} else {
		b = malloc(sizeof(*b));
		p->made += b != NULL;
	}
	pthread_mutex_unlock(&p->lock);
	if (b) {
		b->n = b->n_tasks = 0;
		b->bytes_moved = 0;
	}
	return b;
}

void hr_batch_put(struct hr_batch_pool *p, struct hr_batch *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&p->lock);
	b->next = p->idle;
	p->idle = b;
	pthread_cond_signal(&p->back);
	pthread_mutex_unlock(&p->lock);
}

struct hr_out *hr_out_list_pop(struct hr_out_list *l)
{
	struct hr_out *o = l->first;

	if (!o)
		return NULL;
	l->first = o->next;
	if (!l->first)
		l->last = &l->first;
	return o;
}

void hr_out_list_join(struct hr_out_list *l, struct hr_out_list *from)
{
	if (!from->first)
		return;
	*l->last = from->first;
	l->last = from->last;
	hr_out_list_init(from);
}

struct hr_out *hr_out_new(void)
{
	struct hr_out *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	headrace__frame__init(&o->frame);
	headrace__clock__init(&o->clock);
	o->frame.clock = &o->clock;
	return o;
}

void hr_out_free(struct hr_out *o, struct hr_batch_pool *pool)
{
	if (!o)
		return;
	hr_batch_put(pool, o->batch);
	hr_regions_free(o->regions);
	hr_arena_free(&o->arena);
	free(o->packed);
	free(o);
}

/* ---- frames of an engine --------------------------------------------------------------------- */

struct hr_out *hr__out_begin(struct hr_engine *e, Headrace__Frame__BodyCase body)
{
	struct hr_out *o = hr_out_new();

	if (!o) {
		e->failed = true;
		return NULL;
	}
	o->frame.body_case = body;
	o->clock.boot_ns = e->now.boot_ns;
	o->clock.real_ns = e->now.real_ns;
	o->clock.error_ns = e->now.error_ns;
	if (!e->job) /* the journal has lost its beginning, and with it the clock */
		o->frame.clock = NULL;
	return o;
}

void *hr__out_message(struct hr_engine *e, Headrace__Frame__BodyCase body,
		      const ProtobufCMessageDescriptor *kind, struct hr_out **ret)
{
	struct hr_out *o = hr__out_begin(e, body);
	void *m = o ? hr_arena_get(&o->arena, kind->sizeof_message) : NULL;

	if (!m) {
		e->failed = true;
		hr_out_free(o, e->pool);
		return NULL;
	}
	protobuf_c_message_init(kind, m);
	o->frame.processes = m; /* the messages are a union, so this sets any of them */
	*ret = o;
	return m;
}

void hr__out_end(struct hr_engine *e, struct hr_out *o)
{
	if (o->arena.failed) {
		e->failed = true;
		hr_out_free(o, e->pool);
		return;
	}
	o->frame.seq = e->next_seq++;
	hr_out_list_push(&e->out, o);
}

ProtobufCBinaryData hr__kept_path(const struct hr_engine *e, struct hr_arena *a, const void *path,
				  size_t bytes)
{
	ProtobufCBinaryData d = {0};

	if (!e->privacy)
		return hr_bytes_in(a, path, bytes);
	d.data = bytes ? hr_arena_alloc(a, hr_privacy_room(bytes)) : NULL;
	if (d.data)
		d.len = hr_privacy_path(e->privacy, path, bytes, d.data);
	return d;
}

/*
 * Returns the part of a command line that may be stored. If this part is only the first word, the
 * word is hidden like a path, because it may be a path.
 */
ProtobufCBinaryData hr__kept_command(const struct hr_engine *e, struct hr_arena *a,
				     const void *line, size_t bytes)
{
	if (e->privacy && bytes > 0)
		bytes = hr_privacy_command(e->privacy, line, bytes);
	if (e->privacy && bytes > 0 && !memchr(line, ' ', bytes))
		return hr__kept_path(e, a, line, bytes);
	return hr_bytes_in(a, line, bytes);
}
