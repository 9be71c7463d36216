/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filters.h - prepares the lists of --exclude and --include for the shim
 *
 * The shim (common/path_filter.h) compares absolute paths with a limited number of patterns. These
 * functions make relative patterns absolute, and refuse lists with too many patterns.
 */
#ifndef HEADRACE_CLI_RUN_FILTERS_H
#define HEADRACE_CLI_RUN_FILTERS_H

/*
 * Makes relative patterns absolute. Patterns that begin with `*` or `?` stay, because they match in
 * every folder. Errors: -ENOMEM; -EINVAL if the path of the working directory contains a comma or a
 * wildcard; those of getcwd.
 */
int hr_filter_absolute(const char *list, char **ret);

/*
 * Checks that the shim can hold the patterns of an option (`lists`, NULL-terminated) and of an
 * environment variable. Returns 0, or -E2BIG after it has reported the limit.
 */
int hr_filter_check(const char *option, const char *variable, const char *const *lists);

#endif
