/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello.h - reads a client's hello, which may be any bytes
 *
 * Threads   Any. All but hr_hello_discard are pure functions over the caller's memory.
 */
#ifndef HEADRACE_DAEMON_BASE_HELLO_H
#define HEADRACE_DAEMON_BASE_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/abi.h"

struct hr_hello_item {
	uint16_t kind; /* enum hr_item_kind, or an unknown one */
	uint16_t bytes;
	const uint8_t *value; /* in the message; unaligned, not terminated */
};

/*
 * Copies the fixed part. -EBADMSG: not a hello, lengths that contradict each other, or an
 * HR_ITEM_COVER of another length; -EPROTO: an ABI version or word size that this daemon does not
 * serve.
 */
int hr_hello_check(const uint8_t *msg, size_t bytes, struct hr_hello *ret);

/*
 * Reads the item at *at (0 at first) and advances *at; false at the end, or if the rest is
 * malformed.
 */
bool hr_hello_next(const uint8_t *msg, size_t bytes, size_t *at, struct hr_hello_item *ret);

/*
 * Removes the messages that a connection still holds, a hello and an offer. Call before close:
 * otherwise the client gets ECONNRESET in place of the answer. True: there was an offer, so the
 * client does not connect again.
 */
bool hr_hello_discard(int fd);

#endif
