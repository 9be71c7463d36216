/* SPDX-License-Identifier: Apache-2.0 */
/*
 * raw_calls FOLDER JSON - a dynamically linked program that makes system calls by itself
 *
 * By instructions of its own, not by libc's syscall(), which a preloaded library sees. Descriptors go from libc to the raw calls and
 * back, names are relative, through a symbolic link, or wrong.
 */
#include "account.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define BYTES 50000

/* -errno when it fails. */
static long raw(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
#error "which instruction makes a system call?"
#endif
}

static long raw_openat(int folder, const char *name, int flags)
{
	return raw(SYS_openat, folder, (long)name, flags, 0600, 0, 0);
}

static void raw_close(long fd)
{
	CHECK(raw(SYS_close, fd, 0, 0, 0, 0, 0) == 0);
}

static long raw_read(struct account *a, long fd, void *buf, size_t n)
{
	long result = raw(SYS_read, fd, (long)buf, (long)n, 0, 0, 0);

	account_read(a, result);
	return result;
}

static long raw_pread(struct account *a, long fd, void *buf, size_t n, off_t at)
{
	long result = raw(SYS_pread64, fd, (long)buf, (long)n, at, 0, 0);

	account_read(a, result);
	if (result > 0)
		account_check(buf, (size_t)result, (uint64_t)at);
	return result;
}

/* write, writev, pwrite64, fsync: BYTES in all. */
static void write_raw(struct account *a, long fd)
{
	char buf[BYTES];
	struct iovec iov[2] = {{buf + 10000, 6000}, {buf + 16000, 4000}};

	account_fill(buf, sizeof(buf), 0);
	account_written(a, raw(SYS_write, fd, (long)buf, 10000, 0, 0, 0));
	account_written(a, raw(SYS_writev, fd, (long)iov, 2, 0, 0, 0));
	for (long at = 20000; at < BYTES; at += 3000)
		account_written(a, raw(SYS_pwrite64, fd, (long)buf + at, 3000, at, 0, 0));
	CHECK(raw(SYS_fsync, fd, 0, 0, 0, 0, 0) == 0);
	CHECK(a->bytes_written == BYTES);
}

/* lseek, read to the end and once more, readv, pread64 across and past the end. */
static void read_raw(struct account *a, long fd)
{
	char buf[8192], other[1000];
	struct iovec iov[2] = {{buf, 3000}, {other, sizeof(other)}};
	uint64_t at = 0;
	long n;

	CHECK(raw(SYS_lseek, fd, 0, SEEK_SET, 0, 0, 0) == 0);
	while ((n = raw_read(a, fd, buf, sizeof(buf))) > 0) {
		account_check(buf, (size_t)n, at);
		at += (uint64_t)n;
	}
	CHECK(n == 0 && at == BYTES);
	CHECK(raw(SYS_lseek, fd, 0, SEEK_SET, 0, 0, 0) == 0);
	account_read(a, raw(SYS_readv, fd, (long)iov, 2, 0, 0, 0));
	account_check(other, sizeof(other), 3000);
	for (long i = 0; i < 25; i++)
		CHECK(raw_pread(a, fd, buf, 100 + (size_t)i, i * 1999) > 0);
	CHECK(raw_pread(a, fd, buf, sizeof(buf), BYTES - 10) == 10);
	CHECK(raw_pread(a, fd, buf, sizeof(buf), BYTES) == 0);
}

static void copies(struct account *from, struct account *to, int folder)
{
	long in = raw_openat(folder, "raw0", O_RDONLY | O_CLOEXEC), n;
	long out = raw_openat(folder, "raw-copy", O_RDWR | O_CREAT | O_CLOEXEC);

	account_opened(from, in);
	account_opened(to, out);
	n = raw(SYS_copy_file_range, in, 0, out, 0, 30000, 0);
	CHECK(n == 30000);
	account_read(from, n);
	account_written(to, n);
	n = raw(SYS_sendfile, out, in, 0, BYTES, 0, 0); /* what is left */
	CHECK(n == BYTES - 30000);
	account_read(from, n);
	account_written(to, n);
	raw_close(in);
	raw_close(out);
}

/* A descriptor of libc's read by raw calls, and one that libc has never seen opened, read by libc. */
static void both_ways(struct account *a, struct account *wrapped, int folder)
{
	char buf[4096];
	int theirs = open(a->path, O_RDONLY | O_CLOEXEC);
	long ours = raw_openat(folder, "raw1", O_RDONLY | O_CLOEXEC);

	account_opened(wrapped, theirs);
	account_opened(a, ours);
	for (int i = 0; i < 5; i++) {
		CHECK(raw_pread(a, theirs, buf, 2000, i * 2000L) == 2000);
		account_read(wrapped, pread(theirs, buf, 700, i * 700L));
		account_read(wrapped, pread((int)ours, buf, 900, i * 900L));
		CHECK(raw_pread(a, ours, buf, 1100, i * 1100L) == 1100);
	}
	CHECK(close(theirs) == 0);
	CHECK(close((int)ours) == 0);
}

static void errors(struct account *dir, int folder)
{
	char buf[64];

	CHECK(raw(SYS_read, -1, (long)buf, sizeof(buf), 0, 0, 0) == -EBADF);
	CHECK(raw(SYS_pread64, 900, (long)buf, sizeof(buf), 0, 0, 0) == -EBADF);
	CHECK(raw_openat(folder, "raw-absent", O_RDONLY) == -ENOENT);
	CHECK(raw_read(dir, folder, buf, sizeof(buf)) == -EISDIR);
}

/* Written, read and closed by raw calls. */
static void alone(struct account *a, int folder, const char *name)
{
	long fd = raw_openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC);

	account_opened(a, fd);
	write_raw(a, fd);
	read_raw(a, fd);
	raw_close(fd);
}

static void through_a_link(struct account *a, int folder)
{
	long fd;

	CHECK(symlinkat("raw0", folder, "raw-link") == 0);
	fd = raw_openat(AT_FDCWD, a->path, O_RDONLY | O_CLOEXEC);
	account_opened(a, fd);
	read_raw(a, fd);
	raw_close(fd);
}

int main(int argc, char **argv)
{
	struct account *early, *first, *second, *dir;
	int folder;

	CHECK(argc == 3);
	early = account_file(argv[1], "raw-early", ACCOUNT_BPF);
	first = account_file(argv[1], "raw0", ACCOUNT_BPF);
	second = account_file(argv[1], "raw1", ACCOUNT_BPF);
	dir = account_file(argv[1], ".", ACCOUNT_SHIM);

	alone(early, AT_FDCWD, early->path);
	folder = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* here a shim attaches */
	account_opened(dir, folder);
	alone(first, folder, "raw0");
	alone(second, folder, "raw1");
	through_a_link(account_file(argv[1], "raw-link", ACCOUNT_BPF), folder);
	both_ways(second, account_file(argv[1], "raw1", ACCOUNT_SHIM), folder);
	copies(first, account_file(argv[1], "raw-copy", ACCOUNT_BPF), folder);
	errors(account_file(argv[1], ".", ACCOUNT_BPF), folder);
	raw_close(folder);
	account_end(argv[2]);
	return 0;
}
