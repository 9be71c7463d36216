/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors with their file positions, mappings, and paths. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "import/strace/strace_state.h"

#define NONE	  HR__STRACE_NONE
#define MAPS_MOST 65536u /* of a process */

/* ---- descriptors ----------------------------------------------------------------------------- */

uint32_t hr__strace_fds_new(struct strace *p)
{
	if (!hr_array_reserve(p->fds, p->n_fds, p->fds_room))
		return NONE;
	p->fds[p->n_fds] = (struct strace_fds){.refs = 1};
	return p->n_fds++;
}

uint32_t hr__strace_fds_copy(struct strace *p, uint32_t from)
{
	uint32_t to = hr__strace_fds_new(p);
	const struct hr_map64 *all;

	if (to == NONE || from == NONE)
		return to;
	all = &p->fds[from].opens;
	for (uint64_t i = 0; all->cells && i <= all->mask; i++) {
		const struct hr_map64_cell *c = &all->cells[i];

		if (c->value == NONE)
			continue;
		if (hr_map64_set(&p->fds[to].opens, c->key, c->value))
			return NONE;
		p->opens[c->value & ~HR__STRACE_CLOEXEC].refs++;
	}
	return to;
}

static void open_release(struct strace *p, uint32_t i)
{
	if (--p->opens[i].refs)
		return;
	free(p->opens[i].path);
	p->opens[i].path = NULL;
	p->opens[i].file = p->free_open; /* the next free one */
	p->free_open = i + 1;
}

void hr__strace_fds_drop(struct strace *p, uint32_t fds)
{
	struct hr_map64 *all;

	if (fds == NONE || --p->fds[fds].refs)
		return;
	all = &p->fds[fds].opens;
	for (uint64_t i = 0; all->cells && i <= all->mask; i++)
		if (all->cells[i].value != NONE)
			open_release(p, all->cells[i].value & ~HR__STRACE_CLOEXEC);
	hr_map64_done(all);
}

int hr__strace_fds_unshare(struct strace *p, uint32_t *fds)
{
	uint32_t own;

	if (*fds == NONE || p->fds[*fds].refs == 1)
		return 0;
	own = hr__strace_fds_copy(p, *fds);
	if (own == NONE)
		return -ENOMEM;
	hr__strace_fds_drop(p, *fds);
	*fds = own;
	return 0;
}

void hr__strace_fds_close(struct strace *p, uint32_t fds, uint64_t first, uint64_t last,
			  bool only_cloexec)
{
	const struct hr_map64 *all = fds == NONE ? NULL : &p->fds[fds].opens;

	for (uint64_t i = 0; all && all->cells && i <= all->mask; i++) {
		const struct hr_map64_cell *c = &all->cells[i];

		if (c->value == NONE || c->key < first || c->key > last ||
		    (only_cloexec && !(c->value & HR__STRACE_CLOEXEC)))
			continue;
		hr__strace_open_close(p, fds, (int32_t)c->key);
		i--; /* the removal may have moved another cell here */
	}
}

void hr__strace_fds_cloexec(struct strace *p, uint32_t fds, uint64_t first, uint64_t last)
{
	const struct hr_map64 *all = fds == NONE ? NULL : &p->fds[fds].opens;

	for (uint64_t i = 0; all && all->cells && i <= all->mask; i++) {
		struct hr_map64_cell *c = &all->cells[i];

		if (c->value != NONE && c->key >= first && c->key <= last)
			c->value |= HR__STRACE_CLOEXEC;
	}
}

/* The index of a description. NONE: the descriptor is unknown. */
static uint32_t open_index(const struct strace *p, uint32_t fds, int32_t fd)
{
	uint32_t i = fds == NONE || fd < 0 ? NONE : hr_map64_get(&p->fds[fds].opens, (uint32_t)fd);

	return i == NONE ? NONE : i & ~HR__STRACE_CLOEXEC;
}

struct strace_open *hr__strace_open_get(struct strace *p, uint32_t fds, int32_t fd)
{
	uint32_t i = open_index(p, fds, fd);

	return i == NONE ? NULL : &p->opens[i];
}

void hr__strace_cloexec_set(struct strace *p, uint32_t fds, int32_t fd, bool cloexec)
{
	uint32_t i = open_index(p, fds, fd);

	if (i != NONE)
		(void)hr_map64_set(&p->fds[fds].opens, (uint32_t)fd,
				   cloexec ? i | HR__STRACE_CLOEXEC : i);
}

void hr__strace_open_close(struct strace *p, uint32_t fds, int32_t fd)
{
	uint32_t i = open_index(p, fds, fd);

	if (i == NONE)
		return;
	hr_map64_remove(&p->fds[fds].opens, (uint32_t)fd);
	open_release(p, i);
}

struct strace_open *hr__strace_open_new(struct strace *p, uint32_t fds, int32_t fd)
{
	uint32_t i;

	hr__strace_open_close(p, fds, fd);
	if (p->free_open) {
		i = p->free_open - 1;
		p->free_open = p->opens[i].file;
	} else {
		if (!hr_array_reserve(p->opens, p->n_opens, p->opens_room))
			return NULL;
		i = p->n_opens++;
	}
	p->opens[i] = (struct strace_open){.position = -1, .refs = 1, .renames = p->n_renames};
	if (fds == NONE || hr_map64_set(&p->fds[fds].opens, (uint32_t)fd, i)) {
		open_release(p, i);
		return NULL;
	}
	return &p->opens[i];
}

int hr__strace_open_dup(struct strace *p, uint32_t fds, int32_t from, int32_t to)
{
	uint32_t i = open_index(p, fds, from);

	if (from == to || to < 0)
		return 0;
	hr__strace_open_close(p, fds, to);
	if (i == NONE)
		return 0;
	if (hr_map64_set(&p->fds[fds].opens, (uint32_t)to, i))
		return -ENOMEM;
	p->opens[i].refs++;
	return 0;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/*
 * Removes empty components and "." of an absolute path. Returns the new length. As in a recording by
 * headrace, ".." remains, because the component before it may be a link.
 */
static size_t path_clean(char *path, size_t n)
{
	size_t to = 0;

	for (size_t from = 0; from < n;) {
		size_t end;

		while (from < n && path[from] == '/')
			from++;
		for (end = from; end < n && path[end] != '/';)
			end++;
		if (end > from && !(end - from == 1 && path[from] == '.')) {
			path[to++] = '/';
			memmove(path + to, path + from, end - from);
			to += end - from;
		}
		from = end;
	}
	if (to == 0)
		path[to++] = '/';
	return to;
}

uint32_t hr__strace_shown_file(struct strace *p, struct hr_strace_text shown)
{
	long n = hr__strace_unescape(shown, p->path, sizeof(p->path) - 1);

	p->path[n > 0 ? n : 0] = '\0';
	return n > 0 && p->path[0] == '/' ? hr_import_path(p->s, p->path, (size_t)n, false) : 0;
}

uint32_t hr__strace_path_file(struct strace *p, const char *dir, struct hr_strace_text path)
{
	size_t used = 0;
	long n;

	if (path.n < 2 || *path.p != '"')
		return 0;
	if (!hr__strace_absolute(path) && dir && *dir) {
		used = strlen(dir);
		if (used > sizeof(p->path) - 2)
			return 0;
		memcpy(p->path, dir, used);
		p->path[used++] = '/';
	}
	n = hr__strace_string(path, p->path + used, sizeof(p->path) - 1 - used);
	if (n < 0 || used + (size_t)n == 0)
		return 0;
	used += (size_t)n;
	if (p->path[0] == '/') /* else the current folder is not known */
		used = path_clean(p->path, used);
	p->path[used] = '\0';
	return hr_import_path(p->s, p->path, used, false);
}

/*
 * strace shows the present path of a descriptor. If it is not that of the description, either the
 * file was renamed, or the trace lacks the open.
 */
uint32_t hr__strace_fd_file(struct strace *p, struct strace_process *of,
			    const struct hr_strace_fd *fd)
{
	struct strace_open *open = hr__strace_open_get(p, of->fds, fd->fd);
	uint32_t file;

	p->n_fds_shown += fd->shown;
	p->n_fds_bare += !fd->shown && fd->fd >= 0;
	if (!fd->shown) {
		p->n_unknown_fds += !open && fd->fd >= 0;
		return open ? open->file : 0;
	}
	file = fd->path.n ? hr__strace_shown_file(p, fd->path) : 0;
	if (!file || !open)
		return file;
	if (open->file != file) {
		if (open->file && open->renames == p->n_renames)
			open->position = -1;
		open->file = file;
		open->renames = p->n_renames;
	}
	return file;
}

/* ---- mappings -------------------------------------------------------------------------------- */

void hr__strace_map_remove(struct strace_process *of, uint64_t start, uint64_t bytes)
{
	uint64_t end = bytes > UINT64_MAX - start ? UINT64_MAX : start + bytes;
	uint32_t n = of->n_maps;

	for (uint32_t i = 0; i < n; i++) {
		struct strace_map *m = &of->maps[i];

		if (m->start >= end || m->end <= start)
			continue;
		if (m->start < start && m->end > end) { /* a hole in the middle */
			uint64_t old_end = m->end;
			uint32_t file = m->file;

			m->end = start;
			(void)hr__strace_map_add(of, end, old_end - end, file);
		} else if (m->start < start) {
			m->end = start;
		} else if (m->end > end) {
			m->start = end;
		} else {
			m->end = m->start; /* removed below */
		}
	}
	n = 0;
	for (uint32_t i = 0; i < of->n_maps; i++)
		if (of->maps[i].end > of->maps[i].start)
			of->maps[n++] = of->maps[i];
	of->n_maps = n;
}

int hr__strace_map_add(struct strace_process *of, uint64_t start, uint64_t bytes, uint32_t file)
{
	uint64_t end = bytes > UINT64_MAX - start ? UINT64_MAX : start + bytes;

	if (of->n_maps >= MAPS_MOST)
		return 0;
	if (!hr_array_reserve(of->maps, of->n_maps, of->maps_room))
		return -ENOMEM;
	of->maps[of->n_maps++] = (struct strace_map){start, end, file};
	return 0;
}

uint32_t hr__strace_map_file(const struct strace_process *of, uint64_t at)
{
	for (uint32_t i = 0; i < of->n_maps; i++)
		if (at >= of->maps[i].start && at < of->maps[i].end)
			return of->maps[i].file;
	return 0;
}
