/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/engine/paths.h"

static int paths_room_for(void **v, uint32_t *room, uint32_t n, size_t size)
{
	uint32_t more = *room ? *room * 2 : 64;
	void *bigger;

	if (n < *room)
		return 0;
	bigger = hr_big_alloc(more * size);
	if (!bigger)
		return -ENOMEM;
	if (n)
		memcpy(bigger, *v, n * size);
	free(*v);
	*v = bigger;
	*room = more;
	return 0;
}

/* Returns a hash of a text, never 0. It depends on the byte order, so it is never stored. */
static uint64_t text_check(const uint8_t *text, uint32_t bytes)
{
	uint64_t h = bytes, word;

	for (; bytes >= sizeof(word); text += sizeof(word), bytes -= (uint32_t)sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		h = hr_mix64(h ^ word) * UINT64_C(0xc2b2ae3d27d4eb4f);
	}
	word = 0;
	memcpy(&word, text, bytes);
	h = hr_mix64(hr_mix64(h ^ word) * UINT64_C(0xc2b2ae3d27d4eb4f));
	return h ? h : 1;
}

static int paths_add(struct hr_paths *p, uint64_t hash, uint32_t id, uint16_t scope, uint32_t *ret)
{
	if (paths_room_for((void **)&p->v, &p->room, p->n, sizeof(*p->v)))
		return -ENOMEM;
	p->v[p->n] = (struct hr_path){.hash = hash, .id = id, .epoch = p->epoch, .scope = scope};
	*ret = p->n++;
	return 0;
}

/* Adds a file to `fresh`, the files that need a row in the next Paths frame. */
static int freshen(struct hr_paths *p, uint32_t index)
{
	struct hr_path *f = &p->v[index];

	if (f->fresh)
		return 0;
	if (paths_room_for((void **)&p->fresh, &p->room_fresh, p->n_fresh, sizeof(*p->fresh)))
		return -ENOMEM;
	p->fresh[p->n_fresh] = (struct hr_fresh_path){.path = index};
	f->fresh = ++p->n_fresh;
	return 0;
}

static int add_fresh(struct hr_paths *p, uint64_t hash, uint16_t scope, uint32_t *ret)
{
	int r = paths_add(p, hash, ++p->next_id, scope, ret);

	return r ? r : freshen(p, *ret);
}

void hr__paths_note(struct hr_paths *p, uint32_t index)
{
	p->v[index].epoch = p->epoch;
	if (!paths_room_for((void **)&p->known, &p->room_known, p->n_known, sizeof(*p->known)))
		p->known[p->n_known++] = index;
}

uint32_t hr_paths_use(struct hr_paths *p, uint64_t hash, uint16_t scope)
{
	uint32_t index = hr_map64_get(&p->by_hash, hash);

	if (index != HR_MAP64_NONE) {
		hr_paths_at(p, index);
		return index;
	}
	if (add_fresh(p, hash, scope, &index) || hr_map64_set(&p->by_hash, hash, index))
		return UINT32_MAX;
	return index;
}

/* Puts a row of a file with this text into the next Paths frame. */
static int announce(struct hr_paths *p, uint32_t index, const struct hr_path_name *name)
{
	struct hr_fresh_path *fresh;

	if (freshen(p, index))
		return -ENOMEM;
	fresh = &p->fresh[p->v[index].fresh - 1];
	fresh->text = hr_arena_copy(&p->texts, name->text, name->bytes);
	fresh->bytes = fresh->text ? name->bytes : 0;
	return 0;
}

/*
 * Corrects the mount of a file. A mount that an open descriptor shows is exact; a mount found by
 * the path may be wrong, because the path may contain links.
 */
static int correct_mount(struct hr_paths *p, uint32_t index, const struct hr_path_name *name)
{
	struct hr_path *f = &p->v[index];
	bool same = f->mount == name->mount;

	if (!name->mount_exact || f->mount_exact)
		return 0;
	f->mount = name->mount;
	f->mount_exact = true;
	return same ? 0 : announce(p, index, name);
}

int hr_paths_name(struct hr_paths *p, const struct hr_path_name *name, uint32_t *ret_index)
{
	uint64_t check = text_check(name->text, name->bytes);
	uint32_t index = hr_paths_use(p, name->hash, name->scope);
	bool second = false;
	struct hr_path *f;

	if (index == UINT32_MAX)
		return -ENOMEM;
	f = &p->v[index];
	*ret_index = index;
	if (f->check == check)
		return correct_mount(p, index, name);
	if (f->check) {
		if (add_fresh(p, name->hash, name->scope, &index))
			return -ENOMEM;
		f = &p->v[index];
		second = true;
	}
	f->check = check;
	f->mount = name->mount;
	f->mount_exact = name->mount_exact;
	f->scope = name->scope & 1;
	*ret_index = index;
	return announce(p, index, name) < 0 ? -ENOMEM : second;
}

int hr_paths_restore(struct hr_paths *p, const struct hr_known_row *row)
{
	uint32_t index = hr_map64_get(&p->by_hash, row->hash);
	int r = 0;

	if (index == HR_MAP64_NONE) {
		r = paths_add(p, row->hash, row->id, row->scope, &index);
		if (r)
			return r;
		r = hr_map64_set(&p->by_hash, row->hash, index);
	}
	p->v[index].id = row->id;
	p->v[index].check = row->check;
	p->v[index].mount = row->mount;
	return r;
}

void hr_paths_fresh_sent(struct hr_paths *p)
{
	for (uint32_t i = 0; i < p->n_fresh; i++)
		p->v[p->fresh[i].path].fresh = 0;
	p->n_fresh = 0;
	hr_arena_free(&p->texts);
}

void hr_paths_clear(struct hr_paths *p)
{
	uint32_t epoch = p->epoch, next_id = p->next_id;

	hr_paths_done(p);
	p->epoch = epoch;
	p->next_id = next_id;
}

void hr_paths_done(struct hr_paths *p)
{
	free(p->v);
	free(p->fresh);
	free(p->known);
	hr_arena_free(&p->texts);
	hr_map64_done(&p->by_hash);
	*p = (struct hr_paths){0};
}
