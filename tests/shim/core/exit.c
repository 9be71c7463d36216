/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit - a program that ends in some way, and says on the way whether probes would take its thread for exiting
 *
 *      exit return|thread|fork|vfork|now <OFFSET >MARKS
 *
 * OFFSET is hr_item_cover.thread, in binary; MARKS are pairs of who looks (h an atexit handler, d the program's destructor, l a
 * library's, f stdio's flush, p the parent of a vfork) and what was there.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXITING 7 /* HR_COVER_EXITING */

extern void (*exit_library_last)(char who);

static int64_t offset;
static int file = -1;
static int forks;

static void look(char who)
{
	const uint8_t *cover = (const uint8_t *)__builtin_thread_pointer() + offset;
	char mark[2] = {who, (char)('0' + cover[sizeof(uint64_t) + EXITING])};

	if (write(STDOUT_FILENO, mark, sizeof(mark)) != sizeof(mark))
		abort();
}

static ssize_t flushed(void *cookie, const char *buf, size_t n)
{
	char byte;

	(void)cookie;
	(void)buf;
	look('f');
	return pread(file, &byte, 1, 0) == 1 ? (ssize_t)n : -1; /* recorded, exiting or not */
}

static void handler(void)
{
	int status;

	look('h');
	if (!forks)
		return;
	if (fork() == 0)
		exit(0);
	if (wait(&status) < 0 || status != 0)
		abort();
}

__attribute__((destructor)) static void destructor(void)
{
	if (file >= 0)
		look('d');
}

static void *leave(void *unused)
{
	(void)unused;
	exit(0);
}

static void vfork_leave(void)
{
	if (vfork() == 0)
		exit(0); /* not what a vfork child may do; some do */
	look('p');
	_exit(0);
}

int main(int argc, char **argv)
{
	FILE *fp = fopencookie(NULL, "w", (cookie_io_functions_t){.write = flushed});
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t t;

	file = open("a", O_RDONLY | O_CLOEXEC); /* attaches */
	if (fp == NULL || file < 0 || read(STDIN_FILENO, &offset, sizeof(offset)) != sizeof(offset))
		abort();
	fputs("left in the buffer", fp);
	atexit(handler);
	exit_library_last = look;
	forks = strcmp(how, "fork") == 0;
	if (strcmp(how, "thread") == 0 && pthread_create(&t, NULL, leave, NULL) == 0)
		pthread_join(t, NULL);
	if (strcmp(how, "vfork") == 0)
		vfork_leave();
	if (strcmp(how, "now") == 0)
		_exit(0);
	return 0;
}
