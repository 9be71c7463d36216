/* SPDX-License-Identifier: Apache-2.0 */
/*
 * talk.h - one conversation with the daemon: what is said and heard, and the descriptors that it takes
 *
 * Threads   The holder of the attach lock, with all signals blocked. hr__session_fd_taken (internal.h): any.
 * Lifetime  From hr__talk_hello to hr__session_fds_drop, which closes whatever is open still.
 */
#ifndef HEADRACE_SHIM_CORE_TALK_H
#define HEADRACE_SHIM_CORE_TALK_H

#include "shim/core/internal.h"

enum hr__own { HR__OWN_SOCKET, HR__OWN_MAP, HR__OWN_NODE, HR__OWN_COUNT };

/* Times are of CLOCK_MONOTONIC, ns. All return 0 or -errno. */

/* Connects and says hello. -ETIMEDOUT: the daemon's backlog stayed full. */
int hr__talk_hello(enum hr_hello_kind kind, bool forked, uint64_t until_ns);

/*
 * The answer; its descriptors are then ours, as HR__OWN_MAP and HR__OWN_NODE. -EAGAIN: there will be none soon, because
 * time is over or, with `look`, because the daemon is stopped. The daemon's refusal; -ECONNRESET: it hung up.
 */
int hr__talk_answer(uint64_t until_ns, bool look, struct hr_ack *ret_ack);

/* Makes HR__OWN_MAP: sealed memory of `bytes` zeros, which take no memory until they are touched. */
int hr__talk_memory(uint64_t bytes);

/* Sends HR__OWN_MAP behind the hello. -EPIPE: too late, the daemon has read the hello, and an answer is coming. */
int hr__talk_offer(uint64_t token);

/* Maps a descriptor of ours if it can no longer shrink (a fault in it would be ours to explain); NULL. */
void *hr__talk_map(enum hr__own which, uint64_t bytes, int prot);

#endif
