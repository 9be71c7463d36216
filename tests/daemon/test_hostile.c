/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that lie, stay silent, write over all of their shared memory while it is read, or take its pages away. The daemon
 * goes on, other clients lose nothing, and it says what it dropped.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/ops.h"
#include "client.h"
#include "nodes.h"
#include "tests/unit.h"

#define HALF_BYTES (8u << 20)
#define HONEST	   5000u
/* Under TSan, a sweep over noise takes a second; its subject, the threads, is the same in each. */
#ifdef __SANITIZE_THREAD__
#define NOISY_SWEEPS 20u
#else
#define NOISY_SWEEPS 80u
#endif

static void honest_reads(const struct client *c, uint64_t from, uint64_t to)
{
	client_reads(c, client_ring(c, 0, 0), from, to);
}

/* In a process of its own, that an honest client shares the daemon with. */
static pid_t honest_client(const struct nodes *n)
{
	pid_t pid = fork();
	struct client c;

	if (pid)
		return pid;
	if (client_attach(&c, n->socket, 0, 0, NULL))
		_exit(1);
	honest_reads(&c, 0, HONEST);
	_exit(0);
}

static void finish(struct nodes *n, pid_t daemon, pid_t honest, struct nodes_sums *sums)
{
	uint8_t *seen = calloc(1, HONEST);
	int status;

	waitpid(honest, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(nodes_stop(n, daemon), 0);
	nodes_read(n, seen, HONEST, sums);
	for (unsigned i = 0; i < HONEST; i++)
		assert_true(seen[i] >= 1);
	assert_int_equal(sums->problems, 0);
	assert_true(sums->stream_ended);
	free(seen);
}

/* The number of the daemon's sweeps. */
static uint64_t beat(const struct client *c)
{
	return __atomic_load_n(&c->page->beat, __ATOMIC_RELAXED);
}

/* Waits until a sweep has begun and ended. */
static void await_sweep(const struct client *c)
{
	uint64_t before = beat(c);

	nodes_await(beat(c) >= before + 2);
}

/*
 * Some of it noise, some of it nearly right: committed slots with one field out of order. There is
 * something new for each of the sweeps, also if the daemon gets more time than this process.
 */
static void scribble(const struct client *c, unsigned sweeps)
{
	uint64_t *words = (uint64_t *)c->maps[0];
	size_t n = hr_map_bytes(HR_MAP_RINGS, HR_RING_SLOTS_LOG2) / 8;
	uint64_t last = beat(c);

	while (sweeps > 0) {
		struct hr_ring_hdr *ring = client_ring(c, 0, (unsigned)rand() % HR_MAP_RINGS);
		struct hr_record *slots = (struct hr_record *)(ring + 1);

		for (unsigned i = 0; i < 2000; i++)
			words[(size_t)rand() % n] = (uint64_t)rand() << 32 | (uint64_t)rand();
		for (uint64_t i = ring->tail; i < ring->tail + 64; i++) {
			struct hr_record *s = &slots[i & 4095];

			s->start_ticks = client_ticks(c);
			s->op = (uint16_t)(rand() % 600);
			s->asked = rand() % 3 ? (uint64_t)rand() % 9000 : (uint64_t)rand() << 33;
			s->bits = (uint32_t)rand() % 64;
			s->dur_hi = 0;
			s->offset = (int64_t)1 << 40;
			s->seq = (uint32_t)(i + 1);
		}
		if (beat(c) != last) {
			last = beat(c);
			sweeps--;
		}
	}
}

static void random_shared_memory(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct client c;
	pid_t daemon, honest;

	srand(7);
	nodes_init(&n, HALF_BYTES);
	daemon = nodes_start(&n);
	assert_int_equal(client_attach(&c, n.socket, 0, 0, NULL), 0);
	honest = honest_client(&n);
	scribble(&c, NOISY_SWEEPS);
	finish(&n, daemon, honest, &sums);
	assert_true(sums.hostile > 100);
	client_detach(&c);
	client_fdstore_clear();
	nodes_done(&n);
}

static void count_forged(struct hr_lost *row, uint64_t *total, uint64_t count)
{
	row->count += count;
	__atomic_fetch_add(total, 1, __ATOMIC_RELEASE);
}

/* Counts that no machine reaches in the life of a process change no sum; those of others, and what it counted before, stay. */
static void forged_counts(void **state)
{
	const uint16_t read = hr_op_by_name("read"), write = hr_op_by_name("write");
	struct hr_map_hdr *map;
	struct hr_ring_hdr *ring;
	struct nodes n;
	struct nodes_sums sums;
	struct client c;
	pid_t daemon, honest;

	nodes_init(&n, HALF_BYTES);
	daemon = nodes_start(&n);
	assert_int_equal(client_attach(&c, n.socket, 0, 0, NULL), 0);
	honest = honest_client(&n);
	map = (struct hr_map_hdr *)c.maps[0];
	ring = client_ring(&c, 0, 3);
	count_forged(&ring->lost[read], &ring->lost_total, 40);
	await_sweep(&c);
	count_forged(&ring->lost[read], &ring->lost_total, UINT64_C(1) << 50);
	count_forged(&ring->lost[write], &ring->lost_total, UINT64_C(1) << 55);
	await_sweep(&c);
	count_forged(&map->strays[read], &map->stray_total, UINT64_C(1) << 54);
	map->excluded[0] = UINT64_C(1) << 50;
	await_sweep(&c);
	finish(&n, daemon, honest, &sums);
	assert_int_equal(sums.lost, 40);
	assert_in_range(sums.hostile, 3, 6);
	assert_int_equal(sums.excluded, 0);
	client_detach(&c);
	client_fdstore_clear();
	nodes_done(&n);
}

static void pages_taken_away(void **state)
{
	struct hr_hello hello = {.magic = HR_ABI_MAGIC, .abi = HR_ABI_VERSION, .word_bytes = 8};
	struct nodes n;
	struct nodes_sums sums;
	struct hr_ack ack;
	pid_t daemon, honest;
	int fds[2];

	hello.kind = HR_HELLO_ATTACH;
	hello.bytes = sizeof(hello);
	nodes_init(&n, HALF_BYTES);
	daemon = nodes_start(&n);
	assert_int_equal(client_talk(n.socket, &hello, sizeof(hello), &ack, fds), 0);
	assert_int_equal(ftruncate(fds[0], 4096), -1);
	assert_int_equal(errno, EPERM);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0),
			 MAP_FAILED);
	honest = honest_client(&n);
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(fallocate(fds[0], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
					   (off_t)ack.map_bytes),
				 0);
		usleep(2000);
	}
	finish(&n, daemon, honest, &sums);
	close(fds[0]);
	close(fds[1]);
	client_fdstore_clear();
	nodes_done(&n);
}

static int silent(const struct nodes *n)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", n->socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void thousand_silent_connections(void **state)
{
	static int fds[1000];
	struct nodes n;
	struct nodes_sums sums;
	struct client c;
	pid_t daemon, honest;

	nodes_init(&n, HALF_BYTES);
	daemon = nodes_start(&n);
	for (unsigned i = 0; i < 1000; i++)
		fds[i] = silent(&n);
	assert_int_equal(client_attach(&c, n.socket, 0, 0, NULL), 0); /* it waits for none */
	client_detach(&c);
	honest = honest_client(&n);
	finish(&n, daemon, honest, &sums);
	for (unsigned i = 0; i < 1000; i++)
		close(fds[i]);
	client_fdstore_clear();
	nodes_done(&n);
}

static void cover_length(const struct nodes *n, const struct hr_hello *head, uint16_t bytes,
			 int wanted)
{
	struct {
		struct hr_hello hello;
		struct hr_item_hdr item;
		uint8_t value[32];
	} __attribute__((packed)) m = {*head, {HR_ITEM_COVER, bytes}, {0}};
	struct hr_ack ack;
	int fds[2];

	m.hello.bytes = (uint32_t)(sizeof(m.hello) + sizeof(m.item) + bytes);
	assert_int_equal(client_talk(n->socket, &m, m.hello.bytes, &ack, fds), wanted);
	if (wanted == 0) {
		close(fds[0]);
		close(fds[1]);
	}
}

static void garbage_hellos(void **state)
{
	struct hr_hello hello = {.magic = HR_ABI_MAGIC, .abi = HR_ABI_VERSION, .word_bytes = 8};
	uint8_t noise[4096];
	struct nodes n;
	struct nodes_sums sums;
	struct hr_ack ack;
	pid_t daemon, honest;
	int fds[2];

	srand(11);
	nodes_init(&n, HALF_BYTES);
	daemon = nodes_start(&n);
	hello.kind = HR_HELLO_ATTACH;
	hello.bytes = sizeof(hello);
	hello.abi = 99;
	assert_int_equal(client_talk(n.socket, &hello, sizeof(hello), &ack, fds), -EPROTO);
	hello.abi = HR_ABI_VERSION;
	assert_int_equal(client_talk(n.socket, &hello, 20, &ack, fds),
			 -ECONNRESET); /* half a hello */
	hello.kind = HR_HELLO_MORE_RINGS;
	hello.session = 12345; /* not ours */
	assert_int_equal(client_talk(n.socket, &hello, sizeof(hello), &ack, fds), -EACCES);
	hello.kind = HR_HELLO_ATTACH;
	cover_length(&n, &hello, sizeof(struct hr_item_cover), 0);
	cover_length(&n, &hello, sizeof(struct hr_item_cover) - 8, -ECONNRESET);
	cover_length(&n, &hello, sizeof(struct hr_item_cover) + 8, -ECONNRESET);
	for (unsigned i = 0; i < 300; i++) {
		size_t bytes = (size_t)rand() % sizeof(noise) + 1;

		for (size_t k = 0; k < sizeof(noise); k++)
			noise[k] = (uint8_t)rand();
		if (i % 2 && bytes >= sizeof(hello)) { /* a right head, then items of noise */
			hello.bytes = (uint32_t)bytes;
			memcpy(noise, &hello, sizeof(hello));
		}
		if (client_talk(n.socket, noise, bytes, &ack, fds) == 0) {
			close(fds[0]);
			close(fds[1]);
		}
	}
	honest = honest_client(&n);
	finish(&n, daemon, honest, &sums);
	client_fdstore_clear();
	nodes_done(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(random_shared_memory), cmocka_unit_test(forged_counts),
	    cmocka_unit_test(pages_taken_away),	    cmocka_unit_test(thousand_silent_connections),
	    cmocka_unit_test(garbage_hellos),
	};

	client_fdstore_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
