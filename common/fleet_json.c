/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts rely on the keys, which docs/fleet.md documents. */
#include "common/fleet_json.h"

static void put_rate(struct hr_json *j, const Headrace__FleetRate *r)
{
	static const Headrace__FleetRate none;

	r = r != NULL ? r : &none;
	hr_json_double(j, "metadata_per_s", r->metadata);
	hr_json_double(j, "reads_per_s", r->reads);
	hr_json_double(j, "writes_per_s", r->writes);
	hr_json_double(j, "bytes_read_per_s", r->bytes_read);
	hr_json_double(j, "bytes_written_per_s", r->bytes_written);
	hr_json_double(j, "in_io", r->in_io);
}

static void put_mounts(struct hr_json *j, size_t n, Headrace__FleetMount **mounts, bool jobs)
{
	for (size_t i = 0; hr_json_row(j, "mounts", i, n); i++) {
		hr_json_path(j, "mount", mounts[i]->path.data, mounts[i]->path.len);
		hr_json_escaped(j, "fs_type", mounts[i]->fs_type);
		put_rate(j, mounts[i]->rate);
		if (jobs) {
			hr_json_escaped(j, "job", mounts[i]->job);
			hr_json_double(j, "job_share", mounts[i]->share);
		}
	}
}

static void put_rank(struct hr_json *j, const Headrace__FleetRank *r)
{
	if (!hr_json_object_if(j, "busiest_rank", r != NULL))
		return;
	hr_json_escaped(j, "node", r->node);
	hr_json_plus1(j, "rank", r->rank_plus1);
	put_rate(j, r->rate);
	hr_json_end(j);
}

static void put_folder(struct hr_json *j, const Headrace__FleetFolder *f)
{
	if (!hr_json_object_if(j, "busiest_folder", f != NULL))
		return;
	hr_json_escaped(j, "node", f->node);
	hr_json_path(j, "path", f->path.data, f->path.len);
	hr_json_double(j, "share", f->share);
	hr_json_end(j);
}

static void put_stuck(struct hr_json *j, const Headrace__FleetStuck *s)
{
	hr_json_object(j, NULL);
	hr_json_escaped(j, "node", s->node);
	hr_json_plus1(j, "rank", s->op->rank_plus1);
	hr_json_plus1(j, "worker", s->op->worker_plus1);
	hr_json_uint(j, "pid", s->op->pid);
	hr_json_uint(j, "tid", s->op->tid);
	hr_json_escaped(j, "op", s->op->op);
	if (s->op->path.len > 0)
		hr_json_path(j, "path", s->op->path.data, s->op->path.len);
	else
		hr_json_null(j, "path");
	hr_json_uint(j, "age_ns", s->op->age_ns);
	hr_json_bool(j, "hang", s->op->hang);
	hr_json_end(j);
}

static void put_save(struct hr_json *j, const Headrace__FleetSave *s)
{
	if (!hr_json_object_if(j, "checkpoint", s != NULL))
		return;
	hr_json_escaped(j, "node", s->node);
	hr_json_plus1(j, "rank", s->rank_plus1);
	hr_json_uint(j, "dur_ns", s->dur_ns);
	hr_json_uint_if(j, "usual_ns", s->usual_ns > 0, s->usual_ns);
	hr_json_end(j);
}

void hr_fleet_json_job(struct hr_json *j, const char *key, const Headrace__FleetJob *m)
{
	hr_json_object(j, key);
	hr_json_escaped(j, "cluster", m->cluster);
	hr_json_escaped(j, "job", m->job);
	hr_json_uint(j, "attempt", m->attempt);
	hr_json_escaped(j, "name", m->name);
	hr_json_uint(j, "uid", m->uid);
	hr_json_escaped(j, "user", m->user);
	hr_json_uint(j, "nodes", m->nodes);
	hr_json_uint(j, "silent_nodes", m->silent_nodes);
	hr_json_escaped(j, "silent_node", m->silent_nodes > 0 ? m->silent_node : NULL);
	hr_json_uint(j, "silent_ms", m->silent_ms);
	hr_json_uint(j, "processes", m->processes);
	hr_json_uint(j, "ranks", m->ranks);
	hr_json_uint(j, "training_loops", m->loops);
	hr_json_double(j, "waiting_loops", m->waiting);
	hr_json_double(j, "steps_per_s", m->steps);
	hr_json_uint(j, "lost", m->lost);
	put_rate(j, m->rate);
	put_rank(j, m->rank);
	put_folder(j, m->folder);
	put_save(j, m->save);
	put_mounts(j, m->n_mounts, m->mounts, false);
	hr_json_uint(j, "stuck_total", m->stuck_total);
	hr_json_array(j, "stuck");
	for (size_t i = 0; i < m->n_stuck; i++)
		if (m->stuck[i]->op != NULL)
			put_stuck(j, m->stuck[i]);
	hr_json_end(j);
	hr_json_end(j);
}

void hr_fleet_json(FILE *out, const Headrace__Fleet *fleet)
{
	struct hr_json j;

	hr_json_init(&j, out);
	j.line = true;
	hr_json_document(&j, "headrace-fleet/1");
	hr_json_escaped(&j, "software", fleet->software);
	hr_json_uint(&j, "real_ns", fleet->real_ns);
	hr_json_uint(&j, "connected_nodes", fleet->nodes);
	hr_json_uint(&j, "connected_streams", fleet->streams);
	hr_json_uint(&j, "jobs_total", fleet->jobs_total);
	hr_json_uint(&j, "training_loops", fleet->loops);
	hr_json_double(&j, "waiting_loops", fleet->waiting);
	hr_json_uint(&j, "stuck_total", fleet->stuck_total);
	put_rate(&j, fleet->rate);
	hr_json_array(&j, "jobs");
	for (size_t i = 0; i < fleet->n_jobs; i++)
		hr_fleet_json_job(&j, NULL, fleet->jobs[i]);
	hr_json_end(&j);
	put_mounts(&j, fleet->n_mounts, fleet->mounts, true);
	hr_json_end(&j);
	fflush(out);
}
