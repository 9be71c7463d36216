/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/procfs.h"
#include "common/text.h"

#define CGROUP_PATH 4096u
#define LEVELS_MOST 32
#define V1_MOUNT    "/sys/fs/cgroup/cpu" /* a link if cpu and cpuacct are one hierarchy */

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

/* ---- the quota of a process ------------------------------------------------------------------ */

/* Returns the quota in 1/1000 of a core. 0 (no quota): the text is "max", -1, or not a number. */
static uint32_t milli_of(const char *quota, const char *period)
{
	long long us = strtoll(quota, NULL, 10), of_us = strtoll(period, NULL, 10), milli;

	if (us <= 0 || us > LLONG_MAX / 1000 || of_us <= 0)
		return 0;
	milli = us * 1000 / of_us;
	return milli < 1 ? 1 : milli > UINT32_MAX ? UINT32_MAX : (uint32_t)milli;
}

/* Returns the quota of one cgroup; 0: none. */
static uint32_t quota_of(const char *folder, bool v2)
{
	char path[PATH_MAX + 32], quota[64], period[64];

	snprintf(path, sizeof(path), "%s/%s", folder, v2 ? "cpu.max" : "cpu.cfs_quota_us");
	if (!hr_procfs_text(path, quota, sizeof(quota)) || quota[0] == '-' || quota[0] == 'm')
		return 0;
	if (v2) /* "QUOTA PERIOD" */
		return milli_of(quota, strchrnul(quota, ' '));
	snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
	return hr_procfs_text(path, period, sizeof(period)) ? milli_of(quota, period) : 0;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a == 0 || (b > 0 && b < a) ? b : a;
}

/* Returns the smallest quota of the cgroup `path` and its ancestors. */
static uint32_t quota_up(const char *mount, const char *path, bool v2)
{
	char folder[PATH_MAX];
	size_t root = strlen(mount);
	uint32_t least = 0;

	if (snprintf(folder, sizeof(folder), "%s%s", mount, path[1] ? path : "") >=
	    (int)sizeof(folder))
		return 0;
	for (int level = 0; level < LEVELS_MOST; level++) {
		least = smaller(least, quota_of(folder, v2));
		if (strlen(folder) <= root)
			break;
		*strrchr(folder, '/') = '\0';
	}
	return least;
}

/* Returns whether a list of controllers, such as "cpu,cpuacct", has "cpu". */
static bool has_cpu(const char *controllers)
{
	for (; controllers; controllers = strchr(controllers, ',')) {
		controllers += *controllers == ',';
		if (strcmp(controllers, "cpu") == 0 || strncmp(controllers, "cpu,", 4) == 0)
			return true;
	}
	return false;
}

/* A line of /proc/PID/cgroup is "4:cpu,cpuacct:/path" (version 1) or "0::/path" (version 2). */
uint32_t hr_cpu_quota_milli(pid_t pid)
{
	char name[64], text[8192], *line = text, *end, *controllers, *path;
	const char *mount;
	uint32_t least = 0;

	snprintf(name, sizeof(name), "/proc/%d/cgroup", (int)pid);
	if (!hr_procfs_text(name, text, sizeof(text)))
		return 0;
	/* An incomplete last line is left out. */
	for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		controllers = strchr(line, ':');
		path = controllers ? strchr(++controllers, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		/* A path like "/../other" is outside of this cgroup namespace. */
		if (path[0] != '/' || strncmp(path, "/..", 3) == 0)
			continue;
		mount = controllers[0] == '\0' ? hr_cgroup_mount() : NULL;
		if (mount)
			least = smaller(least, quota_up(mount, path, true));
		else if (has_cpu(controllers))
			least = smaller(least, quota_up(V1_MOUNT, path, false));
	}
	return least;
}
