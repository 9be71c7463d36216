/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#define FLAG_BYTES 80 /* longest flag, for example "--retention-age" */
#define FILE_BYTES (256u << 10)

/*
 * Where a text came from. This is stored in memory before the text, because the structure only has
 * a pointer to the text. A list from a later source replaces the list. A value from the same source
 * is appended to it.
 */
enum source { DEFAULT, FROM_FILE, FROM_FLAG };

struct boxed_text {
	enum source source;
	char text[];
};

static struct boxed_text *box_of(char *text)
{
	return text ? (struct boxed_text *)(text - offsetof(struct boxed_text, text)) : NULL;
}

/* ---- values -------------------------------------------------------------------------------------- */

static int set_text(const struct hr_config_key *key, char **field, const char *value,
		    enum source source)
{
	struct boxed_text *old = box_of(*field), *box;
	bool add = key->type == HR_CONFIG_LIST && old && old->source == source &&
		   old->text[0] != '\0' && value[0] != '\0';
	size_t bytes = sizeof(*box) + (add ? strlen(old->text) + 1 : 0) + strlen(value) + 1;

	box = malloc(bytes);
	if (!box)
		return -ENOMEM;
	box->source = source;
	snprintf(box->text, bytes - sizeof(*box), "%s%s%s", add ? old->text : "", add ? "," : "",
		 value);
	free(old);
	*field = box->text;
	return 0;
}

/* Finds word number i of a list such as "no loopback yes". Returns its length; 0: no such word. */
static size_t choice(const char *choices, unsigned i, const char **ret)
{
	for (;; i--) {
		size_t n = strcspn(choices, " ");

		if (i == 0 || n == 0) {
			*ret = choices;
			return n;
		}
		choices += n + (choices[n] == ' ');
	}
}

static int parse_choice(const char *choices, const char *value, unsigned *ret)
{
	const char *word;
	size_t n;

	for (unsigned i = 0; (n = choice(choices, i, &word)) > 0; i++) {
		if (strlen(value) == n && strncmp(value, word, n) == 0) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_flag(const char *value, bool *ret)
{
	unsigned i;

	if (parse_choice("no yes off on false true", value, &i) < 0)
		return -EINVAL;
	*ret = i % 2;
	return 0;
}

static int parse_milliseconds(const char *value, uint64_t *ret)
{
	uint64_t ns;
	int r = hr_text_parse_duration(value, &ns);

	/* In a file, a bare number could be meant as days. On a command line it means seconds. */
	if (r == 0 && ns != 0 && value[strspn(value, "0123456789.")] == '\0')
		return -EINVAL;
	if (r == 0)
		*ret = ns / 1000000 + (ns % 1000000 > 0); /* rounds up: 0 has another meaning */
	return r;
}

static const char *what_is_wanted(enum hr_config_type type)
{
	switch (type) {
	case HR_CONFIG_BYTES:
		return "a size, for example 4096, 512MB or 10GiB";
	case HR_CONFIG_DURATION:
		return "a time with a unit, for example 500ms, 30s, 5m, 12h or 30d";
	case HR_CONFIG_NUMBER:
		return "a whole number";
	case HR_CONFIG_FLAG:
		return "yes or no";
	default:
		return "a text";
	}
}

/* `name`: the key as the user wrote it. */
static int set(const struct hr_config_key *key, void *config, const char *name, const char *value,
	       enum source source, char **ret_error)
{
	void *field = (char *)config + key->offset;
	int r = -EINVAL;

	switch (key->type) {
	case HR_CONFIG_TEXT:
	case HR_CONFIG_LIST:
		return set_text(key, field, value, source);
	case HR_CONFIG_BYTES:
		r = hr_text_parse_size(value, field);
		break;
	case HR_CONFIG_DURATION:
		r = parse_milliseconds(value, field);
		break;
	case HR_CONFIG_NUMBER:
		r = hr_text_parse_uint(value, UINT64_MAX, field);
		break;
	case HR_CONFIG_FLAG:
		r = parse_flag(value, field);
		break;
	case HR_CONFIG_CHOICE:
		if (parse_choice(key->choices, value, field) == 0)
			return 0;
		return hr_text_fail(-EINVAL, ret_error, "%s: '%s' is not one of: %s", name, value,
				    key->choices);
	}
	if (r == -ERANGE)
		return hr_text_fail(-EINVAL, ret_error, "%s: '%s' is too large", name, value);
	return r < 0 ? hr_text_fail(-EINVAL, ret_error, "%s: '%s' is not %s", name, value,
				    what_is_wanted(key->type))
		     : 0;
}

static const struct hr_config_key *config_find(const struct hr_config_key *keys, size_t n,
					       const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

void hr_config_done(const struct hr_config_key *keys, size_t n, void *config)
{
	for (size_t i = 0; i < n; i++) {
		char **field = (char **)((char *)config + keys[i].offset);

		if (keys[i].type != HR_CONFIG_TEXT && keys[i].type != HR_CONFIG_LIST)
			continue;
		free(box_of(*field));
		*field = NULL;
	}
}

size_t hr__config_size(enum hr_config_type type)
{
	switch (type) {
	case HR_CONFIG_TEXT:
	case HR_CONFIG_LIST:
		return sizeof(char *);
	case HR_CONFIG_FLAG:
		return sizeof(bool);
	case HR_CONFIG_CHOICE:
		return sizeof(unsigned);
	default:
		return sizeof(uint64_t);
	}
}

int hr_config_init(const struct hr_config_key *keys, size_t n, void *config)
{
	for (size_t i = 0; i < n; i++)
		memset((char *)config + keys[i].offset, 0, hr__config_size(keys[i].type));
	for (size_t i = 0; i < n; i++) {
		char *error = NULL;
		int r = 0;

		if (keys[i].type == HR_CONFIG_CHOICE && !keys[i].choices)
			r = -EINVAL;
		else if (keys[i].otherwise)
			r = set(&keys[i], config, keys[i].name, keys[i].otherwise, DEFAULT, &error);
		free(error);
		if (r < 0) {
			hr_config_done(keys, n, config);
			return r;
		}
	}
	return 0;
}

/* ---- files --------------------------------------------------------------------------------------- */

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return text;
}

/*
 * Returns the value in the rest of a line: the text before a blank and #, or between double quotes.
 * NULL: the second quote is missing.
 */
static char *config_value_of(char *text)
{
	char *end;

	text = trim(text);
	if (*text == '"') {
		end = strchr(++text, '"');
		if (!end || (end[1] != '\0' && !isspace((unsigned char)end[1])) ||
		    (*trim(end + 1) != '\0' && *trim(end + 1) != '#'))
			return NULL;
		*end = '\0';
		return text;
	}
	for (end = text; *end != '\0'; end++) {
		if (*end == '#' && (end == text || isspace((unsigned char)end[-1]))) {
			*end = '\0';
			break;
		}
	}
	return trim(text);
}

struct reading {
	const struct hr_config_key *keys;
	size_t n;
	void *config;
	void (*warn)(const char *text);
	unsigned *seen; /* for each key: the number of its line; 0: not read yet */
	unsigned line;
};

/* Reads one line. *ret_error does not name the file and the line. */
static int read_line(struct reading *f, char *line, char **ret_error)
{
	const struct hr_config_key *key;
	char *name = trim(line), *value = strchr(name, '=');
	size_t i;

	if (*name == '\0' || *name == '#')
		return 0;
	if (!value)
		return hr_text_fail(-EINVAL, ret_error, "'%s' is not KEY = VALUE", name);
	*value++ = '\0';
	name = trim(name);
	key = config_find(f->keys, f->n, name);
	if (!key)
		return hr_text_fail(-EINVAL, ret_error, "unknown key '%s'", name), -ENOENT;
	value = config_value_of(value);
	if (!value)
		return hr_text_fail(-EINVAL, ret_error, "%s: a closing quote is missing", name);
	i = (size_t)(key - f->keys);
	if (f->seen[i] > 0 && key->type != HR_CONFIG_LIST)
		return hr_text_fail(-EINVAL, ret_error, "%s is already set in line %u", name,
				    f->seen[i]);
	f->seen[i] = f->line;
	return set(key, f->config, name, value, FROM_FILE, ret_error);
}

static void place(const char *path, unsigned line, char **error)
{
	char *text = *error;

	if (!text || asprintf(error, "%s:%u: %s", path, line, text) < 0)
		*error = NULL;
	free(text);
}

/* Reads one line of getline(). *ret_error names the file and the line. */
static int take_line(struct reading *f, const char *path, char *line, size_t bytes,
		     char **ret_error)
{
	int r = strlen(line) == bytes
		    ? read_line(f, line, ret_error)
		    : hr_text_fail(-EINVAL, ret_error, "the line contains a zero byte");

	if (r < 0)
		place(path, f->line, ret_error);
	if (r != -ENOENT || !f->warn)
		return r == -ENOENT ? -EINVAL : r;
	if (*ret_error)
		f->warn(*ret_error);
	free(*ret_error);
	*ret_error = NULL;
	return 0;
}

static int read_lines(struct reading *f, const char *path, FILE *file, FILE *mistakes)
{
	char *line = NULL;
	size_t room = 0, all = 0;
	ssize_t bytes;
	int result = 0;

	while (result != -ENOMEM && (bytes = getline(&line, &room, file)) >= 0 &&
	       (all += (size_t)bytes) <= FILE_BYTES) {
		char *error = NULL;
		int r;

		f->line++;
		r = take_line(f, path, line, (size_t)bytes, &error);
		if (r < 0) {
			fprintf(mistakes, "%s%s", result < 0 ? "\n" : "", error ? error : "");
			result = r;
		}
		free(error);
	}
	free(line);
	if (all > FILE_BYTES) {
		fprintf(mistakes, "%s%s has more than %u bytes", result < 0 ? "\n" : "", path,
			FILE_BYTES);
		result = -EINVAL;
	}
	if (ferror(file)) {
		fprintf(mistakes, "%scannot read %s", result < 0 ? "\n" : "", path);
		result = -EIO;
	}
	return result;
}

int hr_config_file(const struct hr_config_key *keys, size_t n, void *config, const char *path,
		   void (*warn)(const char *text), char **ret_error)
{
	struct reading f = {.keys = keys, .n = n, .config = config, .warn = warn};
	FILE *file = fopen(path, "re"), *mistakes;
	char *text = NULL;
	size_t bytes;
	int r;

	if (!file) {
		r = -errno;
		return hr_text_fail(r, ret_error, "cannot read %s: %s", path, strerrordesc_np(-r));
	}
	f.seen = calloc(n + 1, sizeof(*f.seen));
	mistakes = open_memstream(&text, &bytes);
	r = f.seen && mistakes ? read_lines(&f, path, file, mistakes) : -ENOMEM;
	if (mistakes && fclose(mistakes) != 0)
		r = -ENOMEM;
	free(f.seen);
	(void)fclose(file);
	if (r < 0 && r != -ENOMEM)
		*ret_error = text;
	else
		free(text);
	return r;
}

/* ---- flags --------------------------------------------------------------------------------------- */

size_t hr__config_flag(const struct hr_config_key *key, char *ret, size_t bytes)
{
	size_t n = (size_t)snprintf(ret, bytes, "--%s", key->name);

	for (char *c = ret; *c != '\0'; c++)
		if (*c == '_')
			*c = '-';
	return n;
}

int hr_config_flag(const struct hr_config_key *keys, size_t n, void *config, int argc, char **argv,
		   int *i, char **ret_error)
{
	const char *word = argv[*i], *value;
	size_t length = strcspn(word, "=");
	const struct hr_config_key *key = NULL;
	char flag[FLAG_BYTES];
	int r, used = 1;

	for (size_t k = 0; k < n && !key; k++) {
		hr__config_flag(&keys[k], flag, sizeof(flag));
		if (strlen(flag) == length && strncmp(flag, word, length) == 0)
			key = &keys[k];
	}
	if (!key)
		return -ENOENT;
	if (word[length] == '=') {
		value = word + length + 1;
	} else if (key->type == HR_CONFIG_FLAG) {
		value = "yes";
	} else if (*i + 1 < argc) {
		value = argv[*i + 1];
		used = 2;
	} else {
		return hr_text_fail(-EINVAL, ret_error, "%s needs %s", flag,
				    what_is_wanted(key->type));
	}
	r = set(key, config, flag, value, FROM_FLAG, ret_error);
	if (r == 0)
		*i += used;
	return r;
}
