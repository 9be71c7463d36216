/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filters.h - the lists of --exclude and --include, made fit for the shim
 *
 * Purpose   The shim (common/path_filter.h) compares absolute paths with as many patterns as it has room for. Here relative ones are
 *           made absolute, and lists that are too long are refused before anything starts.
 * Owner     The caller frees what it is given.
 * Threads   One.
 */
#ifndef HEADRACE_CLI_RUN_FILTERS_H
#define HEADRACE_CLI_RUN_FILTERS_H

/*
 * The list with every relative pattern below the working directory. One that begins with `*` or `?` stays: it holds
 * anywhere. -ENOMEM, -EINVAL (the working directory's name cannot stand in a list), or as getcwd.
 */
int hr_filter_absolute(const char *list, char **ret);

/*
 * Do `lists` (NULL-terminated) and what environment variable `variable` holds fit together? 0, or -E2BIG after it has been
 * said; `option` is what lists were given with.
 */
int hr_filter_check(const char *option, const char *variable, const char *const *lists);

#endif
