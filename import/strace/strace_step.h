/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strace_step.h - a finished call while it is converted; one thread
 *
 *      strace_call.c     all calls
 *      strace_opens.c    calls that open, copy or close descriptors
 */
#ifndef HEADRACE_IMPORT_STRACE_STRACE_STEP_H
#define HEADRACE_IMPORT_STRACE_STRACE_STEP_H

#include "import/strace/strace_state.h"

struct strace_step {
	const struct strace_shape *shape;
	struct hr_strace_call c;
	struct strace_task *task;
	struct strace_process *of;
	struct hr_event e;
};

/* The argument at a position of the table. strace shows an offset in two halves as one. */
static inline struct hr_strace_text arg_at(const struct strace_step *k, unsigned position)
{
	if (position > k->c.n_args)
		position = k->c.n_args;
	return position ? k->c.arg[position - 1] : (struct hr_strace_text){0};
}

static inline int64_t number_at(const struct strace_step *k, unsigned position, int64_t otherwise)
{
	struct hr_strace_text rest;
	int64_t v;

	return position && hr__strace_number(arg_at(k, position), &v, &rest) ? v : otherwise;
}

static inline bool fd_at(const struct strace_step *k, unsigned position, struct hr_strace_fd *ret)
{
	return hr__strace_fd(arg_at(k, position), ret);
}

/* ---- strace_call.c ---- */

/* The file of the path at `position`, whose folder is before it if the table has `at`. 0: none. */
uint32_t hr__strace_path_at(struct strace *p, struct strace_step *k, unsigned position);
/* Adds the operation. 0; -EBADMSG; other errors are fatal. */
int hr__strace_send(struct strace *p, struct strace_step *k);
/* A call whose first argument is a descriptor. */
int hr__strace_fd_call(struct strace *p, struct strace_step *k);

/* ---- strace_opens.c ---- */

/* Such a call: STRACE_OPEN and the like. */
int hr__strace_descriptor_call(struct strace *p, struct strace_step *k);

#endif
