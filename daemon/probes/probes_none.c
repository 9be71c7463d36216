/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces probes.c in a build without libbpf: hr_probes_new always fails. */
#include "daemon/probes/probes.h"

#include <errno.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

int hr_probes_new(struct hr_probes **ret, char **ret_error)
{
	*ret = NULL;
	*ret_error = strdup("this headraced was built without libbpf (HEADRACE_BPF=OFF)");
	return -ENOTSUP;
}

void hr_probes_free(struct hr_probes *p)
{
}

const char *hr_probes_lacks(const struct hr_probes *p)
{
	return NULL;
}

int hr_probes_root(struct hr_probes *p, pid_t pid, bool quiet)
{
	return -ENOTSUP;
}

int hr_probes_cgroup(struct hr_probes *p, uint64_t id)
{
	return -ENOTSUP;
}

int hr_probes_cover(struct hr_probes *p, pid_t pid, const int64_t *thread)
{
	return -ENOTSUP;
}

uint64_t hr_probes_image(struct hr_probes *p, pid_t pid)
{
	return 0;
}

size_t hr_probes_poll(struct hr_probes *p, size_t most, hr_probes_taken *taken, void *arg)
{
	return 0;
}

void hr_probes_events(struct hr_probes *p, bool wanted)
{
}

void hr_probes_sums(struct hr_probes *p, hr_probes_found *summed, hr_probes_found *tallied,
		    void *arg)
{
}

bool hr_probes_full(const struct hr_probes *p)
{
	return false;
}

void hr_probes_missed(const struct hr_probes *p, struct hr_probes_missed *ret)
{
	memset(ret, 0, sizeof(*ret));
}
