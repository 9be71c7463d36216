/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern.h - names of the regions of NVTX and ITT programs
 *
 * NVTX and ITT programs pass texts that are valid only during the call, and need handles. This file
 * makes one permanent name of headrace.h for each combination of domain, category and text.
 *
 * Owner     Memory of the shim (no malloc: a program may call these inside malloc), at most
 *           HR__INTERN_BYTES, never freed. A forked child has a copy. If there is no room for a
 *           name, the region is called HR__INTERN_NAMELESS.
 * Threads   Any thread, and signal handlers. No function waits.
 */
#ifndef HEADRACE_SHIM_REGIONS_INTERN_H
#define HEADRACE_SHIM_REGIONS_INTERN_H

#include "shim/regions/region.h"

#define HR__INTERN_BYTES    (UINT64_C(8) << 20)
#define HR__INTERN_TEXT	    1000u /* bytes of a text; longer texts are cut */
#define HR__INTERN_NAMELESS "(more names than are kept)"

/* The fields of a handle that ITT's macros read; `ours` is the structure around the handle. */
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

/* A stored text: the handle of a registered string. */
struct hr__text_interned {
	uint64_t hash;
	const char *text;
	struct headrace_name *last; /* the latest name of this text without a category */
	struct hr__itt_string itt;
};

struct hr__domain {
	const char *name; /* NULL: the default domain */
	uint32_t stack;	  /* of hr__region_begin() */
	struct headrace_name nameless;
	struct hr__itt_domain itt;
};

bool hr__interned_init(void); /* reserves the memory, once per process. False: no memory. */

/* The domain of this name; if `name` is NULL or there is no room, the default one. Never NULL. */
struct hr__domain *hr__interned_domain(const char *name);
struct hr__text_interned *hr__interned_text(const char *text); /* NULL: no room */
/* The same for a text of at most `bytes`, which may lack a NUL. */
struct hr__text_interned *hr__interned_text_of(const char *text, size_t bytes);

/* Never NULL. `category`: a number that the program chose; 0: none. */
struct headrace_name *hr__interned_name(struct hr__domain *d, uint32_t category, const char *text);
struct headrace_name *hr__interned_name_kept(struct hr__domain *d, uint32_t category,
					     struct hr__text_interned *text);
/* Sets the name of a category for later regions. NULL: no change. */
void hr__interned_category(struct hr__domain *d, uint32_t category, const char *name);

/* Returns a wide text as UTF-8, cut like other texts. */
const char *hr__interned_utf8(const wchar_t *wide, char out[HR__INTERN_TEXT + 1]);

/* Records that a thread got a name, by a mark with the args {"tid":N}. */
void hr__interned_thread(struct hr__domain *d, const char *name, uint64_t tid);

#endif
