/* SPDX-License-Identifier: Apache-2.0 */
#include "drive.h"

#include <dlfcn.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/syscall.h>

int root_fd;
char data_path[PATH_MAX + 64];

/* ---- helpers -------------------------------------------------------------------------------- */

const char *P(const char *name)
{
	static char ring[8][PATH_MAX + 64];
	static unsigned next;
	char *path = ring[next++ % 8];

	snprintf(path, sizeof(ring[0]), "%s/%s", stub_root, name);
	return path;
}

int fd_open(const char *name, int flags)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, P(name), flags, 0600);

	assert_true(fd >= 0);
	return fd;
}

int data_open(int flags)
{
	return fd_open("data", flags);
}

FILE *stream(const char *name, const char *mode)
{
	FILE *fp = fopen(P(name), mode);

	assert_non_null(fp);
	return fp;
}

static struct stat64 stat_of(const char *name)
{
	struct stat64 st = {0};

	fstatat64(AT_FDCWD, P(name), &st, AT_SYMLINK_NOFOLLOW);
	return st;
}

bool exists(const char *name)
{
	return faccessat(AT_FDCWD, P(name), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int mode_of(const char *name)
{
	return (int)(stat_of(name).st_mode & 07777);
}

int64_t size_of(const char *name)
{
	return stat_of(name).st_size;
}

bool holds(const char *name, const char *text)
{
	char buf[4096];
	int fd = fd_open(name, O_RDONLY);
	ssize_t n = read(fd, buf, sizeof(buf));

	close(fd);
	return n == (ssize_t)strlen(text) && memcmp(buf, text, (size_t)n) == 0;
}

bool same_file(int fd, const char *name)
{
	struct stat64 a, b = stat_of(name);

	return fstat64(fd, &a) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

bool in_libc(const char *name)
{
	return dlsym(RTLD_NEXT, name) != NULL;
}

static int std_saved = -1;

FILE *std_begin(FILE *std, const char *name, int flags)
{
	int fd = fd_open(name, flags);

	fflush(std);
	std_saved = dup(fileno(std));
	assert_int_equal(dup2(fd, fileno(std)), fileno(std));
	close(fd);
	return std;
}

void std_end(FILE *std)
{
	fflush(std);
	dup2(std_saved, fileno(std));
	close(std_saved);
	clearerr(std);
}

/* ---- expectations --------------------------------------------------------------------------- */

static void same_path(const char *got, const char *wanted)
{
	if (wanted == NULL)
		assert_null(got);
	else
		assert_string_equal(got != NULL ? got : "(none)", wanted);
}

static const struct stub_event *take(const char *wanted)
{
	const struct stub_event *e = stub_take();

	if (e != NULL)
		return e;
	fail_msg("nothing happened, wanted %s", wanted);
	abort(); /* not reached: what fails jumps */
}

void want(const struct want *w)
{
	const struct stub_event *e = take(hr_op_info(w->id)->name);

	assert_int_equal(e->kind, STUB_END);
	assert_string_equal(hr_op_info(e->id)->name, hr_op_info(w->id)->name);
	same_path(e->path, w->path);
	same_path(e->path2, w->path2);
	assert_int_equal(e->fd, w->fd);
	assert_int_equal(e->fd2, w->fd2);
	assert_int_equal(e->asked, w->asked);
	assert_int_equal(e->offset, w->offset);
	assert_int_equal(e->offset2, w->offset2);
	assert_int_equal(e->ret, w->ret);
	assert_int_equal(e->flags, w->flags);
}

void want_count(uint16_t id, int fd, int64_t bytes)
{
	const struct stub_event *e = take(hr_op_info(id)->name);

	assert_int_equal(e->kind, STUB_COUNT);
	assert_string_equal(hr_op_info(e->id)->name, hr_op_info(id)->name);
	assert_int_equal(e->fd, fd);
	assert_int_equal(e->ret, bytes);
	same_path(e->path, P("data"));
}

const struct stub_event *want_hook(const char *name)
{
	const struct stub_event *e = take(name);

	assert_int_equal(e->kind, STUB_HOOK);
	assert_string_equal(e->hook, name);
	return e;
}

/* ---- the rows ------------------------------------------------------------------------------- */

struct row {
	const char *name;
	void (*drive)(void);
	unsigned class;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	return remove(path);
}

static void enter_folder(void)
{
	char made[] = "/tmp/hr-calls-XXXXXX";
	int fd;

	stub_reset();
	assert_non_null(mkdtemp(made));
	assert_non_null(realpath(made, stub_root));
	assert_int_equal(chdir(stub_root), 0);
	strcpy(data_path, P("data"));
	root_fd = (int)syscall(SYS_openat, AT_FDCWD, stub_root, O_PATH | O_DIRECTORY, 0);
	fd = fd_open("data", O_WRONLY | O_CREAT);
	assert_int_equal(write(fd, TEXT, TEXT_BYTES), TEXT_BYTES);
	close(fd);
}

static void leave_folder(void)
{
	stub_off();
	assert_int_equal(chdir("/"), 0);
	close_range(3, ~0u, 0);
	nftw(stub_root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void drive_row(void **state)
{
	const struct row *row = *state;
	unsigned left = 0;

	enter_folder();
	row->drive();
	while (stub_take() != NULL)
		left++;
	leave_folder();
	assert_int_equal(left, 0);
}

#define HR_CALL(id, ret, name, params, args, class, ...)                                           \
	static struct row row_##name = {#name, drive_##name, HR_CLASS_##class};
#include "proto/calls.def"
#undef HR_CALL

int main(void)
{
	const struct CMUnitTest tests[] = {
#define HR_CALL(id, ret, name, ...) {#name, drive_row, NULL, NULL, &row_##name},
#include "proto/calls.def"
#undef HR_CALL
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
