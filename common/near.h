/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near.h - finds the word that a user probably meant, and names a wrong word in a message
 *
 *      struct hr_near near = hr_near("qurey");
 *
 *      hr_near_add(&near, "query");
 *      hr_report("no command %s", hr_near_text(&near).s);
 *
 * prints: no command 'qurey'; did you mean 'query'?
 *
 * A candidate is near if the typed word is its beginning, or differs from it by at most two
 * insertions, deletions, replacements or swaps of neighbours (Damerau-Levenshtein, as in git), and
 * by at most half of its letters.
 *
 * Owner     The typed word belongs to the caller.
 * Threads   One per struct hr_near.
 */
#ifndef HEADRACE_COMMON_NEAR_H
#define HEADRACE_COMMON_NEAR_H

#include <stdint.h>

#define HR_NEAR_BYTES 256u

struct hr_near {
	const char *typed;
	unsigned distance;
	char best[HR_NEAR_BYTES]; /* "": no candidate is near the typed word */
};

struct hr_near_text {
	char s[4 * HR_NEAR_BYTES];
};

static inline struct hr_near hr_near(const char *typed)
{
	return (struct hr_near){.typed = typed, .distance = UINT32_MAX};
}

/* Adds a candidate of less than 256 bytes. If two are equally near, the first one counts. */
void hr_near_add(struct hr_near *near, const char *candidate);

/* Like hr_near_add, for each word of a list with single blanks or bars: "table list json". */
void hr_near_add_list(struct hr_near *near, const char *list);

/* Returns "'TYPED'" or "'TYPED'; did you mean 'BEST'?". Words are escaped, and cut if too long. */
struct hr_near_text hr_near_text(const struct hr_near *near);

/* Returns "'WORD'", escaped and cut like a typed word. */
struct hr_near_text hr_near_quoted(const char *word);

#endif
