/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packet on a control socket, and the configuration of a daemon. A message that was received can
 * be sent and received again; a configuration that was read can be written and read again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/control/control.h"
#include "daemon/control/private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_packet(const uint8_t *data, size_t bytes)
{
	Headrace__Control *m, *again;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) < 0)
		abort();
	if (send(pair[0], data, bytes, 0) == (ssize_t)bytes && hr_control_recv(pair[1], &m) == 0) {
		/* Two fields of the same kind are merged: a message may grow. */
		r = hr_control_send(pair[1], m->kind_case, &m->done->base);
		if (r < 0 && r != -EMSGSIZE)
			abort();
		if (r == 0 && hr_control_recv(pair[0], &again) < 0)
			abort();
		if (r == 0 && again->kind_case != m->kind_case)
			abort();
		if (r == 0)
			hr_control_free(again);
		hr_control_free(m);
	}
	close(pair[0]);
	close(pair[1]);
}

static int memory_file(void)
{
	int fd = memfd_create("config", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	return fd;
}

static void check_config(const uint8_t *data, size_t bytes)
{
	int fd = memory_file(), copy = memory_file();
	struct hr_private_config first, second;

	if (write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	if (hr_private_config_read(fd, &first) == 0) {
		if (hr_private_config_write(&first, copy) == 0) {
			if (hr_private_config_read(copy, &second) < 0 ||
			    strcmp(first.node.store, second.node.store) != 0 ||
			    first.node.max_bytes != second.node.max_bytes)
				abort();
			hr_private_config_done(&second);
		}
		hr_private_config_done(&first);
	}
	close(fd);
	close(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	check_packet(data, bytes);
	check_config(data, bytes);
	return 0;
}
