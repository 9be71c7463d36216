/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blockfs MOUNTPOINT [OPEN_MS [READ_MS]] [NAME=VALUE...] - a file system whose files can block or be slow
 *
 * Pipes and terminals are never recorded, so a blocking read of a *data file* needs a file system that
 * can make one wait, as a parallel file system does. It reads requests from /dev/fuse, mounts, prints
 * "ready", and serves until it is unmounted. Exit status 77 without FUSE.
 *
 *   block           an open takes OPEN_MS ms (0), as that of an automounter. A read below offset 4096 is
 *                   answered at once, one at or past it only when a signal interrupts the reader.
 *   slow0, slow1... each read takes READ_MS ms (0). Settings of these files:
 *                     bytes=N      size (65536)
 *                     open=MS      an open takes this long; stat=MS: each stat()
 *                     only=N       only slowN is slow
 *                     parallel=1   requests are served at the same time, instead of one after the other
 *                     cached=1     the kernel keeps what was read
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FILE_INO   2
#define FILE_BYTES (1 << 20)
#define SLOW_INO   100 /* and those from here on */

static int dev; /* an open /dev/fuse */
static double open_ms, read_ms, slow_open_ms, stat_ms;
static unsigned long slow_bytes = 65536, only;
static bool only_one, parallel, cached;

/* Replies that wait for their time. */
static struct waiting {
	double at; /* ms */
	uint64_t unique;
	size_t bytes;
	bool zeros;
	char body[256]; /* if not all are zeros */
} queue[1024];
static size_t queued;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void reply(uint64_t unique, int error, const void *body, size_t bytes)
{
	static const char zeros[1 << 20];
	struct fuse_out_header out = {
	    .len = (uint32_t)(sizeof(out) + bytes), .error = -error, .unique = unique};
	struct iovec iov[2] = {{&out, sizeof(out)}, {(void *)(body != NULL ? body : zeros), bytes}};

	/* ENOENT: the reader is gone already */
	if (writev(dev, iov, bytes > 0 ? 2 : 1) < 0 && errno != ENOENT)
		perror("blockfs: reply");
}

/* Replies after `ms`, with zeros if there is no body. */
static void reply_after(const struct fuse_in_header *in, double ms, const void *body, size_t bytes)
{
	struct waiting *w = &queue[queued];

	if (only_one && in->nodeid != SLOW_INO + only)
		ms = 0;
	if (!parallel || ms <= 0 || queued == sizeof(queue) / sizeof(queue[0])) {
		usleep((useconds_t)(ms * 1000));
		reply(in->unique, 0, body, bytes);
		return;
	}
	*w = (struct waiting){
	    .at = now_ms() + ms, .unique = in->unique, .bytes = bytes, .zeros = body == NULL};
	if (body != NULL)
		memcpy(w->body, body, bytes);
	queued++;
}

/* Sends the replies whose time has come. Returns the time until the next one in ms; -1: none. */
static int send_due(void)
{
	double next = -1, now = now_ms();

	for (size_t i = 0; i < queued;) {
		struct waiting *w = &queue[i];
		if (w->at > now) {
			next = next < 0 || w->at < next ? w->at : next;
			i++;
			continue;
		}
		reply(w->unique, 0, w->zeros ? NULL : w->body, w->bytes);
		*w = queue[--queued];
	}
	return next < 0 ? -1 : next - now < 1 ? 1 : (int)(next - now);
}

static struct fuse_attr attributes(uint64_t ino)
{
	struct fuse_attr attr = {.ino = ino, .nlink = 1, .blksize = 4096};

	attr.mode = ino >= FILE_INO ? S_IFREG | 0444 : S_IFDIR | 0755;
	attr.size = ino >= SLOW_INO ? slow_bytes : ino == FILE_INO ? FILE_BYTES : 0;
	return attr;
}

static void on_init(const struct fuse_in_header *in)
{
	struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
				    .minor = FUSE_KERNEL_MINOR_VERSION,
				    .max_readahead = cached ? 1 << 17 : 0,
				    .max_write = 4096};

	reply(in->unique, 0, &out, sizeof(out));
}

static void on_lookup(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = {.attr_valid = stat_ms > 0 ? 0 : 60, .entry_valid = 60};

	if (strcmp(name, "block") == 0)
		out.nodeid = FILE_INO;
	else if (strncmp(name, "slow", 4) == 0)
		out.nodeid = SLOW_INO + strtoul(name + 4, NULL, 10);
	out.attr = attributes(out.nodeid);
	reply(in->unique, out.nodeid != 0 ? 0 : ENOENT, &out, out.nodeid != 0 ? sizeof(out) : 0);
}

static void on_getattr(const struct fuse_in_header *in)
{
	struct fuse_attr_out out = {.attr_valid = stat_ms > 0 ? 0 : 60};

	out.attr = attributes(in->nodeid);
	reply_after(in, in->nodeid >= SLOW_INO ? stat_ms : 0, &out, sizeof(out));
}

static void on_open(const struct fuse_in_header *in)
{
	bool slow = in->nodeid >= SLOW_INO;
	struct fuse_open_out out = {.open_flags =
					slow && cached ? FOPEN_KEEP_CACHE : FOPEN_DIRECT_IO};

	if (in->opcode == FUSE_OPEN && in->nodeid == FILE_INO)
		usleep((useconds_t)(open_ms * 1000));
	reply_after(in, slow && in->opcode == FUSE_OPEN ? slow_open_ms : 0, &out, sizeof(out));
}

static void on_read(const struct fuse_in_header *in, const struct fuse_read_in *want)
{
	size_t most = want->size < 1 << 20 ? want->size : 1 << 20;

	if (in->nodeid >= SLOW_INO) {
		size_t left = want->offset < slow_bytes ? slow_bytes - want->offset : 0;

		reply_after(in, read_ms, NULL, most < left ? most : left);
	} else if (want->offset < 4096)
		reply(in->unique, 0, NULL, most);
}

static void on_interrupt(const struct fuse_interrupt_in *which)
{
	for (size_t i = 0; i < queued; i++)
		if (queue[i].unique == which->unique)
			return; /* it comes */
	reply(which->unique, EINTR, NULL, 0);
}

static void dispatch(const char *request)
{
	const struct fuse_in_header *in = (const void *)request;
	const void *body = request + sizeof(*in);

	switch (in->opcode) {
	case FUSE_INIT:
		return on_init(in);
	case FUSE_LOOKUP:
		return on_lookup(in, body);
	case FUSE_GETATTR:
		return on_getattr(in);
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		return on_open(in);
	case FUSE_READ:
		return on_read(in, body);
	case FUSE_INTERRUPT:
		return on_interrupt(body);
	case FUSE_RELEASE:
	case FUSE_FLUSH:
		return reply(in->unique, 0, NULL, 0);
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		return;
	default:
		return reply(in->unique, ENOSYS, NULL, 0);
	}
}

static bool set(const char *word)
{
	const struct {
		const char *name;
		double *ms;
	} times[] = {{"open=", &slow_open_ms}, {"stat=", &stat_ms}};
	const char *value = strchr(word, '=');

	if (value == NULL)
		return false;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (strncmp(word, times[i].name, strlen(times[i].name)) == 0) {
			*times[i].ms = strtod(value + 1, NULL);
			return true;
		}
	if (strncmp(word, "bytes=", 6) == 0)
		slow_bytes = strtoul(value + 1, NULL, 10);
	else if (strncmp(word, "only=", 5) == 0) {
		only_one = true;
		only = strtoul(value + 1, NULL, 10);
	} else if (strncmp(word, "parallel=", 9) == 0)
		parallel = value[1] == '1';
	else if (strncmp(word, "cached=", 7) == 0)
		cached = value[1] == '1';
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	static char request[1 << 18] __attribute__((aligned(8)));
	char options[128];
	double *numbers[] = {&open_ms, &read_ms};
	size_t n = 0;

	if (argc < 2)
		return 2;
	for (int i = 2; i < argc; i++) {
		if (strchr(argv[i], '=') == NULL && n < 2)
			*numbers[n++] = strtod(argv[i], NULL);
		else if (!set(argv[i]))
			return 2;
	}
	dev = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d", dev,
		 (int)getuid(), (int)getgid());
	if (dev < 0 ||
	    mount("blockfs", argv[1], "fuse.blockfs", MS_NOSUID | MS_NODEV, options) < 0) {
		perror("blockfs");
		return 77;
	}
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct pollfd ready = {.fd = dev, .events = POLLIN};
		ssize_t got;

		poll(&ready, 1, send_due());
		got = read(dev, request, sizeof(request));
		if (got >= (ssize_t)sizeof(struct fuse_in_header))
			dispatch(request);
		else if (got >= 0 || (errno != EINTR && errno != EAGAIN && errno != ENOENT))
			return 0; /* ENODEV: unmounted */
	}
}
