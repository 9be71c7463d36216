/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* names.h - the numbers of file names, and NAME records. Part of probe.bpf.c. */
#ifndef HEADRACE_BPF_NAMES_H
#define HEADRACE_BPF_NAMES_H

struct name_text {
	struct hr_probe_name head;
	/* components, then the path of the call, then 8 bytes that hash_name() sets to 0 */
	char text[2 * HR_PROBE_PATH + 8];
	uint32_t bytes;
	uint64_t hash; /* hash of all fields and the text: equal names have the same number */
};

MAP(name_texts, PERCPU_ARRAY, 1, uint32_t, struct name_text);
MAP(files, LRU_HASH, HR_PROBE_FILES, uint64_t, struct hr_file_name);
MAP(inodes, LRU_HASH, HR_PROBE_FILES, struct hr_inode_key, struct hr_file_name);

MAP(texts, LRU_HASH, HR_PROBE_FILES, uint64_t, uint64_t); /* key: struct name_text.hash */

uint64_t last_name;

/* Returns true if the daemon will still have this name when it reads a record that is sent now. */
static inline bool is_fresh(uint64_t name)
{
	return last_name - name < HR_PROBE_NAMES / 2;
}

/* A walk from a file up to a process's root. `text`: components, the last first, each with NUL. */
struct name_walk {
	struct dentry *dentry, *root;
	struct mount *mount, *root_mount;
	uint32_t bytes;
	uint32_t steps;
	bool cut;
	char text[HR_PROBE_PATH + 256];
};

MAP(walks, PERCPU_ARRAY, 1, uint32_t, struct name_walk);

static inline struct mount *mount_of(struct vfsmount *mnt)
{
	return (void *)mnt - bpf_core_field_offset(struct mount, mnt);
}

/* Adds a component, or moves to a mount point. 0: the end. Global, so that it is verified once. */
__attribute__((noinline)) int walk_step(struct name_walk *w)
{
	struct dentry *here, *parent;
	struct mount *mount, *above;
	long n;

	if (!w || (w->dentry == w->root && w->mount == w->root_mount))
		return 0;
	here = w->dentry;
	mount = w->mount;
	parent = BPF_CORE_READ(here, d_parent);
	if (here == BPF_CORE_READ(mount, mnt.mnt_root)) {
		above = BPF_CORE_READ(mount, mnt_parent);
		if (above != mount) {
			w->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
			w->mount = above;
			return 1;
		}
		/* The top: ends the walk, but adds the name of a memfd, which is its own top. */
		if (w->steps > 0)
			return 0;
	}
	if (w->bytes >= HR_PROBE_PATH - 260 || w->steps >= HR_PROBE_DEPTH) {
		w->cut = true;
		return 0;
	}
	n = bpf_probe_read_kernel_str(w->text + (w->bytes & (HR_PROBE_PATH - 1)), 256,
				      BPF_CORE_READ(here, d_name.name));
	if (n <= 0)
		return 0;
	w->bytes += n;
	w->steps++;
	if (parent == here)
		return 0;
	w->dentry = parent;
	return 1;
}

/* Adds all components. Global, so that it is verified once. */
__attribute__((noinline)) int walk_up(struct name_walk *w)
{
	if (!w)
		return 0;
	for (uint32_t i = 0; i < HR_PROBE_DEPTH + HR_PROBE_MOUNTS; i++)
		if (!walk_step(w))
			break;
	if (w->cut) {
		__builtin_memcpy(w->text + (w->bytes & (HR_PROBE_PATH - 1)), "...", 4);
		w->bytes += 4;
	}
	return 0;
}

/* Returns the components of a file, valid until the next walk. NULL: there are none. */
static inline const struct name_walk *walk(struct task_struct *self, struct path *from)
{
	uint32_t zero = 0;
	struct name_walk *w = bpf_map_lookup_elem(&walks, &zero);

	if (!w)
		return NULL;
	w->dentry = BPF_CORE_READ(from, dentry);
	w->mount = mount_of(BPF_CORE_READ(from, mnt));
	w->root = BPF_CORE_READ(self, fs, root.dentry);
	w->root_mount = mount_of(BPF_CORE_READ(self, fs, root.mnt));
	w->bytes = w->steps = w->cut = 0;
	walk_up(w);
	return w;
}

static inline uint32_t walk_text(const struct name_walk *w, char *to)
{
	uint32_t n = w ? w->bytes & (HR_PROBE_PATH - 1) : 0;

	return n && bpf_probe_read_kernel(to, n, w->text) == 0 ? n : 0;
}

static inline void name_inode(struct hr_probe_name *head, struct file *file)
{
	struct mount *mount = mount_of(BPF_CORE_READ(file, f_path.mnt));

	head->ino = BPF_CORE_READ(file, f_inode, i_ino);
	head->dev = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	head->mode = BPF_CORE_READ(file, f_inode, i_mode);
	head->mount = BPF_CORE_READ(mount, mnt_id);
}

static inline uint64_t mixed(uint64_t hash, uint64_t more)
{
	hash = (hash ^ more) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/* Global, so that it is verified once. */
__attribute__((noinline)) int hash_name(struct name_text *t)
{
	uint64_t hash = 0;

	if (!t)
		return 0;
	hash = mixed(hash, t->head.ino);
	hash = mixed(hash, (uint64_t)t->head.dev << 32 | t->head.mode);
	hash = mixed(hash, (uint64_t)(uint32_t)t->head.mount << 32 | t->head.walked_bytes);
	__builtin_memset(t->text + (t->bytes & (2 * HR_PROBE_PATH - 1)), 0, 8);
	for (uint32_t i = 0; i < 2 * HR_PROBE_PATH / 8; i++) {
		if (i * 8 >= t->bytes)
			break;
		hash = mixed(hash, *(uint64_t *)(t->text + i * 8));
	}
	t->hash = hash;
	return 0;
}

/*
 * Sends a NAME record, unless an equal one was sent recently. Returns its number; 0: no name;
 * HR_PROBE_NO_NAME: no room in the buffer. `file`: NULL for a path that is not open. `given`:
 * address of the path in the process, or 0. `from`: the folder to which a relative path refers.
 */
static __attribute__((noinline)) uint64_t send_name(struct task_struct *self, uint64_t image,
						    struct file *file, struct path *from,
						    uint64_t given)
{
	uint32_t zero = 0, walked = 0, all;
	struct name_text *t = bpf_map_lookup_elem(&name_texts, &zero);
	const uint64_t *known;
	long n = 0;

	if (!t)
		return 0;
	t->head.kind = HR_PROBE_NAME;
	t->head.image = image;
	t->head.ino = t->head.dev = t->head.mode = 0;
	t->head.mount = -1;
	if (file)
		name_inode(&t->head, file);
	t->text[0] = 0;
	if (given) {
		n = bpf_probe_read_user_str(t->text, HR_PROBE_PATH, (void *)given);
		if (n <= 1)
			return 0;
	}
	if (!given || t->text[0] != '/') {
		if (!from)
			return 0;
		walked = walk_text(walk(self, from), t->text);
		if (given) {
			n = bpf_probe_read_user_str(t->text + walked, HR_PROBE_PATH, (void *)given);
			if (n <= 1)
				return 0;
		}
	}
	t->head.walked_bytes = walked;
	t->head.given_bytes = given ? n - 1 : 0;
	t->bytes = walked + t->head.given_bytes;
	hash_name(t);
	known = bpf_map_lookup_elem(&texts, &t->hash);
	if (known && is_fresh(*known))
		return *known;
	t->head.name = __sync_fetch_and_add(&last_name, 1) + 1;
	all = sizeof(t->head) + t->bytes;
	if (all > sizeof(t->head) + sizeof(t->text) ||
	    bpf_ringbuf_output(&buffer, t, all, BPF_RB_NO_WAKEUP))
		return HR_PROBE_NO_NAME;
	bpf_map_update_elem(&texts, &t->hash, &t->head.name, BPF_ANY);
	return t->head.name;
}

/* Returns true unless the file is a pipe, socket, character device or anonymous inode. */
static inline bool is_file(struct file *file)
{
	unsigned long magic = BPF_CORE_READ(file, f_inode, i_sb, s_magic);

	switch (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) {
	case S_IFREG:
		return magic != ANON_INODE_FS && magic != PID_FS && magic != NS_FS;
	case S_IFDIR:
	case S_IFBLK:
		return true;
	default:
		return false;
	}
}

static inline struct file *file_at(struct task_struct *self, int32_t fd)
{
	struct fdtable *table = self->files->fdt;
	struct file *file = NULL;

	if ((uint32_t)fd >= table->max_fds)
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
	return file;
}

static inline bool is_named(uint64_t name)
{
	return name != 0 && name != HR_PROBE_NO_NAME;
}

static inline void keep_name(struct file *file, uint64_t name)
{
	uint64_t key = (uint64_t)file;
	struct hr_file_name value = {
	    .name = name,
	    .ino = BPF_CORE_READ(file, f_inode, i_ino),
	    .dev = BPF_CORE_READ(file, f_inode, i_sb, s_dev),
	};

	bpf_map_update_elem(&files, &key, &value, BPF_ANY);
}

/*
 * Call it for an open that the shim records. Removes the name of an earlier `struct file` at this
 * address from `files`.
 */
static inline void forget_name(struct file *file)
{
	uint64_t key = (uint64_t)file;

	bpf_map_delete_elem(&files, &key);
}

/*
 * Returns the number of a file's name. The entry of an earlier `struct file` at this address is
 * valid only if it had the same inode.
 */
static inline uint64_t name_of(struct task_struct *self, uint64_t image, struct file *file)
{
	uint64_t key = (uint64_t)file, name;
	const struct hr_file_name *known = bpf_map_lookup_elem(&files, &key);

	if (known && known->ino == BPF_CORE_READ(file, f_inode, i_ino) &&
	    known->dev == BPF_CORE_READ(file, f_inode, i_sb, s_dev) && is_fresh(known->name))
		return known->name;
	name = send_name(self, image, file, &file->f_path, 0);
	if (is_named(name))
		keep_name(file, name);
	return name;
}

static inline uint64_t name_of_path(struct task_struct *self, uint64_t image, int32_t dirfd,
				    uint64_t given, struct file *opened)
{
	struct path *from = NULL;
	struct file *dir;

	if (dirfd == AT_FDCWD) {
		from = &BPF_CORE_READ(self, fs)->pwd;
	} else {
		dir = file_at(self, dirfd);
		if (dir)
			from = &dir->f_path;
	}
	return send_name(self, image, opened, from, given);
}

/* Stores the name of a mapped file, for pages that are read later. */
static inline void note_inode(struct task_struct *self, uint64_t image, struct file *file)
{
	struct hr_inode_key key = {0};
	struct hr_file_name value = {0};

	if (!file || !is_file(file))
		return;
	key.ino = BPF_CORE_READ(file, f_inode, i_ino);
	key.dev = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	value.name = name_of(self, image, file);
	if (is_named(value.name))
		bpf_map_update_elem(&inodes, &key, &value, BPF_ANY);
}

#endif
