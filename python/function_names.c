/* SPDX-License-Identifier: Apache-2.0 */
#include "python/function_names.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "python/frames.h"

#define CO_OPTIMIZED 1 /* flag of the code of functions; modules and class bodies lack it */
#define NAME_BYTES   1001u

static const char *project;
static const char *const *foreign_folders, *const *name_globs;
static char main_folder[PATH_MAX]; /* of the program's script; "": not known yet */

bool function_names_set(const char *folder, const char *const *foreign, const char *const *globs)
{
	project = strdup(folder);
	foreign_folders = foreign;
	name_globs = globs;
	return project != NULL;
}

/* ---- what is known ------------------------------------------------------------------------- */

#define KNOWN_LOG2  14
#define KNOWN_STEPS 8u /* cells in which an entry can be */

/*
 * A hash table by the address of a code object, to which an entry has a reference, so that no other
 * object gets this address. name NULL: no code of the project; such an entry can be replaced.
 */
static struct known_code {
	PyObject *code;
	struct headrace_name *name;
} known[1u << KNOWN_LOG2];

/* The name of functions of the project that match no glob, and of other code of the project. */
static struct headrace_name unmatched;

static struct known_code *known_cell(PyObject *code, uint32_t i)
{
	uint64_t home = ((uint64_t)(uintptr_t)code >> 4) * UINT64_C(0x9e3779b97f4a7c15);

	return &known[((home >> 32) + i) & ((1u << KNOWN_LOG2) - 1)];
}

/* Returns false if all cells have code of the project. */
static bool known_add(PyObject *code, struct headrace_name *name)
{
	struct known_code *to = NULL;
	PyObject *old;

	for (uint32_t i = 0; i < KNOWN_STEPS; i++) {
		struct known_code *k = known_cell(code, i);

		if (!k->code || k->code == code) {
			to = k;
			break;
		}
		if (!k->name && !to)
			to = k;
	}
	if (!to)
		return false;
	old = to->code;
	Py_IncRef(code);
	*to = (struct known_code){code, name};
	if (old)
		Py_DecRef(old);
	return true;
}

/* ---- attributes of Python objects ------------------------------------------------------------ */

static bool is_function(PyObject *code)
{
	PyObject *value = PyObject_GetAttrString(code, "co_flags");
	long flags = value ? PyLong_AsLong(value) : 0;

	PyErr_Clear();
	if (value)
		Py_DecRef(value);
	return flags & CO_OPTIMIZED;
}

/* ---- files ------------------------------------------------------------------------------------ */

/* Reads the absolute path of the code's file. False: it has none, as "<string>". */
static bool file_of(PyObject *code, char path[PATH_MAX])
{
	char file[PATH_MAX];
	size_t n;

	if (!text_attribute(code, "co_filename", file, sizeof(file)) || file[0] == '<')
		return false;
	if (file[0] == '/') {
		stpcpy(path, file);
		return true;
	}
	if (!getcwd(path, PATH_MAX))
		return false;
	n = strlen(path);
	return (size_t)snprintf(path + n, PATH_MAX - n, "/%s",
				strncmp(file, "./", 2) == 0 ? file + 2 : file) < PATH_MAX - n;
}

static bool is_main(const char *module)
{
	return strcmp(module, "__main__") == 0 || strcmp(module, "__mp_main__") == 0;
}

/* Returns whether the file belongs to the project. The first code of a script sets main_folder. */
static bool is_own(const char *path, const char *module)
{
	if (path_is_foreign(path, foreign_folders))
		return false;
	if (is_main(module) && main_folder[0] == '\0') {
		stpcpy(main_folder, path);
		*strrchr(main_folder, '/') = '\0';
	}
	return path_is_below(project, path) || path_is_below(main_folder, path);
}

/* ---- names ------------------------------------------------------------------------------------ */

/* Makes the name of a file's module: "/a/train.py" is train. */
static void module_of_file(const char *path, char *room, size_t size)
{
	const char *base = strrchr(path, '/') + 1;
	size_t bytes = strlen(base);

	if (bytes > 3 && strcmp(base + bytes - 3, ".py") == 0)
		bytes -= 3;
	snprintf(room, size, "%.*s", (int)bytes, base);
}

/*
 * Reads the name of the running module. The script of a program is named by its file, and a module
 * that `python -m` runs by its real name, because a worker imports both by other names.
 */
static void module_name(const char *module, PyObject *globals, const char *path, char *room,
			size_t size)
{
	PyObject *spec;

	if (module[0] != '\0' && !is_main(module)) {
		snprintf(room, size, "%s", module);
		return;
	}
	spec = PyDict_GetItemString(globals, "__spec__");
	if (!spec || spec == (PyObject *)&_Py_NoneStruct ||
	    !text_attribute(spec, "name", room, size))
		module_of_file(path, room, size);
}

/* Returns whether this is a part of a function: a comprehension, a generator expression. */
static bool is_part(const char *name)
{
	return name[0] == '<' && strcmp(name, "<lambda>") != 0;
}

/* Makes a name, which is never freed. Returns &unmatched if no glob matches or no memory is left. */
static struct headrace_name *name_new(const char *text)
{
	struct headrace_name *name;
	const char *const *glob = name_globs;

	while (*glob && fnmatch(*glob, text, 0) != 0)
		glob++;
	name = *glob ? calloc(1, sizeof(*name)) : NULL;
	if (!name)
		return &unmatched;
	*name = (struct headrace_name){.name = strdup(text),
				       .domain = "python",
				       .category = "function",
				       .kind = HEADRACE_RANGE};
	return name;
}

static struct headrace_name *name_in(const char *module, const char *qualified)
{
	char text[2 * NAME_BYTES];

	snprintf(text, sizeof(text), "%s.%s", module, qualified);
	return name_new(text);
}

/* Remembers a name. Returns NULL, and frees the name, if there is no room. */
static struct headrace_name *name_keep(PyObject *code, struct headrace_name *name)
{
	if (known_add(code, name))
		return name;
	if (name != &unmatched) {
		free((char *)name->name);
		free(name);
	}
	return NULL;
}

static void name_inner(PyObject *code, const char *module, const char *outer);

/* Names a code object inside the function or class `outer` ("": inside the module). */
static void name_one(PyObject *code, const char *module, const char *outer)
{
	char own[NAME_BYTES], qualified[NAME_BYTES];
	bool function = is_function(code);

	if (!text_attribute(code, "co_name", own, sizeof(own)) ||
	    snprintf(qualified, sizeof(qualified), "%s%s", outer, own) >= (int)sizeof(qualified))
		return;
	name_keep(code, function && !is_part(own) ? name_in(module, qualified) : &unmatched);
	if (snprintf(own, sizeof(own), "%s%s", qualified, function ? ".<locals>." : ".") <
	    (int)sizeof(own))
		name_inner(code, module, own);
}

/*
 * Names the code objects inside of `code`. Before Python 3.11, a code object does not have its
 * qualified name, which the nesting of the module's code has.
 */
static void name_inner(PyObject *code, const char *module, const char *outer)
{
	PyObject *constants = PyObject_GetAttrString(code, "co_consts");
	PyObject *type = PyObject_Type(code);

	for (intptr_t i = 0, n = constants ? PyTuple_Size(constants) : 0; i < n; i++) {
		PyObject *one = PyTuple_GetItem(constants, i),
			 *its = one ? PyObject_Type(one) : NULL;

		if (its && its == type)
			name_one(one, module, outer);
		if (its)
			Py_DecRef(its);
	}
	PyErr_Clear();
	if (constants)
		Py_DecRef(constants);
	if (type)
		Py_DecRef(type);
}

/* Names code of the project. */
static struct headrace_name *name_own(PyObject *code, const char *module)
{
	char own[NAME_BYTES], qualified[NAME_BYTES];
	bool has_qualified = text_attribute(code, "co_qualname", qualified, sizeof(qualified));

	if (!text_attribute(code, "co_name", own, sizeof(own)))
		return NULL;
	if (!is_function(code)) {
		if (!has_qualified && strcmp(own, "<module>") == 0)
			name_inner(code, module, "");
		return NULL;
	}
	return is_part(own) ? &unmatched : name_in(module, has_qualified ? qualified : own);
}

struct headrace_name *function_name(PyObject *code, bool keep_foreign)
{
	char path[PATH_MAX], module[NAME_BYTES];
	struct headrace_name *name = NULL;
	const char *running;
	PyObject *globals;

	for (uint32_t i = 0; i < KNOWN_STEPS; i++) {
		struct known_code *k = known_cell(code, i);

		if (k->code == code)
			return k->name == &unmatched ? NULL : k->name;
		if (!k->code)
			break;
	}
	globals = PyEval_GetGlobals();
	running = globals ? python_text(PyDict_GetItemString(globals, "__name__")) : NULL;
	if (running && file_of(code, path) && is_own(path, running)) {
		module_name(running, globals, path, module, sizeof(module));
		name = name_own(code, module);
	}
	if (name)
		name = name_keep(code, name);
	else if (keep_foreign)
		known_add(code, NULL);
	return name == &unmatched ? NULL : name;
}
