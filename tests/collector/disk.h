/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk.h - a small file system of a test's own, to be filled or made read-only
 *
 * The test's process moves into a mount namespace of its own. Every function asserts its own success, but disk_mount.
 */
#ifndef HEADRACE_TESTS_COLLECTOR_DISK_H
#define HEADRACE_TESTS_COLLECTOR_DISK_H

#include <stdbool.h>

/* A tmpfs of 1 MiB at a new folder. False without the right to mount: the test has to skip. */
bool disk_mount(const char *at);
void disk_unmount(const char *at);

void disk_read_only(const char *at, bool read_only);

/* Takes all room that is left, with the file `path` there, or a part of it. */
void disk_fill(const char *path);

#endif
