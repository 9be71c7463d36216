/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connections [-n FRAMES] [-b BYTES] [-t FOLDER] - how fast frames go from one process to another over loopback
 *
 * With -t through TLS: FOLDER is what `make-ca FOLDER --collector localhost --node n1` made. The sender keeps 4 MiB queued, the
 * receiver checks each frame's CRC, as conn.c always does, and throws it away. Prints MB/s, and CPU time of each side per MB.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/frame.h"
#include "net/conn.h"

#define QUEUE_BYTES (4u << 20)

static struct {
	uv_loop_t loop;
	uv_tcp_t listener;
	struct hr_tls *tls;
	struct hr_conn *conn;
	unsigned long frames, bytes, done;
	uint8_t *frame;
} b = {.frames = 20000, .bytes = 350000};

static void die(const char *what, int r)
{
	fprintf(stderr, "connections: %s: %s\n", what, uv_strerror(r));
	exit(1);
}

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* ---- receiver ------------------------------------------------------------------------------------ */

static void receiver_ready(void *self)
{
	(void)self;
	hr_conn_limit(b.conn, HR_FRAME_MAX_BYTES);
}

static int receiver_frame(void *self, uint8_t *frame, size_t bytes, bool control)
{
	(void)self;
	(void)bytes;
	(void)control;
	free(frame);
	b.done++;
	return 0;
}

static void receiver_closed(void *self, int error, const char *why)
{
	(void)self;
	if (error < 0 || b.done != b.frames)
		fprintf(stderr, "connections: %lu of %lu frames came: %s\n", b.done, b.frames, why);
	printf("receiver %.3f ms of CPU per MB\n",
	       cpu_s() * 1e9 / ((double)b.frames * (double)b.bytes));
	uv_close((uv_handle_t *)&b.listener, NULL);
}

static const struct hr_conn_events receiver_events = {
    .ready = receiver_ready, .frame = receiver_frame, .closed = receiver_closed};

static void on_connection(uv_stream_t *listener, int status)
{
	int r = status < 0
		    ? status
		    : hr_conn_accept(listener, b.tls, false, &receiver_events, NULL, &b.conn);

	if (r < 0)
		die("accept", r);
}

/* ---- sender -------------------------------------------------------------------------------------- */

static void fill(void *self)
{
	(void)self;
	while (b.done < b.frames && hr_conn_queued(b.conn) < QUEUE_BYTES) {
		size_t bytes = HR_FRAME_HDR_BYTES + b.bytes;
		uint8_t *copy = malloc(bytes);

		if (!copy)
			die("frame", -ENOMEM);
		memcpy(copy, b.frame, bytes);
		hr_conn_send(b.conn, copy, bytes);
		b.done++;
	}
	if (b.done == b.frames)
		hr_conn_close(b.conn, false);
}

static int sender_frame(void *self, uint8_t *frame, size_t bytes, bool control)
{
	(void)self;
	(void)bytes;
	(void)control;
	free(frame);
	return -EPROTO;
}

static void sender_closed(void *self, int error, const char *why)
{
	(void)self;
	if (error < 0)
		fprintf(stderr, "connections: %s\n", why);
}

static const struct hr_conn_events sender_events = {
    .ready = fill, .frame = sender_frame, .drained = fill, .closed = sender_closed};

static void make_frame(void)
{
	b.frame = malloc(HR_FRAME_HDR_BYTES + b.bytes);
	if (!b.frame)
		die("frame", -ENOMEM);
	for (size_t i = 0; i < b.bytes; i++)
		b.frame[HR_FRAME_HDR_BYTES + i] = (uint8_t)(i * 2654435761u >> 13);
	hr_frame_seal(b.frame, b.bytes, 0);
}

/* ---- both ---------------------------------------------------------------------------------------- */

static void use_tls(const char *folder, const char *who, bool server)
{
	char cert[512], key[512], ca[512], *error = NULL;
	struct hr_tls_files files = {cert, key, ca};

	snprintf(cert, sizeof(cert), "%s/%s.pem", folder, who);
	snprintf(key, sizeof(key), "%s/%s.key", folder, who);
	snprintf(ca, sizeof(ca), "%s/ca.pem", folder);
	if (hr_tls_new(&files, server, &b.tls, &error) < 0) {
		fprintf(stderr, "connections: %s\n", error);
		exit(1);
	}
}

static void receive(int socket, const char *tls)
{
	int r = uv_loop_init(&b.loop);

	if (tls)
		use_tls(tls, "collector/localhost", true);
	uv_tcp_init(&b.loop, &b.listener);
	if (r == 0)
		r = uv_tcp_open(&b.listener, socket);
	if (r == 0)
		r = uv_listen((uv_stream_t *)&b.listener, 1, on_connection);
	if (r < 0)
		die("listen", r);
	uv_run(&b.loop, UV_RUN_DEFAULT);
}

static void transmit(uint16_t port, const char *tls)
{
	struct hr_address to = {.host = "localhost", .port = port};
	uint64_t begun;
	double s, mb = 1e-6 * (double)b.frames * (double)b.bytes;
	int r = uv_loop_init(&b.loop);

	if (tls)
		use_tls(tls, "node/n1", false);
	make_frame();
	begun = uv_hrtime();
	if (r == 0)
		r = hr_conn_connect(&b.loop, &to, b.tls, &sender_events, NULL, &b.conn);
	if (r < 0)
		die("connect", r);
	uv_run(&b.loop, UV_RUN_DEFAULT);
	s = 1e-9 * (double)(uv_hrtime() - begun);
	printf("%s %.0f MB/s, %lu frames of %lu bytes\nsender %.3f ms of CPU per MB\n",
	       tls ? "TLS" : "plain", mb / s, b.frames, b.bytes, cpu_s() * 1e3 / mb);
}

int main(int argc, char **argv)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(in);
	const char *tls = NULL;
	int option, fd;
	pid_t child;

	while ((option = getopt(argc, argv, "n:b:t:")) != -1) {
		if (option == 'n')
			b.frames = strtoul(optarg, NULL, 10);
		else if (option == 'b')
			b.bytes = strtoul(optarg, NULL, 10);
		else if (option == 't')
			tls = optarg;
		else
			return 2;
	}
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&in, bytes) < 0 || listen(fd, 1) < 0 ||
	    getsockname(fd, (struct sockaddr *)&in, &bytes) < 0)
		die("socket", -errno);
	child = fork();
	if (child < 0)
		die("fork", -errno);
	if (child == 0) {
		receive(fd, tls);
		fflush(stdout);
		_exit(0);
	}
	close(fd);
	transmit(ntohs(in.sin_port), tls);
	waitpid(child, NULL, 0);
	return 0;
}
