/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_stats.c - counters of ingest, which store threads publish twice a second
 *
 * A silent stream has neither a daemon nor an end. After its writer is closed, it counts for a day.
 * Each store thread counts at most SILENT_MOST such streams. A restart resets all counters.
 */
#include "collector/ingest_internal.h"

#include "common/array.h"

#define SILENT_MOST 4096u
#define DAY_MS	    86400000u

const double hr_ingest_commit_steps[HR_INGEST_COMMIT_STEPS] = {0.001, 0.003, 0.01, 0.03,
							       0.1,   0.3,   1,	   10};

void hr__stats_commit(struct hr__worker *w, uint64_t ns)
{
	unsigned step = 0;

	while (step < HR_INGEST_COMMIT_STEPS && (double)ns > hr_ingest_commit_steps[step] * 1e9)
		step++;
	w->stats.commits[step]++;
	w->stats.commit_ns += ns;
}

void hr__stats_silent(struct hr__worker *w, const struct hr__ingest_stream *s)
{
	if (s->owner || s->ended || w->n_silent == SILENT_MOST ||
	    !hr_array_reserve(w->silent, w->n_silent, w->silent_room))
		return;
	w->silent[w->n_silent++] = (struct hr__silent){
	    .key = hr__stream_hash(s->job, s->node, s->id.instance), .since_ms = s->idle_since_ms};
}

void hr__stats_back(struct hr__worker *w, const struct hr__ingest_stream *s)
{
	uint64_t key = hr__stream_hash(s->job, s->node, s->id.instance);

	for (size_t i = 0; i < w->n_silent; i++)
		if (w->silent[i].key == key)
			w->silent[i--] = w->silent[--w->n_silent];
}

static void forget_old(struct hr__worker *w, uint64_t now_ms)
{
	for (size_t i = 0; i < w->n_silent; i++)
		if (now_ms - w->silent[i].since_ms > DAY_MS)
			w->silent[i--] = w->silent[--w->n_silent];
}

static void note_silent(struct hr_ingest_stats *stats, uint64_t *first_ms, uint64_t since_ms)
{
	stats->silent++;
	if (*first_ms == 0 || since_ms < *first_ms)
		*first_ms = since_ms;
}

void hr__stats_log(struct hr__worker *w)
{
	struct hr_ingest_stats stats = w->stats;
	uint64_t first_ms = 0;

	forget_old(w, hr__now_ms());
	for (size_t i = 0; i < w->n_silent; i++)
		note_silent(&stats, &first_ms, w->silent[i].since_ms);
	for (unsigned b = 0; b < HR__BUCKETS; b++) {
		for (const struct hr__ingest_stream *s = w->buckets[b]; s; s = s->next) {
			stats.connected += s->owner != NULL;
			if (!s->owner && !s->ended)
				note_silent(&stats, &first_ms, s->idle_since_ms);
		}
	}
	stats.streams = w->n_streams;
	pthread_mutex_lock(&w->lock);
	w->published = stats;
	w->published_silent_ms = first_ms;
	pthread_mutex_unlock(&w->lock);
}

static void ingest_stats_add(struct hr_ingest_stats *sum, const struct hr_ingest_stats *of)
{
	sum->frames += of->frames;
	sum->bytes += of->bytes;
	sum->repeated += of->repeated;
	sum->acks += of->acks;
	sum->nacks += of->nacks;
	for (unsigned i = 0; i <= HR_INGEST_COMMIT_STEPS; i++)
		sum->commits[i] += of->commits[i];
	sum->commit_ns += of->commit_ns;
	sum->streams += of->streams;
	sum->connected += of->connected;
	sum->silent += of->silent;
}

void hr_ingest_stats(struct hr_ingest *in, struct hr_ingest_stats *ret)
{
	uint64_t first_ms = 0;

	*ret = (struct hr_ingest_stats){0};
	for (unsigned i = 0; i < in->config.threads; i++) {
		struct hr__worker *w = &in->workers[i];

		pthread_mutex_lock(&w->lock);
		ingest_stats_add(ret, &w->published);
		if (w->published_silent_ms != 0 &&
		    (first_ms == 0 || w->published_silent_ms < first_ms))
			first_ms = w->published_silent_ms;
		pthread_mutex_unlock(&w->lock);
	}
	ret->silent_ms = first_ms != 0 ? hr__now_ms() - first_ms : 0;
}
