/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/shim/core/harness.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

char harness_dir[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

void harness_run(void (*body)(void))
{
	int status;
	pid_t pid;

	strcpy(harness_dir, "/tmp/shim_core.XXXXXX");
	assert_non_null(mkdtemp(harness_dir));
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		alarm(HANG_S);
		CHECK(chdir(harness_dir) == 0);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	nftw(harness_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	assert_int_equal(status, 0);
}

void harness_init(const char *const *env)
{
	hr__init((char **)(uintptr_t)env);
	CHECK(hr_shim_image.on);
}

void harness_patient(void)
{
	hr_shim_image.on_full = HR__FULL_WAIT;
	hr_shim_image.wait_ms = PATIENT_MS;
}

int harness_attach(void)
{
	typeof(hr_shim_image.on_full) on_full = hr_shim_image.on_full;
	uint32_t wait_ms = hr_shim_image.wait_ms;
	int fd;

	harness_file("a", 64);
	harness_patient();
	fd = t_open("a", O_RDONLY);
	CHECK(fd >= 0 && hr_wiped.node != NULL);
	hr_shim_image.on_full = on_full;
	hr_shim_image.wait_ms = wait_ms;
	return fd;
}

void harness_spent(void)
{
	CHECK(hr_shim_image.no_wait_until_ns != 0);
	hr_shim_image.no_wait_until_ns = UINT64_MAX;
	harness_patient(); /* a wait would show */
}

void harness_gone(int tid)
{
	while (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
		usleep(100);
}

struct fake_daemon *harness_start(const struct fake_options *o, ...)
{
	static char socket[128];
	static const char *env[16];
	struct fake_daemon *d = fake_start(harness_socket(), o);
	bool patient = o == NULL || !o->silent;
	size_t n = 0;
	va_list args;

	snprintf(socket, sizeof(socket), "HEADRACE_SOCKET=%s", harness_socket());
	env[n++] = socket;
	va_start(args, o);
	for (; n < 15 && (env[n] = va_arg(args, const char *)) != NULL; n++)
		patient = patient && strncmp(env[n], "HEADRACE_ON_FULL=", 17) != 0;
	va_end(args);
	harness_init(env);
	if (patient)
		harness_patient();
	return d;
}

double harness_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void harness_file(const char *name, size_t bytes)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 && close(fd) == 0);
}

bool harness_fds_become(size_t n)
{
	while (unit_descriptors() != n) /* at most HANG_S */
		usleep(1000);
	return true;
}

int t_openat(int dirfd, const char *path, int flags)
{
	struct hr_op op;
	int fd;

	hr_begin_path(&op, HR_OP_openat, dirfd, path, HR_ASKED_NONE);
	fd = openat(dirfd, path, flags, 0600);
	hr_end_open(&op, fd, hr_ret(fd), (uint32_t)flags);
	return fd;
}

int t_open(const char *path, int flags)
{
	struct hr_op op;
	int fd;

	hr_begin_path(&op, HR_OP_open, AT_FDCWD, path, HR_ASKED_NONE);
	fd = open(path, flags, 0600);
	hr_end_open(&op, fd, hr_ret(fd), (uint32_t)flags);
	return fd;
}

ssize_t t_read(int fd, void *buf, size_t n)
{
	struct hr_op op;
	ssize_t r;

	hr_begin_fd(&op, HR_OP_read, fd, n, HR_OFFSET_NONE);
	r = read(fd, buf, n);
	hr_end(&op, hr_ret(r), 0);
	return r;
}

ssize_t t_pread(int fd, void *buf, size_t n, off_t at)
{
	struct hr_op op;
	ssize_t r;

	hr_begin_fd(&op, HR_OP_pread64, fd, n, at);
	r = pread(fd, buf, n, at);
	hr_end(&op, hr_ret(r), 0);
	return r;
}

int t_close(int fd)
{
	struct hr_op op;
	int r;

	hr_begin_fd(&op, HR_OP_close, fd, HR_ASKED_NONE, HR_OFFSET_NONE);
	hr_fd_clear(fd);
	r = close(fd);
	hr_end(&op, hr_ret(r), 0);
	return r;
}

int t_chdir(const char *path)
{
	struct hr_op op;
	int r;

	hr_begin_path(&op, HR_OP_chdir, AT_FDCWD, path, HR_ASKED_NONE);
	r = chdir(path);
	if (r == 0)
		hr_cwd_changed();
	hr_end(&op, hr_ret(r), 0);
	return r;
}

int t_stat(const char *path, struct stat *st)
{
	struct hr_op op;
	int r;

	hr_begin_path(&op, HR_OP_stat, AT_FDCWD, path, HR_ASKED_NONE);
	r = stat(path, st);
	hr_end(&op, hr_ret(r), 0);
	return r;
}

int t_rename(const char *from, const char *to)
{
	struct hr_op op;
	int r;

	hr_begin_path(&op, HR_OP_rename, AT_FDCWD, from, HR_ASKED_NONE);
	r = rename(from, to);
	hr_end_pair(&op, hr_path_file(AT_FDCWD, to, r == 0), -1, HR_OFFSET_NONE, hr_ret(r), 0);
	return r;
}

pid_t t_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		hr_after_fork_child();
	else
		hr_after_fork_parent(pid);
	return pid;
}

void t_wait(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

void t_timer(int us)
{
	struct itimerval it = {{0, us}, {0, us}};

	setitimer(ITIMER_REAL, &it, NULL);
}

void t_catch(void (*handler)(int), int flags)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};

	sigaction(SIGALRM, &sa, NULL);
}
