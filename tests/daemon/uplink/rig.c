/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

const char *rig_store(const struct rig *rig, const char *name)
{
	static char paths[4][300];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, 300, "%.*s/%s", (int)(strrchr(rig->folder, '/') - rig->folder), rig->folder,
		 name);
	return path;
}

void rig_init(struct rig *rig, void **state)
{
	*rig = (struct rig){.folder = *state};
	assert_int_equal(hr_spool_new(rig->folder, 16u << 20, &rig->spool), 0);
	rig->config = (struct hr_uplink_config){.spool = rig->spool,
						.collectors = rig->to,
						.software = "test",
						.node = "n1",
						.boot_id = "boot",
						.recover_ms = HR_UPLINK_NEVER,
						.scan_ms = 100};
}

void rig_done(struct rig *rig)
{
	hr_uplink_free(rig->uplink);
	if (rig->writer)
		assert_int_equal(hr_writer_close(rig->writer), 0);
	hr_spool_free(rig->spool);
}

void rig_open_stream(struct rig *rig, const char *job)
{
	struct hr_stream_id id = frame_stream(job, 1);

	assert_int_equal(hr_spool_open_stream(rig->spool, &id, &rig->writer), 0);
}

void rig_add_frames(struct rig *rig, unsigned n, size_t bytes)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(frame_append(rig->spool, rig->writer,
					      i % 3 ? FRAME_EVENTS : FRAME_ROLLUPS, bytes),
				 0);
}

void rig_end_stream(struct rig *rig)
{
	assert_int_equal(frame_append(rig->spool, rig->writer, FRAME_END, 0), 0);
	assert_int_equal(hr_writer_close(rig->writer), 0);
	rig->writer = NULL;
	hr_spool_closed(rig->spool);
}

void rig_leave_stream(void **state, const char *job, unsigned n, size_t bytes)
{
	struct rig earlier;

	rig_init(&earlier, state);
	rig_open_stream(&earlier, job);
	rig_add_frames(&earlier, n, bytes);
	rig_end_stream(&earlier);
	rig_done(&earlier);
}

struct fake *rig_collector(struct rig *rig, struct fake_options o)
{
	struct fake *f = fake_start(&o);
	struct fake_seen seen;

	fake_look(f, &seen);
	rig->to[rig->config.n_collectors] = (struct hr_address){.port = seen.port};
	snprintf(rig->to[rig->config.n_collectors++].host, HR_ADDRESS_HOST_BYTES, "127.0.0.1");
	return f;
}

uint16_t rig_dead_port(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
	close(fd);
	return ntohs(at.sin_port);
}

void rig_start(struct rig *rig)
{
	char *error = NULL;

	assert_int_equal(hr_uplink_new(&rig->config, &rig->uplink, &error), 0);
	assert_null(error);
}

struct hr_uplink_stats rig_stats(const struct rig *rig)
{
	struct hr_uplink_stats s;

	hr_uplink_stats(rig->uplink, &s);
	return s;
}

void rig_pause_ms(unsigned ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}
