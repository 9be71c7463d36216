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

#define FOLDER_MOST 80 /* characters of a socket's path: the rest is for its name */
#define FOLDERS	    4  /* that may be the runtime folder */
#define LAST	    (FOLDERS - 1)

/* ---- names ----------------------------------------------------------------------------------- */

/* A folder of ours that no other user can enter? */
static int check_own(const char *dir)
{
	struct stat st;

	if (lstat(dir, &st) != 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return st.st_uid == geteuid() && (st.st_mode & 077) == 0 ? 0 : -EPERM;
}

/* The same, made when absent. */
static int own_folder(const char *dir)
{
	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		return -errno;
	return check_own(dir);
}

/*
 * Another user may have made /tmp/headrace-UID. Then the folder is one of ours in /tmp with a random name: the first in the
 * order of the names, so that runs find each other's daemon. "": there is none yet.
 */
static void find_last(char name[HR_PRIVATE_PATH])
{
	char start[32], path[HR_PRIVATE_PATH];
	DIR *dir = opendir("/tmp");
	const struct dirent *entry;
	size_t n = (size_t)snprintf(start, sizeof(start), "headrace-%u.", geteuid());

	name[0] = '\0';
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): a stream of our own */
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

/* Finds that folder, or makes it. */
static int make_last(char name[HR_PRIVATE_PATH])
{
	char made[HR_PRIVATE_PATH];

	find_last(name);
	if (name[0] != '\0')
		return 0;
	snprintf(made, sizeof(made), "/tmp/headrace-%u.XXXXXX", geteuid());
	if (mkdtemp(made) == NULL)
		return -errno;
	find_last(name);
	if (strcmp(name, made) != 0) /* another run made one at the same time */
		rmdir(made);
	return name[0] != '\0' ? 0 : -ENOENT;
}

/* Where the folder may be, in order; "" where that is too long, or nowhere. XDG's goes first, unless it is not usable (under su, in
 * a batch job). */
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
	for (size_t i = 0; i < LAST; i++)
		if (n[i] < 0 || n[i] > FOLDER_MOST)
			names[i][0] = '\0';
}

/* The folder, made and checked. */
static int runtime_folder(char *out, size_t bytes)
{
	char names[FOLDERS][HR_PRIVATE_PATH];
	int r = -ENOENT;

	folder_names(names);
	for (size_t i = 0; i < LAST && r < 0; i++) {
		if (names[i][0] == '\0')
			continue;
		snprintf(out, bytes, "%.*s", FOLDER_MOST, names[i]);
		r = own_folder(out);
	}
	if (r < 0 && names[LAST - 1][0] != '\0' && make_last(names[LAST]) == 0) {
		snprintf(out, bytes, "%.*s", FOLDER_MOST, names[LAST]);
		r = 0;
	}
	return r;
}

void hr_private_each(void (*found)(void *arg, const char *control), void *arg)
{
	char names[FOLDERS][HR_PRIVATE_PATH], path[HR_PRIVATE_PATH];

	folder_names(names);
	if (names[LAST - 1][0] != '\0')
		find_last(names[LAST]);
	for (size_t i = 0; i < FOLDERS; i++) {
		DIR *dir = names[i][0] != '\0' ? opendir(names[i]) : NULL;
		const struct dirent *entry;
		struct stat st;

		/* Nobody else's: who could make one there would be believed. */
		if (dir != NULL && (fstat(dirfd(dir), &st) != 0 || st.st_uid != geteuid())) {
			closedir(dir);
			dir = NULL;
		}
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): a stream of our own */
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
	uint64_t key = HR_FNV_BASIS; /* names sockets, guards nothing */
	struct stat st;
	int r;

	if (stat(store, &st) != 0) {
		r = -errno;
		if (asprintf(ret_error, "%s: %s", store, strerrordesc_np(-r)) < 0)
			*ret_error = NULL;
		return r;
	}
	r = runtime_folder(dir, sizeof(dir));
	if (r < 0) {
		if (asprintf(ret_error,
			     "%s: %s; it must be a folder of yours with mode 0700: set TMPDIR to a "
			     "short, "
			     "private path",
			     dir, strerrordesc_np(-r)) < 0)
			*ret_error = NULL;
		return r;
	}
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
		/* A daemon that ended while we waited has removed the file: ours is nobody's lock
		 * any more. */
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

/* The fields, once, for both directions. */
#define CONFIG_TEXTS(X)                                                                            \
	X("store", node.store)                                                                     \
	X("journal_dir", node.journal_dir)                                                         \
	X("cluster", node.id.cluster)                                                              \
	X("job", node.id.job)                                                                      \
	X("node", node.id.node)                                                                    \
	X("boot_id", node.id.boot_id)                                                              \
	X("job_name", node.job_name)                                                               \
	X("account", node.account)                                                                 \
	X("partition", node.partition)                                                             \
	X("ranks", node.ranks)                                                                     \
	X("local_ranks", node.local_ranks)                                                         \
	X("collectors", collectors)                                                                \
	X("tls_cert", tls_cert)                                                                    \
	X("tls_key", tls_key)                                                                      \
	X("tls_ca", tls_ca)                                                                        \
	X("privacy_key", privacy_key)                                                              \
	X("scheduler", scheduler)                                                                  \
	X("end_state", end_state)                                                                  \
	X("cgroup", cgroup)

#define CONFIG_NUMBERS(X)                                                                          \
	X("attempt", node.id.attempt)                                                              \
	X("instance", node.id.instance)                                                            \
	X("uid", node.uid)                                                                         \
	X("level", node.level)                                                                     \
	X("max_bytes", node.max_bytes)                                                             \
	X("ranks_expected", node.ranks_expected)                                                   \
	X("nodes_expected", node.nodes_expected)                                                   \
	X("max_sessions", node.max_sessions)                                                       \
	X("max_ring_bytes", node.max_ring_bytes)                                                   \
	X("spool_bytes", spool_bytes)                                                              \
	X("drain_ms", drain_ms)                                                                    \
	X("probes", node.probes)                                                                   \
	X("paths", node.privacy.paths)                                                             \
	X("paths_keep", node.privacy.keep)                                                         \
	X("command_lines", node.privacy.commands)                                                  \
	X("policy", policy)                                                                        \
	X("registered", registered)                                                                \
	X("killed", killed)

int hr_private_config_pack(const struct hr_private_config *config, struct hr_message *ret)
{
	hr_message_init(ret, "config");
#define ADD_TEXT(key, field)                                                                       \
	if (config->field != NULL)                                                                 \
		hr_message_add(ret, key, config->field);
	CONFIG_TEXTS(ADD_TEXT)
#undef ADD_TEXT
#define ADD_NUMBER(key, field) hr_message_add_int(ret, key, (int64_t)config->field);
	CONFIG_NUMBERS(ADD_NUMBER)
#undef ADD_NUMBER
	hr_message_add(ret, "control", config->names.control);
	hr_message_add(ret, "shim", config->names.shim);
	hr_message_add(ret, "lock", config->names.lock);
	for (unsigned i = 0; config->node.labels != NULL && config->node.labels[i] != NULL; i++) {
		char key[16];

		snprintf(key, sizeof(key), "label%u", i);
		hr_message_add(ret, key, config->node.labels[i]);
	}
	return ret->bytes < sizeof(ret->text) ? 0 : -EMSGSIZE;
}

int64_t hr_private_labels_id(const char *const *labels)
{
	uint64_t id = HR_FNV_BASIS;

	for (; labels != NULL && *labels != NULL; labels++)
		id = hr_fnv(id, *labels, strlen(*labels) + 1);
	return (int64_t)id;
}

/* A value as a string that lives as long as the message's copy; NULL when absent. */
static int get_text(struct hr_private_config *config, size_t *used, const char *key,
		    const char **ret)
{
	char *out = config->text->text + *used;
	const struct hr_message *source = config->text + 1;
	int r = hr_message_get(source, key, out, sizeof(config->text->text) - *used);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	*ret = out;
	*used += strlen(out) + 1;
	return 0;
}

static int config_texts(struct hr_private_config *config)
{
	size_t used = 0;
	int r;

#define GET_TEXT(key, field)                                                                       \
	r = get_text(config, &used, key, &config->field);                                          \
	if (r < 0)                                                                                 \
		return r;
	CONFIG_TEXTS(GET_TEXT)
#undef GET_TEXT
	for (unsigned i = 0; i < HR_PRIVATE_LABELS; i++) {
		char key[16];

		snprintf(key, sizeof(key), "label%u", i);
		r = get_text(config, &used, key, &config->labels[i]);
		if (r < 0)
			return r;
		if (config->labels[i] == NULL)
			break;
	}
	return config->node.store != NULL && config->node.id.job != NULL ? 0 : -EBADMSG;
}

int hr_private_config_read(int fd, struct hr_private_config *ret)
{
	struct hr_private_config config = {0};
	struct hr_message *source;
	ssize_t n;
	int r;

	/* Two buffers: [0] holds the unescaped strings, [1] the message; the former outlives this
	 * function. */
	config.text = calloc(2, sizeof(*config.text));
	if (config.text == NULL)
		return -ENOMEM;
	source = config.text + 1;
	n = pread(fd, source->text, sizeof(source->text), 0);
	source->bytes = n > 0 ? (size_t)n : 0;
	r = n < 0 ? -errno : hr_message_check(source);
	if (r == 0 && !hr_message_is(source, "config"))
		r = -EBADMSG;
	if (r == 0)
		r = config_texts(&config);
	if (r < 0) {
		free(config.text);
		return r;
	}
#define GET_NUMBER(key, field)                                                                     \
	config.field = (__typeof__(config.field))hr_message_get_int(source, key, 0);
	CONFIG_NUMBERS(GET_NUMBER)
#undef GET_NUMBER
	hr_message_get(source, "control", config.names.control, sizeof(config.names.control));
	hr_message_get(source, "shim", config.names.shim, sizeof(config.names.shim));
	hr_message_get(source, "lock", config.names.lock, sizeof(config.names.lock));
	*ret = config;
	ret->node.shim_socket = ret->names.shim;
	ret->node.labels = ret->labels;
	return 0;
}

void hr_private_config_done(struct hr_private_config *config)
{
	free(config->text);
	config->text = NULL;
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
