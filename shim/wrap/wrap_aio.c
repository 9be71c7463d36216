/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_aio.c - POSIX asynchronous I/O
 *
 * libc does the I/O in its own threads, where no wrapper runs. So the submission is the operation.
 * It has the descriptor, offset and size of the request. Its duration is that of the submission or,
 * with LIO_WAIT, that of all requests of the list.
 */
#include "shim/wrap/wrap.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): parameters, types and names cannot have parentheses */

_Static_assert(sizeof(struct aiocb) == sizeof(struct aiocb64) &&
		   offsetof(struct aiocb, aio_offset) == offsetof(struct aiocb64, aio_offset),
	       "64-bit only");

static inline bool moves_data(const struct aiocb64 *cb)
{
	return cb != NULL && (cb->aio_lio_opcode == LIO_READ || cb->aio_lio_opcode == LIO_WRITE);
}

/* Begins lio_listio, with the file of the first request and the sum of all sizes. */
static void begin_list(struct hr_op *op, enum hr_op_id id, struct aiocb64 *const list[], int n)
{
	uint64_t asked = 0;
	int fd = -1;

	for (int i = 0; i < n; i++) {
		if (!moves_data(list[i]))
			continue;
		if (fd < 0)
			fd = list[i]->aio_fildes;
		asked += list[i]->aio_nbytes;
	}
	hr_begin_fd(op, id, fd, asked, HR_OFFSET_NONE);
}

/*
 * Records an operation for each request, so that its bytes count for its file. Call this before the
 * real call, because a notification may free a finished request. With LIO_WAIT, call it after the
 * real call.
 */
static void record_requests(enum hr_op_id read_id, enum hr_op_id write_id,
			    struct aiocb64 *const list[], int n, int64_t ret)
{
	for (int i = 0; i < n; i++) {
		struct hr_op op;

		if (!moves_data(list[i]))
			continue;
		hr_begin_fd(&op, list[i]->aio_lio_opcode == LIO_READ ? read_id : write_id,
			    list[i]->aio_fildes, list[i]->aio_nbytes, list[i]->aio_offset);
		hr_end(&op, ret, 0);
	}
}

#define LIO_LISTIO(name, type, read_name, write_name)                                              \
	int hr_wrap_##name(int mode, struct type *const list[], int n, struct sigevent *event)     \
	{                                                                                          \
		struct aiocb64 *const *list64 = (struct aiocb64 *const *)list;                     \
		enum hr_op_id read_id = HR_OP_##read_name, write_id = HR_OP_##write_name;          \
		struct hr_op op;                                                                   \
		int r;                                                                             \
                                                                                                   \
		if (mode != LIO_WAIT && mode != LIO_NOWAIT)                                        \
			return HR_REAL(name)(mode, list, n, event); /* the kernel reads no list */ \
		if (mode != LIO_WAIT)                                                              \
			record_requests(read_id, write_id, list64, n, 0);                          \
		begin_list(&op, HR_OP_##name, list64, n);                                          \
		r = HR_REAL(name)(mode, list, n, event);                                           \
		hr_end(&op, hr_ret(r), (uint32_t)mode);                                            \
		if (mode == LIO_WAIT)                                                              \
			record_requests(read_id, write_id, list64, n, hr_ret(r));                  \
		return r;                                                                          \
	}

LIO_LISTIO(lio_listio, aiocb, aio_read, aio_write)
LIO_LISTIO(lio_listio64, aiocb64, aio_read64, aio_write64)

/* NOLINTEND(bugprone-macro-parentheses) */
