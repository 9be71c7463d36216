/* SPDX-License-Identifier: Apache-2.0 */
#include "store/stream_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/store.h"
#include "common/frame.h"

#define STATE_MAX_BYTES 4096u

/* Copies the fields that have the same type in memory and in the file. */
#define COPY_FIELDS(to, from)                                                                      \
	((to)->by_node = (from)->by_node, (to)->mark = (from)->mark,                               \
	 (to)->connected = (from)->connected, (to)->heard_ns = (from)->heard_ns,                   \
	 (to)->clock_known = (from)->clock_known, (to)->clock_offset_ns = (from)->clock_offset_ns, \
	 (to)->clock_error_ns = (from)->clock_error_ns, (to)->retired = (from)->retired,           \
	 (to)->retired_ns = (from)->retired_ns, (to)->ended = (from)->ended,                       \
	 (to)->closed_ns = (from)->closed_ns)

int hr_stream_state_read(int stream_dir_fd, struct hr_stream_state *ret)
{
	struct hr_stream_state s = {0};
	uint8_t buf[STATE_MAX_BYTES];
	Headrace__Frame *msg;
	size_t bytes;
	int n = hr_store_read_file(stream_dir_fd, HR_STREAM_STATE_FILE, buf, sizeof(buf));

	if (n < 0)
		return n;
	if (n == 0 || hr_frame_check(buf, (size_t)n, &bytes) < 0 || bytes != (size_t)n ||
	    hr_frame_unpack(buf, bytes, &msg) < 0)
		return -EBADMSG;
	if (msg->body_case != HEADRACE__FRAME__BODY_STREAM_STATE) {
		headrace__frame__free_unpacked(msg, NULL);
		return -EBADMSG;
	}
	s.has_secret = msg->stream_state->secret.len == HR_STREAM_SECRET_BYTES;
	if (s.has_secret)
		memcpy(s.secret, msg->stream_state->secret.data, HR_STREAM_SECRET_BYTES);
	s.uid_known = msg->stream_state->uid_plus1 != 0;
	s.uid = msg->stream_state->uid_plus1 - 1;
	COPY_FIELDS(&s, msg->stream_state);
	snprintf(s.peer, sizeof(s.peer), "%s", msg->stream_state->peer);
	headrace__frame__free_unpacked(msg, NULL);
	*ret = s;
	return 0;
}

int hr_stream_state_write(int stream_dir_fd, const struct hr_stream_state *s, bool sync)
{
	Headrace__StreamState state = HEADRACE__STREAM_STATE__INIT;
	Headrace__Frame frame = HEADRACE__FRAME__INIT;
	uint8_t *buf;
	size_t bytes;
	int r;

	if (s->has_secret) {
		state.secret.data = (uint8_t *)s->secret;
		state.secret.len = HR_STREAM_SECRET_BYTES;
	}
	state.uid_plus1 = s->uid_known ? s->uid + 1 : 0;
	COPY_FIELDS(&state, s);
	state.peer = (char *)s->peer;
	frame.body_case = HEADRACE__FRAME__BODY_STREAM_STATE;
	frame.stream_state = &state;
	r = hr_frame_pack(&frame, 0, &buf, &bytes);
	if (r < 0)
		return r;
	r = hr_store_replace_file(stream_dir_fd, HR_STREAM_STATE_FILE, buf, bytes, sync, NULL);
	free(buf);
	if (r == 0 && sync && fsync(stream_dir_fd) < 0)
		r = -errno;
	return r;
}
