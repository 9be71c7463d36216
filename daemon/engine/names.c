/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/engine/names.h"

#include "common/array.h"

/* A set of file ids. It has a bit for each id from the lowest to the highest. */
struct wanted_name {
	uint8_t *bits;
	uint32_t lowest, highest;
};

static void widen(struct wanted_name *w, uint32_t file)
{
	w->lowest = file < w->lowest ? file : w->lowest;
	w->highest = file > w->highest ? file : w->highest;
}

static bool is_within(const struct wanted_name *w, uint32_t file)
{
	return file >= w->lowest && file <= w->highest;
}

static void want(struct wanted_name *w, uint32_t file)
{
	if (is_within(w, file))
		w->bits[(file - w->lowest) / 8] |= (uint8_t)(1u << (file - w->lowest) % 8);
}

static bool names_is_wanted(const struct wanted_name *w, uint32_t file)
{
	return is_within(w, file) &&
	       (w->bits[(file - w->lowest) / 8] >> (file - w->lowest) % 8 & 1);
}

static void want_last(struct wanted_name *w, const struct hr_filerecs *records,
		      const struct hr_filerec_list *list, uint32_t most)
{
	for (uint32_t i = list->newest; i != UINT32_MAX && most > 0; i = records->links[i].older) {
		want(w, records->v[i].t.file);
		most--;
	}
}

static void names_keep(struct hr_names *n, struct hr_name name)
{
	if (!hr_array_reserve(n->v, n->n, n->room))
		return;
	name.text = hr_arena_copy(&n->texts, name.text, name.bytes);
	if (name.text)
		n->v[n->n++] = name;
}

/* Also keeps the path that was added last, because its file may not have a file record yet. */
void hr_names_take(struct hr_names *n, const struct hr_paths *paths,
		   const struct hr_filerecs *records)
{
	struct wanted_name w = {.lowest = UINT32_MAX};

	for (uint32_t i = 0; i < paths->n_fresh; i++)
		widen(&w, paths->v[paths->fresh[i].path].id);
	w.bits = paths->n_fresh ? calloc((w.highest - w.lowest) / 8 + 1, 1) : NULL;
	if (!w.bits)
		return;
	want_last(&w, records, &records->open, paths->n_fresh + HR_NAMES_IDLE);
	want_last(&w, records, &records->idle, HR_NAMES_IDLE);
	for (uint32_t i = 0; i < paths->n_fresh; i++) {
		const struct hr_fresh_path *f = &paths->fresh[i];
		const struct hr_path *path = &paths->v[f->path];

		if (f->text && (names_is_wanted(&w, path->id) || i + 1 == paths->n_fresh))
			names_keep(n, (struct hr_name){f->text, path->id, (uint16_t)f->bytes,
						       path->mount});
	}
	free(w.bits);
}

void hr_names_tidy(struct hr_names *n, const struct hr_filerecs *records)
{
	struct wanted_name w = {.lowest = UINT32_MAX};
	struct hr_names kept = {0};

	if (n->texts.bytes <= (n->limit ? n->limit : HR_NAMES_BYTES))
		return;
	for (uint32_t i = 0; i < n->n; i++)
		widen(&w, n->v[i].file);
	w.bits = calloc((w.highest - w.lowest) / 8 + 1, 1);
	if (!w.bits)
		return;
	want_last(&w, records, &records->open, UINT32_MAX);
	want_last(&w, records, &records->idle, UINT32_MAX);
	for (uint32_t i = 0; i < n->n; i++)
		if (i + 1 == n->n || names_is_wanted(&w, n->v[i].file))
			names_keep(&kept, n->v[i]);
	free(w.bits);
	kept.limit = kept.texts.bytes + HR_NAMES_BYTES;
	hr_names_done(n);
	*n = kept;
}

void hr_names_done(struct hr_names *n)
{
	free(n->v);
	hr_arena_free(&n->texts);
	*n = (struct hr_names){0};
}
