/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast.c - the table of libheadrace.so as functions of Python: what _headrace/api.py does with ctypes, in a third of its time
 *
 * Purpose   A training step makes five of these calls; ctypes takes 75 ns for each, this 25. It is optional: where it is not
 *           beside the modules, or cannot be loaded (another libc, another Python than CPython), ctypes does the same.
 * ABI       Python's stable one, of all versions since 3.2: what is declared below, PyObject opaque. So it is built once, without
 *           Python's headers, and no version of Python has to be chosen.
 * Threads   Python's lock is held in all of it.
 */
#include "include/headrace.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* bytes of a range's args that are made here; more than it has of its own are left out */
#define ARGS_MAX 256

#define METH_VARARGS	   1
#define METH_O		   8
#define PYTHON_API_VERSION 3 /* PYTHON_ABI_VERSION: of the stable ABI */

typedef struct python_object PyObject;
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
extern void Py_IncRef(PyObject *);
__attribute__((visibility("default"))) PyObject *PyInit__headrace_fast(void);

static const struct headrace_api *api;

static PyObject *none(void)
{
	PyObject *it = (PyObject *)&_Py_NoneStruct;

	Py_IncRef(it);
	return it;
}

/* Bytes, or None: no args. False where it is neither, and Python has been told. */
static int fast_text_of(PyObject *arg, const char **ret_text)
{
	*ret_text = NULL;
	if (arg == (PyObject *)&_Py_NoneStruct)
		return 1;
	*ret_text = PyBytes_AsString(arg);
	return *ret_text != NULL;
}

/* What name() returned. */
static struct headrace_name *fast_name_of(PyObject *arg)
{
	return PyLong_AsVoidPtr(arg);
}

/* name(name, domain, category, kind): texts are bytes or None, and are kept for ever. */
static PyObject *fast_name(PyObject *self, PyObject *args)
{
	struct headrace_name *name = calloc(1, sizeof(*name));
	const char **kept[] = {&name->name, &name->domain, &name->category};
	PyObject *given[3];

	(void)self;
	if (!name)
		return PyErr_NoMemory();
	if (!PyArg_ParseTuple(args, "OOOI", &given[0], &given[1], &given[2], &name->kind))
		return NULL; /* a mistake of our own: what was allocated is not missed */
	for (int i = 0; i < 3; i++) {
		const char *text;

		if (!fast_text_of(given[i], &text))
			return NULL;
		*kept[i] = text ? strdup(text) : NULL;
	}
	return name->name ? PyLong_FromVoidPtr(name) : PyErr_NoMemory();
}

static PyObject *fast_begin(PyObject *self, PyObject *arg)
{
	struct headrace_name *name = fast_name_of(arg);

	(void)self;
	if (!name)
		return NULL;
	api->begin(name);
	return none();
}

static PyObject *fast_end(PyObject *self, PyObject *arg)
{
	const char *text;

	(void)self;
	if (!fast_text_of(arg, &text))
		return NULL;
	api->end(text);
	return none();
}

/*
 * end_numbered(head, number): the range's args are the object `head`, bytes that end where a number is to stand, which is its last.
 * Each batch has one: by printf() and PyArg_ParseTuple() it would take 100 ns more.
 */
static PyObject *fast_end_numbered(PyObject *self, PyObject *args)
{
	PyObject *head = PyTuple_GetItem(args, 0), *given = PyTuple_GetItem(args, 1);
	const char *text = head ? PyBytes_AsString(head) : NULL;
	char room[ARGS_MAX], tail[24] = {[22] = '}'}, *at = tail + 22;
	long long number;
	size_t n, more;

	(void)self;
	if (!text || !given)
		return NULL;
	number = PyLong_AsLongLong(given);
	if (number < 0) {
		if (!PyErr_Occurred())
			PyErr_SetString(PyExc_ValueError, "a number from 0 on");
		return NULL;
	}
	do
		*--at = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	n = (size_t)PyBytes_Size(head);
	more = (size_t)(tail + sizeof(tail) - at);
	if (n + more > sizeof(room)) {
		api->end(NULL);
		return none();
	}
	memcpy(room, text, n);
	memcpy(room + n, at, more);
	api->end(room);
	return none();
}

/* What this thread has spent since it began. */
struct spent {
	unsigned long long cpu_ns, major_faults;
};

/*
 * How long the thread could run, and had no core: the kernel tells it in a file alone, which takes 5 us to read. So it is read at
 * ends of ranges that are CORE_WAIT_NS apart at least, and that end tells all since the one before.
 */
#define CORE_WAIT_NS 20000000u

struct core_wait {
	unsigned long long read_at_ns, waited_ns;
	bool known; /* there is something to compare with */
};

static __thread struct core_wait core_wait;

/* RUSAGE_THREAD has the processor's time, too, but as of the last tick: a fetch of 2 ms would have none of it. */
static struct spent spent_now(void)
{
	struct timespec cpu = {0};
	struct rusage usage = {0};
	int error = errno;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	getrusage(RUSAGE_THREAD, &usage);
	errno = error;
	return (struct spent){(unsigned long long)cpu.tv_sec * 1000000000u +
				  (unsigned long long)cpu.tv_nsec,
			      (unsigned long long)usage.ru_majflt};
}

static unsigned long long now_ns(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
}

/* The second number of schedstat. False where there is none: no /proc, no descriptor to spare, a kernel without. */
static bool read_core_wait(unsigned long long *ret)
{
	int error = errno, fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	char text[96], *at, *end;
	ssize_t n = -1;

	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	errno = error;
	if (n <= 0)
		return false;
	text[n] = '\0';
	at = strchr(text, ' ');
	if (!at)
		return false;
	*ret = strtoull(at, &end, 10);
	return end != at;
}

/* True: *ret_ns is what the thread waited for cores since this was last true. */
static bool core_wait_since(unsigned long long *ret_ns)
{
	unsigned long long now = now_ns(), waited, before = core_wait.waited_ns;
	bool known = core_wait.known;

	if (core_wait.read_at_ns > 0 && now - core_wait.read_at_ns < CORE_WAIT_NS)
		return false;
	core_wait.read_at_ns = now;
	core_wait.known = read_core_wait(&waited);
	if (!core_wait.known)
		return false;
	core_wait.waited_ns = waited;
	*ret_ns = waited - before;
	return known && waited >= before; /* less: a forked child has its parent's */
}

/* begin_spent(name): begin(), and what end_spent() wants back. */
static PyObject *fast_begin_spent(PyObject *self, PyObject *arg)
{
	struct headrace_name *name = fast_name_of(arg);
	unsigned long long waited;
	struct spent before;

	(void)self;
	if (!name)
		return NULL;
	api->begin(name);
	if (core_wait.read_at_ns == 0)
		core_wait_since(&waited);
	before = spent_now();
	return PyBytes_FromStringAndSize((const char *)&before, sizeof(before));
}

/* Adds to the first `n` bytes; how many there would be, if there were room for all. */
__attribute__((format(printf, 4, 5))) static size_t fast_put(char *room, size_t size, size_t n,
							     const char *format, ...)
{
	va_list args;
	int more = 0;

	va_start(args, format);
	if (n < size)
		more = vsnprintf(room + n, size - n, format, args);
	va_end(args);
	return more < 0 ? size : n + (size_t)more;
}

/* The object `head`, which lacks its closing brace, with what was spent since `before`; none where it does not fit. */
static const char *with_spent(const char *head, const struct spent *before, char *room, size_t size)
{
	struct spent now = spent_now();
	unsigned long long faults = before ? now.major_faults - before->major_faults : 0, waited;
	size_t n = fast_put(room, size, 0, "%s", head);

	if (before)
		n = fast_put(room, size, n, ",\"cpu_ns\":%llu", now.cpu_ns - before->cpu_ns);
	if (faults > 0)
		n = fast_put(room, size, n, ",\"major_faults\":%llu", faults);
	if (core_wait_since(&waited))
		n = fast_put(room, size, n, ",\"core_wait_ns\":%llu", waited);
	n = fast_put(room, size, n, "}");
	return n < size ? room : NULL;
}

/*
 * end_spent(head, before): the range's args are the object `head`, bytes without the brace that closes it, and what was spent since;
 * before: None where that is not known.
 */
static PyObject *fast_end_spent(PyObject *self, PyObject *args)
{
	PyObject *head, *given;
	const char *text, *bytes;
	struct spent before;
	char room[ARGS_MAX];

	(void)self;
	if (!PyArg_ParseTuple(args, "OO", &head, &given) || !(text = PyBytes_AsString(head)) ||
	    !fast_text_of(given, &bytes))
		return NULL;
	if (bytes && PyBytes_Size(given) != (intptr_t)sizeof(before)) {
		PyErr_SetString(PyExc_ValueError, "not what begin_spent() returned");
		return NULL;
	}
	if (bytes)
		memcpy(&before, bytes, sizeof(before));
	api->end(with_spent(text, bytes ? &before : NULL, room, sizeof(room)));
	return none();
}

static PyObject *fast_start(PyObject *self, PyObject *arg)
{
	struct headrace_name *name = fast_name_of(arg);

	(void)self;
	return name ? PyLong_FromUnsignedLongLong(api->start(name)) : NULL;
}

static PyObject *fast_finish(PyObject *self, PyObject *args)
{
	unsigned long long span;
	PyObject *arg;
	const char *text;

	(void)self;
	if (!PyArg_ParseTuple(args, "KO", &span, &arg) || !fast_text_of(arg, &text))
		return NULL;
	api->finish(span, text);
	return none();
}

static PyObject *fast_mark(PyObject *self, PyObject *args)
{
	PyObject *what, *arg;
	struct headrace_name *name;
	const char *text;

	(void)self;
	if (!PyArg_ParseTuple(args, "OO", &what, &arg) || !(name = fast_name_of(what)) ||
	    !fast_text_of(arg, &text))
		return NULL;
	api->mark(name, text);
	return none();
}

static PyObject *numbered(PyObject *arg, void (*tell)(int64_t))
{
	long long number = PyLong_AsLongLong(arg);

	if (number == -1 && PyErr_Occurred())
		return NULL;
	tell(number);
	return none();
}

static PyObject *fast_step(PyObject *self, PyObject *arg)
{
	(void)self;
	return numbered(arg, api->step);
}

static PyObject *fast_epoch(PyObject *self, PyObject *arg)
{
	(void)self;
	return numbered(arg, api->epoch);
}

static PyObject *fast_now(PyObject *self, PyObject *arg)
{
	(void)self;
	(void)arg;
	return PyLong_FromUnsignedLongLong(api->now());
}

static PyObject *numbered_at(PyObject *args, void (*tell)(int64_t, uint64_t))
{
	long long number;
	unsigned long long moment;

	if (!PyArg_ParseTuple(args, "LK", &number, &moment))
		return NULL;
	tell(number, moment);
	return none();
}

static PyObject *fast_step_at(PyObject *self, PyObject *args)
{
	(void)self;
	return numbered_at(args, api->step_at);
}

static PyObject *fast_epoch_at(PyObject *self, PyObject *args)
{
	(void)self;
	return numbered_at(args, api->epoch_at);
}

static PyObject *fast_step_undo(PyObject *self, PyObject *arg)
{
	(void)self;
	(void)arg;
	api->step_undo();
	return none();
}

static PyObject *fast_variable(PyObject *self, PyObject *arg)
{
	const char *text = PyBytes_AsString(arg);

	(void)self;
	if (!text)
		return NULL;
	api->variable(text);
	return none();
}

static PyObject *fast_recording(PyObject *self, PyObject *arg)
{
	(void)self;
	(void)arg;
	return PyLong_FromLong(api->recording());
}

PyObject *PyInit__headrace_fast(void)
{
	static struct python_method methods[] = {
	    {"name", fast_name, METH_VARARGS, NULL},
	    {"begin", fast_begin, METH_O, NULL},
	    {"end", fast_end, METH_O, NULL},
	    {"end_numbered", fast_end_numbered, METH_VARARGS, NULL},
	    {"begin_spent", fast_begin_spent, METH_O, NULL},
	    {"end_spent", fast_end_spent, METH_VARARGS, NULL},
	    {"start", fast_start, METH_O, NULL},
	    {"finish", fast_finish, METH_VARARGS, NULL},
	    {"mark", fast_mark, METH_VARARGS, NULL},
	    {"step", fast_step, METH_O, NULL},
	    {"epoch", fast_epoch, METH_O, NULL},
	    {"variable", fast_variable, METH_O, NULL},
	    {"recording", fast_recording, METH_VARARGS, NULL},
	    {"now", fast_now, METH_VARARGS, NULL},
	    {"step_at", fast_step_at, METH_VARARGS, NULL},
	    {"epoch_at", fast_epoch_at, METH_VARARGS, NULL},
	    {"step_undo", fast_step_undo, METH_VARARGS, NULL},
	    {NULL, NULL, 0, NULL},
	};
	static struct python_module module = {
	    .base = {.refcount = 1},
	    .name = "_headrace_fast",
	    .size = -1,
	    .methods = methods,
	};

	api = headrace_api ? headrace_api(HEADRACE_API_VERSION) : NULL;
	if (!api || api->bytes < sizeof(*api)) {
		PyErr_SetString(PyExc_ImportError, "no libheadrace.so of this version");
		return NULL;
	}
	return PyModule_Create2(&module, PYTHON_API_VERSION);
}
