/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/collector/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "net/address.h"

#define WAIT_MS	 300000
#define ARGS_MAX 32

/* ---- the collector --------------------------------------------------------------------------- */

static struct {
	char path[4096];   /* what tests/faults/preload.c reads; "": no clocks of ours */
	int64_t shifts[4]; /* as it is laid out there */
} clocks;

enum { WALL_NS = 0, STEADY_NS = 3 };

static void shift(unsigned which, int64_t seconds)
{
	int fd = open(clocks.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	clocks.shifts[which] += seconds * 1000000000;
	assert_int_equal(write(fd, clocks.shifts, sizeof(clocks.shifts)), sizeof(clocks.shifts));
	close(fd);
}

void collector_clocks(const char *path)
{
	memset(&clocks, 0, sizeof(clocks));
	if (!path)
		return;
	snprintf(clocks.path, sizeof(clocks.path), "%s", path);
	shift(WALL_NS, 0);
}

void collector_later(int64_t seconds)
{
	shift(STEADY_NS, seconds);
}

void collector_date(int64_t seconds)
{
	shift(WALL_NS, seconds);
}

static void use_clocks(void)
{
	if (clocks.path[0] == '\0')
		return;
	setenv("HR_FAULTS", clocks.path, 1);
	setenv("LD_PRELOAD", HEADRACE_FAULTS, 1);
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
}

static pid_t spawn(const char *store, const char *log, va_list args)
{
	char *argv[ARGS_MAX] = {HEADRACE_COLLECTOR, "--listen", "tcp://127.0.0.1:0"};
	int n = 3, fd;
	pid_t pid;

	if (store) {
		argv[n++] = "--store";
		argv[n++] = (char *)store;
	}
	while (n < ARGS_MAX - 1 && (argv[n] = va_arg(args, char *)) != NULL)
		n++;
	argv[n] = NULL;
	unlink(log);
	pid = fork();
	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves none behind */
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(fd, STDERR_FILENO);
	use_clocks();
	execv(argv[0], argv);
	_exit(127);
}

static char *read_log(const char *path)
{
	uint8_t *text = NULL;
	size_t bytes = 0;

	if (access(path, R_OK) == 0)
		bytes = help_read(path, &text);
	text = realloc(text, bytes + 1);
	assert_non_null(text);
	text[bytes] = '\0';
	return (char *)text;
}

void collector_start(struct collector *c, const char *store, const char *log, ...)
{
	static const char words[] = "listening on ";
	va_list args;

	snprintf(c->log, sizeof(c->log), "%s", log);
	va_start(args, log);
	c->pid = spawn(store, c->log, args);
	va_end(args);
	for (int i = 0; i < WAIT_MS / 10; i++) {
		char *text = read_log(c->log), *found = strstr(text, words);

		if (found && strchr(found, '\n')) {
			found += sizeof(words) - 1;
			snprintf(c->address, sizeof(c->address), "%.*s", (int)strcspn(found, " \n"),
				 found);
			free(text);
			return;
		}
		if (waitpid(c->pid, NULL, WNOHANG) == c->pid)
			fail_msg("it ended: %s", text);
		free(text);
		usleep(10000);
	}
	fail_msg("it does not listen");
}

static int wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int collector_run(const char *store, const char *log, ...)
{
	va_list args;
	pid_t pid;

	va_start(args, log);
	pid = spawn(store, log, args);
	va_end(args);
	return wait_for(pid);
}

int collector_stop(struct collector *c)
{
	assert_int_equal(kill(c->pid, SIGTERM), 0);
	return wait_for(c->pid);
}

void collector_kill(struct collector *c)
{
	assert_int_equal(kill(c->pid, SIGKILL), 0);
	assert_int_equal(wait_for(c->pid), 128 + SIGKILL);
}

bool collector_printed(const struct collector *c, const char *text)
{
	char *log = read_log(c->log);
	bool said = strstr(log, text) != NULL;

	free(log);
	return said;
}

unsigned collector_printed_times(const struct collector *c, const char *text)
{
	char *log = read_log(c->log);
	unsigned n = 0;

	for (const char *at = strstr(log, text); at; at = strstr(at + 1, text))
		n++;
	free(log);
	return n;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

void client_connect(struct client *c, const char *address)
{
	struct sockaddr_storage s;
	struct hr_address a;
	size_t n;

	*c = (struct client){.room = 16384, .buf = malloc(16384)};
	assert_non_null(c->buf);
	assert_int_equal(hr_address_parse(address, &a), 0);
	assert_int_equal(hr_address_resolve(&a, false, &s, 1, &n), 0);
	c->fd = socket(s.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(c->fd >= 0);
	assert_int_equal(connect(c->fd, (struct sockaddr *)&s, sizeof(s)), 0);
}

void client_done(struct client *c)
{
	close(c->fd);
	free(c->buf);
}

void client_send(struct client *c, const void *data, size_t bytes)
{
	const uint8_t *at = data;

	while (bytes > 0) {
		ssize_t n = send(c->fd, at, bytes, MSG_NOSIGNAL);

		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return; /* the end is what the test looks at next */
		assert_true(n > 0);
		at += n;
		bytes -= (size_t)n;
	}
}

void client_tell(struct client *c, const Headrace__Wire *msg)
{
	uint8_t *buf;
	size_t bytes;

	assert_int_equal(hr_wire_pack(msg, &buf, &bytes), 0);
	client_send(c, buf, bytes);
	free(buf);
}

/* More bytes. False: the end. */
static bool receive(struct client *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	ssize_t n;

	if (c->room - c->bytes < 4096) {
		c->room *= 2;
		c->buf = realloc(c->buf, c->room);
		assert_non_null(c->buf);
	}
	if (poll(&p, 1, WAIT_MS) != 1)
		fail_msg("nothing came");
	n = recv(c->fd, c->buf + c->bytes, c->room - c->bytes, 0);
	if (n <= 0)
		return false;
	c->bytes += (size_t)n;
	return true;
}

static Headrace__Wire *take_message(struct client *c)
{
	Headrace__Wire *msg = NULL;
	uint32_t flags;
	size_t need;
	int r;

	do /* at first there is no buffer either */
		r = c->bytes == 0 ? -EAGAIN
				  : hr_frame_check_any(c->buf, c->bytes, SIZE_MAX, &need, &flags);
	while (r == -EAGAIN && receive(c));
	if (r == -EAGAIN)
		return NULL;
	assert_int_equal(r, 0);
	assert_int_equal(flags, HR_FRAME_CONTROL);
	assert_int_equal(hr_wire_unpack(c->buf, need, &msg), 0);
	memmove(c->buf, c->buf + need, c->bytes - need);
	c->bytes -= need;
	return msg;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void pong(struct client *c, const Headrace__Ping *ping)
{
	Headrace__Pong body = HEADRACE__PONG__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT;
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	body.id = ping->id;
	body.boot_ns = 1;
	body.real_ns = (uint64_t)((int64_t)t.tv_sec * 1000000000 + t.tv_nsec + c->clock_ahead_ns);
	msg.body_case = HEADRACE__WIRE__BODY_PONG;
	msg.pong = &body;
	client_tell(c, &msg);
}

Headrace__Wire *client_next(struct client *c)
{
	for (;;) {
		Headrace__Wire *msg = take_message(c);

		if (!msg || msg->body_case != HEADRACE__WIRE__BODY_PING)
			return msg;
		if (!c->mute)
			pong(c, msg->ping);
		headrace__wire__free_unpacked(msg, NULL);
	}
}

Headrace__Wire *client_expect(struct client *c, Headrace__Wire__BodyCase kind)
{
	Headrace__Wire *msg = client_next(c);

	if (!msg) {
		fail_msg("the connection has ended");
		return NULL;
	}
	if (msg->body_case != kind && msg->body_case == HEADRACE__WIRE__BODY_NACK)
		fail_msg("Nack %s: %s", msg->nack->reason, msg->nack->text);
	assert_int_equal(msg->body_case, kind);
	return msg;
}

void client_expect_end(struct client *c)
{
	Headrace__Wire *msg;

	while ((msg = client_next(c)) != NULL) {
		assert_int_equal(msg->body_case, HEADRACE__WIRE__BODY_REFUSAL);
		headrace__wire__free_unpacked(msg, NULL);
	}
}

const char *client_hello(struct client *c, uint32_t min, uint32_t max, const char *node)
{
	Headrace__Hello hello = HEADRACE__HELLO__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT, *answer;
	static char reason[64];

	hello.min_version = min;
	hello.max_version = max;
	hello.software = "a test";
	hello.node = (char *)node;
	hello.boot_id = "b";
	msg.body_case = HEADRACE__WIRE__BODY_HELLO;
	msg.hello = &hello;
	client_tell(c, &msg);
	answer = client_next(c);
	assert_non_null(answer);
	if (answer->body_case == HEADRACE__WIRE__BODY_REFUSAL) {
		snprintf(reason, sizeof(reason), "%s", answer->refusal->reason);
		headrace__wire__free_unpacked(answer, NULL);
		return reason;
	}
	assert_int_equal(answer->body_case, HEADRACE__WIRE__BODY_HELLO_ACK);
	assert_true(answer->hello_ack->version >= min && answer->hello_ack->version <= max);
	c->window_bytes = answer->hello_ack->window_bytes;
	headrace__wire__free_unpacked(answer, NULL);
	return NULL;
}

void client_join(struct client *c, const char *address, const char *node)
{
	client_connect(c, address);
	assert_null(client_hello(c, HR_WIRE_VERSION_MIN, HR_WIRE_VERSION, node));
}

/* ---- streams --------------------------------------------------------------------------------- */

void client_open(struct client *c, uint32_t channel, const char *job, const char *node,
		 uint8_t secret)
{
	Headrace__Open open = HEADRACE__OPEN__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT;
	uint8_t bytes[HR_WIRE_SECRET_BYTES];

	memset(bytes, secret, sizeof(bytes));
	open.channel = channel;
	open.cluster = "c";
	open.job = (char *)job;
	open.node = (char *)node;
	open.boot_id = "b";
	open.instance = 1;
	open.secret = (ProtobufCBinaryData){sizeof(bytes), bytes};
	msg.body_case = HEADRACE__WIRE__BODY_OPEN;
	msg.open = &open;
	client_tell(c, &msg);
}

uint64_t client_opened(struct client *c, uint32_t channel)
{
	Headrace__Wire *msg = client_expect(c, HEADRACE__WIRE__BODY_OPENED);
	uint64_t mark = msg->opened->mark;

	assert_int_equal(msg->opened->channel, channel);
	headrace__wire__free_unpacked(msg, NULL);
	return mark;
}

void client_use(struct client *c, uint32_t channel)
{
	Headrace__Use use = HEADRACE__USE__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT;

	use.channel = channel;
	msg.body_case = HEADRACE__WIRE__BODY_USE;
	msg.use = &use;
	client_tell(c, &msg);
}

void client_close(struct client *c, uint32_t channel)
{
	Headrace__Close body = HEADRACE__CLOSE__INIT;
	Headrace__Wire msg = HEADRACE__WIRE__INIT;

	body.channel = channel;
	msg.body_case = HEADRACE__WIRE__BODY_CLOSE;
	msg.close = &body;
	client_tell(c, &msg);
}

void client_frame(struct client *c, struct frame f)
{
	client_send(c, f.buf, f.bytes);
	free(f.buf);
}

void client_losses(struct client *c, uint64_t first, uint64_t last)
{
	for (uint64_t seq = first; seq <= last; seq++)
		client_frame(c, frame_loss(seq));
}

void client_acked(struct client *c, uint32_t channel, uint64_t seq)
{
	do {
		Headrace__Wire *msg = client_expect(c, HEADRACE__WIRE__BODY_ACK);

		assert_int_equal(msg->ack->channel, channel);
		c->acked = msg->ack->seq;
		headrace__wire__free_unpacked(msg, NULL);
	} while (c->acked < seq);
	assert_int_equal(c->acked, seq);
}

void client_nacked(struct client *c, uint32_t channel, const char *reason)
{
	Headrace__Wire *msg = client_expect(c, HEADRACE__WIRE__BODY_NACK);

	assert_int_equal(msg->nack->channel, channel);
	assert_string_equal(msg->nack->reason, reason);
	headrace__wire__free_unpacked(msg, NULL);
}
