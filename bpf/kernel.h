/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel.h - types of the kernel that the programs use, and the differences between kernels
 *
 * Only used members are declared. libbpf finds their offsets in the BTF of the running kernel
 * (CO-RE). A type with `___` in its name is a flavour: the same type in another kernel version.
 */
#ifndef HEADRACE_BPF_KERNEL_H
#define HEADRACE_BPF_KERNEL_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define S_IFMT	0170000
#define S_IFREG 0100000
#define S_IFDIR 0040000
#define S_IFBLK 0060000

/* File systems with inodes that are not files (linux/magic.h). */
#define ANON_INODE_FS 0x09041934ul
#define PID_FS	      0x50494446ul
#define NS_FS	      0x6e736673ul

#define O_APPEND      02000
#define O_TMPFILE     020000000 /* the bit without O_DIRECTORY */
#define MAP_ANONYMOUS 0x20
#define AT_FDCWD      (-100)
#define EEXIST	      17

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct qstr {
	const unsigned char *name;
};

struct super_block {
	uint32_t s_dev;
	unsigned long s_magic;
};

struct inode {
	uint16_t i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	int mnt_id;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	unsigned int f_flags;
	int64_t f_pos;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path root;
	struct path pwd;
};

struct mm_struct {
	struct file *exe_file;
	unsigned long arg_start, arg_end, env_start, env_end;
};

struct signal_struct {
	atomic_t live;
};

struct kuid {
	uint32_t val;
};

struct cred {
	struct kuid uid;
};

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase;
};
#define THREAD_POINTER(task) ((task)->thread.fsbase)

struct pt_regs {
	unsigned long r10, r9, r8, dx, si, di;
};
#define WORD1(regs) ((regs)->di)
#define WORD2(regs) ((regs)->si)
#define WORD3(regs) ((regs)->dx)
#define WORD4(regs) ((regs)->r10)
#define WORD5(regs) ((regs)->r8)
#define WORD6(regs) ((regs)->r9)
/* thread_info.status: the system call is from the 32-bit table, with other numbers */
#define TS_COMPAT 2u
#else
struct uw {
	unsigned long tp_value;
};
struct thread_struct {
	struct uw uw;
};
#define THREAD_POINTER(task) ((task)->thread.uw.tp_value)

struct pt_regs {
	uint64_t regs[31];
};
#define WORD1(r)	     ((r)->regs[0])
#define WORD2(r)	     ((r)->regs[1])
#define WORD3(r)	     ((r)->regs[2])
#define WORD4(r)	     ((r)->regs[3])
#define WORD5(r)	     ((r)->regs[4])
#define WORD6(r)	     ((r)->regs[5])
#endif

struct thread_info {
	uint32_t status;
};

struct kernfs_node {
	uint64_t id;
};

struct cgroup_subsys_state {
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp; /* the task's cgroup of version 2 */
};

struct task_struct {
	struct thread_info thread_info;
	int pid, tgid;
	uint64_t start_boottime;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct files_struct *files;
	struct fs_struct *fs;
	struct signal_struct *signal;
	const struct cred *cred;
	struct css_set *cgroups;
	unsigned long maj_flt;
	int exit_code;
	struct thread_struct thread;
};

struct bpf_iter__task {
	struct task_struct *task;
};

/* ---- io_uring */

struct kiocb {
	int64_t ki_pos;
};

struct io_rw {
	struct kiocb kiocb;
	uint32_t len;
};

struct filename {
	const char *uptr; /* address in the memory of the process */
};

struct io_open {
	int dfd;
	/* index + 1 in the table of files of an io_uring; 0: the open makes a descriptor */
	uint32_t file_slot;
	struct filename *filename;
};

struct io_close {
	uint32_t file_slot;
};

struct io_cqe {
	uint64_t user_data;
	int32_t res;
	int fd;
};

struct io_kiocb {
	struct file *file;
	uint8_t opcode;
	struct io_cqe cqe;
	uint64_t flags;
};

struct io_uring_cqe {
	uint64_t user_data;
	int32_t res;
};

/* ---- pages */

struct address_space {
	struct inode *host;
};

typedef struct {
	unsigned long f;
} memdesc_flags_t;

struct folio {
	struct address_space *mapping;
	unsigned long flags;
	unsigned int _nr_pages;
};

struct folio___flags { /* Linux 6.18 */
	memdesc_flags_t flags;
};

struct folio___named { /* Linux 6.1 to 6.14 */
	unsigned int _folio_nr_pages;
};

#pragma clang attribute pop

enum pageflags { PG_head = 6 };

static inline uint64_t folio_bytes(struct folio *folio)
{
	unsigned long flags;
	struct folio___flags *f = (void *)folio;
	struct folio___named *n = (void *)folio;

	if (bpf_core_field_exists(f->flags.f))
		flags = BPF_CORE_READ(f, flags.f);
	else
		flags = BPF_CORE_READ(folio, flags);
	if (!(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
		return 4096;
	if (bpf_core_field_exists(folio->_nr_pages))
		return BPF_CORE_READ(folio, _nr_pages) * 4096ull;
	if (bpf_core_field_exists(n->_folio_nr_pages))
		return BPF_CORE_READ(n, _folio_nr_pages) * 4096ull;
	return 4096;
}

#endif
