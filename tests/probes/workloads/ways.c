/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ways - one way to read a file, N times: aio (aio_read and its result), opens (open, read, close), send (sendfile into a socket),
 * chars (one recorded open, then each byte of another file by fgetc), children (each opens it in a child handler of pthread_atfork)
 *
 *      ways aio|opens|send|chars|children PATH N [OTHER]
 */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *path, *other;
static char bytes[4096];

static void check(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	_exit(1);
}

static void open_and_read(const char *name, size_t n)
{
	int fd = open(name, O_RDONLY);

	check(fd >= 0 && read(fd, bytes, n) >= 0 && close(fd) == 0, name);
}

static void request(int fd, size_t n)
{
	struct aiocb cb = {.aio_fildes = fd, .aio_buf = bytes, .aio_nbytes = n};
	const struct aiocb *list[] = {&cb};

	check(aio_read(&cb) == 0, "aio_read");
	while (aio_error(&cb) == EINPROGRESS)
		aio_suspend(list, 1, NULL);
	check(aio_return(&cb) == (ssize_t)n, "aio_return");
}

static void send_once(const int sockets[2], size_t n)
{
	int fd = open(path, O_RDONLY);

	check(sendfile(sockets[0], fd, NULL, n) == (ssize_t)n &&
		  recv(sockets[1], bytes, n, MSG_WAITALL) == (ssize_t)n && close(fd) == 0,
	      "sendfile");
}

static void count_characters(void)
{
	FILE *stream = fopen(other, "r");

	check(stream != NULL, other);
	while (fgetc(stream) != EOF)
		;
	fclose(stream);
}

static void in_child(void)
{
	close(open(path, O_RDONLY));
}

static void fork_once(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	check(waitpid(pid, NULL, 0) == pid, "waitpid");
}

int main(int argc, char **argv)
{
	const char *way = argc > 3 ? argv[1] : "";
	int fd = -1, sockets[2];

	if (argc < 4)
		return 2;
	path = argv[2];
	other = argv[argc - 1];
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
	if (strcmp(way, "aio") == 0)
		fd = open(path, O_RDONLY);
	if (strcmp(way, "children") == 0)
		check(pthread_atfork(NULL, NULL, in_child) == 0, "pthread_atfork");
	if (strcmp(way, "children") == 0 || strcmp(way, "chars") == 0)
		close(open(path, O_RDONLY)); /* attaches */
	for (long n = atol(argv[3]); n > 0; n--) {
		if (strcmp(way, "aio") == 0)
			request(fd, 100);
		else if (strcmp(way, "opens") == 0)
			open_and_read(path, 10);
		else if (strcmp(way, "send") == 0)
			send_once(sockets, 1000);
		else if (strcmp(way, "chars") == 0)
			count_characters();
		else
			fork_once();
	}
	return 0;
}
