/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_hostile SOCKET SECONDS SEED - a client that means harm
 *
 * Speaks the handshake of proto/abi.h by itself, then for SECONDS: writes random bytes over all
 * memory that it was given, plausible heads and commit words too, punches holes, tries to shrink,
 * grow and unseal; meanwhile garbage, half and oversized hellos, and connections that say nothing.
 * Exit status 0 when the seals held.
 */
#include "proto/abi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char *socket_path;
static uint64_t state;

struct session {
	struct hr_ack ack;
	int map_fd, node_fd;
	uint8_t *map;
	size_t bytes;
};

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static int dial(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		perror("w_hostile: connect");
		exit(2);
	}
	return fd;
}

static struct hr_hello make_hello(uint16_t kind, uint64_t session)
{
	return (struct hr_hello){.magic = HR_ABI_MAGIC,
				 .abi = HR_ABI_VERSION,
				 .word_bytes = sizeof(void *),
				 .kind = kind,
				 .bytes = sizeof(struct hr_hello),
				 .pid = getpid(),
				 .ppid = getppid(),
				 .tid = getpid(),
				 .session = session};
}

static int ask(const struct hr_hello *hello, struct session *ret)
{
	char room[CMSG_SPACE(2 * sizeof(int))];
	struct iovec iov = {&ret->ack, sizeof(ret->ack)};
	struct msghdr msg = {
	    .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
	int fd = dial(), got[2] = {-1, -1};

	if (send(fd, hello, sizeof(*hello), MSG_NOSIGNAL) != sizeof(*hello) ||
	    recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != sizeof(ret->ack) || ret->ack.status != 0) {
		close(fd);
		return -1;
	}
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg != NULL)
		memcpy(got, CMSG_DATA(cmsg), cmsg->cmsg_len - CMSG_LEN(0));
	close(fd);
	ret->map_fd = got[0];
	ret->node_fd = got[1];
	ret->bytes = ret->ack.map_bytes;
	ret->map = mmap(NULL, ret->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ret->map_fd, 0);
	return ret->map == MAP_FAILED ? -1 : 0;
}

/* Sealed means: neither size nor seals change, and the node page cannot be written. */
static int break_seals(const struct session *s)
{
	int held = ftruncate(s->map_fd, 0) < 0 && ftruncate(s->map_fd, (off_t)s->bytes * 2) < 0 &&
		   fcntl(s->map_fd, F_ADD_SEALS, F_SEAL_WRITE) < 0;

	if (s->node_fd >= 0) {
		void *page =
		    mmap(NULL, HR_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s->node_fd, 0);
		held = held && page == MAP_FAILED && ftruncate(s->node_fd, 0) < 0 &&
		       write(s->node_fd, "x", 1) < 0;
	}
	return held;
}

static void scribble(struct session *s)
{
	size_t at = next_random() % s->bytes, n = next_random() % 65536;

	for (size_t i = at; i < at + n && i < s->bytes; i++)
		s->map[i] = (uint8_t)next_random();
}

/* A ring that looks alive: a head some way on, slots committed in order, the rest of them random. */
static void imitate(struct session *s)
{
	uint32_t slots = 1U << s->ack.slots_log2,
		 turn = (uint32_t)next_random() % s->ack.ring_count;
	struct hr_ring_hdr *ring = (void *)(s->map + hr_ring_offset(turn, s->ack.slots_log2));
	struct hr_record *slot = (struct hr_record *)(ring + 1);
	uint64_t tail = ring->tail, n = next_random() % slots;

	ring->owner_tid = (uint32_t)getpid();
	for (uint64_t i = tail; i < tail + n; i++) {
		uint64_t *words = (uint64_t *)&slot[i % slots];
		for (int w = 0; w < 7; w++)
			words[w] = next_random();
		slot[i % slots].op = (uint16_t)(next_random() % 64);
		slot[i % slots].bits = (uint32_t)next_random() & 0x3f;
		slot[i % slots].fd = (int32_t)(next_random() % 80);
		__atomic_store_n(&slot[i % slots].seq, (uint32_t)(i + 1), __ATOMIC_RELEASE);
	}
	__atomic_store_n(&ring->head, tail + n, __ATOMIC_RELEASE);
}

static void punch(struct session *s)
{
	off_t at = (off_t)(next_random() % (s->bytes / HR_PAGE_BYTES)) * HR_PAGE_BYTES;

	fallocate(s->map_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at,
		  HR_PAGE_BYTES * (1 + (off_t)next_random() % 8));
}

static void babble(const struct session *s)
{
	static uint8_t noise[HR_HELLO_MAX_BYTES];
	struct hr_hello hello =
	    make_hello(next_random() % 2 ? HR_HELLO_MORE_RINGS : HR_HELLO_ATTACH, s->ack.session);
	int fd = dial();
	size_t n = next_random() % sizeof(noise);

	for (size_t i = 0; i < n; i++)
		noise[i] = (uint8_t)next_random();
	if (next_random() % 2) {
		hello.bytes = (uint32_t)next_random();
		memcpy(noise, &hello, sizeof(hello) < n ? sizeof(hello) : n);
	}
	send(fd, noise, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

int main(int argc, char **argv)
{
	struct session first = {.map_fd = -1}, second = {.map_fd = -1};
	int silent[64];

	if (argc != 4)
		return 2;
	socket_path = argv[1];
	state = strtoull(argv[3], NULL, 10) * 0x9e3779b97f4a7c15 + 1;
	struct hr_hello hello = make_hello(HR_HELLO_ATTACH, 0);
	if (ask(&hello, &first) < 0)
		return 3;
	hello = make_hello(HR_HELLO_MORE_RINGS, first.ack.session);
	struct session *more = ask(&hello, &second) == 0 ? &second : &first;
	int held = break_seals(&first);

	for (int i = 0; i < 64; i++)
		silent[i] = dial();
	time_t end = time(NULL) + atol(argv[2]);
	while (time(NULL) < end) {
		scribble(&first);
		imitate(&first);
		imitate(more);
		punch(&first);
		if (next_random() % 64 == 0)
			scribble(more);
		if (next_random() % 16 == 0)
			babble(&first);
		usleep(500);
	}
	for (int i = 0; i < 64; i++)
		close(silent[i]);
	printf("seals %s\n", held ? "held" : "BROKEN");
	return held ? 0 : 1;
}
