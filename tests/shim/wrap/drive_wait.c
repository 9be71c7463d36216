/* SPDX-License-Identifier: Apache-2.0 */
/* drive_wait.c - calls that wait: measured only if the thread asks for it, and then in the right group */
#include "drive.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

/* Runs the call as every thread does, then as one that measures its waits: that one has one more note. */
#define WAITED(call, wanted, group)                                                                \
	do {                                                                                       \
		assert_int_equal(ON(call), wanted);                                                \
		assert_null(stub_take());                                                          \
		hr_waits.on = true;                                                                \
		assert_int_equal(ON(call), wanted);                                                \
		hr_waits.on = false;                                                               \
		assert_int_equal(want_hook("hr_wait_end")->ret, group);                            \
	} while (0)

/* A failure: errno is the original's. */
#define WAITED_FAILS(call, error, group)                                                           \
	do {                                                                                       \
		hr_waits.on = true;                                                                \
		assert_failed(ON(call), error);                                                    \
		hr_waits.on = false;                                                               \
		assert_int_equal(want_hook("hr_wait_end")->ret, group);                            \
	} while (0)

static const struct timespec soon = {.tv_nsec = 1000};
static const struct timespec never = {.tv_nsec = -1};

/* ---- sleep ---------------------------------------------------------------------------------- */

void drive_nanosleep(void)
{
	WAITED(hr_wrap_nanosleep(&soon, NULL), 0, HR_WAIT_SLEEP);
	WAITED_FAILS(hr_wrap_nanosleep(&never, NULL), EINVAL, HR_WAIT_SLEEP);
}

void drive_clock_nanosleep(void)
{
	WAITED(hr_wrap_clock_nanosleep(CLOCK_MONOTONIC, 0, &soon, NULL), 0, HR_WAIT_SLEEP);
	WAITED(hr_wrap_clock_nanosleep(CLOCK_MONOTONIC, 0, &never, NULL), EINVAL, HR_WAIT_SLEEP);
}

void drive_usleep(void)
{
	WAITED(hr_wrap_usleep(1), 0, HR_WAIT_SLEEP);
}

void drive_sleep(void)
{
	WAITED(hr_wrap_sleep(0), 0, HR_WAIT_SLEEP);
}

/* ---- descriptors ------------------------------------------------------------------------------- */

/* One end of a pair of sockets, whose other end has sent four bytes. */
static int socket_ready(int *ret_peer)
{
	int s[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	assert_int_equal(syscall(SYS_write, s[1], "four", 4), 4);
	*ret_peer = s[1];
	return s[0];
}

void drive_select(void)
{
	int peer, fd = socket_ready(&peer);
	struct timeval time = {0};
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	WAITED(hr_wrap_select(fd + 1, &in, NULL, NULL, &time), 1, HR_WAIT_NETWORK);
	WAITED(hr_wrap_select(0, NULL, NULL, NULL, &time), 0, HR_WAIT_SLEEP);
	WAITED_FAILS(hr_wrap_select(-1, &in, NULL, NULL, &time), EINVAL, HR_WAIT_NETWORK);
}

void drive_pselect(void)
{
	int peer, fd = socket_ready(&peer);
	fd_set out;

	FD_ZERO(&out);
	FD_SET(fd, &out);
	WAITED(hr_wrap_pselect(fd + 1, NULL, &out, NULL, &soon, NULL), 1, HR_WAIT_NETWORK);
	WAITED(hr_wrap_pselect(0, NULL, NULL, NULL, &soon, NULL), 0, HR_WAIT_SLEEP);
}

#define POLL(name, ...)                                                                            \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int peer, fd = socket_ready(&peer);                                                \
		struct pollfd one = {.fd = fd, .events = POLLIN};                                  \
                                                                                                   \
		WAITED(hr_wrap_##name(&one, 1, __VA_ARGS__), 1, HR_WAIT_NETWORK);                  \
		WAITED(hr_wrap_##name(&one, 0, __VA_ARGS__), 0, HR_WAIT_SLEEP);                    \
	}

POLL(poll, 1)
POLL(__poll_chk, 1, sizeof(struct pollfd))
POLL(ppoll, &soon, NULL)
POLL(__ppoll_chk, &soon, NULL, sizeof(struct pollfd))

#define EPOLL(name, ...)                                                                           \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		struct epoll_event event = {.events = EPOLLIN};                                    \
		int peer, fd = socket_ready(&peer), epoll = epoll_create1(0);                      \
                                                                                                   \
		assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);                  \
		WAITED(hr_wrap_##name(epoll, &event, 1, __VA_ARGS__), 1, HR_WAIT_NETWORK);         \
		WAITED_FAILS(hr_wrap_##name(-1, &event, 1, __VA_ARGS__), EBADF, HR_WAIT_NETWORK);  \
	}

EPOLL(epoll_wait, 0)
EPOLL(epoll_pwait, 0, NULL)

/* ---- semaphores ------------------------------------------------------------------------------- */

void drive_sem_wait(void)
{
	sem_t sem;

	sem_init(&sem, 0, 2);
	WAITED(hr_wrap_sem_wait(&sem), 0, HR_WAIT_LOCK);
}

void drive_sem_timedwait(void)
{
	sem_t sem;

	sem_init(&sem, 0, 2);
	WAITED(hr_wrap_sem_timedwait(&sem, &soon), 0, HR_WAIT_LOCK);
	WAITED_FAILS(hr_wrap_sem_timedwait(&sem, &soon), ETIMEDOUT, HR_WAIT_LOCK);
}

void drive_sem_clockwait(void)
{
	sem_t sem;

	sem_init(&sem, 0, 2);
	if (!in_libc("sem_clockwait"))
		return;
	WAITED(hr_wrap_sem_clockwait(&sem, CLOCK_MONOTONIC, &soon), 0, HR_WAIT_LOCK);
	WAITED_FAILS(hr_wrap_sem_clockwait(&sem, CLOCK_MONOTONIC, &soon), ETIMEDOUT, HR_WAIT_LOCK);
}

/* ---- sockets ---------------------------------------------------------------------------------- */

/* Two bytes at a time of the four. */
#define RECV(name, ...)                                                                            \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int peer, fd = socket_ready(&peer);                                                \
		char buf[2];                                                                       \
                                                                                                   \
		WAITED(hr_wrap_##name(fd, buf, 2, __VA_ARGS__), 2, HR_WAIT_NETWORK);               \
		assert_memory_equal(buf, "ur", 2);                                                 \
		WAITED_FAILS(hr_wrap_##name(-1, buf, 2, __VA_ARGS__), EBADF, HR_WAIT_NETWORK);     \
	}

RECV(recv, 0)
RECV(__recv_chk, sizeof(buf), 0)
RECV(recvfrom, 0, NULL, NULL)
RECV(__recvfrom_chk, sizeof(buf), 0, NULL, NULL)

#define SEND(name, ...)                                                                            \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int peer, fd = socket_ready(&peer);                                                \
		char buf[4];                                                                       \
                                                                                                   \
		WAITED(hr_wrap_##name(fd, "ab", 2, __VA_ARGS__), 2, HR_WAIT_NETWORK);              \
		assert_int_equal(recv(peer, buf, sizeof(buf), 0), 4);                              \
		assert_memory_equal(buf, "abab", 4);                                               \
	}

SEND(send, 0)
SEND(sendto, 0, NULL, 0)

/* read() and write() of a socket are waits, too; those of a file remain operations. */
static void check_read_and_write(int fd)
{
	int file = data_open(O_RDONLY);
	char c;

	hr_waits.on = true;
	assert_int_equal(ON(hr_wrap_read(fd, &c, 1)), 1);
	assert_int_equal(want_hook("hr_wait_end_fd")->ret, fd);
	assert_int_equal(ON(hr_wrap___read_chk(fd, &c, 1, 1)), 1);
	assert_int_equal(want_hook("hr_wait_end_fd")->ret, fd);
	assert_int_equal(ON(hr_wrap_write(fd, &c, 1)), 1);
	assert_int_equal(want_hook("hr_wait_end_fd")->ret, fd);
	assert_int_equal(ON(hr_wrap_read(file, &c, 1)), 1);
	WANT(HR_OP_read, .fd = file, .asked = 1, .ret = 1);
	hr_waits.on = false;
}

void drive_recvmsg(void)
{
	int peer, fd = socket_ready(&peer);
	char buf[1];
	struct iovec iov = {buf, sizeof(buf)};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	check_read_and_write(fd);

	WAITED(hr_wrap_recvmsg(fd, &message, 0), 1, HR_WAIT_NETWORK);
	assert_int_equal(buf[0], 'r');
}

void drive_sendmsg(void)
{
	char text[] = "ab", buf[4];
	struct iovec iov = {text, 2};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	int peer, fd = socket_ready(&peer);

	WAITED(hr_wrap_sendmsg(fd, &message, 0), 2, HR_WAIT_NETWORK);
	assert_int_equal(recv(peer, buf, sizeof(buf), 0), 4);
	assert_memory_equal(buf, "abab", 4);
}

/* A listener on a port of its own, with two connections that wait for it. */
static int listener(struct sockaddr_in *ret_at, int connected[2])
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t bytes = sizeof(*ret_at);

	*ret_at =
	    (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(fd, (struct sockaddr *)ret_at, sizeof(*ret_at)), 0);
	assert_int_equal(listen(fd, 2), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret_at, &bytes), 0);
	for (int i = 0; connected != NULL && i < 2; i++) {
		connected[i] = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(connect(connected[i], (struct sockaddr *)ret_at, sizeof(*ret_at)),
				 0);
	}
	return fd;
}

void drive_connect(void)
{
	struct sockaddr_in at;
	int fd;

	listener(&at, NULL);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(ON(hr_wrap_connect(fd, (struct sockaddr *)&at, sizeof(at))), 0);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	hr_waits.on = true;
	assert_int_equal(ON(hr_wrap_connect(fd, (struct sockaddr *)&at, sizeof(at))), 0);
	hr_waits.on = false;
	assert_int_equal(want_hook("hr_wait_end")->ret, HR_WAIT_NETWORK);
	WAITED_FAILS(hr_wrap_connect(fd, (struct sockaddr *)&at, sizeof(at)), EISCONN,
		     HR_WAIT_NETWORK);
}

#define ACCEPT(name, ...)                                                                          \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		struct sockaddr_in at;                                                             \
		int connected[2], fd = listener(&at, connected);                                   \
                                                                                                   \
		assert_true(ON(hr_wrap_##name(fd, NULL, ##__VA_ARGS__)) > fd);                     \
		hr_waits.on = true;                                                                \
		assert_true(ON(hr_wrap_##name(fd, NULL, ##__VA_ARGS__)) > fd);                     \
		hr_waits.on = false;                                                               \
		assert_int_equal(want_hook("hr_wait_end")->ret, HR_WAIT_NETWORK);                  \
	}

ACCEPT(accept, NULL)
ACCEPT(accept4, NULL, SOCK_CLOEXEC)
