/* SPDX-License-Identifier: Apache-2.0 */
/* The input of imports: plain and gzip files, members, files that are cut. zlib is the witness. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "import/input.h"
#include "tests/unit.h"

#define TEXT_BYTES 1000000u

static char folder[] = "/tmp/headrace-input-XXXXXX";
static char path[64];
static uint8_t text[TEXT_BYTES], back[TEXT_BYTES + 1];

static int group_setup(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/file", folder);
	for (uint32_t i = 0, n = 1; i < TEXT_BYTES; i++) {
		n = n * 1664525u + 1013904223u; /* half of the text compresses badly */
		text[i] = (uint8_t)(i / 4096 % 2 ? n >> 24 : 'a' + i % 9);
	}
	return 0;
}

static int group_teardown(void **state)
{
	unlink(path);
	return rmdir(folder);
}

static void file_write(const char *mode, const uint8_t *data, size_t bytes)
{
	FILE *f = fopen(path, mode);

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, bytes, f), bytes);
	fclose(f);
}

/* Appends a member with `bytes` bytes of the text from `at`. */
static void member_append(size_t at, size_t bytes)
{
	gzFile f = gzopen(path, "ab6");

	assert_non_null(f);
	if (bytes)
		assert_int_equal(gzwrite(f, text + at, (unsigned)bytes), (int)bytes);
	assert_int_equal(gzclose(f), Z_OK);
}

/* Reads the file in pieces. Returns the number of bytes. */
static size_t file_read(size_t piece, bool head_first, bool *ret_cut)
{
	struct hr_input *in;
	const uint8_t *head;
	size_t n = 0;
	long got;

	assert_int_equal(hr_input_open(path, &in), 0);
	if (head_first) {
		got = hr_input_head(in, &head);
		assert_true(got >= 0);
		for (unsigned i = 0; i < HR_INPUT_SLACK; i++)
			assert_int_equal(head[(size_t)got + i], 0);
	}
	while ((got = hr_input_read(in, back + n,
				    piece < sizeof(back) - n ? piece : sizeof(back) - n)) > 0)
		n += (size_t)got;
	assert_int_equal(got, 0);
	*ret_cut = hr_input_cut(in);
	hr_input_close(in);
	return n;
}

static void test_plain(void **state)
{
	bool cut;

	file_write("w", text, 200000);
	for (int head = 0; head < 2; head++) {
		assert_int_equal(file_read(777, head, &cut), 200000);
		assert_memory_equal(back, text, 200000);
		assert_false(cut);
	}
	file_write("w", text, 0);
	assert_int_equal(file_read(777, true, &cut), 0);
	assert_false(cut);
}

static void test_byte_order_mark(void **state)
{
	bool cut;

	file_write("w", (const uint8_t[]){0xef, 0xbb, 0xbf}, 3);
	assert_int_equal(file_read(777, true, &cut), 0);
	file_write("a", text, 200000);
	assert_int_equal(file_read(777, true, &cut), 200000);
	assert_memory_equal(back, text, 200000);
	file_write("w", (const uint8_t[]){0xef, 0xbb, 'x'}, 3);
	assert_int_equal(file_read(777, true, &cut), 3);
}

static void test_members(void **state)
{
	static const size_t sizes[] = {1, 0, 50000, 300000, 0, 7, 649992};
	size_t at = 0;
	bool cut;

	unlink(path);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++, at += sizes[i - 1])
		member_append(at, sizes[i]);
	assert_int_equal(at, TEXT_BYTES);
	for (size_t piece = 1000; piece < 2 * TEXT_BYTES; piece *= 9) {
		assert_int_equal(file_read(piece, piece % 2 == 0, &cut), TEXT_BYTES);
		assert_memory_equal(back, text, TEXT_BYTES);
		assert_false(cut);
	}
	file_write("a", (const uint8_t[16]){0}, 16); /* tapes and some writers pad */
	assert_int_equal(file_read(TEXT_BYTES, true, &cut), TEXT_BYTES);
	assert_false(cut);
	file_write("w", text, 0);
	member_append(0, 1000);
	file_write("a", text, 1); /* neither a member nor padding */
	assert_int_equal(file_read(TEXT_BYTES, true, &cut), 1000);
	assert_true(cut);
}

static void test_many_small_members(void **state)
{
	bool cut;

	unlink(path);
	for (size_t i = 0; i < 20000; i += 10)
		member_append(i, 10);
	assert_int_equal(file_read(100, true, &cut), 20000);
	assert_memory_equal(back, text, 20000);
	assert_false(cut);
}

static void test_cut(void **state)
{
	static const long lost[] = {1, 7, 8, 9, 100, 2000};
	static uint8_t whole[TEXT_BYTES];
	FILE *f;
	long n;
	bool cut;

	unlink(path);
	member_append(0, 300000);
	member_append(300000, 700000);
	f = fopen(path, "r");
	assert_non_null(f);
	n = (long)fread(whole, 1, sizeof(whole), f);
	fclose(f);
	for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
		size_t got;

		assert_true(n > lost[i]);
		file_write("w", whole, (size_t)(n - lost[i]));
		got = file_read(4096, true, &cut);
		assert_true(cut);
		assert_true(got >= 300000 && (lost[i] > 8 || got == TEXT_BYTES));
		assert_memory_equal(back, text, got);
	}
	whole[n / 2] ^= 0xff;
	file_write("w", whole, (size_t)n);
	file_read(4096, true, &cut);
	assert_true(cut);
}

static void test_not_files(void **state)
{
	struct hr_input *in;

	assert_int_equal(hr_input_open("/nonexistent", &in), -ENOENT);
	assert_int_equal(hr_input_open(folder, &in), -EISDIR);
	assert_int_equal(hr_input_open("/dev/zero", &in), -ESPIPE);
}

/* Returns the lowest free descriptor. */
static int free_descriptor(void)
{
	int fd = dup(STDERR_FILENO);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

static void test_no_descriptor_is_left(void **state)
{
	int before = free_descriptor();
	struct hr_input *in;

	assert_int_equal(hr_input_open(folder, &in), -EISDIR);
	assert_int_equal(hr_input_open("/dev/zero", &in), -ESPIPE);
	file_write("w", text, 10);
	assert_int_equal(hr_input_open(path, &in), 0);
	assert_int_not_equal(free_descriptor(), before);
	hr_input_close(in);
	assert_int_equal(free_descriptor(), before);
}

/* Two zlib streams after other bytes, plain bytes, and a part that the end of the file cuts. */
static void test_parts(void **state)
{
	static uint8_t packed[2 * TEXT_BYTES];
	uLongf first = TEXT_BYTES, second = TEXT_BYTES;
	struct hr_input *in, *part;

	(void)state;
	assert_int_equal(compress(packed, &first, text, 400000), Z_OK);
	assert_int_equal(compress(packed + first, &second, text + 400000, 200000), Z_OK);
	file_write("w", (const uint8_t *)"head", 4);
	file_write("a", packed, first + second);
	assert_int_equal(hr_input_open(path, &in), 0);
	assert_int_equal(hr_input_part_new(in, &part), 0);
	hr_input_part(part, HR_INPUT_ZLIB, 4, first + second);
	assert_int_equal(hr_input_fill(part, back, 100), 100);
	assert_int_equal(hr_input_fill(part, back + 100, sizeof(back) - 100), 600000 - 100);
	assert_memory_equal(back, text, 600000);
	assert_false(hr_input_cut(part));
	hr_input_part(part, HR_INPUT_PLAIN, 0, 4);
	assert_int_equal(hr_input_fill(part, back, sizeof(back)), 4);
	assert_memory_equal(back, "head", 4);
	assert_false(hr_input_cut(part));
	memset(back, 0, sizeof(back));
	hr_input_part(part, HR_INPUT_ZLIB, 4, first + second + 1);
	assert_int_equal(hr_input_fill(part, back, sizeof(back)), 600000);
	assert_memory_equal(back, text, 600000);
	assert_true(hr_input_cut(part));
	hr_input_close(part);
	hr_input_close(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_plain),     cmocka_unit_test(test_byte_order_mark),
	    cmocka_unit_test(test_members),   cmocka_unit_test(test_many_small_members),
	    cmocka_unit_test(test_cut),	      cmocka_unit_test(test_parts),
	    cmocka_unit_test(test_not_files), cmocka_unit_test(test_no_descriptor_is_left),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
