/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - text for users and scripts: escaped paths, sizes, durations, counts, JSON
 *
 * All programs show paths that are not UTF-8, or contain control bytes, with `\xHH` and doubled
 * `\`. Sizes are binary (KiB, MiB). JSON keys contain their unit.
 *
 * Owner     Functions write into the caller's buffer or FILE.
 * Threads   Any. A struct hr_json belongs to one thread.
 */
#ifndef HEADRACE_COMMON_TEXT_H
#define HEADRACE_COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- paths ----------------------------------------------------------------------------------- */

/*
 * Escapes `n` bytes: doubles `\`, and writes control bytes (C0, DEL, C1, and those of writing
 * direction) and bytes that are not UTF-8 as `\xHH`. Writes at most out_bytes - 1 characters and a
 * NUL, and never a part of an escape. Returns the length of the whole text, as snprintf does.
 * 4 * n + 1 bytes always suffice.
 */
size_t hr_text_escape(char *out, size_t out_bytes, const void *in, size_t n);

/* Returns the text of hr_text_escape (malloc'ed), or NULL. */
char *hr_text_escaped(const void *in, size_t n);

/* Whether the bytes are well-formed UTF-8. */
bool hr_text_is_utf8(const void *text, size_t n);

/* Reverses hr_text_escape in place, up to a NUL. Returns the length, or -EINVAL. */
long hr_text_unescape(char *text);

/*
 * Returns `text` as one word of a shell command, malloc'ed, quoted if necessary. NULL: no memory.
 */
char *hr_text_quote(const char *text);

/*
 * Shortens a path for people to at most `cells`, as `/data/.../a.jpg`. If the path is
 * below the folder `from` (NULL: none), shows it relative to `from`. Cuts at a `/` if possible. The
 * path and `from` are escaped. Returns the length in bytes, at most that of the path and 4.
 */
size_t hr_text_path_short(char *out, size_t out_bytes, const char *path, const char *from,
			  size_t cells);

/*
 * Returns the number of cells of a terminal that the first character of a UTF-8 text takes: 2 if it
 * is Chinese, Japanese, Korean or an emoji, 0 if it combines with the one before it; -1: a terminal
 * cannot show it. *ret_bytes: its length.
 */
int hr_text_character(const char *text, size_t *ret_bytes);

/* Returns the number of cells of a text. A character that a terminal cannot show counts as one. */
size_t hr_text_cells(const char *text);

/* Returns the length in bytes of the longest start of a text that takes at most `cells`. */
size_t hr_text_start(const char *text, size_t cells);

/* Returns the longest end of a text that takes at most `cells`. */
const char *hr_text_end(const char *text, size_t cells);

/* Writes a text as a literal of SQL, with its quotes. */
void hr_text_sql(FILE *out, const char *text);

/* Whether a word, which is not empty, is in a text of words that single blanks separate. */
bool hr_text_has_word(const char *words, const char *word);

static inline bool hr_text_given(const char *text)
{
	return text && text[0] != '\0';
}

static inline const char *hr_text_or_null(const char *text)
{
	return hr_text_given(text) ? text : NULL;
}

/* ---- messages -------------------------------------------------------------------------------- */

/*
 * Messages may quote text of another user or machine: the id of a job, the name of a folder, an
 * error. hr_text_print and hr_text_line write control bytes (C0, DEL, C1) and bytes that are not
 * UTF-8 as `\xHH`, so that the text cannot control a terminal. They do not double `\`, because a
 * path in the text may already be escaped. hr_text_print keeps line ends and tabs. hr_text_line
 * escapes them (malloc'ed; NULL: no memory).
 */
__attribute__((format(printf, 2, 3))) void hr_text_print(FILE *out, const char *format, ...);
char *hr_text_line(const char *text);

/* ---- memory ---------------------------------------------------------------------------------- */

/* Closes a stream of open_memstream(text, ...). Returns *text; NULL: no memory, and it is freed. */
char *hr_text_close(FILE *to, char **text);

/* ---- errors ---------------------------------------------------------------------------------- */

/* Stores a formatted text, malloc'ed (NULL: no memory), in *ret_error, and returns `r`. */
__attribute__((format(printf, 3, 4))) int hr_text_fail(int r, char **ret_error, const char *format,
						       ...);

/* ---- numbers --------------------------------------------------------------------------------- */

struct hr_human {
	char s[32];
};

struct hr_human hr_text_size(uint64_t bytes); /* "512 B", "1.5 KiB", "23.4 MiB" */
struct hr_human
hr_text_duration(uint64_t ns); /* "812 ns", "1.23 ms", "12.3 s", "2 min 03 s", "1 h 02 min" */
struct hr_human hr_text_date(uint64_t real_ns); /* "2026-11-21 23:22 UTC" */
struct hr_human hr_text_count(uint64_t n);	/* "1,234,567" */
struct hr_human hr_text_decimal(double v);	/* "1,234", "123", "12.3", "1.23", not negative */
struct hr_human hr_text_percent(uint64_t part, uint64_t whole); /* "12.3 %"; "-" if whole is 0 */
/* A bar of at most 31 cells: "####  " is two thirds of 6. A share above 0 has at least one `#`. */
struct hr_human hr_text_bar(double share, unsigned cells);

/* Reads "10GiB", "64K", "1.5MB", "4096". KB and K mean KiB. Returns 0, -EINVAL or -ERANGE. */
int hr_text_parse_size(const char *text, uint64_t *ret_bytes);

/* Reads "5s", "100ms", "2m", "1h", "30d", "0". No unit: seconds. Returns 0, -EINVAL or -ERANGE. */
int hr_text_parse_duration(const char *text, uint64_t *ret_ns);

/* Reads a decimal integer up to `max`, and nothing else. Returns 0, -EINVAL or -ERANGE. */
int hr_text_parse_uint(const char *text, uint64_t max, uint64_t *ret);

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Writes JSON, indented unless `line`. `key` is NULL in arrays and for the outermost value. */
struct hr_json {
	FILE *out;
	unsigned depth;
	bool first; /* no value was written at this depth */
	bool line;  /* the caller sets it to get everything on one line */
	bool array[16];
};

void hr_json_init(struct hr_json *j, FILE *out);
/* Begins the outermost object. `schema`: its name and version (docs/json.md), "headrace-ls/1". */
void hr_json_document(struct hr_json *j, const char *schema);
void hr_json_object(struct hr_json *j, const char *key);
void hr_json_array(struct hr_json *j, const char *key);
/* Ends the innermost object or array. After the outermost one, writes a line end. */
void hr_json_end(struct hr_json *j);
/*
 * The condition of a loop over the `n` objects of an array, which begins and ends them and the
 * array: for (size_t i = 0; hr_json_row(j, key, i, n); i++) writes the members of object i. Do not
 * leave the loop with `break`.
 */
bool hr_json_row(struct hr_json *j, const char *key, size_t i, size_t n);
void hr_json_string(struct hr_json *j, const char *key, const char *text); /* NULL becomes null */
void hr_json_path(struct hr_json *j, const char *key, const void *path, size_t n);
/* Writes a text of another machine: escaped as a path, because it may not be UTF-8. NULL: null. */
void hr_json_escaped(struct hr_json *j, const char *key, const char *text);
void hr_json_uint(struct hr_json *j, const char *key, uint64_t value);
/* Writes null if the value is not known. */
void hr_json_uint_if(struct hr_json *j, const char *key, bool known, uint64_t value);
void hr_json_int(struct hr_json *j, const char *key, int64_t value);
void hr_json_double(struct hr_json *j, const char *key, double value); /* NAN becomes null */
void hr_json_bool(struct hr_json *j, const char *key, bool value);
void hr_json_null(struct hr_json *j, const char *key);
/* Begins an object if `known`. Otherwise writes null and returns false. */
static inline bool hr_json_object_if(struct hr_json *j, const char *key, bool known)
{
	if (known)
		hr_json_object(j, key);
	else
		hr_json_null(j, key);
	return known;
}
/* Writes the number before `plus1`, as messages have ranks and workers. 0 becomes null. */
void hr_json_plus1(struct hr_json *j, const char *key, uint32_t plus1);
void hr_json_raw(struct hr_json *j, const char *key, const char *json); /* `json` is JSON already */

#endif
