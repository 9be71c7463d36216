/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message on the control socket, and the configuration of a private daemon, which has its form. A
 * value that was read must be the same after another round of writing and reading; a configuration
 * that was read can be packed and read again.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/control/control.h"
#include "daemon/control/private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct hr_message m, again;

static void check_value(const char *key)
{
	char value[HR_CONTROL_BYTES], copy[HR_CONTROL_BYTES];

	if (hr_message_get(&m, key, value, sizeof(value)) < 0)
		return;
	(void)hr_message_get(&m, key, copy, 4);
	hr_message_init(&again, "again");
	hr_message_add(&again, key, value);
	if (again.bytes >= sizeof(again.text)) /* escaping made it longer than a message may be */
		return;
	if (hr_message_check(&again) < 0 || hr_message_get(&again, key, copy, sizeof(copy)) < 0 ||
	    strcmp(copy, value) != 0)
		abort();
}

static int read_config(const struct hr_message *from, struct hr_private_config *ret)
{
	int fd = memfd_create("config", MFD_CLOEXEC), r;

	if (fd < 0 || write(fd, from->text, from->bytes) != (ssize_t)from->bytes)
		abort();
	r = hr_private_config_read(fd, ret);
	close(fd);
	return r;
}

static void check_config(void)
{
	struct hr_private_config first, second;

	if (read_config(&m, &first) < 0)
		return;
	if (hr_private_config_pack(&first, &again) == 0) {
		if (read_config(&again, &second) < 0 ||
		    strcmp(first.node.store, second.node.store) != 0 ||
		    first.node.max_bytes != second.node.max_bytes)
			abort();
		hr_private_config_done(&second);
	}
	hr_private_config_done(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const char *const keys[] = {"version", "pid",  "rank",	"linger_ns",
					   "text",    "shim", "label0", ""};

	if (bytes > sizeof(m.text)) /* what recv would have cut */
		return 0;
	memcpy(m.text, data, bytes);
	m.bytes = bytes;
	if (hr_message_check(&m) < 0)
		return 0;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		check_value(keys[i]);
		(void)hr_message_get_int(&m, keys[i], -1);
	}
	if (hr_message_is(&m, "config"))
		check_config();
	return 0;
}
