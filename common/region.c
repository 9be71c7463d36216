/* SPDX-License-Identifier: Apache-2.0 */
#include "common/region.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/fnv.h"

const char *hr_region_kind_name(uint32_t kind)
{
	switch (kind) {
#define CASE(name, number, text)                                                                   \
	case HR_REGION_##name:                                                                     \
		return text;
		HR_REGION_KINDS(CASE)
#undef CASE
	default:
		return NULL;
	}
}

uint32_t hr_region_kind_by_name(const char *name, size_t bytes)
{
	for (uint32_t kind = HR_REGION_RANGE; hr_region_kind_name(kind); kind++)
		if (strlen(hr_region_kind_name(kind)) == bytes &&
		    memcmp(hr_region_kind_name(kind), name, bytes) == 0)
			return kind;
	return 0;
}

#define SLOTS ((size_t)2 * HR_REGIONS_MAX) /* size of a hash table, of which at most half is used */

/* Arrays of a Regions frame that are left out if all values are 0. */
enum { DEPTH = 1, MORE = 2, OPEN = 4, ARGS = 8, STEP = 16, EPOCH = 32, DURATION = 64 };

struct hr_regions {
	Headrace__Regions msg;
	size_t n;
	unsigned used;				      /* arrays that have a value other than 0 */
	struct hr_region last;			      /* differences are relative to this region */
	uint32_t text_slots[SLOTS], key_slots[SLOTS]; /* number + 1; 0: free */
	ProtobufCBinaryData texts[HR_REGIONS_MAX];
	Headrace__RegionKey keys[HR_REGIONS_MAX];
	Headrace__RegionKey *key_list[HR_REGIONS_MAX];
	uint32_t key[HR_REGIONS_MAX], depth[HR_REGIONS_MAX], args[HR_REGIONS_MAX];
	int64_t start_ns[HR_REGIONS_MAX], step[HR_REGIONS_MAX], epoch[HR_REGIONS_MAX];
	uint64_t dur_ns[HR_REGIONS_MAX], more[HR_REGIONS_MAX];
	protobuf_c_boolean open[HR_REGIONS_MAX];
};

int hr_regions_new(struct hr_regions **ret)
{
	struct hr_regions *r = calloc(1, sizeof(*r)); /* unused pages take no memory */

	if (!r)
		return -ENOMEM;
	headrace__regions__init(&r->msg);
	*ret = r;
	return 0;
}

void hr_regions_free(struct hr_regions *r)
{
	if (!r)
		return;
	hr_regions_reset(r);
	free(r);
}

void hr_regions_reset(struct hr_regions *r)
{
	for (size_t i = 0; i < r->msg.n_texts; i++)
		free(r->texts[i].data);
	if (r->msg.n_texts > 0)
		memset(r->text_slots, 0, sizeof(r->text_slots));
	if (r->msg.n_keys > 0)
		memset(r->key_slots, 0, sizeof(r->key_slots));
	headrace__regions__init(&r->msg);
	r->n = 0;
	r->used = 0;
	r->last = (struct hr_region){0};
}

int hr_regions_text(struct hr_regions *r, const void *text, size_t bytes, uint32_t *ret)
{
	size_t slot = hr_fnv(HR_FNV_BASIS, text, bytes) % SLOTS;
	ProtobufCBinaryData *t;

	if (bytes == 0) {
		*ret = 0;
		return 0;
	}
	for (; r->text_slots[slot] != 0; slot = (slot + 1) % SLOTS) {
		t = &r->texts[r->text_slots[slot] - 1];
		if (t->len == bytes && memcmp(t->data, text, bytes) == 0) {
			*ret = r->text_slots[slot];
			return 0;
		}
	}
	if (r->msg.n_texts == HR_REGIONS_MAX)
		return -ENOSPC;
	t = &r->texts[r->msg.n_texts];
	t->data = malloc(bytes);
	if (!t->data)
		return -ENOMEM;
	memcpy(t->data, text, bytes);
	t->len = bytes;
	*ret = r->text_slots[slot] = (uint32_t)++r->msg.n_texts;
	return 0;
}

static bool same_key(const Headrace__RegionKey *k, const struct hr_region *g)
{
	return k->proc == g->proc && k->tid == g->tid && k->kind == g->kind &&
	       k->domain == g->domain && k->category == g->category && k->name == g->name;
}

static size_t key_slot(const struct hr_region *g)
{
	const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t h = g->proc * odd;

	h = (h ^ h >> 32 ^ ((uint64_t)g->tid << 32 | g->kind)) * odd;
	h = (h ^ h >> 32 ^ ((uint64_t)g->domain << 32 | g->category)) * odd;
	h = (h ^ h >> 32 ^ g->name) * odd;
	return (h ^ h >> 32) % SLOTS;
}

/* Returns the index of the region's key. Adds a new key, for which there is always room. */
static uint32_t region_key_of(struct hr_regions *r, const struct hr_region *g)
{
	size_t slot = key_slot(g), n = r->msg.n_keys;

	for (; r->key_slots[slot] != 0; slot = (slot + 1) % SLOTS)
		if (same_key(&r->keys[r->key_slots[slot] - 1], g))
			return r->key_slots[slot] - 1;
	headrace__region_key__init(&r->keys[n]);
	r->keys[n].proc = g->proc;
	r->keys[n].tid = g->tid;
	r->keys[n].kind = g->kind;
	r->keys[n].domain = g->domain;
	r->keys[n].category = g->category;
	r->keys[n].name = g->name;
	r->key_list[n] = &r->keys[n];
	r->key_slots[slot] = (uint32_t)++r->msg.n_keys;
	return (uint32_t)n;
}

int hr_regions_add(struct hr_regions *r, const struct hr_region *region)
{
	struct hr_region *last = &r->last;
	size_t i = r->n;

	if (i == HR_REGIONS_MAX)
		return -ENOSPC;
	r->key[i] = region_key_of(r, region);
	r->start_ns[i] = (int64_t)(region->start_ns - last->start_ns);
	r->dur_ns[i] = region->dur_ns;
	r->depth[i] = region->depth;
	r->more[i] = region->count > 1 ? region->count - 1 : 0;
	r->open[i] = region->open;
	r->args[i] = region->args;
	r->step[i] = (int64_t)(region->step + 1 - last->step);
	r->epoch[i] = (int64_t)(region->epoch + 1 - last->epoch);
	r->used |= (region->dur_ns ? DURATION : 0u) | (region->depth ? DEPTH : 0u) |
		   (r->more[i] ? MORE : 0u) | (region->open ? OPEN : 0u) |
		   (region->args ? ARGS : 0u) | (r->step[i] ? STEP : 0u) |
		   (r->epoch[i] ? EPOCH : 0u);
	last->start_ns = region->start_ns;
	last->step = region->step + 1;
	last->epoch = region->epoch + 1;
	r->n++;
	return 0;
}

void hr_regions_rename(struct hr_regions *r, uint32_t from, const struct hr_region *to)
{
	for (size_t i = 0; i < r->msg.n_keys; i++) {
		if (r->keys[i].name != from)
			continue;
		r->keys[i].domain = to->domain;
		r->keys[i].category = to->category;
		r->keys[i].name = to->name;
	}
}

size_t hr_regions_count(const struct hr_regions *r)
{
	return r->n;
}

const Headrace__Regions *hr_regions_message(struct hr_regions *r)
{
	Headrace__Regions *m = &r->msg;

	m->texts = r->texts;
	m->keys = r->key_list;
#define ARRAY(name, bit)                                                                           \
	(m->name = r->name, m->n_##name = (bit) == 0 || (r->used & (bit)) != 0 ? r->n : 0)
	ARRAY(key, 0);
	ARRAY(start_ns, 0);
	ARRAY(dur_ns, DURATION);
	ARRAY(depth, DEPTH);
	ARRAY(more, MORE);
	ARRAY(open, OPEN);
	ARRAY(args, ARGS);
	ARRAY(step, STEP);
	ARRAY(epoch, EPOCH);
#undef ARRAY
	return m;
}

static bool whole_or_none(size_t n, size_t rows)
{
	return n == 0 || n == rows;
}

static int region_check(const Headrace__Regions *m)
{
	if (!whole_or_none(m->n_start_ns, m->n_key) || !whole_or_none(m->n_dur_ns, m->n_key) ||
	    !whole_or_none(m->n_depth, m->n_key) || !whole_or_none(m->n_more, m->n_key) ||
	    !whole_or_none(m->n_open, m->n_key) || !whole_or_none(m->n_args, m->n_key) ||
	    !whole_or_none(m->n_step, m->n_key) || !whole_or_none(m->n_epoch, m->n_key))
		return -EBADMSG;
	for (size_t i = 0; i < m->n_keys; i++) {
		const Headrace__RegionKey *k = m->keys[i];

		if (k->domain > m->n_texts || k->category > m->n_texts || k->name > m->n_texts)
			return -EBADMSG;
	}
	for (size_t i = 0; i < m->n_key; i++)
		if (m->key[i] >= m->n_keys)
			return -EBADMSG;
	for (size_t i = 0; i < m->n_args; i++)
		if (m->args[i] > m->n_texts)
			return -EBADMSG;
	return 0;
}

/* Replaces differences by sums. They are unsigned, because hostile values may overflow. */
static void add_up(int64_t *values, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		values[i] = (int64_t)(sum += (uint64_t)values[i]);
}

int hr_regions_restore(Headrace__Regions *msg)
{
	int r = region_check(msg);

	if (r < 0)
		return r;
	add_up(msg->start_ns, msg->n_start_ns);
	add_up(msg->step, msg->n_step);
	add_up(msg->epoch, msg->n_epoch);
	return 0;
}

bool hr_regions_text_is(const Headrace__Regions *msg, uint32_t text, const char *want)
{
	const ProtobufCBinaryData *t = text > 0 ? &msg->texts[text - 1] : NULL;

	return t != NULL && t->len == strlen(want) && memcmp(t->data, want, t->len) == 0;
}

void hr_regions_get(const Headrace__Regions *m, size_t i, struct hr_region *ret)
{
	const Headrace__RegionKey *k = m->keys[m->key[i]];

#define AT(name) (m->n_##name > 0 ? m->name[i] : 0)
	*ret = (struct hr_region){
	    .proc = k->proc,
	    .tid = k->tid,
	    .kind = k->kind,
	    .domain = k->domain,
	    .category = k->category,
	    .name = k->name,
	    .args = AT(args),
	    .depth = AT(depth),
	    .open = AT(open) != 0,
	    .count = AT(more) + 1,
	    .start_ns = (uint64_t)AT(start_ns),
	    .dur_ns = AT(dur_ns),
	    .step = (uint64_t)AT(step) - 1,
	    .epoch = (uint64_t)AT(epoch) - 1,
	};
#undef AT
}
