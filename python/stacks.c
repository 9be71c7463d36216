/* SPDX-License-Identifier: Apache-2.0 */
#include "python/stacks.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/now.h"
#include "proto/args.h"
#include "python/frames.h"
#include "python/hang.h"
#include "python/own_samples.h"
#include "python/spent.h"
#include "python/stack_text.h"
#include "python/unlocked.h"

/* Python defines the signatures of functions, so some parameters are unused. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define SAMPLES_MAX 16u
#define MISSES_MAX  8u	  /* moments without a fetch, after which the sampler waits for one */
#define OWN_FIRST   2000u /* after so many own samples, they are rarer: each OWN_EACH moments */
#define OWN_EACH    5u
#define STACK_BYTES 262144u /* of the sampler; the variables of all threads are in it, too */
#define ROOM_LEFT   64u

static bool on; /* changed only with Python's lock */
static const struct headrace_api *api;

struct stack_sample {
	uint64_t at_ns;
	struct stack_text text;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* The fetch that is sampled. The mutex protects it. */
static struct {
	const PyThreadState *thread; /* it fetches; NULL: none */
	int tid;
	pid_t pid; /* a forked child has no fetch of its parent */
	uint64_t began_ns, every_ns;
	unsigned number, n;
	struct stack_sample samples[SAMPLES_MAX];
	struct hang_watch watch;
} fetch;

/*
 * The thread that trains, perhaps: the one that started the samples. It is sampled outside of waits
 * for batches, too. The mutex protects it.
 */
static struct {
	const PyThreadState *thread; /* NULL: none */
	int tid;
	pid_t pid; /* a forked child has none */
	unsigned n, moments;
	struct hang_watch watch; /* not protected: see hang.h */
} own;

/* The thread that makes samples. The mutex protects it; `pid` needs Python's lock, too. */
static struct {
	pthread_t thread;
	pid_t pid; /* the process that has the thread; 0: none */
	bool ending, idle;
	pthread_cond_t changed;
} sampler;

/* ---- samples --------------------------------------------------------------------------------- */

/* Drops every second sample, so that the next one follows the last one at twice the distance. */
static void samples_thin(void)
{
	unsigned kept = fetch.n / 2;

	for (unsigned i = 0; i < kept; i++)
		fetch.samples[i] = fetch.samples[fetch.n - 1 - 2 * (kept - 1 - i)];
	fetch.n = kept;
}

/* Reads the stack of the fetch, with the mutex, which is not held meanwhile. */
static void sample_take(void)
{
	const PyThreadState *thread = fetch.thread;
	unsigned number = fetch.number;
	struct stack_sample sample;
	bool known;

	pthread_mutex_unlock(&mutex);
	sample.at_ns = hr_now_ns(CLOCK_MONOTONIC);
	known = stack_text_read(thread, &sample.text);
	pthread_mutex_lock(&mutex);
	if (!known || fetch.thread != thread || fetch.number != number)
		return; /* the fetch has ended */
	fetch.samples[fetch.n++] = sample;
	if (fetch.n == SAMPLES_MAX) {
		samples_thin();
		fetch.every_ns *= 2;
	}
}

/* Reads the stack of the thread that trains, as above. Its samples belong to the sampler. */
static void own_take(void)
{
	unsigned each = own.n < OWN_FIRST ? 1 : OWN_EACH;
	const PyThreadState *thread = own.thread;
	struct stack_text text;
	uint64_t at;

	if (++own.moments % each != 0 || !api->recording())
		return;
	own.n++;
	pthread_mutex_unlock(&mutex);
	at = hr_now_ns(CLOCK_MONOTONIC);
	if (stack_text_read(thread, &text) && !text.in_fetch)
		own_samples_add(api, at, (uint64_t)each * HR_ARGS_SAMPLES_EVERY_NS, &text);
	pthread_mutex_lock(&mutex);
}

/* Marks a fetch, wait or step that lasts much longer than usual, as above. */
static void hang_look(void)
{
	uint64_t now = hr_now_ns(CLOCK_MONOTONIC);
	struct hang_watch *watch = fetch.thread ? &fetch.watch : &own.watch;
	const PyThreadState *thread = fetch.thread ? fetch.thread : own.thread;
	int tid = fetch.thread ? fetch.tid : own.tid;

	if (!thread || !hang_is_due(watch, now) || !api->recording())
		return;
	pthread_mutex_unlock(&mutex);
	hang_mark(watch, api, thread, tid);
	pthread_mutex_lock(&mutex);
}

/* ---- the thread that makes samples ----------------------------------------------------------- */

/* Returns a random number below `n`, so that samples do not follow a beat of the program. */
static uint64_t below(uint64_t n)
{
	static uint32_t random = 2463534242u;

	random ^= random << 13;
	random ^= random >> 17;
	random ^= random << 5;
	return (uint64_t)((double)n * random / UINT32_MAX);
}

/* Waits until this moment, a change, or the end. Returns whether the moment has come. */
static bool wait_until(uint64_t at_ns)
{
	struct timespec until = {(time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000)};

	if (hr_now_ns(CLOCK_MONOTONIC) >= at_ns)
		return true;
	pthread_cond_timedwait(&sampler.changed, &mutex, &until);
	return false;
}

static void *sampler_run(void *arg)
{
	uint64_t due = hr_now_ns(CLOCK_MONOTONIC) + below(HR_ARGS_SAMPLES_EVERY_NS), every;
	unsigned misses = 0;

	pthread_mutex_lock(&mutex);
	while (!sampler.ending) {
		if (misses == MISSES_MAX) {
			sampler.idle = true;
			while (sampler.idle && !sampler.ending)
				pthread_cond_wait(&sampler.changed, &mutex);
			misses = 0;
			due = hr_now_ns(CLOCK_MONOTONIC) + below(HR_ARGS_SAMPLES_EVERY_NS);
		}
		if (!wait_until(due))
			continue;
		misses = fetch.thread || own.thread ? 0 : misses + 1;
		if (fetch.thread)
			sample_take();
		else if (own.thread)
			own_take();
		hang_look();
		every = fetch.thread ? fetch.every_ns : HR_ARGS_SAMPLES_EVERY_NS;
		due = hr_now_ns(CLOCK_MONOTONIC) + every / 2 + below(every);
	}
	pthread_mutex_unlock(&mutex);
	own_samples_report(api);
	return NULL;
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
	pthread_mutex_init(&mutex, NULL);
	pthread_cond_init(&sampler.changed, &clock);
	stack_text_forget();
	sampler.ending = sampler.idle = false;
	if (fetch.pid != pid) {
		fetch.thread = NULL;
		memset(&fetch.watch, 0, sizeof(fetch.watch));
	}
	fetch.pid = pid;
	if (own.pid != pid)
		own.thread = NULL;
	own_samples_forget();
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&sampler.thread, &attributes, sampler_run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (r == 0)
		pthread_setname_np(sampler.thread, "headrace-stacks");
	sampler.pid = r == 0 ? pid : 0;
}

/* Ends the thread, and waits for it: at most for the time of a sample. */
static void sampler_end(void)
{
	if (sampler.pid != getpid())
		return;
	pthread_mutex_lock(&mutex);
	sampler.ending = true;
	pthread_cond_signal(&sampler.changed);
	pthread_mutex_unlock(&mutex);
	pthread_join(sampler.thread, NULL);
	sampler.pid = 0;
}

/* ---- begin and end of a fetch ---------------------------------------------------------------- */

/* Whether this is the thread that trains, perhaps. */
static bool is_own(void)
{
	return on && own.thread && own.thread == PyThreadState_Get();
}

/* Returns the id of this thread in this process. */
static int thread_id(pid_t pid)
{
	static __thread struct {
		pid_t pid;
		int tid;
	} known;

	if (known.pid != pid) {
		known.pid = pid;
		known.tid = (int)syscall(SYS_gettid);
	}
	return known.tid;
}

void stacks_begin(uint64_t at_ns)
{
	pid_t pid;

	if (!on)
		return;
	if (is_own())
		hang_end(&own.watch, at_ns);
	pid = getpid();
	if (sampler.pid != pid)
		sampler_start(pid);
	if (sampler.pid != pid)
		return;
	pthread_mutex_lock(&mutex);
	if (!fetch.thread) {
		fetch.thread = PyThreadState_Get();
		fetch.tid = thread_id(pid);
		fetch.number++;
		hang_begin(&fetch.watch, HANG_FETCH, at_ns);
		fetch.began_ns = at_ns;
		fetch.every_ns = HR_ARGS_SAMPLES_EVERY_NS;
		fetch.n = 0;
		if (sampler.idle) {
			sampler.idle = false;
			pthread_cond_signal(&sampler.changed);
		}
	}
	pthread_mutex_unlock(&mutex);
}

void stacks_waits(uint64_t at_ns)
{
	if (is_own())
		hang_begin(&own.watch, HANG_WAIT, at_ns);
}

/* Only the watched thread reads the clock. */
void stacks_works(void)
{
	if (is_own())
		hang_begin(&own.watch, HANG_STEP, hr_now_ns(CLOCK_MONOTONIC));
}

void stacks_resume(void)
{
	if (on && sampler.pid == 0 && own.thread && own.pid == getpid())
		sampler_start(own.pid);
}

/* Appends the samples, of which successive ones with the same stack are one part of the fetch. */
static size_t put_samples(char *room, size_t size, size_t n)
{
	for (unsigned i = 0, of = 0; i < fetch.n; i++) {
		const struct stack_sample *s = &fetch.samples[i];
		bool last = i + 1 == fetch.n || strcmp(s->text.stack, s[1].text.stack) != 0;
		uint64_t from;

		of++;
		if (!last)
			continue;
		s -= of - 1;
		from = s == fetch.samples ? fetch.began_ns : (s[-1].at_ns + s->at_ns) / 2;
		n = spent_put(
		    room, size, n,
		    "%s{\"from_ns\":%llu,\"samples\":%u,\"line\":\"%s\",\"stack\":\"%s\"}",
		    s == fetch.samples ? ",\"stacks\":[" : ",",
		    (unsigned long long)(from - fetch.began_ns), of, s->text.line, s->text.stack);
		of = 0;
	}
	return spent_put(room, size, n, "]");
}

/* Ends the fetch of this thread that began then (0: unknown). Returns whether it has samples. */
static bool fetch_end(uint64_t began_ns)
{
	bool ends;

	if (!fetch.thread || fetch.pid != getpid())
		return false;
	pthread_mutex_lock(&mutex);
	ends = fetch.thread == PyThreadState_Get() && (began_ns == 0 || began_ns == fetch.began_ns);
	if (ends) {
		fetch.thread = NULL;
		hang_end(&fetch.watch, hr_now_ns(CLOCK_MONOTONIC));
	}
	pthread_mutex_unlock(&mutex);
	return ends && fetch.n > 0;
}

/* Without a thread, only this function changes the samples. */
size_t stacks_end(uint64_t began_ns, char *room, size_t size, size_t n)
{
	stacks_works();
	if (!fetch_end(began_ns))
		return n;
	for (; fetch.n > 0; samples_thin()) {
		size_t all = put_samples(room, size, n);

		if (all + ROOM_LEFT < size)
			return all;
	}
	return n;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

/*
 * stacks_start((folder, caller...), foreign): stack_text_set() keeps the texts. Returns None, or
 * the reason why stacks cannot be read.
 */
static PyObject *stacks_start(PyObject *self, PyObject *args)
{
	const char **texts, **foreign_folders, *reason;
	PyObject *given, *foreign;

	if (!PyArg_ParseTuple(args, "OO", &given, &foreign) || !python_texts(given, &texts) ||
	    !python_texts(foreign, &foreign_folders))
		return NULL;
	frames_init();
	reason = unlocked_init();
	if (reason)
		return PyUnicode_FromString(reason);
	stack_text_set(texts[0], texts + 1, foreign_folders);
	on = true;
	own.thread = PyThreadState_Get();
	own.pid = getpid();
	own.tid = thread_id(own.pid);
	sampler_start(own.pid);
	return python_none();
}

/* stacks_worker(): this process makes batches, and has no thread that trains. */
static PyObject *stacks_worker(PyObject *self, PyObject *arg)
{
	sampler_end();
	own.thread = NULL;
	return python_none();
}

/* stacks_group(begins): init_process_group() begins or ends. */
static PyObject *stacks_group(PyObject *self, PyObject *arg)
{
	uint64_t now = hr_now_ns(CLOCK_MONOTONIC);

	if (!is_own())
		return python_none();
	stacks_resume();
	if (PyLong_AsLongLong(arg) == 1)
		hang_begin(&own.watch, HANG_GROUP, now);
	else
		hang_end(&own.watch, now);
	return python_none();
}

/* If another thread than the one that trains forks, the process has several threads anyway. */
static PyObject *stacks_pause(PyObject *self, PyObject *arg)
{
	if (!own.thread || own.thread == PyThreadState_Get())
		sampler_end();
	return python_none();
}

static PyObject *stacks_stop(PyObject *self, PyObject *arg)
{
	on = false;
	sampler_end();
	return python_none();
}

/* stacks_place(path, line, function, foreign): the text of the place, or None. */
static PyObject *stacks_place(PyObject *self, PyObject *args)
{
	const char *path, *function;
	char room[160];
	int line, foreign;

	if (!PyArg_ParseTuple(args, "sisi", &path, &line, &function, &foreign))
		return NULL;
	if (!on || !stack_text_place(path, line, function, foreign, room, sizeof(room)))
		return python_none();
	return PyUnicode_FromString(room);
}

int stacks_init(PyObject *module, const struct headrace_api *functions)
{
	static struct python_method methods[] = {
	    {"stacks_start", stacks_start, METH_VARARGS, NULL},
	    {"stacks_pause", stacks_pause, METH_VARARGS, NULL},
	    {"stacks_worker", stacks_worker, METH_VARARGS, NULL},
	    {"stacks_group", stacks_group, METH_O, NULL},
	    {"stacks_stop", stacks_stop, METH_VARARGS, NULL},
	    {"stacks_place", stacks_place, METH_VARARGS, NULL},
	    {NULL, NULL, 0, NULL},
	};

	api = functions;
	return PyModule_AddFunctions(module, methods);
}
