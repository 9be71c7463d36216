/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello.h - the shim's side of the handshake's first message
 *
 * Threads   The holder of the attach lock. The message lies in a static buffer until the next build.
 */
#ifndef HEADRACE_SHIM_CORE_HELLO_H
#define HEADRACE_SHIM_CORE_HELLO_H

#include "shim/core/internal.h"

/* Bytes of the message. Private counters move into it: give them back if it did not arrive. */
size_t hr__hello_build(enum hr_hello_kind kind, bool forked, const void **ret_message);
void hr__hello_counters_return(void);
/* The same buffer, for whatever the holder of the lock needs to read; HR_HELLO_MAX_BYTES. */
char *hr__hello_scratch(void);

#endif
