/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headrace.h - what a program can say to headrace: what it is doing
 *
 * Purpose   Names spans of time, steps and epochs, so that I/O can be laid beside them: `headrace query ... steps`,
 *           `input-wait`, `checkpoints`. Everything here does nothing, in a nanosecond, where libheadrace.so is not
 *           preloaded: there is no library to link against.
 * Threads   Any. Ranges belong to the thread that began them, steps and epochs to the process; a forked child begins with none.
 * Errors    None: what cannot be recorded is counted, and queries say so.
 * Cost      A range with a name of its own (below): two reads of the clock and a record of 64 bytes, 60 ns.
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
#define HEADRACE_NONE	     INT64_MIN /* step, epoch: none */

/* What a region is: as in the column `kind` of the table regions. */
enum headrace_kind {
	HEADRACE_RANGE = 1,
	HEADRACE_MARK = 3,
	HEADRACE_INPUT_WAIT = 6, /* the training loop waits for its next batch */
	HEADRACE_FETCH = 7,	 /* a loader's worker makes a batch */
	HEADRACE_OPTIMIZER = 8,
	HEADRACE_CHECKPOINT = 9,
	HEADRACE_RESTORE = 10
};

/*
 * What a region is called. It and its texts must not change, and live as long as anybody uses them; best they are
 * static. Texts are UTF-8, by convention; of more than 1,000 bytes the rest is cut. NULL in its place: nothing is said.
 */
struct headrace_name {
	const char *name;
	const char *domain;   /* who names: a library, a program; NULL: none */
	const char *category; /* NULL: none */
	uint32_t kind;	      /* enum headrace_kind; 0, and any other: HEADRACE_RANGE */
	uint32_t reserved0;   /* 0: libheadrace.so keeps what it made of the texts here */
	uint64_t reserved[2];
};

/*
 * What libheadrace.so offers, in one table, for languages that look functions up. Later versions add to its end; `bytes`
 * says how long it is.
 */
struct headrace_api {
	uint32_t version;
	uint32_t bytes;
	/* The thread begins, ends its innermost range. args: a JSON object as text, or NULL. */
	void (*begin)(struct headrace_name *name);
	void (*end)(const char *args);
	/* A span that another thread may end, or none does. 0: too many are open. */
	uint64_t (*start)(struct headrace_name *name);
	void (*finish)(uint64_t span, const char *args);
	/* A moment. */
	void (*mark)(struct headrace_name *name, const char *args);
	/* Ends the step (epoch) that the process is in, and begins number `step`, unless it is HEADRACE_NONE. */
	void (*step)(int64_t step);
	void (*epoch)(int64_t epoch);
	/* "NAME=VALUE", as if the variable were in the environment since the start: RANK, LOCAL_RANK, WORLD_SIZE... */
	void (*variable)(const char *text);
	/* Whether anything of this is recorded now. */
	int (*recording)(void);
	/* For who learns late what a moment was the beginning of. A moment of this process; not in a known unit. */
	uint64_t (*now)(void);
	/* As step and epoch: the one before ends, this one begins at that moment. 0, or one to come: now. */
	void (*step_at)(int64_t step, uint64_t moment);
	void (*epoch_at)(int64_t epoch, uint64_t moment);
	/* The step that the process is in was none: it ends, and is not recorded. */
	void (*step_undo)(void);
};

/* Of libheadrace.so; NULL when it does not know this version. */
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
