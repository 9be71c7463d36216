/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/screen_text.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

void hr_screen_text_put(struct hr_screen_text *t, const char *bytes, size_t n)
{
	if (n == 0)
		return;
	if (t->bytes + n > t->room) {
		size_t more = (t->bytes + n) * 2 + 1024;
		char *s = realloc(t->s, more);

		if (!s) {
			t->failed = true;
			return;
		}
		t->s = s;
		t->room = more;
	}
	memcpy(t->s + t->bytes, bytes, n);
	t->bytes += n;
}

void hr_screen_text_done(struct hr_screen_text *t)
{
	free(t->s);
	*t = (struct hr_screen_text){0};
}

/* Returns the locale that gives the width of characters; 0: the locale of the user is not UTF-8. */
static locale_t wide_locale(void)
{
	static bool made;
	static locale_t wide;
	locale_t own;

	if (made)
		return wide;
	made = true;
	own = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	if (own && strcmp(nl_langinfo_l(CODESET, own), "UTF-8") == 0)
		wide = own;
	else if (own)
		freelocale(own);
	return wide;
}

static bool is_format_character(wchar_t c)
{
	return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || c == 0xad || c == 0x61c;
}

/* Returns bytes and cells of the first character. False: print `?` in its place. */
static bool next_character(const char *text, size_t *ret_bytes, unsigned *ret_cells)
{
	mbstate_t state = {0};
	wchar_t c;
	size_t n;
	int cells;

	*ret_bytes = *ret_cells = 1;
	if ((unsigned char)*text < 0x80)
		return *text >= 0x20 && *text != 0x7f;
	while (((unsigned char)text[*ret_bytes] & 0xc0) == 0x80)
		(*ret_bytes)++;
	if (!wide_locale())
		return false;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the state is a local variable */
	n = mbrtowc(&c, text, *ret_bytes, &state);
	if (n != *ret_bytes || is_format_character(c) || (cells = wcwidth(c)) < 0)
		return false;
	*ret_cells = (unsigned)cells;
	return true;
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
	locale_t wide = wide_locale(), before = wide ? uselocale(wide) : (locale_t)0;
	unsigned used = fit(t, text, cells, cut);

	for (; padded && used < cells; used++)
		hr_screen_text_put(t, " ", 1);
	if (wide)
		uselocale(before);
}
