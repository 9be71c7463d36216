/* SPDX-License-Identifier: Apache-2.0 */
/* drive_hook.c - calls that are no operations: process, environment, jumps */
#include "drive.h"

#include <dlfcn.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "shim/core/internal.h"

#ifdef __x86_64__
#define FIRST_VERSION "GLIBC_2.2.5"
#else
#define FIRST_VERSION "GLIBC_2.17"
#endif

/* ---- processes ------------------------------------------------------------------------------ */

/* The child says by its status whether its own hook was the next note. */
static int child_saw(const char *hook)
{
	const struct stub_event *e = stub_take();

	return e != NULL && e->kind == STUB_HOOK && strcmp(e->hook, hook) == 0;
}

static int exit_status(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define FORK(name)                                                                                 \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		pid_t pid = ON(hr_wrap_##name());                                                  \
                                                                                                   \
		if (pid == 0)                                                                      \
			_exit(child_saw("hr_after_fork_child") ? 7 : 1);                           \
		assert_int_equal(exit_status(pid), 7);                                             \
		assert_int_equal(want_hook("hr_after_fork_parent")->ret, pid);                     \
	}

FORK(fork)
FORK(_Fork)

/* Parent and child share a stack: whatever frame the wrapper left would be gone for the parent. */
void drive_vfork(void)
{
	volatile int canary[64];
	pid_t pid;

	for (int i = 0; i < 64; i++)
		canary[i] = i;
	stub_on();
	pid = hr_wrap_vfork();
	if (pid == 0) {
		char path[64];

		snprintf(path, sizeof(path), "/%d", 7);
		_exit(path[1] - '0');
	}
	stub_off();
	for (int i = 0; i < 64; i++)
		assert_int_equal(canary[i], i);
	assert_int_equal(exit_status(pid), 7);
	want_hook("hr_before_vfork");
}

static int clone_child(void *arg)
{
	_exit(*(int *)arg);
}

void drive_clone(void)
{
	static char stack[64 << 10] __attribute__((aligned(16)));
	int status = 7;
	pid_t tid = 0;
	pid_t pid = ON(hr_wrap_clone(clone_child, stack + sizeof(stack), SIGCHLD, &status));

	assert_int_equal(exit_status(pid), 7);
	assert_int_equal(want_hook("hr_after_fork_parent")->ret, pid);
	pid = ON(hr_wrap_clone(clone_child, stack + sizeof(stack),
			       CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD, &status,
			       &tid));
	assert_int_equal(exit_status(pid), 7);
	assert_int_equal(tid, pid);
	want_hook("hr_before_vfork");
	pid = ON(hr_wrap_clone(clone_child, stack + sizeof(stack), CLONE_VM | SIGCHLD, &status));
	assert_int_equal(exit_status(pid), 7);
	want_hook("hr_before_sharing");
	pid = ON(hr_wrap_clone(clone_child, stack + sizeof(stack), CLONE_FILES | CLONE_FS | SIGCHLD,
			       &status));
	assert_int_equal(exit_status(pid), 7);
	want_hook("hr_fds_split");
	want_hook("hr_cwd_split");
	assert_int_equal(want_hook("hr_after_fork_parent")->ret, pid);
}

/* In a child: the parent of daemon() exits. */
void drive_daemon(void)
{
	int p[2], answer = 0;
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	if (pid == 0) {
		int r = ON(hr_wrap_daemon(1, 1));

		answer = r == 0 && child_saw("hr_after_fork_child") && child_saw("hr_cwd_changed");
		_exit(write(p[1], &answer, sizeof(answer)) != sizeof(answer));
	}
	close(p[1]);
	assert_int_equal(read(p[0], &answer, sizeof(answer)), sizeof(answer));
	assert_int_equal(answer, 1);
	assert_int_equal(exit_status(pid), 0);
}

/* A probe is not a filter. The real one is refused here: a null program. */
void drive_prctl(void)
{
	unsigned long name[2] = {0};

	assert_int_equal(ON(hr_wrap_prctl(PR_GET_NAME, name)), 0);
	assert_true(name[0] != 0);
	assert_failed(ON(hr_wrap_prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL)), EFAULT);
	assert_int_equal(ON(hr_wrap_prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 8L)), -1);
	want_hook("hr_before_seccomp");
	want_hook("hr_seccomp_failed");
}

/* ---- programs that are started ----------------------------------------------------------------- */

static char *const one_variable[] = {"HR_ONE=1", NULL};
static char *const words[] = {"missing", "word", NULL};
static char *const shell_words[] = {"sh", "-c", "exit 7", NULL};

/* One that cannot be started: the notice is taken back. `variable`: the first that the program would get. */
static void want_failed_exec(const char *program, const char *variable)
{
	char text[128];

	snprintf(text, sizeof(text), "%s %s", program, variable);
	assert_string_equal(want_hook("hr_before_exec")->text, text);
	assert_int_equal(want_hook("hr_exec_failed")->ret, STUB_NOTICE);
}

#define EXEC_FAILS(name, variable, args)                                                           \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		assert_failed(ON(hr_wrap_##name args), ENOENT);                                    \
		want_failed_exec(P("missing"), variable);                                          \
	}

EXEC_FAILS(execve, "HR_ONE=1", (P("missing"), words, one_variable))
EXEC_FAILS(execv, environ[0], (P("missing"), words))
EXEC_FAILS(execvp, environ[0], (P("missing"), words))
EXEC_FAILS(execvpe, "HR_ONE=1", (P("missing"), words, one_variable))

/* What the program gets, of a list: its shell counts the words, and has the variable or not. */
#define EXEC_LIST(name, variable, status, ...)                                                     \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		pid_t pid = fork();                                                                \
                                                                                                   \
		if (pid == 0) {                                                                    \
			hr_wrap_##name("/bin/sh", "sh", "-c", "exit $(($# * 10 + ${HR_ONE:-0}))",  \
				       "sh", "a", "b", NULL, ##__VA_ARGS__);                       \
			_exit(1);                                                                  \
		}                                                                                  \
		assert_int_equal(exit_status(pid), status);                                        \
		assert_failed(ON(hr_wrap_##name(P("missing"), "word", NULL, ##__VA_ARGS__)),       \
			      ENOENT);                                                             \
		want_failed_exec(P("missing"), variable);                                          \
		assert_failed(ON(hr_wrap_##name(P("missing"), NULL, ##__VA_ARGS__)), ENOENT);      \
		want_failed_exec(P("missing"), variable);                                          \
	}

EXEC_LIST(execl, environ[0], 20)
EXEC_LIST(execlp, environ[0], 20)
EXEC_LIST(execle, "HR_ONE=1", 21, one_variable)

#define SPAWN(name)                                                                                \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		pid_t pid;                                                                         \
                                                                                                   \
		assert_int_equal(                                                                  \
		    ON(hr_wrap_##name(&pid, "/bin/sh", NULL, NULL, shell_words, one_variable)),    \
		    0);                                                                            \
		assert_int_equal(exit_status(pid), 7);                                             \
		assert_string_equal(want_hook("hr_after_spawn")->text, "/bin/sh HR_ONE=1");        \
		assert_int_equal(                                                                  \
		    ON(hr_wrap_##name(&pid, P("missing"), NULL, NULL, shell_words, one_variable)), \
		    ENOENT);                                                                       \
	}

SPAWN(posix_spawn)
SPAWN(posix_spawnp)

static void want_shell(void)
{
	char text[128];

	snprintf(text, sizeof(text), "/bin/sh %s", environ[0]);
	assert_string_equal(want_hook("hr_after_spawn")->text, text);
}

void drive_system(void)
{
	int status = ON(hr_wrap_system("exit 7"));

	assert_int_equal(WEXITSTATUS(status), 7);
	want_shell();
	assert_int_not_equal(ON(hr_wrap_system(NULL)), 0);
}

void drive_popen(void)
{
	FILE *fp = ON(hr_wrap_popen("exit 7", "r"));

	assert_non_null(fp);
	want_shell();
	assert_int_equal(WEXITSTATUS(pclose(fp)), 7);
	assert_null(ON(hr_wrap_popen("exit 7", "x")));
}

/* ---- functions that are taken by a handle ---------------------------------------------------- */

static int (*program_raise)(int);

void drive_dlsym(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	void *program = dlopen(NULL, RTLD_LAZY);

	hr__real_init(NULL);
	assert_non_null(libc);
	/* ASan does not replace this function. */
	assert_ptr_equal(hr_wrap_dlsym(libc, "posix_fallocate"), hr_wrap_posix_fallocate);
	assert_ptr_equal(hr_wrap_dlsym(libc, "dlsym"), hr_wrap_dlsym);
	assert_ptr_equal(hr_wrap_dlsym(program, "posix_fallocate"), hr_wrap_posix_fallocate);
	assert_ptr_equal(hr_wrap_dlsym(RTLD_DEFAULT, "posix_fallocate"), hr_wrap_posix_fallocate);
	assert_ptr_equal(hr_wrap_dlsym(RTLD_NEXT, "posix_fallocate"),
			 hr_real_get(HR_OP_posix_fallocate));
	*(void **)&program_raise = hr_wrap_dlsym(libc, "raise");
	assert_ptr_equal(program_raise, raise);
	assert_null(hr_wrap_dlsym(libc, "no_such_function"));
	assert_non_null(strstr(dlerror(), "no_such_function"));
	dlclose(libc);
	dlclose(program);
}

void drive_dlvsym(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	hr__real_init(NULL);
	assert_ptr_equal(hr_wrap_dlvsym(libc, "posix_fallocate", FIRST_VERSION),
			 hr_wrap_posix_fallocate);
#ifdef __x86_64__ /* the original of the wrapper is another version */
	assert_ptr_not_equal(hr_wrap_dlvsym(libc, "posix_spawn", FIRST_VERSION),
			     hr_wrap_posix_spawn);
#endif
	assert_null(hr_wrap_dlvsym(libc, "posix_fallocate", "GLIBC_0"));
	dlclose(libc);
}

void drive_dlopen(void)
{
	void *libc = ON(hr_wrap_dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD));

	assert_non_null(libc);
	dlclose(libc);
#ifndef __SANITIZE_ADDRESS__ /* it ends the program */
	assert_null(ON(hr_wrap_dlopen("no-such-library.so", RTLD_LAZY | RTLD_DEEPBIND)));
	want_hook("hr_before_unseen_library");
#endif
}

void drive_dlmopen(void)
{
	void *libc = ON(hr_wrap_dlmopen(LM_ID_BASE, "libc.so.6", RTLD_LAZY | RTLD_NOLOAD));

	assert_non_null(libc);
	dlclose(libc);
	assert_null(ON(hr_wrap_dlmopen(LM_ID_NEWLM, "no-such-library.so", RTLD_LAZY)));
	want_hook("hr_before_unseen_library");
}

/* ---- ways out -------------------------------------------------------------------------------- */

/* In a child: some of them change it. */
#define LEAVING(name, result, args)                                                                \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		pid_t pid = fork();                                                                \
                                                                                                   \
		if (pid == 0) {                                                                    \
			int r = ON(hr_wrap_##name args);                                           \
                                                                                                   \
			_exit(r == (result) && child_saw("hr_before_leaving") ? 7 : 1);            \
		}                                                                                  \
		assert_int_equal(exit_status(pid), 7);                                             \
	}

LEAVING(chroot, -1, (P("missing")))
LEAVING(setuid, 0, (geteuid()))
LEAVING(setgid, 0, (getegid()))
LEAVING(setreuid, 0, (-1, -1))
LEAVING(setregid, 0, (-1, -1))
LEAVING(setresuid, 0, (-1, -1, -1))
LEAVING(setresgid, 0, (-1, -1, -1))
LEAVING(seteuid, 0, (geteuid()))
LEAVING(setegid, 0, (getegid()))
LEAVING(setfsuid, (int)geteuid(), (geteuid()))
LEAVING(setfsgid, (int)getegid(), (getegid()))
LEAVING(setgroups, -1, (1u << 20, NULL))
LEAVING(initgroups, geteuid() == 0 ? 0 : -1, ("root", getegid()))
LEAVING(setns, -1, (-1, 0))

/* In a child, because the calls change it. */
void drive_unshare(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		int r = ON(hr_wrap_unshare(CLONE_FILES | CLONE_FS));

		_exit(r == 0 && child_saw("hr_fds_split") && child_saw("hr_cwd_split") &&
			      child_saw("hr_before_leaving")
			  ? 7
			  : 1);
	}
	assert_int_equal(exit_status(pid), 7);
	assert_int_equal(ON(hr_wrap_unshare(0)), 0);
	want_hook("hr_before_leaving");
}

/* ---- environment ---------------------------------------------------------------------------- */

void drive_setenv(void)
{
	assert_int_equal(ON(hr_wrap_setenv("RANK", "3", 1)), 0);
	assert_string_equal(getenv("RANK"), "3");
	assert_string_equal(want_hook("hr_env_set")->text, "RANK=3");
	assert_int_equal(ON(hr_wrap_setenv("RANK", "4", 0)), 0);
	assert_string_equal(want_hook("hr_env_add")->text, "RANK=4");
	assert_string_equal(getenv("RANK"), "3");
	assert_failed(ON(hr_wrap_setenv("A=B", "4", 1)), EINVAL);
	unsetenv("RANK");
}

void drive_putenv(void)
{
	static char text[] = "RANK=5", bare[] = "RANK", empty[] = "RANK=";
	static char longer[100] = "X", *end = longer + 90;

	memset(longer, 'X', 90);
	strcpy(end, "=1");
	assert_int_equal(ON(hr_wrap_putenv(text)), 0);
	assert_string_equal(getenv("RANK"), "5");
	assert_string_equal(want_hook("hr_env_set")->text, "RANK=5");
	assert_int_equal(ON(hr_wrap_putenv(empty)), 0);
	assert_string_equal(want_hook("hr_env_set")->text, "RANK=");
	assert_int_equal(ON(hr_wrap_putenv(longer)), 0);
	assert_int_equal(ON(hr_wrap_putenv(bare)), 0);
	assert_null(getenv("RANK"));
}

/* ---- jumps ----------------------------------------------------------------------------------- */

#define JUMP(name, set)                                                                            \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		sigjmp_buf env;                                                                    \
		volatile int arrived = 0;                                                          \
		int value = set;                                                                   \
                                                                                                   \
		if (value == 0) {                                                                  \
			arrived = 1;                                                               \
			stub_on();                                                                 \
			hr_wrap_##name(env, 7);                                                    \
		}                                                                                  \
		stub_off();                                                                        \
		assert_int_equal(arrived, 1);                                                      \
		assert_int_equal(value, 7);                                                        \
		want_hook("hr_before_longjmp");                                                    \
	}

JUMP(longjmp, setjmp(env))
JUMP(_longjmp, _setjmp(env))
JUMP(siglongjmp, sigsetjmp(env, 1))
JUMP(__longjmp_chk, sigsetjmp(env, 1))
