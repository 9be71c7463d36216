/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast.c - a Python module with the functions of _headrace/api.py
 *
 * A training step makes five of these calls. Each takes 25 ns with this module, and 75 ns with
 * ctypes, which api.py uses if this module cannot be loaded (another libc, another Python than
 * CPython).
 *
 * ABI       Python's stable ABI, declared in stable_abi.h without Python's headers. One build fits
 *           all versions.
 * Threads   Python's lock is held in all functions.
 */
#include "common/now.h"
#include "include/headrace.h"
#include "python/accelerator.h"
#include "python/functions.h"
#include "python/spent.h"
#include "python/stable_abi.h"
#include "python/stacks.h"

/* Python defines the signatures of functions, so some parameters are unused. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

__attribute__((visibility("default"))) PyObject *PyInit__headrace_fast(void);

static const struct headrace_api *api;

/* Reads args, which are bytes or None. Returns false after it has set a Python error. */
static int fast_text_of(PyObject *arg, const char **ret_text)
{
	*ret_text = NULL;
	if (arg == (PyObject *)&_Py_NoneStruct)
		return 1;
	*ret_text = PyBytes_AsString(arg);
	return *ret_text != NULL;
}

/* name(name, domain, category, kind): makes a name, which is never freed. Texts: bytes or None. */
static PyObject *fast_name(PyObject *self, PyObject *args)
{
	struct headrace_name *name = calloc(1, sizeof(*name));
	const char **kept[] = {&name->name, &name->domain, &name->category};
	PyObject *given[3];

	if (!name)
		return PyErr_NoMemory();
	if (!PyArg_ParseTuple(args, "OOOI", &given[0], &given[1], &given[2], &name->kind))
		return NULL; /* a mistake of api.py, so `name` may leak */
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
	struct headrace_name *name = PyLong_AsVoidPtr(arg);

	if (!name)
		return NULL;
	api->begin(name);
	return python_none();
}

static PyObject *fast_end(PyObject *self, PyObject *arg)
{
	const char *text;

	if (!fast_text_of(arg, &text))
		return NULL;
	api->end(text);
	return python_none();
}

/* begin_cpu(ref), end_cpu(None): a range whose args are the CPU time of the thread. */
static __thread unsigned long long range_cpu_ns;

static PyObject *fast_begin_cpu(PyObject *self, PyObject *arg)
{
	struct headrace_name *name = PyLong_AsVoidPtr(arg);

	if (!name)
		return NULL;
	api->begin(name);
	range_cpu_ns = hr_now_ns(CLOCK_THREAD_CPUTIME_ID);
	return python_none();
}

static PyObject *fast_end_cpu(PyObject *self, PyObject *arg)
{
	unsigned long long now = hr_now_ns(CLOCK_THREAD_CPUTIME_ID);
	char args[40];

	snprintf(args, sizeof(args), "{\"cpu_ns\":%llu}", now - range_cpu_ns);
	api->end(now >= range_cpu_ns ? args : NULL); /* a forked child starts from 0 */
	return python_none();
}

/*
 * What the thread had used at the end of its last step of an optimizer (end.at_ns 0: unknown), and
 * whether a wait has followed. Without waits, as in loops without a DataLoader, steps report page
 * faults.
 */
static __thread struct {
	struct spent end;
	bool waited;
} stepped;

/*
 * CPU time of the thread in waits and between them, and of the other threads of the process (such
 * as torch's). A read of a clock takes 0.4 us, so a wait that begins less than SPENT_APART_NS after
 * the last one with CPU times has none.
 */
#define SPENT_APART_NS 5000000u

static __thread struct {
	/* start of the current wait, and the CPU time then; 0: not read */
	unsigned long long began_at_ns, began_ns;
	/* end of the last wait with CPU times, and the CPU time then; 0: there is none */
	unsigned long long ended_at_ns, ended_ns;
	/* CPU time of the other threads at the last two reads; 0: not read */
	unsigned long long others_ns, others_before_ns;
	/* how long the thread had no core from the last read to the current wait */
	unsigned long long no_core_ns;
	bool no_core_known;
} wait_cpu;

static void read_core_wait(void)
{
	wait_cpu.no_core_known = spent_core_wait(0, &wait_cpu.no_core_ns);
}

static PyObject *fast_begin_spent(PyObject *self, PyObject *arg)
{
	struct headrace_name *name = PyLong_AsVoidPtr(arg);
	struct spent before;

	if (!name)
		return NULL;
	api->begin(name);
	stepped.waited = true;
	read_core_wait();
	before = spent_now(api);
	stacks_begin(before.at_ns);
	return PyBytes_FromStringAndSize((const char *)&before, sizeof(before));
}

/* Returns the member `hidden` for the args of a wait after a step of an optimizer. */
static const char *hidden(void)
{
	static const char *const texts[] = {
	    [ACCELERATOR_UNKNOWN] = "",
	    [ACCELERATOR_IDLE] = ",\"hidden\":false",
	    [ACCELERATOR_BUSY] = ",\"hidden\":true",
	};

	return texts[accelerator_state()];
}

/* Appends what was used since the last wait with CPU times, up to `at_ns` (CPU time: `cpu_ns`). */
static size_t put_before(char *room, size_t size, size_t n, unsigned long long at_ns,
			 unsigned long long cpu_ns)
{
	/* In a forked child, ended_ns is a value of the parent, and too large. */
	if (wait_cpu.ended_ns == 0 || wait_cpu.ended_ns > cpu_ns)
		return n;
	n = spent_put(room, size, n, ",\"before_cpu_ns\":%llu,\"before_ns\":%llu",
		      cpu_ns - wait_cpu.ended_ns, at_ns - wait_cpu.ended_at_ns);
	if (wait_cpu.no_core_known)
		n = spent_put(room, size, n, ",\"before_core_ns\":%llu", wait_cpu.no_core_ns);
	if (wait_cpu.others_before_ns == 0 || wait_cpu.others_before_ns > wait_cpu.others_ns)
		return n;
	return spent_put(room, size, n, ",\"others_cpu_ns\":%llu",
			 wait_cpu.others_ns - wait_cpu.others_before_ns);
}

/* Reads the CPU time of the other threads. `cpu_ns` is that of this thread. */
static void read_others(unsigned long long cpu_ns)
{
	wait_cpu.others_before_ns = wait_cpu.others_ns;
	wait_cpu.others_ns = hr_now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
}

/* begin_wait(ref): begins a wait. */
static PyObject *fast_begin_wait(PyObject *self, PyObject *arg)
{
	struct headrace_name *name = PyLong_AsVoidPtr(arg);
	unsigned long long now = hr_now_ns(CLOCK_MONOTONIC);

	if (!name)
		return NULL;
	api->begin(name);
	stacks_resume();
	stacks_waits(now);
	wait_cpu.began_at_ns = now;
	stepped.waited = true;
	wait_cpu.began_ns =
	    now - wait_cpu.ended_at_ns >= SPENT_APART_NS ? hr_now_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
	if (wait_cpu.began_ns > 0) {
		read_others(wait_cpu.began_ns);
		read_core_wait();
	}
	return python_none();
}

/* Appends the CPU time in the wait, and since the previous wait. */
static size_t put_wait_cpu(char *room, size_t size, size_t n)
{
	unsigned long long now = hr_now_ns(CLOCK_THREAD_CPUTIME_ID);

	n = spent_put(room, size, n, ",\"cpu_ns\":%llu", now - wait_cpu.began_ns);
	n = put_before(room, size, n, wait_cpu.began_at_ns, wait_cpu.began_ns);
	wait_cpu.ended_ns = now;
	wait_cpu.ended_at_ns = hr_now_ns(CLOCK_MONOTONIC);
	return n;
}

/* end_wait(head): ends a wait. Its args are `head` (see end_spent), CPU times and `hidden`. */
static PyObject *fast_end_wait(PyObject *self, PyObject *arg)
{
	const char *head = PyBytes_AsString(arg), *more = hidden();
	char room[ARGS_MAX];
	size_t n;

	if (!head)
		return NULL;
	n = strlen(head);
	if (n < sizeof(room))
		memcpy(room, head, n);
	if (wait_cpu.began_ns > 0)
		n = put_wait_cpu(room, sizeof(room), n);
	if (n + strlen(more) + sizeof("}") <= sizeof(room))
		stpcpy(stpcpy(room + n, more), "}");
	else
		n = sizeof(room);
	api->end(n < sizeof(room) ? room : NULL);
	stacks_works();
	return python_none();
}

/* Returns args: what the thread used since the previous step. NULL: it had no major faults. */
static const char *step_args(char *room, size_t size)
{
	struct spent before = stepped.end, now;
	bool waited = stepped.waited;
	size_t n;

	stepped.waited = false;
	if (waited)
		stepped.end.at_ns = 0;
	if (waited || hr_now_ns(CLOCK_MONOTONIC) - before.at_ns < SPENT_APART_NS)
		return NULL;
	now = stepped.end = spent_now(api);
	if (before.at_ns == 0 || now.major_faults <= before.major_faults)
		return NULL;
	n = spent_put(room, size, 0, "{\"since_ns\":%llu", now.at_ns - before.at_ns);
	n = spent_put_since(room, size, n, &before, &now);
	n = spent_put(room, size, n, "}");
	return n < size ? room : NULL;
}

/* Marks in which share of the time since the last mark (at least 1 s) the accelerator was busy. */
static void mark_use(void)
{
	static struct headrace_name mark = {
	    .name = "accelerator", .domain = "headrace", .kind = HEADRACE_MARK};
	struct accelerator_use use;
	char args[64];

	if (accelerator_use(&use)) {
		snprintf(args, sizeof(args), "{\"busy_percent\":%.0f,\"since_ns\":%llu}",
			 use.percent, use.ns);
		api->mark(&mark, args);
	}
}

/* end_step(): ends a step of an optimizer. */
static PyObject *fast_end_step(PyObject *self, PyObject *arg)
{
	bool waited = stepped.waited; /* then the step began at the end of the wait */
	char room[ARGS_MAX];

	api->end(step_args(room, sizeof(room)));
	stacks_resume();
	if (!waited)
		stacks_works();
	if (accelerator_stepped())
		mark_use();
	return python_none();
}

/* Makes args from `head` and from what was used since `before`. NULL: the args are too long. */
static const char *with_spent(const char *head, const struct spent *before, char *room, size_t size)
{
	struct spent now = spent_now(api);
	unsigned long long waited;
	size_t n = spent_put(room, size, 0, "%s", head);

	if (before)
		n = spent_put_since(room, size, n, before, &now);
	else if (spent_core_wait(0, &waited))
		n = spent_put(room, size, n, ",\"core_wait_ns\":%llu", waited);
	read_others(now.cpu_ns);
	n = before ? put_before(room, size, n, before->at_ns, before->cpu_ns) : n;
	n = stacks_end(before ? before->at_ns : 0, room, size, n);
	n = spent_put(room, size, n, "%s}", hidden());
	wait_cpu.ended_ns = now.cpu_ns;
	wait_cpu.ended_at_ns = now.at_ns;
	if (n >= size)
		n = spent_put(room, size, 0, "%s}", head); /* the program's args may fit alone */
	return n < size ? room : NULL;
}

/*
 * end_spent(head, before): ends a range. `head` is a JSON object as bytes without its closing
 * brace. The args add what was used since `before` (None: unknown).
 */
static PyObject *fast_end_spent(PyObject *self, PyObject *args)
{
	PyObject *head, *given;
	const char *text, *bytes;
	struct spent before;
	char room[ARGS_MAX];

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
	return python_none();
}

static PyObject *fast_start(PyObject *self, PyObject *arg)
{
	struct headrace_name *name = PyLong_AsVoidPtr(arg);

	return name ? PyLong_FromUnsignedLongLong(api->start(name)) : NULL;
}

static PyObject *fast_finish(PyObject *self, PyObject *args)
{
	unsigned long long span;
	PyObject *arg;
	const char *text;

	if (!PyArg_ParseTuple(args, "KO", &span, &arg) || !fast_text_of(arg, &text))
		return NULL;
	api->finish(span, text);
	return python_none();
}

static PyObject *fast_mark(PyObject *self, PyObject *args)
{
	PyObject *what, *arg;
	struct headrace_name *name;
	const char *text;

	if (!PyArg_ParseTuple(args, "OO", &what, &arg) || !(name = PyLong_AsVoidPtr(what)) ||
	    !fast_text_of(arg, &text))
		return NULL;
	api->mark(name, text);
	return python_none();
}

static PyObject *numbered(PyObject *arg, void (*report)(int64_t))
{
	long long number = PyLong_AsLongLong(arg);

	if (number == -1 && PyErr_Occurred())
		return NULL;
	report(number);
	return python_none();
}

static PyObject *fast_step(PyObject *self, PyObject *arg)
{
	return numbered(arg, api->step);
}

static PyObject *fast_epoch(PyObject *self, PyObject *arg)
{
	return numbered(arg, api->epoch);
}

static PyObject *fast_now(PyObject *self, PyObject *arg)
{
	return PyLong_FromUnsignedLongLong(api->now());
}

static PyObject *numbered_at(PyObject *args, void (*report)(int64_t, uint64_t))
{
	long long number;
	unsigned long long moment;

	if (!PyArg_ParseTuple(args, "LK", &number, &moment))
		return NULL;
	report(number, moment);
	return python_none();
}

static PyObject *fast_step_at(PyObject *self, PyObject *args)
{
	return numbered_at(args, api->step_at);
}

static PyObject *fast_epoch_at(PyObject *self, PyObject *args)
{
	return numbered_at(args, api->epoch_at);
}

static PyObject *fast_step_undo(PyObject *self, PyObject *arg)
{
	api->step_undo();
	return python_none();
}

static PyObject *fast_variable(PyObject *self, PyObject *arg)
{
	const char *text = PyBytes_AsString(arg);

	if (!text)
		return NULL;
	api->variable(text);
	return python_none();
}

static PyObject *fast_recording(PyObject *self, PyObject *arg)
{
	return PyLong_FromLong(api->recording());
}

PyObject *PyInit__headrace_fast(void)
{
	static struct python_method methods[] = {
	    {"name", fast_name, METH_VARARGS, NULL},
	    {"begin", fast_begin, METH_O, NULL},
	    {"end", fast_end, METH_O, NULL},
	    {"begin_spent", fast_begin_spent, METH_O, NULL},
	    {"end_spent", fast_end_spent, METH_VARARGS, NULL},
	    {"begin_cpu", fast_begin_cpu, METH_O, NULL},
	    {"end_cpu", fast_end_cpu, METH_O, NULL},
	    {"begin_wait", fast_begin_wait, METH_O, NULL},
	    {"end_wait", fast_end_wait, METH_O, NULL},
	    {"end_step", fast_end_step, METH_VARARGS, NULL},
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
	PyObject *made;

	api = headrace_api ? headrace_api(HEADRACE_API_VERSION) : NULL;
	if (!api || api->bytes < sizeof(*api)) {
		PyErr_SetString(PyExc_ImportError, "no libheadrace.so of this version");
		return NULL;
	}
	accelerator_init();
	made = PyModule_Create2(&module, PYTHON_API_VERSION);
	if (made && (functions_init(made, api) < 0 || stacks_init(made, api) < 0))
		PyErr_Clear(); /* functions.py and stacks.py do not find their functions */
	return made;
}
