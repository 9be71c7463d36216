/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - this machine: name, boot, pid namespaces, limit of open files, programs; any thread */
#ifndef HEADRACE_COMMON_HOST_H
#define HEADRACE_COMMON_HOST_H

#include <stdbool.h>

#define HR_HOST_NAME_BYTES 256u
#define HR_HOST_BOOT_BYTES 40u /* for 36 characters: "5d7a...-..." */

void hr_host_name(char ret[HR_HOST_NAME_BYTES]); /* "localhost" if the kernel has no name */

/* Writes the id of the current boot (/proc/sys/kernel/random/boot_id). "unknown" without /proc. */
void hr_host_boot_id(char ret[HR_HOST_BOOT_BYTES]);

/*
 * Whether this process is in the initial pid namespace, whose pids BPF programs report. Outside of
 * it, as in a container, headraced cannot use probes. True without /proc.
 */
bool hr_host_has_initial_pids(void);

/* Raises this process's limit of open files to the maximum, and returns the new limit. */
unsigned hr_host_raise_files(void);

/* Checks that exec would find this program in PATH. Returns 0, or the error of exec as -errno. */
int hr_host_find_program(const char *name);

#endif
