/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_exec.c - hooks for calls that start programs
 *
 * The hooks only check whether the new program will load this library. posix_spawn, system and
 * popen exec inside libc, in a child, so their hooks run in the parent.
 */
#include <alloca.h>
#include <stdlib.h>

#include "shim/wrap/wrap.h"

#define SHELL "/bin/sh"

extern char **environ __attribute__((weak));

static char *const *environment(void)
{
	return &environ != NULL ? environ : NULL;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): parameters and names cannot have parentheses */

#define EXEC(name, params, args, path, envp)                                                       \
	int hr_wrap_##name params                                                                  \
	{                                                                                          \
		int notice = hr_before_exec(path, envp);                                           \
		int r = HR_REAL(name) args;                                                        \
                                                                                                   \
		hr_exec_failed(notice);                                                            \
		return r;                                                                          \
	}

EXEC(execve, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp), path,
     envp)
EXEC(execv, (const char *path, char *const argv[]), (path, argv), path, environment())
EXEC(execvp, (const char *file, char *const argv[]), (file, argv), file, environment())
EXEC(execvpe, (const char *file, char *const argv[], char *const envp[]), (file, argv, envp), file,
     envp)

/* argv is on the stack, as in libc. `envp` may take an argument from the va_list `ap`. */
#define EXEC_LIST(name, envp, by, ...)                                                             \
	int hr_wrap_##name(const char *path, const char *arg, ...)                                 \
	{                                                                                          \
		char *const *env;                                                                  \
		int notice, r;                                                                     \
		size_t n = 0;                                                                      \
		char **argv;                                                                       \
		va_list ap;                                                                        \
                                                                                                   \
		va_start(ap, arg);                                                                 \
		for (const char *word = arg; word != NULL; word = va_arg(ap, const char *))        \
			n++;                                                                       \
		va_end(ap);                                                                        \
		argv = alloca((n + 1) * sizeof(*argv));                                            \
		n = 0;                                                                             \
		va_start(ap, arg);                                                                 \
		for (const char *word = arg; word != NULL; word = va_arg(ap, const char *))        \
			argv[n++] = (char *)(uintptr_t)word;                                       \
		argv[n] = NULL;                                                                    \
		env = envp;                                                                        \
		va_end(ap);                                                                        \
		notice = hr_before_exec(path, env);                                                \
		r = HR_REAL(by)(path, argv, ##__VA_ARGS__);                                        \
		hr_exec_failed(notice);                                                            \
		return r;                                                                          \
	}

EXEC_LIST(execl, environment(), execv)
EXEC_LIST(execlp, environment(), execvp)
EXEC_LIST(execle, va_arg(ap, char *const *), execve, env)

#define SPAWN(name)                                                                                \
	int hr_wrap_##name(                                                                        \
	    pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,               \
	    const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])           \
	{                                                                                          \
		int r = HR_REAL(name)(pid, path, actions, attributes, argv, envp);                 \
                                                                                                   \
		if (r == 0)                                                                        \
			hr_after_spawn(path, envp);                                                \
		return r;                                                                          \
	}

SPAWN(posix_spawn)
SPAWN(posix_spawnp)

/* NOLINTEND(bugprone-macro-parentheses) */

int hr_wrap_system(const char *command)
{
	int r = HR_REAL(system)(command);

	if (command != NULL && r != -1)
		hr_after_spawn(SHELL, environment());
	return r;
}

FILE *hr_wrap_popen(const char *command, const char *type)
{
	FILE *r = HR_REAL(popen)(command, type);

	if (r != NULL)
		hr_after_spawn(SHELL, environment());
	return r;
}
