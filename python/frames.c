/* SPDX-License-Identifier: Apache-2.0 */
#include "python/frames.h"

#include <stdlib.h>
#include <string.h>

#include "python/library.h"

/* Not in the stable ABI of all versions, so it may be missing. */
static struct {
	PyObject *(*code)(PyObject *frame); /* since 3.9 */
} python;

void frames_init(void)
{
	static const struct library_function list[] = {
	    {"PyFrame_GetCode", offsetof(__typeof__(python), code)}};

	library_functions(NULL, RTLD_LAZY, list, 1, &python);
}

/*
 * Before 3.9, the code is the fifth word of a frame, unless Python was compiled for debugging. An
 * attribute takes 100 ns more, so it only checks this once.
 */
PyObject *frame_code(PyObject *frame)
{
	static bool is_fifth;
	PyObject *code = ((PyObject **)frame)[4];

	if (python.code)
		return python.code(frame);
	if (is_fifth) {
		Py_IncRef(code);
		return code;
	}
	code = PyObject_GetAttrString(frame, "f_code");
	if (!code)
		PyErr_Clear();
	is_fifth = code == ((PyObject **)frame)[4];
	return code;
}

PyObject *frame_outer(PyObject *frame)
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

const char *python_text(PyObject *object)
{
	const char *text = object ? PyUnicode_AsUTF8AndSize(object, NULL) : NULL;

	if (!text)
		PyErr_Clear();
	return text;
}

bool text_attribute(PyObject *object, const char *name, char *room, size_t size)
{
	PyObject *value = PyObject_GetAttrString(object, name);
	const char *text = python_text(value);
	bool fits = text && strlen(text) < size;

	if (fits)
		stpcpy(room, text);
	if (value)
		Py_DecRef(value);
	return fits;
}

bool path_is_below(const char *folder, const char *path)
{
	size_t bytes = strlen(folder);

	return bytes > 1 && strncmp(folder, path, bytes) == 0 && path[bytes] == '/';
}

bool path_is_foreign(const char *path, const char *const *folders)
{
	if (strstr(path, "/site-packages/") || strstr(path, "/dist-packages/"))
		return true;
	for (const char *const *folder = folders; *folder; folder++)
		if (path_is_below(*folder, path))
			return true;
	return false;
}

bool python_texts(PyObject *tuple, const char ***ret)
{
	intptr_t n = PyTuple_Size(tuple);

	*ret = n < 0 ? NULL : calloc((size_t)n + 1, sizeof(**ret));
	for (intptr_t i = 0; *ret && i < n; i++) {
		const char *text = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), NULL);

		(*ret)[i] = text ? strdup(text) : NULL;
		if (!(*ret)[i])
			break;
	}
	if (!*ret && !PyErr_Occurred())
		PyErr_NoMemory();
	return !PyErr_Occurred();
}
