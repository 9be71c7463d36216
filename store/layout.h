/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h - names in a store folder, and the file that marks a store. Any thread. */
#ifndef HEADRACE_STORE_LAYOUT_H
#define HEADRACE_STORE_LAYOUT_H

#include <sys/stat.h>

#include "store/store.h"

#define HR__STORE_FILE	 "headrace.store"
#define HR__LOCK_FILE	 "lock"
#define HR__JOURNAL_FILE "journal"
#define HR__HOLDER_FILE	 "collector"
#define HR__NODE_JOB	 "_node" /* the job to which a node's own records belong */
#define HR__NAME_BYTES	 256	 /* largest folder name, with its NUL */
#define HR__SEGMENT_MAX	 999999u

/* Encodes the name of a job or node as a folder name. -ENAMETOOLONG. -EINVAL: the name is empty. */
int hr_name_encode(const char *name, char ret[HR__NAME_BYTES]);
void hr_name_decode(const char *encoded, char ret[HR__NAME_BYTES]);

/* Writes the folder name of a stream: "<node>.<instance>-<attempt>". */
int hr_stream_name(const struct hr_stream_id *id, char ret[HR__NAME_BYTES]);

/* Returns the number in "000012.seg"; 0 for any other name. */
uint32_t hr__segment_number(const char *name);

/*
 * Reads headrace.store. 0: a store of this version. -ENOENT: no store; -EPROTONOSUPPORT: other
 * version; -ENOTEMPTY: other text; -EAGAIN: another process is writing it; -ELOOP: not a file.
 */
int hr_store_version(int dir_fd);

/*
 * Opens a file of a store ("jobs/7/n1.ab/000003.seg") for reading. Opens each part of the path with
 * hr_store_open_folder or hr_store_open_file. Returns a descriptor or -errno.
 */
int hr__store_open(const char *store, const char *path);

/* Like hr_store_open_file. *ret: the attributes of the file. */
int hr__store_open_stat(int dir_fd, const char *name, int flags, struct stat *ret);

/* Writes all bytes at an offset. Repeats interrupted and short writes. Returns 0 or -errno. */
int hr__write_at(int fd, const uint8_t *buf, size_t bytes, uint64_t offset);

/* Opens a folder. If it is missing, creates it with mode 0700. */
int hr__folder_open(int dir_fd, const char *name, int *ret_fd);

/* Like hr_store_create, even if a collector holds the store. Returns the open folder or -errno. */
int hr__store_make(const char *path);

bool hr__store_held(int store_fd);

/* Like hr_stream_lock, for the file `name` of a folder. `flags`: O_CREAT or 0. */
int hr_lock_file(int dir_fd, const char *name, int flags, int *ret_fd);

#endif
