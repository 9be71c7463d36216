/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys.h - system calls without libc
 *
 * The shim must neither change errno nor call functions that it or another preloaded library
 * intercepts. Each function returns the result of the kernel, or -errno. Any thread and any signal
 * handler may call them.
 */
#ifndef HEADRACE_SHIM_CORE_SYS_H
#define HEADRACE_SHIM_CORE_SYS_H

#include <fcntl.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#if defined(__x86_64__)
static inline long hr__syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static inline long hr__syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#else
#error "headrace: x86-64 and aarch64 only"
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older kernels return EINVAL, and fault page by page */
#endif

/* System calls that have the same name on both architectures. Pass pointers as long. */
#define HR_SYS0(name)	       hr__syscall(SYS_##name, 0, 0, 0, 0, 0, 0)
#define HR_SYS1(name, a)       hr__syscall(SYS_##name, (long)(a), 0, 0, 0, 0, 0)
#define HR_SYS2(name, a, b)    hr__syscall(SYS_##name, (long)(a), (long)(b), 0, 0, 0, 0)
#define HR_SYS3(name, a, b, c) hr__syscall(SYS_##name, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define HR_SYS4(name, a, b, c, d)                                                                  \
	hr__syscall(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define HR_SYS5(name, a, b, c, d, e)                                                               \
	hr__syscall(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define HR_SYS6(name, a, b, c, d, e, f)                                                            \
	hr__syscall(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline int hr__sys_getpid(void)
{
	return (int)HR_SYS0(getpid);
}

static inline int hr_sys_gettid(void)
{
	return (int)HR_SYS0(gettid);
}

/* Blocks all signals of this thread. Returns its mask, for hr__sys_signals_restore(). */
static inline uint64_t hr__sys_signals_block(void)
{
	uint64_t all = ~UINT64_C(0), mask = 0;

	HR_SYS4(rt_sigprocmask, 0 /* SIG_BLOCK */, &all, &mask, sizeof(all));
	return mask;
}

static inline void hr__sys_signals_restore(uint64_t mask)
{
	HR_SYS4(rt_sigprocmask, 2 /* SIG_SETMASK */, &mask, NULL, sizeof(mask));
}

/* Returns private zeroed memory, which the first access allocates. NULL: mmap failed. */
static inline void *hr_sys_reserve(size_t bytes)
{
	long r = HR_SYS6(mmap, 0, bytes, 3 /* PROT_READ|PROT_WRITE */,
			 0x02 | 0x20 | 0x4000 /* MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE */, -1, 0);

	return (unsigned long)r >= -4095UL ? NULL : (void *)r;
}

/* Sleeps while *word == value, for at most ns. */
static inline long hr__sys_futex_wait(const void *word, uint32_t value, uint64_t ns, int private)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u)};

	return HR_SYS4(futex, word, FUTEX_WAIT | (private ? FUTEX_PRIVATE_FLAG : 0), value, &ts);
}

static inline long hr__sys_futex_wake(const void *word, int n, int private)
{
	return HR_SYS3(futex, word, FUTEX_WAKE | (private ? FUTEX_PRIVATE_FLAG : 0), n);
}

/* Reads a file into buf, at most cap bytes. Returns the number of bytes, or -errno. */
static inline long hr__sys_slurp(const char *path, char *buf, size_t cap)
{
	long fd = HR_SYS4(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	size_t n = 0;
	long r = 0;

	if (fd < 0)
		return fd;
	while (n < cap && (r = HR_SYS3(read, fd, buf + n, cap - n)) > 0)
		n += (size_t)r;
	HR_SYS1(close, fd);
	return r < 0 ? r : (long)n;
}

#endif
