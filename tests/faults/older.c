/* SPDX-License-Identifier: Apache-2.0 */
/*
 * older.c - what a daemon of the first release says: linked with --wrap=hr_wire_pack
 *
 * All that a collector can do without is missing (proto/wire.proto): who makes the daemon and when its node was started, and which
 * frames of a stream it still has. Without those there is no failover.
 */
#include "net/wire.h"

int older_pack(const Headrace__Wire *msg, uint8_t **ret_buf,
	       size_t *ret_bytes) __asm__("__wrap_hr_wire_pack");
int plain_pack(const Headrace__Wire *msg, uint8_t **ret_buf,
	       size_t *ret_bytes) __asm__("__real_hr_wire_pack");

int older_pack(const Headrace__Wire *msg, uint8_t **ret_buf, size_t *ret_bytes)
{
	Headrace__Wire older = *msg;
	Headrace__Hello hello = HEADRACE__HELLO__INIT;
	Headrace__Open open;

	if (msg->body_case == HEADRACE__WIRE__BODY_HELLO) {
		hello.min_version = msg->hello->min_version;
		hello.max_version = msg->hello->max_version;
		hello.node = msg->hello->node;
		older.hello = &hello;
	} else if (msg->body_case == HEADRACE__WIRE__BODY_OPEN) {
		open = *msg->open;
		open.first_seq = open.last_seq = 0;
		older.open = &open;
	}
	return plain_pack(&older, ret_buf, ret_bytes);
}
