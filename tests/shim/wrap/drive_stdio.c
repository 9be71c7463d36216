/* SPDX-License-Identifier: Apache-2.0 */
#include "drive.h"

#include <stdio_ext.h>

#define N 10

/* ---- fread and fwrite: items of a size ------------------------------------------------------- */

#define FREAD(name, ...)                                                                           \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		FILE *fp = stream("data", "r");                                                    \
		char buf[80] = "";                                                                 \
		size_t n = 5;                                                                      \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), 5);                              \
		assert_memory_equal(buf, TEXT, 20);                                                \
		WANT(HR_OP_##name, .fd = fileno(fp), .asked = 20, .ret = 5, .flags = 4);           \
		n = 20;                                                                            \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), 11);                             \
		WANT(HR_OP_##name, .fd = fileno(fp), .asked = 80, .ret = 11, .flags = 4);          \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), 0);                              \
		WANT(HR_OP_##name, .fd = fileno(fp), .asked = 80, .ret = 0, .flags = 4);           \
		fclose(fp);                                                                        \
		fp = stream("data", "a");                                                          \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), 0);                              \
		assert_int_equal(errno, EBADF);                                                    \
		WANT(HR_OP_##name, .fd = fileno(fp), .asked = 80, .ret = -EBADF, .flags = 4);      \
		fclose(fp);                                                                        \
	}

FREAD(fread, buf, 4, n, fp)
FREAD(fread_unlocked, buf, 4, n, fp)
FREAD(__fread_chk, buf, sizeof(buf), 4, n, fp)
FREAD(__fread_unlocked_chk, buf, sizeof(buf), 4, n, fp)

#define FWRITE(name)                                                                               \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		FILE *fp = stream("data", "w");                                                    \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name("abcdefgh", 4, 2, fp)), 2);                     \
		WANT(HR_OP_##name, .fd = fileno(fp), .asked = 8, .ret = 2, .flags = 4);            \
		fclose(fp);                                                                        \
		assert_true(holds("data", "abcdefgh"));                                            \
		fp = stream("data", "r");                                                          \
		assert_int_equal(ON(hr_wrap_##name("abcdefgh", 4, 2, fp)), 0);                     \
		WANT(HR_OP_##name, .fd = fileno(fp), .asked = 8, .ret = -EBADF, .flags = 4);       \
		fclose(fp);                                                                        \
	}

FWRITE(fwrite)
FWRITE(fwrite_unlocked)

/* ---- lines ----------------------------------------------------------------------------------- */

#define FGETS(name, ...)                                                                           \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		FILE *fp = stream("data", "r");                                                    \
		char buf[80];                                                                      \
                                                                                                   \
		assert_ptr_equal(ON(hr_wrap_##name(__VA_ARGS__)), buf);                            \
		assert_string_equal(buf, "0123456789abcde\n");                                     \
		WANT(HR_OP_##name, .fd = fileno(fp), .asked = 40, .ret = 16);                      \
		fseek(fp, 0, SEEK_END);                                                            \
		assert_null(ON(hr_wrap_##name(__VA_ARGS__)));                                      \
		WANT(HR_OP_##name, .fd = fileno(fp), .asked = 40, .ret = 0);                       \
		fclose(fp);                                                                        \
		fp = stream("data", "a");                                                          \
		assert_null(ON(hr_wrap_##name(__VA_ARGS__)));                                      \
		WANT(HR_OP_##name, .fd = fileno(fp), .asked = 40, .ret = -EBADF);                  \
		fclose(fp);                                                                        \
	}

FGETS(fgets, buf, 40, fp)
FGETS(fgets_unlocked, buf, 40, fp)
FGETS(__fgets_chk, buf, sizeof(buf), 40, fp)
FGETS(__fgets_unlocked_chk, buf, sizeof(buf), 40, fp)

#define GETLINE(name, bytes, ...)                                                                  \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		FILE *fp = stream("data", "r");                                                    \
		char *line = NULL;                                                                 \
		size_t room = 0;                                                                   \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(&line, &room, __VA_ARGS__)), bytes);            \
		assert_memory_equal(line, TEXT, bytes);                                            \
		WANT(HR_OP_##name, .fd = fileno(fp), .ret = bytes);                                \
		fseek(fp, 0, SEEK_END);                                                            \
		assert_int_equal(ON(hr_wrap_##name(&line, &room, __VA_ARGS__)), -1);               \
		WANT(HR_OP_##name, .fd = fileno(fp), .ret = 0);                                    \
		free(line);                                                                        \
		fclose(fp);                                                                        \
	}

GETLINE(getline, 16, fp)
GETLINE(getdelim, 5, '4', fp)
GETLINE(__getdelim, 5, '4', fp)

#define FPUTS(name)                                                                                \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		FILE *fp = stream("data", "w");                                                    \
                                                                                                   \
		assert_true(ON(hr_wrap_##name("hello", fp)) >= 0);                                 \
		WANT(HR_OP_##name, .fd = fileno(fp), .asked = 5, .ret = 1);                        \
		fclose(fp);                                                                        \
		assert_true(holds("data", "hello"));                                               \
		fp = stream("data", "r");                                                          \
		assert_failed(ON(hr_wrap_##name("hello", fp)), EBADF);                             \
		WANT(HR_OP_##name, .fd = fileno(fp), .asked = 5, .ret = -EBADF);                   \
		fclose(fp);                                                                        \
	}

FPUTS(fputs)
FPUTS(fputs_unlocked)

void drive_puts(void)
{
	int r;

	std_begin(stdout, "data", O_WRONLY | O_TRUNC);
	r = ON(hr_wrap_puts("hello"));
	std_end(stdout);
	assert_true(r >= 0);
	WANT(HR_OP_puts, .fd = 1, .asked = 6, .ret = r);
	assert_true(holds("data", "hello\n"));
}

void drive_getw(void)
{
	FILE *fp = stream("data", "r");
	int word;

	memcpy(&word, TEXT, sizeof(word));
	assert_int_equal(ON(hr_wrap_getw(fp)), word);
	WANT(HR_OP_getw, .fd = fileno(fp), .asked = 4, .ret = 4);
	fseek(fp, 0, SEEK_END);
	assert_int_equal(ON(hr_wrap_getw(fp)), EOF);
	WANT(HR_OP_getw, .fd = fileno(fp), .asked = 4, .ret = 0);
	fclose(fp);
}

void drive_putw(void)
{
	FILE *fp = stream("data", "w");
	int word;

	memcpy(&word, "abcd", sizeof(word));
	assert_int_equal(ON(hr_wrap_putw(word, fp)), 0);
	WANT(HR_OP_putw, .fd = fileno(fp), .asked = 4);
	fclose(fp);
	assert_true(holds("data", "abcd"));
}

/* ---- characters ------------------------------------------------------------------------------- */

#define GETC(name)                                                                                 \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		FILE *fp = stream("data", "r");                                                    \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(fp)), '0');                                     \
		want_count(HR_OP_##name, fileno(fp), 1);                                           \
		assert_int_equal(stub_buffers, 1);                                                 \
		assert_int_equal(ON(hr_wrap_##name(fp)), '1');                                     \
		want_count(HR_OP_##name, fileno(fp), 1);                                           \
		assert_int_equal(stub_buffers, 1);                                                 \
		fseek(fp, 0, SEEK_END);                                                            \
		assert_int_equal(ON(hr_wrap_##name(fp)), EOF);                                     \
		want_count(HR_OP_##name, fileno(fp), 0);                                           \
		fclose(fp);                                                                        \
	}

GETC(getc)
GETC(fgetc)
GETC(getc_unlocked)
GETC(fgetc_unlocked)
GETC(_IO_getc)

/* Inlined getc_unlocked takes the rest of what a refill brings: the whole of it counts. */
void drive___uflow(void)
{
	FILE *fp = stream("data", "r");

	assert_int_equal(ON(hr_wrap___uflow(fp)), '0');
	want_count(HR_OP___uflow, fileno(fp), TEXT_BYTES);
	assert_int_equal(stub_buffers, 1);
	fseek(fp, 0, SEEK_END);
	assert_int_equal(ON(hr_wrap___uflow(fp)), EOF);
	want_count(HR_OP___uflow, fileno(fp), 0);
	fclose(fp);
}

#define GETCHAR(name)                                                                              \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int c;                                                                             \
                                                                                                   \
		std_begin(stdin, "data", O_RDONLY);                                                \
		c = ON(hr_wrap_##name());                                                          \
		__fpurge(stdin);                                                                   \
		std_end(stdin);                                                                    \
		assert_int_equal(c, '0');                                                          \
		want_count(HR_OP_##name, 0, 1);                                                    \
	}

GETCHAR(getchar)
GETCHAR(getchar_unlocked)

#define PUTC(name, ...)                                                                            \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		FILE *fp = stream("data", "w");                                                    \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), 'x');                            \
		want_count(HR_OP_##name, fileno(fp), 1);                                           \
		assert_int_equal(stub_buffers, 1);                                                 \
		assert_int_equal(ON(hr_wrap_##name(__VA_ARGS__)), 'x');                            \
		want_count(HR_OP_##name, fileno(fp), 1);                                           \
		assert_int_equal(stub_buffers, 1);                                                 \
		fclose(fp);                                                                        \
		assert_true(holds("data", "xx"));                                                  \
	}

PUTC(putc, 'x', fp)
PUTC(fputc, 'x', fp)
PUTC(putc_unlocked, 'x', fp)
PUTC(fputc_unlocked, 'x', fp)
PUTC(_IO_putc, 'x', fp)
PUTC(__overflow, fp, 'x')

#define PUTCHAR(name)                                                                              \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		int c;                                                                             \
                                                                                                   \
		std_begin(stdout, "data", O_WRONLY | O_TRUNC);                                     \
		c = ON(hr_wrap_##name('x'));                                                       \
		std_end(stdout);                                                                   \
		assert_int_equal(c, 'x');                                                          \
		want_count(HR_OP_##name, 1, 1);                                                    \
		assert_true(holds("data", "x"));                                                   \
	}

PUTCHAR(putchar)
PUTCHAR(putchar_unlocked)

/* ---- seek and flush --------------------------------------------------------------------------- */

#define FSEEK(name)                                                                                \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		FILE *fp = stream("data", "r");                                                    \
                                                                                                   \
		assert_int_equal(ON(hr_wrap_##name(fp, -4, SEEK_END)), 0);                         \
		assert_int_equal(ftell(fp), TEXT_BYTES - 4);                                       \
		WANT(HR_OP_##name, .fd = fileno(fp), .offset = -4, .flags = SEEK_END);             \
		assert_failed(ON(hr_wrap_##name(fp, -4, SEEK_SET)), EINVAL);                       \
		WANT(HR_OP_##name, .fd = fileno(fp), .offset = -4, .ret = -EINVAL);                \
		fclose(fp);                                                                        \
	}

FSEEK(fseek)
FSEEK(fseeko)
FSEEK(fseeko64)

#define FTELL(name)                                                                                \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		FILE *fp = stream("data", "r");                                                    \
                                                                                                   \
		fseek(fp, 7, SEEK_SET);                                                            \
		assert_int_equal(ON(hr_wrap_##name(fp)), 7);                                       \
		WANT(HR_OP_##name, .fd = fileno(fp), .offset = 0, .ret = 7, .flags = SEEK_CUR);    \
		fclose(fp);                                                                        \
	}

FTELL(ftell)
FTELL(ftello)
FTELL(ftello64)

void drive_rewind(void)
{
	FILE *fp = stream("data", "r");

	fseek(fp, 7, SEEK_SET);
	ON_VOID(hr_wrap_rewind(fp));
	assert_int_equal(ftell(fp), 0);
	WANT(HR_OP_rewind, .fd = fileno(fp), .offset = 0, .flags = SEEK_SET);
	fclose(fp);
}

#define FPOS(get, set, type)                                                                       \
	void drive_##get(void)                                                                     \
	{                                                                                          \
		FILE *fp = stream("data", "r");                                                    \
		type pos;                                                                          \
                                                                                                   \
		fseek(fp, 7, SEEK_SET);                                                            \
		assert_int_equal(ON(hr_wrap_##get(fp, &pos)), 0);                                  \
		WANT(HR_OP_##get, .fd = fileno(fp), .offset = 0, .flags = SEEK_CUR);               \
		rewind(fp);                                                                        \
		assert_int_equal(set(fp, &pos), 0);                                                \
		assert_int_equal(ftell(fp), 7);                                                    \
		fclose(fp);                                                                        \
	}                                                                                          \
                                                                                                   \
	void drive_##set(void)                                                                     \
	{                                                                                          \
		FILE *fp = stream("data", "r");                                                    \
		type pos;                                                                          \
                                                                                                   \
		fseek(fp, 7, SEEK_SET);                                                            \
		assert_int_equal(get(fp, &pos), 0);                                                \
		rewind(fp);                                                                        \
		assert_int_equal(ON(hr_wrap_##set(fp, &pos)), 0);                                  \
		assert_int_equal(ftell(fp), 7);                                                    \
		WANT(HR_OP_##set, .fd = fileno(fp), .offset = 7, .flags = SEEK_SET);               \
		fclose(fp);                                                                        \
	}

FPOS(fgetpos, fsetpos, fpos_t)
FPOS(fgetpos64, fsetpos64, fpos64_t)

#define FFLUSH(name)                                                                               \
	void drive_##name(void)                                                                    \
	{                                                                                          \
		FILE *fp = stream("data", "w");                                                    \
                                                                                                   \
		fputs("abc", fp);                                                                  \
		assert_int_equal(ON(hr_wrap_##name(fp)), 0);                                       \
		assert_true(holds("data", "abc"));                                                 \
		WANT(HR_OP_##name, .fd = fileno(fp));                                              \
		assert_int_equal(ON(hr_wrap_##name(NULL)), 0);                                     \
		WANT(HR_OP_##name, .path = NULL);                                                  \
		fclose(fp);                                                                        \
	}

FFLUSH(fflush)
FFLUSH(fflush_unlocked)

/* A stream without a descriptor: no event, and errno is the program's. */
void drive_fileno(void)
{
	FILE *fp = stream("data", "r"), *memory = fmemopen(NULL, 16, "w+");
	int fd = fileno(fp);

	assert_int_equal(ON(hr_wrap_fileno(fp)), fd);
	errno = 0;
	assert_true(hr_fileno(memory) < 0);
	assert_int_equal(errno, 0);
	assert_failed(ON(hr_wrap_fileno(memory)), EBADF);
	assert_int_equal(ON(hr_wrap_fputs("abc", memory)) >= 0, 1);
	assert_int_equal(errno, 0);
	fclose(memory);
	fclose(fp);
}
