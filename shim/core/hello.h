/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello.h - builds the shim's hello
 *
 * Threads   Only the holder of the attach lock. The message is static, and valid until the next
 *           call.
 */
#ifndef HEADRACE_SHIM_CORE_HELLO_H
#define HEADRACE_SHIM_CORE_HELLO_H

#include "shim/core/internal.h"

/* flags: HR_HELLO_FORKED, HR_HELLO_AGAIN. */
/* Returns the size. Moves the counted totals into the hello; if it is not sent, return them. */
size_t hr__hello_build(enum hr_hello_kind kind, uint32_t flags, const void **ret_message);
void hr__hello_counters_return(void);
/* Call it when headraced has answered: it has the totals, even if this process cannot use its map. */
void hr__hello_counters_sent(void);
/* Scratch memory of HR_HELLO_MAX_BYTES for the holder of the attach lock. */
char *hr__hello_scratch(void);

#endif
