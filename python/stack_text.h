/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_text.h - a Python stack as text, for the args of a fetch
 *
 * A frame is `file:line function`. The file of a frame below the project's folder is relative to
 * this folder; other files have their last two parts.
 *
 * Threads   stack_text_read() needs no lock of Python; one thread at a time calls it.
 */
#ifndef HEADRACE_PYTHON_STACK_TEXT_H
#define HEADRACE_PYTHON_STACK_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "python/stable_abi.h"

struct stack_text {
	char line[160];	 /* innermost frame that is not foreign; else up to three innermost ones */
	char stack[400]; /* innermost first, with " < " between frames; outer ones may not fit */
	bool in_fetch;	 /* it ends at the caller of a fetch */
	bool in_model;	 /* a module of torch.nn is called, and none of torchmetrics */
	/* The framework that compiles a function: "jax", "torch", "tensorflow"; NULL: none. */
	const char *compiler;
};

/*
 * Sets the project's folder (absolute, or ""), the files of the code that calls fetches, and the
 * folders with foreign code (NULL-terminated). Nothing is copied: all texts must stay.
 */
void stack_text_set(const char *folder, const char *const *callers, const char *const *foreign);

/*
 * Writes the text of a place, which needs no escapes in JSON. Returns false if it does not fit, or
 * if its file is foreign and `foreign` is false. Call stack_text_set() before.
 */
bool stack_text_place(const char *path, int line, const char *function, bool foreign, char *room,
		      size_t size);

/* Replaces the bytes that JSON would escape. */
void stack_text_plain(char *text);

/* Forgets what was read. For a forked child: another thread of its parent may have been reading. */
void stack_text_forget(void);

/*
 * Reads the stack of a thread, up to the caller of a fetch. The texts need no escapes in JSON.
 * Returns false if it has no frame, or if its stack cannot be read.
 */
bool stack_text_read(const PyThreadState *thread, struct stack_text *ret);

#endif
