/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node/jobfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/users.h"

#define JOURNAL_NAME "journal"
#define TARGET_BYTES 48 /* maximum length of the file name "headrace-<instance>.journal" */

/* Returns the value of the first of these environment variables that is set; "": none is set. */
static char *env_of(const char *const *names)
{
	for (; *names; names++) {
		const char *value = secure_getenv(*names);

		if (value && *value)
			return (char *)(uintptr_t)value;
	}
	return (char *)(uintptr_t) "";
}

static char *user_name(struct hr_arena *a, uint32_t uid)
{
	struct hr_user user;

	return hr_arena_text(a, hr_user_by_id(uid, &user) ? user.name : "");
}

static void fill_labels(struct hr_arena *a, const char *const *labels, Headrace__JobEvent *m)
{
	Headrace__JobEvent__LabelsEntry *entries;
	size_t n = 0;

	while (labels && labels[n])
		n++;
	if (!n)
		return;
	entries = hr_arena_alloc(a, n * sizeof(*entries));
	m->labels = hr_arena_alloc(a, n * sizeof(Headrace__JobEvent__LabelsEntry *));
	for (size_t i = 0; i < n && entries && m->labels; i++) {
		char *key = hr_arena_text(a, labels[i]);
		char *equals = key ? strchr(key, '=') : NULL;

		headrace__job_event__labels_entry__init(&entries[i]);
		if (equals)
			*equals++ = 0;
		entries[i].key = key;
		entries[i].value = equals ? equals : hr_arena_text(a, "");
		m->labels[m->n_labels++] = &entries[i];
	}
}

/* If the job id has the form "123_4", sets the array job (123) and its task (4). */
static void fill_array(struct hr_arena *a, const char *job, Headrace__JobEvent *m)
{
	size_t digits = strspn(job, "0123456789");

	if (!digits || job[digits] != '_' || !job[digits + 1] ||
	    job[digits + 1 + strspn(job + digits + 1, "0123456789")])
		return;
	m->array_job = hr_arena_text(a, job);
	m->array_task = hr_arena_text(a, job + digits + 1);
	if (m->array_job)
		m->array_job[digits] = 0;
}

/* Returns `value` (from the configuration) or, if it is NULL, the scheduler's variable. */
static char *value_or_env(struct hr_arena *a, const char *value, const char *const *names)
{
	return value ? hr_arena_text(a, value) : env_of(names);
}

int hr_job_pack(const struct hr_node_config *config, uint64_t start_ns, uint8_t **ret,
		size_t *ret_bytes)
{
	static const char *const account[] = {"SLURM_JOB_ACCOUNT", "PBS_ACCOUNT", NULL};
	static const char *const partition[] = {"SLURM_JOB_PARTITION", "PBS_QUEUE", "LSB_QUEUE",
						NULL};
	static const char *const name[] = {"SLURM_JOB_NAME", "PBS_JOBNAME", "LSB_JOBNAME", NULL};
	Headrace__JobEvent m = HEADRACE__JOB_EVENT__INIT;
	struct hr_arena a = {0};
	uint8_t *packed;

	m.state = hr_arena_text(&a, "running");
	m.uid = config->uid;
	m.user = user_name(&a, config->uid);
	m.account = value_or_env(&a, config->account, account);
	m.partition = value_or_env(&a, config->partition, partition);
	m.name = value_or_env(&a, config->job_name, name);
	m.start_ns = start_ns;
	m.ranks_expected = config->ranks_expected;
	m.nodes_expected = config->nodes_expected;
	fill_array(&a, config->id.job, &m);
	fill_labels(&a, config->labels, &m);
	packed = a.failed ? NULL : malloc(headrace__job_event__get_packed_size(&m) + 1);
	if (packed) {
		*ret_bytes = headrace__job_event__pack(&m, packed);
		*ret = packed;
	}
	hr_arena_free(&a);
	return packed ? 0 : -ENOMEM;
}

static void target_name(uint64_t instance, char ret[TARGET_BYTES])
{
	snprintf(ret, TARGET_BYTES, "headrace-%016" PRIx64 ".journal", instance);
}

/*
 * Opens the folder of the file to which the link "journal" points. -ELOOP: headraced did not make
 * this link.
 */
static int target_folder(int stream_dir_fd, uint64_t instance, char ret_name[TARGET_BYTES])
{
	char target[PATH_MAX], *slash;
	ssize_t n = readlinkat(stream_dir_fd, JOURNAL_NAME, target, sizeof(target) - 1);
	int fd;

	if (n < 0)
		return errno == EINVAL ? -ELOOP : -errno;
	target[n] = '\0';
	target_name(instance, ret_name);
	slash = strrchr(target, '/');
	if (target[0] != '/' || strcmp(slash + 1, ret_name) != 0)
		return -ELOOP;
	slash[1] = '\0';
	fd = open(target, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_journal(int stream_dir_fd, uint64_t instance, int flags)
{
	char name[TARGET_BYTES];
	int folder, fd = hr_store_open_file(stream_dir_fd, JOURNAL_NAME, O_RDWR | flags);

	if (fd != -ELOOP)
		return fd;
	folder = target_folder(stream_dir_fd, instance, name);
	if (folder < 0)
		return folder;
	fd = hr_store_open_file(folder, name, O_RDWR | flags);
	close(folder);
	if (fd < 0 || hr_store_is_own(fd))
		return fd;
	close(fd);
	return -EPERM;
}

int hr_journal_file(int stream_dir_fd, uint64_t instance)
{
	return open_journal(stream_dir_fd, instance, 0);
}

static int make_link(int stream_dir_fd, uint64_t instance, const char *dir)
{
	char name[TARGET_BYTES], target[PATH_MAX];

	target_name(instance, name);
	if (snprintf(target, sizeof(target), "%s/%s", dir, name) >= (int)sizeof(target))
		return -ENAMETOOLONG;
	return symlinkat(target, stream_dir_fd, JOURNAL_NAME) < 0 && errno != EEXIST ? -errno : 0;
}

int hr_journal_make(int stream_dir_fd, uint64_t instance, const char *dir)
{
	int r = dir ? make_link(stream_dir_fd, instance, dir) : 0;

	return r < 0 ? r : open_journal(stream_dir_fd, instance, O_CREAT);
}

void hr_journal_unlink(int stream_dir_fd, uint64_t instance)
{
	char name[TARGET_BYTES];
	int folder = target_folder(stream_dir_fd, instance, name);

	if (folder >= 0) {
		unlinkat(folder, name, 0);
		close(folder);
	}
	unlinkat(stream_dir_fd, JOURNAL_NAME, 0);
}
