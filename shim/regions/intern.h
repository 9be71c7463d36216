/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern.h - what NVTX and ITT programs call their regions, kept
 *
 * Purpose   Those programs hand over texts that live as long as the call, and ask for handles. headrace.h's names live for ever: one
 *           is made here of each domain, category and text that come together, once.
 * Owner     Memory of our own (no malloc: any of this may be called inside one), HR__INTERN_BYTES at most, nothing of which is ever given
 *           back. A forked child has a copy. What does not fit anymore is called HR__INTERN_NAMELESS.
 * Threads   Any, and signal handlers; nothing waits.
 */
#ifndef HEADRACE_SHIM_REGIONS_INTERN_H
#define HEADRACE_SHIM_REGIONS_INTERN_H

#include "shim/regions/region.h"

#define HR__INTERN_BYTES    (UINT64_C(8) << 20)
#define HR__INTERN_TEXT	    1000u /* bytes of a text; longer ones are cut */
#define HR__INTERN_NAMELESS "(more names than are kept)"

/* What ITT's macros look at in a handle; `ours` is what the handle is part of. */
struct hr__itt_domain {
	int flags; /* not 0: enabled */
	const char *name;
	void *wide;
	int spare;
	void *ours;
	struct hr__itt_domain *next;
};

struct hr__itt_string {
	const char *text;
	void *wide;
	int spare;
	void *ours;
	struct hr__itt_string *next;
};

/* A text that is kept: what a handle of a registered string is. */
struct hr__text_interned {
	uint64_t hash;
	const char *text;
	struct headrace_name *last; /* that it named without a category: a domain's own, mostly */
	struct hr__itt_string itt;
};

struct hr__domain {
	const char *name; /* NULL: of those who name none */
	uint32_t stack;	  /* of hr__region_begin() */
	struct headrace_name nameless;
	struct hr__itt_domain itt;
};

/* Room, once per process. False: there is none. */
bool hr__interned_init(void);

/* The same name, the same domain. NULL, and no room: a nameless one; never NULL. */
struct hr__domain *hr__interned_domain(const char *name);
/* NULL: no room. */
struct hr__text_interned *hr__interned_text(const char *text);
/* The same of `bytes` at most, behind which there may be nothing. */
struct hr__text_interned *hr__interned_text_of(const char *text, size_t bytes);

/* Never NULL. A category is one's own number, which may get a name, and is 0 for none. */
struct headrace_name *hr__interned_name(struct hr__domain *d, uint32_t category, const char *text);
struct headrace_name *hr__interned_name_kept(struct hr__domain *d, uint32_t category,
					     struct hr__text_interned *text);
/* From now on. NULL: as it was. */
void hr__interned_category(struct hr__domain *d, uint32_t category, const char *name);

/* UTF-8 of a wide text, cut as a text is. */
const char *hr__interned_utf8(const wchar_t *wide, char out[HR__INTERN_TEXT + 1]);

/* "{"tid":N}" of a thread that was given a name: a mark. */
void hr__interned_thread(struct hr__domain *d, const char *name, uint64_t tid);

#endif
