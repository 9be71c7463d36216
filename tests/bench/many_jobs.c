/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/many_jobs.h"

#include <stdio.h>

#include "tests/bench/generate_stream.h"

#define NODES 64u

static void write_job(const char *path, uint32_t number)
{
	static const struct hr_gen_mount mounts[] = {{"/data", "lustre"}};
	char job[16], node[16];
	struct hr_stream_id id = {
	    .cluster = "lab", .job = job, .node = node, .boot_id = "boot", .instance = number};
	Headrace__Process process = hr_gen_process(0, 0, -1, 1, 1, "python3 train.py");
	struct hr_gen_stream s;

	snprintf(job, sizeof(job), "%u", number);
	snprintf(node, sizeof(node), "n%u", number % NODES);
	hr_gen_open(&s, path, &id, 1);
	hr_gen_send_job(&s, job, 1, false);
	build_processes(&s.b, &process, 1);
	hr_gen_send_mounts(&s, mounts, 1);
	hr_gen_send_job(&s, job, 1, true);
	build_end(&s.b, "ended");
	hr_gen_close(&s);
}

void hr_many_jobs(const char *path, uint32_t first, uint32_t last)
{
	for (uint32_t i = first; i <= last; i++)
		write_job(path, i);
}
