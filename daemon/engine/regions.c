/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the names of regions, and adds regions to the open frame. All input comes from clients. */
#include "daemon/engine/regions.h"

#include <errno.h>

#include "daemon/engine/fold.h"

#define COUNT_MOST (UINT64_C(1) << 40) /* maximum number of regions that one record counts */
#define FRAME_NS   UINT64_C(1000000000)
#define NAMELESS   "(more names than are kept)"

/* An entry of a snapshot with all keys of regions: first all rows, then all texts. */
struct entry_keys {
	struct hr_entry h;
	uint32_t n;
	uint32_t n_bytes;
	struct hr_region_key rows[];
};

void hr_region_state_done(struct hr_region_state *s)
{
	hr_map64_done(&s->by_id);
	free(s->keys);
	free(s->texts);
	hr_regions_free(s->open);
	*s = (struct hr_region_state){0};
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Allocates the maximum at once: pages that are not touched take no memory. */
static int regions_room_for(struct hr_region_state *s, size_t bytes)
{
	if (!s->keys)
		s->keys = malloc(HR_REGION_KEYS * sizeof(*s->keys));
	if (!s->texts)
		s->texts = malloc(HR_REGION_KEY_BYTES);
	if (!s->keys || !s->texts)
		return -ENOMEM;
	return s->n >= HR_REGION_KEYS || s->n_bytes + bytes > HR_REGION_KEY_BYTES ? -ENOSPC : 0;
}

static int key_keep(struct hr_region_state *s, const struct hr_region_key *key, const void *texts)
{
	size_t bytes = (size_t)key->domain_bytes + key->category_bytes + key->name_bytes;
	int r = regions_room_for(s, bytes);

	if (!r)
		r = hr_map64_set(&s->by_id, key->id, s->n);
	if (r)
		return r;
	memcpy(s->texts + s->n_bytes, texts, bytes);
	s->keys[s->n] = *key;
	s->keys[s->n++].at = (uint32_t)s->n_bytes;
	s->n_bytes += bytes;
	return 0;
}

/*
 * Adds the key of a HR_CTL_REGION_KEY. -EBADMSG: invalid text; -ENOSPC: a limit is reached;
 * -ENOMEM.
 */
static int key_add(struct hr_region_state *s, uint64_t id, const void *text, size_t bytes)
{
	const char *domain = (const char *)text + 2, *end = (const char *)text + bytes;
	const char *category = bytes > 2 ? memchr(domain, 0, (size_t)(end - domain)) : NULL;
	const char *name = category ? memchr(category + 1, 0, (size_t)(end - category - 1)) : NULL;
	char texts[HR_REGION_TEXT];
	struct hr_region_key key;

	if (!name || bytes > HR_REGION_TEXT)
		return -EBADMSG;
	key = (struct hr_region_key){
	    .id = id,
	    .kind = (uint16_t)(domain[-1] - 'A'),
	    .domain_bytes = (uint16_t)(category - domain),
	    .category_bytes = (uint16_t)(name - category - 1),
	    .name_bytes = (uint16_t)(end - name - 1),
	};
	if (!hr_region_kind_name(key.kind))
		return -EBADMSG;
	if (hr_map64_get(&s->by_id, id) != HR_MAP64_NONE)
		return 0;
	memcpy(texts, domain, key.domain_bytes);
	memcpy(texts + key.domain_bytes, category + 1, key.category_bytes);
	memcpy(texts + key.domain_bytes + key.category_bytes, name + 1, key.name_bytes);
	return key_keep(s, &key, texts);
}

/* Returns NULL if the key is not known. */
static const struct hr_region_key *key_find(const struct hr_region_state *s, uint64_t id)
{
	uint32_t i = hr_map64_get(&s->by_id, id);

	return i == HR_MAP64_NONE ? NULL : &s->keys[i];
}

/* Whether the key is that of headrace's own marks `hang`. */
static bool is_hang(const struct hr_region_state *s, uint64_t id)
{
	static const char texts[] = "headracehang";
	const struct hr_region_key *k = key_find(s, id);

	return k && k->domain_bytes == strlen("headrace") && k->category_bytes == 0 &&
	       k->name_bytes == strlen("hang") &&
	       memcmp(s->texts + k->at, texts, strlen(texts)) == 0;
}

int hr_region_keys_write(const struct hr_region_state *s, struct hr_journal *j)
{
	uint64_t bytes = sizeof(struct entry_keys) + s->n * sizeof(*s->keys) + s->n_bytes;
	struct entry_keys *in;

	if (!s->n)
		return 0;
	in = hr_journal_reserve(j, bytes, HR_JOURNAL_SLACK);
	if (!in)
		return -ENOSPC;
	in->n = s->n;
	in->n_bytes = (uint32_t)s->n_bytes;
	memcpy(in->rows, s->keys, s->n * sizeof(*s->keys));
	memcpy(in->rows + s->n, s->texts, s->n_bytes);
	hr_journal_commit(j, HR_ENTRY_REGION_KEYS, bytes);
	return 0;
}

int hr_region_keys_read(struct hr_region_state *s, const struct hr_entry *entry)
{
	const struct entry_keys *in = (const struct entry_keys *)entry;
	uint64_t left;

	if (in->h.bytes < sizeof(*in) || in->n > (in->h.bytes - sizeof(*in)) / sizeof(in->rows[0]))
		return -EBADMSG;
	left = in->h.bytes - sizeof(*in) - in->n * sizeof(in->rows[0]);
	hr_region_state_done(s);
	for (uint32_t i = 0; i < in->n; i++) {
		const struct hr_region_key *k = &in->rows[i];
		uint64_t bytes = (uint64_t)k->domain_bytes + k->category_bytes + k->name_bytes;
		int r;

		if (k->at > left || bytes > left - k->at || !hr_region_kind_name(k->kind))
			return -EBADMSG;
		r = key_keep(s, k, (const char *)(in->rows + in->n) + k->at);
		if (r)
			return r;
	}
	return 0;
}

/* ---- regions --------------------------------------------------------------------------------- */

static int key_texts(const struct hr_region_state *s, const struct hr_region_key *k,
		     struct hr_region *g)
{
	const char *at = k ? s->texts + k->at : NULL;
	int r;

	if (!k)
		return hr_regions_text(s->open, NAMELESS, strlen(NAMELESS), &g->name);
	r = hr_regions_text(s->open, at, k->domain_bytes, &g->domain);
	at += k->domain_bytes;
	if (!r)
		r = hr_regions_text(s->open, at, k->category_bytes, &g->category);
	at += k->category_bytes;
	return r ? r : hr_regions_text(s->open, at, k->name_bytes, &g->name);
}

/*
 * Gives a placeholder as name to a region whose key is not known: the key may be in the ring of
 * another thread, which is read later. name_unreported() replaces the placeholder.
 */
static int unreported(struct hr_region_state *s, uint64_t id, struct hr_region *g)
{
	uint8_t text[1 + sizeof(id)] = {0};
	int r;

	for (uint32_t i = 0; i < s->n_unreported; i++) {
		if (s->unreported[i].id == id) {
			g->name = s->unreported[i].text;
			return 0;
		}
	}
	if (s->n == HR_REGION_KEYS || s->n_unreported == HR_REGION_UNREPORTED)
		return key_texts(s, NULL, g);
	memcpy(text + 1, &id, sizeof(id));
	r = hr_regions_text(s->open, text, sizeof(text), &g->name);
	if (!r) {
		s->unreported[s->n_unreported].id = id;
		s->unreported[s->n_unreported++].text = g->name;
	}
	return r;
}

/* Replaces the placeholders whose keys have become known. If a name does not fit, it is empty. */
static void name_unreported(struct hr_region_state *s)
{
	for (uint32_t i = 0; i < s->n_unreported; i++) {
		struct hr_region to = {0};

		if (key_texts(s, key_find(s, s->unreported[i].id), &to))
			to = (struct hr_region){0};
		hr_regions_rename(s->open, s->unreported[i].text, &to);
	}
	s->n_unreported = 0;
}

void hr__emit_regions(struct hr_engine *e)
{
	struct hr_regions *open = e->regions.open;
	size_t n = open ? hr_regions_count(open) : 0;
	struct hr_out *o;

	if (!n)
		return;
	hr__emit_names(e);
	o = hr__out_begin(e, HEADRACE__FRAME__BODY_REGIONS);
	if (!o)
		return;
	name_unreported(&e->regions);
	o->regions = open;
	o->frame.regions = (Headrace__Regions *)(uintptr_t)hr_regions_message(open);
	o->absence = (struct hr_loss){.reason = HR_LOSS_REGIONS, .count = n};
	e->regions.open = NULL;
	hr__out_end(e, o);
}

static int name(struct hr_engine *e, uint64_t id, const void *args, size_t args_bytes,
		struct hr_region *g)
{
	const struct hr_region_key *k = key_find(&e->regions, id);
	int r = k ? key_texts(&e->regions, k, g) : unreported(&e->regions, id, g);

	/* With privacy rules, no arguments are stored, because they may contain paths. */
	return r ? r
		 : hr_regions_text(e->regions.open, args, e->privacy ? 0 : args_bytes, &g->args);
}

static int regions_add(struct hr_engine *e, uint64_t id, const void *args, size_t args_bytes,
		       struct hr_region *g)
{
	int r = 0;

	if (!e->regions.open) {
		r = hr_regions_new(&e->regions.open);
		e->regions.first_ns = e->now_ns;
	}
	if (!r)
		r = name(e, id, args, args_bytes, g);
	return r ? r : hr_regions_add(e->regions.open, g);
}

static uint64_t regions_number(int64_t n)
{
	return n < 0 ? HR_REGION_UNKNOWN : (uint64_t)n;
}

/* Returns a key that identifies a region of a thread: its key and its start tick. */
static uint64_t seen_key(uint64_t key, uint64_t start_ticks)
{
	return key ^ start_ticks << 8;
}

static void note_loop(struct hr_engine *e, struct hr_proc *p, const struct hr_region *g)
{
	if (g->kind == HR_REGION_STEP) {
		p->steps += g->count;
		e->stats.steps += g->count;
	}
	if ((g->kind == HR_REGION_STEP || g->kind == HR_REGION_OPTIMIZER) && !p->id.trains)
		hr__attribute_trains(e, p);
	if (g->kind == HR_REGION_CHECKPOINT)
		(void)hr_save_add(&p->save, g->start_ns, g->start_ns + g->dur_ns);
	if (g->kind != HR_REGION_INPUT_WAIT)
		return;
	if (!p->waiting_since_ns) {
		p->waiting_since_ns = g->start_ns;
		e->stats.waiting_since_ns += g->start_ns;
		e->stats.waiters++;
	}
	p->wait_ns += g->dur_ns;
	e->stats.waited_ns += g->dur_ns;
}

void hr__regions_end(struct hr_engine *e, const struct hr_proc *p)
{
	if (!p->waiting_since_ns)
		return;
	e->stats.waiters--;
	e->stats.waiting_since_ns -= p->waiting_since_ns;
	e->stats.waited_ns -= p->wait_ns;
}

void hr__region_take(struct fold *f, const struct hr_record *r, const uint8_t *text)
{
	uint64_t dur = hr_record_dur(r);
	uint64_t count = r->flags & HR_REGION_HAS_ARGS ? 1 : r->asked;
	struct hr_engine *e = f->e;
	struct hr_region g = {
	    .proc = f->p->id.proc,
	    .tid = r->flags & HR_REGION_IS_SPAN ? (uint32_t)r->fd : f->ring->kept.tid,
	    .kind = r->flags >> HR_REGION_KIND_SHIFT,
	    .depth = r->flags & HR_REGION_IS_SPAN ? 0 : (uint32_t)r->fd,
	    .open = r->flags & HR_REGION_IS_OPEN,
	    .count = count,
	    .step = regions_number(r->offset),
	    .epoch = regions_number(r->ret),
	};
	int res;

	if (r->start_ticks < f->p->id.min_ticks || r->start_ticks > f->max_ticks ||
	    dur > f->max_ticks - r->start_ticks || count < 1 || count > COUNT_MOST || r->fd < 0 ||
	    g.depth > HR_REGION_DEPTH || !hr_region_kind_name(g.kind)) {
		hr__fold_hostile(f, 0);
		return;
	}
	f->ring->kept.last_region = seen_key(r->file, r->start_ticks);
	g.start_ns = hr_ticks_ns(&e->line, r->start_ticks);
	g.dur_ns = hr_ticks_span_ns(&e->line, dur);
	note_loop(e, f->p, &g);
	if (g.kind == HR_REGION_MARK && text && is_hang(&e->regions, r->file))
		hr__hang_note(e, f->p, g.start_ns, text, r->asked);
	else if (f->p->hang.since_ns > 0)
		hr__hang_region(e, f->p, &g);
	res = regions_add(e, r->file, text, text ? r->asked : 0, &g);
	if (res == -ENOSPC) {
		hr__emit_regions(e);
		g.domain = g.category = g.name = g.args = 0;
		res = regions_add(e, r->file, text, text ? r->asked : 0, &g);
	}
	if (res)
		e->failed = true;
}

void hr__region_key_take(struct fold *f, const struct hr_record *r, const uint8_t *text)
{
	int res = key_add(&f->e->regions, r->file, text, r->asked);

	if (res == -EBADMSG)
		hr__fold_hostile(f, 0);
	else if (res == -ENOMEM)
		f->e->failed = true;
}

void hr__regions_due(struct hr_engine *e)
{
	if (e->regions.open && e->regions.first_ns + FRAME_NS <= e->now_ns)
		hr__emit_regions(e);
}

/* ---- open regions ---------------------------------------------------------------------------- */

/*
 * Returns whether the thread wrote the record of this region, and died before it cleared the cell.
 */
static bool seen(const struct hr_proc *p, const struct hr_record *r)
{
	for (uint32_t i = 0; i < p->n_rings; i++)
		if (p->rings[i].kept.last_region == seen_key(r->file, r->start_ticks))
			return true;
	return false;
}

static struct hr_record record_of_open(const struct hr_region_cell *c, uint64_t now_ticks,
				       bool span, uint32_t depth)
{
	uint64_t dur = now_ticks > c->start_ticks ? now_ticks - c->start_ticks : 0;

	return (struct hr_record){
	    .start_ticks = c->start_ticks,
	    .file = c->key,
	    .offset = c->step,
	    .ret = c->epoch,
	    .asked = 1,
	    .dur_lo = (uint32_t)dur,
	    .dur_hi = dur >> 48 ? UINT16_MAX : (uint16_t)(dur >> 32),
	    .fd = span ? (int32_t)c->tid : (int32_t)depth,
	    .flags = (c->flags & ~(HR_REGION_HAS_ARGS | HR_REGION_IS_SPAN)) | HR_REGION_IS_OPEN |
		     (span ? HR_REGION_IS_SPAN : 0),
	};
}

static struct hr_record record_of_sum(const struct hr_region_short *s)
{
	return (struct hr_record){
	    .start_ticks = s->start_ticks,
	    .file = s->key,
	    .offset = s->step,
	    .ret = s->epoch,
	    .asked = s->count,
	    .dur_lo = (uint32_t)s->ticks,
	    .dur_hi = s->ticks >> 48 ? UINT16_MAX : (uint16_t)(s->ticks >> 32),
	    .fd = (int32_t)s->depth,
	    .flags = s->flags & ~(HR_REGION_HAS_ARGS | HR_REGION_IS_SPAN | HR_REGION_IS_OPEN),
	};
}

int hr__apply_left_regions(struct hr_engine *e, const struct hr_entry_left_regions *in)
{
	struct fold f = {.e = e, .p = hr__proc_find(e, in->proc), .max_ticks = in->now_ticks};
	uint64_t last;

	f.ring = f.p && !f.p->end_ns ? hr__ring(f.p, in->map, in->ring) : NULL;
	if (!f.ring || in->n > (in->h.bytes - sizeof(*in)) / sizeof(in->cells[0]))
		return -EBADMSG;
	for (uint32_t i = 0; i < in->n; i++) {
		struct hr_record r = in->what == HR_LEFT_SHORTS
					 ? record_of_sum(&in->cells[i].sum)
					 : record_of_open(&in->cells[i].cell, in->now_ticks,
							  in->what == HR_LEFT_SPANS, i);

		last = f.ring->kept.last_region;
		if (r.file != 0 && !seen(f.p, &r)) /* file 0: the thread was changing the cell */
			hr__region_take(&f, &r, NULL);
		/* a cell is not a record of the ring, so it must not change last_region */
		f.ring->kept.last_region = last;
	}
	if (in->deeper > HR_REGION_DEEPEST)
		hr__fold_hostile(&f, 0);
	else if (in->deeper)
		hr__loss(e, in->proc, HR_LOSS_REGIONS, 0, in->deeper);
	return 0;
}
