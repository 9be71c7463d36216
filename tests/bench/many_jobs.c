/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/many_jobs.h"

#include <stdio.h>

#include "tests/bench/generate_stream.h"

#define NODES 64u

static int write_stream(struct hr_gen_stream *s, const char *job)
{
	static const struct hr_gen_mount mounts[] = {{"/data", "lustre"}};
	Headrace__Process process;
	int r = hr_gen_send_job(s, job, 1, false);

	hr_gen_process(0, 0, -1, 1, 1, "python3 train.py", &process);
	if (r == 0)
		r = hr_gen_send_processes(s, &process, 1);
	if (r == 0)
		r = hr_gen_send_mounts(s, mounts, 1);
	if (r == 0)
		r = hr_gen_send_job(s, job, 1, true);
	return r == 0 ? hr_gen_send_end(s) : r;
}

static int write_job(const char *path, uint32_t number)
{
	char job[16], node[16];
	struct hr_stream_id id = {.cluster = "lab", .job = job, .node = node, .boot_id = "boot"};
	struct hr_gen_stream stream = {.now_ns = HR_GEN_BOOT_NS};
	int r, closed;

	snprintf(job, sizeof(job), "%u", number);
	snprintf(node, sizeof(node), "n%u", number % NODES);
	id.instance = number;
	r = hr_writer_open(path, &id, &stream.writer, NULL);
	if (r < 0)
		return r;
	r = write_stream(&stream, job);
	closed = hr_writer_close(stream.writer);
	return r < 0 ? r : closed;
}

int hr_many_jobs(const char *path, uint32_t first, uint32_t last)
{
	int r = 0;

	for (uint32_t i = first; i <= last && r == 0; i++)
		r = write_job(path, i);
	return r;
}
