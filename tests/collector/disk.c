/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/collector/disk.h"

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/store/help.h"

#define OPTIONS "size=1m,mode=700"

bool disk_mount(const char *at)
{
	assert_int_equal(mkdir(at, 0700), 0);
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", at, "tmpfs", 0, OPTIONS) == 0;
}

void disk_unmount(const char *at)
{
	umount2(at, MNT_DETACH);
}

void disk_read_only(const char *at, bool read_only)
{
	assert_int_equal(
	    mount("none", at, "tmpfs", MS_REMOUNT | (read_only ? MS_RDONLY : 0), OPTIONS), 0);
}

void disk_fill(const char *path)
{
	static const uint8_t block[4096];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	while (write(fd, block, sizeof(block)) > 0)
		;
	close(fd);
}
