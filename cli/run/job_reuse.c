/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/store.h"
#include "daemon/control/control.h"
#include "daemon/control/private.h"

/* Sets the id of the n-th job of a store: "NAME" for 1, "NAME.2" for 2. */
static int number_id(const char *name, unsigned number, char ret[HR_JOB_ID_BYTES])
{
	int n = number == 1 ? snprintf(ret, HR_JOB_ID_BYTES, "%s", name)
			    : snprintf(ret, HR_JOB_ID_BYTES, "%s.%u", name, number);

	return n < (int)HR_JOB_ID_BYTES ? 0 : -ENAMETOOLONG;
}

/* Returns whether the streams have ranks of a job of the same size, but not the rank of `job`. */
static bool lacks_rank(const struct hr_stream *streams, size_t n, const struct hr_job *job)
{
	bool others = false;

	for (size_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < streams[i].n_processes; k++) {
			const struct hr_process *p = &streams[i].processes[k];

			if (p->rank == job->rank)
				return false;
			others =
			    others || (p->rank >= 0 && p->msg->world_size == job->ranks_expected);
		}
	}
	return others;
}

bool hr_job_is_open(const char *store, const char *id, const char *node, const struct hr_job *rank)
{
	const struct hr_catalog_filter filter = {.job = id};
	const struct hr_stream *streams;
	struct hr_catalog *catalog;
	bool open = false;
	size_t n;

	if (hr_catalog_open(&store, 1, &filter, &catalog, NULL) < 0)
		return false;
	n = hr_catalog_streams(catalog, &streams);
	for (size_t i = 0; i < n; i++)
		open = open || (streams[i].live && !streams[i].ended &&
				(!node || strcmp(streams[i].node, node) == 0));
	open = open || (rank && lacks_rank(streams, n, rank));
	hr_catalog_free(catalog);
	return open;
}

/*
 * Returns whether the job is running, or lacks the rank of `rank` (NULL: not checked). A headraced
 * that starts or ends holds the lock, so the store is up to date when this function has the lock.
 */
static bool is_running(const char *store, const char *id, const struct hr_job *rank)
{
	struct hr_private_names names;
	char *error = NULL;
	int lock = -1, fd = -1, r = hr_private_names(store, id, &names, &error);
	bool open;

	free(error); /* hr_link_open() reports the same error */
	if (r == 0)
		r = hr_private_lock(&names, &lock);
	if (r < 0)
		return hr_job_is_open(store, id, NULL, rank);
	r = hr_control_connect(names.control, &fd);
	open = r != -ENOENT && r != -ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	if (!open) {
		open = hr_job_is_open(store, id, NULL, rank);
		hr_private_remove(&names);
	}
	close(lock);
	return open;
}

int hr_job_reuse(const char *store, struct hr_job *job, char ret_former[HR_JOB_ID_BYTES])
{
	char last[HR_JOB_ID_BYTES] = "", next[HR_JOB_ID_BYTES];
	unsigned number = 1;
	int r;

	ret_former[0] = '\0';
	r = number_id(job->id, number, next);
	while (r == 0 && hr_store_has_job(store, next)) {
		memcpy(last, next, sizeof(last));
		r = number_id(job->id, ++number, next);
	}
	if (r < 0 || number == 1)
		return r;
	if (is_running(store, last, job->rank >= 0 ? job : NULL)) {
		memcpy(job->id, last, sizeof(job->id));
		return 0;
	}
	memcpy(job->id, next, sizeof(job->id));
	memcpy(ret_former, last, sizeof(last));
	return 0;
}
