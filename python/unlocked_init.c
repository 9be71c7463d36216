/* SPDX-License-Identifier: Apache-2.0 */
/* The set-up of unlocked.c: compares what it reads with the answers of Python. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "python/frames.h"
#include "python/unlocked.h"

/* Returns whether Python gives the same place for a frame. */
static bool agrees(PyObject *frame, PyObject *code, const struct unlocked_place *place)
{
	char text[PATH_MAX], same[PATH_MAX];

	if ((uintptr_t)code != place->code || unlocked_line(place) != PyFrame_GetLineNumber(frame))
		return false;
	if (!text_attribute(code, "co_filename", text, sizeof(text)) ||
	    !unlocked_file(place, same, sizeof(same)) || strcmp(text, same) != 0)
		return false;
	if (!text_attribute(code, "co_qualname", text, sizeof(text)) && /* since 3.11 */
	    !text_attribute(code, "co_name", text, sizeof(text)))
		return false;
	return unlocked_function(place, same, sizeof(same)) && strcmp(text, same) == 0;
}

/* Compares the stack of the calling thread. */
static bool stack_agrees(void)
{
	struct unlocked_place places[UNLOCKED_MAX];
	unsigned n = unlocked_places(PyThreadState_Get(), places), i;
	PyObject *frame = PyEval_GetFrame();

	if (frame)
		Py_IncRef(frame);
	for (i = 0; frame && i < n; i++, frame = frame_outer(frame)) {
		PyObject *code = frame_code(frame);
		bool same = code && agrees(frame, code, &places[i]);

		if (code)
			Py_DecRef(code);
		if (!same)
			break;
	}
	PyErr_Clear();
	if (frame)
		Py_DecRef(frame);
	return n > 0 && i == n && (!frame || n == UNLOCKED_MAX);
}

const char *unlocked_init(void)
{
	PyObject *frame = PyEval_GetFrame(), *code = frame ? frame_code(frame) : NULL;
	PyObject *type = code ? PyObject_Type(code) : NULL;
	const char *reason =
	    unlocked_set((int)strtol(Py_GetVersion() + strlen("3."), NULL, 10), type);

	if (code)
		Py_DecRef(code);
	if (type)
		Py_DecRef(type); /* a type of Python itself, which stays */
	if (!reason && !stack_agrees())
		reason = "this Python was compiled in another way";
	return reason;
}
