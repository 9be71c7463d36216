/* SPDX-License-Identifier: Apache-2.0 */
#include "import/pfw/pfw_line.h"

#include <errno.h>
#include <string.h>

#include "common/json_part.h"

#define SLOTS	    256u /* of the table of keys; a power of two */
#define NESTED_MOST 64u	 /* depth of brackets in a skipped value */
#define ONES	    UINT64_C(0x0101010101010101)
#define HIGHS	    UINT64_C(0x8080808080808080)

struct key_slot {
	uint64_t first; /* the first bytes of the key, up to 8 */
	uint8_t n;
	uint8_t key;
};

/* A key by its number. */
struct key_text {
	uint64_t first, mask;
	const struct key_slot *table;
	uint8_t n;
};

static struct key_slot event_keys[SLOTS], arg_keys[SLOTS];
static struct key_text key_texts[HR_PFW_KEYS];

/* ---- keys ------------------------------------------------------------------------------------ */

static inline uint64_t load8(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The first bytes of a key of n bytes. Reads 8 bytes. */
static inline uint64_t key_first(const char *p, size_t n)
{
	return n >= 8 ? load8(p) : load8(p) & ((UINT64_C(1) << 8 * n) - 1);
}

static inline uint32_t key_home(uint64_t first, size_t n)
{
	return (uint32_t)((first + n) * UINT64_C(0x9e3779b97f4a7c15) >> 56) & (SLOTS - 1);
}

static void key_add(struct key_slot *table, const char *text, enum hr_pfw_key key)
{
	char padded[32] = {0};
	size_t n = strlen(text);
	uint64_t first;
	uint32_t i;

	for (size_t k = 0; k < n; k++)
		padded[k] = text[k];
	first = key_first(padded, n);
	i = key_home(first, n);
	while (table[i].n)
		i = (i + 1) & (SLOTS - 1);
	table[i] = (struct key_slot){first, (uint8_t)n, (uint8_t)key};
	key_texts[key] = (struct key_text){first, n >= 8 ? UINT64_MAX : (UINT64_C(1) << 8 * n) - 1,
					   table, (uint8_t)n};
}

void hr__pfw_line_init(void)
{
	if (event_keys[key_home(key_first("id\0\0\0\0\0", 2), 2)].n)
		return;
#define KEY(id, text) key_add(event_keys, text, HR_PFW_##id);
	HR_PFW_EVENT_KEYS(KEY)
#undef KEY
#define KEY(id, text) key_add(arg_keys, text, HR_PFW_##id);
	HR_PFW_ARG_KEYS(KEY)
#undef KEY
}

/*
 * Returns the key; HR_PFW_KEYS: unknown. Keys that agree in length and the first eight bytes are
 * taken as equal: no key of the dialects does so with a known one.
 */
static inline unsigned key_find(const struct key_slot *table, const char *p, size_t n)
{
	uint64_t first = key_first(p, n);
	uint32_t i = key_home(first, n);

	for (; table[i].n; i = (i + 1) & (SLOTS - 1))
		if (table[i].first == first && table[i].n == n)
			return table[i].key;
	return HR_PFW_KEYS;
}

/* ---- values ---------------------------------------------------------------------------------- */

static inline uint64_t bytes_equal(uint64_t v, uint8_t byte)
{
	uint64_t x = v ^ ONES * byte;

	return (x - ONES) & ~x & HIGHS; /* exact up to the first match */
}

/*
 * Finds the quote that ends a string which begins at p. NULL: none. Reads up to 7 bytes after
 * `end`.
 */
static inline const char *string_end(const char *p, const char *end, bool *ret_escaped)
{
	*ret_escaped = false;
	while (p < end) {
		uint64_t v = load8(p), hit = bytes_equal(v, '"') | bytes_equal(v, '\\');

		if (!hit) {
			p += 8;
			continue;
		}
		p += __builtin_ctzll(hit) / 8;
		if (p >= end)
			return NULL;
		if (*p == '"')
			return p;
		*ret_escaped = true;
		p += 2;
	}
	return NULL;
}

static inline bool char_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static inline const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && char_is_blank(*p))
		p++;
	return p;
}

/* Finds the end of an object or array that begins at p. NULL: none. */
static const char *nested_end(const char *p, const char *end, int *ret)
{
	unsigned depth = 0;
	bool escaped;

	*ret = -EBADMSG;
	for (; p < end; p++) {
		if (*p == '{' || *p == '[') {
			if (++depth > NESTED_MOST)
				return NULL;
		} else if (*p == '}' || *p == ']') {
			if (--depth == 0)
				return p + 1;
		} else if (*p == '"') {
			p = string_end(p + 1, end, &escaped);
			if (!p) {
				*ret = -EAGAIN;
				return NULL;
			}
		}
	}
	return NULL;
}

/* Reads a value at *p, and moves *p to its end. */
static inline int value_read(const char **p, const char *end, struct hr_pfw_value *v)
{
	const char *at = *p, *to;
	int r = 0;

	if (at >= end)
		return -EBADMSG;
	v->escaped = false;
	if (*at == '"') {
		to = string_end(at + 1, end, &v->escaped);
		if (!to)
			return -EAGAIN;
		v->type = HR_PFW_STRING;
		v->p = at + 1;
		v->n = (uint32_t)(to - at - 1);
		*p = to + 1;
		return 0;
	}
	v->p = at;
	if (*at == '{' || *at == '[') {
		v->type = HR_PFW_NESTED;
		to = nested_end(at, end, &r);
		if (!to)
			return r;
	} else {
		v->type = HR_PFW_NUMBER;
		for (to = at;
		     to < end && *to != ',' && *to != '}' && *to != ']' && !char_is_blank(*to);)
			to++;
		if (to == at)
			return -EBADMSG;
	}
	v->n = (uint32_t)(to - at);
	*p = to;
	return 0;
}

/* ---- objects --------------------------------------------------------------------------------- */

/* Whether `"key":` is at `at`, for a key that is likely here. */
static inline bool key_is_at(const char *at, const char *end, const struct key_text *key)
{
	return end - at > key->n + 3 && (load8(at + 1) & key->mask) == key->first &&
	       at[key->n + 1] == '"' && at[key->n + 2] == ':';
}

/*
 * Reads `"key":` at *p, and moves *p to the value. First tries the key that followed the previous
 * one in another line. Returns the key, or -errno.
 */
static inline int key_read(const char **p, const char *end, const struct key_slot *table,
			   uint8_t *likely)
{
	const char *at = *p, *to;
	bool escaped;
	unsigned key;

	if (at >= end || *at != '"')
		return -EBADMSG;
	if (key_texts[*likely].table == table && key_is_at(at, end, &key_texts[*likely])) {
		*p = skip_blanks(at + key_texts[*likely].n + 3, end);
		return *likely;
	}
	to = string_end(++at, end, &escaped);
	if (!to)
		return -EAGAIN;
	key = key_find(table, at, (size_t)(to - at));
	at = skip_blanks(to + 1, end);
	if (at >= end || *at != ':')
		return -EBADMSG;
	*p = skip_blanks(at + 1, end);
	if (key != HR_PFW_KEYS)
		*likely = (uint8_t)key;
	return (int)key;
}

/* Moves *p past a comma, or past the bracket that ends the object. 1: the object has ended. */
static inline int member_end(const char **p, const char *end)
{
	const char *at = skip_blanks(*p, end);

	if (at >= end || (*at != ',' && *at != '}'))
		return -EBADMSG;
	*p = skip_blanks(at + 1, end);
	return *at == '}';
}

/* Reads the members of `args`, after its '{'. */
static int args_read(const char **p, const char *end, struct hr_pfw_line *l)
{
	uint8_t *likely = &l->next[HR_PFW_ARGS];
	struct hr_pfw_value other;
	int r;

	if (*p < end && **p == '}') {
		(*p)++;
		return 0;
	}
	do {
		int key = key_read(p, end, arg_keys, likely);

		if (key < 0)
			return key;
		likely = &l->next[key];
		if (key == HR_PFW_KEYS)
			l->more = true;
		else
			l->have |= UINT64_C(1) << key;
		r = value_read(p, end, key == HR_PFW_KEYS ? &other : &l->v[key]);
		if (!r)
			r = member_end(p, end);
	} while (r == 0);
	return r < 0 ? r : 0;
}

/* Reads a member of the event. *likely: the key that is probably next. */
static inline int event_member(const char **p, const char *end, struct hr_pfw_line *l,
			       uint8_t **likely)
{
	int key = key_read(p, end, event_keys, *likely);
	struct hr_pfw_value other, *v;
	int r;

	if (key < 0)
		return key;
	/* That of `args` is the first argument; after it, nothing is likely. */
	*likely = &l->next[key == HR_PFW_ARGS ? HR_PFW_KEYS : key];
	v = key == HR_PFW_KEYS ? &other : &l->v[key];
	if (key == HR_PFW_ARGS && *p < end && **p == '{') {
		v->p = (*p)++;
		v->type = HR_PFW_NESTED;
		v->escaped = false;
		*p = skip_blanks(*p, end);
		r = args_read(p, end, l);
		v->n = (uint32_t)(*p - v->p);
		while (v->n && char_is_blank(v->p[v->n - 1]))
			v->n--;
	} else {
		r = value_read(p, end, v);
	}
	if (key != HR_PFW_KEYS)
		l->have |= UINT64_C(1) << key;
	return r;
}

int hr__pfw_line(const char *p, size_t n, struct hr_pfw_line *ret)
{
	uint8_t first = HR_PFW_ID, *likely = &first;
	const char *end = p + n;
	int r;

	ret->have = 0;
	ret->more = false;
	p = skip_blanks(p, end);
	while (p < end && (*p == '[' || *p == ',')) /* an event on the first line, commas first */
		p = skip_blanks(p + 1, end);
	if (p >= end || (*p == ']' && skip_blanks(p + 1, end) == end))
		return 1;
	if (*p != '{')
		return -EBADMSG;
	p = skip_blanks(p + 1, end);
	do {
		r = event_member(&p, end, ret, &likely);
		if (!r)
			r = member_end(&p, end);
	} while (r == 0);
	if (r < 0)
		return r;
	while (p < end && (*p == ',' || *p == ']' || char_is_blank(*p)))
		p++;
	return p == end ? 0 : -EBADMSG;
}

/* ---- numbers and texts ----------------------------------------------------------------------- */

/* Whether all eight bytes are digits. */
static inline bool digits8_are(uint64_t v)
{
	return ((v & ONES * 0xf0) | ((v + ONES * 6) & ONES * 0xf0) >> 4) == ONES * 0x33;
}

/* The number that eight digits make, the first one in the lowest byte. */
static inline uint64_t digits8_value(uint64_t v)
{
	v = (v & ONES * 0x0f) * 2561 >> 8; /* pairs: 10 * a + b */
	v = (v & UINT64_C(0x00ff00ff00ff00ff)) * 6553601 >> 16;
	return (v & UINT64_C(0x0000ffff0000ffff)) * UINT64_C(42949672960001) >> 32;
}

bool hr__pfw_int(const struct hr_pfw_value *v, int64_t *ret)
{
	const char *p = v->p, *end;
	uint64_t n = 0;
	bool negative;

	if (v->n == 0 || v->type == HR_PFW_NESTED)
		return false;
	end = p + v->n;
	negative = *p == '-';
	p += negative;
	if (p == end || end - p > 19)
		return false;
	for (; end - p >= 8 && digits8_are(load8(p)); p += 8)
		n = n * 100000000 + digits8_value(load8(p));
	for (; p < end; p++) {
		unsigned digit = (unsigned)*p - '0';

		if (digit > 9)
			return false;
		n = n * 10 + digit;
	}
	if (n > INT64_MAX)
		return false;
	*ret = negative ? -(int64_t)n : (int64_t)n;
	return true;
}

bool hr__pfw_time(const struct hr_pfw_value *v, uint64_t unit_ns, uint64_t *ret_ns)
{
	struct hr_pfw_value whole = *v;
	uint64_t below = 0, place = unit_ns / 10;
	const char *dot;
	int64_t units;

	if (v->n == 0)
		return false;
	dot = memchr(v->p, '.', v->n);
	if (__builtin_expect(dot != NULL, 0))
		whole.n = (uint32_t)(dot - v->p);
	if (!hr__pfw_int(&whole, &units) || units < 0 ||
	    (uint64_t)units > (uint64_t)INT64_MAX / unit_ns)
		return false;
	for (dot = dot ? dot + 1 : v->p + v->n; dot < v->p + v->n; dot++, place /= 10) {
		unsigned digit = (unsigned)*dot - '0';

		if (digit > 9)
			return false;
		below += digit * place;
	}
	*ret_ns = (uint64_t)units * unit_ns + below;
	return true;
}

size_t hr__pfw_text(const struct hr_pfw_value *v, char *to)
{
	const struct hr_json_part string = {.p = v->p, .n = v->n};

	if (v->escaped)
		return hr_json_part_text(&string, to);
	if (v->n)
		memcpy(to, v->p, v->n);
	return v->n;
}
