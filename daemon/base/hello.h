/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hello.h - reading a client's hello, which may be any bytes
 *
 * Pure functions over the caller's memory, but the last; any thread.
 */
#ifndef HEADRACE_DAEMON_BASE_HELLO_H
#define HEADRACE_DAEMON_BASE_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/abi.h"

struct hr_hello_item {
	uint16_t kind; /* enum hr_item_kind, or one that we do not know */
	uint16_t bytes;
	const uint8_t *value; /* in the message; unaligned, not terminated */
};

/*
 * Copies the fixed part. -EBADMSG: not a hello, lengths that contradict each other, a HR_ITEM_COVER of another length; -EPROTO: another ABI version or word
 * size than this daemon serves.
 */
int hr_hello_check(const uint8_t *msg, size_t bytes, struct hr_hello *ret);

/* The item at *at (0 at first), and moves *at on; false at the end, or where the rest is malformed. */
bool hr_hello_next(const uint8_t *msg, size_t bytes, size_t *at, struct hr_hello_item *ret);

/*
 * Takes out what a connection still holds, a hello and an offer, before it is closed: a client whose messages are closed on gets
 * ECONNRESET in the place of the answer that was sent to it. Whether there was an offer: its maker does not come again.
 */
bool hr_hello_discard(int fd);

#endif
