/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp.h - which system calls of a recording a seccomp filter forbids */
#ifndef HEADRACE_CLI_SECCOMP_H
#define HEADRACE_CLI_SECCOMP_H

/*
 * Returns the name of the first system call that `headrace run`, headraced or the shim need, and
 * that a seccomp filter of this process forbids. *ret_error: its errno. NULL: there is none.
 * Finds only filters that forbid a call with any arguments.
 */
const char *hr_seccomp_forbidden(int *ret_error);

#endif
