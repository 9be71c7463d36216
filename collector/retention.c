/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/retention.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <time.h>
#include <unistd.h>

#include "common/array.h"
#include "store/layout.h"
#include "collector/retire.h"
#include "common/log.h"
#include "common/now.h"
#include "common/text.h"

#define PERIOD_S	60
#define IDLE_PERIOD_S	3600 /* period if retention only removes files `state` */
#define SILENT_LEAST_MS 3600000u
#define NS_PER_MS	UINT64_C(1000000)

/* ---- the jobs in the store ---- */

struct kept_job {
	char name[HR__NAME_BYTES]; /* folder of the job */
	uint64_t bytes;
	uint64_t heard_ns; /* time of the latest data of all its streams */
	bool in_use;	   /* a writer has opened a stream of the job */
	bool ended;	   /* all its streams have ended; only set by remove_oldest() */
};

struct kept_jobs {
	const struct hr_retention_config *config;
	uint64_t now_ns;
	int fd;		       /* folder `jobs` of the store */
	struct kept_job *list; /* the jobs with data */
	size_t n, room;
	uint64_t bytes;
	unsigned forgotten;
};

static uint64_t before(uint64_t now_ns, uint64_t ms)
{
	uint64_t ns = ms * NS_PER_MS;

	return now_ns > ns ? now_ns - ns : 0;
}

/*
 * Removes old files `state` of a job whose data is removed. Without an end, a stream keeps its file
 * longer, because its daemon may return.
 */
static void forget_job(struct kept_jobs *jobs, const char *name)
{
	const struct hr_retention_config *c = jobs->config;

	if (c->forget_ms > 0)
		jobs->forgotten +=
		    hr__retire_forget(jobs->fd, name, before(jobs->now_ns, c->forget_ms),
				      before(jobs->now_ns, c->age_ms + c->forget_ms));
}

static int add_job(void *context, const char *name, int fd)
{
	struct kept_jobs *jobs = context;
	struct hr__retire_job found;
	struct kept_job *j;
	int r = hr__retire_inspect(jobs->fd, name, &found);

	(void)fd;
	if (r < 0) /* another process has removed the job */
		return 0;
	if (found.bytes == 0) {
		forget_job(jobs, name);
		return 0;
	}
	if (!hr_array_reserve(jobs->list, jobs->n, jobs->room))
		return -ENOMEM;
	j = &jobs->list[jobs->n++];
	*j = (struct kept_job){
	    .bytes = found.bytes, .heard_ns = found.heard_ns, .in_use = found.in_use};
	snprintf(j->name, sizeof(j->name), "%s", name);
	jobs->bytes += found.bytes;
	return 0;
}

static int by_heard(const void *a, const void *b)
{
	const struct kept_job *x = a, *y = b;

	return x->heard_ns < y->heard_ns ? -1 : x->heard_ns > y->heard_ns;
}

/* Sorts ended jobs before others, and older data before newer. */
static int by_end(const void *a, const void *b)
{
	const struct kept_job *x = a, *y = b;

	if (x->ended != y->ended)
		return x->ended ? -1 : 1;
	return by_heard(a, b);
}

/* ---- removing ---- */

static void remove_job(struct kept_jobs *jobs, struct kept_job *j, struct hr_retention_result *ret)
{
	uint64_t bytes = 0;
	int r = hr__retire_job(jobs->fd, j->name, jobs->now_ns, &bytes);

	ret->bytes += bytes;
	ret->jobs += bytes > 0;
	jobs->bytes -= bytes < jobs->bytes ? bytes : jobs->bytes;
	j->bytes -= bytes < j->bytes ? bytes : j->bytes;
	if (r < 0 && r != -EBUSY)
		hr_log_about(HR_LOG_WARNING, "retention", "cannot remove jobs/%s: %s", j->name,
			     strerrordesc_np(-r));
}

static bool silent_for(const struct kept_job *j, uint64_t now_ns, uint64_t ms)
{
	return !j->in_use && j->heard_ns < now_ns && now_ns - j->heard_ns > ms * NS_PER_MS;
}

static void remove_old(struct kept_jobs *jobs, struct hr_retention_result *ret)
{
	uint64_t age_ms = jobs->config->age_ms;

	for (size_t i = 0; i < jobs->n && age_ms > 0; i++)
		if (silent_for(&jobs->list[i], jobs->now_ns, age_ms))
			remove_job(jobs, &jobs->list[i], ret);
}

static void remove_oldest(struct kept_jobs *jobs, struct hr_retention_result *ret)
{
	const struct hr_retention_config *c = jobs->config;
	uint64_t patience = c->silent_ms > SILENT_LEAST_MS ? c->silent_ms : SILENT_LEAST_MS;

	if (c->size_bytes == 0 || jobs->bytes <= c->size_bytes)
		return;
	for (size_t i = 0; i < jobs->n; i++)
		jobs->list[i].ended = !jobs->list[i].in_use && jobs->list[i].bytes > 0 &&
				      hr__retire_ended(jobs->fd, jobs->list[i].name);
	qsort(jobs->list, jobs->n, sizeof(*jobs->list), by_end);
	for (size_t i = 0; i < jobs->n && jobs->bytes > c->size_bytes; i++) {
		struct kept_job *j = &jobs->list[i];

		if (j->bytes > 0 && (j->ended || silent_for(j, jobs->now_ns, patience)))
			remove_job(jobs, j, ret);
	}
}

int hr_retention_once(const struct hr_retention_config *c, struct hr_retention_result *ret)
{
	struct kept_jobs jobs = {.config = c,
				 .now_ns = c->real_ns ? c->real_ns() : hr_now_ns(CLOCK_REALTIME)};
	char path[4096];
	int r;

	*ret = (struct hr_retention_result){0};
	if ((size_t)snprintf(path, sizeof(path), "%s/jobs", c->store) >= sizeof(path))
		return -ENAMETOOLONG;
	jobs.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (jobs.fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = hr_store_each_folder(jobs.fd, add_job, &jobs);
	if (r == 0) {
		remove_old(&jobs, ret);
		remove_oldest(&jobs, ret);
	}
	ret->forgotten = jobs.forgotten;
	ret->left_bytes = jobs.bytes;
	free(jobs.list);
	close(jobs.fd);
	return r;
}

/* ---- the thread ---- */

struct hr_retention {
	struct hr_retention_config config;
	char *store;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop;
	bool pass_now;
	bool passed;
	uint64_t passed_written; /* bytes written up to the start of the last pass */
	struct hr_retention_stats stats;
};

/* Waits for the next pass. Returns false if the thread must end. */
static bool wait_period(struct hr_retention *r)
{
	struct timespec until;
	bool go_on;

	clock_gettime(CLOCK_MONOTONIC, &until);
	pthread_mutex_lock(&r->lock);
	until.tv_sec += r->config.age_ms > 0 || r->config.size_bytes > 0 ? PERIOD_S : IDLE_PERIOD_S;
	while (!r->stop && !r->pass_now &&
	       pthread_cond_timedwait(&r->changed, &r->lock, &until) != ETIMEDOUT)
		;
	go_on = !r->stop;
	r->pass_now = false;
	pthread_mutex_unlock(&r->lock);
	return go_on;
}

static uint64_t retention_written(const struct hr_retention *r)
{
	return r->config.written ? r->config.written(r->config.self) : 0;
}

static int retention_pass(struct hr_retention *r, struct hr_retention_result *ret)
{
	uint64_t before = retention_written(r);
	struct hr_retention_config config;
	int error;

	pthread_mutex_lock(&r->lock);
	config = r->config;
	pthread_mutex_unlock(&r->lock);
	error = hr_retention_once(&config, ret);
	pthread_mutex_lock(&r->lock);
	r->passed = r->passed || error == 0;
	r->passed_written = before;
	r->stats.store_bytes = ret->left_bytes;
	r->stats.removed_jobs += ret->jobs;
	r->stats.removed_bytes += ret->bytes;
	pthread_mutex_unlock(&r->lock);
	return error;
}

void hr_retention_change(struct hr_retention *r, uint64_t age_ms, uint64_t size_bytes,
			 uint64_t forget_ms)
{
	pthread_mutex_lock(&r->lock);
	r->config.age_ms = age_ms;
	r->config.size_bytes = size_bytes;
	r->config.forget_ms = forget_ms;
	r->pass_now = true;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

bool hr_retention_stats(struct hr_retention *r, struct hr_retention_stats *ret)
{
	uint64_t now;
	bool passed;

	if (!r)
		return false;
	now = retention_written(r);
	pthread_mutex_lock(&r->lock);
	passed = r->passed;
	*ret = r->stats;
	ret->store_bytes += now - r->passed_written;
	pthread_mutex_unlock(&r->lock);
	return passed;
}

static void *retention_run(void *self)
{
	struct hr_retention *r = self;
	struct hr_retention_result done;
	struct hr_human size;

	do {
		int error = retention_pass(r, &done);

		size = hr_text_size(done.bytes);
		if (done.jobs > 0)
			hr_log(HR_LOG_INFO, "retention: removed %u jobs, %s", done.jobs, size.s);
		if (error < 0)
			hr_log_about(HR_LOG_WARNING, "retention", "retention: %s",
				     strerrordesc_np(-error));
	} while (wait_period(r));
	return NULL;
}

static void retention_free(struct hr_retention *r)
{
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->changed);
	free(r->store);
	free(r);
}

int hr_retention_start(const struct hr_retention_config *config, struct hr_retention **ret)
{
	struct hr_retention *r;
	pthread_condattr_t attr;
	int error;

	*ret = NULL;
	if (config->age_ms == 0 && config->size_bytes == 0 && config->forget_ms == 0)
		return 0;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->config = *config;
	r->store = strdup(config->store);
	r->config.store = r->store;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &attr);
	pthread_condattr_destroy(&attr);
	error = r->store ? -pthread_create(&r->thread, NULL, retention_run, r) : -ENOMEM;
	if (error < 0)
		retention_free(r);
	else
		*ret = r;
	return error;
}

void hr_retention_stop(struct hr_retention *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	retention_free(r);
}
