/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of an import share: names, losses, messages. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/ops.h"
#include "common/text.h"
#include "import/internal.h"

#define PROBLEMS_MOST 1000u

bool hr_import_stopped(const struct hr_import_file *f)
{
	const atomic_bool *stop = f->import->options->stop;

	return stop && atomic_load(stop);
}

const struct hr_import_file *hr_import_file_at(const struct hr_import_file *f, size_t i)
{
	return &f->import->files[i];
}

size_t hr_import_files(const struct hr_import_file *f)
{
	return f->import->n_files;
}

uint32_t hr_import_ranks(const struct hr_import_file *f)
{
	return f->import->options->ranks;
}

/* One thread surveys all files before others read them. */
void hr_import_pid_note(struct hr_import_file *f, uint64_t pid)
{
	if (pid > f->import->largest_pid)
		f->import->largest_pid = pid;
}

uint64_t hr_import_largest_pid(const struct hr_import_file *f)
{
	return f->import->largest_pid;
}

/* Returns a line for the user (malloc'ed). NULL: no memory. */
__attribute__((format(printf, 2, 0))) static char *line_make(const struct hr_import_file *f,
							     const char *format, va_list args)
{
	char *text, *line;

	if (vasprintf(&text, format, args) < 0)
		return NULL;
	if (asprintf(&line, "%s: %s", f->path, text) < 0)
		line = NULL;
	free(text);
	return line;
}

int hr__text_add(struct hr_import *i, char ***list, size_t *n, size_t *room, size_t most,
		 char *text)
{
	bool added;

	pthread_mutex_lock(&i->lock);
	added = text && *n < most && hr_array_reserve(*list, *n, *room);
	if (added)
		(*list)[(*n)++] = text;
	pthread_mutex_unlock(&i->lock);
	if (!added)
		free(text);
	return added ? 0 : -ENOMEM;
}

/* Takes over the line. NULL: none. */
static void line_add(struct hr_import *i, char *line)
{
	(void)hr__text_add(i, &i->result->problems, &i->result->n_problems, &i->problems_room,
			   PROBLEMS_MOST, line);
}

void hr_import_problem(struct hr_import_file *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	line_add(f->import, line_make(f, format, args));
	va_end(args);
}

int hr_import_fail(struct hr_import_file *f, int error, const char *format, ...)
{
	struct hr_import *i = f->import;
	char *line;
	va_list args;

	va_start(args, format);
	line = line_make(f, format, args);
	va_end(args);
	pthread_mutex_lock(&i->lock);
	if (!i->error) {
		i->error = error;
		i->error_text = line;
		line = NULL;
	}
	pthread_mutex_unlock(&i->lock);
	free(line);
	return error;
}

void hr_import_lose(struct hr_import_file *f, enum hr_loss_reason reason, uint64_t count)
{
	pthread_mutex_lock(&f->import->lock);
	f->import->losses[reason] += count;
	pthread_mutex_unlock(&f->import->lock);
}

void hr_import_missing(struct hr_import_file *f, enum hr_loss_reason reason, uint64_t count,
		       const char *format, ...)
{
	va_list args;

	if (count == 0)
		return;
	va_start(args, format);
	line_add(f->import, line_make(f, format, args));
	va_end(args);
	hr_import_lose(f, reason, count);
}

void hr_import_bad(struct hr_import_file *f, const struct hr_import_bad *bad)
{
	char first[64] = "";

	if (bad->n == 0)
		return;
	if (bad->first > 0)
		snprintf(first, sizeof(first), ", the first is line %" PRIu64, bad->first);
	hr_import_missing(f, HR_LOSS_IMPORT_LINES, bad->n,
			  "%" PRIu64 " of %" PRIu64 " %s could not be read%s", bad->n, bad->all,
			  bad->unit, first);
	if (bad->n <= bad->all / 2)
		return;
	pthread_mutex_lock(&f->import->lock);
	f->import->result->bad_files++;
	pthread_mutex_unlock(&f->import->lock);
}

/* ---- texts ----------------------------------------------------------------------------------- */

uint16_t hr_import_op(const char *name, size_t bytes)
{
	char text[64];
	uint16_t op;
	uint8_t class;

	if (bytes == 0 || bytes >= sizeof(text))
		return HR_OP_NONE;
	memcpy(text, name, bytes);
	text[bytes] = '\0';
	op = hr_op_by_name(text);
	class = hr_op_info(op)->class;
	return class == HR_CLASS_NONE || class == HR_CLASS_HOOK ? HR_OP_NONE : op;
}

size_t hr_import_cut(const char *text, size_t bytes, size_t most)
{
	if (bytes <= most)
		return bytes;
	while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80)
		most--;
	return most;
}

/* ---- names ----------------------------------------------------------------------------------- */

static int name_set(struct hr__shared_name *n, uint32_t file, const void *text, size_t bytes)
{
	char *copy = strndup(text, bytes);

	if (!copy)
		return -ENOMEM;
	free(n->text);
	*n = (struct hr__shared_name){file, (uint32_t)bytes, copy};
	return 0;
}

static int name_add(struct hr__shared_names *s, uint32_t file, uint64_t key, const void *text,
		    size_t bytes)
{
	uint32_t at = hr_map64_get(&s->by_key, key);

	if (at != HR_MAP64_NONE)
		return file < s->list[at].file ? name_set(&s->list[at], file, text, bytes) : 0;
	if (!hr_array_reserve(s->list, s->n, s->room))
		return -ENOMEM;
	s->list[s->n] = (struct hr__shared_name){0};
	if (name_set(&s->list[s->n], file, text, bytes) || hr_map64_set(&s->by_key, key, s->n))
		return -ENOMEM;
	s->n++;
	return 0;
}

int hr_import_shared_add(struct hr_import_file *f, enum hr_import_shared kind, uint64_t key,
			 const void *text, size_t bytes)
{
	int r;

	pthread_mutex_lock(&f->import->lock);
	r = name_add(&f->import->shared[kind], f->index, key, text, bytes);
	pthread_mutex_unlock(&f->import->lock);
	return r;
}

char *hr_import_shared_find(struct hr_import *i, enum hr_import_shared kind, uint64_t key,
			    size_t *ret_bytes)
{
	const struct hr__shared_names *s = &i->shared[kind];
	char *text = NULL;
	uint32_t at;

	pthread_mutex_lock(&i->lock);
	at = hr_map64_get(&s->by_key, key);
	if (at != HR_MAP64_NONE && (text = strdup(s->list[at].text)) != NULL)
		*ret_bytes = s->list[at].bytes;
	pthread_mutex_unlock(&i->lock);
	return text;
}

void hr__shared_done(struct hr__shared_names *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->list[i].text);
	free(s->list);
	hr_map64_done(&s->by_key);
}
