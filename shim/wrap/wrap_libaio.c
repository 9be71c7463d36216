/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_libaio.c - the kernel's asynchronous I/O, by libaio's functions and by syscall()
 *
 * Each request is an event, from its submission until io_getevents returns the address of its
 * control block. The shim reads the control block before the submission, because the program may
 * free it afterwards. At that time the kernel has not checked the pointers, so the shim tests the
 * pages by system calls. libaio's functions return -errno and do not change errno.
 */
#include <linux/aio_abi.h>

#include "shim/wrap/wrap.h"

#define PAGE	    4096u
#define NO_PAGE	    UINTPTR_MAX
#define VECTOR_MOST 1024u /* the kernel's limit (IOV_MAX) */

/* The list of the running io_submit. libaio >= 0.3.112 passes it to the wrapper of syscall(). */
static __thread struct iocb *const *in_flight;

/* *page: the last page that was readable, so that each page of an array is tested only once. */
static bool readable(uintptr_t *page, const void *p, size_t bytes)
{
	uintptr_t at = (uintptr_t)p, end = at + bytes;

	if (end < at)
		return false;
	for (; at < end; at = (at | (PAGE - 1)) + 1) {
		if (at / PAGE == *page)
			continue;
		if (!hr_readable((const void *)at))
			return false;
		*page = at / PAGE;
	}
	return true;
}

static uint64_t vector_bytes(uintptr_t *page, const struct iocb *cb)
{
	const struct iovec *iov = (const struct iovec *)(uintptr_t)cb->aio_buf;

	if (cb->aio_nbytes > VECTOR_MOST || !readable(page, iov, cb->aio_nbytes * sizeof(*iov)))
		return HR_ASKED_NONE; /* the kernel will refuse the request */
	return hr_iov_bytes(iov, (int)cb->aio_nbytes);
}

/* False: the request has no file (a poll), or its opcode is unknown. */
static bool request_of(uintptr_t *page, const struct iocb *cb, struct hr_request *ret)
{
	static const uint16_t ids[] = {
	    [IOCB_CMD_PREAD] = HR_OP_io_pread,	 [IOCB_CMD_PWRITE] = HR_OP_io_pwrite,
	    [IOCB_CMD_FSYNC] = HR_OP_io_fsync,	 [IOCB_CMD_FDSYNC] = HR_OP_io_fdsync,
	    [IOCB_CMD_PREADV] = HR_OP_io_preadv, [IOCB_CMD_PWRITEV] = HR_OP_io_pwritev,
	};
	uint16_t how = cb->aio_lio_opcode;

	if (how >= sizeof(ids) / sizeof(ids[0]) || ids[how] == HR_OP_NONE)
		return false;
	*ret = (struct hr_request){
	    .id = ids[how],
	    .fd = (int)cb->aio_fildes,
	    .bytes = cb->aio_nbytes,
	    .offset = cb->aio_offset,
	    .flags = (uint32_t)cb->aio_rw_flags,
	};
	if (how == IOCB_CMD_PREADV || how == IOCB_CMD_PWRITEV)
		ret->bytes = vector_bytes(page, cb);
	else if (how == IOCB_CMD_FSYNC || how == IOCB_CMD_FDSYNC) {
		ret->bytes = HR_ASKED_NONE;
		ret->offset = HR_OFFSET_NONE;
	}
	return true;
}

/* Begins io_submit, with the file of the first request and the sum of all sizes. */
void hr__submit_begin(struct hr__submission *s, long n, struct iocb *const list[])
{
	uintptr_t of_list = NO_PAGE, of_blocks = NO_PAGE, of_vectors = NO_PAGE;
	uint64_t asked = 0;
	int fd = -1;

	s->op.live = false;
	s->n_read = 0;
	if (list == in_flight && list != NULL)
		return;
	for (; list != NULL && s->n_read < n; s->n_read++) {
		const struct iocb *const *at = (const struct iocb *const *)&list[s->n_read];
		struct hr_request r;

		if (!readable(&of_list, at, sizeof(*at)) ||
		    !readable(&of_blocks, *at, sizeof(**at)))
			break; /* the kernel stops here, too */
		if (!request_of(&of_vectors, *at, &r))
			continue;
		hr_request_begin(*at, &r);
		asked += r.bytes != HR_ASKED_NONE ? r.bytes : 0;
		if (fd < 0)
			fd = r.fd;
	}
	hr_begin_fd(&s->op, HR_OP_io_submit, fd, asked, HR_OFFSET_NONE);
}

/* r: how many requests, from the first, the kernel has accepted, or -errno. */
void hr__submit_end(struct hr__submission *s, struct iocb *const list[], long r)
{
	for (long i = r > 0 ? r : 0; i < s->n_read; i++)
		hr_request_refused(list[i]);
	hr_end(&s->op, r, 0);
}

void hr__requests_over(const struct io_event *events, long n)
{
	for (long i = 0; i < n; i++)
		hr_request_end((const void *)(uintptr_t)events[i].obj, events[i].res);
}

int hr_wrap_io_submit(void *ctx, long n, struct iocb **list)
{
	/* not NULL if this is a signal handler that interrupts io_submit */
	struct iocb *const *outer = in_flight;
	struct hr__submission s;
	int r;

	hr__submit_begin(&s, n, list);
	in_flight = list;
	r = HR_REAL_UNLOADABLE(io_submit)(ctx, n, list);
	in_flight = outer;
	hr__submit_end(&s, list, r);
	return r;
}

int hr_wrap_io_getevents(void *ctx, long least, long n, struct io_event *events,
			 struct timespec *timeout)
{
	int r = HR_REAL_UNLOADABLE(io_getevents)(ctx, least, n, events, timeout);

	hr__requests_over(events, r);
	return r;
}

int hr_wrap_io_pgetevents(void *ctx, long least, long n, struct io_event *events,
			  struct timespec *timeout, sigset_t *mask)
{
	int r = HR_REAL_UNLOADABLE(io_pgetevents)(ctx, least, n, events, timeout, mask);

	hr__requests_over(events, r);
	return r;
}
