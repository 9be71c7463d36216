/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slowfs FOLDER OPEN_MS READ_MS MOUNTPOINT - shows a folder read-only; each open and each read
 * takes longer
 *
 * It stands for a file system of a cluster: requests are served at the same time, and take some
 * milliseconds. The kernel keeps names and attributes, but no data. It runs until it is
 * unmounted. trainings.py compiles it.
 */
#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int root; /* the folder */
static useconds_t open_us, read_us;

static const char *relative(const char *path)
{
	return path[1] != '\0' ? path + 1 : ".";
}

static int slow_getattr(const char *path, struct stat *st, struct fuse_file_info *info)
{
	(void)info;
	return fstatat(root, relative(path), st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int slow_readdir(const char *path, void *to, fuse_fill_dir_t fill, off_t offset,
			struct fuse_file_info *info, enum fuse_readdir_flags flags)
{
	int fd = openat(root, relative(path), O_RDONLY | O_DIRECTORY);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	(void)offset, (void)info, (void)flags;
	if (dir == NULL)
		return -errno;
	while ((entry = readdir(dir)) != NULL)
		fill(to, entry->d_name, NULL, 0, 0);
	closedir(dir);
	return 0;
}

static int slow_open(const char *path, struct fuse_file_info *info)
{
	int fd = openat(root, relative(path), O_RDONLY);

	if (fd < 0)
		return -errno;
	usleep(open_us);
	info->fh = (uint64_t)fd;
	return 0;
}

static int slow_read(const char *path, char *to, size_t bytes, off_t offset,
		     struct fuse_file_info *info)
{
	ssize_t n = pread((int)info->fh, to, bytes, offset);

	(void)path;
	usleep(read_us);
	return n < 0 ? -errno : (int)n;
}

static int slow_release(const char *path, struct fuse_file_info *info)
{
	(void)path;
	return close((int)info->fh) < 0 ? -errno : 0;
}

static void *slow_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
	(void)connection;
	config->entry_timeout = config->attr_timeout = 60;
	return NULL;
}

static const struct fuse_operations operations = {.init = slow_init,
						  .getattr = slow_getattr,
						  .readdir = slow_readdir,
						  .open = slow_open,
						  .read = slow_read,
						  .release = slow_release};

int main(int argc, char **argv)
{
	char *args[] = {argv[0], "-f", argc == 5 ? argv[4] : NULL, NULL};

	if (argc != 5 || (root = open(argv[1], O_RDONLY | O_DIRECTORY)) < 0) {
		fprintf(stderr, "usage: slowfs FOLDER OPEN_MS READ_MS MOUNTPOINT\n");
		return 2;
	}
	open_us = (useconds_t)(atof(argv[2]) * 1000);
	read_us = (useconds_t)(atof(argv[3]) * 1000);
	return fuse_main(3, args, &operations, NULL);
}
