/* SPDX-License-Identifier: Apache-2.0 */
/*
 * itt.c - the functions of ITT, whose variable INTEL_LIBITTNOTIFY64 names this library
 *
 * Each library that uses ITT contains ITT's static part. At the first call, that part takes its own
 * lock, loads the library of this name, and passes a list of function pointers to fill. If this
 * file has no function for a pointer, the pointer gets a function that does nothing. Tasks belong
 * to a thread and a domain, like pushed ranges of NVTX. Overlapped tasks, regions and frames have
 * an id that the program chose, and may end in any thread.
 */
#include <pthread.h>
#include <string.h>

#include "shim/regions/intern.h"
#include "shim/core/sys.h"

/* ITT defines the signatures, so some parameters are not used. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define EXPORT __attribute__((visibility("default")))

/* ---- ITT's binary interface -------------------------------------------------------------------------- */

struct itt_id {
	uint64_t d1, d2, d3;
};

struct itt_function {
	const char *name;
	void **pointer;
	void *first; /* ITT's function that loads a tool */
	void *nothing;
	int group;
};

struct itt_global {
	uint8_t magic[8];
	unsigned long version[3];
	long api_initialized, mutex_initialized, atomic_counter;
	pthread_mutex_t mutex;
	void *library;
	void *error_handler;
	const char **path;
	struct itt_function *functions; /* the last item has no name */
};

static const uint8_t magic[8] = {0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30};

/* Returns the shim's domain of a handle. A handle from before this library gets it now. */
static struct hr__domain *domain_of(struct hr__itt_domain *d)
{
	struct hr__domain *ours;

	if (d == NULL)
		return hr__interned_domain(NULL);
	ours = __atomic_load_n(&d->ours, __ATOMIC_ACQUIRE);
	if (ours == NULL) {
		ours = hr__interned_domain(d->name);
		__atomic_store_n(&d->ours, ours, __ATOMIC_RELEASE);
	}
	return ours;
}

static struct hr__text_interned *itt_text_of(struct hr__itt_string *s)
{
	struct hr__text_interned *ours;

	if (s == NULL || s->text == NULL)
		return hr__interned_text("");
	ours = __atomic_load_n(&s->ours, __ATOMIC_ACQUIRE);
	if (ours == NULL) {
		ours = hr__interned_text(s->text);
		__atomic_store_n(&s->ours, ours, __ATOMIC_RELEASE);
	}
	return ours;
}

/* The macros of a program do not call the functions below for a domain without flags. */
static bool left_out(struct hr__itt_domain *d)
{
	if (!domain_of(d)->left_out)
		return false;
	__atomic_store_n(&d->flags, 0, __ATOMIC_RELAXED);
	return true;
}

static struct headrace_name *itt_name_of(struct hr__itt_domain *d, struct hr__itt_string *s)
{
	return hr__interned_name_kept(domain_of(d), 0, itt_text_of(s));
}

static struct hr__itt_domain *domain_create(const char *name)
{
	return name != NULL ? &hr__interned_domain(name)->itt : NULL;
}

static struct hr__itt_string *string_handle_create(const char *text)
{
	/* `ours` stays NULL, so that itt_text_of() returns NULL for this handle. */
	static struct hr__itt_string nameless = {.text = HR__INTERN_NAMELESS};
	struct hr__text_interned *kept = text != NULL ? hr__interned_text(text) : NULL;

	if (text == NULL)
		return NULL;
	return kept != NULL ? &kept->itt : &nameless;
}

/* ---- regions with an id ---------------------------------------------------------------------- */

#define TAKEN UINT64_C(1)

static uint64_t itt_key_of(int what, const struct hr__itt_domain *d, const struct itt_id *id)
{
	static const struct itt_id none;
	uint64_t key = (uint64_t)(unsigned)what;

	id = id != NULL ? id : &none;
	key = (key ^ (uintptr_t)d) * UINT64_C(0x9e3779b97f4a7c15);
	key = (key ^ key >> 29 ^ id->d1) * UINT64_C(0x9e3779b97f4a7c15);
	key = (key ^ key >> 29 ^ id->d2) * UINT64_C(0x9e3779b97f4a7c15);
	key = (key ^ key >> 29 ^ id->d3) * UINT64_C(0x9e3779b97f4a7c15);
	return key | 2;
}

static void open_begin(uint64_t key, struct headrace_name *name)
{
	uint64_t span = hr__region_start(name, NULL);

	for (uint32_t i = 0; span != 0 && i < HR_REGION_SPANS; i++) {
		struct hr_shim_opened *o = &hr_wiped.opened[i];
		uint64_t free = 0;

		if (!__atomic_compare_exchange_n(&o->key, &free, TAKEN, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		o->span = span;
		__atomic_store_n(&o->key, key, __ATOMIC_RELEASE);
		return;
	}
	/* All cells were in use: the program cannot end the span, which is recorded as open. */
}

static void open_end(uint64_t key)
{
	/* A vfork child cannot end a region of its parent. */
	for (uint32_t i = 0; !hr_in_vfork_child() && i < HR_REGION_SPANS; i++) {
		struct hr_shim_opened *o = &hr_wiped.opened[i];
		uint64_t is = key, span;

		if (!__atomic_compare_exchange_n(&o->key, &is, TAKEN, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		span = o->span;
		__atomic_store_n(&o->key, 0, __ATOMIC_RELEASE);
		hr__region_finish(span, NULL);
		return;
	}
}

enum { TASK, REGION, FRAME };

/* NOLINTBEGIN(bugprone-macro-parentheses): parameters, types and names cannot have parentheses */
#define WITH_ID(kind, begin, end)                                                                  \
	static void begin(struct hr__itt_domain *d, struct itt_id id, struct itt_id parent,        \
			  struct hr__itt_string *name)                                             \
	{                                                                                          \
		if (!left_out(d))                                                                  \
			open_begin(itt_key_of(kind, d, &id), itt_name_of(d, name));                \
	}                                                                                          \
	static void end(struct hr__itt_domain *d, struct itt_id id)                                \
	{                                                                                          \
		open_end(itt_key_of(kind, d, &id));                                                \
	}
/* NOLINTEND(bugprone-macro-parentheses) */

WITH_ID(TASK, task_begin_overlapped, task_end_overlapped)
WITH_ID(REGION, region_begin, region_end)

static void frame_begin(struct hr__itt_domain *d, const struct itt_id *id)
{
	if (!left_out(d))
		open_begin(itt_key_of(FRAME, d, id), hr__interned_name(domain_of(d), 0, "frame"));
}

static void frame_end(struct hr__itt_domain *d, const struct itt_id *id)
{
	open_end(itt_key_of(FRAME, d, id));
}

/* ---- tasks, marks, threads --------------------------------------------------------------------------- */

static void task_begin(struct hr__itt_domain *d, struct itt_id id, struct itt_id parent,
		       struct hr__itt_string *name)
{
	if (!left_out(d))
		hr__region_begin(itt_name_of(d, name), domain_of(d)->stack, NULL);
}

static void task_begin_fn(struct hr__itt_domain *d, struct itt_id id, struct itt_id parent,
			  void *function)
{
	if (!left_out(d))
		hr__region_begin(hr__interned_name(domain_of(d), 0, "(function)"),
				 domain_of(d)->stack, NULL);
}

static void task_end(struct hr__itt_domain *d)
{
	hr__region_end(domain_of(d)->stack, NULL);
}

static void marker(struct hr__itt_domain *d, struct itt_id id, struct hr__itt_string *name,
		   int scope)
{
	if (!left_out(d))
		hr__region_mark(itt_name_of(d, name), NULL);
}

static void thread_set_name(const char *name)
{
	hr__interned_thread(hr__interned_domain(NULL), name, (uint64_t)hr_sys_gettid());
}

/* ---- events: each has a number and a stack --------------------------------------------------- */

#define EVENTS 1024

static struct hr__text_interned *events[EVENTS];

static int event_create(const char *name, int bytes)
{
	/* The text may lack a NUL. */
	struct hr__text_interned *text =
	    name != NULL ? hr__interned_text_of(name, bytes > 0 ? (size_t)bytes : 0) : NULL;

	for (int i = 0; text != NULL && i < EVENTS; i++) {
		struct hr__text_interned *none = NULL;

		if (__atomic_compare_exchange_n(&events[i], &none, text, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE) ||
		    none == text)
			return i + 1;
	}
	return 0;
}

static uint32_t event_stack(int event)
{
	return UINT32_C(0xe0000000) | (uint32_t)event;
}

static int event_start(int event)
{
	if (event > 0 && event <= EVENTS)
		hr__region_begin(
		    hr__interned_name_kept(hr__interned_domain(NULL), 0,
					   __atomic_load_n(&events[event - 1], __ATOMIC_ACQUIRE)),
		    event_stack(event), NULL);
	else if (event == 0) /* of event_create() */
		hr_counters_region();
	return 0;
}

static int event_end(int event)
{
	if (event > 0 && event <= EVENTS)
		hr__region_end(event_stack(event), NULL);
	return 0;
}

typedef void function(void);

static const struct {
	const char *name; /* name without the prefix "__itt_" */
	function *ours;
} functions[] = {
    {"domain_create", (function *)domain_create},
    {"string_handle_create", (function *)string_handle_create},
    {"task_begin", (function *)task_begin},
    {"task_begin_fn", (function *)task_begin_fn},
    {"task_end", (function *)task_end},
    {"task_begin_overlapped", (function *)task_begin_overlapped},
    {"task_end_overlapped", (function *)task_end_overlapped},
    {"region_begin", (function *)region_begin},
    {"region_end", (function *)region_end},
    {"frame_begin_v3", (function *)frame_begin},
    {"frame_end_v3", (function *)frame_end},
    {"marker", (function *)marker},
    {"thread_set_name", (function *)thread_set_name},
    {"event_create", (function *)event_create},
    {"event_start", (function *)event_start},
    {"event_end", (function *)event_end},
};

static void *ours(const char *name)
{
	static const char prefix[] = "__itt_";

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return NULL;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(name + sizeof(prefix) - 1, functions[i].name) == 0)
			return (void *)functions[i].ours;
	return NULL;
}

EXPORT void __itt_api_init(struct itt_global *global, int groups);

void __itt_api_init(struct itt_global *global, int groups)
{
	bool on = hr_shim_image.on && !hr_shim_image.nvtx_off && hr__interned_init();

	if (global == NULL || memcmp(global->magic, magic, sizeof(magic)) != 0 ||
	    global->functions == NULL)
		return;
	for (struct itt_function *f = global->functions; f->name != NULL; f++) {
		void *fn = on ? ours(f->name) : NULL;

		__atomic_store_n(f->pointer, fn != NULL ? fn : f->nothing, __ATOMIC_RELEASE);
	}
}
