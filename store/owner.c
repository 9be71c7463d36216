/* SPDX-License-Identifier: Apache-2.0 */
/* owner.c - finds the owner of a stream's job before the folder is read */
#include "store/catalog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/segments.h"

#define FRAMES_MAX 1024u /* limit of the frames before the first JobEvent */

struct owner_search {
	unsigned frames;
	bool found;
	uint32_t uid;
};

/* A callback for each frame. Returns -ECANCELED to end the scan. */
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

static void search_segment(int dir_fd, uint32_t number, struct owner_search *s)
{
	struct hr_source source;
	struct hr_segment_places scan = {0};

	if (hr_segment_open(dir_fd, number, O_RDONLY, &source) < 0)
		return;
	if (hr_segment_scan(&source, find_owner, s, &scan) == 0)
		free(scan.holes);
	close(source.fd);
}

int hr__folder_owner(int dir_fd, uint32_t *ret_uid)
{
	struct hr_stream_state state;
	struct owner_search search = {0};
	struct hr_segment_file *segments;
	size_t n;
	int r = hr_stream_state_read(dir_fd, &state);

	if (r == 0 && state.uid_known) {
		*ret_uid = state.uid;
		return 0;
	}
	if (r < 0 && r != -ENOENT) /* the content is unreadable: do not guess the owner */
		return -ENODATA;
	r = hr_segments_list(dir_fd, &segments, &n);
	if (r < 0)
		return r;
	if (n > 0)
		search_segment(dir_fd, segments[0].number, &search);
	free(segments);
	if (!search.found)
		return -ENODATA;
	*ret_uid = search.uid;
	return 0;
}
