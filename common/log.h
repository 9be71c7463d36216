/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - log messages of a daemon: one line each on standard error
 *
 * Lines have priorities ("<4>...") if standard error goes to journald. Text from other processes
 * cannot forge lines. Any thread.
 */
#ifndef HEADRACE_COMMON_LOG_H
#define HEADRACE_COMMON_LOG_H

enum hr_log_level { HR_LOG_ERROR = 3, HR_LOG_WARNING = 4, HR_LOG_INFO = 6 };

__attribute__((format(printf, 2, 3))) void hr_log(enum hr_log_level level, const char *format, ...);

/* Like hr_log, at most once a minute for a `key`. The line has the number of lines left out. */
__attribute__((format(printf, 3, 4))) void hr_log_about(enum hr_log_level level, const char *key,
							const char *format, ...);

#endif
