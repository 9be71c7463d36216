/* SPDX-License-Identifier: Apache-2.0 */
/* common/outfile.h: a file appears when it is whole; an error of the last write is reported. */
#include "common/outfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit.h"

static FILE *opened(struct hr_outfile *o, const char *path)
{
	int err;
	FILE *to = hr_outfile_open(o, path, &err);

	assert_non_null(to);
	assert_int_equal(err, 0);
	assert_true(fputs("text", to) >= 0); /* stdio keeps it until fclose() */
	return to;
}

static void a_file_appears_when_it_is_whole(void **state)
{
	char folder[] = "/tmp/headrace-outfile-XXXXXX", path[64];
	struct hr_outfile o;
	FILE *to;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	for (int whole = 0; whole < 2; whole++) {
		to = opened(&o, path);
		assert_int_not_equal(access(path, F_OK), 0);
		assert_int_equal(hr_outfile_close(&o, to, whole), 0);
		assert_int_equal(access(path, F_OK), whole ? 0 : -1);
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0); /* nothing else was left */
}

static void a_full_disk_is_reported(void **state)
{
	struct hr_outfile o;
	FILE *to = opened(&o, "/dev/full");

	assert_int_equal(hr_outfile_close(&o, to, true), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_file_appears_when_it_is_whole),
	    cmocka_unit_test(a_full_disk_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
