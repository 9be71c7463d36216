/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/shim/core/fake_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int fake_memfd(size_t bytes, size_t there, int seals, void **ret)
{
	int fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)there) != 0)
		abort();
	*ret = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*ret == MAP_FAILED || (seals != 0 && fcntl(fd, F_ADD_SEALS, seals) != 0))
		abort();
	return fd;
}

static void keep_map(struct fake_client *s, struct hr_map_hdr *hdr, uint32_t rings,
		     uint32_t slots_log2)
{
	struct fake_ring *r = fake_must(calloc(rings, sizeof(*r)));

	for (uint32_t i = 0; i < rings; i++) {
		r[i].hdr = (void *)((char *)hdr + hr_ring_offset(i, slots_log2));
		r[i].slots_log2 = slots_log2;
	}
	s->maps[s->n_maps].hdr = hdr;
	s->maps[s->n_maps].n_rings = rings;
	s->maps[s->n_maps++].rings = r;
}

static int add_map(struct fake_daemon *d, struct fake_client *s, struct hr_ack *ack)
{
	int seals = d->o.unsealed ? 0 : F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	size_t early = hr_ring_offset(0, d->o.slots_log2) + sizeof(struct hr_ring_hdr) +
		       HR_RING_EARLY * HR_SLOT_BYTES;
	struct hr_map_hdr *hdr;
	void *memory;
	int fd;

	ack->ring_count = d->o.rings;
	ack->slots_log2 = d->o.slots_log2;
	ack->map_bytes = hr_map_bytes(ack->ring_count, ack->slots_log2);
	ack->index = s->n_maps;
	fd = fake_memfd(ack->map_bytes, d->o.no_memory ? early : ack->map_bytes, seals, &memory);
	hdr = memory;
	hdr->magic = HR_ABI_MAGIC;
	hdr->abi = HR_ABI_VERSION;
	hdr->index = s->n_maps;
	hdr->session = s->token;
	hdr->ring_count = ack->ring_count;
	hdr->slots_log2 = ack->slots_log2;
	hdr->level = d->o.level;
	hdr->short_ticks = d->o.short_ticks;
	keep_map(s, hdr, ack->ring_count, ack->slots_log2);
	return fd;
}

static void send_ack(int fd, const struct hr_ack *ack, const int *fds, int n_fds)
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {.iov_base = (void *)ack, .iov_len = sizeof(*ack)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds > 0) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (size_t)n_fds * sizeof(int));
	}
	sendmsg(fd, &msg, MSG_NOSIGNAL);
}

static struct fake_client *by_token(struct fake_daemon *d, uint64_t token)
{
	for (size_t i = 0; i < d->n_sessions; i++)
		if (d->sessions[i]->token == token)
			return d->sessions[i];
	return NULL;
}

/* What the client sent behind its hello, if it was in time. */
static bool adopt(struct fake_client *s, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct hr_hello offer;
	struct iovec iov = {.iov_base = &offer, .iov_len = sizeof(offer)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct hr_map_hdr *map;
	struct stat st;
	int map_fd;

	if (recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(offer))
		return false;
	assert(offer.kind == HR_HELLO_OFFER && CMSG_FIRSTHDR(&msg) != NULL);
	memcpy(&map_fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(map_fd));
	assert(fstat(map_fd, &st) == 0);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	assert(map != MAP_FAILED);
	close(map_fd);
	if (s->n_maps == 0) {
		s->token = offer.session;
		s->seen.offered = true;
	} else {
		s->seen.more_offered++;
	}
	assert(offer.session == s->token && map->session == s->token);
	keep_map(s, map, HR_MAP_RINGS, map->slots_log2);
	return true;
}

static void answer(struct fake_daemon *d, int fd, const uint8_t *buf, size_t n)
{
	struct hr_ack ack = {.magic = HR_ABI_MAGIC, .abi = HR_ABI_VERSION, .status = d->o.status};
	struct hr_hello hello;
	struct fake_client *s;
	int fds[2];

	memcpy(&hello, buf, sizeof(hello));
	assert(n == hello.bytes && hello.magic == HR_ABI_MAGIC);
	if (ack.status != 0) {
		send_ack(fd, &ack, NULL, 0);
		return;
	}
	ack.flags = d->o.monotonic ? 0 : hello.flags & HR_HELLO_TICKS_TSC ? HR_ACK_CLOCK_TSC : 0;
	ack.level = d->o.level;
	if (hello.kind == HR_HELLO_MORE_RINGS) {
		s = by_token(d, hello.session);
		if (s == NULL || s->n_maps >= d->o.most_maps) {
			ack.status = -ENOSPC;
			send_ack(fd, &ack, NULL, 0);
			return;
		}
		if (adopt(s, fd))
			return;
		ack.session = s->token;
		fds[0] = add_map(d, s, &ack);
		send_ack(fd, &ack, fds, 1);
		close(fds[0]);
		return;
	}
	assert(d->n_sessions < SESSIONS);
	s = fake_must(calloc(1, sizeof(*s)));
	s->token = fake_now_ns() << 16 | d->n_sessions;
	s->seen.hello = hello;
	s->seen.items = fake_must(malloc(n));
	memcpy(s->seen.items, buf + sizeof(hello), n - sizeof(hello));
	d->sessions[d->n_sessions++] = s;
	if (adopt(s, fd))
		return;
	ack.session = s->token;
	fds[0] = add_map(d, s, &ack);
	fds[1] = d->node_fd;
	send_ack(fd, &ack, fds, 2);
	close(fds[0]);
}

static void serve(struct fake_daemon *d, int fd)
{
	static uint8_t buf[HR_HELLO_MAX_BYTES];
	ssize_t n = recv(fd, buf, sizeof(buf), 0);

	shutdown(fd, SHUT_RD);
	usleep(d->o.delay_ms * 1000);
	pthread_mutex_lock(&d->lock);
	if (n >= (ssize_t)sizeof(struct hr_hello))
		answer(d, fd, buf, (size_t)n);
	pthread_mutex_unlock(&d->lock);
	close(fd);
}

bool fake_accept(struct fake_daemon *d)
{
	bool silent;
	int fd;

	pthread_mutex_lock(&d->lock);
	fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);
	silent = d->o.silent;
	if (fd >= 0 && silent)
		d->waiting[d->n_waiting++] = fd;
	pthread_mutex_unlock(&d->lock);
	if (fd >= 0 && !silent)
		serve(d, fd);
	return fd >= 0;
}

void fake_silence(struct fake_daemon *d)
{
	pthread_mutex_lock(&d->lock);
	d->o.silent = true;
	pthread_mutex_unlock(&d->lock);
}

void fake_wake(struct fake_daemon *d)
{
	while (fake_accept(d))
		;
	for (size_t i = 0; i < d->n_waiting; i++)
		serve(d, d->waiting[i]);
	pthread_mutex_lock(&d->lock);
	d->n_waiting = 0;
	d->o.silent = false;
	pthread_mutex_unlock(&d->lock);
}
