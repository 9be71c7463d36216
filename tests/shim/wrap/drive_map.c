/* SPDX-License-Identifier: Apache-2.0 */
/* drive_map.c - mappings, and POSIX asynchronous I/O */
#include "drive.h"

#include <signal.h>
#include <sys/mman.h>

#define PAGE 4096

/* ---- mappings ------------------------------------------------------------------------------- */

static void *mapped(uint16_t id, int fd, void *addr, uint64_t bytes)
{
	assert_ptr_not_equal(addr, MAP_FAILED);
	assert_memory_equal(addr, TEXT, TEXT_BYTES);
	WANT(id, .fd = fd, .asked = bytes, .offset = 0, .flags = PROT_READ | MAP_SHARED << 4);
	return addr;
}

static void *map_data(uint64_t bytes)
{
	int fd = data_open(O_RDONLY);

	return mapped(HR_OP_mmap, fd, ON(hr_wrap_mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0)),
		      bytes);
}

#define MMAP(name)                                                                                 \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int fd = data_open(O_RDONLY), how = MAP_PRIVATE | MAP_ANONYMOUS;                   \
		void *p = ON(hr_wrap_##name(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0));            \
                                                                                                   \
		munmap(mapped(HR_OP_##name, fd, p, PAGE), PAGE);                                   \
		p = ON(hr_wrap_##name(NULL, PAGE, PROT_READ | PROT_WRITE, how, -1, 0));            \
		assert_ptr_not_equal(p, MAP_FAILED);                                               \
		munmap(p, PAGE);                                                                   \
		p = ON(hr_wrap_##name(NULL, PAGE, PROT_WRITE, MAP_SHARED, fd, 0));                 \
		assert_ptr_equal(p, MAP_FAILED);                                                   \
		assert_int_equal(errno, EACCES);                                                   \
		WANT(HR_OP_##name, .fd = fd, .asked = PAGE, .offset = 0, .ret = -EACCES,           \
		     .flags = PROT_WRITE | MAP_SHARED << 4);                                       \
	}

MMAP(mmap)
MMAP(mmap64)

void drive_munmap(void)
{
	char *p = map_data(PAGE);

	assert_int_equal(ON(hr_wrap_munmap(p, PAGE)), 0);
	WANT(HR_OP_munmap, .asked = PAGE);
	stub_on();
	assert_int_equal(hr_map_find(p), HR_FILE_IGNORED);
	stub_off();
	assert_failed(ON(hr_wrap_munmap(p + 1, PAGE)), EINVAL);
	p = map_data(PAGE);
	/* Memory takes the place of the file: what happens there now is no operation. */
	assert_ptr_equal(
	    ON(hr_wrap_mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)),
	    p);
	assert_int_equal(ON(hr_wrap_munmap(p, PAGE)), 0);
}

void drive_mremap(void)
{
	char *p = map_data(PAGE), *to;

	to = ON(hr_wrap_mremap(p, PAGE, 4 * PAGE, MREMAP_MAYMOVE));
	assert_ptr_not_equal(to, MAP_FAILED);
	assert_memory_equal(to, TEXT, TEXT_BYTES);
	WANT(HR_OP_mremap, .asked = 4 * PAGE, .flags = MREMAP_MAYMOVE);
	assert_ptr_equal(ON(hr_wrap_mremap(to, PAGE, PAGE, ~0)), MAP_FAILED);
	assert_int_equal(errno, EINVAL);
	WANT(HR_OP_mremap, .asked = PAGE, .flags = ~0u, .ret = -EINVAL);
	assert_int_equal(ON(hr_wrap_munmap(to, 4 * PAGE)), 0);
	WANT(HR_OP_munmap, .asked = 4 * PAGE);
}

void drive_msync(void)
{
	char *p = map_data(PAGE);

	assert_int_equal(ON(hr_wrap_msync(p, PAGE, MS_SYNC)), 0);
	WANT(HR_OP_msync, .asked = PAGE, .flags = MS_SYNC);
	assert_failed(ON(hr_wrap_msync(p, PAGE, MS_SYNC | MS_ASYNC)), EINVAL);
	WANT(HR_OP_msync, .asked = PAGE, .flags = MS_SYNC | MS_ASYNC, .ret = -EINVAL);
}

void drive_madvise(void)
{
	char *p = map_data(PAGE);

	assert_int_equal(ON(hr_wrap_madvise(p, PAGE, MADV_WILLNEED)), 0);
	WANT(HR_OP_madvise, .asked = PAGE, .flags = MADV_WILLNEED);
	assert_failed(ON(hr_wrap_madvise(p, PAGE, 9999)), EINVAL);
	WANT(HR_OP_madvise, .asked = PAGE, .flags = 9999, .ret = -EINVAL);
}

void drive_posix_madvise(void)
{
	char *p = map_data(PAGE);

	assert_int_equal(ON(hr_wrap_posix_madvise(p, PAGE, POSIX_MADV_WILLNEED)), 0);
	WANT(HR_OP_posix_madvise, .asked = PAGE, .flags = POSIX_MADV_WILLNEED);
	assert_int_equal(ON(hr_wrap_posix_madvise(p, PAGE, 9999)), EINVAL);
	WANT(HR_OP_posix_madvise, .asked = PAGE, .flags = 9999, .ret = -EINVAL);
}

/* ---- aio ------------------------------------------------------------------------------------ */

static void await(const struct aiocb64 *cb)
{
	while (aio_error64(cb) == EINPROGRESS)
		aio_suspend64(&cb, 1, NULL);
}

/* aio_return of a request that is over gives what it moved. */
#define AIO(name, type, how, text)                                                                 \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		char buf[10] = "WWWWWWWWWW";                                                       \
		struct type cb = {.aio_fildes = data_open(how),                                    \
				  .aio_offset = 16,                                                \
				  .aio_buf = buf,                                                  \
				  .aio_nbytes = sizeof(buf)};                                      \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(&cb)), 0);                                      \
		await((struct aiocb64 *)&cb);                                                      \
		assert_int_equal(aio_return64((struct aiocb64 *)&cb), 10);                         \
		assert_memory_equal(buf, text, 10);                                                \
		WANT(HR_OP_##name, .fd = cb.aio_fildes, .asked = 10, .offset = 16);                \
	}

AIO(aio_read, aiocb, O_RDONLY, "0123456789")
AIO(aio_read64, aiocb64, O_RDONLY, "0123456789")
AIO(aio_write, aiocb, O_WRONLY, "WWWWWWWWWW")
AIO(aio_write64, aiocb64, O_WRONLY, "WWWWWWWWWW")

#define AIO_RETURN(name, type, submit)                                                             \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		char buf[10];                                                                      \
		struct type cb = {.aio_fildes = data_open(O_RDONLY),                               \
				  .aio_offset = 60,                                                \
				  .aio_buf = buf,                                                  \
				  .aio_nbytes = sizeof(buf)};                                      \
                                                                                                   \
		assert_int_equal(submit(&cb), 0);                                                  \
		await((struct aiocb64 *)&cb);                                                      \
		assert_int_equal(ON(hr_wrap_##name(&cb)), 4);                                      \
		WANT(HR_OP_##name, .fd = cb.aio_fildes, .asked = 10, .offset = 60, .ret = 4,       \
		     .flags = LIO_READ);                                                           \
	}

AIO_RETURN(aio_return, aiocb, aio_read)
AIO_RETURN(aio_return64, aiocb64, aio_read64)

#define AIO_FSYNC(name, type)                                                                      \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		struct type cb = {.aio_fildes = data_open(O_WRONLY)};                              \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(O_DSYNC, &cb)), 0);                             \
		await((struct aiocb64 *)&cb);                                                      \
		WANT(HR_OP_##name, .fd = cb.aio_fildes, .flags = O_DSYNC);                         \
		assert_failed(ON(hr_wrap_##name(12345, &cb)), EINVAL);                             \
	}

AIO_FSYNC(aio_fsync, aiocb)
AIO_FSYNC(aio_fsync64, aiocb64)

#define LIO(name, type, read_name, write_name)                                                     \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		char in[10], out[10] = "WWWWWWWWWW";                                               \
		struct type r = {.aio_fildes = data_open(O_RDONLY),                                \
				 .aio_lio_opcode = LIO_READ,                                       \
				 .aio_buf = in,                                                    \
				 .aio_nbytes = 10,                                                 \
				 .aio_offset = 16};                                                \
		struct type w = {.aio_fildes = fd_open("new", O_CREAT | O_WRONLY),                 \
				 .aio_lio_opcode = LIO_WRITE,                                      \
				 .aio_buf = out,                                                   \
				 .aio_nbytes = 10};                                                \
		struct type nop = {.aio_fildes = -1, .aio_lio_opcode = LIO_NOP};                   \
		struct type *list[] = {&nop, &r, NULL, &w};                                        \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(LIO_WAIT, list, 4, NULL)), 0);                  \
		assert_memory_equal(in, "0123456789", 10);                                         \
		assert_true(holds("new", "WWWWWWWWWW"));                                           \
		WANT(HR_OP_##name, .fd = r.aio_fildes, .asked = 20, .flags = LIO_WAIT);            \
		WANT(HR_OP_##read_name, .fd = r.aio_fildes, .asked = 10, .offset = 16);            \
		WANT(HR_OP_##write_name, .fd = w.aio_fildes, .path = P("new"), .asked = 10,        \
		     .offset = 0);                                                                 \
		assert_int_equal(ON(hr_wrap_##name(LIO_NOWAIT, list, 2, NULL)), 0);                \
		await((struct aiocb64 *)&r);                                                       \
		WANT(HR_OP_##read_name, .fd = r.aio_fildes, .asked = 10, .offset = 16);            \
		WANT(HR_OP_##name, .fd = r.aio_fildes, .asked = 10, .flags = LIO_NOWAIT);          \
	}

LIO(lio_listio, aiocb, aio_read, aio_write)
LIO(lio_listio64, aiocb64, aio_read64, aio_write64)
