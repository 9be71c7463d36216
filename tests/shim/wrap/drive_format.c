/* SPDX-License-Identifier: Apache-2.0 */
/* drive_format.c - the printf and scanf families */
#include "drive.h"

#define ARGS "%s %d %.2f", "hello", 42, 2.5
#define OUT  "hello 42 2.50"
#define LEN  ((int)sizeof(OUT) - 1)

/* The v-functions get their list from here. */
#define V(call)                                                                                    \
	({                                                                                         \
		va_list ap;                                                                        \
		int v_r_;                                                                          \
		va_start(ap, last);                                                                \
		v_r_ = ON(call);                                                                   \
		va_end(ap);                                                                        \
		v_r_;                                                                              \
	})

/* ---- to a stream ------------------------------------------------------------------------------ */

static void check_printed(uint16_t id, int fd, int r)
{
	assert_int_equal(r, LEN);
	assert_true(holds("data", OUT));
	WANT(id, .fd = fd, .ret = LEN);
}

#define FPRINTF(name, ...)                                                                         \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		FILE *fp = stream("data", "w");                                                    \
		int fd = fileno(fp), r = ON(hr_wrap_##name(__VA_ARGS__, ARGS));                    \
                                                                                                   \
		fclose(fp);                                                                        \
		check_printed(HR_OP_##name, fd, r);                                                \
		fp = stream("data", "r");                                                          \
		fd = fileno(fp);                                                                   \
		assert_failed(ON(hr_wrap_##name(__VA_ARGS__, ARGS)), EBADF);                       \
		WANT(HR_OP_##name, .fd = fd, .ret = -EBADF);                                       \
		fclose(fp);                                                                        \
	}

FPRINTF(fprintf, fp)
FPRINTF(__fprintf_chk, fp, 1)

static int call_vfprintf(FILE *fp, const char *last, ...)
{
	return V(hr_wrap_vfprintf(fp, last, ap));
}

static int call_vfprintf_chk(FILE *fp, const char *last, ...)
{
	return V(hr_wrap___vfprintf_chk(fp, 1, last, ap));
}

#define VFPRINTF(name, call)                                                                       \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		FILE *fp = stream("data", "w");                                                    \
		int fd = fileno(fp), r = call(fp, ARGS);                                           \
                                                                                                   \
		fclose(fp);                                                                        \
		check_printed(HR_OP_##name, fd, r);                                                \
	}

VFPRINTF(vfprintf, call_vfprintf)
VFPRINTF(__vfprintf_chk, call_vfprintf_chk)

static int call_vprintf(const char *last, ...)
{
	return V(hr_wrap_vprintf(last, ap));
}

static int call_vprintf_chk(const char *last, ...)
{
	return V(hr_wrap___vprintf_chk(1, last, ap));
}

#define PRINTF(name, call)                                                                         \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int r;                                                                             \
                                                                                                   \
		std_begin(stdout, "data", O_WRONLY | O_TRUNC);                                     \
		r = call;                                                                          \
		std_end(stdout);                                                                   \
		check_printed(HR_OP_##name, 1, r);                                                 \
	}

PRINTF(printf, ON(hr_wrap_printf(ARGS)))
PRINTF(__printf_chk, ON(hr_wrap___printf_chk(1, ARGS)))
PRINTF(vprintf, call_vprintf(ARGS))
PRINTF(__vprintf_chk, call_vprintf_chk(ARGS))

/* ---- to a descriptor -------------------------------------------------------------------------- */

static int call_vdprintf(int fd, const char *last, ...)
{
	return V(hr_wrap_vdprintf(fd, last, ap));
}

static int call_vdprintf_chk(int fd, const char *last, ...)
{
	return V(hr_wrap___vdprintf_chk(fd, 1, last, ap));
}

#define DPRINTF(name, call)                                                                        \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int fd = data_open(O_WRONLY | O_TRUNC), r = call;                                  \
                                                                                                   \
		check_printed(HR_OP_##name, fd, r);                                                \
	}

DPRINTF(dprintf, ON(hr_wrap_dprintf(fd, ARGS)))
DPRINTF(__dprintf_chk, ON(hr_wrap___dprintf_chk(fd, 1, ARGS)))
DPRINTF(vdprintf, call_vdprintf(fd, ARGS))
DPRINTF(__vdprintf_chk, call_vdprintf_chk(fd, ARGS))

/* ---- scanf: ret is the number of items --------------------------------------------------------- */

#define SCAN "%5s%2d", word, &number

static void check_scanned(uint16_t id, int fd, int r, const char *word, int number)
{
	assert_int_equal(r, 2);
	assert_string_equal(word, "01234");
	assert_int_equal(number, 56);
	WANT(id, .fd = fd, .asked = 7, .ret = 2);
}

/* At the end of the file scanf returns EOF, which is no error. */
#define FSCANF(name, call)                                                                         \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		FILE *fp = stream("data", "r");                                                    \
		char word[8] = "";                                                                 \
		int number = 0, r;                                                                 \
                                                                                                   \
		if (!in_libc(#name)) {                                                             \
			assert_failed(call, ENOSYS);                                               \
			WANT(HR_OP_##name, .fd = fileno(fp), .asked = 0, .ret = -ENOSYS);          \
			fclose(fp);                                                                \
			return;                                                                    \
		}                                                                                  \
		r = call;                                                                          \
		check_scanned(HR_OP_##name, fileno(fp), r, word, number);                          \
		fseek(fp, 0, SEEK_END);                                                            \
		assert_int_equal(call, EOF);                                                       \
		WANT(HR_OP_##name, .fd = fileno(fp), .asked = 0, .ret = 0);                        \
		fclose(fp);                                                                        \
	}

static int call_vfscanf(FILE *fp, const char *last, ...)
{
	return V(hr_wrap_vfscanf(fp, last, ap));
}

static int call_isoc99_vfscanf(FILE *fp, const char *last, ...)
{
	return V(hr_wrap___isoc99_vfscanf(fp, last, ap));
}

static int call_isoc23_vfscanf(FILE *fp, const char *last, ...)
{
	return V(hr_wrap___isoc23_vfscanf(fp, last, ap));
}

FSCANF(fscanf, ON(hr_wrap_fscanf(fp, SCAN)))
FSCANF(__isoc99_fscanf, ON(hr_wrap___isoc99_fscanf(fp, SCAN)))
FSCANF(__isoc23_fscanf, ON(hr_wrap___isoc23_fscanf(fp, SCAN)))
FSCANF(vfscanf, call_vfscanf(fp, SCAN))
FSCANF(__isoc99_vfscanf, call_isoc99_vfscanf(fp, SCAN))
FSCANF(__isoc23_vfscanf, call_isoc23_vfscanf(fp, SCAN))

#define SCANF(name, call)                                                                          \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		char word[8] = "";                                                                 \
		int number = 0, r;                                                                 \
                                                                                                   \
		std_begin(stdin, "data", O_RDONLY);                                                \
		r = call;                                                                          \
		while (r == 2 && getchar() != EOF)                                                 \
			;                                                                          \
		std_end(stdin);                                                                    \
		if (in_libc(#name))                                                                \
			check_scanned(HR_OP_##name, 0, r, word, number);                           \
		else                                                                               \
			WANT(HR_OP_##name, .fd = 0, .asked = 0, .ret = -ENOSYS);                   \
	}

static int call_vscanf(const char *last, ...)
{
	return V(hr_wrap_vscanf(last, ap));
}

static int call_isoc99_vscanf(const char *last, ...)
{
	return V(hr_wrap___isoc99_vscanf(last, ap));
}

static int call_isoc23_vscanf(const char *last, ...)
{
	return V(hr_wrap___isoc23_vscanf(last, ap));
}

SCANF(scanf, ON(hr_wrap_scanf(SCAN)))
SCANF(__isoc99_scanf, ON(hr_wrap___isoc99_scanf(SCAN)))
SCANF(__isoc23_scanf, ON(hr_wrap___isoc23_scanf(SCAN)))
SCANF(vscanf, call_vscanf(SCAN))
SCANF(__isoc99_vscanf, call_isoc99_vscanf(SCAN))
SCANF(__isoc23_vscanf, call_isoc23_vscanf(SCAN))
