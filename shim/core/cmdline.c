/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/core/cmdline.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* How an interpreter reads options: as whole words, or as a word of letters (`bash -ec`). */
struct interpreter {
	const char *name;     /* name of the program, without its version */
	const char *code;     /* letters after which code follows; no script follows */
	const char *module;   /* letters after which a module's name follows; no script follows */
	const char *value;    /* letters with a value: the rest of the word, or the next word */
	const char *attached; /* letters whose value is always the rest of the word */
	const char *words;    /* options whose value is the next word; blanks separate them */
	const char *kept;     /* a word of letters without values stays if one of these is in it */
	bool long_options;    /* a single dash begins a long option, not letters */
};

static const struct interpreter interpreters[] = {
    {"python", "c", "m", "WXQ", "", " --check-hash-based-pycs ", "EIS", false},
    {"pypy", "c", "m", "WXQ", "", "", "EIS", false},
    {"sh", "c", "", "oO", "", "", "", false},
    {"bash", "c", "", "oO", "", " --rcfile --init-file ", "", false},
    {"dash", "c", "", "o", "", "", "", false},
    {"ksh", "c", "", "o", "", "", "", false},
    {"zsh", "c", "", "o", "", "", "", false},
    {"perl", "eE", "", "I", "mMiFxDC0l", "", "", false},
    {"ruby", "e", "", "IrCE", "ixFKT0", "", "", false},
    {"lua", "e", "", "l", "", "", "", false},
    {"php", "rBRE", "", "cdzt", "", "", "", false},
    {"julia", "eE", "", "LpJHCt", "", " --project --threads --load --sysimage ", "", false},
    {"Rscript", "e", "", "", "", "", "", false},
    {"node", "ep", "", "r", "", " --eval --print --require --import --loader ", "", false},
    {"java", "", "", "", "",
     " -cp -classpath --class-path -p --module-path --add-modules --upgrade-module-path ", "",
     true},
};

/* `at` is a position in the input. `used` is the size of the result, which overwrites the input. */
struct cutter {
	char *words;
	size_t bytes, at, used;
};

static const char *next(struct cutter *c, size_t *ret_bytes)
{
	const char *word = c->words + c->at;
	const char *end;

	if (c->at >= c->bytes)
		return NULL;
	end = memchr(word, '\0', c->bytes - c->at);
	*ret_bytes = end != NULL ? (size_t)(end - word) : c->bytes - c->at;
	c->at += *ret_bytes + 1;
	return word;
}

/* Appends a word to the result, which never overtakes the input. */
static void cmdline_keep(struct cutter *c, const char *word, size_t n)
{
	if (c->used > 0)
		c->words[c->used++] = '\0';
	memmove(c->words + c->used, word, n);
	c->used += n;
}

static bool has(const char *letters, char c)
{
	return c != '\0' && strchr(letters, c) != NULL;
}

static bool is_one_of(const char *list, const char *word, size_t n)
{
	for (const char *p = list; *p != '\0'; p++)
		if (p[0] == ' ' && strncmp(p + 1, word, n) == 0 && p[1 + n] == ' ')
			return true;
	return false;
}

/* Ignores the folder, the dash of a login shell, and the version (digits and dots) of a program. */
static const struct interpreter *interpreter_of(const char *program, size_t n)
{
	size_t start = 0, name;

	for (size_t i = 0; i < n; i++)
		if (program[i] == '/' || (program[i] == '-' && i == start))
			start = i + 1;
	while (n > start && (has("0123456789.", program[n - 1])))
		n--;
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++) {
		name = strlen(interpreters[i].name);
		if (n - start == name && memcmp(program + start, interpreters[i].name, name) == 0)
			return &interpreters[i];
	}
	return NULL;
}

static void keep_import(struct cutter *c, const char *code, size_t n)
{
	static const char import[] = "from multiprocessing.";
	size_t end = 0;

	if (n < sizeof(import) - 1 || memcmp(code, import, sizeof(import) - 1) != 0)
		return;
	while (end < n && code[end] != ';')
		end++;
	cmdline_keep(c, code, end);
}

enum after { GO_ON, SKIP_ONE, DONE };

static enum after take_letters(struct cutter *c, const struct interpreter *in, const char *word,
			       size_t n)
{
	bool kept = false;

	for (size_t i = 1; i < n; i++) {
		size_t next_bytes;
		const char *value;

		if (has(in->code, word[i]) || has(in->module, word[i])) {
			bool module = has(in->module, word[i]);

			cmdline_keep(c, word, module ? n : i + 1);
			if (i + 1 == n && (value = next(c, &next_bytes)) != NULL) {
				if (module)
					cmdline_keep(c, value, next_bytes);
				else
					keep_import(c, value, next_bytes);
			}
			return DONE;
		}
		if (has(in->value, word[i]))
			return i + 1 == n ? SKIP_ONE : GO_ON;
		if (has(in->attached, word[i]))
			return GO_ON;
		kept |= has(in->kept, word[i]);
	}
	if (kept)
		cmdline_keep(c, word, n);
	return GO_ON;
}

static void take_script(struct cutter *c, const struct interpreter *in)
{
	const char *word;
	size_t n;

	while ((word = next(c, &n)) != NULL) {
		enum after after = GO_ON;

		if (n < 2 || word[0] != '-') { /* `-` alone means the standard input */
			cmdline_keep(c, word, n);
			return;
		}
		if (is_one_of(in->words, word, n))
			after = SKIP_ONE;
		else if (word[1] != '-' && !in->long_options)
			after = take_letters(c, in, word, n);
		if (after == DONE)
			return;
		if (after == SKIP_ONE)
			(void)next(c, &n);
	}
}

size_t hr__cmdline_cut(char *words, size_t bytes)
{
	struct cutter c = {.words = words, .bytes = bytes};
	const struct interpreter *in;
	const char *program;
	size_t n;

	program = next(&c, &n);
	if (program == NULL)
		return 0;
	in = interpreter_of(program, n);
	cmdline_keep(&c, program, n);
	if (in != NULL)
		take_script(&c, in);
	return c.used;
}
