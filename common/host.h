/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - this machine as daemons know it: its name, its boot, how many files a process may open
 *
 * Threads   Any.
 */
#ifndef HEADRACE_COMMON_HOST_H
#define HEADRACE_COMMON_HOST_H

#define HR_HOST_NAME_BYTES 256u
#define HR_HOST_BOOT_BYTES 40u /* "5d7a...-...", 36 characters */

/* "localhost" where the kernel knows none. */
void hr_host_name(char ret[HR_HOST_NAME_BYTES]);

/* Of the boot that runs, as /proc/sys/kernel/random/boot_id says; "unknown" without /proc. */
void hr_host_boot_id(char ret[HR_HOST_BOOT_BYTES]);

/* Raises this process's limit of open files as far as it goes. What it is then. */
unsigned hr_host_raise_files(void);

#endif
