/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handshake.h - one handshake with the daemon: its messages and descriptors
 *
 * Threads   Only the holder of the attach lock calls these functions, with all signals blocked. Any
 *           thread may call hr__session_fd_taken (internal.h).
 * Lifetime  From hr__handshake_hello to hr__session_fds_drop, which closes all open descriptors.
 */
#ifndef HEADRACE_SHIM_CORE_HANDSHAKE_H
#define HEADRACE_SHIM_CORE_HANDSHAKE_H

#include "shim/core/internal.h"

enum hr__own { HR__OWN_SOCKET, HR__OWN_MAP, HR__OWN_NODE, HR__OWN_COUNT };

/* Functions of a handshake. Times are in ns of CLOCK_MONOTONIC; an int result is 0 or -errno. */

/* flags: HR_HELLO_FORKED, HR_HELLO_AGAIN. */
int hr__handshake_hello(enum hr_hello_kind kind, uint32_t flags, uint64_t until_ns);

/*
 * Receives the answer and its descriptors, HR__OWN_MAP and HR__OWN_NODE. -EAGAIN: no answer arrived
 * in time or, if `look`, the daemon is stopped. -ECONNRESET: the daemon closed the connection.
 * Other errors: the daemon refused.
 */
int hr__handshake_answer(uint64_t until_ns, bool look, struct hr_ack *ret_ack);

/* Makes HR__OWN_MAP: a sealed memfd of `bytes` zeros. The first access allocates a page. */
int hr__handshake_memory(uint64_t bytes);

/* Sends HR__OWN_MAP to the daemon. -EPIPE: the daemon has read the hello, and will answer. */
int hr__handshake_offer(uint64_t token);

/* Maps a descriptor of the handshake. NULL: mmap failed, or the file could shrink. */
void *hr__handshake_map(enum hr__own which, uint64_t bytes, int prot);

#endif
