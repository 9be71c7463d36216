/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello.h - builds the shim's hello
 *
 * Threads   The holder of the attach lock. The static message is valid until the next.
 */
#ifndef HEADRACE_SHIM_CORE_HELLO_H
#define HEADRACE_SHIM_CORE_HELLO_H

#include "shim/core/internal.h"

/* Returns its bytes. Moves the private counters into it: if it is not sent, restore them. */
size_t hr__hello_build(enum hr_hello_kind kind, bool forked, const void **ret_message);
void hr__hello_counters_return(void);
/* The same buffer, as scratch memory for the holder of the lock; HR_HELLO_MAX_BYTES. */
char *hr__hello_scratch(void);

#endif
