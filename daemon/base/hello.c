/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/hello.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Checks HR_ITEM_COVER: its values are addresses that probes in the kernel read. */
static bool cover_sane(const uint8_t *msg, size_t bytes)
{
	struct hr_hello_item item;
	size_t at = 0;

	while (hr_hello_next(msg, bytes, &at, &item))
		if (item.kind == HR_ITEM_COVER && item.bytes != sizeof(struct hr_item_cover))
			return false;
	return true;
}

int hr_hello_check(const uint8_t *msg, size_t bytes, struct hr_hello *ret)
{
	if (bytes < sizeof(*ret) || bytes > HR_HELLO_MAX_BYTES)
		return -EBADMSG;
	memcpy(ret, msg, sizeof(*ret));
	if (ret->magic != HR_ABI_MAGIC)
		return -EBADMSG;
	/* All ABI versions have the fields above, so the answer can report an unknown version. */
	if (!hr_served(ret->abi) || (ret->word_bytes != 4 && ret->word_bytes != 8))
		return -EPROTO;
	if (ret->bytes != bytes || ret->kind < HR_HELLO_ATTACH || ret->kind > HR_HELLO_EXEC ||
	    !cover_sane(msg, bytes))
		return -EBADMSG;
	return 0;
}

bool hr_hello_next(const uint8_t *msg, size_t bytes, size_t *at, struct hr_hello_item *ret)
{
	struct hr_item_hdr hdr;

	if (*at < sizeof(struct hr_hello))
		*at = sizeof(struct hr_hello);
	if (bytes < *at || bytes - *at < sizeof(hdr))
		return false;
	memcpy(&hdr, msg + *at, sizeof(hdr));
	if (hdr.bytes > bytes - *at - sizeof(hdr))
		return false;
	*ret = (struct hr_hello_item){hdr.kind, hdr.bytes, msg + *at + sizeof(hdr)};
	*at += sizeof(hdr) + hdr.bytes;
	return true;
}

bool hr_hello_discard(int fd)
{
	char byte;
	int n = 0;

	while (n < 2 && recv(fd, &byte, 1, MSG_DONTWAIT) > 0)
		n++;
	return n == 2;
}
