/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/alert_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/fleet_json.h"
#include "common/text.h"

#define SECOND_NS UINT64_C(1000000000)
#define RATE_MOST 1e18 /* fits into an integer */

struct stamp {
	char s[40];
};

/* `format` of strftime */
static struct stamp stamp_of(uint64_t real_ns, const char *format)
{
	time_t seconds = (time_t)(real_ns / SECOND_NS);
	struct stamp t = {""};
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		(void)strftime(t.s, sizeof(t.s), format, &tm);
	return t;
}

/* Closes a stream of open_memstream. Returns its text without control bytes. NULL: no memory. */
static char *finish_line(FILE *out, char **text)
{
	char *raw = out ? hr_text_close(out, text) : NULL, *line = raw ? hr_text_line(raw) : NULL;

	free(raw);
	return line;
}

/* ---- where ----------------------------------------------------------------------------------- */

static void put_job_name(FILE *out, const struct hr_alert *x)
{
	fprintf(out, "job %s", x->job);
	if (hr_text_given(x->name) && strcmp(x->name, x->job) != 0)
		fprintf(out, " (%s)", x->name);
	if (hr_text_given(x->user))
		fprintf(out, " of %s", x->user);
	else
		fprintf(out, " of user %u", x->uid);
}

static void put_path(FILE *out, const ProtobufCBinaryData *path)
{
	char *text = hr_text_escaped(path->data, path->len);

	fputs(text ? text : "?", out);
	free(text);
}

static void put_rank(FILE *out, uint32_t rank_plus1, uint32_t worker_plus1, const char *node)
{
	if (rank_plus1 > 0)
		fprintf(out, "rank %u", rank_plus1 - 1);
	else
		fputs("a process without a rank", out);
	if (worker_plus1 > 0)
		fprintf(out, ", worker %u", worker_plus1 - 1);
	fprintf(out, " on %s", node);
}

static void put_busiest(FILE *out, const Headrace__FleetJob *j)
{
	if (!j->rank)
		return;
	fputs("; most operations: ", out);
	put_rank(out, j->rank->rank_plus1, 0, j->rank->node);
	if (!j->folder)
		return;
	fputs(", in ", out);
	put_path(out, &j->folder->path);
}

/* Examples: "flock", "the step", "the wait for a batch". */
static void put_what(FILE *out, const Headrace__NowStuck *op)
{
	fprintf(out, "%s%s", op->hang ? "the " : "", op->op);
	if (op->hang && strcmp(op->op, "wait") == 0)
		fputs(" for a batch", out);
	else if (op->hang && strcmp(op->op, "step") != 0)
		fputs(" of a batch", out);
}

static void put_operation(FILE *out, const Headrace__FleetStuck *s)
{
	put_what(out, s->op);
	if (s->op->path.len > 0) {
		fputs(s->op->hang ? " at " : " of ", out);
		put_path(out, &s->op->path);
	}
	fputs(" by ", out);
	put_rank(out, s->op->rank_plus1, s->op->worker_plus1, s->node);
	fprintf(out, " (pid %u) has not %s for %s", s->op->pid, s->op->hang ? "ended" : "returned",
		hr_text_duration(s->op->age_ns).s);
}

/* ---- the sentence ---------------------------------------------------------------------------- */

static void put_since(FILE *out, const struct hr_alert *x)
{
	fprintf(out, ", since %s", stamp_of(x->since_real_ns, "%Y-%m-%d %H:%M:%S UTC").s);
}

static void put_waiting(FILE *out, const struct hr_alert *x, const Headrace__FleetJob *j)
{
	fprintf(out, "%.0f %% of the training loops of ", x->value * 100);
	put_job_name(out, x);
	fprintf(out, " wait for data (%.2f of %u)", x->value * j->loops, j->loops);
	put_since(out, x);
	put_busiest(out, j);
}

static void put_metadata(FILE *out, const struct hr_alert *x, const Headrace__FleetJob *j)
{
	put_job_name(out, x);
	fprintf(out, " does %s metadata operations/s",
		hr_text_count((uint64_t)fmin(x->value, RATE_MOST)).s);
	if (j->n_mounts > 0) {
		fputs(", most on ", out);
		put_path(out, &j->mounts[0]->path);
	}
	put_since(out, x);
	put_busiest(out, j);
}

static void put_stuck(FILE *out, const struct hr_alert *x, const Headrace__FleetJob *j)
{
	if (j->n_stuck > 0)
		put_operation(out, j->stuck[0]);
	else
		fputs("operations have not returned, and their node sends nothing now", out);
	fputs(", in ", out);
	put_job_name(out, x);
	put_since(out, x);
	if (j->stuck_total > 1)
		fprintf(out, "; %u more operation%s of the job ha%s not returned",
			j->stuck_total - 1, j->stuck_total > 2 ? "s" : "",
			j->stuck_total > 2 ? "ve" : "s");
}

static void put_silence(FILE *out, const struct hr_alert *x, const Headrace__FleetJob *j)
{
	fprintf(out, "node %s is connected, but has sent nothing for %s, in ", j->silent_node,
		hr_text_duration(j->silent_ms * 1000000).s);
	put_job_name(out, x);
	put_since(out, x);
	if (j->silent_nodes > 1)
		fprintf(out, "; %u nodes of the job are silent", j->silent_nodes);
}

static void put_checkpoint(FILE *out, const struct hr_alert *x, const Headrace__FleetJob *j)
{
	if (!j->save)
		return;
	fputs("the last checkpoint of ", out);
	put_job_name(out, x);
	fprintf(out, " has taken %s, usually %s, in ", hr_text_duration(j->save->dur_ns).s,
		hr_text_duration(j->save->usual_ns).s);
	put_rank(out, j->save->rank_plus1, 0, j->save->node);
	put_since(out, x);
	put_busiest(out, j);
}

static void put_over(FILE *out, const struct hr_alert_view *v)
{
	const struct hr_alert *x = v->alert;

	put_job_name(out, x);
	if (x->state == HR_ALERT_OVER)
		fprintf(out, ": the alert `%s` is over after %s", x->rule.text,
			hr_text_duration(x->over_real_ns - x->since_real_ns).s);
	else
		fprintf(out, ": the condition `%s` was true", x->rule.text);
	if (!v->job)
		fputs("; the nodes of the job have disconnected", out);
	else if (x->rule.kind == HR_ALERT_SILENT)
		fputs("; the silent nodes send again, or have disconnected", out);
}

static void (*const put_firing[HR_ALERT_N_KINDS])(FILE *out, const struct hr_alert *x,
						  const Headrace__FleetJob *j) = {
    [HR_ALERT_WAITING] = put_waiting,	    [HR_ALERT_METADATA] = put_metadata,
    [HR_ALERT_STUCK] = put_stuck,	    [HR_ALERT_SILENT] = put_silence,
    [HR_ALERT_CHECKPOINT] = put_checkpoint,
};

/* Returns the command to type (malloc'ed). NULL: no memory. */
static char *next_command(const struct hr_alert_view *v)
{
	static const char *const queries[HR_ALERT_N_KINDS] = {
	    [HR_ALERT_WAITING] = "input-wait",
	    [HR_ALERT_SILENT] = "nodes",
	    [HR_ALERT_CHECKPOINT] = "checkpoints",
	};
	const char *query = queries[v->alert->rule.kind];
	char *job = hr_text_quote(v->alert->job), *text = NULL, *line;
	int n = -1;

	if (job && query)
		n = asprintf(&text, "headrace query %s --job %s %s", v->address, job, query);
	else if (job)
		n = asprintf(&text, "headrace top %s %s", v->address, job);
	free(job);
	if (n < 0)
		return NULL;
	line = hr_text_line(text);
	free(text);
	return line;
}

char *hr_alert_sentence(const struct hr_alert_view *v)
{
	char *text = NULL, *next = next_command(v);
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (out) {
		if (v->alert->state == HR_ALERT_OVER || !v->job)
			put_over(out, v);
		else
			put_firing[v->alert->rule.kind](out, v->alert, v->job);
		if (v->alert->state != HR_ALERT_OVER)
			fprintf(out, ". Next: %s", next ? next : "");
	}
	free(next);
	text = finish_line(out, &text);
	/* names of operations stay as they are */
	if (text && (strncmp(text, "job ", 4) == 0 || strncmp(text, "node ", 5) == 0 ||
		     strncmp(text, "the ", 4) == 0))
		text[0] = (char)(text[0] - 'a' + 'A');
	return text;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_object(struct hr_json *j, const struct hr_alert_view *v, const char *sentence,
			 const char *next)
{
	const struct hr_alert *x = v->alert;
	char id[24];

	snprintf(id, sizeof(id), "%llx", (unsigned long long)x->id);
	hr_json_document(j, "headrace-alert/1");
	hr_json_string(j, "text", sentence);
	hr_json_string(j, "next", next);
	hr_json_string(j, "state", x->state == HR_ALERT_OVER ? "resolved" : "firing");
	hr_json_string(j, "id", id);
	hr_json_string(j, "rule", x->rule.text);
	hr_json_string(j, "kind", hr_alert_kind_name(x->rule.kind));
	hr_json_double(j, "value", x->value);
	hr_json_double(j, "limit", x->rule.limit);
	hr_json_uint_if(j, "since_real_ns", x->since_real_ns > 0, x->since_real_ns);
	hr_json_uint_if(j, "fired_real_ns", x->fired_real_ns > 0, x->fired_real_ns);
	hr_json_uint_if(j, "resolved_real_ns", x->over_real_ns > 0, x->over_real_ns);
	hr_json_escaped(j, "cluster", x->cluster);
	hr_json_escaped(j, "job", x->job);
	hr_json_uint(j, "attempt", x->attempt);
	hr_json_escaped(j, "name", x->name);
	hr_json_uint(j, "uid", x->uid);
	hr_json_escaped(j, "user", x->user);
	if (v->job)
		hr_fleet_json_job(j, "now", v->job);
	else
		hr_json_null(j, "now");
	hr_json_end(j);
}

/* Alertmanager takes no empty labels. */
static void put_label(struct hr_json *j, const char *key, const char *text)
{
	if (hr_text_given(text))
		hr_json_escaped(j, key, text);
}

static void put_labels(struct hr_json *j, const struct hr_alert *x)
{
	char number[16];

	hr_json_object(j, "labels");
	hr_json_string(j, "alertname", "headrace");
	hr_json_string(j, "kind", hr_alert_kind_name(x->rule.kind));
	hr_json_string(j, "rule", x->rule.text);
	hr_json_string(j, "severity", "warning");
	put_label(j, "cluster", x->cluster);
	put_label(j, "job", x->job);
	snprintf(number, sizeof(number), "%u", x->attempt);
	hr_json_string(j, "attempt", number);
	put_label(j, "user", x->user);
	snprintf(number, sizeof(number), "%u", x->uid);
	hr_json_string(j, "uid", number);
	hr_json_end(j);
}

/* A line for each operation that has not returned. */
static void put_operations(struct hr_json *j, const Headrace__FleetJob *job)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	for (size_t i = 0; out && i < job->n_stuck; i++) {
		char *line = NULL;
		size_t n;
		FILE *one = open_memstream(&line, &n);

		if (one)
			put_operation(one, job->stuck[i]);
		line = finish_line(one, &line);
		fprintf(out, "%s%s", i > 0 ? "\n" : "", line ? line : "");
		free(line);
	}
	if (out && fclose(out) == 0)
		hr_json_string(j, "operations", text);
	free(text);
}

static void put_moment(struct hr_json *j, const char *key, uint64_t real_ns)
{
	hr_json_string(j, key, stamp_of(real_ns, "%Y-%m-%dT%H:%M:%SZ").s);
}

static void write_for_manager(struct hr_json *j, const struct hr_alert_view *v,
			      const char *sentence, const char *next)
{
	const struct hr_alert *x = v->alert;
	bool over = x->state == HR_ALERT_OVER;

	hr_json_array(j, NULL);
	hr_json_object(j, NULL);
	put_labels(j, x);
	hr_json_object(j, "annotations");
	hr_json_string(j, "summary", sentence);
	hr_json_string(j, "next", next);
	if (!over && v->job && v->job->n_stuck > 0)
		put_operations(j, v->job);
	hr_json_end(j);
	put_moment(j, "startsAt", x->fired_real_ns);
	put_moment(j, "endsAt",
		   over ? x->over_real_ns : v->real_ns + HR_ALERT_EXPIRES_MS * UINT64_C(1000000));
	hr_json_end(j);
	hr_json_end(j);
}

char *hr_alert_json(const struct hr_alert_view *v, bool manager)
{
	char *sentence = hr_alert_sentence(v), *next = next_command(v), *text = NULL;
	size_t bytes;
	FILE *out = sentence && next ? open_memstream(&text, &bytes) : NULL;
	struct hr_json j;

	if (out) {
		hr_json_init(&j, out);
		j.line = true;
		if (manager)
			write_for_manager(&j, v, sentence, next);
		else
			write_object(&j, v, sentence, next);
		text = hr_text_close(out, &text);
	}
	free(sentence);
	free(next);
	return text;
}
