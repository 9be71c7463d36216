/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/private/stragglers.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/procfs.h"

#define ENVIRON_MAX (256u << 10) /* maximum bytes of an environment that are searched */

static bool has_variable(const char *environment, size_t bytes, const char *variable, size_t n)
{
	for (size_t at = 0; at < bytes;) {
		size_t length = strnlen(environment + at, bytes - at);

		if (length == n && memcmp(environment + at, variable, n) == 0)
			return true;
		at += length + 1;
	}
	return false;
}

size_t hr_stragglers(const char *socket, pid_t *pids, size_t max)
{
	char *buf = malloc(ENVIRON_MAX);
	char variable[256], path[64];
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t n = 0;
	int bytes = snprintf(variable, sizeof(variable), "HEADRACE_SOCKET=%s", socket);

	while (buf != NULL && proc != NULL && (entry = readdir(proc)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		/* The text is empty for kernel threads, zombies, and processes of other users. */
		snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
		if (pid <= 0 || pid == getpid() ||
		    !has_variable(buf, hr_procfs_text(path, buf, ENVIRON_MAX), variable,
				  (size_t)bytes))
			continue;
		if (n < max)
			pids[n] = pid;
		n++;
	}
	if (proc != NULL)
		closedir(proc);
	free(buf);
	return n;
}
