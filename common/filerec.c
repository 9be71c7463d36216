/* SPDX-License-Identifier: Apache-2.0 */
#include "common/filerec.h"

#include "common/hist.h"
#include "common/ops.h"

#define NONE UINT32_MAX

/* Returns a key. Keys are unique, because the process numbers of a stream are below 2^29. */
static uint64_t filerec_key(uint64_t proc, uint32_t file, uint32_t api)
{
	return proc << 35 | (uint64_t)file << 3 | (api & 7);
}

static struct hr_filerec_list *list_of(struct hr_filerecs *f, const struct hr_filerec *r)
{
	return r->t.refs ? &f->open : &f->idle;
}

static void list_remove(struct hr_filerecs *f, struct hr_filerec_list *l, uint32_t i)
{
	const struct hr_filerec_link *r = &f->links[i];

	if (r->older != NONE)
		f->links[r->older].newer = r->newer;
	else
		l->oldest = r->newer;
	if (r->newer != NONE)
		f->links[r->newer].older = r->older;
	else
		l->newest = r->older;
	l->n--;
}

static void list_push(struct hr_filerecs *f, struct hr_filerec_list *l, uint32_t i)
{
	f->links[i] = (struct hr_filerec_link){.newer = NONE, .older = l->newest};
	if (l->newest != NONE)
		f->links[l->newest].newer = i;
	else
		l->oldest = i;
	l->newest = i;
	l->n++;
}

static void hists_done(struct hr_filerec *r)
{
	free(r->moved[HR_WAY_READ].hist.all);
	free(r->moved[HR_WAY_WRITE].hist.all);
}

static void record_done(struct hr_filerec *r)
{
	hists_done(r);
	free(r->past);
}

void hr_filerecs_init(struct hr_filerecs *f)
{
	*f = (struct hr_filerecs){.unused = NONE, .open = {NONE, NONE, 0}, .idle = {NONE, NONE, 0}};
}

void hr_filerecs_done(struct hr_filerecs *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->v[i].t.proc)
			record_done(&f->v[i]);
	free(f->v);
	free(f->links);
	hr_map64_done(&f->by_key);
	hr_filerecs_init(f);
}

uint32_t hr_filerec_find(const struct hr_filerecs *f, uint64_t proc, uint32_t file, uint32_t api,
			 uint32_t cached)
{
	if (hr__filerec_is(f, cached, proc, file, api))
		return cached;
	return hr_map64_get(&f->by_key, filerec_key(proc, file, api));
}

void hr_filerec_prefetch(const struct hr_filerecs *f, uint64_t proc, uint32_t file, uint32_t api)
{
	hr_map64_prefetch(&f->by_key, filerec_key(proc, file, api));
}

static int grow(struct hr_filerecs *f)
{
	uint32_t more = f->room ? f->room * 2 : 64;
	struct hr_filerec *v = realloc(f->v, more * sizeof(*v));
	struct hr_filerec_link *links = realloc(f->links, more * sizeof(*links));

	if (v)
		f->v = v;
	if (links)
		f->links = links;
	if (!v || !links)
		return -ENOMEM;
	f->room = more;
	return 0;
}

static uint32_t filerec_take_slot(struct hr_filerecs *f)
{
	uint32_t i = f->unused;

	if (i != NONE) {
		f->unused = f->links[i].newer;
		if (f->unused != NONE)
			__builtin_prefetch(&f->v[f->unused], 1);
		return i;
	}
	if (f->n == f->room && grow(f))
		return NONE;
	return f->n++;
}

static void give_slot(struct hr_filerecs *f, uint32_t i)
{
	f->v[i].t.proc = 0;
	f->links[i].newer = f->unused;
	f->unused = i;
}

static uint32_t filerec_make(struct hr_filerecs *f, const struct hr_filerec_tail *tail)
{
	uint32_t i = filerec_take_slot(f);

	if (i == NONE)
		return NONE;
	memset(&f->v[i], 0, sizeof(f->v[i]));
	f->v[i].t = *tail;
	if (hr_map64_set(&f->by_key, filerec_key(tail->proc, tail->file, tail->api), i)) {
		give_slot(f, i);
		return NONE;
	}
	f->live++;
	list_push(f, list_of(f, &f->v[i]), i);
	return i;
}

uint32_t hr__filerec_get(struct hr_filerecs *f, uint64_t proc, uint32_t file, uint32_t api)
{
	struct hr_filerec_tail tail = {proc, file, api, {{-1, -1}, {-1, -1}}, 0, 0};
	uint32_t i = hr_map64_get(&f->by_key, filerec_key(proc, file, api));

	return i != NONE ? i : filerec_make(f, &tail);
}

int hr_filerec_restore(struct hr_filerecs *f, const struct hr_filerec_tail *tail)
{
	if (hr_filerec_find(f, tail->proc, tail->file, tail->api, NONE) != NONE)
		return 0;
	return filerec_make(f, tail) == NONE ? -ENOMEM : 0;
}

/* ---- histograms ------------------------------------------------------------------------------ */

/* Changes a histogram that needs a fifth bin to an array of all bins. */
static int hist_spill(struct hr_few_hist *h)
{
	h->all = calloc(HR_FILE_BINS, sizeof(*h->all));
	if (!h->all)
		return -ENOMEM;
	for (unsigned i = 0; i < HR_FEW_BINS; i++)
		h->all[h->bin[i]] = h->count[i];
	return 0;
}

static int hist_add(struct hr_few_hist *h, unsigned bin, uint32_t n)
{
	if (__builtin_expect(h->all != NULL, 0)) {
		h->all[bin] += n;
		return 0;
	}
	for (unsigned i = 0; i < HR_FEW_BINS; i++) {
		if (h->bin[i] != bin && h->count[i])
			continue;
		h->bin[i] = (uint8_t)bin;
		h->count[i] += n;
		return 0;
	}
	if (hist_spill(h))
		return -ENOMEM;
	h->all[bin] += n;
	return 0;
}

size_t hr_few_hist_pairs(const struct hr_few_hist *h, uint64_t *pairs)
{
	size_t used = 0;

	if (h->all)
		return hr_hist_sparse(h->all, HR_FILE_BINS, pairs);
	for (unsigned i = 0; i < HR_FEW_BINS && h->count[i]; i++) {
		size_t at = used;

		for (; at > 0 && pairs[at - 2] > h->bin[i]; at -= 2) {
			pairs[at] = pairs[at - 2];
			pairs[at + 1] = pairs[at - 1];
		}
		pairs[at] = h->bin[i];
		pairs[at + 1] = h->count[i];
		used += 2;
	}
	return used;
}

/* ---- operations ------------------------------------------------------------------------------ */

bool hr_file_op_divide(const struct hr_file_op *op, int64_t offset2, bool has_first,
		       bool has_second, struct hr_file_op *ret_first, struct hr_file_op *ret_second)
{
	bool moves = op->class == HR_CLASS_READ || op->class == HR_CLASS_WRITE;
	bool second = has_second && (op->class == HR_CLASS_WRITE || !has_first);

	*ret_first = *ret_second = *op;
	ret_first->dur_ns = second ? 0 : op->dur_ns;
	ret_second->dur_ns = second ? op->dur_ns : 0;
	ret_second->offset = offset2;
	if (moves) {
		ret_first->class = HR_CLASS_READ;
		ret_second->class = HR_CLASS_WRITE;
	}
	return moves;
}

static unsigned size_bin(uint64_t bytes)
{
	unsigned bin = hr_log2_bin(bytes);

	return bin < HR_FILE_BINS ? bin : HR_FILE_BINS - 1;
}

static void max_of(uint64_t *max, uint64_t v)
{
	if (v > *max)
		*max = v;
}

static inline __attribute__((always_inline)) int
add_moved(struct hr_filerec *r, const struct hr_file_op *op, enum hr_filerec_way way)
{
	struct hr_filerec_moved *m = &r->moved[way];
	unsigned bin = size_bin(op->count == 1 ? op->bytes : op->bytes / op->count);
	int result = hist_add(&m->hist, bin, (uint32_t)op->count);

	r->ops[way == HR_WAY_READ ? HR_FILE_READS : HR_FILE_WRITES] += op->count;
	m->bytes += op->bytes;
	m->ns += op->dur_ns;
	max_of(&m->max_ns, op->dur_ns);
	r->rw_switches += r->t.last_kind == (way == HR_WAY_READ ? 2 : 1);
	r->t.last_kind = way == HR_WAY_READ ? 1 : 2;
	if (op->offset < 0)
		return result;
	r->unaligned += op->offset % HR_ALIGN_BYTES != 0;
	m->seq += r->t.at[way].start >= 0 && op->offset > r->t.at[way].start;
	m->consec += r->t.at[way].end >= 0 && op->offset == r->t.at[way].end;
	r->t.at[way].start = op->offset;
	r->t.at[way].end = op->offset + (int64_t)op->bytes;
	return result;
}

/* Failed reads and writes count as calls without bytes, failed opens as metadata operations. */
static void add_meta(struct hr_filerec *r, const struct hr_file_op *op)
{
	static const uint8_t count_of[] = {
	    [HR_CLASS_OPEN] = HR_FILE_OPENS, [HR_CLASS_SEEK] = HR_FILE_SEEKS,
	    [HR_CLASS_STAT] = HR_FILE_STATS, [HR_CLASS_SYNC] = HR_FILE_SYNCS,
	    [HR_CLASS_CLOSE] = HR_FILE_META, [HR_CLASS_DIR] = HR_FILE_META,
	    [HR_CLASS_META] = HR_FILE_META,  [HR_CLASS_MAP] = HR_FILE_META,
	};

	r->meta_ns += op->dur_ns;
	if (op->class >= sizeof(count_of))
		return;
	if (op->class == HR_CLASS_OPEN && op->failed)
		r->ops[HR_FILE_META] += op->count;
	else
		r->ops[count_of[op->class]] += op->count;
}

int hr_filerec_add(struct hr_filerecs *f, uint32_t index, const struct hr_file_op *op)
{
	struct hr_filerec *r = &f->v[index];
	struct hr_filerec_list *l = list_of(f, r);
	int result = 0;

	if (!r->dirty || op->start_ns < r->first_ns)
		r->first_ns = op->start_ns;
	r->dirty = true;
	max_of(&r->last_ns, op->start_ns + op->dur_ns);
	if (op->class == HR_CLASS_READ)
		result = add_moved(r, op, HR_WAY_READ);
	else if (op->class == HR_CLASS_WRITE)
		result = add_moved(r, op, HR_WAY_WRITE);
	else
		add_meta(r, op);
	if (l->newest != index) {
		list_remove(f, l, index);
		list_push(f, l, index);
	}
	return result;
}

int hr_filerec_tally(struct hr_filerecs *f, uint32_t index, const struct hr_file_op *op,
		     uint64_t sum_ns, uint64_t max_ns)
{
	struct hr_filerec *r = &f->v[index];
	struct hr_filerec_moved *m = NULL;
	uint64_t last_ns = r->last_ns, longest_ns;
	struct hr_file_op sum = *op;
	int result;

	/*
	 * Adds the sum as one long operation. Then corrects the fields that this length makes
	 * wrong.
	 */
	if (op->class == HR_CLASS_READ || op->class == HR_CLASS_WRITE)
		m = &r->moved[op->class == HR_CLASS_READ ? HR_WAY_READ : HR_WAY_WRITE];
	longest_ns = m ? m->max_ns : 0;
	sum.dur_ns = sum_ns;
	result = hr_filerec_add(f, index, &sum);
	r->last_ns = last_ns;
	max_of(&r->last_ns, op->start_ns + op->dur_ns);
	if (m)
		m->max_ns = longest_ns > max_ns ? longest_ns : max_ns;
	return result;
}

void hr_filerec_refs(struct hr_filerecs *f, uint32_t index, int change)
{
	struct hr_filerec *r = &f->v[index];
	struct hr_filerec_list *from = list_of(f, r);

	if (change < 0 && r->t.refs == 0)
		return;
	r->t.refs += (uint32_t)change;
	if (from == list_of(f, r))
		return;
	list_remove(f, from, index);
	list_push(f, list_of(f, r), index);
}

uint32_t hr_filerecs_due(const struct hr_filerecs *f, uint64_t now_ns, uint32_t *indexes,
			 uint32_t max)
{
	uint32_t excess = f->live > HR_FILERECS_MOST ? f->live - HR_FILERECS_MOST : 0;
	uint32_t idle =
	    f->idle.n > HR_FILERECS_IDLE ? f->idle.n - (HR_FILERECS_IDLE - HR_FILERECS_LESS) : 0;
	uint32_t n = 0, i;

	if (idle < excess)
		idle = excess;
	for (i = f->idle.oldest; i != NONE && n < max; i = f->links[i].newer) {
		if (n >= idle && f->v[i].last_ns + HR_FILE_IDLE_NS > now_ns)
			return n;
		indexes[n++] = i;
	}
	for (i = f->open.oldest; i != NONE && n < max && n < excess; i = f->links[i].newer)
		indexes[n++] = i;
	return n;
}

void hr_filerec_remove(struct hr_filerecs *f, uint32_t index)
{
	struct hr_filerec *r = &f->v[index];

	record_done(r);
	hr_map64_remove(&f->by_key, filerec_key(r->t.proc, r->t.file, r->t.api));
	list_remove(f, list_of(f, r), index);
	give_slot(f, index);
	f->live--;
}

struct hr_filerec_past hr_filerec_all(const struct hr_filerec *r)
{
	struct hr_filerec_past all = r->past ? *r->past : (struct hr_filerec_past){0};

	for (uint32_t i = 0; i < HR_FILE_COUNTS; i++)
		all.ops += r->ops[i];
	all.bytes_read += r->moved[HR_WAY_READ].bytes;
	all.bytes_written += r->moved[HR_WAY_WRITE].bytes;
	all.dur_ns += r->meta_ns;
	for (unsigned way = 0; way < HR_WAYS; way++) {
		all.dur_ns += r->moved[way].ns;
		max_of(&all.max_ns, r->moved[way].max_ns);
	}
	return all;
}

void hr_filerec_reset(struct hr_filerec *r)
{
	struct hr_filerec kept = {.t = r->t, .past = r->past ? r->past : malloc(sizeof(*r->past))};

	if (kept.past)
		*kept.past = hr_filerec_all(r);
	hists_done(r);
	*r = kept;
}
