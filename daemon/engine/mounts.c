/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/engine/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/procfs.h"

#define MOUNTINFO_MOST (4u << 20)

static struct hr_mount *by_kernel_id(struct hr_mounts *m, uint32_t id)
{
	if (m->last < m->n && m->v[m->last].kernel_id == id && !m->v[m->last].gone)
		return &m->v[m->last];
	for (uint32_t i = 0; i < m->n; i++) {
		if (m->v[i].kernel_id != id || m->v[i].gone)
			continue;
		m->last = i;
		return &m->v[i];
	}
	return NULL;
}

static struct hr_mount *by_dev(struct hr_mounts *m, uint64_t dev)
{
	for (uint32_t i = m->n; i-- > 0;)
		if (m->v[i].dev == dev && m->v[i].path && !m->v[i].gone)
			return &m->v[i];
	return NULL;
}

static struct hr_mount *by_prefix(struct hr_mounts *m, const uint8_t *path, uint32_t bytes)
{
	struct hr_mount *best = NULL;
	size_t best_len = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		struct hr_mount *c = &m->v[i];
		size_t len = c->path && !c->gone ? strlen(c->path) : 0;

		if (len < best_len || len == 0 || len > bytes || memcmp(c->path, path, len) != 0)
			continue;
		if (len > 1 && len < bytes && path[len] != '/')
			continue;
		best = c;
		best_len = len;
	}
	return best;
}

static struct hr_mount *mounts_add(struct hr_mounts *m)
{
	if (m->n >= 4 * HR_MOUNTS_MOST || !hr_array_reserve(m->v, m->n, m->room))
		return NULL;
	m->v[m->n] = (struct hr_mount){0};
	return &m->v[m->n++];
}

static uint16_t name(struct hr_mounts *m, struct hr_mount *c)
{
	if (!c)
		return 0;
	if (!c->id && m->last_id < HR_MOUNTS_MOST) {
		c->id = ++m->last_id;
		m->unsent |= c->path != NULL;
	}
	return (uint16_t)c->id;
}

uint16_t hr_mounts_find(struct hr_mounts *m, int64_t kernel_id, int64_t dev, const uint8_t *path,
			uint32_t bytes, bool *ret_missing)
{
	struct hr_mount *c = NULL;

	if (kernel_id >= 0 && kernel_id <= UINT32_MAX) {
		c = by_kernel_id(m, (uint32_t)kernel_id);
		if (!c && m->last_id < HR_MOUNTS_MOST) {
			c = mounts_add(m);
			if (c)
				c->kernel_id = (uint32_t)kernel_id;
		}
		*ret_missing |= c && !c->path;
		return name(m, c);
	}
	if (dev >= 0)
		c = by_dev(m, (uint64_t)dev);
	if (!c)
		c = by_prefix(m, path, bytes);
	return name(m, c);
}

static bool mounts_same(const struct hr_mount *c, const struct hr_mount_row *row)
{
	return c->dev == row->dev && c->path && strlen(c->path) == row->path_bytes &&
	       memcmp(c->path, row->texts, row->path_bytes) == 0 &&
	       strlen(c->fs_type) == row->type_bytes &&
	       memcmp(c->fs_type, row->texts + row->path_bytes, row->type_bytes) == 0;
}

static uint64_t row_bytes(uint32_t path_bytes, uint32_t type_bytes)
{
	return hr_entry_round(sizeof(struct hr_mount_row) + (uint64_t)path_bytes + type_bytes);
}

int hr_mounts_take(struct hr_mounts *m, const struct hr_mount_row *row, uint64_t bytes,
		   uint64_t *ret_used)
{
	struct hr_mount *c;

	if (bytes < sizeof(*row) || row->path_bytes > 65536 || row->type_bytes > 4096 ||
	    row_bytes(row->path_bytes, row->type_bytes) > bytes)
		return -EBADMSG;
	*ret_used = row_bytes(row->path_bytes, row->type_bytes);
	c = by_kernel_id(m, row->kernel_id);
	if (c && mounts_same(c, row))
		return 0;
	if (c && c->path) {
		c->gone = true;
		c = NULL;
	}
	if (!c)
		c = mounts_add(m);
	if (!c)
		return 0;
	c->kernel_id = row->kernel_id;
	c->dev = row->dev;
	c->path = strndup((const char *)row->texts, row->path_bytes);
	c->fs_type = strndup((const char *)row->texts + row->path_bytes, row->type_bytes);
	if (!c->path || !c->fs_type)
		return -ENOMEM;
	if (row->id) { /* the row comes from a snapshot */
		c->id = row->id;
		c->sent = true;
		if (m->last_id < row->id)
			m->last_id = row->id;
	}
	m->unsent |= c->id && !c->sent;
	return 0;
}

uint64_t hr_mounts_row(const struct hr_mounts *m, uint32_t i, uint8_t *to)
{
	const struct hr_mount *c = &m->v[i];
	uint32_t path = c->path ? (uint32_t)strlen(c->path) : 0;
	uint32_t type = c->fs_type ? (uint32_t)strlen(c->fs_type) : 0;
	struct hr_mount_row *row = (struct hr_mount_row *)to;

	if (!to)
		return row_bytes(path, type);
	*row = (struct hr_mount_row){c->dev, c->kernel_id, c->id, path, type};
	if (path)
		memcpy(row->texts, c->path, path);
	if (type)
		memcpy(row->texts + path, c->fs_type, type);
	return row_bytes(path, type);
}

void hr_mounts_done(struct hr_mounts *m)
{
	for (uint32_t i = 0; i < m->n; i++) {
		free(m->v[i].path);
		free(m->v[i].fs_type);
	}
	free(m->v);
	*m = (struct hr_mounts){0};
}

/* Decodes the escapes \ooo in place. Returns the new length. */
static uint32_t unescape(char *s)
{
	char *to = s, *start = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = 0;
	return (uint32_t)(to - start);
}

/* Reads a number and the separator after the number, and advances *at. */
static bool mounts_number(char **at, char separator, uint32_t *ret)
{
	char *end;
	unsigned long v = strtoul(*at, &end, 10);

	if (end == *at || *end != separator || v > UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	*at = end + 1;
	return true;
}

/* Parses one line: "36 35 98:0 /root /point options [tags] - type source super". */
static bool parse_line(char *line, struct hr_mount_row *row, char **ret_path, char **ret_type)
{
	uint32_t id, parent, major, minor;
	char *save = NULL, *dash = strstr(line, " - ");

	if (!dash || !mounts_number(&line, ' ', &id) || !mounts_number(&line, ' ', &parent) ||
	    !mounts_number(&line, ':', &major) || !mounts_number(&line, ' ', &minor) || line > dash)
		return false;
	*dash = 0;
	if (!strtok_r(line, " ", &save))
		return false;
	*ret_path = strtok_r(NULL, " ", &save);
	*ret_type = strtok_r(dash + 3, " ", &save);
	if (!*ret_path || !*ret_type)
		return false;
	*row = (struct hr_mount_row){.dev = (uint64_t)major << 32 | minor, .kernel_id = id};
	row->path_bytes = unescape(*ret_path);
	row->type_bytes = unescape(*ret_type);
	return true;
}

static bool mounts_known(const struct hr_mounts *m, const struct hr_mount_row *row)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->v[i].kernel_id == row->kernel_id && !m->v[i].gone)
			return mounts_same(&m->v[i], row);
	return false;
}

uint64_t hr_mountinfo_rows(const struct hr_mounts *m, char *text, uint8_t *to, uint64_t room,
			   uint64_t *ret_n)
{
	uint64_t used = 0, n = 0;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct hr_mount_row row, *out = (struct hr_mount_row *)(to + used);
		char *path, *type;

		if (!parse_line(line, &row, &path, &type) ||
		    used + row_bytes(row.path_bytes, row.type_bytes) > room)
			continue;
		*out = row;
		memcpy(out->texts, path, row.path_bytes);
		memcpy(out->texts + row.path_bytes, type, row.type_bytes);
		if (mounts_known(m, out))
			continue;
		used += row_bytes(row.path_bytes, row.type_bytes);
		n++;
	}
	*ret_n = n;
	return used;
}

int hr_mountinfo_read(int pid, char **ret)
{
	char name[64], *text = malloc(MOUNTINFO_MOST);

	if (!text)
		return -ENOMEM;
	snprintf(name, sizeof(name), "/proc/%d/mountinfo", pid);
	if (!hr_procfs_text(name, text, MOUNTINFO_MOST)) {
		free(text);
		return -ESRCH;
	}
	*ret = text;
	return 0;
}
