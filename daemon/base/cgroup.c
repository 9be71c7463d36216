/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/text.h"

#define CGROUP_PATH 4096u

const char *hr_cgroup_mount(void)
{
	static const char *const usual[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	struct statfs fs;

	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (statfs(usual[i], &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
			return usual[i];
	return NULL;
}

/* Finds the cgroup of this process, for example "/system.slice/headraced.service". */
static bool own_path(char *ret, size_t bytes)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	bool found = false;

	while (f && !found && fgets(ret, (int)bytes, f))
		found = strncmp(ret, "0::/", 4) == 0;
	if (f)
		fclose(f);
	if (!found)
		return false;
	ret[strcspn(ret, "\n")] = '\0';
	memmove(ret, ret + 3, strlen(ret + 3) + 1);
	return true;
}

/* Returns whether this process is in the cgroup with this id, or in one below it. */
static bool is_around_us(uint64_t id)
{
	char own[CGROUP_PATH / 2], path[CGROUP_PATH];
	const char *mount = hr_cgroup_mount();
	char *end;

	if (!mount || !own_path(own, sizeof(own)))
		return false;
	snprintf(path, sizeof(path), "%s%s", mount, own);
	for (end = path + strlen(path); end >= path + strlen(mount); end--) {
		struct stat st;

		if (*end != '/' && *end != '\0')
			continue;
		*end = '\0';
		if (stat(path, &st) == 0 && st.st_ino == id)
			return true;
	}
	return false;
}

int hr_cgroup_id(const char *path, uint64_t *ret, char **ret_error)
{
	const char *mount = hr_cgroup_mount();
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), r = 0;
	struct statfs fs;
	struct stat st;

	if (fd < 0)
		return hr_text_fail(-errno, ret_error, "%s: %s", path, strerrordesc_np(errno));
	if (fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		r = hr_text_fail(-errno, ret_error, "%s: %s", path, strerrordesc_np(errno));
	else if (fs.f_type != CGROUP2_SUPER_MAGIC)
		r = hr_text_fail(-ENOTSUP, ret_error, "%s is not a cgroup of version 2 (%s%s)",
				 path, mount ? "mounted at " : "not mounted here",
				 mount ? mount : "");
	else if (is_around_us(st.st_ino))
		r = hr_text_fail(-EBUSY, ret_error, "%s: headraced itself is in that cgroup", path);
	else
		*ret = st.st_ino;
	close(fd);
	return r;
}
