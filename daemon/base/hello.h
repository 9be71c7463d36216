/* SPDX-License-Identifier: Apache-2.0 */
/* hello.h - reads a client's hello, which may be any bytes. Any thread. */
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
 * Copies the fixed part. -EBADMSG: no hello, contradictory lengths, or a wrong length of
 * HR_ITEM_COVER; -EPROTO: an ABI version or word size that this daemon does not serve.
 */
int hr_hello_check(const uint8_t *msg, size_t bytes, struct hr_hello *ret);

/* Reads the item at *at (first 0), and advances *at; false: the end, or malformed. */
bool hr_hello_next(const uint8_t *msg, size_t bytes, size_t *at, struct hr_hello_item *ret);

/*
 * Call it before close: reads what is left, a hello and an offer. Otherwise the client gets
 * ECONNRESET in place of the answer. True: an offer, so the client does not connect again.
 */
bool hr_hello_discard(int fd);

#endif
