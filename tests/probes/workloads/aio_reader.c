/* SPDX-License-Identifier: Apache-2.0 */
/* aio_reader FOLDER JSON - reads and writes through libaio: io_submit, io_getevents. Status 77 where there is none. */
#include "account.h"

#include <fcntl.h>
#include <libaio.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEPTH 16
#define PIECE 4096
#define BYTES (DEPTH * PIECE)

static char data[BYTES];

/* DEPTH requests at once, the last one half behind the end of the file, accounted as they complete. */
static void submit(io_context_t context, struct account *a, int fd, bool reads, off_t first)
{
	struct iocb requests[DEPTH], *all[DEPTH];
	struct io_event events[DEPTH];

	for (int i = 0; i < DEPTH; i++) {
		off_t at = first + (off_t)i * PIECE;

		if (reads)
			io_prep_pread(&requests[i], fd, data + (size_t)i * PIECE, PIECE, at);
		else
			io_prep_pwrite(&requests[i], fd, data + (size_t)i * PIECE, PIECE, at);
		all[i] = &requests[i];
	}
	CHECK(io_submit(context, DEPTH, all) == DEPTH);
	CHECK(io_getevents(context, DEPTH, DEPTH, events, NULL) == DEPTH);
	for (struct io_event *e = events; e < events + DEPTH; e++) {
		struct iocb *r = e->obj;

		if (reads) {
			account_read(a, (long)e->res);
			account_check(r->u.c.buf, e->res, (uint64_t)r->u.c.offset);
		} else {
			account_written(a, (long)e->res);
		}
	}
}

int main(int argc, char **argv)
{
	io_context_t context = NULL;
	struct account *a;
	int r = io_setup(DEPTH, &context), fd;

	CHECK(argc == 3);
	if (r < 0) {
		fprintf(stderr, "aio_reader: io_setup: %s\n", strerror(-r));
		return 77;
	}
	a = account_file(argv[1], "aio", ACCOUNT_SHIM);
	fd = open(a->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	account_opened(a, fd);
	account_fill(data, sizeof(data), 0);
	submit(context, a, fd, false, 0);
	submit(context, a, fd, true, PIECE / 2);
	CHECK(a->bytes_read == BYTES - PIECE / 2);
	CHECK(io_destroy(context) == 0 && close(fd) == 0);
	account_end(argv[2]);
	return 0;
}
