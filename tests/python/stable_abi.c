/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stable_abi.c - compares python/stable_abi.h with Python's own headers: it compiles if they agree
 *
 * Both declare the same functions, with the same types, so C itself compares them: a second
 * declaration with another type is an error. What has types of its own in stable_abi.h gets another
 * name here, and assertions compare it.
 */
#include <Python.h>
#include <stddef.h>

enum { METHOD_TUPLE = METH_VARARGS, METHOD_ONE = METH_O, METHOD_FAST = METH_FASTCALL };
#undef METH_VARARGS
#undef METH_O
#undef METH_FASTCALL
#undef PyCFunction_NewEx  /* a macro, and a function */
#undef PYTHON_API_VERSION /* in Python.h, that of the other ABI */

#define python_object	      _object
#define python_thread	      _ts
#define _Py_NoneStruct	      own_none
#define PyModule_Create2      own_create
#define PyModule_AddFunctions own_add
#define PyCFunction_NewEx     own_function
#define PyFrame_GetLineNumber own_line
#define PyEval_GetFrame	      own_frame
#include "python/stable_abi.h"
#undef _Py_NoneStruct
#undef PyModule_Create2
#undef PyModule_AddFunctions
#undef PyCFunction_NewEx
#undef PyFrame_GetLineNumber
#undef PyEval_GetFrame

_Static_assert(METHOD_TUPLE == METH_VARARGS && METHOD_ONE == METH_O && METHOD_FAST == METH_FASTCALL,
	       "kinds of methods");
_Static_assert(PYTHON_API_VERSION == PYTHON_ABI_VERSION, "PYTHON_API_VERSION");

#define SAME_FIELD(ours, our_field, theirs, their_field)                                           \
	_Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) &&               \
			   sizeof(((ours *)0)->our_field) == sizeof(((theirs *)0)->their_field),   \
		       #our_field)
SAME_FIELD(struct python_method, name, PyMethodDef, ml_name);
SAME_FIELD(struct python_method, call, PyMethodDef, ml_meth);
SAME_FIELD(struct python_method, flags, PyMethodDef, ml_flags);
SAME_FIELD(struct python_method, doc, PyMethodDef, ml_doc);
_Static_assert(sizeof(struct python_method) == sizeof(PyMethodDef), "PyMethodDef");
SAME_FIELD(struct python_module, base.type, PyModuleDef, m_base.ob_base.ob_type);
SAME_FIELD(struct python_module, base.init, PyModuleDef, m_base.m_init);
SAME_FIELD(struct python_module, base.index, PyModuleDef, m_base.m_index);
SAME_FIELD(struct python_module, base.copy, PyModuleDef, m_base.m_copy);
SAME_FIELD(struct python_module, name, PyModuleDef, m_name);
SAME_FIELD(struct python_module, doc, PyModuleDef, m_doc);
SAME_FIELD(struct python_module, size, PyModuleDef, m_size);
SAME_FIELD(struct python_module, methods, PyModuleDef, m_methods);
SAME_FIELD(struct python_module, slots, PyModuleDef, m_slots);
SAME_FIELD(struct python_module, traverse, PyModuleDef, m_traverse);
SAME_FIELD(struct python_module, clear, PyModuleDef, m_clear);
SAME_FIELD(struct python_module, free, PyModuleDef, m_free);
_Static_assert(sizeof(struct python_module) == sizeof(PyModuleDef), "PyModuleDef");

/* The two types must be the same but for the names that stable_abi.h has for Python's types. */
#define SAME_FUNCTION(ours, our_type, theirs, their_type)                                          \
	_Static_assert(__builtin_types_compatible_p(__typeof__(ours), our_type) &&                 \
			   __builtin_types_compatible_p(__typeof__(theirs), their_type),           \
		       #theirs)
SAME_FUNCTION(own_create, PyObject *(struct python_module *, int), PyModule_Create2,
	      PyObject *(PyModuleDef *, int));
SAME_FUNCTION(own_add, int(PyObject *, struct python_method *), PyModule_AddFunctions,
	      int(PyObject *, PyMethodDef *));
SAME_FUNCTION(own_function, PyObject *(struct python_method *, PyObject *, PyObject *),
	      PyCFunction_NewEx, PyObject *(PyMethodDef *, PyObject *, PyObject *));
SAME_FUNCTION(own_line, int(PyObject *), PyFrame_GetLineNumber, int(PyFrameObject *));
SAME_FUNCTION(own_frame, PyObject *(void), PyEval_GetFrame, PyFrameObject *(void));
_Static_assert(__builtin_types_compatible_p(__typeof__(_Py_NoneStruct), PyObject),
	       "_Py_NoneStruct");
_Static_assert(__builtin_types_compatible_p(python_function, PyCFunction), "PyCFunction");
