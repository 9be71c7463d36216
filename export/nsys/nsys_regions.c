/* SPDX-License-Identifier: Apache-2.0 */
/* Regions as rows of NVTX_EVENTS and HEADRACE_REGIONS. */
#include "export/nsys/nsys.h"

/* Writes a row that names a category, or a domain, before its first use. */
static int put_definition(struct hr__nsys *n, enum hr_nsys_event type, int64_t domain,
			  int64_t category, int64_t thread, const struct hr_nsys_text *text)
{
	uint64_t key = (uint64_t)domain << 32 | (uint64_t)(category & UINT32_MAX);
	int64_t row[8] = {0,
			  HR_NSYS_NULL,
			  type,
			  HR_NSYS_NULL,
			  type == HR_NSYS_CATEGORY ? category : HR_NSYS_NULL,
			  thread,
			  HR_NSYS_NULL,
			  domain};
	struct hr_nsys_text texts[2] = {*text, {0}};
	int r;

	if (hr_map64_get(&n->defined, key) != HR_MAP64_NONE)
		return 0;
	r = hr_map64_set(&n->defined, key, 0);
	return r == 0 ? hr_nsys_insert(n->db, HR_NSYS_NVTX_EVENTS, row, texts) : r;
}

/* Returns the id of a category of a domain; without a text, NULL. */
static int take_category(struct hr__nsys *n, const struct hr_nsys_text *text, int64_t domain,
			 int64_t thread, int64_t *ret)
{
	int r = 0;

	*ret = HR_NSYS_NULL;
	if (text->text != NULL)
		r = hr_nsys_string(n->db, text->text, text->bytes, ret);
	if (r == 0 && text->text != NULL)
		r = put_definition(n, HR_NSYS_CATEGORY, domain, *ret, thread, text);
	return r;
}

static int take_domain(struct hr__nsys *n, const struct hr_nsys_text *text, int64_t thread,
		       int64_t *ret)
{
	int r = 0;

	*ret = 0;
	if (text->text != NULL)
		r = hr_nsys_string(n->db, text->text, text->bytes, ret);
	if (r == 0 && text->text != NULL)
		r = put_definition(n, HR_NSYS_DOMAIN, *ret, 0, thread, text);
	return r;
}

/*
 * Returns the category that a kind implies; NULL: none. Extra-Deep reads "epoch" and
 * "training_step". A loop without an optimizer (validation) has no steps, so each step trains.
 */
static const char *kind_category(uint32_t kind)
{
	switch (kind) {
	case HR_REGION_RANGE:
	case HR_REGION_SPAN:
	case HR_REGION_MARK:
		return NULL;
	case HR_REGION_STEP:
		return "training_step";
	default:
		return hr_region_kind_name(kind);
	}
}

int hr__nsys_categories(struct hr__nsys *n)
{
	struct hr_nsys_text testing = hr_nsys_text("testing_step");
	int64_t id;
	int r = take_category(n, &testing, 0, HR_NSYS_NULL, &id);

#define HR__REGION_KIND(name, number, text)                                                        \
	if (r == 0) {                                                                              \
		struct hr_nsys_text t = hr_nsys_text(kind_category(number));                       \
		r = take_category(n, &t, 0, HR_NSYS_NULL, &id);                                    \
	}
	HR_REGION_KINDS(HR__REGION_KIND)
#undef HR__REGION_KIND
	return r;
}

/* Of short regions that were added up, the duration is a sum, which does not nest. */
static enum hr_nsys_event region_type(const struct hr_region *region)
{
	if (region->kind == HR_REGION_MARK)
		return HR_NSYS_MARK;
	return region->kind == HR_REGION_SPAN || region->count > 1 ? HR_NSYS_START_END
								   : HR_NSYS_PUSH_POP;
}

static struct hr_nsys_text region_text(const Headrace__Regions *frame, uint32_t number)
{
	const ProtobufCBinaryData *text = hr_walk_text(frame, number);

	return text != NULL ? (struct hr_nsys_text){.text = text->data, .bytes = text->len}
			    : (struct hr_nsys_text){0};
}

/* Writes what NVTX_EVENTS has no column for, and a category that the one of the kind replaces. */
static int put_region(struct hr__nsys *n, const struct hr_walk_region *from,
		      const struct hr_region *region, const struct hr__nsys_thread *thread)
{
	int64_t row[8] = {n->regions,
			  region->step == HR_REGION_UNKNOWN ? HR_NSYS_NULL : (int64_t)region->step,
			  region->epoch == HR_REGION_UNKNOWN ? HR_NSYS_NULL
							     : (int64_t)region->epoch,
			  (int64_t)region->count,
			  region->open,
			  thread->rank,
			  thread->worker,
			  region->depth};
	struct hr_nsys_text texts[2] = {hr_nsys_text(hr_region_kind_name(region->kind))};

	if (kind_category(region->kind) != NULL)
		texts[1] = region_text(from->frame, region->category);
	return hr_nsys_insert(n->db, HR_NSYS_HEADRACE_REGIONS, row, texts);
}

static int nsys_region(struct hr__nsys *n, const struct hr_walk_region *row)
{
	struct hr_nsys_text texts[2], domain, category;
	int64_t numbers[8];
	struct hr_region region;
	struct hr__nsys_thread thread;
	int r = hr__nsys_take_thread(n, hr_walk_process(n->ws, row->proc)->p, row->tid, &thread);

	hr_regions_get(row->frame, row->row, &region);
	texts[0] = region_text(row->frame, region.name);
	if (texts[0].text == NULL)
		texts[0] = hr_nsys_text(hr_region_kind_name(region.kind));
	texts[1] = region_text(row->frame, region.args);
	texts[1].json = true;
	domain = region_text(row->frame, region.domain);
	category = hr_nsys_text(kind_category(region.kind));
	if (category.text == NULL)
		category = region_text(row->frame, region.category);
	numbers[0] = hr__nsys_ns(n, region.start_ns);
	numbers[1] = numbers[0] + (int64_t)region.dur_ns;
	hr__nsys_take_end(n, numbers[1]);
	numbers[2] = region_type(&region);
	if (numbers[2] == HR_NSYS_MARK)
		numbers[1] = HR_NSYS_NULL;
	numbers[3] = ++n->regions;
	numbers[5] = thread.id;
	numbers[6] = HR_NSYS_NULL;
	if (r == 0)
		r = take_domain(n, &domain, thread.id, &numbers[7]);
	if (r == 0)
		r = take_category(n, &category, numbers[7], thread.id, &numbers[4]);
	if (r == 0 && texts[0].text != NULL)
		r = hr_nsys_string(n->db, texts[0].text, texts[0].bytes, &numbers[6]);
	if (r == 0)
		r = hr_nsys_insert(n->db, HR_NSYS_NVTX_EVENTS, numbers, texts);
	return r == 0 ? put_region(n, row, &region, &thread) : r;
}

int hr__nsys_regions(struct hr__nsys *n)
{
	int r = 0;

	for (size_t i = 0; i < n->ws->n_regions && r == 0; i++) {
		const struct hr_walk_region *row = &n->ws->regions[i];

		if (row->end_ns - row->start_ns >= n->limits.regions_ns)
			r = nsys_region(n, row);
	}
	return r;
}
