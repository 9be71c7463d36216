/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/alert_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#define BLANKS	      " \t"
#define DIGITS	      "0123456789"
#define METADATA_MOST UINT64_C(1000000000)
#define AGE_LEAST_NS  UINT64_C(5000000000) /* nodes report an operation after 5 s (proto/now.h) */
#define FACTOR_LEAST  1.1
#define FACTOR_MOST   1000.0
#define TIME_MOST_NS  (UINT64_C(30) * 86400 * 1000000000)

static const struct {
	const char *name, *limit, *example;
} kinds[HR_ALERT_N_KINDS] = {
#define KIND(NAME, name, limit, example) {#name, limit, example},
    HR_ALERT_KINDS(KIND)
#undef KIND
};

#define KIND_NAME(NAME, name, limit, example) " " #name
#define KIND_NAMES			      HR_ALERT_KINDS(KIND_NAME)

const char *hr_alert_kind_name(enum hr_alert_kind kind)
{
	return kinds[kind].name;
}

/* ---- one rule -------------------------------------------------------------------------------- */

/* Reads a time with a unit. A number without a unit is refused: it could be meant as minutes. */
static bool read_time(const char *text, uint64_t least_ns, uint64_t *ret_ns)
{
	return text[strspn(text, DIGITS ".")] != '\0' &&
	       hr_text_parse_duration(text, ret_ns) == 0 && *ret_ns >= least_ns &&
	       *ret_ns <= TIME_MOST_NS;
}

/* Reads "80%" as 0.8. Changes the text. */
static bool read_share(char *text, double *ret)
{
	size_t n = strlen(text);
	uint64_t percent;

	if (n < 2 || text[n - 1] != '%')
		return false;
	text[n - 1] = '\0';
	if (hr_text_parse_uint(text, 99, &percent) < 0 || percent == 0)
		return false;
	*ret = (double)percent / 100;
	return true;
}

/* Reads "1.5x". Changes the text. */
static bool read_factor(char *text, double *ret)
{
	size_t n = strlen(text);

	if (n < 2 || text[n - 1] != 'x' || strspn(text, DIGITS ".") != n - 1)
		return false;
	text[n - 1] = '\0';
	*ret = strtod(text, &text);
	return *text == '\0' && *ret >= FACTOR_LEAST && *ret <= FACTOR_MOST;
}

static bool read_limit(enum hr_alert_kind kind, char *text, double *ret)
{
	uint64_t n;

	switch (kind) {
	case HR_ALERT_WAITING:
		return read_share(text, ret);
	case HR_ALERT_METADATA:
		if (hr_text_parse_uint(text, METADATA_MOST, &n) < 0 || n == 0)
			return false;
		*ret = (double)n;
		return true;
	case HR_ALERT_CHECKPOINT:
		return read_factor(text, ret);
	default:
		if (!read_time(text, AGE_LEAST_NS, &n))
			return false;
		*ret = (double)n / 1e9;
		return true;
	}
}

/* Splits off the next word of *rest: a name, `>`, or all up to the next blank. NULL: none. */
static char *next_word(char **rest, const char *characters)
{
	char *word = *rest + strspn(*rest, BLANKS);
	size_t n = characters ? strspn(word, characters) : strcspn(word, BLANKS);

	*rest = word + n;
	return n > 0 ? word : NULL;
}

/* The words of a rule, which are copied out of it. */
struct rule_words {
	char kind[16], limit[24], for_word[8], time[24];
};

static bool copy_word(char *to, size_t size, const char *word, const char *end)
{
	if (!word || (size_t)(end - word) >= size)
		return false;
	memcpy(to, word, (size_t)(end - word));
	to[end - word] = '\0';
	return true;
}

/* False: the text does not have the form KIND > LIMIT [for TIME]. */
static bool split_rule(char *text, struct rule_words *w)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_-";
	char *rest = text, *word = next_word(&rest, letters);

	if (!copy_word(w->kind, sizeof(w->kind), word, rest))
		return false;
	word = next_word(&rest, ">");
	if (!word || rest - word != 1)
		return false;
	word = next_word(&rest, NULL);
	if (!copy_word(w->limit, sizeof(w->limit), word, rest))
		return false;
	word = next_word(&rest, NULL);
	if (!word)
		return true;
	if (!copy_word(w->for_word, sizeof(w->for_word), word, rest) ||
	    strcmp(w->for_word, "for") != 0)
		return false;
	word = next_word(&rest, NULL);
	return copy_word(w->time, sizeof(w->time), word, rest) && !next_word(&rest, NULL);
}

static int find_kind(const char *name)
{
	for (int i = 0; i < (int)HR_ALERT_N_KINDS; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return i;
	return -ENOENT;
}

/* Returns 0, or -EINVAL and in *ret_error (malloc'ed) what is wrong. */
static int parse_rule(char *text, struct hr_alert_rule *ret, char **ret_error)
{
	struct rule_words w = {0};
	bool good = split_rule(text, &w);
	int kind = find_kind(w.kind);
	char limit[sizeof(w.limit)];
	uint64_t for_ns = 0;

	if (kind < 0 && w.kind[0] != '\0')
		return hr_text_fail(-EINVAL, ret_error,
				    "alerts: '%s': '%s' is not one of:" KIND_NAMES, text, w.kind);
	if (kind < 0 || !good)
		return hr_text_fail(
		    -EINVAL, ret_error,
		    "alerts: '%s': must be KIND > LIMIT [for TIME], for example: %s", text,
		    kinds[kind < 0 ? HR_ALERT_WAITING : kind].example);
	*ret = (struct hr_alert_rule){.kind = (enum hr_alert_kind)kind};
	memcpy(limit, w.limit, sizeof(limit));
	if (!read_limit(ret->kind, limit, &ret->limit))
		return hr_text_fail(-EINVAL, ret_error,
				    "alerts: '%s': the limit must be %s, for example: %s", text,
				    kinds[kind].limit, kinds[kind].example);
	if (w.time[0] != '\0' && !read_time(w.time, 0, &for_ns))
		return hr_text_fail(
		    -EINVAL, ret_error,
		    "alerts: '%s': the time after `for` must have a unit, and be at "
		    "most 30d, for example: %s",
		    text, kinds[HR_ALERT_WAITING].example);
	ret->for_ms = for_ns / 1000000;
	snprintf(ret->text, sizeof(ret->text), "%s > %s%s%s", w.kind, w.limit,
		 w.time[0] != '\0' ? " for " : "", w.time);
	return 0;
}

/* ---- the list -------------------------------------------------------------------------------- */

bool hr_alert_rules_have(const struct hr_alert_rules *rules, const struct hr_alert_rule *rule)
{
	for (size_t i = 0; i < rules->n; i++)
		if (strcmp(rules->list[i].text, rule->text) == 0)
			return true;
	return false;
}

static int take_rule(char *text, struct hr_alert_rules *rules, char **ret_error)
{
	struct hr_alert_rule rule;
	int r = parse_rule(text, &rule, ret_error);

	if (r < 0)
		return r;
	if (hr_alert_rules_have(rules, &rule))
		return hr_text_fail(-EINVAL, ret_error, "alerts: '%s' is in the list twice",
				    rule.text);
	if (rules->n == HR_ALERT_RULES_MOST)
		return hr_text_fail(-EINVAL, ret_error, "alerts: '%s': more than %u rules",
				    rule.text, HR_ALERT_RULES_MOST);
	rules->list[rules->n++] = rule;
	return 0;
}

int hr_alert_rules_parse(const char *list, struct hr_alert_rules *ret,
			 void (*report)(const char *text))
{
	char *copy = strdup(list ? list : ""), *rest = copy, *text;
	struct hr_alert_rules rules = {0};
	int result = copy ? 0 : -ENOMEM;

	while (hr_text_given(rest) && (text = strsep(&rest, ",")) != NULL) {
		char *error = NULL;

		text += strspn(text, BLANKS);
		if (take_rule(text, &rules, &error) == 0)
			continue;
		report(error ? error : "out of memory");
		free(error);
		result = -EINVAL;
	}
	free(copy);
	if (result == 0)
		*ret = rules;
	return result;
}
