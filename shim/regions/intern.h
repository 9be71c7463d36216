/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern.h - names of the regions of NVTX and ITT programs
 *
 * NVTX and ITT programs pass texts that are valid only during the call, and need handles. This file
 * makes one permanent name of headrace.h for each combination of domain, category and text.
 *
 * Owner     The shim, which does not use malloc here, because a program may call these functions
 *           inside malloc. The memory has at most HR__INTERN_BYTES and is never freed. A forked
 *           child has a copy. If a name finds no room, its region is called HR__INTERN_NAMELESS.
 * Threads   Any thread, and signal handlers. No function waits.
 */
#ifndef HEADRACE_SHIM_REGIONS_INTERN_H
#define HEADRACE_SHIM_REGIONS_INTERN_H

#include "shim/regions/region.h"

#define HR__INTERN_BYTES    (UINT64_C(8) << 20)
#define HR__INTERN_TEXT	    1000u /* bytes of a text; longer texts are cut */
#define HR__INTERN_NAMELESS "(more names than are kept)"

/* The fields of a handle that ITT's macros read. `ours` points to the struct around it. */
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

/* A stored text, which is also the handle of a registered string. */
struct hr__text_interned {
	uint64_t hash;
	const char *text;
	struct headrace_name *last; /* the latest name with this text and without a category */
	struct hr__itt_string itt;
};

struct hr__domain {
	const char *name; /* NULL: the default domain */
	uint32_t stack;	  /* argument of hr__region_begin() */
	bool left_out;	  /* a library uses it for itself: its regions are not recorded */
	struct headrace_name nameless;
	struct hr__itt_domain itt;
};

bool hr__interned_init(void); /* reserves the memory once per process; false: no memory */

/* Returns the domain of this name. For NULL, or if no room is left: the default domain. */
struct hr__domain *hr__interned_domain(const char *name);
struct hr__text_interned *hr__interned_text(const char *text); /* NULL: no room is left */
/* Like hr__interned_text, for a text of at most `bytes` bytes, whose NUL may be missing. */
struct hr__text_interned *hr__interned_text_of(const char *text, size_t bytes);

/* Never returns NULL. `category`: a number that the program chose; 0: no category. */
struct headrace_name *hr__interned_name(struct hr__domain *d, uint32_t category, const char *text);
struct headrace_name *hr__interned_name_kept(struct hr__domain *d, uint32_t category,
					     struct hr__text_interned *text);
/* Sets the name of a category for later regions. If `name` is NULL, changes nothing. */
void hr__interned_category(struct hr__domain *d, uint32_t category, const char *name);

/* Returns a wide text as UTF-8 in `out`, cut like other texts. Returns NULL for NULL. */
const char *hr__interned_utf8(const wchar_t *wide, char out[HR__INTERN_TEXT + 1]);

/* Records a mark with the args {"tid":N}, because the program named a thread. */
void hr__interned_thread(struct hr__domain *d, const char *name, uint64_t tid);

#endif
