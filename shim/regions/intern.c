/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/regions/intern.h"

#include <string.h>

#include "shim/core/sys.h"

#define SLOTS	   32768u
#define SLOTS_USED (SLOTS / 4 * 3)
#define SEED	   UINT64_C(0x9e3779b97f4a7c15)

enum text_kind { DOMAIN, TEXT, CATEGORY, NAME };

/* One stored item. `kind` determines which fields are valid. */
struct node {
	uint64_t hash;
	uint32_t kind;
	uint32_t number;
	struct hr__domain *of;
	/* For CATEGORY: its name, which may change. For NAME: a stored text, or NULL. */
	const char *category;
	union {
		struct hr__domain domain;
		struct hr__text_interned interned;
		struct headrace_name name;
	};
};

/* A hash table with open addressing, from which no entry is removed. */
struct text_store {
	struct node *slots[SLOTS];
	uint32_t used;
	uint64_t bytes;
	uint8_t room[HR__INTERN_BYTES] __attribute__((aligned(16)));
};

static struct text_store *store;
static struct hr__domain no_domain = {
    .stack = UINT32_C(1) << 31,
    .nameless = {.name = HR__INTERN_NAMELESS},
    .itt = {.flags = 1, .name = "", .ours = &no_domain},
};

bool hr__interned_init(void)
{
	struct text_store *fresh, *none = NULL;

	if (__atomic_load_n(&store, __ATOMIC_ACQUIRE) != NULL)
		return true;
	fresh = hr_shim_image.quiet ? NULL : hr_sys_reserve(sizeof(*fresh));
	if (fresh == NULL) {
		hr_counters_region(); /* the program has regions; their number stays unknown */
		return false;
	}
	/* Release: pairs with the acquire loads. If another thread was first, frees this memory. */
	if (!__atomic_compare_exchange_n(&store, &none, fresh, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		HR_SYS2(munmap, fresh, sizeof(*fresh));
	return true;
}

static void *intern_reserve(struct text_store *s, size_t bytes)
{
	uint64_t at;

	bytes = (bytes + 15) & ~(size_t)15;
	if (__atomic_load_n(&s->bytes, __ATOMIC_RELAXED) + bytes > sizeof(s->room))
		return NULL;
	at = __atomic_fetch_add(&s->bytes, bytes, __ATOMIC_RELAXED);
	return at + bytes <= sizeof(s->room) ? s->room + at : NULL;
}

static const char *copy(struct text_store *s, const char *text, size_t bytes)
{
	char *to = intern_reserve(s, bytes + 1);

	if (to != NULL)
		memcpy(to, text, bytes); /* fresh memory is zero, so the NUL is there */
	return to;
}

static uint64_t mix(uint64_t h, uint64_t n)
{
	h = (h ^ n) * SEED;
	return h ^ h >> 29;
}

static uint64_t hash_text(const char *text, size_t bytes)
{
	uint64_t h = mix(SEED, bytes), word;

	for (; bytes >= sizeof(word); bytes -= sizeof(word), text += sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		h = mix(h, word);
	}
	word = 0;
	memcpy(&word, text, bytes);
	return mix(h, word);
}

static bool text_is(const char *kept, const char *text, size_t bytes)
{
	return kept == text || (memcmp(kept, text, bytes) == 0 && kept[bytes] == '\0');
}

struct wanted_text {
	uint64_t hash;
	enum text_kind kind;
	uint32_t number;
	struct hr__domain *of;
	const char *category;
	const char *text;
	size_t bytes;
};

static bool node_is(const struct node *n, const struct wanted_text *w)
{
	if (n->hash != w->hash || n->kind != w->kind || n->of != w->of)
		return false;
	switch (w->kind) {
	case DOMAIN:
		return text_is(n->domain.name, w->text, w->bytes);
	case TEXT:
		return text_is(n->interned.text, w->text, w->bytes);
	case CATEGORY:
		return n->number == w->number;
	default:
		return n->category == w->category && text_is(n->name.name, w->text, w->bytes);
	}
}

/*
 * Whether a library marks its own work in this domain: many short regions that are not the user's
 * (docs/regions.md). A name with a $ is one of the OpenMP library of Intel and LLVM.
 */
static bool domain_of_library(const char *name)
{
	static const char *const begins[] = {"dnnl::", "tbb.",	  "NCCL",
					     "CCCL",   "libcudf", "libkvikio"};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	return strstr(name, "$omp$") != NULL;
}

static struct node *node_new(struct text_store *s, const struct wanted_text *w)
{
	const struct hr__text_interned *kept;
	const char *text = NULL;
	struct node *n;

	if (w->kind == TEXT || w->kind == DOMAIN) {
		text = copy(s, w->text, w->bytes);
	} else if (w->kind == NAME) {
		kept = hr__interned_text_of(w->text, w->bytes);
		text = kept != NULL ? kept->text : NULL;
	}
	n = intern_reserve(s, sizeof(*n));
	if (n == NULL || (text == NULL && w->kind != CATEGORY))
		return NULL;
	n->hash = w->hash;
	n->kind = w->kind;
	n->number = w->number;
	n->of = w->of;
	n->category = w->category;
	if (w->kind == DOMAIN) {
		n->domain.name = text;
		n->domain.left_out = !hr_shim_image.nvtx_all && domain_of_library(text);
		n->domain.stack = (uint32_t)(w->hash >> 32) | UINT32_C(1) << 31;
		n->domain.nameless =
		    (struct headrace_name){.name = HR__INTERN_NAMELESS, .domain = text};
		n->domain.itt = (struct hr__itt_domain){
		    .flags = !n->domain.left_out, .name = text, .ours = &n->domain};
	} else if (w->kind == TEXT) {
		n->interned = (struct hr__text_interned){
		    .hash = w->hash, .text = text, .itt = {.text = text, .ours = &n->interned}};
	} else if (w->kind == NAME) {
		n->name = (struct headrace_name){
		    .name = text, .domain = w->of->name, .category = w->category};
	}
	return n;
}

static struct node *intern_find(const struct wanted_text *w)
{
	/* Acquire: pairs with the release stores in hr__interned_init() and below. */
	struct text_store *s = __atomic_load_n(&store, __ATOMIC_ACQUIRE);
	struct node *fresh = NULL;

	for (uint32_t i = 0; s != NULL && i < SLOTS; i++) {
		struct node **slot = &s->slots[(w->hash + i) % SLOTS];
		struct node *n = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

		if (n == NULL) {
			if (fresh == NULL) {
				if (__atomic_load_n(&s->used, __ATOMIC_RELAXED) >= SLOTS_USED)
					return NULL;
				fresh = node_new(s, w);
			}
			if (fresh == NULL)
				return NULL;
			/* Release: publishes the node. Another thread may have been first. */
			if (__atomic_compare_exchange_n(slot, &n, fresh, false, __ATOMIC_ACQ_REL,
							__ATOMIC_ACQUIRE)) {
				__atomic_fetch_add(&s->used, 1, __ATOMIC_RELAXED);
				return fresh;
			}
		}
		if (node_is(n, w))
			return n;
	}
	return NULL;
}

struct hr__text_interned *hr__interned_text_of(const char *text, size_t bytes)
{
	struct node *n;

	bytes = strnlen(text, bytes < HR__INTERN_TEXT ? bytes : HR__INTERN_TEXT);
	n = intern_find(&(struct wanted_text){
	    .hash = hash_text(text, bytes), .kind = TEXT, .text = text, .bytes = bytes});
	return n != NULL ? &n->interned : NULL;
}

struct hr__text_interned *hr__interned_text(const char *text)
{
	return hr__interned_text_of(text, HR__INTERN_TEXT);
}

struct hr__domain *hr__interned_domain(const char *name)
{
	struct node *n;
	size_t bytes;

	if (name == NULL)
		return &no_domain;
	bytes = strnlen(name, HR__INTERN_TEXT);
	n = intern_find(&(struct wanted_text){.hash = mix(hash_text(name, bytes), DOMAIN + 1),
					      .kind = DOMAIN,
					      .text = name,
					      .bytes = bytes});
	return n != NULL ? &n->domain : &no_domain;
}

static struct node *category_node(struct hr__domain *d, uint32_t number)
{
	return intern_find(
	    &(struct wanted_text){.hash = mix(mix(number, (uintptr_t)d), CATEGORY + 1),
				  .kind = CATEGORY,
				  .number = number,
				  .of = d});
}

void hr__interned_category(struct hr__domain *d, uint32_t category, const char *name)
{
	const struct hr__text_interned *text = name != NULL ? hr__interned_text(name) : NULL;
	struct node *n = category != 0 && text != NULL ? category_node(d, category) : NULL;

	if (n != NULL)
		__atomic_store_n(&n->category, text->text, __ATOMIC_RELEASE);
}

/* Returns the name of a category or, if the category has no name, its number as a text. */
static const char *category_of(struct hr__domain *d, uint32_t number)
{
	struct node *n = number != 0 ? category_node(d, number) : NULL;
	char digits[24];
	const char *name = n != NULL ? __atomic_load_n(&n->category, __ATOMIC_ACQUIRE) : NULL;

	if (name != NULL || n == NULL)
		return name;
	*hr_put_digits(digits, number) = '\0';
	hr__interned_category(d, number, digits);
	return __atomic_load_n(&n->category, __ATOMIC_ACQUIRE);
}

static struct headrace_name *intern_name_of(struct hr__domain *d, uint32_t category,
					    const char *text, size_t bytes, uint64_t hash)
{
	const char *kept = category_of(d, category);
	struct node *n = intern_find(
	    &(struct wanted_text){.hash = mix(mix(hash, (uintptr_t)d), (uintptr_t)kept + NAME),
				  .kind = NAME,
				  .of = d,
				  .category = kept,
				  .text = text,
				  .bytes = bytes});

	return n != NULL ? &n->name : &d->nameless;
}

struct headrace_name *hr__interned_name(struct hr__domain *d, uint32_t category, const char *text)
{
	size_t bytes = text != NULL ? strnlen(text, HR__INTERN_TEXT) : 0;

	text = text != NULL ? text : "";
	return intern_name_of(d, category, text, bytes, hash_text(text, bytes));
}

struct headrace_name *hr__interned_name_kept(struct hr__domain *d, uint32_t category,
					     struct hr__text_interned *text)
{
	struct headrace_name *name;

	if (text == NULL)
		return &d->nameless;
	/* Acquire: pairs with the release store below. */
	name = __atomic_load_n(&text->last, __ATOMIC_ACQUIRE);
	if (hr_likely(name != NULL && name->domain == d->name && category == 0))
		return name;
	name = intern_name_of(d, category, text->text, strlen(text->text), text->hash);
	if (category == 0 && name != &d->nameless)
		__atomic_store_n(&text->last, name, __ATOMIC_RELEASE);
	return name;
}

const char *hr__interned_utf8(const wchar_t *wide, char out[HR__INTERN_TEXT + 1])
{
	size_t n = 0;

	if (wide == NULL)
		return NULL;
	for (; *wide != 0; wide++) {
		uint32_t c = (uint32_t)*wide;

		if (n + 4 > HR__INTERN_TEXT)
			break;
		if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
			c = 0xfffd; /* c is not a character: write the replacement character */
		if (c < 0x80) {
			out[n++] = (char)c;
			continue;
		}
		if (c >= 0x10000) {
			out[n++] = (char)(0xf0 | c >> 18);
			out[n++] = (char)(0x80 | (c >> 12 & 0x3f));
		} else if (c >= 0x800) {
			out[n++] = (char)(0xe0 | c >> 12);
		} else {
			out[n++] = (char)(0xc0 | c >> 6);
		}
		if (c >= 0x800)
			out[n++] = (char)(0x80 | (c >> 6 & 0x3f));
		out[n++] = (char)(0x80 | (c & 0x3f));
	}
	out[n] = '\0';
	return out;
}

#define THREAD_CATEGORY UINT32_MAX

void hr__interned_thread(struct hr__domain *d, const char *name, uint64_t tid)
{
	static const char key[] = "{\"tid\":";
	char args[sizeof(key) + 24], *to;

	memcpy(args, key, sizeof(key) - 1);
	to = hr_put_digits(args + sizeof(key) - 1, tid);
	*to++ = '}';
	*to = '\0';
	hr__interned_category(d, THREAD_CATEGORY, "thread_name");
	hr__region_mark(hr__interned_name(d, THREAD_CATEGORY, name), args);
}
