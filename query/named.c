/* SPDX-License-Identifier: Apache-2.0 */
#include "query/named.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/near.h"
#include "common/text.h"

#define ARG_LINE  "-- arg "
#define TEXT_LINE "-- text: "
#define WORDS	  '|' /* separates the allowed words of a type */

/* Limits of the type SECONDS: 1 us to 32 years. */
#define SECONDS_MIN 1e-6
#define SECONDS_MAX 1e9

const struct hr_named *hr_named_in(const struct hr_named *list, const char *name)
{
	for (const struct hr_named *q = list; q->name != NULL; q++) {
		if (strcmp(q->name, name) == 0)
			return q;
	}
	return NULL;
}

const struct hr_named *hr_named_find(const char *name)
{
	return hr_named_in(hr_named_list, name);
}

static const char *next_line(const char *line)
{
	line += strcspn(line, "\n");
	return line + (*line == '\n');
}

const char *hr_named_next(const struct hr_named *q, const char *prefix, const char *after)
{
	const char *line = after != NULL ? next_line(after) : q->sql;
	size_t n = strlen(prefix);

	for (; strncmp(line, "--", 2) == 0; line = next_line(line))
		if (strncmp(line, prefix, n) == 0)
			return line + n;
	return NULL;
}

const char *hr_named_line(const struct hr_named *q, const char *prefix)
{
	return hr_named_next(q, prefix, NULL);
}

void hr_named_about(const struct hr_named *q, const char **ret_text, size_t *ret_n)
{
	const char *text = q->sql + strspn(q->sql, "- ");

	*ret_text = text;
	*ret_n = strcspn(text, "\n");
}

/* ---- the header ---- */

static char *named_keep(struct hr_named_args *a, const char *text, size_t n)
{
	char *copy = strndup(text, n);

	if (copy != NULL)
		a->texts[a->n_texts++] = copy;
	return copy;
}

static bool named_is(const char *text, size_t n, const char *word)
{
	return strlen(word) == n && memcmp(text, word, n) == 0;
}

/* Returns the length of the next word of a header line in *ret, and moves *at to its end. */
static size_t word(const char **at, const char **ret)
{
	size_t n;

	*at += strspn(*at, " ");
	n = strcspn(*at, " :\n");
	*ret = *at;
	*at += n;
	return n;
}

static bool is_whole(const char *type)
{
	return strncmp(type, "BIGINT", 6) == 0 || strcmp(type, "COUNT") == 0;
}

static bool is_real(const char *type)
{
	return strncmp(type, "DOUBLE", 6) == 0 || strcmp(type, "SECONDS") == 0;
}

/* Declares an argument from a header line, "NAME TYPE DEFAULT: ...". */
static int declare(struct hr_named_args *a, const char *line)
{
	struct hr_query_arg *arg = &a->list[a->n];
	const char *name, *type, *value;
	size_t name_n, type_n, value_n;

	if (a->n == HR_NAMED_ARGS)
		return -EINVAL;
	name_n = word(&line, &name);
	type_n = word(&line, &type);
	value_n = word(&line, &value);
	arg->name = named_keep(a, name, name_n);
	a->types[a->n] = named_keep(a, type, type_n);
	if (arg->name == NULL || a->types[a->n] == NULL)
		return -ENOMEM;
	arg->type = HR_ARG_VARCHAR;
	if (is_whole(a->types[a->n]))
		arg->type = HR_ARG_BIGINT;
	else if (is_real(a->types[a->n]))
		arg->type = HR_ARG_DOUBLE;
	arg->text = NULL;
	a->required[a->n] = named_is(value, value_n, "REQUIRED");
	if (!a->required[a->n] && !named_is(value, value_n, "NULL")) {
		arg->text = named_keep(a, value, value_n);
		if (arg->text == NULL)
			return -ENOMEM;
	}
	a->n++;
	return 0;
}

/* ---- arguments of the user ---- */

/* A description of the values that an argument can have, for messages. */
struct expected {
	char s[96];
};

/* Reads the limits "[LEAST,MOST]" at the end of a type. False: the type has no limits. */
static bool type_limits(const char *type, double *ret_least, double *ret_most)
{
	const char *at = strchr(type, '[');
	char *end;

	if (at == NULL)
		return false;
	*ret_least = strtod(at + 1, &end);
	*ret_most = strtod(end + 1, NULL);
	return true;
}

/* Whether `text` is no number, or not allowed by `type`. Describes the allowed values in *ret. */
static bool misfit_number(const char *type, const char *text, struct expected *ret)
{
	bool whole = is_whole(type), number, limited;
	double x, least = 0, most = 0;
	char *end;

	errno = 0;
	x = whole ? (double)strtoll(text, &end, 10) : strtod(text, &end);
	number = errno == 0 && end != text && *end == '\0' && isfinite(x);
	limited = type_limits(type, &least, &most);
	if (strcmp(type, "COUNT") == 0) {
		snprintf(ret->s, sizeof(ret->s), "a whole number, 1 or more");
		return !number || x < 1;
	}
	if (strcmp(type, "SECONDS") == 0) {
		snprintf(ret->s, sizeof(ret->s), "a number of seconds from 0.000001 to 1000000000");
		return !number || x < SECONDS_MIN || x > SECONDS_MAX;
	}
	if (limited)
		snprintf(ret->s, sizeof(ret->s), "a %snumber from %.0f to %.0f",
			 whole ? "whole " : "", least, most);
	else
		snprintf(ret->s, sizeof(ret->s), whole ? "a whole number" : "a number");
	return !number || (limited && (x < least || x > most));
}

/* Does the same as misfit_number for types that are texts. */
static bool misfit_text(const char *type, const char *text, struct expected *ret)
{
	const char *to = strchr(text, '=');
	uint64_t bytes;

	if (strcmp(type, "SIZE") == 0) {
		snprintf(ret->s, sizeof(ret->s), "a size, for example 64GiB or 1MiB");
		return hr_text_parse_size(text, &bytes) < 0 || bytes == 0;
	}
	if (strcmp(type, "PAIR") == 0) {
		snprintf(ret->s, sizeof(ret->s), "two paths, for example /data=/scratch");
		return to == NULL || to == text || to[1] == '\0';
	}
	return false;
}

static bool is_word(const char *type, const char *text)
{
	size_t n = strlen(text);

	if (n == 0 || strchr(text, WORDS) != NULL)
		return false;
	for (const char *at = type; at != NULL; at = strchr(at, WORDS)) {
		at += *at == WORDS;
		if (strncmp(at, text, n) == 0 && (at[n] == WORDS || at[n] == '\0'))
			return true;
	}
	return false;
}

/* Appends `path` to the absolute path in `out`, without `.` and `..`. */
static void walk(char *out, const char *path)
{
	while (*path != '\0') {
		size_t n = strcspn(path, "/"), have = strlen(out);

		if (n == 2 && memcmp(path, "..", 2) == 0) {
			char *last = strrchr(out, '/');

			if (last != NULL)
				*last = '\0';
		} else if (n > 1 || (n == 1 && path[0] != '.')) {
			out[have] = '/';
			memcpy(out + have + 1, path, n);
			out[have + 1 + n] = '\0';
		}
		path += n + (path[n] == '/');
	}
}

/* Makes a path absolute (malloc'ed), with the working folder escaped like paths of a store. */
static char *absolute(const char *text)
{
	char *folder = getcwd(NULL, 0), *path = NULL;
	size_t n = folder != NULL ? strlen(folder) : 0;

	if (folder != NULL)
		path = malloc(4 * n + strlen(text) + 3);
	if (path != NULL) {
		hr_text_escape(path, 4 * n + 1, folder, n);
		if (n == 1)
			/* for "/", because walk() adds a slash before each component */
			path[0] = '\0';
		walk(path, text);
	}
	free(folder);
	return path;
}

static int set_path(struct hr_named_args *a, struct hr_query_arg *arg, const char *text)
{
	char *path = text[0] == '/' ? strdup(text) : absolute(text);

	if (path == NULL)
		return -ENOMEM;
	a->texts[a->n_texts++] = path;
	arg->text = path;
	return 0;
}

static int set(struct hr_named_args *a, struct hr_query_arg *arg, const char *text,
	       char **ret_error)
{
	const char *type = a->types[arg - a->list];
	struct hr_near near = hr_near(text);
	struct expected expected;

	if (a->given[arg - a->list])
		return hr_text_fail(-EINVAL, ret_error, "%s is given twice", arg->name);
	a->given[arg - a->list] = true;
	if (arg->type != HR_ARG_VARCHAR ? misfit_number(type, text, &expected)
					: misfit_text(type, text, &expected))
		return hr_text_fail(-EINVAL, ret_error, "%s must be %s, not %s", arg->name,
				    expected.s, hr_near_text(&near).s);
	if (strchr(type, WORDS) != NULL && !is_word(type, text)) {
		hr_near_add_list(&near, type);
		return hr_text_fail(-EINVAL, ret_error, "%s must be one of %s, not %s", arg->name,
				    type, hr_near_text(&near).s);
	}
	if (strcmp(type, "PATH") == 0)
		return set_path(a, arg, text);
	arg->text = named_keep(a, text, strlen(text));
	return arg->text != NULL ? 0 : -ENOMEM;
}

/* Returns the argument that `text` ("name=value") names; NULL: none. */
static struct hr_query_arg *named_arg(struct hr_named_args *a, const char *text)
{
	size_t n = strcspn(text, "=");

	for (size_t i = 0; text[n] == '=' && i < a->n; i++) {
		if (strlen(a->list[i].name) == n && memcmp(a->list[i].name, text, n) == 0)
			return &a->list[i];
	}
	return NULL;
}

/* Whether `text` is `name=value`. Otherwise, it may be a path or pattern with a `=`. */
static bool is_named_argument(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz_");

	return n > 0 && text[n] == '=';
}

/* Fails with a message, for example: slow has no argument 'rnk'; did you mean 'rank'? */
static int refuse_word(const struct hr_named_args *a, const struct hr_named *q, const char *text,
		       char **ret_error)
{
	char name[HR_NEAR_BYTES] = "", names[256] = "";
	struct hr_near near = hr_near(name);
	size_t n = 0;

	snprintf(name, sizeof(name), "%.*s",
		 is_named_argument(text) ? (int)strcspn(text, "=") : (int)sizeof(name), text);
	for (size_t i = 0; i < a->n && n < sizeof(names); i++) {
		hr_near_add(&near, a->list[i].name);
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i > 0 ? ", " : "",
				      a->list[i].name);
	}
	if (near.best[0] != '\0')
		return hr_text_fail(-EINVAL, ret_error, "%s has no argument %s", q->name,
				    hr_near_text(&near).s);
	if (a->n == 0)
		return hr_text_fail(-EINVAL, ret_error, "%s takes no arguments, but was given %s",
				    q->name, hr_near_text(&near).s);
	return hr_text_fail(-EINVAL, ret_error,
			    "%s has no argument %s; it has: %s (headrace query --explain %s)",
			    q->name, hr_near_text(&near).s, names, q->name);
}

static int named_take(struct hr_named_args *a, const struct hr_named *q, char *const *words,
		      size_t n, char **ret_error)
{
	size_t next = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct hr_query_arg *arg = named_arg(a, words[i]);

		if (arg != NULL)
			r = set(a, arg, strchr(words[i], '=') + 1, ret_error);
		else if (is_named_argument(words[i]) || next == a->n)
			r = refuse_word(a, q, words[i], ret_error);
		else
			r = set(a, &a->list[next++], words[i], ret_error);
	}
	for (size_t i = 0; r == 0 && i < a->n; i++) {
		if (a->required[i] && !a->given[i])
			r = hr_text_fail(-EINVAL, ret_error,
					 "%s requires %s (headrace query --explain %s)", q->name,
					 a->list[i].name, q->name);
	}
	return r;
}

int hr_named_args_declare(const struct hr_named *q, struct hr_named_args *ret)
{
	const char *line = NULL;
	int r = 0;

	*ret = (struct hr_named_args){.query = q, .text = hr_named_line(q, TEXT_LINE) != NULL};
	while (r == 0 && (line = hr_named_next(q, ARG_LINE, line)) != NULL)
		r = declare(ret, line);
	return r;
}

int hr_named_args_init(const struct hr_named *q, char *const *words, size_t n_words,
		       struct hr_named_args *ret, char **ret_error)
{
	int r;

	r = hr_named_args_declare(q, ret);
	if (r == 0)
		r = named_take(ret, q, words, n_words, ret_error);
	if (r < 0)
		hr_named_args_done(ret);
	return r;
}

void hr_named_args_done(struct hr_named_args *a)
{
	for (size_t i = 0; i < a->n_texts; i++)
		free(a->texts[i]);
	*a = (struct hr_named_args){0};
}
