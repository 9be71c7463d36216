/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_fds SCENARIO DIR - descriptors that change hands
 *
 *   high      numbers up to the limit (above 65,536 where the limit allows; prints the highest)
 *   dups      dup, dup2, dup3, fcntl F_DUPFD and F_DUPFD_CLOEXEC, dup2 over an open file
 *   range     close_range over half of the open files, then their numbers used anew
 *   inherit   a descriptor inherited over exec (the image after exec is this program as
 * `inherited`) socket    a descriptor passed over a socket to another process
 */
#include "tally.h"

#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char **self;

static void high(const char *folder)
{
	const char *path = data_file(folder, 7);
	struct rlimit limit;

	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	int top = limit.rlim_max > 100000 ? 100000 : (int)limit.rlim_max;
	int low = t_open(path, O_RDONLY);
	for (int number = top - 1; number > top - 4000; number -= 900) {
		CHECK(dup2(low, number) == number);
		tally_name(number, path);
		t_pread(number, 100, 1);
		t_close(number);
	}
	int number = fcntl(low, F_DUPFD, top - 2);
	CHECK(number == top - 2);
	tally_name(number, path);
	t_close(low);
	t_read(number, 33);
	t_close(number);
	printf("%d\n", top - 1);
}

static void dups(const char *folder)
{
	const char *path = data_file(folder, 1), *other = data_file(folder, 2);
	int fd = t_open(path, O_RDONLY), victim = t_open(other, O_RDONLY), copies[5];

	copies[0] = dup(fd);
	copies[1] = dup2(fd, 200);
	copies[2] = dup3(fd, 201, O_CLOEXEC);
	copies[3] = fcntl(fd, F_DUPFD, 300);
	copies[4] = fcntl(fd, F_DUPFD_CLOEXEC, 300);
	for (int i = 0; i < 5; i++) {
		CHECK(copies[i] >= 0);
		tally_name(copies[i], path);
		t_read(copies[i], 10 + (size_t)i);
	}
	t_read(victim, 5);
	CHECK(dup2(fd, victim) == victim); /* `other` is closed here, and by no call named close */
	tally_name(victim, path);
	t_lseek(victim, 0);
	t_read(victim, 64);
	t_close(fd);
	for (int i = 0; i < 5; i++)
		t_close(copies[i]);
	t_fstat(victim);
	t_close(victim);
}

static void range(const char *folder)
{
	int fds[40];

	for (unsigned i = 0; i < 40; i++) {
		fds[i] = t_open(data_file(folder, i), O_RDONLY);
		t_read(fds[i], i + 1);
	}
	CHECK(close_range((unsigned)fds[20], (unsigned)fds[39], 0) == 0);
	for (unsigned i = 20; i < 40; i++) {
		int fd = t_open(data_file(folder, i + 30), O_RDONLY);
		CHECK(fd == fds[i]);
		t_read(fd, 1000 + i);
	}
	CHECK(close_range((unsigned)fds[0], (unsigned)fds[39], CLOSE_RANGE_CLOEXEC) == 0);
	for (unsigned i = 0; i < 40; i++)
		t_close(fds[i]);
}

static void inherit(const char *folder)
{
	const char *path = data_file(folder, 3);
	int fd = t_open(path, O_RDONLY);
	char number[16], name[] = "inherited";

	t_read(fd, 11);
	snprintf(number, sizeof(number), "%d", fd);
	tally_flush();
	execv("/proc/self/exe", (char *[]){self[0], name, (char *)path, number, NULL});
	die("exec");
}

static void inherited(const char *path, const char *number)
{
	int fd = atoi(number);

	tally_name(fd, path);
	t_read(fd, 22);
	t_pread(fd, 44, 0);
	t_close(fd);
}

static void receive(int from, const char *path)
{
	char byte, room[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {
	    .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
	int fd;

	CHECK(recvmsg(from, &msg, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&msg) != NULL);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	tally_name(fd, path);
	t_read(fd, 55);
	t_fstat(fd);
	t_close(fd);
}

static void give(int to, int fd)
{
	char byte = 0, room[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {
	    .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	CHECK(sendmsg(to, &msg, 0) == 1);
}

static void over_socket(const char *folder)
{
	const char *first = data_file(folder, 4), *second = data_file(folder, 5);
	int pair[2], status;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	pid_t child = fork();
	if (child == 0) {
		int excluded;

		tally_child();
		/* An excluded file, which gives its number to the first. */
		excluded = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
		CHECK(excluded >= 0 && close(excluded) == 0);
		receive(pair[1], first);
		receive(pair[1], second); /* very likely under the same number */
		tally_flush();
		_exit(0);
	}
	int fds[2] = {t_open(first, O_RDONLY), t_open(second, O_RDONLY)};
	for (int i = 0; i < 2; i++) {
		give(pair[0], fds[i]);
		t_close(fds[i]);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
	CHECK(argc >= 3);
	self = argv;
	if (strcmp(argv[1], "high") == 0)
		high(argv[2]);
	else if (strcmp(argv[1], "dups") == 0)
		dups(argv[2]);
	else if (strcmp(argv[1], "range") == 0)
		range(argv[2]);
	else if (strcmp(argv[1], "inherit") == 0)
		inherit(argv[2]);
	else if (strcmp(argv[1], "inherited") == 0 && argc == 4)
		inherited(argv[2], argv[3]);
	else if (strcmp(argv[1], "socket") == 0)
		over_socket(argv[2]);
	else
		die("%s: no such scenario", argv[1]);
	tally_flush();
	return 0;
}
