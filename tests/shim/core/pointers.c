/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pointers - calls whose pointers do not outlive them, or never were any; run alone and under the shim
 *
 * Every line says what a call gave; both runs must say the same (CMake compares them by exit status: 0 when
 * all is as the kernel has it, checked here against numbers that are known).
 */
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_clone3
#define SYS_clone3 435
#endif

#define PAGE 4096

static int bad;

static void expect(const char *what, long got, long wanted)
{
	if (got != wanted) {
		fprintf(stderr, "%s: %ld, expected %ld (errno %d)\n", what, got, wanted, errno);
		bad = 1;
	}
}

/* Programs ask so whether the call exists. */
static void clone3_probe(void)
{
	expect("clone3(NULL, 0)", syscall(SYS_clone3, NULL, 0), -1);
	expect("clone3(NULL, 0) errno", errno, EINVAL);
	expect("clone3(bad, 88)", syscall(SYS_clone3, (void *)8, 88), -1);
	expect("clone3(bad, 88) errno", errno, EFAULT);
}

/* The answer is written over the name, up to the last byte of the mapping. */
static void readlink_over_itself(void)
{
	char target[101], *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *name = pages + PAGE - 100, *volatile into = name;

	memset(target, 'x', 100);
	target[100] = '\0';
	unlink("pointers.link");
	expect("symlink", symlink(target, "pointers.link"), 0);
	expect("munmap", munmap(pages + PAGE, PAGE), 0);
	strcpy(name, "pointers.link");
	expect("readlink", readlink(name, into, 100), 100);
	unlink("pointers.link");
	munmap(pages, PAGE);
}

/* The name lies in the file that is cut. */
static void truncate_name_away(void)
{
	int fd = open("pointers.file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char *name;

	expect("ftruncate", ftruncate(fd, PAGE), 0);
	name = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	strcpy(name, "pointers.file");
	expect("truncate", truncate(name, 0), 0);
	close(fd);
	unlink("pointers.file");
}

/* The same, by an open. */
static void open_name_away(void)
{
	int fd = open("pointers.file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char *name;

	for (int way = 0; way < 2; way++) {
		expect("ftruncate", ftruncate(fd, PAGE), 0);
		name = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		strcpy(name, "pointers.file");
		if (way == 0)
			close(open(name, O_RDWR | O_TRUNC | O_CLOEXEC));
		else
			fclose(fopen(name, "we"));
		expect("it was opened", lseek(fd, 0, SEEK_END), 0);
		munmap(name, PAGE);
	}
	close(fd);
	unlink("pointers.file");
}

/* What the kernel or libc refuses, or is done with, before it looks at a pointer. */
static void unlooked_at(void)
{
	int fd = open("pointers.file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), pipes[2];
	off64_t *bad_offset = (off64_t *)8;
	void *volatile bad_pointer = (void *)8; /* the compiler need not know */
	DIR *volatile none = NULL;

	expect("pipe", pipe(pipes), 0);
	expect("splice of nothing", splice(fd, bad_offset, pipes[1], NULL, 0, 0), 0);
	expect("the same by number", syscall(SYS_splice, fd, bad_offset, pipes[1], NULL, 0, 0), 0);
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): it is the point */
	expect("closedir(NULL)", closedir(none), -1);
	expect("closedir(NULL) errno", errno, EINVAL);
	expect("aio_fsync, bad how", aio_fsync(12345, bad_pointer), -1);
	expect("aio_fsync, bad how, errno", errno, EINVAL);
	expect("lio_listio, bad mode", lio_listio(12345, bad_pointer, 1, NULL), -1);
	expect("lio_listio, bad mode, errno", errno, EINVAL);
	expect("symlink to nothing", symlink("", bad_pointer), -1);
	expect("symlink to nothing, errno", errno, ENOENT);
	expect("symlinkat to nothing", symlinkat("", AT_FDCWD, bad_pointer), -1);
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
	unlink("pointers.file");
}

int main(void)
{
	unlooked_at();
	clone3_probe();
	readlink_over_itself();
	truncate_name_away();
	open_name_away();
	return bad;
}
