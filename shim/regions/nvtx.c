/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx.c - the functions of NVTX version 3, whose variable NVTX_INJECTION64_PATH names this library
 *
 * NVTX consists of headers. Each library that includes them loads the library of this name at its
 * first NVTX call, and calls InitializeInjectionNvtx2 to fill its function pointers. Several
 * libraries may do this at once. NVTX skips pointers that were not filled. All state is in
 * intern.h. Pushed ranges belong to a thread and a domain: a pop ends the innermost range of its
 * domain.
 */
#include <string.h>

#include "shim/regions/intern.h"

/* NVTX defines the signatures, so some parameters are not used. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define EXPORT __attribute__((visibility("default")))

/* ---- NVTX's binary interface ------------------------------------------------------------------------- */

#define TABLE_CALLBACKS 1u
enum { MODULE_CORE = 1, MODULE_CORE2 = 5 };
enum { MESSAGE_NONE, MESSAGE_ASCII, MESSAGE_WIDE, MESSAGE_REGISTERED };
#define NO_TRACKING (-2) /* NVTX's result without a tool: the shim does not count nested ranges */

struct attributes {
	uint16_t version;
	uint16_t size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t reserved0;
	uint64_t payload;
	int32_t message_type;
	const void *message;
};
_Static_assert(sizeof(struct attributes) == 48, "as in nvToolsExt.h");

typedef void function(void);

struct callbacks {
	size_t struct_size;
	/* Returns an array of addresses of function pointers. The first address is unused. */
	int (*module_table)(int module, function ***ret_table, unsigned *ret_n);
};

static struct hr__domain *domain_of(void *handle)
{
	return handle != NULL ? handle : hr__interned_domain(NULL);
}

static struct headrace_name *nvtx_name_of(struct hr__domain *d, const struct attributes *a)
{
	char text[HR__INTERN_TEXT + 1];

	if (a == NULL || (a->size != 0 && a->size < sizeof(*a)))
		return &d->nameless;
	switch (a->message_type) {
	case MESSAGE_ASCII:
		return hr__interned_name(d, a->category, a->message);
	case MESSAGE_WIDE:
		return hr__interned_name(d, a->category, hr__interned_utf8(a->message, text));
	case MESSAGE_REGISTERED:
		if (a->message != NULL) /* otherwise the program has not registered the string */
			return hr__interned_name_kept(d, a->category,
						      (void *)(uintptr_t)a->message);
		break;
	default:
		break;
	}
	return hr__interned_name(d, a->category, NULL);
}

static const struct hr__payload *payload_of(const struct attributes *a, struct hr__payload *room)
{
	if (a == NULL || a->payload_type == 0 || (a->size != 0 && a->size < sizeof(*a)))
		return NULL;
	*room = (struct hr__payload){(uint32_t)a->payload_type, a->payload};
	return room;
}

static int push(struct hr__domain *d, struct headrace_name *name, const struct hr__payload *payload)
{
	hr__region_begin(name, d->stack, payload);
	return NO_TRACKING;
}

/* The function for wide texts calls that for texts of bytes. */
/* NOLINTBEGIN(bugprone-macro-parentheses): parameters, types and names cannot have parentheses */
#define WIDE(ret, name, params, args)                                                              \
	static ret name##_w params                                                                 \
	{                                                                                          \
		char text[HR__INTERN_TEXT + 1];                                                    \
		const char *utf8 = hr__interned_utf8(wide, text);                                  \
                                                                                                   \
		return name##_a args;                                                              \
	}

/* The function without a domain calls that with one. */
#define NO_DOMAIN(ret, name, params, args)                                                         \
	static ret name params                                                                     \
	{                                                                                          \
		return domain_##name args;                                                         \
	}
/* NOLINTEND(bugprone-macro-parentheses) */

/* ---- CORE2: with a domain -------------------------------------------------------------------- */

static void domain_mark_ex(void *domain, const struct attributes *a)
{
	char text[HR__PAYLOAD_TEXT];
	struct hr__payload room;
	const struct hr__payload *p = payload_of(a, &room);

	if (domain_of(domain)->left_out)
		return;
	hr__region_mark(nvtx_name_of(domain_of(domain), a),
			p != NULL && hr__payload_text(p, text) ? text : NULL);
}

static uint64_t domain_start_ex(void *domain, const struct attributes *a)
{
	struct hr__payload room;

	if (domain_of(domain)->left_out)
		return 0;
	return hr__region_start(nvtx_name_of(domain_of(domain), a), payload_of(a, &room));
}

static void domain_end(void *domain, uint64_t span)
{
	hr__region_finish(span, NULL);
}

static int domain_push_ex(void *domain, const struct attributes *a)
{
	struct hr__payload room;

	if (domain_of(domain)->left_out)
		return NO_TRACKING;
	return push(domain_of(domain), nvtx_name_of(domain_of(domain), a), payload_of(a, &room));
}

static int domain_pop(void *domain)
{
	hr__region_end(domain_of(domain)->stack, NULL);
	return NO_TRACKING;
}

static void domain_name_category_a(void *domain, uint32_t category, const char *name)
{
	hr__interned_category(domain_of(domain), category, name);
}

WIDE(void, domain_name_category, (void *domain, uint32_t category, const wchar_t *wide),
     (domain, category, utf8))

static const void *domain_register_a(void *domain, const char *text)
{
	/* The handle of a string without room. NULL would mean that there is no text. */
	static struct hr__text_interned nameless = {.text = HR__INTERN_NAMELESS};
	const struct hr__text_interned *kept = text != NULL ? hr__interned_text(text) : NULL;

	return kept != NULL || text == NULL ? kept : &nameless;
}

WIDE(const void *, domain_register, (void *domain, const wchar_t *wide), (domain, utf8))

static void *domain_create_a(const char *name)
{
	return hr__interned_domain(name);
}

WIDE(void *, domain_create, (const wchar_t *wide), (utf8))

/* Does nothing, because another domain may use the same name, and names are never freed. */
static void domain_destroy(void *domain)
{
}

static function *const core2[] = {
    [1] = (function *)domain_mark_ex,
    [2] = (function *)domain_start_ex,
    [3] = (function *)domain_end,
    [4] = (function *)domain_push_ex,
    [5] = (function *)domain_pop,
    [8] = (function *)domain_name_category_a,
    [9] = (function *)domain_name_category_w,
    [10] = (function *)domain_register_a,
    [11] = (function *)domain_register_w,
    [12] = (function *)domain_create_a,
    [13] = (function *)domain_create_w,
    [14] = (function *)domain_destroy,
};

/* ---- CORE: without a domain -------------------------------------------------------------------------- */

NO_DOMAIN(void, mark_ex, (const struct attributes *a), (NULL, a))
NO_DOMAIN(uint64_t, start_ex, (const struct attributes *a), (NULL, a))
NO_DOMAIN(void, end, (uint64_t span), (NULL, span))
NO_DOMAIN(int, push_ex, (const struct attributes *a), (NULL, a))
NO_DOMAIN(int, pop, (void), (NULL))
NO_DOMAIN(void, name_category_a, (uint32_t category, const char *name), (NULL, category, name))
NO_DOMAIN(void, name_category_w, (uint32_t category, const wchar_t *name), (NULL, category, name))

static void mark_a(const char *text)
{
	hr__region_mark(hr__interned_name(domain_of(NULL), 0, text), NULL);
}

WIDE(void, mark, (const wchar_t *wide), (utf8))

static uint64_t start_a(const char *text)
{
	return hr__region_start(hr__interned_name(domain_of(NULL), 0, text), NULL);
}

WIDE(uint64_t, start, (const wchar_t *wide), (utf8))

static int push_a(const char *text)
{
	return push(domain_of(NULL), hr__interned_name(domain_of(NULL), 0, text), NULL);
}

WIDE(int, push, (const wchar_t *wide), (utf8))

static void name_thread_a(uint32_t tid, const char *name)
{
	hr__interned_thread(domain_of(NULL), name, tid);
}

WIDE(void, name_thread, (uint32_t tid, const wchar_t *wide), (tid, utf8))

static function *const core[] = {
    [1] = (function *)mark_ex,
    [2] = (function *)mark_a,
    [3] = (function *)mark_w,
    [4] = (function *)start_ex,
    [5] = (function *)start_a,
    [6] = (function *)start_w,
    [7] = (function *)end,
    [8] = (function *)push_ex,
    [9] = (function *)push_a,
    [10] = (function *)push_w,
    [11] = (function *)pop,
    [12] = (function *)name_category_a,
    [13] = (function *)name_category_w,
    [14] = (function *)name_thread_a,
    [15] = (function *)name_thread_w,
};

static void fill(const struct callbacks *c, int module, function *const *ours, unsigned n)
{
	function ***table = NULL;
	unsigned theirs = 0;

	if (c->module_table(module, (function ***)(void *)&table, &theirs) == 0 || table == NULL)
		return;
	for (unsigned i = 1; i < n && i < theirs; i++)
		if (ours[i] != NULL && table[i] != NULL)
			__atomic_store_n(table[i], ours[i], __ATOMIC_RELEASE);
}

EXPORT int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t));

/* Returns 0 if recording is off, so that NVTX does nothing in this program. */
int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t))
{
	const struct callbacks *c;

	if (!hr_shim_image.on || hr_shim_image.nvtx_off || !hr__interned_init())
		return 0;
	c = export_table(TABLE_CALLBACKS);
	if (c == NULL || c->struct_size < sizeof(*c) || c->module_table == NULL)
		return 0;
	fill(c, MODULE_CORE, core, sizeof(core) / sizeof(core[0]));
	fill(c, MODULE_CORE2, core2, sizeof(core2) / sizeof(core2[0]));
	return 1;
}
