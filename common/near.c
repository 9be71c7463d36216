/* SPDX-License-Identifier: Apache-2.0 */
#include "common/near.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

#define DISTANCE_MAX 2u
#define SHOWN_BYTES  200u /* longest word in a message */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/*
 * Returns the number of insertions, deletions, replacements and swaps of neighbours that make `b`
 * from `a`. Returns more than DISTANCE_MAX if the lengths differ by more.
 */
static unsigned word_distance(const char *a, size_t a_n, const char *b, size_t b_n)
{
	unsigned rows[3][HR_NEAR_BYTES + 1];

	if (a_n > b_n + DISTANCE_MAX || b_n > a_n + DISTANCE_MAX)
		return DISTANCE_MAX + 1;
	for (size_t k = 0; k <= b_n; k++)
		rows[0][k] = (unsigned)k;
	for (size_t i = 1; i <= a_n; i++) {
		unsigned *row = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		row[0] = (unsigned)i;
		for (size_t k = 1; k <= b_n; k++) {
			row[k] = least(least(last[k], row[k - 1]) + 1,
				       last[k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				row[k] = least(row[k], before[k - 2] + 1);
		}
	}
	return rows[a_n % 3][b_n];
}

static void near_take(struct hr_near *near, const char *candidate, size_t n)
{
	size_t typed_n = strlen(near->typed), dashes = strspn(candidate, "-");
	unsigned distance;

	if (n == 0 || typed_n == 0 || n >= HR_NEAR_BYTES || typed_n >= HR_NEAR_BYTES)
		return;
	distance = word_distance(near->typed, typed_n, candidate, n);
	if (distance > DISTANCE_MAX || distance > (n - dashes) / 2)
		distance = UINT32_MAX;
	if (typed_n < n && memcmp(near->typed, candidate, typed_n) == 0)
		distance = least(distance, 1);
	if (distance >= near->distance)
		return;
	near->distance = distance;
	memcpy(near->best, candidate, n);
	near->best[n] = '\0';
}

void hr_near_add(struct hr_near *near, const char *candidate)
{
	near_take(near, candidate, strlen(candidate));
}

void hr_near_add_list(struct hr_near *near, const char *list)
{
	while (*list != '\0') {
		size_t n = strcspn(list, " |");

		near_take(near, list, n);
		list += n + (list[n] != '\0');
	}
}

/* Appends "BEFORE'WORD'AFTER". */
static void add_quoted(struct hr_near_text *to, const char *before, const char *word,
		       const char *after)
{
	char shown[SHOWN_BYTES];
	size_t at = strlen(to->s);
	size_t n = hr_text_escape(shown, sizeof(shown), word, strlen(word));

	snprintf(to->s + at, sizeof(to->s) - at, "%s'%s%s'%s", before, shown,
		 n >= sizeof(shown) ? "..." : "", after);
}

struct hr_near_text hr_near_quoted(const char *word)
{
	struct hr_near_text text = {""};

	add_quoted(&text, "", word, "");
	return text;
}

struct hr_near_text hr_near_text(const struct hr_near *near)
{
	struct hr_near_text text = hr_near_quoted(near->typed);

	if (near->best[0] != '\0')
		add_quoted(&text, "; did you mean ", near->best, "?");
	return text;
}
