/* SPDX-License-Identifier: Apache-2.0 */
#include "python/functions.h"

#include <stdlib.h>
#include <string.h>

#include "python/frames.h"
#include "python/function_names.h"
#include "python/library.h"

/* Python defines the signatures of functions, so some parameters are unused. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static const struct headrace_api *api;

/* ---- the open functions of a thread ---------------------------------------------------------- */

/*
 * The library has room for 32 open ranges of a thread (docs/regions.md), also those of torch. Calls
 * below this depth of functions are recorded at their end, with `passed`.
 */
#define ENTERED_MAX 24u
#define FIRST	    64u

struct open_function {
	PyObject *code; /* function_names.c has a reference */
	struct headrace_name *name;
	uint64_t began; /* 0: recorded with `enter` */
};

/* `more` replaces `first` if there are more than FIRST, until the outermost function ends. */
static __thread struct {
	struct open_function first[FIRST], *more;
	uint32_t n, room;
} stack;

static struct open_function *stack_at(uint32_t i)
{
	return stack.more ? &stack.more[i] : &stack.first[i];
}

/* Removes the innermost function, and ends its range. */
static void stack_pop(void)
{
	struct open_function *f = stack_at(--stack.n);

	if (f->began > 0)
		api->passed(f->name, f->began);
	else
		api->leave();
	if (stack.n == 0 && stack.more) {
		free(stack.more);
		stack.more = NULL;
	}
}

static bool stack_grow(void)
{
	uint32_t room = stack.more ? 2 * stack.room : 2 * FIRST;
	struct open_function *more = realloc(stack.more, room * sizeof(*more));

	if (!more)
		return false;
	if (!stack.more)
		memcpy(more, stack.first, sizeof(stack.first));
	stack.more = more;
	stack.room = room;
	return true;
}

/* Without memory for more, the open functions end here. Their real ends find none of them. */
static void stack_end_all(void)
{
	while (stack.n > 0)
		stack_pop();
}

static void stack_push(PyObject *code, struct headrace_name *name)
{
	struct open_function *f;

	if (stack.n >= (stack.more ? stack.room : FIRST) && !stack_grow())
		stack_end_all();
	f = stack_at(stack.n++);
	*f = (struct open_function){.code = code, .name = name};
	if (stack.n > ENTERED_MAX)
		f->began = api->now();
	else
		api->enter(name);
}

/* ---- begins and ends --------------------------------------------------------------------------- */

/* Returns false if the code is not to be recorded. */
static bool function_begin(PyObject *code, bool keep_foreign)
{
	struct headrace_name *name = function_name(code, keep_foreign);

	if (name)
		stack_push(code, name);
	return name != NULL;
}

/*
 * Ends the innermost call of the code, and calls inside it whose end was not reported: another
 * profiler took the hook, or greenlets switch the stack of the thread. Ends nothing if the thread
 * has no such call: it began before the fork of this process, or before it was recorded.
 */
static bool function_end(PyObject *code, bool keep_foreign)
{
	uint32_t n = stack.n;

	if (n > 0 && stack_at(n - 1)->code == code) {
		stack_pop();
		return true;
	}
	if (!function_name(code, keep_foreign))
		return false;
	while (n > 0 && stack_at(n - 1)->code != code)
		n--;
	while (n > 0 && stack.n >= n)
		stack_pop();
	return true;
}

/* ---- sys.monitoring ------------------------------------------------------------------------------ */

static PyObject
    *disable; /* sys.monitoring.DISABLE: no further events from this place in the code */

static PyObject *answer(bool recorded)
{
	PyObject *it = recorded ? (PyObject *)&_Py_NoneStruct : disable;

	Py_IncRef(it);
	return it;
}

/* PY_START, PY_RESUME */
static PyObject *functions_start(PyObject *self, PyObject *const *args, intptr_t n)
{
	return answer(function_begin(args[0], false));
}

/* PY_RETURN, PY_YIELD */
static PyObject *functions_return(PyObject *self, PyObject *const *args, intptr_t n)
{
	return answer(function_end(args[0], false));
}

/* PY_THROW, which cannot be disabled */
static PyObject *functions_throw(PyObject *self, PyObject *const *args, intptr_t n)
{
	function_begin(args[0], true);
	return python_none();
}

/* PY_UNWIND, which cannot be disabled */
static PyObject *functions_unwind(PyObject *self, PyObject *const *args, intptr_t n)
{
	function_end(args[0], true);
	return python_none();
}

/* ---- the profile hook of a thread, before Python 3.12 ------------------------------------------ */

enum { TRACE_CALL = 0, TRACE_RETURN = 3 }; /* PyTrace_CALL, PyTrace_RETURN */

typedef int (*profile_hook)(PyObject *object, PyObject *frame, int what, PyObject *arg);

/* Not in the stable ABI, so it may be missing: functions_profile() checks it. */
static struct {
	void (*set_profile)(profile_hook, PyObject *object);
} python;

static int profile(PyObject *object, PyObject *frame, int what, PyObject *arg)
{
	PyObject *code;

	if (what != TRACE_CALL && what != TRACE_RETURN)
		return 0;
	code = frame_code(frame);
	if (!code)
		return 0;
	if (what == TRACE_CALL)
		function_begin(code, true);
	else
		function_end(code, true);
	Py_DecRef(code);
	return 0;
}

/*
 * Python drops the object of the hook when another profiler replaces the hook (Python code is
 * running), and when the thread ends (none is running), possibly in another thread. The address of
 * `stack` identifies the thread.
 */
static void profile_dropped(PyObject *capsule)
{
	static struct headrace_name mark = {
	    .name = "functions", .domain = "headrace", .kind = HEADRACE_MARK};

	if (PyCapsule_GetPointer(capsule, NULL) != &stack || !PyEval_GetGlobals())
		return;
	stack_end_all();
	api->mark(&mark, "{\"recorded\":false,\"reason\":\"another profiler\"}");
}

static PyObject *functions_hook(PyObject *self, PyObject *args);

/* Installs the hook in this thread. Its object can be called: sys.getprofile() returns it. */
static bool profile_install(void)
{
	static struct python_method method = {"headrace", functions_hook, METH_VARARGS, NULL};
	PyObject *capsule = PyCapsule_New(&stack, NULL, profile_dropped);
	PyObject *object = capsule ? PyCFunction_NewEx(&method, capsule, NULL) : NULL;

	if (object)
		python.set_profile(profile, object);
	if (object)
		Py_DecRef(object);
	if (capsule)
		Py_DecRef(capsule);
	return object != NULL;
}

/*
 * hook(frame, event, arg): a profile function of Python. threading.setprofile() sets it in each new
 * thread, and a program may restore it. Replaces itself by the hook in C.
 */
static PyObject *functions_hook(PyObject *self, PyObject *args)
{
	PyObject *frame, *event, *arg;
	const char *what;

	if (!PyArg_ParseTuple(args, "OOO", &frame, &event, &arg))
		return NULL;
	what = PyUnicode_AsUTF8AndSize(event, NULL);
	if (!what || !profile_install())
		return NULL;
	if (strcmp(what, "call") == 0)
		profile(NULL, frame, TRACE_CALL, arg);
	else if (strcmp(what, "return") == 0)
		profile(NULL, frame, TRACE_RETURN, arg);
	return python_none();
}

/* functions_profile(): records functions of this thread. Returns 0 if this Python cannot do it. */
static PyObject *functions_profile(PyObject *self, PyObject *arg)
{
	static const struct library_function list[] = {
	    {"PyEval_SetProfile", offsetof(__typeof__(python), set_profile)}};

	library_functions(NULL, RTLD_LAZY, list, 1, &python);
	if (python.set_profile && !profile_install())
		return NULL;
	return PyLong_FromLong(python.set_profile != NULL);
}

/* ---- set-up ---------------------------------------------------------------------------------------- */

/* functions_own(folder, foreign, globs, disable): function_names_set() keeps the texts */
static PyObject *functions_own(PyObject *self, PyObject *args)
{
	const char *folder, **foreign_folders, **name_globs;
	PyObject *foreign, *globs;

	if (!PyArg_ParseTuple(args, "sOOO", &folder, &foreign, &globs, &disable) ||
	    !python_texts(foreign, &foreign_folders) || !python_texts(globs, &name_globs))
		return NULL;
	if (!function_names_set(folder, foreign_folders, name_globs))
		return PyErr_NoMemory();
	Py_IncRef(disable);
	frames_init();
	return python_none();
}

/* functions_forked(): the child of a fork has none of the open functions. */
static PyObject *functions_forked(PyObject *self, PyObject *arg)
{
	stack.n = 0;
	free(stack.more);
	stack.more = NULL;
	return python_none();
}

int functions_init(PyObject *module, const struct headrace_api *functions)
{
	static struct python_method methods[] = {
	    {"functions_own", functions_own, METH_VARARGS, NULL},
	    {"functions_profile", functions_profile, METH_VARARGS, NULL},
	    {"functions_hook", functions_hook, METH_VARARGS, NULL},
	    {"functions_forked", functions_forked, METH_VARARGS, NULL},
	    {"functions_start", PYTHON_FAST(functions_start), NULL},
	    {"functions_return", PYTHON_FAST(functions_return), NULL},
	    {"functions_throw", PYTHON_FAST(functions_throw), NULL},
	    {"functions_unwind", PYTHON_FAST(functions_unwind), NULL},
	    {NULL, NULL, 0, NULL},
	};

	api = functions;
	return PyModule_AddFunctions(module, methods);
}
