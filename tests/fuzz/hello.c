/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's hello or offer, the messages that anybody on the node may send to headraced: every item must
 * lie within the message, in order, and the walk must end. What comes with an offer is tests/daemon/test_offer.c's.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/base/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void walk(const uint8_t *msg, size_t bytes, bool checked)
{
	const uint8_t *end = msg;
	struct hr_hello_item item;
	uint32_t sum = 0;
	size_t at = 0;

	while (hr_hello_next(msg, bytes, &at, &item)) {
		if (checked && item.kind == HR_ITEM_COVER &&
		    item.bytes != sizeof(struct hr_item_cover))
			abort();
		if (item.value < end || item.value + item.bytes > msg + bytes || at > bytes)
			abort();
		end = item.value + item.bytes;
		for (uint16_t i = 0; i < item.bytes; i++)
			sum += item.value[i]; /* the sanitizer sees every byte touched */
	}
	(void)*(volatile uint32_t *)&sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t *msg = malloc(bytes > 0 ? bytes : 1);
	struct hr_hello hello;
	bool checked;

	if (msg == NULL)
		return 0;
	memcpy(msg, data, bytes);
	checked = hr_hello_check(msg, bytes, &hello) == 0;
	if (checked && (hello.bytes != bytes || hello.magic != HR_ABI_MAGIC ||
			hello.kind < HR_HELLO_ATTACH || hello.kind > HR_HELLO_OFFER))
		abort();
	walk(msg, bytes,
	     checked); /* whatever the fixed part says: the walk trusts it no more than we do */
	free(msg);
	return 0;
}
