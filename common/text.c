/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <wchar.h>

/* Returns the length of the well-formed UTF-8 sequence at s[0..n), or 0 (RFC 3629). */
static size_t utf8_length(const uint8_t *s, size_t n)
{
	size_t want;
	uint8_t low = 0x80, high = 0xbf; /* limits of the second byte */

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		want = 2;
	else if ((s[0] & 0xf0) == 0xe0)
		want = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		want = 4;
	else
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (n < want || s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < want; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return want;
}

char *hr_text_escaped(const void *in, size_t n)
{
	char *text = malloc(4 * n + 1);

	if (text != NULL)
		hr_text_escape(text, 4 * n + 1, in, n);
	return text;
}

bool hr_text_is_utf8(const void *text, size_t n)
{
	const uint8_t *s = text;
	size_t length = 1;

	for (size_t i = 0; i < n && length > 0; i += length)
		length = utf8_length(s + i, n - i);
	return length > 0;
}

/*
 * Whether a character is shown unchanged. Terminals also obey control characters of C1, and those
 * of writing direction (U+200E to U+200F, U+202A to U+202E, U+2066 to U+2069) can show a name as
 * another one.
 */
static bool is_printable(const uint8_t *s, size_t length)
{
	if (length == 1)
		return s[0] >= 0x20 && s[0] != 0x7f;
	if (length == 3 && s[0] == 0xe2 && s[1] == 0x80)
		return !(s[2] >= 0x8e && s[2] <= 0x8f) && !(s[2] >= 0xaa && s[2] <= 0xae);
	if (length == 3 && s[0] == 0xe2 && s[1] == 0x81)
		return !(s[2] >= 0xa6 && s[2] <= 0xa9);
	return length > 2 || s[0] != 0xc2 || s[1] > 0x9f;
}

/* Writes a character unchanged or as `\xHH`. *ret_unit: the number of bytes of the character. */
static size_t text_show(const uint8_t *s, size_t n, char piece[4], size_t *ret_unit)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t length = utf8_length(s, n);

	if (length > 0 && is_printable(s, length)) {
		memcpy(piece, s, length);
		*ret_unit = length;
		return length;
	}
	piece[0] = '\\';
	piece[1] = 'x';
	piece[2] = hex[s[0] >> 4];
	piece[3] = hex[s[0] & 15];
	*ret_unit = 4;
	return 1;
}

/* Returns the length of the printable ASCII without a backslash that s[0..n) begins with. */
static size_t plain_length(const uint8_t *s, size_t n)
{
	size_t i = 0;

	while (i < n && s[i] >= 0x20 && s[i] < 0x7f && s[i] != '\\')
		i++;
	return i;
}

size_t hr_text_escape(char *out, size_t out_bytes, const void *in, size_t n)
{
	const uint8_t *s = in;
	size_t plain = plain_length(s, n < out_bytes ? n : 0), total = plain, written = plain;
	bool full = false;

	if (plain > 0)
		memcpy(out, s, plain); /* most names are only this */
	for (size_t i = plain; i < n;) {
		char piece[4];
		size_t unit, length = text_show(s + i, n - i, piece, &unit);

		if (s[i] == '\\') {
			piece[1] = '\\';
			unit = 2;
		}
		full = full || written + unit >= out_bytes;
		if (!full) {
			memcpy(out + written, piece, unit);
			written += unit;
		}
		total += unit;
		i += length;
	}
	if (out_bytes > 0)
		out[written] = '\0';
	return total;
}

void hr_text_print(FILE *out, const char *format, ...)
{
	const uint8_t *s;
	va_list args;
	char *text;
	int bytes;

	va_start(args, format);
	bytes = vasprintf(&text, format, args);
	va_end(args);
	if (bytes < 0)
		return;
	s = (const uint8_t *)text;
	for (size_t n = (size_t)bytes; n > 0;) {
		char piece[4];
		size_t unit, length = text_show(s, n, piece, &unit);

		if (*s == '\n' || *s == '\t')
			fputc(*s, out);
		else
			fwrite(piece, 1, unit, out);
		s += length;
		n -= length;
	}
	free(text);
}

char *hr_text_line(const char *text)
{
	size_t n = strlen(text), used = 0;
	char *line = malloc(4 * n + 1);

	for (size_t i = 0; line && i < n;) {
		char piece[4];
		size_t unit;

		i += text_show((const uint8_t *)text + i, n - i, piece, &unit);
		memcpy(line + used, piece, unit);
		used += unit;
	}
	if (line)
		line[used] = '\0';
	return line;
}

bool hr_text_has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = words; (at = strstr(at, word)) != NULL; at += n)
		if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
			return true;
	return false;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

long hr_text_unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from != '\0';) {
		if (*from != '\\') {
			*to++ = *from++;
		} else if (from[1] == '\\') {
			*to++ = '\\';
			from += 2;
		} else {
			int high = from[1] == 'x' ? hex_digit(from[2]) : -1;
			int low = high >= 0 ? hex_digit(from[3]) : -1;

			if (low < 0)
				return -EINVAL;
			*to++ = (char)(high << 4 | low);
			from += 4;
		}
	}
	*to = '\0';
	return to - text;
}

void hr_text_sql(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text != '\0'; text++)
		fprintf(out, *text == '\'' ? "''" : "%c", *text);
	fputc('\'', out);
}

char *hr_text_quote(const char *text)
{
	static const char plain[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
	char *quoted, *to;

	if (text[0] != '\0' && text[strspn(text, plain)] == '\0')
		return strdup(text);
	quoted = to = malloc(4 * strlen(text) + 3);
	if (quoted == NULL)
		return NULL;
	*to++ = '\'';
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			to = stpcpy(to, "'\\''");
		else
			*to++ = *text;
	}
	memcpy(to, "'", 2);
	return quoted;
}

/* ---- cells of a terminal --------------------------------------------------------------------- */

/* Returns the locale that knows the width of characters; 0: this machine has none. */
static locale_t wide_locale(void)
{
	static _Atomic(locale_t) made;
	static atomic_bool absent;
	locale_t wide = atomic_load(&made), none = (locale_t)0;

	if (wide != none || atomic_load(&absent))
		return wide;
	wide = newlocale(LC_CTYPE_MASK, "C.UTF-8", none);
	if (wide == none) {
		atomic_store(&absent, true);
	} else if (!atomic_compare_exchange_strong(&made, &none, wide)) {
		freelocale(wide); /* another thread was faster */
		wide = none;
	}
	return wide;
}

/* Whether a character only directs the text around it. */
static bool is_format_character(wchar_t c)
{
	return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || c == 0xad || c == 0x61c;
}

int hr_text_character(const char *text, size_t *ret_bytes)
{
	const uint8_t *s = (const uint8_t *)text;
	size_t n = utf8_length(s, strnlen(text, 4));
	locale_t wide, before;
	wchar_t c = s[0];
	int cells = 1;

	*ret_bytes = n > 0 ? n : 1;
	if (n <= 1)
		return n == 1 && s[0] >= 0x20 && s[0] != 0x7f ? 1 : -1;
	c &= 0xff >> (n + 1);
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	if (is_format_character(c))
		return -1;
	wide = wide_locale();
	if (wide != (locale_t)0) {
		before = uselocale(wide);
		cells = wcwidth(c);
		uselocale(before);
	}
	return cells;
}

/* Returns the length in bytes of the longest start of at most `cells`, which become the rest. */
static size_t text_take(const char *text, size_t *cells)
{
	size_t bytes = 0, n;

	for (; text[bytes] != '\0'; bytes += n) {
		int width = hr_text_character(text + bytes, &n);
		size_t used = width < 0 ? 1 : (size_t)width;

		if (used > *cells)
			break;
		*cells -= used;
	}
	return bytes;
}

size_t hr_text_cells(const char *text)
{
	size_t rest = SIZE_MAX;

	text_take(text, &rest);
	return SIZE_MAX - rest;
}

size_t hr_text_start(const char *text, size_t cells)
{
	return text_take(text, &cells);
}

const char *hr_text_end(const char *text, size_t cells)
{
	size_t all = hr_text_cells(text), n;

	for (; all > cells; text += n) {
		int width = hr_text_character(text, &n);

		all -= width < 0 ? 1 : (size_t)width;
	}
	return text;
}

/* ---- short paths ----------------------------------------------------------------------------- */

/* Returns the part of a path below `from`. If the path is elsewhere, returns `path`. */
static const char *text_below(const char *path, const char *from)
{
	size_t n = from != NULL ? strlen(from) : 0;

	if (n <= 1 || strncmp(path, from, n) != 0 || path[n] != '/' || path[n + 1] == '\0')
		return path;
	return path + n + 1;
}

/* Returns the longest end of at most `cells`, which starts at a `/` if possible. */
static const char *text_tail(const char *path, size_t cells)
{
	const char *tail = hr_text_end(path, cells), *slash = strchr(tail, '/');

	return slash != NULL && slash[1] != '\0' ? slash : tail;
}

size_t hr_text_path_short(char *out, size_t out_bytes, const char *path, const char *from,
			  size_t cells)
{
	const char *first, *shown = text_below(path, from);
	size_t head, third = cells / 3, dots = cells > 3 ? 3 : 0;

	if (hr_text_cells(shown) <= cells)
		return (size_t)snprintf(out, out_bytes, "%s", shown);
	/* The first folder is shown if it takes at most a third of the cells. */
	first = shown[0] != '\0' ? strchr(shown + 1, '/') : NULL;
	head = first != NULL ? (size_t)(first - shown) + 1 : 0;
	if (head > text_take(shown, &third))
		head = 0;
	cells -= dots + hr_text_cells(shown) - hr_text_cells(shown + head);
	return (size_t)snprintf(out, out_bytes, "%.*s%.*s%s", (int)head, shown, (int)dots, "...",
				text_tail(shown, cells));
}

/* ---- memory ---------------------------------------------------------------------------------- */

char *hr_text_close(FILE *to, char **text)
{
	if (fclose(to) == 0)
		return *text;
	free(*text);
	return NULL;
}

/* ---- errors ---------------------------------------------------------------------------------- */

int hr_text_fail(int r, char **ret_error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (vasprintf(ret_error, format, args) < 0)
		*ret_error = NULL;
	va_end(args);
	return r;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Prints three significant digits. From 100 on, prints no fraction. */
static void format_scaled(struct hr_human *t, double value, const char *unit)
{
	int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;

	snprintf(t->s, sizeof(t->s), "%.*f %s", decimals, value, unit);
}

struct hr_human hr_text_size(uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	struct hr_human t;
	double value = (double)bytes / 1024;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(t.s, sizeof(t.s), "%u B", (unsigned)bytes);
		return t;
	}
	for (; value >= 1023.5 && i + 1 < sizeof(units) / sizeof(units[0]); i++)
		value /= 1024;
	format_scaled(&t, value, units[i]);
	return t;
}

struct hr_human hr_text_duration(uint64_t ns)
{
	struct hr_human t;
	uint64_t seconds = ns / 1000000000u + (ns % 1000000000u >= 500000000u);

	if (ns == 0)
		snprintf(t.s, sizeof(t.s), "0 s");
	else if (ns < 1000)
		snprintf(t.s, sizeof(t.s), "%u ns", (unsigned)ns);
	else if (ns < 999500)
		format_scaled(&t, (double)ns / 1e3, "us");
	else if (ns < 999500000)
		format_scaled(&t, (double)ns / 1e6, "ms");
	else if (seconds < 100)
		format_scaled(&t, (double)ns / 1e9, "s");
	else if (seconds < 3600)
		snprintf(t.s, sizeof(t.s), "%u min %02u s", (unsigned)(seconds / 60),
			 (unsigned)(seconds % 60));
	else
		snprintf(t.s, sizeof(t.s), "%llu h %02u min", (unsigned long long)(seconds / 3600),
			 (unsigned)(seconds % 3600 / 60));
	return t;
}

struct hr_human hr_text_date(uint64_t real_ns)
{
	time_t s = (time_t)(real_ns / 1000000000);
	struct hr_human t = {"?"};
	struct tm tm;

	if (gmtime_r(&s, &tm))
		(void)strftime(t.s, sizeof(t.s), "%Y-%m-%d %H:%M UTC", &tm);
	return t;
}

struct hr_human hr_text_count(uint64_t n)
{
	char digits[24];
	struct hr_human t;
	int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
	size_t to = 0;

	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			t.s[to++] = ',';
		t.s[to++] = digits[i];
	}
	t.s[to] = '\0';
	return t;
}

struct hr_human hr_text_decimal(double v)
{
	struct hr_human h;

	if (v >= 1000)
		return hr_text_count((uint64_t)v);
	snprintf(h.s, sizeof(h.s), "%.*f", v >= 100 || v == 0 ? 0 : v >= 10 ? 1 : 2, v);
	return h;
}

struct hr_human hr_text_percent(uint64_t part, uint64_t whole)
{
	struct hr_human t;

	if (whole == 0)
		snprintf(t.s, sizeof(t.s), "-");
	else
		snprintf(t.s, sizeof(t.s), "%.1f %%", 100.0 * (double)part / (double)whole);
	return t;
}

struct hr_human hr_text_bar(double share, unsigned cells)
{
	struct hr_human t = {""};
	unsigned marks;

	cells = cells < sizeof(t.s) ? cells : sizeof(t.s) - 1;
	share = share > 1 ? 1 : share > 0 ? share : 0; /* not a number becomes 0 */
	marks = (unsigned)(share * cells + 0.5);
	if (marks == 0 && share > 0)
		marks = 1;
	for (unsigned i = 0; i < cells; i++)
		t.s[i] = i < marks ? '#' : ' ';
	return t;
}

struct text_unit {
	const char *name;
	double factor;
};

/* Reads a non-negative decimal number and one of `units`, which may include "" (no unit). */
static int parse_scaled(const char *text, const struct text_unit *units, size_t n, uint64_t *ret)
{
	char *end;
	double value;

	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return -EINVAL;
	errno = 0;
	value = strtod(text, &end);
	if (errno != 0 || !isfinite(value) || (text[0] == '0' && (text[1] | 0x20) == 'x'))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (strcasecmp(end, units[i].name) != 0)
			continue;
		value *= units[i].factor;
		if (value >= 0x1p63)
			return -ERANGE;
		*ret = (uint64_t)(value + 0.5);
		return 0;
	}
	return -EINVAL;
}

int hr_text_parse_size(const char *text, uint64_t *ret_bytes)
{
	static const struct text_unit units[] = {
	    {"", 1},	     {"B", 1},	     {"K", 0x1p10},   {"KB", 0x1p10},  {"KiB", 0x1p10},
	    {"M", 0x1p20},   {"MB", 0x1p20}, {"MiB", 0x1p20}, {"G", 0x1p30},   {"GB", 0x1p30},
	    {"GiB", 0x1p30}, {"T", 0x1p40},  {"TB", 0x1p40},  {"TiB", 0x1p40},
	};

	return parse_scaled(text, units, sizeof(units) / sizeof(units[0]), ret_bytes);
}

int hr_text_parse_duration(const char *text, uint64_t *ret_ns)
{
	static const struct text_unit units[] = {
	    {"", 1e9},	 {"s", 1e9},	{"ms", 1e6},   {"us", 1e3},    {"ns", 1},
	    {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}, {"d", 86400e9},
	};

	return parse_scaled(text, units, sizeof(units) / sizeof(units[0]), ret_ns);
}

int hr_text_parse_uint(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (text[0] == '\0')
		return -EINVAL;
	for (; *text != '\0'; text++) {
		if (!isdigit((unsigned char)*text))
			return -EINVAL;
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value) || value > max)
			return -ERANGE;
	}
	*ret = value;
	return 0;
}
