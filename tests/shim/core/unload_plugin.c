/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that brings libaio with it: one request for the first byte of a file. Its result, or why it was not made. */
#include <errno.h>
#include <libaio.h>

int plugin_read(int fd);

int plugin_read(int fd)
{
	io_context_t context = NULL;
	struct iocb cb, *list[] = {&cb};
	struct io_event event = {.res = 0};
	char byte;
	int r = io_setup(1, &context);

	io_prep_pread(&cb, fd, &byte, 1, 0);
	if (r == 0)
		r = io_submit(context, 1, list);
	if (r == 1)
		r = io_getevents(context, 1, 1, &event, NULL);
	if (context != NULL)
		io_destroy(context);
	return r == 1 ? (int)event.res : r;
}
