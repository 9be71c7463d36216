/* SPDX-License-Identifier: Apache-2.0 */
/* hello.h - reads the hello of a client, which may be any bytes. Any thread. */
#ifndef HEADRACE_DAEMON_BASE_HELLO_H
#define HEADRACE_DAEMON_BASE_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/abi.h"

struct hr_hello_item {
	uint16_t kind; /* enum hr_item_kind; may be unknown */
	uint16_t bytes;
	const uint8_t *value; /* points into the message; not aligned, without a terminator */
};

/*
 * Checks a hello, and copies its fixed part. -EBADMSG: it is not a hello, or a length is wrong;
 * -EPROTO: this daemon does not serve its ABI version or word size.
 */
int hr_hello_check(const uint8_t *msg, size_t bytes, struct hr_hello *ret);

/* Reads the item at *at (first 0), and advances *at. False: at the end, or the item is invalid. */
bool hr_hello_next(const uint8_t *msg, size_t bytes, size_t *at, struct hr_hello_item *ret);

/*
 * Call it before close(). Reads the remaining messages: otherwise, the client gets ECONNRESET
 * instead of the answer. Returns true if one was an offer: then the client does not connect again.
 */
bool hr_hello_discard(int fd);

/*
 * Returns whether this daemon serves a version of abi.h: its own or the one before. A node is
 * upgraded while its jobs run, and running processes keep their shim. Only this function
 * distinguishes versions. A client of an unknown version is not recorded, but counted, and gets the
 * answer EPROTO: magic, abi and status of an answer have the same place in all versions.
 */
static inline bool hr_served(uint32_t abi)
{
	return abi == HR_ABI_VERSION || (HR_ABI_VERSION > 1 && abi == HR_ABI_VERSION - 1);
}

#endif
