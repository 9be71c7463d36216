/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that grow far beyond caches: what they hold stays, and they ask for huge pages. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/engine/mounts.h"
#include "daemon/engine/paths.h"
#include "tests/unit.h"

#define FILES 200000u /* rows of 6 MiB, cells of 8 */

static uint64_t hash_of(uint32_t file)
{
	return ((uint64_t)file << 32 | file) * UINT64_C(0x9e3779b97f4a7c15);
}

static void files_keep_their_ids(void **state)
{
	struct hr_paths p = {0};
	uint32_t index;

	for (uint32_t file = 1; file <= FILES; file++) {
		char text[32];
		struct hr_path_name name = {
		    .hash = hash_of(file),
		    .text = (const uint8_t *)text,
		    .bytes = (uint32_t)snprintf(text, sizeof(text), "/data/%u", file),
		    .mount = (uint16_t)file};

		assert_int_equal(hr_paths_name(&p, &name, &index), 0);
		assert_int_equal(p.v[index].id, file);
	}
	for (uint32_t file = 1; file <= FILES; file++) {
		index = hr_paths_use(&p, hash_of(file), 0);
		assert_int_equal(p.v[index].id, file);
		assert_int_equal(p.v[index].mount, (uint16_t)file);
	}
	assert_int_equal(p.n, FILES);
	hr_paths_done(&p);
}

/* What a restarted headraced knows of a file that is open. */
static void files_are_restored(void **state)
{
	const struct hr_known_row row = {
	    .hash = hash_of(1), .check = 77, .id = 5, .mount = 3, .scope = 1};
	struct hr_paths p = {0};
	uint32_t index;

	assert_int_equal(hr_paths_restore(&p, &row), 0);
	index = hr_paths_use(&p, hash_of(1), 1);
	assert_int_equal(p.n, 1);
	assert_int_equal(p.v[index].id, 5);
	assert_int_equal(p.v[index].check, 77);
	assert_int_equal(p.v[index].mount, 3);
	assert_int_equal(p.v[index].scope, 1);
	hr_paths_done(&p);
}

/* The path of a link lies on another mount than the file, which an open file shows. */
static void an_open_file_tells_its_mount(void **state)
{
	struct hr_paths p = {0};
	struct hr_path_name name = {
	    .hash = hash_of(1), .text = (const uint8_t *)"/data/link", .bytes = 10, .mount = 1};
	uint32_t index;

	assert_int_equal(hr_paths_name(&p, &name, &index), 0);
	hr_paths_fresh_sent(&p);
	name.mount = 2;
	assert_int_equal(hr_paths_name(&p, &name, &index), 0);
	assert_int_equal(p.v[index].mount, 1);
	assert_int_equal(p.n_fresh, 0);
	name.mount_exact = true;
	assert_int_equal(hr_paths_name(&p, &name, &index), 0);
	assert_int_equal(p.v[index].mount, 2);
	assert_int_equal(p.n_fresh, 1);
	assert_memory_equal(p.fresh[0].text, "/data/link", 10);
	name.mount = 3;
	assert_int_equal(hr_paths_name(&p, &name, &index), 0);
	assert_int_equal(p.v[index].mount, 2);
	hr_paths_done(&p);
}

/* Lines of /proc/PID/mountinfo. The kernel writes blanks and backslashes of a path as \\ooo. */
static void mountinfo_is_read(void **state)
{
	char text[] =
	    "36 35 98:7 /root /mnt/a\\040b\\134c\\177 rw shared:1 - ext\\0413 /dev/sda rw\n"
	    "garbage\n"
	    "37 35 98:7 / /mnt/other rw - xfs /dev/sdb rw\n";
	_Alignas(struct hr_mount_row) uint8_t rows[512];
	const struct hr_mount_row *row = (const struct hr_mount_row *)rows;
	struct hr_mounts none = {0};
	uint64_t n, used;

	used = hr_mountinfo_rows(&none, text, rows, sizeof(rows), &n);
	assert_int_equal(n, 2);
	assert_true(used > 0 && used < sizeof(rows));
	assert_int_equal(row->kernel_id, 36);
	assert_int_equal(row->dev, UINT64_C(98) << 32 | 7);
	assert_int_equal(row->path_bytes, strlen("/mnt/a b\\c\x7f"));
	assert_memory_equal(row->texts, "/mnt/a b\\c\x7f", row->path_bytes);
	assert_int_equal(row->type_bytes, strlen("ext!3"));
	assert_memory_equal(row->texts + row->path_bytes, "ext!3", row->type_bytes);
}

static void take_mounts(struct hr_mounts *m, char *text, uint64_t want)
{
	_Alignas(struct hr_mount_row) uint8_t rows[512];
	uint64_t n, used, at = 0;

	hr_mountinfo_rows(m, text, rows, sizeof(rows), &n);
	assert_int_equal(n, want);
	for (uint64_t i = 0; i < n; i++, at += used)
		assert_int_equal(hr_mounts_take(m, (const struct hr_mount_row *)(rows + at),
						sizeof(rows) - at, &used),
				 0);
}

/* Without a mount id, a file is on the longest mount point that holds it, by whole names. */
static void a_path_tells_its_mount(void **state)
{
	char text[] = "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
		      "2 1 8:2 / /scratch rw - lustre a@tcp:/b rw\n"
		      "3 2 8:3 / /scratch/fast rw - tmpfs none rw\n";
	static const struct {
		const char *path;
		uint32_t kernel_id;
	} files[] = {{"/scratch/x", 2},	     {"/scratch", 2},	     {"/scratch2/x", 1},
		     {"/scratch/fast/x", 3}, {"/scratch/faster", 2}, {"/home/scratch", 1}};
	char again[] = "3 2 8:4 / /other rw - xfs /dev/sdb rw\n";
	struct hr_mounts m = {0};
	uint16_t before, now;
	bool missing = false;

	take_mounts(&m, text, 3);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const uint8_t *path = (const uint8_t *)files[i].path;
		uint16_t id =
		    hr_mounts_find(&m, -1, -1, path, (uint32_t)strlen(files[i].path), &missing);

		assert_int_equal(id, hr_mounts_find(&m, files[i].kernel_id, -1, path, 1, &missing));
	}
	assert_false(missing);
	/* The kernel uses the id of a mount that is no more again. */
	before = hr_mounts_find(&m, 3, -1, NULL, 0, &missing);
	take_mounts(&m, again, 1);
	now = hr_mounts_find(&m, 3, -1, NULL, 0, &missing);
	assert_int_not_equal(now, before);
	assert_int_equal(hr_mounts_find(&m, -1, -1, (const uint8_t *)"/other/x", 8, &missing), now);
	assert_int_equal(
	    hr_mounts_find(&m, -1, -1, (const uint8_t *)"/scratch/fast/x", 15, &missing),
	    hr_mounts_find(&m, 2, -1, NULL, 0, &missing));
	hr_mounts_done(&m);
}

/* "VmFlags: rd wr ... hg" of the mapping that holds `p`. */
static bool asked_for_huge_pages(const void *p)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	bool here = false, asked = false;
	char line[4096];

	assert_non_null(smaps);
	while (!asked && fgets(line, sizeof(line), smaps)) {
		uintptr_t from, to;

		if (sscanf(line, "%zx-%zx ", &from, &to) == 2)
			here = from <= (uintptr_t)p && (uintptr_t)p < to;
		asked = here && strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg") != NULL;
	}
	fclose(smaps);
	return asked;
}

static void large_blocks_ask_for_huge_pages(void **state)
{
	uint8_t *large = hr_big_alloc(3 * HR_HUGE_BYTES / 2), *small = hr_big_alloc(64);

	assert_non_null(large);
	assert_non_null(small);
	assert_int_equal((uintptr_t)large % HR_HUGE_BYTES, 0);
	memset(large, 1, 3 * HR_HUGE_BYTES / 2);
	memset(small, 1, 64);
	if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0) {
		assert_true(asked_for_huge_pages(large));
		assert_false(asked_for_huge_pages(small));
	}
	free(large);
	free(small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(files_keep_their_ids),
	    cmocka_unit_test(files_are_restored),
	    cmocka_unit_test(an_open_file_tells_its_mount),
	    cmocka_unit_test(mountinfo_is_read),
	    cmocka_unit_test(a_path_tells_its_mount),
	    cmocka_unit_test(large_blocks_ask_for_huge_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
