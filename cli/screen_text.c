/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/screen.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/array.h"

void hr_screen_text_put(struct hr_screen_text *t, const char *bytes, size_t n)
{
	if (n == 0)
		return;
	if (!hr_array_fit(t->s, t->bytes + n, t->room)) {
		t->failed = true;
		return;
	}
	memcpy(t->s + t->bytes, bytes, n);
	t->bytes += n;
}

void hr_screen_text_done(struct hr_screen_text *t)
{
	free(t->s);
	*t = (struct hr_screen_text){0};
}

/* Whether the terminal of the user shows UTF-8. */
static bool shows_utf8(void)
{
	static enum { UNKNOWN, NO, YES } known;
	locale_t own;

	if (known == UNKNOWN) {
		own = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
		known = own && strcmp(nl_langinfo_l(CODESET, own), "UTF-8") == 0 ? YES : NO;
		if (own)
			freelocale(own);
	}
	return known == YES;
}

/* Returns bytes and cells of the first character. False: print `?` in its place. */
static bool next_character(const char *text, size_t *ret_bytes, unsigned *ret_cells)
{
	int cells = hr_text_character(text, ret_bytes);

	bool shown = cells >= 0 && ((unsigned char)*text < 0x80 || shows_utf8());

	*ret_cells = shown ? (unsigned)cells : 1;
	return shown;
}

static unsigned width(const char *text)
{
	unsigned all = 0, cells;

	for (size_t n; *text; text += n) {
		next_character(text, &n, &cells);
		all += cells;
	}
	return all;
}

/* Appends the characters that fit into `cells`. Returns the number of used cells. */
static unsigned top_cells_put(struct hr_screen_text *t, const char *text, unsigned cells)
{
	unsigned used = 0, wide;

	for (size_t n; *text; text += n) {
		bool plain = next_character(text, &n, &wide);

		if (used + wide > cells)
			break;
		if (plain)
			hr_screen_text_put(t, text, n);
		else
			hr_screen_text_put(t, "?", 1);
		used += wide;
	}
	return used;
}

static unsigned fit(struct hr_screen_text *t, const char *text, unsigned cells,
		    enum hr_screen_cut cut)
{
	unsigned all = width(text), dots = cells > 3 ? 3 : 0, wide;

	if (all <= cells)
		return top_cells_put(t, text, cells);
	if (cut == HR_SCREEN_CUT_END) {
		wide = top_cells_put(t, text, cells - dots);
		hr_screen_text_put(t, "...", dots);
		return wide + dots;
	}
	for (size_t n; *text && all > cells - dots; text += n) {
		next_character(text, &n, &wide);
		all -= wide;
	}
	hr_screen_text_put(t, "...", dots);
	return dots + top_cells_put(t, text, cells - dots);
}

void hr_screen_text_fit(struct hr_screen_text *t, const char *text, unsigned cells,
			enum hr_screen_cut cut, bool padded)
{
	unsigned used = fit(t, text, cells, cut);

	for (; padded && used < cells; used++)
		hr_screen_text_put(t, " ", 1);
}

struct hr_human hr_screen_clock(uint64_t real_ns)
{
	time_t now = (time_t)(real_ns / 1000000000);
	struct tm local;
	struct hr_human h = {""};

	if (localtime_r(&now, &local) != NULL)
		(void)strftime(h.s, sizeof(h.s), "%H:%M:%S", &local);
	return h;
}
