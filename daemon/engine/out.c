/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/engine/out.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

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
