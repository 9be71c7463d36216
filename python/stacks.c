/* SPDX-License-Identifier: Apache-2.0 */
#include "python/stacks.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/now.h"
#include "python/frames.h"
#include "python/spent.h"
#include "python/stack_text.h"

/* Python defines the signatures of functions, so some parameters are unused. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define EVERY_NS    20000000u
#define SAMPLES_MAX 16u
#define STACK_BYTES 262144u /* of the sampler; the variables of all threads are in it, too */
#define ROOM_LEFT   64u

static bool on;

/* ---- the fetch that is sampled ----------------------------------------------------------------- */

struct stack_sample {
	uint64_t due_ns, at_ns; /* the sampler waited for Python's lock from `due` to `at` */
	struct stack_text text;
};

/* Changed and read only with Python's lock. */
static struct {
	PyThreadState *thread; /* it fetches; NULL: none */
	pid_t pid;	       /* a forked child has no fetch of its parent's other threads */
	uint64_t began_ns, every_ns;
	unsigned n;
	struct stack_sample samples[SAMPLES_MAX];
} fetch;

/* Drops every second sample. Keeps the last one, from which the next is due. */
static void samples_thin(void)
{
	unsigned kept = fetch.n / 2;

	for (unsigned i = 0; i < kept; i++)
		fetch.samples[i] = fetch.samples[fetch.n - 1 - 2 * (kept - 1 - i)];
	fetch.n = kept;
}

/* Makes a sample that was due at this moment. Returns when the next one is due. */
static uint64_t sample_take(uint64_t due_ns)
{
	bool collects = frames_collect_off();
	struct stack_sample *s = &fetch.samples[fetch.n];

	s->due_ns = due_ns;
	s->at_ns = hr_now_ns(CLOCK_MONOTONIC);
	if (stack_text_read(fetch.thread, &s->text))
		fetch.n++;
	if (collects)
		frames_collect_on();
	if (fetch.n == SAMPLES_MAX) {
		samples_thin();
		fetch.every_ns *= 2;
	}
	return s->at_ns + fetch.every_ns;
}

/* ---- the thread that makes samples --------------------------------------------------------------- */

/* The next sample of the fetch is due then. 0: no fetch. Changed only with Python's lock. */
static _Atomic uint64_t due;

/*
 * The mutex is never held while a thread waits for Python's lock. A new `generation` ends the
 * thread of the previous one.
 */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	pthread_t thread;
	/* The process that has the thread; 0: none. Changed only with Python's lock */
	pid_t pid;
	unsigned generation;
	bool ending; /* as pid */
	/* It sleeps until then, or until a fetch begins (UINT64_MAX). 0: it is awake */
	_Atomic uint64_t until;
} sampler;

/* Waits until a sample is due, and returns when it was due. 0: the thread must end. */
static uint64_t sampler_wait(unsigned generation)
{
	uint64_t at = 0;

	pthread_mutex_lock(&sampler.mutex);
	while (sampler.generation == generation) {
		struct timespec until;

		at = atomic_load(&due);
		if (at > 0 && at <= hr_now_ns(CLOCK_MONOTONIC))
			break;
		atomic_store(&sampler.until, at > 0 ? at : UINT64_MAX);
		until = (struct timespec){(time_t)(at / 1000000000), (long)(at % 1000000000)};
		if (atomic_load(&due) != at)
			continue;
		if (at > 0)
			pthread_cond_timedwait(&sampler.changed, &sampler.mutex, &until);
		else
			pthread_cond_wait(&sampler.changed, &sampler.mutex);
	}
	atomic_store(&sampler.until, 0);
	if (sampler.generation != generation)
		at = 0;
	pthread_mutex_unlock(&sampler.mutex);
	return at;
}

static void *sampler_run(void *generation)
{
	uint64_t at;

	while ((at = sampler_wait((unsigned)(uintptr_t)generation)) > 0) {
		int lock = PyGILState_Ensure();

		/* The fetch may have ended while this thread waited for Python's lock. */
		if (atomic_load(&due) == at)
			atomic_store(&due, sample_take(at));
		PyGILState_Release(lock);
	}
	return NULL;
}

static void sampler_wake(void)
{
	pthread_mutex_lock(&sampler.mutex);
	pthread_cond_signal(&sampler.changed);
	pthread_mutex_unlock(&sampler.mutex);
}

/* A forked child has no sampler, and its copy of the mutex may be locked. */
static void sampler_start(pid_t pid)
{
	pthread_condattr_t clock;
	pthread_attr_t attributes;
	sigset_t all, before;
	int r;

	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_mutex_init(&sampler.mutex, NULL);
	pthread_cond_init(&sampler.changed, &clock);
	atomic_store(&sampler.until, 0);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&sampler.thread, &attributes, sampler_run,
			   (void *)(uintptr_t)sampler.generation);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (r != 0)
		return;
	pthread_setname_np(sampler.thread, "headrace-stacks");
	sampler.pid = pid;
	sampler.ending = false;
}

/* Ends the thread, and waits for it. Other Python threads can run meanwhile. */
static void sampler_end(void)
{
	pthread_t thread = sampler.thread;
	PyThreadState *state;

	if (sampler.pid != getpid() || sampler.ending)
		return;
	sampler.ending = true;
	pthread_mutex_lock(&sampler.mutex);
	sampler.generation++;
	pthread_cond_signal(&sampler.changed);
	pthread_mutex_unlock(&sampler.mutex);
	state = PyEval_SaveThread();
	pthread_join(thread, NULL);
	PyEval_RestoreThread(state);
	sampler.pid = 0;
}

/* ---- begin and end of a fetch ---------------------------------------------------------------------- */

void stacks_begin(uint64_t at_ns)
{
	pid_t pid;

	if (!on)
		return;
	pid = getpid();
	if (fetch.thread && fetch.pid == pid)
		return;
	fetch.thread = PyThreadState_Get();
	fetch.pid = pid;
	fetch.began_ns = at_ns;
	fetch.every_ns = EVERY_NS;
	fetch.n = 0;
	atomic_store(&due, at_ns + EVERY_NS);
	if (sampler.pid != pid)
		sampler_start(pid);
	else if (atomic_load(&sampler.until) > at_ns + EVERY_NS)
		sampler_wake();
}

/* Appends the samples, of which successive ones with the same stack are one part of the fetch. */
static size_t put_samples(char *room, size_t size, size_t n)
{
	uint64_t late = 0;

	for (unsigned i = 0, of = 0; i < fetch.n; i++) {
		const struct stack_sample *s = &fetch.samples[i];
		bool last = i + 1 == fetch.n || strcmp(s->text.stack, s[1].text.stack) != 0;
		uint64_t from;

		late = s->at_ns - s->due_ns > late ? s->at_ns - s->due_ns : late;
		of++;
		if (!last)
			continue;
		s -= of - 1;
		from = s == fetch.samples ? fetch.began_ns : (s[-1].at_ns + s->due_ns) / 2;
		n = spent_put(room, size, n,
			      "%s{\"from_ns\":%llu,\"samples\":%u,\"late_ns\":%llu,"
			      "\"line\":\"%s\",\"stack\":\"%s\"}",
			      s == fetch.samples ? ",\"stacks\":[" : ",",
			      (unsigned long long)(from - fetch.began_ns), of,
			      (unsigned long long)late, s->text.line, s->text.stack);
		of = 0;
		late = 0;
	}
	return spent_put(room, size, n, "]");
}

size_t stacks_end(uint64_t began_ns, char *room, size_t size, size_t n)
{
	size_t all;

	if (!fetch.thread || fetch.thread != PyThreadState_Get() ||
	    (began_ns > 0 && began_ns != fetch.began_ns))
		return n;
	fetch.thread = NULL;
	atomic_store(&due, 0);
	for (; fetch.n > 0; samples_thin()) {
		all = put_samples(room, size, n);
		if (all + ROOM_LEFT < size)
			return all;
	}
	return n;
}

/* ---- set-up ------------------------------------------------------------------------------------- */

/* stacks_start((folder, caller...), foreign): stack_text_set() keeps the texts */
static PyObject *stacks_start(PyObject *self, PyObject *args)
{
	const char **texts, **foreign_folders;
	PyObject *given, *foreign;
	struct stack_text text;

	if (!PyArg_ParseTuple(args, "OO", &given, &foreign) || !python_texts(given, &texts) ||
	    !python_texts(foreign, &foreign_folders))
		return NULL;
	frames_init();
	stack_text_set(texts[0], texts + 1, foreign_folders);
	/* The first read tries what this Python has. Python 3.8 reports that to audit hooks. */
	stack_text_read(PyThreadState_Get(), &text);
	on = true;
	return python_none();
}

static PyObject *stacks_pause(PyObject *self, PyObject *arg)
{
	sampler_end();
	return python_none();
}

static PyObject *stacks_stop(PyObject *self, PyObject *arg)
{
	on = false;
	sampler_end();
	return python_none();
}

int stacks_init(PyObject *module)
{
	static struct python_method methods[] = {
	    {"stacks_start", stacks_start, METH_VARARGS, NULL},
	    {"stacks_pause", stacks_pause, METH_VARARGS, NULL},
	    {"stacks_stop", stacks_stop, METH_VARARGS, NULL},
	    {NULL, NULL, 0, NULL},
	};

	return PyModule_AddFunctions(module, methods);
}
