/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "query/tables/internal.h"
#include "common/fnv.h"
#include "common/text.h"

#define NAME_BYTES 8192 /* more than the longest name of a file */

/* The different patterns of one stream. `slots` is a hash table of indexes in `list`. */
struct interned {
	uint32_t *slots;
	uint32_t mask;
	duckdb_string_t *list;
	uint32_t n, size;
};

static uint64_t hash_text(const char *text, size_t n)
{
	uint64_t h = hr_fnv(HR_FNV_BASIS, text, n);

	return h ^ h >> 29;
}

static int interned_grow(struct interned *t)
{
	uint32_t size = t->size == 0 ? 256 : t->size * 2;
	duckdb_string_t *list = realloc(t->list, size * sizeof(*list));
	uint32_t *slots;

	if (list == NULL)
		return -ENOMEM;
	t->list = list;
	slots = calloc(2 * (size_t)size, sizeof(*slots));
	if (slots == NULL)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->mask = 2 * size - 1;
	t->size = size;
	if (t->n == 0)
		t->n = 1; /* index 0 stands for no pattern */
	for (uint32_t i = 1; i < t->n; i++) {
		uint64_t h = hash_text(hr_string_text(&list[i]), list[i].value.inlined.length);

		while (slots[h & t->mask] != 0)
			h++;
		slots[h & t->mask] = i;
	}
	return 0;
}

/* Returns the index of a text, or -ENOMEM. Adds the text if it is new. */
static int64_t intern(struct interned *t, struct hr_pool *pool, const char *text, size_t n)
{
	uint64_t h = hash_text(text, n);
	char *copy = NULL;

	if ((t->n == t->size || t->list == NULL) && interned_grow(t) < 0)
		return -ENOMEM;
	for (;; h++) {
		uint32_t i = t->slots[h & t->mask];

		if (i == 0)
			break;
		// NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): filled
		if (t->list[i].value.inlined.length == n &&
		    memcmp(hr_string_text(&t->list[i]), text, n) == 0)
			return i;
	}
	copy = hr_pool_get(pool, n);
	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, text, n);
	t->list[t->n] = hr_string(copy, n);
	t->slots[h & t->mask] = t->n;
	return t->n++;
}

static const char *base_of(const char *path, size_t bytes, size_t *ret_n)
{
	size_t at = bytes;

	while (at > 0 && path[at - 1] != '/')
		at--;
	*ret_n = bytes - at;
	return path + at;
}

/* Removes digits and `-`, so that files of different steps, ranks or shards have one pattern. */
static size_t strip_digits(char *out, const char *name, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		if (name[i] != '-' && (name[i] < '0' || name[i] > '9'))
			out[len++] = name[i];
	}
	return len;
}

/* Counts damaged frames with paths for the notes, because their files seem to have no name. */
static void note_lost(struct hr_query *q, const struct hr_qstream *st)
{
	for (uint32_t i = 0; i < st->s->n_frames; i++) {
		if (st->s->frames[i].kind == HEADRACE__FRAME__BODY_PATHS &&
		    hr_stream_paths_lost(st->s, i))
			hr_query_damage(q, st, i, -EBADMSG);
	}
}

static int make_info(struct hr_qstream *st)
{
	struct hr_query_names *names = &st->names;

	names->hash = calloc(names->n, sizeof(*names->hash));
	names->mount = calloc(names->n, sizeof(*names->mount));
	names->scope = calloc(names->n, sizeof(*names->scope));
	if (names->hash == NULL || names->mount == NULL || names->scope == NULL)
		return -ENOMEM;
	for (uint32_t i = 1; i < names->n; i++) {
		struct hr_file_info info;

		if (hr_stream_file_at(st->s, i, false, &info) < 0)
			continue;
		names->hash[i] = info.hash;
		names->scope[i] = info.scope != 0;
		if (hr_query_mount(st, info.mount) != NULL)
			names->mount[i] = info.mount;
	}
	return 0;
}

/* Makes the paths. A path in a lost frame has length 0, which scans return as NULL. */
static int make_paths(struct hr_query *q, struct hr_qstream *st)
{
	struct hr_query_names *names = &st->names;

	names->path = calloc(names->n, sizeof(*names->path));
	if (names->path == NULL)
		return -ENOMEM;
	for (uint32_t i = 1; i < names->n; i++) {
		struct hr_file_info info;

		if (hr_stream_file_at(st->s, i, true, &info) == 0)
			names->path[i] = hr_string_of(&q->pool, info.path, info.path_bytes);
	}
	return 0;
}

static int make_bases(struct hr_query_names *names)
{
	names->base = calloc(names->n, sizeof(*names->base));
	if (names->base == NULL)
		return -ENOMEM;
	for (uint32_t i = 1; i < names->n; i++) {
		const duckdb_string_t *path = &names->path[i];
		size_t n;
		const char *base = base_of(hr_string_text(path), path->value.inlined.length, &n);

		names->base[i] = hr_string(base, n);
	}
	return 0;
}

/* Digits are removed before the text is escaped, because escape sequences contain digits. */
static int make_patterns(struct hr_query *q, struct hr_qstream *st)
{
	struct hr_query_names *names = &st->names;
	struct interned t = {0};
	char stripped[NAME_BYTES];
	int64_t index = 0;

	names->pattern = calloc(names->n, sizeof(*names->pattern));
	for (uint32_t i = 1; i < names->n && names->pattern != NULL && index >= 0; i++) {
		struct hr_file_info info;
		const char *base;
		size_t n;

		if (hr_stream_file_at(st->s, i, true, &info) < 0 || info.path_bytes == 0)
			continue;
		base = base_of((const char *)info.path, info.path_bytes, &n);
		n = n < sizeof(stripped) ? n : sizeof(stripped);
		index = intern(&t, &q->pool, stripped, strip_digits(stripped, base, n));
		names->pattern[i] = index < 0 ? 0 : (uint32_t)index;
	}
	for (uint32_t i = 1; i < t.n; i++) {
		const duckdb_string_t *raw = &t.list[i];

		t.list[i] = hr_string_of(&q->pool, hr_string_text(raw), raw->value.inlined.length);
	}
	names->patterns = t.list;
	free(t.slots);
	return names->pattern == NULL || index < 0 ? -ENOMEM : 0;
}

/* Makes one array. Make the parts in their order, because later ones use earlier ones. */
static int names_make(struct hr_query *q, struct hr_qstream *st, unsigned part)
{
	switch (part) {
	case HR_NAMES_INFO:
		return make_info(st);
	case HR_NAMES_PATH:
		return make_paths(q, st);
	case HR_NAMES_BASE:
		return make_bases(&st->names);
	default:
		return make_patterns(q, st);
	}
}

int hr__names_need(struct hr_query *q, struct hr_qstream *st, unsigned parts)
{
	struct hr_query_names *names = &st->names;
	unsigned ready = atomic_load_explicit(&names->ready, memory_order_acquire);
	uint32_t n = 0;
	int r;

	if (parts & HR_NAMES_BASE)
		parts |= HR_NAMES_PATH;
	if ((parts & ~ready) == 0)
		return 0;
	pthread_mutex_lock(&names->lock);
	ready = atomic_load_explicit(&names->ready, memory_order_relaxed);
	parts &= ~ready;
	r = hr_stream_files(st->s, &n);
	if (ready == 0) /* set only once, because other threads may read it */
		names->n = n + 1;
	for (unsigned part = HR_NAMES_INFO; r == 0 && part <= HR_NAMES_PATTERN; part <<= 1) {
		if ((parts & part) == 0)
			continue;
		r = names_make(q, st, part);
		if (r == 0)
			atomic_fetch_or_explicit(&names->ready, part, memory_order_release);
	}
	note_lost(q, st);
	pthread_mutex_unlock(&names->lock);
	return r;
}

/* A path in the statement, unescaped to `n` bytes; `n` is negative if it is no escaped text. */
struct wanted_path {
	char *bytes;
	long n;
};

static bool names_is_wanted(const struct wanted_path *wanted, unsigned n,
			    const struct hr_file_info *info)
{
	for (unsigned i = 0; i < n; i++) {
		if (wanted[i].n == (long)info->path_bytes &&
		    memcmp(wanted[i].bytes, info->path, info->path_bytes) == 0)
			return true;
	}
	return false;
}

int hr__names_match(struct hr_query *q, const struct hr_qstream *st,
		    const struct hr_prune_set *paths, uint8_t **ret_bits)
{
	struct wanted_path wanted[HR_PRUNE_VALUES];
	uint8_t *bits = NULL;
	struct hr_file_info info;
	uint32_t files = 0;
	unsigned n = 0;
	bool done = false;

	if (hr_stream_files(st->s, &files) == 0)
		bits = calloc((size_t)files / 8 + 1, 1);
	for (; bits != NULL && n < paths->n; n++) {
		wanted[n].bytes = strdup(paths->text[n]);
		if (wanted[n].bytes == NULL)
			break;
		wanted[n].n = hr_text_unescape(wanted[n].bytes);
	}
	if (bits != NULL && n == paths->n) {
		for (uint32_t i = 1; i <= files; i++) {
			if (hr_stream_file_at(st->s, i, true, &info) == 0 &&
			    names_is_wanted(wanted, n, &info))
				bits[i / 8] |= (uint8_t)(1u << (i % 8));
		}
		note_lost(q, st);
		*ret_bits = bits;
		bits = NULL;
		done = true;
	}
	for (unsigned i = 0; i < n; i++)
		free(wanted[i].bytes);
	free(bits);
	return done ? 0 : -ENOMEM;
}

void hr_query_names_done(struct hr_query_names *names)
{
	free(names->hash);
	free(names->mount);
	free(names->scope);
	free(names->path);
	free(names->base);
	free(names->pattern);
	free(names->patterns);
	pthread_mutex_destroy(&names->lock);
}
