/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stable_abi.h - the part of Python's stable ABI that the module uses, without Python's headers
 *
 * tests/python/stable_abi.c compares it with these headers.
 */
#ifndef HEADRACE_PYTHON_STABLE_ABI_H
#define HEADRACE_PYTHON_STABLE_ABI_H

#include <stdint.h>

#define METH_VARARGS	   1
#define METH_O		   8
#define METH_FASTCALL	   0x80 /* since 3.7: `call` gets an array and its length */
#define PYTHON_API_VERSION 3	/* PYTHON_ABI_VERSION of the stable ABI */

typedef struct python_object PyObject;
typedef struct python_thread PyThreadState;
typedef PyObject *(*python_function)(PyObject *self, PyObject *arg);

struct python_method {
	const char *name;
	python_function call;
	int flags;
	const char *doc;
};

struct python_module {
	struct {
		intptr_t refcount;
		void *type;
		void *init;
		intptr_t index;
		void *copy;
	} base;
	const char *name;
	const char *doc;
	intptr_t size;
	struct python_method *methods;
	void *slots;
	void *traverse;
	void *clear;
	void *free;
};

_Static_assert(sizeof(struct python_module) == 13 * sizeof(void *), "PyModuleDef");

extern char _Py_NoneStruct;
extern const char *Py_GetVersion(void); /* "3.11.2 (main, ..." */
extern PyObject *PyExc_ImportError;
extern PyObject *PyExc_ValueError;
extern PyObject *PyModule_Create2(struct python_module *, int);
extern PyObject *PyLong_FromVoidPtr(void *);
extern PyObject *PyLong_FromUnsignedLongLong(unsigned long long);
extern PyObject *PyLong_FromLong(long);
extern void *PyLong_AsVoidPtr(PyObject *);
extern long long PyLong_AsLongLong(PyObject *);
extern char *PyBytes_AsString(PyObject *);
extern PyObject *PyBytes_FromStringAndSize(const char *, intptr_t);
extern intptr_t PyBytes_Size(PyObject *);
extern PyObject *PyTuple_GetItem(PyObject *, intptr_t);
extern PyObject *PyErr_Occurred(void);
extern void PyErr_SetString(PyObject *, const char *);
extern PyObject *PyErr_NoMemory(void);
extern int PyArg_ParseTuple(PyObject *, const char *, ...);
extern void PyErr_Clear(void);
extern PyObject *PyEval_GetGlobals(void); /* borrowed; NULL: no Python code is running */
extern PyObject *PyEval_GetFrame(void);	  /* as above */
extern int PyModule_AddFunctions(PyObject *, struct python_method *);
extern PyObject *PyCFunction_NewEx(struct python_method *, PyObject *self, PyObject *module);
extern PyObject *PyCapsule_New(void *, const char *name, void (*destructor)(PyObject *));
extern void *PyCapsule_GetPointer(PyObject *, const char *name);
extern PyObject *PyObject_GetAttrString(PyObject *, const char *);
extern PyObject *PyObject_Type(PyObject *);
extern PyObject *PyDict_GetItemString(PyObject *, const char *); /* borrowed */
extern const char *PyUnicode_AsUTF8AndSize(PyObject *, intptr_t *);
extern PyObject *PyUnicode_FromString(const char *);
extern long PyLong_AsLong(PyObject *);
extern intptr_t PyTuple_Size(PyObject *);
extern int PyFrame_GetLineNumber(PyObject *);
extern PyThreadState *PyThreadState_Get(void);
extern void Py_IncRef(PyObject *);
extern void Py_DecRef(PyObject *);

static inline PyObject *python_none(void)
{
	PyObject *it = (PyObject *)&_Py_NoneStruct;

	Py_IncRef(it);
	return it;
}

/* Declares a method of the kind METH_FASTCALL. */
#define PYTHON_FAST(function) ((python_function)(void (*)(void))(function)), METH_FASTCALL

#endif
