/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h - the names in an open folder
 *
 * A query of many jobs reads thousands of small folders. For each folder, these functions make two
 * system calls, and scandirat() makes five.
 */
#ifndef HEADRACE_STORE_FOLDER_H
#define HEADRACE_STORE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

struct hr__folder {
	const char **names; /* names that begin with a dot are left out */
	size_t n;
	char *text;
};

/* Afterwards, the offset of `fd` is at the end of the folder. -ENOMEM, -errno. */
int hr__folder_read(int fd, struct hr__folder *ret);
void hr__folder_done(struct hr__folder *f);

bool hr__folder_has(const struct hr__folder *f, const char *name);

#endif
