/* SPDX-License-Identifier: Apache-2.0 */
#include "query/question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

/* Returns the names of all named queries, "files, jobs, ..." (malloc'ed). NULL: no memory. */
static char *names(void)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	if (to == NULL)
		return NULL;
	for (const struct hr_named *q = hr_named_list; q->name != NULL; q++)
		fprintf(to, "%s%s", q == hr_named_list ? "" : ", ", q->name);
	return hr_text_close(to, &text);
}

void hr_question_no_name(struct hr_near *near, const char *what, const struct hr_sink *messages)
{
	char *all = NULL;

	for (const struct hr_named *q = hr_named_list; q->name != NULL; q++)
		hr_near_add(near, q->name);
	if (near->best[0] == '\0')
		all = names();
	hr_sink_line(messages, "no %s %s%s%s", what, hr_near_text(near).s,
		     all != NULL ? "; named queries: " : "", all != NULL ? all : "");
	free(all);
}

bool hr_question_is_name(const char *word)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t n = strspn(word, letters);

	if (n == 0)
		return false;
	for (; word[n] != '\0'; n++) {
		if (strchr("0123456789_-", word[n]) == NULL && strchr(letters, word[n]) == NULL)
			return false;
	}
	return true;
}

static bool question_resolve(struct hr_question *q, char *const *words, size_t n_words,
			     const struct hr_sink *messages)
{
	const struct hr_named *named;
	struct hr_near near = hr_near(words[0]);

	if (!hr_question_is_name(words[0])) {
		q->named = (struct hr_named){"this statement", words[0]};
		if (strpbrk(words[0], " \t\n(;") == NULL) {
			hr_question_no_name(&near, "query", messages);
			return false;
		}
		if (n_words == 1 || strncmp(words[0], "--", 2) == 0)
			return true;
		hr_sink_line(
		    messages,
		    "unexpected word after the SQL statement: %s; quote the whole statement",
		    hr_near_quoted(words[1]).s);
		return false;
	}
	named = hr_named_find(words[0]);
	if (named == NULL) {
		hr_question_no_name(&near, "query", messages);
		return false;
	}
	q->named = *named;
	return true;
}

bool hr_question_init(struct hr_question *q, char *const *words, size_t n_words,
		      const struct hr_sink *messages)
{
	char *error = NULL;

	*q = (struct hr_question){0};
	if (!question_resolve(q, words, n_words, messages))
		return false;
	if (hr_named_args_init(&q->named, words + 1, n_words - 1, &q->args, &error) == 0)
		return true;
	hr_sink_line(messages, "%s", error != NULL ? error : "out of memory");
	free(error);
	return false;
}

void hr_question_done(struct hr_question *q)
{
	hr_named_args_done(&q->args);
}
