/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_seccomp after|before|strict|no-clock FILE READS - a program that locks itself up with a strict seccomp filter
 *
 * What is not on its list kills it, so a single system call that the shim makes on its own account
 * shows as SIGSYS.
 * FILE "-" is the standard input.
 *   after    opens and reads FILE first, then installs the filter
 *   before   installs the filter before any I/O, through libc's syscall()
 *   strict   opens FILE, then allows itself read, write and exit alone, and loses the time stamp counter with all else
 *   no-clock asks for SIGSEGV when it reads the time stamp counter, then opens and reads FILE
 */
#include "tally.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* offsetof(struct seccomp_data, nr) */
    ALLOW(openat),
    ALLOW(read),
    ALLOW(pread64),
    ALLOW(write),
    ALLOW(close),
    ALLOW(exit_group),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static void lock_up(int through_syscall)
{
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (through_syscall)
		CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
	else
		CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static size_t use(const char *path, unsigned long reads)
{
	char buf[256];
	size_t total = 0;
	int fd = strcmp(path, "-") == 0 ? 0 : open(path, O_RDONLY);

	if (fd < 0)
		_exit(3);
	for (unsigned long i = 0; i < reads; i++) {
		ssize_t got = pread(fd, buf, sizeof(buf), (off_t)(i % 64));
		total += got > 0 ? (size_t)got : 0;
	}
	if (close(fd) < 0)
		_exit(4);
	return total;
}

static size_t use_strictly(const char *path, unsigned long reads)
{
	char buf[256];
	size_t total = 0;
	int fd = open(path, O_RDONLY);

	CHECK(fd >= 0 && read(fd, buf, 1) == 1);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
	for (unsigned long i = 0; i < reads; i++) {
		ssize_t got = read(fd, buf, i % 7);
		total += got > 0 ? (size_t)got : 0;
	}
	return total;
}

int main(int argc, char **argv)
{
	char text[64];

	CHECK(argc == 4);
	unsigned long reads = strtoul(argv[3], NULL, 10);
	int before = strcmp(argv[1], "before") == 0, strict = strcmp(argv[1], "strict") == 0;
	size_t total;

	if (strict) {
		total = use_strictly(argv[2], reads);
	} else if (strcmp(argv[1], "no-clock") == 0) {
		CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
		total = use(argv[2], reads);
	} else {
		if (!before)
			use(argv[2], 10);
		lock_up(before);
		total = use(argv[2], reads);
	}
	int n = snprintf(text, sizeof(text), "%zu bytes\n", total);
	n = write(1, text, (size_t)n) == n ? 0 : 5;
	return (int)syscall(strict ? SYS_exit : SYS_exit_group, n);
}
