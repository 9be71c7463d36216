/* SPDX-License-Identifier: Apache-2.0 */
#include "python/stack_text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/fnv.h"
#include "python/frames.h"
#include "python/unlocked.h"

#define SHOWN_MAX     8u /* frames in the text */
#define LIBRARY_SHOWN 3u /* frames in the line, if all are a library's */

static struct {
	const char *folder;
	const char *const *callers, *const *foreign;
} project;

void stack_text_set(const char *folder, const char *const *callers, const char *const *foreign)
{
	project.folder = folder;
	project.callers = callers;
	project.foreign = foreign;
}

static const char *short_path(const char *path)
{
	const char *at = strrchr(path, '/');

	if (path[0] != '/')
		return path;
	if (path_is_below(project.folder, path))
		return path + strlen(project.folder) + 1;
	while (at > path && at[-1] != '/')
		at--;
	return at > path ? at : path + 1;
}

void stack_text_plain(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || *text == '"' || *text == '\\')
			*text = '?';
}

static bool is_foreign(const char *path)
{
	return strncmp(path, "<frozen", strlen("<frozen")) == 0 ||
	       path_is_foreign(path, project.foreign);
}

bool stack_text_place(const char *path, int line, const char *function, bool foreign, char *room,
		      size_t size)
{
	if (!foreign && is_foreign(path))
		return false;
	if ((size_t)snprintf(room, size, "%s:%d %s", short_path(path), line, function) >= size)
		return false;
	stack_text_plain(room);
	return true;
}

static void stack_add(struct stack_text *text, const char *frame)
{
	size_t n = strlen(text->stack);

	if (n + strlen(frame) + sizeof(" < ") <= sizeof(text->stack))
		stpcpy(stpcpy(text->stack + n, n > 0 ? " < " : ""), frame);
}

static bool is_caller(const char *path)
{
	for (const char *const *caller = project.callers; *caller; caller++)
		if (strcmp(path, *caller) == 0)
			return true;
	return false;
}

/* ---- the text of a place --------------------------------------------------------------------- */

#define KEPT 256u /* a power of 2 */

struct place_text {
	struct unlocked_place place; /* code 0: none */
	bool is_caller, is_foreign, is_loader, is_model, is_metric;
	const char *compiler; /* as in struct stack_text */
	char text[160];	      /* "": it does not fit */
};

_Static_assert(sizeof(struct unlocked_place) == 4 * sizeof(uintptr_t) + 2 * sizeof(int32_t),
	       "no padding, so memcmp() compares places");

static struct place_text kept[KEPT];

void stack_text_forget(void)
{
	memset(kept, 0, sizeof(kept));
}

/* Returns the framework that runs this file only to trace or compile a function; NULL: none. */
static const char *compiler_of(const char *path)
{
	static const char *const files[][2] = {
	    {"/jax/_src/interpreters/partial_eval.py", "jax"},
	    {"/jax/_src/interpreters/mlir.py", "jax"},
	    {"/jax/_src/compiler.py", "jax"},
	    {"/torch/_dynamo/convert_frame.py", "torch"},
	    {"/tensorflow/python/framework/func_graph.py", "tensorflow"},
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strstr(path, files[i][0]) != NULL)
			return files[i][1];
	return NULL;
}

static bool read_text(const struct unlocked_place *place, struct place_text *ret)
{
	char path[PATH_MAX], function[128];

	if (!unlocked_file(place, path, sizeof(path)))
		return false;
	if (!unlocked_function(place, function, sizeof(function)))
		stpcpy(function, "?");
	ret->place = *place;
	ret->is_caller = is_caller(path);
	ret->is_foreign = is_foreign(path);
	ret->is_loader = strstr(path, "/torch/utils/data/") != NULL;
	ret->is_model = strstr(path, "/torch/nn/modules/module.py") != NULL;
	ret->is_metric = strstr(path, "/torchmetrics/") != NULL;
	ret->compiler = compiler_of(path);
	if (!stack_text_place(path, unlocked_line(place), function, true, ret->text,
			      sizeof(ret->text)))
		ret->text[0] = '\0';
	return true;
}

/* Returns the text of a place, which is kept until another place needs the room. NULL: unknown. */
static const struct place_text *text_of(const struct unlocked_place *place)
{
	uint64_t hash = hr_fnv(HR_FNV_BASIS, place, sizeof(*place));
	struct place_text *one = &kept[hash % KEPT];

	if (memcmp(&one->place, place, sizeof(*place)) == 0)
		return one;
	return read_text(place, one) ? one : NULL;
}

/* ---- the text of a stack --------------------------------------------------------------------- */

/* Adds a frame. `*shown` and `*own`: frames in the text, and whether the line is known. */
static void add_frame(const struct place_text *frame, struct stack_text *ret, unsigned *shown,
		      bool *own)
{
	/* The DataLoader's own frames are in every stack, so only the innermost is of interest. */
	if (frame->text[0] == '\0' ||
	    (*shown > 0 && ((*own && *shown >= SHOWN_MAX) || frame->is_loader)))
		return;
	if (*shown < SHOWN_MAX)
		stack_add(ret, frame->text);
	if (*shown == 0 || (!frame->is_foreign && !*own))
		stpcpy(ret->line, frame->text);
	*own = *own || !frame->is_foreign;
	++*shown;
}

/* Without a frame of the user's code, the innermost frames are the line, as far as they fit. */
static void set_library_line(struct stack_text *ret)
{
	const char *end = ret->stack;

	for (unsigned i = 0; i < LIBRARY_SHOWN; i++) {
		const char *next = strstr(end, " < ");
		size_t n = next ? (size_t)(next - ret->stack) : strlen(ret->stack);

		if (n >= sizeof(ret->line))
			return;
		memcpy(ret->line, ret->stack, n);
		ret->line[n] = '\0';
		if (!next)
			return;
		end = next + strlen(" < ");
	}
}

bool stack_text_read(const PyThreadState *thread, struct stack_text *ret)
{
	struct unlocked_place places[UNLOCKED_MAX];
	unsigned n = unlocked_places(thread, places), shown = 0;
	bool own = false, metric = false;

	ret->line[0] = ret->stack[0] = '\0';
	ret->in_fetch = ret->in_model = false;
	ret->compiler = NULL;
	for (unsigned i = 0; i < n && !ret->in_fetch; i++) {
		const struct place_text *frame = text_of(&places[i]);

		if (!frame)
			continue;
		ret->in_fetch = frame->is_caller;
		ret->in_model |= frame->is_model;
		metric |= frame->is_metric; /* it is a module of torch.nn, too */
		ret->compiler = frame->compiler ? frame->compiler : ret->compiler;
		if (!frame->is_caller)
			add_frame(frame, ret, &shown, &own);
	}
	ret->in_model = ret->in_model && !metric;
	if (shown > 0 && !own)
		set_library_line(ret);
	return shown > 0;
}
