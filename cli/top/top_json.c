/* SPDX-License-Identifier: Apache-2.0 */
/* Prints an update as JSON. Scripts rely on the keys, which docs/top.md documents. */
#include <math.h>

#include "common/live_rows.h"
#include "cli/top/top.h"
#include "common/ops.h"
#include "common/text.h"
#include "proto/abi.h"

static void put_path(struct hr_json *j, const char *key, const ProtobufCBinaryData *path)
{
	if (path && path->len)
		hr_json_path(j, key, path->data, path->len);
	else
		hr_json_null(j, key);
}

static void put_mount(struct hr_json *j, const Headrace__LiveMount *m)
{
	put_path(j, "mount", m ? &m->path : NULL);
	hr_json_string(j, "fs_type", m ? m->fs_type : NULL);
}

/* Writes totals, and rates of the interval. `files`: null for values that file records lack. */
static void put_sums(struct hr_json *j, const struct hr_top_sum *all, const struct hr_top_sum *now,
		     uint64_t interval_ns, bool files)
{
	double s = interval_ns ? (double)interval_ns / 1e9 : 1;
	uint64_t p99 = hr_top_quantile(now, 0.99);

	hr_json_uint(j, "ops", all->ops);
	hr_json_uint(j, "bytes", all->bytes);
	hr_json_uint_if(j, "errors", !files, all->errors);
	hr_json_uint(j, "dur_ns", all->dur_ns);
	hr_json_uint(j, "max_ns", all->max_ns);
	hr_json_double(j, "ops_per_s", (double)now->ops / s);
	hr_json_double(j, "bytes_per_s", (double)now->bytes / s);
	hr_json_double(j, "in_io", (double)now->dur_ns / 1e9 / s);
	hr_json_uint_if(j, "mean_ns", now->ops > 0, now->ops > 0 ? now->dur_ns / now->ops : 0);
	hr_json_uint_if(j, "p99_ns", p99 > 0, p99);
}

/* Writes null as input wait if no process reports input waits or steps. */
static void put_waits(struct hr_json *j, const struct hr_top_sum *all, const struct hr_top_sum *now,
		      uint32_t waiters, uint64_t interval_ns)
{
	double share = hr_top_wait(now, waiters, interval_ns);

	hr_json_double(j, "input_wait", share >= 0 ? share : NAN);
	hr_json_uint(j, "input_wait_ns", all->wait_ns);
	hr_json_uint(j, "steps", all->steps);
	hr_json_double(j, "steps_per_s",
		       (double)now->steps / (interval_ns ? (double)interval_ns / 1e9 : 1));
}

static void put_process(struct hr_json *j, const Headrace__LiveProcess *p, enum hr_top_view view)
{
	hr_json_plus1(j, "rank", p ? p->rank_plus1 : 0);
	if (view != HR_TOP_RANK)
		hr_json_plus1(j, "worker", p ? p->worker_plus1 : 0);
	if (view != HR_TOP_PROCESS || !p)
		return;
	hr_json_plus1(j, "local_rank", p->local_rank_plus1);
	hr_json_uint(j, "proc", p->proc);
	hr_json_uint(j, "pid", p->pid);
	put_path(j, "exe", &p->name);
	put_path(j, "cmdline", &p->cmdline);
	hr_json_bool(j, "ended", p->end_ns != 0);
}

static void put_row(struct hr_json *j, const struct hr_top_row *r,
		    const struct hr_top_display *display)
{
	const struct hr_op_info *op = hr_op_info(r->op);

	switch (display->view) {
	case HR_TOP_FILE:
		put_path(j, "path", r->file ? &r->file->path : NULL);
		put_mount(j, r->mount);
		hr_json_bool(j, "open", r->open);
		break;
	case HR_TOP_MOUNT:
		put_mount(j, r->mount);
		break;
	case HR_TOP_OP:
		hr_json_string(j, "op", op->name);
		hr_json_string(j, "class", hr_class_name(op->class));
		break;
	case HR_TOP_CLASS:
		hr_json_string(j, "class", hr_class_name((unsigned)r->key));
		break;
	default:
		put_process(j, r->process, display->view);
		break;
	}
	put_sums(j, &r->all, &r->now, display->table->interval_ns, display->view == HR_TOP_FILE);
	if (display->view <= HR_TOP_PROCESS)
		put_waits(j, &r->all, &r->now, r->waiters, display->table->interval_ns);
}

static void put_in_flight(struct hr_json *j, const Headrace__LiveJob *m)
{
	for (size_t i = 0; hr_json_row(j, "in_flight", i, m->n_in_flight); i++) {
		const Headrace__LiveInFlight *f = m->in_flight[i];
		const Headrace__LiveProcess *p = hr_live_process(m, f->proc);
		const Headrace__LiveFile *file = hr_live_file(m, f->file);

		hr_json_plus1(j, "rank", p ? p->rank_plus1 : 0);
		hr_json_plus1(j, "worker", p ? p->worker_plus1 : 0);
		hr_json_uint_if(j, "pid", p != NULL, p ? p->pid : 0);
		hr_json_uint(j, "tid", f->tid);
		hr_json_string(j, "op", hr_op_info((uint16_t)f->op)->name);
		put_path(j, "path", file ? &file->path : NULL);
		hr_json_uint_if(j, "fd", f->fd >= 0, (uint64_t)f->fd);
		hr_json_uint_if(j, "asked_bytes", f->asked != HR_ASKED_NONE, f->asked);
		hr_json_uint(j, "dur_ns", m->boot_ns - f->since_ns);
	}
}

void hr_top_json(FILE *out, const struct hr_top_display *display)
{
	const Headrace__LiveJob *m = display->job;
	const struct hr_top_table *t = display->table;
	struct hr_json j;

	hr_json_init(&j, out);
	j.line = true;
	hr_json_document(&j, "headrace-top/1");
	hr_json_string(&j, "job", m->job);
	hr_json_uint(&j, "attempt", m->attempt);
	hr_json_string(&j, "name", hr_text_or_null(m->name));
	hr_json_string(&j, "node", m->node);
	hr_json_uint(&j, "uid", m->uid);
	hr_json_string(&j, "level", m->level);
	hr_json_uint(&j, "real_ns", m->real_ns);
	hr_json_double(&j, "interval_s", (double)t->interval_ns / 1e9);
	hr_json_double(&j, "since_s", (double)(m->boot_ns - m->since_ns) / 1e9);
	hr_json_bool(&j, "whole", m->whole);
	hr_json_uint(&j, "processes", t->processes);
	hr_json_uint(&j, "processes_total", m->processes_total);
	hr_json_uint(&j, "ranks", t->ranks);
	hr_json_uint(&j, "lost", m->lost);
	hr_json_string(&j, "loss", hr_text_or_null(display->finding.loss));
	hr_json_string(&j, "action", hr_text_or_null(display->finding.action));
	hr_json_uint(&j, "refused", m->refused);
	hr_json_bool(&j, "cut",
		     m->rows_cut || m->processes_cut || m->files_cut || m->in_flight_cut);
	hr_json_object(&j, "all");
	put_sums(&j, &t->all, &t->now, t->interval_ns, false);
	put_waits(&j, &t->all, &t->now, t->waiters, t->interval_ns);
	hr_json_end(&j);
	hr_json_string(&j, "by", hr_top_view_names[display->view]);
	hr_json_string(&j, "sort", hr_top_sort_names[display->sort]);
	for (size_t i = 0; hr_json_row(&j, "rows", i, t->n); i++)
		put_row(&j, &t->rows[i], display);
	put_in_flight(&j, m);
	hr_json_end(&j);
	fflush(out);
}
