/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace.h - reports regions, steps and epochs of a program to headrace
 *
 * Queries can compare I/O with these named spans of time: `headrace query ... steps`, `input-wait`,
 * `checkpoints`. A program links no library. Without a preloaded libheadrace.so, each function
 * returns after a nanosecond.
 *
 * Threads   Any thread may call these functions. A range belongs to the thread that began it, a
 *           step or epoch to the process. A forked child begins without ranges, steps and epochs.
 * Errors    None. Regions that cannot be recorded are counted, and queries show the count.
 * Cost      A range with a static name (below): two reads of the clock and a record of 64 bytes,
 *           60 ns.
 *
 *      #include <headrace.h>
 *
 *      static struct headrace_name load = {.name = "load shard", .domain = "reader"};
 *
 *      for (int64_t i = 0; i < steps; i++) {
 *              headrace_step(i);
 *              headrace_begin(&load);
 *              ...
 *              headrace_end();
 *      }
 *      headrace_step(HEADRACE_NONE);
 */
#ifndef HEADRACE_H
#define HEADRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEADRACE_API_VERSION 1
#define HEADRACE_NONE	     INT64_MIN /* value for "no step" and "no epoch" */

/* The kind of a region, as in the column `kind` of the table `regions`. */
enum headrace_kind {
	HEADRACE_RANGE = 1,
	HEADRACE_MARK = 3,
	HEADRACE_INPUT_WAIT = 6, /* the training loop waits for its next batch */
	HEADRACE_FETCH = 7,	 /* a DataLoader worker makes a batch */
	HEADRACE_OPTIMIZER = 8,
	HEADRACE_CHECKPOINT = 9,
	HEADRACE_RESTORE = 10
};

/*
 * The name of a region. Make it static if possible, because the struct and its texts must not
 * change while they are in use. Texts are UTF-8 by convention, and cut after 1,000 bytes. If `name`
 * is NULL, the call does nothing.
 */
struct headrace_name {
	const char *name;
	const char *domain;   /* the library or program that defines the name; NULL: none */
	const char *category; /* NULL: none */
	uint32_t kind;	      /* enum headrace_kind; 0 or an unknown value: HEADRACE_RANGE */
	uint32_t reserved0;   /* initially 0; libheadrace.so stores a number here */
	uint64_t reserved[2];
};

/*
 * The functions of libheadrace.so in one table, for languages that find symbols at run time.
 * `bytes` is the size of the table. Later versions add functions at its end.
 */
struct headrace_api {
	uint32_t version;
	uint32_t bytes;
	/* Begins a range; `end` ends the thread's innermost range. args: a JSON object, or NULL. */
	void (*begin)(struct headrace_name *name);
	void (*end)(const char *args);
	/* Starts a span, which any thread may finish. Returns its handle; 0: too many are open. */
	uint64_t (*start)(struct headrace_name *name);
	void (*finish)(uint64_t span, const char *args);
	void (*mark)(struct headrace_name *name, const char *args); /* a moment */
	/* Ends the current step (epoch), and begins the given one unless it is HEADRACE_NONE. */
	void (*step)(int64_t step);
	void (*epoch)(int64_t epoch);
	/* "NAME=VALUE" has the effect of an initial environment variable: RANK, LOCAL_RANK... */
	void (*variable)(const char *text);
	int (*recording)(void); /* not 0: regions of this process are recorded now */
	/* Returns the time in an unspecified unit, for step_at and epoch_at of this process. */
	uint64_t (*now)(void);
	/* Like step and epoch, for a change at `moment`. 0 or a time in the future means now. */
	void (*step_at)(int64_t step, uint64_t moment);
	void (*epoch_at)(int64_t epoch, uint64_t moment);
	void (*step_undo)(void); /* ends the current step without recording it */
	/*
	 * How long this thread has waited since its first call of this function, in nanoseconds:
	 * asleep, for the network, for locks. docs/python.md lists the calls that count.
	 */
	void (*waited)(uint64_t ret_ns[3]);
	/*
	 * For tools that trace the functions of a program: their ranges are a stack of their own,
	 * so `end` ends none of them. `enter` begins a range, and `leave` ends the innermost one.
	 * The thread's other ranges count in their `depth`, and they count in that of others.
	 */
	void (*enter)(struct headrace_name *name);
	void (*leave)(void);
	/*
	 * Records a range of this thread from `moment` until now, for tools that keep open ranges
	 * themselves because they are too many. 0 or a time in the future means now.
	 */
	void (*passed)(struct headrace_name *name, uint64_t moment);
	/*
	 * Records this process and its later children from now on, into the daemon that listens on
	 * `socket` (the path of a Unix socket, at most 107 bytes); what happened before is not
	 * recorded. NULL: ends that recording. May take a second. Returns 0 or -errno: -EALREADY: a
	 * recording runs; -ENOTSUP: this process is excluded from recording; -EPERM: a seccomp
	 * filter exists; other errors: the daemon cannot be reached. For headrace.record() of
	 * Python.
	 */
	int (*record)(const char *socket);
};

/* libheadrace.so defines this function. Returns NULL if it does not support this version. */
const struct headrace_api *headrace_api(uint32_t version)
#if defined(__GNUC__)
    __attribute__((weak))
#endif
    ;

static inline const struct headrace_api *headrace__get(void)
{
	return headrace_api ? headrace_api(HEADRACE_API_VERSION) : NULL;
}

static inline void headrace_begin(struct headrace_name *name)
{
	const struct headrace_api *api = headrace__get();

	if (api)
		api->begin(name);
}

static inline void headrace_end(void)
{
	const struct headrace_api *api = headrace__get();

	if (api)
		api->end(NULL);
}

static inline void headrace_end_with(const char *args)
{
	const struct headrace_api *api = headrace__get();

	if (api)
		api->end(args);
}

static inline uint64_t headrace_start(struct headrace_name *name)
{
	const struct headrace_api *api = headrace__get();

	return api ? api->start(name) : 0;
}

static inline void headrace_finish(uint64_t span)
{
	const struct headrace_api *api = headrace__get();

	if (api)
		api->finish(span, NULL);
}

static inline void headrace_mark(struct headrace_name *name, const char *args)
{
	const struct headrace_api *api = headrace__get();

	if (api)
		api->mark(name, args);
}

static inline void headrace_step(int64_t step)
{
	const struct headrace_api *api = headrace__get();

	if (api)
		api->step(step);
}

static inline void headrace_epoch(int64_t epoch)
{
	const struct headrace_api *api = headrace__get();

	if (api)
		api->epoch(epoch);
}

#ifdef __cplusplus
}
#endif

#endif
