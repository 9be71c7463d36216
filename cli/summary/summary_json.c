/* SPDX-License-Identifier: Apache-2.0 */
/* The summary for scripts: the keys are a contract, described in docs/run.md. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/summary/summary_parts.h"
#include "common/outfile.h"
#include "common/text.h"

static void put_totals(struct hr_json *j, const char *key, const struct hr_totals *t)
{
	hr_json_object(j, key);
	hr_json_uint(j, "operations", t->ops);
	hr_json_uint(j, "errors", t->errors);
	hr_json_uint(j, "io_ns", t->io_ns);
	hr_json_uint(j, "reads", t->reads);
	hr_json_uint(j, "read_bytes", t->read_bytes);
	hr_json_uint(j, "read_ns", t->read_ns);
	hr_json_uint(j, "small_reads", t->small_reads);
	hr_json_uint(j, "writes", t->writes);
	hr_json_uint(j, "written_bytes", t->written_bytes);
	hr_json_uint(j, "write_ns", t->write_ns);
	hr_json_uint(j, "opens", t->opens);
	hr_json_uint(j, "other_ns", t->meta_ns);
	hr_json_end(j);
}

static void put_number_or_null(struct hr_json *j, const char *key, int value)
{
	hr_json_uint_if(j, key, value >= 0, (uint64_t)value);
}

static void put_who(struct hr_json *j, const struct hr_summary *s)
{
	for (size_t i = 0; hr_json_row(j, "who", i, s->n_who); i++) {
		put_number_or_null(j, "rank", s->who[i].rank);
		put_number_or_null(j, "worker", s->who[i].worker);
		hr_json_uint(j, "processes", s->who[i].processes);
		hr_json_uint(j, "life_ns", s->who[i].life_ns);
		put_totals(j, "data", &s->who[i].data);
		hr_json_object(j, "loop");
		hr_json_uint(j, "waits", s->who[i].loop.waits);
		hr_json_uint(j, "wait_ns", s->who[i].loop.wait_ns);
		hr_json_uint(j, "steps", s->who[i].loop.steps);
		hr_json_uint(j, "step_ns", s->who[i].loop.step_ns);
		hr_json_uint(j, "loop_ns", s->who[i].loop.loop_ns);
		hr_json_end(j);
	}
}

static void put_sums(struct hr_json *j, const struct hr_summary_sums *sums)
{
	hr_json_uint(j, "files", sums->files);
	hr_json_uint(j, "opens", sums->opens);
	hr_json_uint(j, "io_ns", sums->io_ns);
	hr_json_uint(j, "read_bytes", sums->read_bytes);
	hr_json_uint(j, "written_bytes", sums->written_bytes);
}

static void put_paths(struct hr_json *j, const char *key, const struct hr_summary_path *list,
		      size_t n)
{
	for (size_t i = 0; hr_json_row(j, key, i, n); i++) {
		hr_json_string(j, "path", list[i].path);
		put_sums(j, &list[i].sums);
		hr_json_uint(j, "batch_read_bytes", list[i].batch_bytes);
		hr_json_uint(j, "batch_extent_bytes", list[i].batch_extent_bytes);
	}
}

/* Writes how CMD ended, or null if another run prints the summary. */
static void put_command(struct hr_json *j, const struct hr_summary *s)
{
	bool known = s->command >= 0;
	char signal[16];

	put_number_or_null(j, "exit_status",
			   known && WIFEXITED(s->command) ? WEXITSTATUS(s->command) : -1);
	hr_json_string(j, "exit_signal",
		       known && WIFSIGNALED(s->command)
			   ? hr_ends_signal(WTERMSIG(s->command), signal, sizeof(signal))
			   : NULL);
}

static void put_finding(struct hr_json *j, const struct hr_summary_finding *f)
{
	if (!hr_json_object_if(j, "diagnosis", f->meaning != NULL))
		return;
	hr_json_string(j, "meaning", f->meaning);
	hr_json_string(j, "whose", f->whose);
	hr_json_string(j, "object", f->object);
	hr_json_string(j, "evidence", f->evidence);
	hr_json_string(j, "action", f->action);
	hr_json_uint(j, "lost_ns", f->lost_ns);
	hr_json_uint(j, "wall_ns", f->wall_ns);
	hr_json_uint(j, "gain_low_ns", f->gain_low_ns);
	hr_json_uint(j, "gain_high_ns", f->gain_high_ns);
	hr_json_end(j);
}

static void put_killed(struct hr_json *j, const struct hr_summary *s)
{
	for (size_t i = 0; hr_json_row(j, "killed", i, s->n_killed); i++) {
		const struct hr_summary_killed *killed = &s->killed[i];
		size_t named =
		    killed->processes < HR_KILLED_NAMED ? killed->processes : HR_KILLED_NAMED;

		hr_json_string(j, "signal", killed->signal);
		hr_json_uint(j, "processes", killed->processes);
		for (size_t k = 0; hr_json_row(j, "first", k, named); k++) {
			put_number_or_null(j, "rank", killed->first[k].rank);
			put_number_or_null(j, "worker", killed->first[k].worker);
			hr_json_int(j, "pid", killed->first[k].pid);
		}
	}
}

static void put_special(struct hr_json *j, const struct hr_summary *s)
{
	hr_json_object(j, "memory");
	put_sums(j, &s->memory);
	hr_json_end(j);
	hr_json_object(j, "mapped");
	hr_json_uint(j, "files", s->mapped.files);
	hr_json_uint(j, "files_in_memory", s->mapped.files_in_memory);
	hr_json_uint(j, "mappings", s->mapped.maps);
	hr_json_end(j);
}

static void put_cover(struct hr_json *j, const struct hr_summary_cover *c)
{
	if (!hr_json_object_if(j, "coverage", c->count > 0))
		return;
	hr_json_uint(j, "kernel_operations", c->count);
	hr_json_uint(j, "kernel_bytes", c->bytes);
	hr_json_uint(j, "bpf_operations", c->bpf_count);
	hr_json_uint(j, "bpf_bytes", c->bpf_bytes);
	hr_json_uint(j, "missing_operations", c->missing_count);
	hr_json_uint(j, "missing_bytes", c->missing_bytes);
	hr_json_end(j);
}

static void put_missing(struct hr_json *j, const struct hr_summary *s)
{
	hr_json_object(j, "missing");
	hr_json_string(j, "ranks", s->ranks_missing);
	hr_json_string(j, "ranks_deselected", s->ranks_deselected);
	hr_json_uint(j, "operations_lost", s->lost);
	for (size_t i = 0; hr_json_row(j, "losses", i, s->n_losses); i++) {
		hr_json_string(j, "reason", s->losses[i].reason);
		hr_json_uint(j, "count", s->losses[i].count);
		hr_json_uint(j, "lost_bytes", s->losses[i].bytes);
		if (s->losses[i].program != NULL)
			hr_json_string(j, "program", s->losses[i].program);
	}
	for (size_t i = 0; hr_json_row(j, "excluded_opens", i, s->left_out.n); i++) {
		hr_json_string(j, "pattern", hr_text_or_null(s->left_out.v[i].pattern));
		hr_json_uint(j, "opens", s->left_out.v[i].opens);
	}
	hr_json_bool(j, "counters_only", s->counters_only);
	hr_json_uint(j, "cut_short", s->cut_short);
	hr_json_array(j, "problems");
	for (size_t i = 0; i < s->n_problems; i++)
		hr_json_string(j, NULL, s->problems[i]);
	hr_json_end(j);
	hr_json_end(j);
}

static void put_summary(struct hr_json *j, const struct hr_summary *s)
{
	hr_json_document(j, "headrace-summary/1");
	hr_json_string(j, "store", s->store);
	hr_json_string(j, "job", s->job);
	hr_json_string(j, "state", s->state);
	hr_json_uint(j, "span_ns", s->span_ns);
	hr_json_uint(j, "runs", s->runs);
	hr_json_object(j, "last_run");
	hr_json_string(j, "state", s->run_state);
	hr_json_uint(j, "span_ns", s->run_span_ns);
	put_command(j, s);
	hr_json_end(j);
	hr_json_uint(j, "stored_bytes", s->stored_bytes);
	hr_json_uint(j, "nodes", s->nodes);
	hr_json_uint(j, "streams", s->streams);
	hr_json_uint(j, "ranks", s->ranks);
	hr_json_uint(j, "ranks_expected", s->ranks_expected);
	hr_json_uint(j, "workers", s->workers);
	hr_json_uint(j, "processes", s->processes);
	hr_json_uint(j, "processes_open", s->processes_open);
	hr_json_uint(j, "events", s->events);
	hr_json_uint(j, "regions", s->regions);
	hr_json_uint(j, "small_read_limit_bytes", HR_SUMMARY_SMALL_BYTES);
	put_finding(j, &s->finding);
	for (size_t i = 0; hr_json_row(j, "loop_parts", i, s->n_parts); i++) {
		hr_json_string(j, "part", s->parts[i].name);
		hr_json_uint(j, "time_ns", s->parts[i].ns);
	}
	put_killed(j, s);
	put_missing(j, s);
	put_totals(j, "data", &s->data);
	put_special(j, s);
	put_cover(j, &s->cover);
	put_totals(j, "runtime", &s->runtime);
	put_who(j, s);
	put_paths(j, "folders", s->folders, s->n_folders);
	put_paths(j, "files", s->files, s->n_files);
	hr_json_end(j);
}

int hr_summary_check(const char *file)
{
	struct hr_outfile target;
	struct stat st;
	int fd, r = hr_outfile_init(&target, file);

	if (r < 0)
		return r;
	/* check a pipe without opening it, because opening waits for a reader */
	if (target.partial == NULL) {
		r = stat(file, &st) == 0 && S_ISDIR(st.st_mode) ? -EISDIR : 0;
		if (r == 0 && access(file, W_OK) < 0)
			r = -errno;
	} else {
		fd = open(target.partial, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
		r = fd < 0 ? -errno : 0;
		if (fd >= 0)
			close(fd);
		hr_outfile_end(&target, false);
	}
	hr_outfile_done(&target);
	return r;
}

/* Opens without waiting: a pipe without a reader is an error (ENXIO). */
static FILE *open_at_once(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
	FILE *out = NULL;

	if (fd < 0)
		return NULL;
	if (fcntl(fd, F_SETFL, O_WRONLY) == 0)
		out = fdopen(fd, "w");
	if (out == NULL)
		close(fd);
	return out;
}

int hr_summary_write(const struct hr_summary *s, const char *file)
{
	struct hr_outfile target;
	struct hr_json j;
	FILE *out;
	int r = hr_outfile_init(&target, file);

	if (r < 0)
		return r;
	out = open_at_once(hr_outfile_name(&target));
	if (out == NULL) {
		r = -errno;
		hr_outfile_done(&target);
		return r;
	}
	hr_json_init(&j, out);
	put_summary(&j, s);
	/* fsync fails for devices and pipes, which have no partial file. */
	if (fflush(out) != 0 || (target.partial != NULL && fsync(fileno(out)) != 0))
		r = -errno;
	if (fclose(out) != 0 && r == 0)
		r = -errno;
	if (r == 0)
		r = hr_outfile_end(&target, true);
	else
		hr_outfile_end(&target, false);
	hr_outfile_done(&target);
	return r;
}
