/* SPDX-License-Identifier: Apache-2.0 */
/* Maps that clients made while the daemon did not answer: what the kernel promises, whole lives, restarts, and lies. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "daemon/attach/attach.h"
#include "nodes.h"
#include "offer.h"
#include "tests/unit.h"

#define HALF_BYTES (8u << 20)
#define EACH	   200u

static const struct hr_node_page *page; /* of the daemon that start() has begun */

static pid_t start(struct nodes *n)
{
	struct client c;
	pid_t daemon;

	nodes_init(n, HALF_BYTES);
	daemon = nodes_start(n);
	assert_int_equal(client_attach(&c, n->socket, 0, 0, NULL), 0);
	offer_tsc = c.tsc;
	if (page)
		munmap((void *)(uintptr_t)page, sizeof(*page));
	page = c.page;
	c.page = mmap(NULL, sizeof(*page), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	client_detach(&c);
	return daemon;
}

/* ---- what the kernel does ----------------------------------------------------------------------------- */

static int listen_at(char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(path, "/tmp/hr-offer.XXXXXX");
	assert_non_null(mkdtemp(path));
	strcat(path, "/s");
	strcpy(addr.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static void unlisten(int fd, char *path)
{
	close(fd);
	unlink(path);
	path[strlen(path) - 2] = '\0';
	rmdir(path);
}

/* A connection that nobody has accepted keeps messages and descriptors of a sender that is gone. */
static void an_offer_outlives_its_sender(void **state)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct hr_hello hello;
	struct iovec iov = {&hello, sizeof(hello)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct nodes n;
	char path[96];
	int listener = listen_at(path), fd, map_fd, status;
	pid_t pid;

	snprintf(n.socket, sizeof(n.socket), "%s", path);
	pid = fork();
	if (pid == 0) {
		struct offer o;

		offer_make(&o, 5, 0);
		o.map->spare[0] = 77;
		offer_send(&n, &o);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	fd = accept(listener, NULL, NULL);
	assert_int_equal(recv(fd, &hello, sizeof(hello), 0), sizeof(hello));
	assert_int_equal(shutdown(fd, SHUT_RD), 0);
	assert_int_equal(recvmsg(fd, &msg, MSG_DONTWAIT), sizeof(hello));
	assert_int_equal(hello.kind, HR_HELLO_OFFER);
	if (!CMSG_FIRSTHDR(&msg))
		abort();
	memcpy(&map_fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(map_fd));
	assert_int_equal(pread(map_fd, &status, 4, offsetof(struct hr_map_hdr, spare)), 4);
	assert_int_equal(status, 77);
	assert_int_equal(recvmsg(fd, &msg, MSG_DONTWAIT), 0);
	close(map_fd);
	close(fd);
	unlisten(listener, path);
}

/* Behind the daemon's shutdown an offer fails, and the answer gets through. */
static void an_offer_comes_in_time_or_fails(void **state)
{
	struct hr_hello hello = {0};
	struct hr_ack ack = {.status = 7};
	struct offer o;
	char path[96];
	int listener = listen_at(path), client = offer_knock(path),
	    fd = accept(listener, NULL, NULL);

	offer_make(&o, 5, 0);
	assert_int_equal(send(client, &o.hello, sizeof(o.hello), 0), sizeof(o.hello));
	assert_int_equal(recv(fd, &hello, sizeof(hello), 0), sizeof(hello));
	assert_int_equal(shutdown(fd, SHUT_RD), 0);
	assert_int_equal(offer_send_message(client, &o), -EPIPE);
	assert_int_equal(recv(fd, &hello, sizeof(hello), MSG_DONTWAIT), 0);
	assert_int_equal(send(fd, &ack, sizeof(ack), MSG_NOSIGNAL), sizeof(ack));
	assert_int_equal(recv(client, &ack, sizeof(ack), 0), sizeof(ack));
	assert_int_equal(ack.status, 7);
	close(o.fds[0]);
	munmap(o.map, OFFER_BYTES);
	close(client);
	close(fd);
	unlisten(listener, path);
}

/* ---- what the daemon does ------------------------------------------------------------------------------ */

static void check(struct nodes *n, pid_t daemon, unsigned events, struct nodes_sums *sums)
{
	uint8_t *seen = calloc(1, events + 1);

	assert_int_equal(nodes_stop(n, daemon), 0);
	nodes_read(n, seen, events, sums);
	for (unsigned i = 0; i < events; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(sums->events, events);
	assert_int_equal(sums->problems, 0);
	assert_int_equal(sums->lost + sums->torn + sums->hostile, 0);
	free(seen);
	client_fdstore_clear();
	nodes_done(n);
}

/* Parent and child are born and gone while the daemon sleeps; one of another generation has an image after the other. */
static void the_dead_are_recorded(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	pid_t daemon = start(&n), pid;
	int status;

	nodes_pause(daemon);
	pid = fork();
	if (pid == 0) {
		struct offer o;

		offer_make(&o, 21, 0);
		offer_send(&n, &o);
		offer_reads(&o, 0, EACH);
		pid = fork();
		if (pid == 0) {
			offer_make(&o, 22, 21);
			offer_send(&n, &o);
			offer_reads(&o, EACH, 2 * EACH);
			offer_make(&o, 23, 0); /* exec */
			offer_send(&n, &o);
			offer_reads(&o, 2 * EACH, 3 * EACH);
			raise(SIGKILL);
		}
		waitpid(pid, &status, 0);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	kill(daemon, SIGCONT);
	check(&n, daemon, 3 * EACH, &sums);
	assert_int_equal(sums.processes, 4); /* and the one that asked for the clock */
	assert_int_equal(sums.ended_processes, 3);
}

/* Thousands of maps may wait: what nobody wrote to costs no memory, not even when its owner died in the middle. */
static void unused_slots_have_no_pages(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct hr_ring_hdr *ring;
	struct offer o;
	struct stat st;
	pid_t daemon = start(&n), pid;
	int fd, status;

	nodes_pause(daemon);
	offer_make(&o, 24, 0);
	fd = dup(o.fds[0]);
	pid = fork();
	if (pid == 0) {
		offer_send(&n, &o);
		offer_reads(&o, 0, EACH);
		ring = (struct hr_ring_hdr *)((uint8_t *)o.map +
					      hr_ring_offset(0, HR_OFFER_SLOTS_LOG2));
		ring->head++; /* reserved, never committed */
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(o.fds[0]);
	munmap(o.map, OFFER_BYTES);
	kill(daemon, SIGCONT);
	assert_int_equal(nodes_stop(&n, daemon), 0);
	nodes_read(&n, NULL, 0, &sums);
	assert_int_equal(sums.events, EACH);
	assert_int_equal(sums.torn, 1);
	assert_int_equal(fstat(fd, &st), 0);
	assert_in_range(st.st_blocks * 512, 1, 256 << 10); /* of four times a MiB */
	close(fd);
	client_fdstore_clear();
	nodes_done(&n);
}

/* An offered map is handed on to the next daemon like any other, and so is its ring position. */
static void the_living_go_on(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct client c = {0};
	struct offer o;
	pid_t daemon = start(&n);

	nodes_pause(daemon);
	offer_make(&o, 31, 0);
	offer_send(&n, &o);
	offer_reads(&o, 0, EACH);
	kill(daemon, SIGCONT);
	offer_reads(&o, EACH, 2 * EACH);
	c.token = 31;
	nodes_await(client_more_rings(&c, n.socket) == 0); /* its turn has come */
	munmap(c.maps[0], hr_map_bytes(HR_MAP_RINGS, HR_RING_SLOTS_LOG2));
	nodes_kill(daemon);
	client_fdstore_gather();
	offer_reads(&o, 2 * EACH, 3 * EACH);
	daemon = nodes_start(&n);
	offer_reads(&o, 3 * EACH, 4 * EACH);
	check(&n, daemon, 4 * EACH, &sums);
	munmap(o.map, OFFER_BYTES);
}

/* One that left without an offer has taken back what it said: it gets no session, and is not missing. */
static void who_gave_up_is_no_process(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct offer o;
	pid_t daemon = start(&n);
	int fd;

	nodes_pause(daemon);
	offer_make(&o, 41, 0);
	fd = offer_knock(n.socket);
	assert_int_equal(send(fd, &o.hello, sizeof(o.hello), 0), sizeof(o.hello));
	close(fd);
	kill(daemon, SIGCONT);
	close(o.fds[0]);
	munmap(o.map, OFFER_BYTES);
	check(&n, daemon, 0, &sums);
	assert_int_equal(sums.processes, 1);
}

/* Whether the daemon has accepted a connection of this process, and not answered it. */
static bool is_guest(void)
{
	for (unsigned i = 0; i < HR_PAGE_PENDING; i++)
		if (__atomic_load_n(&page->pending[i], __ATOMIC_RELAXED) == getpid())
			return true;
	return false;
}

/* Waits until a sweep has begun and ended. */
static void await_sweep(void)
{
	uint64_t before = __atomic_load_n(&page->beat, __ATOMIC_RELAXED);

	nodes_await(__atomic_load_n(&page->beat, __ATOMIC_RELAXED) >= before + 2);
}

/* A daemon is killed with a connection that it has accepted, and the offer in it is gone. Returns what the next one counts. */
static uint64_t lose_offer(bool connects_again)
{
	struct nodes n;
	struct nodes_sums sums;
	struct offer o, other;
	struct client c;
	pid_t daemon = start(&n);
	int fd;

	assert_int_equal(client_attach(&c, n.socket, 0, 0, NULL), 0);
	fd = offer_knock(n.socket);
	nodes_await(is_guest());
	nodes_pause(daemon);
	offer_make(&o, 43, 0);
	offer_send_by(fd, &o);
	nodes_kill(daemon);
	client_fdstore_gather();
	if (!connects_again)
		hr_attach_pending_ns = 1;
	daemon = nodes_start(&n);
	if (connects_again) {
		nodes_pause(daemon);
		offer_make(&other, 44, 0);
		offer_send(&n, &other);
		munmap(other.map, OFFER_BYTES);
		kill(daemon, SIGCONT);
	} else {
		nodes_await(!is_guest()); /* the time to connect again is over */
		await_sweep();		  /* which journals that */
		nodes_kill(daemon);
		client_fdstore_gather();
		daemon = nodes_start(&n);
	}
	client_detach(&c);
	munmap(o.map, OFFER_BYTES);
	check(&n, daemon, 0, &sums);
	return sums.other_loss;
}

static void an_offer_that_a_kill_took_is_counted(void **state)
{
	assert_int_equal(lose_offer(false), 1);
}

static void a_client_that_connects_again_is_not_counted(void **state)
{
	assert_int_equal(lose_offer(true), 0);
}

/* A daemon is stopped while a client connects, for longer than it waits for messages. */
static void a_late_message_is_read(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct offer o;
	pid_t daemon = start(&n);
	int fd;

	nodes_kill(daemon);
	client_fdstore_gather();
	hr_attach_pending_ns = 500000000;
	daemon = nodes_start(&n);
	for (;;) {
		fd = offer_knock(n.socket);
		nodes_await(is_guest());
		nodes_pause(daemon);
		if (is_guest()) /* otherwise, this test was too slow */
			break;
		close(fd);
		kill(daemon, SIGCONT);
	}
	offer_make(&o, 46, 0);
	offer_send_by(fd, &o);
	offer_reads(&o, 0, EACH);
	usleep(600000);
	kill(daemon, SIGCONT);
	check(&n, daemon, EACH, &sums);
	assert_int_equal(sums.processes, 2); /* and the one that asked for the clock */
	assert_int_equal(sums.other_loss, 0);
	munmap(o.map, OFFER_BYTES);
}

/* A further map for threads of a session is adopted like the first one, of the dead, too, and once though it comes twice. */
static void further_maps(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct offer o, more, again;
	pid_t daemon = start(&n), pid;
	int status;

	nodes_pause(daemon);
	pid = fork();
	if (pid == 0) {
		offer_make(&o, 51, 0);
		offer_send(&n, &o);
		offer_make_more(&more, 51);
		offer_send(&n, &more);
		offer_reads(&more, 0, EACH);
		offer_reads(&o, EACH, 2 * EACH);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	offer_make(&o, 52, 0);
	offer_send(&n, &o);
	offer_make_more(&more, 52);
	again = more;
	again.fds[0] = dup(more.fds[0]);
	offer_send(&n, &more);
	offer_send(&n, &again);
	offer_reads(&o, 2 * EACH, 3 * EACH);
	offer_reads(&more, 3 * EACH, 4 * EACH);
	kill(daemon, SIGCONT);
	offer_ping(n.socket);
	nodes_kill(daemon);
	client_fdstore_gather();
	offer_reads(&more, 4 * EACH, 5 * EACH);
	daemon = nodes_start(&n);
	offer_reads(&more, 5 * EACH, 6 * EACH);
	check(&n, daemon, 6 * EACH, &sums);
	assert_int_equal(sums.processes, 3); /* and the one that asked for the clock */
	munmap(o.map, OFFER_BYTES);
	munmap(more.map, OFFER_MORE_BYTES);
}

/*
 * A hello that comes after its connection was accepted, while others knock: what the same process says by a later connection is
 * read behind it.
 */
static void first_things_first(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct offer o, more;
	pid_t daemon = start(&n);
	int first = offer_knock(n.socket), third;

	nodes_await(is_guest());
	nodes_pause(daemon);
	third = offer_knock(n.socket);
	offer_make(&o, 61, 0);
	offer_send_by(first, &o);
	offer_make_more(&more, 61);
	offer_send(&n, &more);
	offer_reads(&more, 0, EACH);
	kill(daemon, SIGCONT);
	check(&n, daemon, EACH, &sums);
	assert_int_equal(sums.processes, 2);
	close(third);
	munmap(o.map, OFFER_BYTES);
	munmap(more.map, OFFER_MORE_BYTES);
}

/* ---- lies ----------------------------------------------------------------------------------------------- */

static void replace(struct offer *o, int fd)
{
	close(o->fds[0]);
	o->fds[0] = fd;
}

static int memory(uint64_t bytes, int seals)
{
	int fd = memfd_create("lie", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* Makes lie number i of a right offer; false when there is no such. `used`: a token that another session has. */
static bool lie(struct offer *o, unsigned i, uint64_t used)
{
	int pipes[2];

	switch (i) {
	case 0:
		replace(o, memory(OFFER_BYTES, F_SEAL_GROW | F_SEAL_SEAL)); /* could shrink */
		return true;
	case 1:
		replace(o, memory(OFFER_BYTES, F_SEAL_SHRINK)); /* could grow */
		return true;
	case 2:
		replace(o, memory(OFFER_BYTES - 4096, OFFER_SEALS));
		return true;
	case 3:
		replace(o, memory(UINT64_C(1) << 40, OFFER_SEALS));
		return true;
	case 4:
		replace(o, memory(OFFER_BYTES, OFFER_SEALS)); /* no header */
		return true;
	case 5:
		assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
		close(pipes[1]);
		replace(o, pipes[0]);
		return true;
	case 6:
		replace(o, open("/dev/zero", O_RDWR | O_CLOEXEC));
		return true;
	case 7:
		o->fds[o->n_fds++] = dup(o->fds[0]);
		return true;
	case 8:
		close(o->fds[--o->n_fds]);
		return true;
	case 9:
		o->message.session = o->map->session = 0;
		return true;
	case 10:
		o->message.session = o->map->session = used;
		return true;
	case 11:
		o->map->session ^= 1;
		return true;
	case 12:
		o->map->slots_log2 = 20;
		return true;
	case 13:
		o->map->ring_count = 1u << 31;
		return true;
	case 14:
		o->message_bytes = 20;
		return true;
	case 15:
		o->message.kind = HR_HELLO_ATTACH;
		return true;
	case 16:
		o->message.flags ^= HR_HELLO_TICKS_TSC;
		o->hello.flags ^= HR_HELLO_TICKS_TSC;
		return true;
	case 17:
		o->message.magic++;
		return true;
	default:
		return false;
	}
}

/* Further maps of no session, and of a session of another name. */
static unsigned lies_about_more(const struct nodes *n, uint64_t token)
{
	struct offer o;

	offer_make_more(&o, 99);
	offer_send(n, &o);
	munmap(o.map, OFFER_MORE_BYTES);
	offer_make_more(&o, token);
	o.message.session = o.map->session = token ^ 1;
	offer_send(n, &o);
	munmap(o.map, OFFER_MORE_BYTES);
	return 2;
}

static void lies_are_counted(void **state)
{
	struct nodes n;
	struct nodes_sums sums;
	struct client honest;
	struct offer o;
	struct hr_ack ack;
	pid_t daemon = start(&n);
	unsigned lies = 0;
	int fds[2];

	assert_int_equal(client_attach(&honest, n.socket, 0, 0, NULL), 0);
	for (;; lies++) {
		nodes_pause(daemon);
		offer_make(&o, 100 + lies, 0);
		if (!lie(&o, lies, honest.token))
			break;
		offer_send(&n, &o);
		kill(daemon, SIGCONT);
		munmap(o.map, OFFER_BYTES);
	}
	lies += lies_about_more(&n, honest.token);
	kill(daemon, SIGCONT);
	/* Alone, an offer is no message at all. */
	assert_int_equal(client_talk(n.socket, &o.message, sizeof(o.message), &ack, fds),
			 -ECONNRESET);
	close(o.fds[0]);
	munmap(o.map, OFFER_BYTES);
	client_detach(&honest);
	check(&n, daemon, 0, &sums);
	assert_int_equal(sums.processes, 2);
	assert_int_equal(sums.other_loss, lies);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_offer_outlives_its_sender),
	    cmocka_unit_test(an_offer_comes_in_time_or_fails),
	    cmocka_unit_test(the_dead_are_recorded),
	    cmocka_unit_test(unused_slots_have_no_pages),
	    cmocka_unit_test(the_living_go_on),
	    cmocka_unit_test(who_gave_up_is_no_process),
	    cmocka_unit_test(an_offer_that_a_kill_took_is_counted),
	    cmocka_unit_test(a_client_that_connects_again_is_not_counted),
	    cmocka_unit_test(a_late_message_is_read),
	    cmocka_unit_test(further_maps),
	    cmocka_unit_test(first_things_first),
	    cmocka_unit_test(lies_are_counted),
	};

	client_fdstore_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
