/* SPDX-License-Identifier: Apache-2.0 */
/*
 * static_reader FOLDER JSON - ordinary I/O of a program that no library can be preloaded into
 *
 * Files that it writes and reads itself, that threads read through one descriptor, and that forked children read: one opened anew,
 * one inherited. Linked statically, by glibc and, where there is one, by musl; the files are called after the program.
 */
#include "account.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES	 3
#define BLOCK	 3000
#define BLOCKS	 20
#define BYTES	 (BLOCK * BLOCKS)
#define THREADS	 4
#define CHILDREN 3

struct file {
	struct account *account;
	int fd;
};

static struct file files[FILES];

static void make(struct file *f)
{
	char block[BLOCK];

	f->fd = open(f->account->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	account_opened(f->account, f->fd);
	for (int i = 0; i < BLOCKS; i++) {
		account_fill(block, BLOCK, (uint64_t)i * BLOCK);
		account_written(f->account, write(f->fd, block, BLOCK));
	}
	CHECK(fsync(f->fd) == 0);
}

/* To the end of the file, the read of 0 bytes included. */
static void read_all(struct account *a, int fd, size_t piece)
{
	char buf[8192];
	uint64_t at = 0;
	ssize_t n;

	do {
		n = read(fd, buf, piece);
		account_read(a, n);
		CHECK(n >= 0);
		account_check(buf, (size_t)n, at);
		at += (uint64_t)n;
	} while (n > 0);
	CHECK(at == BYTES);
}

static void *thread(void *arg)
{
	size_t piece = 500 + 100 * (size_t)(uintptr_t)arg;
	char buf[1024];

	for (struct file *f = files; f < files + FILES; f++)
		for (off_t at = 0; at < BYTES; at += 7001) {
			ssize_t n = pread(f->fd, buf, piece, at);

			account_read(f->account, n);
			CHECK(n >= 0);
			account_check(buf, (size_t)n, (uint64_t)at);
		}
	return NULL;
}

static void child(int i)
{
	struct file *f = &files[i % FILES];
	int fd = f->fd; /* the last child's: the parent's own */

	if (i < CHILDREN - 1) {
		fd = open(f->account->path, O_RDONLY | O_CLOEXEC);
		account_opened(f->account, fd);
	} else {
		CHECK(lseek(fd, 0, SEEK_SET) == 0);
	}
	read_all(f->account, fd, 4096);
	CHECK(close(fd) == 0);
	_exit(0);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	char name[64];
	int status;

	CHECK(argc == 3);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "%s%d", program_invocation_short_name, i);
		files[i].account = account_file(argv[1], name, ACCOUNT_BPF);
		make(&files[i]);
	}
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0)
			child(i);
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, thread, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	for (struct file *f = files; f < files + FILES; f++) {
		CHECK(lseek(f->fd, 0, SEEK_SET) == 0);
		read_all(f->account, f->fd, 8192);
		CHECK(close(f->fd) == 0);
	}
	account_end(argv[2]);
	return 0;
}
