/* SPDX-License-Identifier: Apache-2.0 */
#include "python/stack_text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "python/frames.h"

#define FRAMES_MAX 64u /* frames that are read */
#define SHOWN_MAX  8u  /* frames in the text */

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

/* Replaces the bytes that JSON would escape. */
static void plain(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || *text == '"' || *text == '\\')
			*text = '?';
}

/* Reads the name of a function. Before Python 3.11, it does not contain the class. */
static void function_of(PyObject *code, char *room, size_t size)
{
	static bool lacks_qualified;

	if (!lacks_qualified && text_attribute(code, "co_qualname", room, size))
		return;
	if (PyErr_Occurred()) {
		PyErr_Clear();
		lacks_qualified = true;
	}
	if (!text_attribute(code, "co_name", room, size))
		stpcpy(room, "?");
}

/* Returns false if the text of the frame does not fit. */
static bool frame_text(PyObject *frame, PyObject *code, const char *path, char *room, size_t size)
{
	char function[128];
	int n;

	function_of(code, function, sizeof(function));
	n = snprintf(room, size, "%s:%d %s", short_path(path), PyFrame_GetLineNumber(frame),
		     function);
	plain(room);
	return n > 0 && (size_t)n < size;
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

static bool is_frozen(const char *path)
{
	return strncmp(path, "<frozen", strlen("<frozen")) == 0;
}

/* Adds a frame. `*shown` and `*own`: frames in the text, and whether the line is known. */
static void add_frame(PyObject *frame, PyObject *code, const char *path, struct stack_text *ret,
		      unsigned *shown, bool *own)
{
	char text[sizeof(ret->line)];
	bool foreign = is_frozen(path) || path_is_foreign(path, project.foreign);

	/* The DataLoader's own frames are in every stack, so only the innermost is of interest. */
	if (*shown > 0 && ((*own && *shown >= SHOWN_MAX) || strstr(path, "/torch/utils/data/")))
		return;
	if (!frame_text(frame, code, path, text, sizeof(text)))
		return;
	if (*shown < SHOWN_MAX)
		stack_add(ret, text);
	if (*shown == 0 || (!foreign && !*own))
		stpcpy(ret->line, text);
	*own = *own || !foreign;
	++*shown;
}

/* Returns the frame that called `frame`, to which it drops the reference. */
static PyObject *frame_outer(PyObject *frame)
{
	PyObject *outer = PyObject_GetAttrString(frame, "f_back");

	Py_DecRef(frame);
	if (outer == (PyObject *)&_Py_NoneStruct) {
		Py_DecRef(outer);
		return NULL;
	}
	if (!outer)
		PyErr_Clear();
	return outer;
}

bool stack_text_read(PyThreadState *thread, struct stack_text *ret)
{
	PyObject *frame = frame_innermost(thread);
	bool own = false, inside = true;
	unsigned shown = 0;

	ret->line[0] = ret->stack[0] = '\0';
	for (unsigned i = 0; frame && inside && i < FRAMES_MAX; i++) {
		PyObject *code = frame_code(frame);
		char path[PATH_MAX];

		if (code && text_attribute(code, "co_filename", path, sizeof(path))) {
			inside = !is_caller(path);
			if (inside)
				add_frame(frame, code, path, ret, &shown, &own);
		}
		PyErr_Clear();
		if (code)
			Py_DecRef(code);
		frame = frame_outer(frame);
	}
	if (frame)
		Py_DecRef(frame);
	return shown > 0;
}
