/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/fnv.h"
#include "common/text.h"

/* Maximum bytes of the runtime folder's path, so that a socket's path fits into its address. */
#define FOLDER_MOST 80
#define FOLDERS	    4 /* number of places for the runtime folder */
#define RANDOM	    (FOLDERS - 1)

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns 0 if this user owns the folder and other users cannot enter it, else -errno. */
static int check_own(const char *dir)
{
	struct stat st;

	if (lstat(dir, &st) != 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return st.st_uid == geteuid() && (st.st_mode & 077) == 0 ? 0 : -EPERM;
}

static int own_folder(const char *dir)
{
	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		return -errno;
	return check_own(dir);
}

/*
 * Finds a folder /tmp/headrace-UID.XXXXXX, for the case that /tmp/headrace-UID belongs to another
 * user. Takes the first one by name, so that all runs use the same folder. "": there is none yet.
 */
static void find_random_folder(char name[HR_PRIVATE_PATH])
{
	char start[32], path[HR_PRIVATE_PATH];
	DIR *dir = opendir("/tmp");
	const struct dirent *entry;
	size_t n = (size_t)snprintf(start, sizeof(start), "headrace-%u.", geteuid());

	name[0] = '\0';
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has this stream */
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (strncmp(entry->d_name, start, n) != 0 ||
		    snprintf(path, sizeof(path), "/tmp/%s", entry->d_name) > FOLDER_MOST ||
		    (name[0] != '\0' && strcmp(name, path) < 0) || check_own(path) < 0)
			continue;
		snprintf(name, HR_PRIVATE_PATH, "%s", path);
	}
	if (dir != NULL)
		closedir(dir);
}

static int find_or_make_random_folder(char name[HR_PRIVATE_PATH])
{
	char made[HR_PRIVATE_PATH];

	find_random_folder(name);
	if (name[0] != '\0')
		return 0;
	snprintf(made, sizeof(made), "/tmp/headrace-%u.XXXXXX", geteuid());
	if (mkdtemp(made) == NULL)
		return -errno;
	find_random_folder(name);
	if (strcmp(name, made) != 0) /* another run made a folder at the same time */
		rmdir(made);
	return name[0] != '\0' ? 0 : -ENOENT;
}

/* Sets the paths in order of preference. "": the variable is not set, or the path is too long. */
static void folder_names(char names[FOLDERS][HR_PRIVATE_PATH])
{
	const char *xdg = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
	const char *only = getenv("HEADRACE_RUNTIME");
	unsigned uid = geteuid();
	int n[3] = {0};

	memset(names, 0, FOLDERS * sizeof(*names));
	if (only != NULL && only[0] == '/') {
		n[0] = snprintf(names[0], HR_PRIVATE_PATH, "%s", only);
		if (n[0] > FOLDER_MOST)
			names[0][0] = '\0';
		return;
	}
	if (xdg != NULL && xdg[0] == '/')
		n[0] = snprintf(names[0], HR_PRIVATE_PATH, "%s/headrace", xdg);
	if (tmp != NULL && tmp[0] == '/')
		n[1] = snprintf(names[1], HR_PRIVATE_PATH, "%s/headrace-%u", tmp, uid);
	snprintf(names[2], HR_PRIVATE_PATH, "/tmp/headrace-%u", uid);
	for (size_t i = 0; i < RANDOM; i++)
		if (n[i] < 0 || n[i] > FOLDER_MOST)
			names[i][0] = '\0';
}

static int runtime_folder(char *out, size_t bytes)
{
	char names[FOLDERS][HR_PRIVATE_PATH];
	int r = -ENOENT;

	folder_names(names);
	for (size_t i = 0; i < RANDOM && r < 0; i++) {
		if (names[i][0] == '\0')
			continue;
		snprintf(out, bytes, "%.*s", FOLDER_MOST, names[i]);
		r = own_folder(out);
	}
	if (r < 0 && names[RANDOM - 1][0] != '\0' &&
	    find_or_make_random_folder(names[RANDOM]) == 0) {
		snprintf(out, bytes, "%.*s", FOLDER_MOST, names[RANDOM]);
		r = 0;
	}
	return r;
}

int hr_private_link(const char *target, char ret[HR_PRIVATE_PATH])
{
	char folder[FOLDER_MOST + 1], made[HR_PRIVATE_PATH];
	int r = runtime_folder(folder, sizeof(folder));

	if (r < 0)
		return r;
	snprintf(ret, HR_PRIVATE_PATH, "%s/%016" PRIx64, folder,
		 hr_fnv(HR_FNV_BASIS, target, strlen(target)));
	snprintf(made, sizeof(made), "%s/%d", folder, (int)getpid());
	unlink(made);
	return symlink(target, made) == 0 && rename(made, ret) == 0 ? 0 : -errno;
}

void hr_private_each(void (*found)(void *arg, const char *control), void *arg)
{
	char names[FOLDERS][HR_PRIVATE_PATH], path[HR_PRIVATE_PATH];

	folder_names(names);
	if (names[RANDOM - 1][0] != '\0')
		find_random_folder(names[RANDOM]);
	for (size_t i = 0; i < FOLDERS; i++) {
		DIR *dir = names[i][0] != '\0' ? opendir(names[i]) : NULL;
		const struct dirent *entry;
		struct stat st;

		/* Other users could make false control sockets in their folders. */
		if (dir != NULL && (fstat(dirfd(dir), &st) != 0 || st.st_uid != geteuid())) {
			closedir(dir);
			dir = NULL;
		}
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has this stream */
		while (dir != NULL && (entry = readdir(dir)) != NULL) {
			const char *dot = strrchr(entry->d_name, '.');

			if (dot == NULL || strcmp(dot, ".control") != 0 ||
			    snprintf(path, sizeof(path), "%s/%s", names[i], entry->d_name) >=
				(int)sizeof(path))
				continue;
			found(arg, path);
		}
		if (dir != NULL)
			closedir(dir);
	}
}

int hr_private_names(const char *store, const char *job, struct hr_private_names *ret,
		     char **ret_error)
{
	char dir[HR_PRIVATE_PATH] = "";
	/* A weak hash is enough: other users cannot make files in the folder. */
	uint64_t key = HR_FNV_BASIS;
	struct stat st;
	int r;

	if (stat(store, &st) != 0)
		return hr_text_fail(-errno, ret_error, "%s: %s", store, strerrordesc_np(errno));
	r = runtime_folder(dir, sizeof(dir));
	if (r < 0)
		return hr_text_fail(
		    r, ret_error,
		    "%s: %s; this folder must be yours, with mode 0700: set TMPDIR to a "
		    "short path of a folder that only you can use",
		    dir, strerrordesc_np(-r));
	key = hr_fnv(key, &st.st_dev, sizeof(st.st_dev));
	key = hr_fnv(key, &st.st_ino, sizeof(st.st_ino));
	key = hr_fnv(key, job, strlen(job));
	snprintf(ret->control, sizeof(ret->control), "%.80s/%016" PRIx64 ".control", dir, key);
	snprintf(ret->shim, sizeof(ret->shim), "%.80s/%016" PRIx64 ".shim", dir, key);
	snprintf(ret->lock, sizeof(ret->lock), "%.80s/%016" PRIx64 ".lock", dir, key);
	return 0;
}

/* ---- lock ------------------------------------------------------------------------------------ */

static int lock_file(const char *path, int how, int *ret_fd)
{
	for (;;) {
		struct stat ours, named;
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (fd < 0)
			return -errno;
		while (flock(fd, how) != 0) {
			int r = -errno;

			if (r == -EINTR)
				continue;
			close(fd);
			return r;
		}
		/* If a daemon has ended and removed the file since, locks the new file. */
		if (fstat(fd, &ours) == 0 && stat(path, &named) == 0 &&
		    ours.st_ino == named.st_ino && ours.st_dev == named.st_dev) {
			*ret_fd = fd;
			return 0;
		}
		close(fd);
	}
}

int hr_private_lock(const struct hr_private_names *names, int *ret_fd)
{
	return lock_file(names->lock, LOCK_EX, ret_fd);
}

int hr_private_trylock(const struct hr_private_names *names, int *ret_fd)
{
	return lock_file(names->lock, LOCK_EX | LOCK_NB, ret_fd);
}

void hr_private_remove(const struct hr_private_names *names)
{
	unlink(names->control);
	unlink(names->shim);
	unlink(names->lock);
}

void hr_private_sweep(const struct hr_private_names *names)
{
	int lock = -1, fd = -1;

	if (hr_private_trylock(names, &lock) < 0)
		return;
	if (hr_control_connect(names->control, &fd) == -ECONNREFUSED)
		hr_private_remove(names);
	if (fd >= 0)
		close(fd);
	close(lock);
}

/* ---- configuration --------------------------------------------------------------------------- */

/* X(field of JobConfig in proto/control.proto, field of struct hr_private_config) */
#define CONFIG_TEXTS(X)                                                                            \
	X(store, node.store)                                                                       \
	X(journal_dir, node.journal_dir)                                                           \
	X(cluster, node.id.cluster)                                                                \
	X(job, node.id.job)                                                                        \
	X(node, node.id.node)                                                                      \
	X(boot_id, node.id.boot_id)                                                                \
	X(job_name, node.job_name)                                                                 \
	X(account, node.account)                                                                   \
	X(partition, node.partition)                                                               \
	X(ranks, node.ranks)                                                                       \
	X(local_ranks, node.local_ranks)                                                           \
	X(collectors, collectors)                                                                  \
	X(tls_cert, tls_cert)                                                                      \
	X(tls_key, tls_key)                                                                        \
	X(tls_ca, tls_ca)                                                                          \
	X(privacy_key, privacy_key)                                                                \
	X(scheduler_id, scheduler)                                                                 \
	X(end_state, end_state)                                                                    \
	X(cgroup, cgroup)

#define CONFIG_NUMBERS(X)                                                                          \
	X(attempt, node.id.attempt)                                                                \
	X(instance, node.id.instance)                                                              \
	X(uid, node.uid)                                                                           \
	X(level, node.level)                                                                       \
	X(max_bytes, node.max_bytes)                                                               \
	X(ranks_expected, node.ranks_expected)                                                     \
	X(nodes_expected, node.nodes_expected)                                                     \
	X(max_sessions, node.max_sessions)                                                         \
	X(max_ring_bytes, node.max_ring_bytes)                                                     \
	X(spool_bytes, spool_bytes)                                                                \
	X(drain_ms, drain_ms)                                                                      \
	X(probes, node.probes)                                                                     \
	X(paths, node.privacy.paths)                                                               \
	X(paths_keep, node.privacy.keep)                                                           \
	X(command_lines, node.privacy.commands)                                                    \
	X(policy, policy)                                                                          \
	X(registered, registered)                                                                  \
	X(killed, killed)

#define CONFIG_NAMES(X)                                                                            \
	X(control_socket, names.control)                                                           \
	X(shim_socket, names.shim)                                                                 \
	X(lock_file, names.lock)

int hr_private_config_write(const struct hr_private_config *config, int fd)
{
	Headrace__JobConfig m = HEADRACE__JOB_CONFIG__INIT;
	uint8_t packed[HR_CONTROL_BYTES];
	ssize_t n;

#define SET_TEXT(key, field)                                                                       \
	if (config->field != NULL)                                                                 \
		m.key = hr_control_text(config->field);
#define SET_NUMBER(key, field) m.key = config->field;
	CONFIG_TEXTS(SET_TEXT)
	CONFIG_NAMES(SET_TEXT)
	CONFIG_NUMBERS(SET_NUMBER)
#undef SET_TEXT
#undef SET_NUMBER
	m.labels = (char **)(uintptr_t)config->node.labels;
	while (m.labels != NULL && m.labels[m.n_labels] != NULL)
		m.n_labels++;
	if (headrace__job_config__get_packed_size(&m) > sizeof(packed))
		return -EMSGSIZE;
	n = write(fd, packed, headrace__job_config__pack(&m, packed));
	if (n < 0)
		return -errno;
	return (size_t)n == headrace__job_config__get_packed_size(&m) ? 0 : -EIO;
}

uint64_t hr_private_labels_id(const char *const *labels)
{
	uint64_t id = HR_FNV_BASIS;

	for (; labels != NULL && *labels != NULL; labels++)
		id = hr_fnv(id, *labels, strlen(*labels) + 1);
	return id;
}

int hr_private_config_read(int fd, struct hr_private_config *ret)
{
	uint8_t packed[HR_CONTROL_BYTES];
	ssize_t n = pread(fd, packed, sizeof(packed), 0);
	Headrace__JobConfig *m;

	if (n < 0)
		return -errno;
	m = headrace__job_config__unpack(NULL, (size_t)n, packed);
	if (m == NULL || m->store[0] == '\0' || m->job[0] == '\0' ||
	    m->n_labels > HR_PRIVATE_LABELS) {
		headrace__job_config__free_unpacked(m, NULL);
		return -EBADMSG;
	}
	*ret = (struct hr_private_config){.message = m};
#define GET_TEXT(key, field)   ret->field = hr_text_or_null(m->key);
#define GET_NAME(key, field)   snprintf(ret->field, sizeof(ret->field), "%s", m->key);
#define GET_NUMBER(key, field) ret->field = (__typeof__(ret->field))m->key;
	CONFIG_TEXTS(GET_TEXT)
	CONFIG_NAMES(GET_NAME)
	CONFIG_NUMBERS(GET_NUMBER)
#undef GET_TEXT
#undef GET_NAME
#undef GET_NUMBER
	/* In a stream id, an empty text is not NULL, unlike other texts. */
	ret->node.id.cluster = m->cluster;
	ret->node.id.node = m->node;
	ret->node.id.boot_id = m->boot_id;
	for (size_t i = 0; i < m->n_labels; i++)
		ret->labels[i] = m->labels[i];
	ret->node.shim_socket = ret->names.shim;
	ret->node.labels = ret->labels;
	return 0;
}

void hr_private_config_done(struct hr_private_config *config)
{
	headrace__job_config__free_unpacked(config->message, NULL);
	config->message = NULL;
}

/* ---- file systems ---------------------------------------------------------------------------- */

int hr_fs_kind(const char *path, struct hr_fs_kind *ret)
{
	static const struct {
		uint32_t magic;
		struct hr_fs_kind kind;
	} table[] = {
	    {0x0000ef53, {"ext4", false}},    {0x58465342, {"xfs", false}},
	    {0x9123683e, {"btrfs", false}},   {0x01021994, {"tmpfs", false}},
	    {0x794c7630, {"overlay", false}}, {0x2fc12fc1, {"zfs", false}},
	    {0xf2f52010, {"f2fs", false}},    {0x00006969, {"nfs", true}},
	    {0x0bd00bd0, {"lustre", true}},   {0x47504653, {"gpfs", true}},
	    {0x19830326, {"beegfs", true}},   {0xff534d42, {"cifs", true}},
	    {0xfe534d42, {"smb2", true}},     {0x00c36400, {"ceph", true}},
	    {0x65735546, {"fuse", true}},     {0x01021997, {"9p", true}},
	    {0x5346414f, {"afs", true}},      {0x7461636f, {"ocfs2", true}},
	    {0xaad7aaea, {"panfs", true}},    {0x013111a8, {"ibrix", true}},
	};
	struct statfs fs;

	if (statfs(path, &fs) != 0)
		return -errno;
	*ret = (struct hr_fs_kind){"unknown", false};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].magic == (uint32_t)fs.f_type)
			*ret = table[i].kind;
	return 0;
}

const char *hr_private_journal_dir(const char *store)
{
	const char *tmp = getenv("TMPDIR");
	struct hr_fs_kind kind = {"unknown", false};

	if (hr_fs_kind(store, &kind) < 0 || !kind.network)
		return NULL;
	if (tmp != NULL && tmp[0] == '/' && access(tmp, W_OK) == 0 && hr_fs_kind(tmp, &kind) == 0 &&
	    !kind.network)
		return tmp;
	return "/dev/shm";
}
