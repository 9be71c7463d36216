/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blockfs MOUNTPOINT [OPEN_MS [READ_MS]] - a file system with a regular file, `block`, whose reads can block, and slow ones
 *
 * Pipes and ttys are never recorded, so that a blocking read of a *data file* needs a file system
 * that can make one wait, as a parallel file system does. Spoken straight to /dev/fuse, one request
 * at a time: a read below offset 4096 is answered at once, one at or past it only when the kernel
 * says that a signal interrupted the reader. An open of it takes OPEN_MS ms (0), as an automounter does.
 * Each read of `slow0`, `slow1` and so on, 64 KiB each, takes READ_MS ms (0), one at a time. Mounts, prints "ready", serves until it is unmounted.
 * Exit status 77 where FUSE is not to be had.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILE_INO   2
#define FILE_BYTES (1 << 20)
#define SLOW_INO   100 /* and those from here on */
#define SLOW_BYTES 65536u

static int dev; /* an open /dev/fuse */
static unsigned open_ms, read_ms;

static void reply(const struct fuse_in_header *in, int error, const void *body, size_t bytes)
{
	struct fuse_out_header out = {
	    .len = (uint32_t)(sizeof(out) + bytes), .error = -error, .unique = in->unique};
	struct iovec iov[2] = {{&out, sizeof(out)}, {(void *)body, bytes}};

	/* ENOENT: the reader is gone already */
	if (writev(dev, iov, bytes > 0 ? 2 : 1) < 0 && errno != ENOENT)
		perror("blockfs: reply");
}

static struct fuse_attr attributes(uint64_t ino)
{
	struct fuse_attr attr = {.ino = ino, .nlink = 1, .blksize = 4096};

	attr.mode = ino >= FILE_INO ? S_IFREG | 0444 : S_IFDIR | 0755;
	attr.size = ino >= SLOW_INO ? SLOW_BYTES : ino == FILE_INO ? FILE_BYTES : 0;
	return attr;
}

static void on_init(const struct fuse_in_header *in)
{
	struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
				    .minor = FUSE_KERNEL_MINOR_VERSION,
				    .max_readahead = 0,
				    .max_write = 4096};

	reply(in, 0, &out, sizeof(out));
}

static void on_lookup(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = {.attr_valid = 60, .entry_valid = 60};

	if (strcmp(name, "block") == 0)
		out.nodeid = FILE_INO;
	else if (strncmp(name, "slow", 4) == 0)
		out.nodeid = SLOW_INO + strtoul(name + 4, NULL, 10);
	out.attr = attributes(out.nodeid);
	if (out.nodeid != 0)
		reply(in, 0, &out, sizeof(out));
	else
		reply(in, ENOENT, NULL, 0);
}

static void on_getattr(const struct fuse_in_header *in)
{
	struct fuse_attr_out out = {.attr_valid = 60};

	out.attr = attributes(in->nodeid);
	reply(in, 0, &out, sizeof(out));
}

static void on_open(const struct fuse_in_header *in)
{
	struct fuse_open_out out = {.open_flags = FOPEN_DIRECT_IO};

	if (in->opcode == FUSE_OPEN && in->nodeid == FILE_INO)
		usleep(open_ms * 1000);
	reply(in, 0, &out, sizeof(out));
}

static void on_read(const struct fuse_in_header *in, const struct fuse_read_in *want)
{
	static const char zeros[1 << 17];

	if (in->nodeid >= SLOW_INO) {
		uint64_t left = want->offset < SLOW_BYTES ? SLOW_BYTES - want->offset : 0;

		usleep(read_ms * 1000);
		reply(in, 0, zeros, want->size < left ? want->size : left);
	} else if (want->offset < 4096)
		reply(in, 0, zeros, want->size < sizeof(zeros) ? want->size : sizeof(zeros));
}

static void on_interrupt(const struct fuse_interrupt_in *which)
{
	struct fuse_in_header in = {.unique = which->unique};

	reply(&in, EINTR, NULL, 0);
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
		return reply(in, 0, NULL, 0);
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		return;
	default:
		return reply(in, ENOSYS, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	static char request[1 << 18] __attribute__((aligned(8)));
	char options[128];

	if (argc < 2 || argc > 4)
		return 2;
	read_ms = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	open_ms = argc >= 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d", dev,
		 (int)getuid(), (int)getgid());
	if (dev < 0 ||
	    mount("blockfs", argv[1], "fuse.blockfs", MS_NOSUID | MS_NODEV, options) < 0) {
		perror("blockfs");
		return 77;
	}
	puts("ready");
	fflush(stdout);
	while (read(dev, request, sizeof(request)) >= (ssize_t)sizeof(struct fuse_in_header) ||
	       errno == EINTR)
		dispatch(request);
	return 0; /* ENODEV: unmounted */
}
