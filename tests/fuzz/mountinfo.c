/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mountinfo of a traced process, whose mount points any user can name: first byte room for rows in units of 64 bytes, then
 * the text. Rows that come of it must fit and be taken as they are; a path is looked up among them.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/mounts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void take(struct hr_mounts *m, const uint8_t *rows, uint64_t bytes, uint64_t n)
{
	uint64_t used;

	for (uint64_t i = 0; i < n; i++) {
		if (hr_mounts_take(m, (const struct hr_mount_row *)rows, bytes, &used) < 0)
			abort();
		rows += used;
		bytes -= used;
	}
	if (bytes > 0)
		abort();
}

static void check(struct hr_mounts *m)
{
	bool missing = false;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct hr_mount *mount = &m->v[i];
		uint64_t size = hr_mounts_row(m, i, NULL);
		uint8_t *row = malloc(size);

		if (!row || hr_mounts_row(m, i, row) != size)
			abort();
		free(row);
		if (mount->path)
			(void)hr_mounts_find(m, -1, -1, (const uint8_t *)mount->path,
					     (uint32_t)strlen(mount->path), &missing);
		(void)hr_mounts_find(m, mount->kernel_id, (int64_t)mount->dev, NULL, 0, &missing);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct hr_mounts m = {0};
	uint64_t room, n, used;
	uint8_t *rows;
	char *text;

	if (bytes < 1)
		return 0;
	room = (uint64_t)data[0] * 64;
	rows = malloc(room + 1);
	text = strndup((const char *)data + 1, bytes - 1);
	if (!rows || !text)
		abort();
	used = hr_mountinfo_rows(&m, text, rows, room, &n);
	if (used > room)
		abort();
	take(&m, rows, used, n);
	check(&m);
	hr_mounts_done(&m);
	free(text);
	free(rows);
	return 0;
}
