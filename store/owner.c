/* SPDX-License-Identifier: Apache-2.0 */
/* owner.c - finds the owner of a stream's job before the folder is read */
#include "store/catalog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/layout.h"

#define FRAMES_MAX 1024u /* limit of the frames between StreamStart and the first JobEvent */

struct owner_search {
	unsigned frames;
	bool found;
	uint32_t uid;
};

/* Ends the scan with -ECANCELED. */
static int find_owner(void *context, uint64_t offset, uint32_t bytes, const Headrace__Frame *msg)
{
	struct owner_search *s = context;

	(void)offset;
	(void)bytes;
	if (msg->body_case == HEADRACE__FRAME__BODY_JOB) {
		s->uid = msg->job->uid;
		s->found = true;
	}
	return s->found || ++s->frames == FRAMES_MAX ? -ECANCELED : 0;
}

static void search_segment(int dir_fd, const char *name, struct owner_search *s)
{
	struct hr__source source = {.fd = hr_store_open_file(dir_fd, name, O_RDONLY)};
	struct hr__scan scan = {0};
	struct stat st;

	if (source.fd < 0)
		return;
	if (fstat(source.fd, &st) == 0) {
		source.bytes = (uint64_t)st.st_size;
		if (hr__segment_scan(&source, find_owner, s, &scan) == 0)
			free(scan.holes);
	}
	close(source.fd);
}

static int owner_is_segment(const struct dirent *entry)
{
	return hr__segment_number(entry->d_name) > 0;
}

int hr__folder_owner(int dir_fd, uint32_t *ret_uid)
{
	struct hr_stream_state state;
	struct owner_search search = {0};
	struct dirent **entries;
	int n, r = hr_stream_state_read(dir_fd, &state);

	if (r == 0 && state.uid_known) {
		*ret_uid = state.uid;
		return 0;
	}
	if (r < 0 && r != -ENOENT) /* the content is unknown, so do not guess the owner */
		return -ENODATA;
	n = scandirat(dir_fd, ".", &entries, owner_is_segment, alphasort);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		if (i == 0)
			search_segment(dir_fd, entries[i]->d_name, &search);
		free(entries[i]);
	}
	free(entries);
	if (!search.found)
		return -ENODATA;
	*ret_uid = search.uid;
	return 0;
}
