/* SPDX-License-Identifier: Apache-2.0 */
#include "drive.h"

#include <sys/mman.h>

#define TEMP_FLAGS (O_RDWR | O_CREAT | O_EXCL)

/* ---- open family ---------------------------------------------------------------------------- */

static void check_opened(uint16_t id, int fd, const char *name, int flags)
{
	assert_true(fd >= 0);
	assert_true(same_file(fd, name));
	assert_string_equal(stub_fd_path(fd), P(name));
	WANT(id, .fd = fd, .path = P(name), .ret = fd, .flags = (uint32_t)flags);
}

#define OPEN(name)                                                                                 \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int how = O_CREAT | O_WRONLY, fd;                                                  \
                                                                                                   \
		fd = ON(hr_wrap_##name(P("data"), O_RDONLY));                                      \
		check_opened(HR_OP_##name, fd, "data", O_RDONLY);                                  \
		fd = ON(hr_wrap_##name("new", how, 0604));                                         \
		check_opened(HR_OP_##name, fd, "new", how);                                        \
		assert_int_equal(mode_of("new"), 0604);                                            \
		assert_failed(ON(hr_wrap_##name("none/x", O_RDONLY)), ENOENT);                     \
		WANT(HR_OP_##name, .path = P("none/x"), .ret = -ENOENT);                           \
		assert_failed(ON(hr_wrap_##name(NULL, O_RDONLY)), EFAULT);                         \
	}

OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                               \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int how = O_TMPFILE | O_RDWR, fd;                                                  \
                                                                                                   \
		fd = ON(hr_wrap_##name(root_fd, "data", O_RDONLY));                                \
		check_opened(HR_OP_##name, fd, "data", O_RDONLY);                                  \
		fd = ON(hr_wrap_##name(root_fd, "new", O_CREAT | O_RDWR, 0604));                   \
		check_opened(HR_OP_##name, fd, "new", O_CREAT | O_RDWR);                           \
		assert_int_equal(mode_of("new"), 0604);                                            \
		fd = ON(hr_wrap_##name(root_fd, ".", how, 0600));                                  \
		assert_true(fd >= 0);                                                              \
		WANT(HR_OP_##name, .fd = fd, .path = stub_fd_path(fd), .ret = fd,                  \
		     .flags = (uint32_t)how);                                                      \
		assert_non_null(strstr(stub_fd_path(fd), "#"));                                    \
	}

OPENAT(openat)
OPENAT(openat64)

void drive___open_2(void)
{
	check_opened(HR_OP___open_2, ON(hr_wrap___open_2("data", O_RDONLY)), "data", O_RDONLY);
}

void drive___open64_2(void)
{
	check_opened(HR_OP___open64_2, ON(hr_wrap___open64_2("data", O_RDWR)), "data", O_RDWR);
}

void drive___openat_2(void)
{
	int fd = ON(hr_wrap___openat_2(root_fd, "data", O_RDONLY));

	check_opened(HR_OP___openat_2, fd, "data", O_RDONLY);
}

void drive___openat64_2(void)
{
	int fd = ON(hr_wrap___openat64_2(root_fd, "data", O_RDWR));

	check_opened(HR_OP___openat64_2, fd, "data", O_RDWR);
}

#define CREAT(name)                                                                                \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		check_opened(HR_OP_##name, ON(hr_wrap_##name("data", 0600)), "data",               \
			     O_CREAT | O_WRONLY | O_TRUNC);                                        \
		assert_int_equal(size_of("data"), 0);                                              \
	}

CREAT(creat)
CREAT(creat64)

/* ---- names made in the call ----------------------------------------------------------------- */

#define TEMP(name, template, how, ...)                                                             \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		char path[] = template, bad[] = "x";                                               \
		int fd = ON(hr_wrap_##name(path __VA_ARGS__));                                     \
                                                                                                   \
		assert_null(strstr(path, "XXXXXX"));                                               \
		check_opened(HR_OP_##name, fd, path, how);                                         \
		assert_failed(ON(hr_wrap_##name(bad __VA_ARGS__)), EINVAL);                        \
		WANT(HR_OP_##name, .path = P("x"), .ret = -EINVAL, .flags = (uint32_t)(how));      \
	}
#define AND ,

TEMP(mkstemp, "tXXXXXX", TEMP_FLAGS)
TEMP(mkstemp64, "tXXXXXX", TEMP_FLAGS)
TEMP(mkostemp, "tXXXXXX", TEMP_FLAGS | O_CLOEXEC, AND O_CLOEXEC)
TEMP(mkostemp64, "tXXXXXX", TEMP_FLAGS | O_CLOEXEC, AND O_CLOEXEC)
TEMP(mkstemps, "tXXXXXX.pt", TEMP_FLAGS, AND 3)
TEMP(mkstemps64, "tXXXXXX.pt", TEMP_FLAGS, AND 3)
TEMP(mkostemps, "tXXXXXX.pt", TEMP_FLAGS | O_APPEND, AND 3 AND O_APPEND)
TEMP(mkostemps64, "tXXXXXX.pt", TEMP_FLAGS | O_APPEND, AND 3 AND O_APPEND)

void drive_memfd_create(void)
{
	int fd = ON(hr_wrap_memfd_create("weights", MFD_CLOEXEC));

	assert_true(fd >= 0);
	WANT(HR_OP_memfd_create, .fd = fd, .path = "/memfd:weights (deleted)", .ret = fd,
	     .flags = MFD_CLOEXEC);
	assert_failed(ON(hr_wrap_memfd_create("x", ~0u)), EINVAL);
	WANT(HR_OP_memfd_create, .path = NULL, .ret = -EINVAL, .flags = ~0u);
}

void drive_shm_open(void)
{
	char name[64];
	char path[80];
	int how = O_CREAT | O_RDWR, fd;

	snprintf(name, sizeof(name), "/hr-%d", getpid());
	snprintf(path, sizeof(path), "/dev/shm%s", name);
	fd = ON(hr_wrap_shm_open(name, how, 0600));
	assert_true(fd >= 0);
	WANT(HR_OP_shm_open, .fd = fd, .path = path, .ret = fd, .flags = (uint32_t)how);
	assert_failed(ON(hr_wrap_shm_open("/hr-none", O_RDONLY, 0)), ENOENT);
	WANT(HR_OP_shm_open, .path = NULL, .ret = -ENOENT);
	shm_unlink(name);
}

void drive_shm_unlink(void)
{
	char name[64];
	char path[80];

	snprintf(name, sizeof(name), "/hr-%d", getpid());
	snprintf(path, sizeof(path), "/dev/shm%s", name);
	close(shm_open(name, O_CREAT | O_RDWR, 0600));
	assert_int_equal(ON(hr_wrap_shm_unlink(name)), 0);
	WANT(HR_OP_shm_unlink, .path = path);
	assert_failed(ON(hr_wrap_shm_unlink(name)), ENOENT);
	WANT(HR_OP_shm_unlink, .path = path, .ret = -ENOENT);
}

/* Needs a right that a container may lack: the refusal then is the original's. */
void drive_open_by_handle_at(void)
{
	struct {
		struct file_handle head;
		unsigned char bytes[MAX_HANDLE_SZ];
	} handle = {.head = {.handle_bytes = MAX_HANDLE_SZ}};
	int mount, fd, dir = fd_open(".", O_RDONLY | O_DIRECTORY);

	if (name_to_handle_at(AT_FDCWD, "data", &handle.head, &mount, 0) != 0)
		return;
	fd = ON(hr_wrap_open_by_handle_at(dir, &handle.head, O_RDONLY));
	if (fd >= 0)
		WANT(HR_OP_open_by_handle_at, .fd = fd, .ret = fd, .flags = O_RDONLY);
}

/* ---- streams -------------------------------------------------------------------------------- */

static void check_stream(uint16_t id, FILE *fp, const char *name, int flags)
{
	int fd = fp != NULL ? fileno(fp) : -1;

	check_opened(id, fd, name, flags);
	fclose(fp);
}

#define FOPEN(name)                                                                                \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		check_stream(HR_OP_##name, ON(hr_wrap_##name("data", "r")), "data", O_RDONLY);     \
		check_stream(HR_OP_##name, ON(hr_wrap_##name("data", "rb+")), "data", O_RDWR);     \
		check_stream(HR_OP_##name, ON(hr_wrap_##name("new", "wxe")), "new",                \
			     O_WRONLY | O_CREAT | O_TRUNC | O_EXCL | O_CLOEXEC);                   \
		check_stream(HR_OP_##name, ON(hr_wrap_##name("new", "a")), "new",                  \
			     O_WRONLY | O_CREAT | O_APPEND);                                       \
		assert_null(ON(hr_wrap_##name("none/x", "r")));                                    \
		assert_int_equal(errno, ENOENT);                                                   \
		WANT(HR_OP_##name, .path = P("none/x"), .ret = -ENOENT);                           \
	}

FOPEN(fopen)
FOPEN(fopen64)

void drive_fdopen(void)
{
	int fd = data_open(O_RDONLY);
	FILE *fp = ON(hr_wrap_fdopen(fd, "r"));

	check_stream(HR_OP_fdopen, fp, "data", O_RDONLY);
	fd = data_open(O_RDONLY);
	assert_null(ON(hr_wrap_fdopen(fd, "w")));
	assert_int_equal(errno, EINVAL);
	WANT(HR_OP_fdopen, .fd = fd, .ret = -EINVAL, .flags = O_WRONLY | O_CREAT | O_TRUNC);
}

/* A stream whose freopen failed may not be touched again, and libc does not free it: `gone`. */
#define FREOPEN(name)                                                                              \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		static FILE *gone;                                                                 \
		FILE *fp = stream("data", "r");                                                    \
                                                                                                   \
		fp = ON(hr_wrap_##name("new", "w", fp));                                           \
		assert_non_null(fp);                                                               \
		check_opened(HR_OP_##name, fileno(fp), "new", O_WRONLY | O_CREAT | O_TRUNC);       \
		fp = ON(hr_wrap_##name(NULL, "a", fp));                                            \
		assert_non_null(fp);                                                               \
		check_stream(HR_OP_##name, fp, "new", O_WRONLY | O_CREAT | O_APPEND);              \
		gone = stream("data", "r");                                                        \
		assert_null(ON(hr_wrap_##name("none/x", "r", gone)));                              \
		WANT(HR_OP_##name, .path = P("none/x"), .ret = -ENOENT);                           \
	}

FREOPEN(freopen)
FREOPEN(freopen64)

#define TMPFILE(name)                                                                              \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		FILE *fp = ON(hr_wrap_##name());                                                   \
                                                                                                   \
		assert_non_null(fp);                                                               \
		WANT(HR_OP_##name, .fd = fileno(fp), .path = stub_fd_path(fileno(fp)),             \
		     .ret = fileno(fp), .flags = TEMP_FLAGS);                                      \
		fclose(fp);                                                                        \
	}

TMPFILE(tmpfile)
TMPFILE(tmpfile64)

/* ---- close ---------------------------------------------------------------------------------- */

void drive_close(void)
{
	int fd = ON(hr_wrap_open("data", O_RDONLY));

	check_opened(HR_OP_open, fd, "data", O_RDONLY);
	assert_int_equal(ON(hr_wrap_close(fd)), 0);
	WANT(HR_OP_close, .fd = fd);
	assert_null(stub_fd_path(fd));
	assert_failed(ON(hr_wrap_close(fd)), EBADF);
	assert_failed(ON(hr_wrap_close(-1)), EBADF);
}

void drive_fclose(void)
{
	FILE *fp = ON(hr_wrap_fopen("data", "r"));
	int fd = fileno(fp);

	check_opened(HR_OP_fopen, fd, "data", O_RDONLY);
	assert_int_equal(ON(hr_wrap_fclose(fp)), 0);
	WANT(HR_OP_fclose, .fd = fd);
	assert_null(stub_fd_path(fd));
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}
