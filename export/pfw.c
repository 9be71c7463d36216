/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format "pfw": traces of dftracer 1.0.8, one JSON object per line. Files and nodes have hashes
 * whose names are in metadata records (FH, HH) before their first use. Records "headrace" at the
 * begin, and at the end, state what is missing.
 *
 * dftracer counts in microseconds: args.ns has the nanoseconds of ts and dur below them. args.ret
 * of a read or write is its bytes, as dftracer's analyzers expect, and args.items the result of
 * calls such as fread, if it is another number. Paths and texts are escaped as in the SQL tables.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "export/gather.h"
#include "export/text_out.h"
#include "common/fnv.h"
#include "common/ops.h"

#define LINE_BYTES 1024u /* more than a line without texts needs */
/* Typical bytes of an operation, with its file's name, and of a region: compressed, and not. */
#define EVENT_BYTES	   35u
#define EVENT_BYTES_PLAIN  300u
#define REGION_BYTES	   50u
#define REGION_BYTES_PLAIN 350u

struct pfw_file {
	struct hr_export *x;
	struct hr_text_out out;
	uint64_t id; /* of the last line */
	struct hr_gather_limits limits;
	uint64_t node_hash;
	uint64_t *named; /* bitmap by file number, for the current stream */
};

/* ---- lines ---- */

static int begin_line(struct pfw_file *p, size_t texts)
{
	int r = hr_text_out_room(&p->out, LINE_BYTES + 8 * texts);

	if (r < 0)
		return r;
	hr_text_out_literal(&p->out, "{\"id\":");
	hr_text_out_uint(&p->out, p->id++);
	return 0;
}

static void end_line(struct pfw_file *p)
{
	hr_text_out_literal(&p->out, "}}\n");
}

/* Write a literal, such as `,"pid":`, and a value. */
#define put_key_uint(p, key, v)                                                                    \
	(hr_text_out_literal(&(p)->out, key), hr_text_out_uint(&(p)->out, v))
#define put_key_int(p, key, v) (hr_text_out_literal(&(p)->out, key), hr_text_out_int(&(p)->out, v))
#define put_key_hash(p, key, hash)                                                                 \
	(hr_text_out_literal(&(p)->out, key), hr_text_out_hex(&(p)->out, hash),                    \
	 hr_text_out_literal(&(p)->out, "\""))
#define put_key_text(p, key, text, n)                                                              \
	(hr_text_out_literal(&(p)->out, key), hr_text_out_string(&(p)->out, text, n))

/*
 * Begins a metadata record, with `name` such as "FH", and the members that all have. `more`:
 * the size of further texts.
 */
static int begin_metadata(struct pfw_file *p, const char *name, uint64_t pid, const void *text,
			  size_t n, size_t more)
{
	int r = begin_line(p, n + strlen(name) + more);

	if (r < 0)
		return r;
	put_key_text(p, ",\"name\":", name, strlen(name));
	hr_text_out_literal(&p->out, ",\"cat\":\"dftracer\"");
	put_key_uint(p, ",\"pid\":", pid);
	put_key_uint(p, ",\"tid\":", pid);
	hr_text_out_literal(&p->out, ",\"ph\":\"M\",\"args\":{\"hhash\":\"");
	hr_text_out_hex(&p->out, p->node_hash);
	put_key_text(p, "\",\"name\":", text, n);
	return 0;
}

static int put_hash(struct pfw_file *p, const char *name, uint64_t pid, uint64_t hash,
		    const void *text, size_t n)
{
	int r = begin_metadata(p, name, pid, text, n, 0);

	if (r < 0)
		return r;
	put_key_hash(p, ",\"value\":\"", hash);
	end_line(p);
	return 0;
}

/* Writes the name of a file before its first use. Returns 1 and its hash; 0: it is unknown. */
static int name_file(struct pfw_file *p, const struct hr_stream *s, uint32_t file, uint64_t pid,
		     uint64_t *ret_hash)
{
	uint32_t number = file != 0 ? hr_stream_file_number(s, file) : 0;
	uint64_t bit = UINT64_C(1) << (number % 64);
	struct hr_file_info info;
	int r = 0;

	if (number == 0 || hr_stream_file_at(s, number, false, &info) < 0)
		return 0;
	*ret_hash = info.hash;
	if (p->named[number / 64] & bit)
		return 1;
	p->named[number / 64] |= bit;
	if (hr_stream_file_at(s, number, true, &info) == 0)
		r = put_hash(p, "FH", pid, info.hash, info.path, info.path_bytes);
	return r < 0 ? r : 1;
}

/* ---- metadata ---- */

/* Writes a number of the process, which the message has as the number + 1, unless it is unknown. */
#define put_plus1(p, key, number)                                                                  \
	((number) > 0 ? put_key_uint(p, key, (uint64_t)(number)-1) : (void)0)

static void put_numbers(struct pfw_file *p, const struct hr_process *process)
{
	const Headrace__Process *m = process->msg;

	put_plus1(p, ",\"rank\":", process->rank + INT64_C(1));
	put_plus1(p, ",\"local_rank\":", process->local_rank + INT64_C(1));
	put_plus1(p, ",\"worker\":", process->worker + INT64_C(1));
	put_plus1(p, ",\"loader\":", m->loader_plus1);
	put_plus1(p, ",\"loader_worker\":", m->loader_worker_plus1);
	put_plus1(p, ",\"restart\":", m->restart_plus1);
	if (m->world_size > 0)
		put_key_uint(p, ",\"world_size\":", m->world_size);
	if (m->cpus > 0) {
		put_key_uint(p, ",\"cpus\":", m->cpus);
		put_key_uint(p, ",\"first_cpu\":", m->first_cpu);
	}
	if (m->cpu_quota_milli > 0)
		put_key_uint(p, ",\"cpu_quota_milli\":", m->cpu_quota_milli);
}

static int put_process(struct pfw_file *p, const struct hr_stream *s,
		       const struct hr_process *process)
{
	const Headrace__Process *m = process->msg;
	uint64_t start = hr_walk_real_ns(s, m->start_ns), end = hr_walk_real_ns(s, m->end_ns);
	size_t exit = m->exit != NULL ? strlen(m->exit) : 0;
	int r = begin_metadata(p, "PR", (uint64_t)m->pid, m->cmdline.data, m->cmdline.len,
			       m->cmdline.len + m->exe.len + exit);

	if (r < 0)
		return r;
	put_key_text(p, ",\"value\":", m->cmdline.data, m->cmdline.len);
	put_key_text(p, ",\"exe\":", m->exe.data, m->exe.len);
	put_key_int(p, ",\"ppid\":", m->ppid);
	put_numbers(p, process);
	put_key_uint(p, ",\"start_us\":", start / 1000);
	if (m->end_ns != 0)
		put_key_uint(p, ",\"end_us\":", end / 1000);
	put_key_uint(p, ",\"ns\":[", start % 1000);
	put_key_uint(p, ",", end % 1000);
	hr_text_out_literal(&p->out, "]");
	if (exit > 0)
		put_key_text(p, ",\"exit\":", m->exit, exit);
	end_line(p);
	return 0;
}

/* Writes a record of headrace itself. */
static int put_own(struct pfw_file *p, const char *name, const char *value)
{
	int r = begin_metadata(p, "headrace", 0, name, strlen(name), strlen(value));

	if (r < 0)
		return r;
	put_key_text(p, ",\"value\":", value, strlen(value));
	end_line(p);
	return 0;
}

static int put_damage(struct pfw_file *p)
{
	char *note = hr_export_damage(p->x);
	int r = note != NULL ? put_own(p, "note", note) : 0;

	free(note);
	return r;
}

static int pfw_metadata(struct pfw_file *p, const struct hr_walk_stream *ws)
{
	const char *node = ws->s->node;
	int r = put_hash(p, "HH", 0, p->node_hash, node, strlen(node));

	for (uint32_t i = 0; i < ws->s->n_processes && r == 0; i++)
		if (ws->processes[i].number != 0 &&
		    (ws->s->added_to == NULL || ws->processes[i].p->msg->same_as == 0))
			r = put_process(p, ws->s, ws->processes[i].p);
	return r;
}

/* ---- operations and regions ---- */

static void put_thread(struct pfw_file *p, const struct hr_process *process, uint32_t tid)
{
	put_key_uint(p, ",\"pid\":", (uint64_t)process->msg->pid);
	put_key_uint(p, ",\"tid\":", tid);
}

static void put_times(struct pfw_file *p, uint64_t start_ns, uint64_t dur_ns)
{
	put_key_uint(p, ",\"ts\":", start_ns / 1000);
	put_key_uint(p, ",\"dur\":", dur_ns / 1000);
	hr_text_out_literal(&p->out, ",\"ph\":\"X\",\"args\":{\"hhash\":\"");
	hr_text_out_hex(&p->out, p->node_hash);
	put_key_uint(p, "\",\"ns\":[", start_ns % 1000);
	put_key_uint(p, ",", dur_ns % 1000);
	hr_text_out_literal(&p->out, "]");
}

static void put_result(struct pfw_file *p, const struct hr_columns *c, uint32_t i,
		       const struct hr_op_info *info)
{
	uint64_t bytes;

	if (c->ret[i] == HR_RET_NONE)
		return;
	if (c->ret[i] < 0) {
		put_key_int(p, ",\"ret\":", -1);
		put_key_int(p, ",\"errno\":", -c->ret[i]);
		return;
	}
	bytes = hr_bytes_moved(info->bytes_rule, c->ret[i], c->asked[i], c->flags[i]);
	put_key_uint(p, ",\"ret\":", bytes != UINT64_MAX ? bytes : (uint64_t)c->ret[i]);
	if (bytes != UINT64_MAX && bytes != (uint64_t)c->ret[i])
		put_key_int(p, ",\"items\":", c->ret[i]);
}

static void put_event_args(struct pfw_file *p, const struct hr_columns *c, uint32_t i,
			   const struct hr_op_info *info)
{
	put_result(p, c, i, info);
	if (c->asked[i] != HR_ASKED_NONE)
		put_key_uint(p, ",\"count\":", c->asked[i]);
	if (c->offset[i] != HR_OFFSET_NONE)
		put_key_int(p, ",\"offset\":", c->offset[i]);
	if (c->flags[i] != 0)
		put_key_uint(p, ",\"flags\":", c->flags[i]);
	if (c->fd[i] >= 0)
		put_key_int(p, ",\"fd\":", c->fd[i]);
	if (c->bits[i] & HR_EV_SCOPE_RUNTIME)
		hr_text_out_literal(&p->out, ",\"rt\":1");
	if (c->bits[i] & HR_EV_BPF)
		hr_text_out_literal(&p->out, ",\"bpf\":1");
}

static int pfw_event(struct pfw_file *p, const struct hr_stream *s, const struct hr_walk_batch *b,
		     uint32_t i)
{
	const struct hr_columns *c = &b->c;
	const struct hr_op_info *info = hr_op_info(c->op[i]);
	const struct hr_process *process = b->process[c->task[i]]->p;
	uint64_t pid = (uint64_t)process->msg->pid, hash = 0, hash2 = 0;
	const char *name = info->name != NULL ? info->name : "unknown";
	int named = name_file(p, s, c->file[i], pid, &hash), named2 = 0, r;

	if (named >= 0 && c->file2[i] != 0)
		named2 = name_file(p, s, c->file2[i], pid, &hash2);
	if (named < 0 || named2 < 0)
		return named < 0 ? named : named2;
	r = begin_line(p, 0);
	if (r < 0)
		return r;
	hr_text_out_literal(&p->out, ",\"name\":\"");
	hr_text_out_bytes(&p->out, name, strlen(name)); /* a C name, so nothing is escaped */
	if (info->api == HR_API_STDIO)
		hr_text_out_literal(&p->out, "\",\"cat\":\"STDIO\"");
	else
		hr_text_out_literal(&p->out, "\",\"cat\":\"POSIX\"");
	put_thread(p, process, c->tasks[c->task[i]].tid);
	put_times(p, hr_walk_real_ns(s, c->start_ns[i]), c->dur_ns[i]);
	if (named > 0)
		put_key_hash(p, ",\"fhash\":\"", hash);
	if (named2 > 0)
		put_key_hash(p, ",\"fhash2\":\"", hash2);
	put_event_args(p, c, i, info);
	end_line(p);
	return 0;
}

#define put_text_arg(p, key, text)                                                                 \
	((text) != NULL ? put_key_text(p, key, (text)->data, (text)->len) : (void)0)

static size_t text_bytes(const ProtobufCBinaryData *text)
{
	return text != NULL ? text->len : 0;
}

static int pfw_region(struct pfw_file *p, const struct hr_walk_stream *ws,
		      const struct hr_walk_region *row)
{
	const struct hr_process *process = hr_walk_process(ws, row->proc)->p;
	const ProtobufCBinaryData *name, *domain, *category, *args;
	const char *kind;
	struct hr_region region;
	int r;

	hr_regions_get(row->frame, row->row, &region);
	name = hr_walk_text(row->frame, region.name);
	domain = hr_walk_text(row->frame, region.domain);
	category = hr_walk_text(row->frame, region.category);
	args = hr_walk_text(row->frame, region.args);
	kind = hr_region_kind_name(region.kind);
	kind = kind != NULL ? kind : "range";
	r = begin_line(p, text_bytes(name) + text_bytes(domain) + text_bytes(category) +
			      text_bytes(args));
	if (r < 0)
		return r;
	put_key_text(p, ",\"name\":", name != NULL ? name->data : NULL, text_bytes(name));
	hr_text_out_literal(&p->out, ",\"cat\":\"headrace:");
	hr_text_out_bytes(&p->out, kind, strlen(kind));
	hr_text_out_literal(&p->out, "\"");
	put_thread(p, process, row->tid);
	put_times(p, hr_walk_real_ns(ws->s, region.start_ns), region.dur_ns);
	put_text_arg(p, ",\"domain\":", domain);
	put_text_arg(p, ",\"category\":", category);
	put_text_arg(p, ",\"args\":", args);
	if (region.step != HR_REGION_UNKNOWN)
		put_key_uint(p, ",\"step\":", region.step);
	if (region.epoch != HR_REGION_UNKNOWN)
		put_key_uint(p, ",\"epoch\":", region.epoch);
	if (region.count > 1)
		put_key_uint(p, ",\"region_count\":", region.count);
	if (region.depth > 0)
		put_key_uint(p, ",\"depth\":", region.depth);
	if (region.open)
		hr_text_out_literal(&p->out, ",\"open\":1");
	end_line(p);
	return 0;
}

/* ---- the trace ---- */

static int pfw_batch(void *self, const struct hr_walk_stream *ws, const struct hr_walk_batch *b)
{
	struct pfw_file *p = self;
	int r = 0;

	for (uint32_t k = 0; k < b->n_rows && r == 0; k++)
		if (b->c.dur_ns[b->rows[k]] >= p->limits.events_ns)
			r = pfw_event(p, ws->s, b, b->rows[k]);
	return r;
}

static int pfw_stream(struct pfw_file *p, const struct hr_walk_stream *ws)
{
	uint32_t n_files = 0;
	int r = hr_stream_files(ws->s, &n_files);

	p->node_hash = hr_fnv(HR_FNV_BASIS, ws->s->node, strlen(ws->s->node));
	p->named = calloc(n_files / 64 + 1, sizeof(*p->named));
	if (r == 0 && p->named == NULL)
		r = -ENOMEM;
	if (r == 0)
		r = pfw_metadata(p, ws);
	for (size_t i = 0; i < ws->n_regions && r == 0; i++)
		if (ws->regions[i].end_ns - ws->regions[i].start_ns >= p->limits.regions_ns)
			r = pfw_region(p, ws, &ws->regions[i]);
	if (r == 0)
		r = hr_export_events(p->x, ws, pfw_batch, p);
	free(p->named);
	p->named = NULL;
	return r;
}

/* Decides what is left out, if there is a limit of size: a quarter of it is for regions. */
static int find_limits(struct pfw_file *p)
{
	uint64_t max = p->x->options->max_bytes;
	bool plain = p->x->options->plain;
	const struct hr_gather_room room = {.events = max / 4 * 3,
					    .regions = max / 4,
					    .event_bytes = plain ? EVENT_BYTES_PLAIN : EVENT_BYTES,
					    .region_bytes =
						plain ? REGION_BYTES_PLAIN : REGION_BYTES,
					    .paths = plain};

	return max == 0 || max == UINT64_MAX ? 0 : hr_gather_limits(p->x, &room, &p->limits);
}

static int pfw_notes(struct pfw_file *p)
{
	char *left_out = hr_gather_left_out(p->x, &p->limits, "");
	/* Version 1 of the format of this file: further arguments, and escaped texts. */
	int r = put_own(p, "version", "1");

	for (size_t i = 0; i < p->x->n_notes && r == 0; i++)
		r = put_own(p, "note", p->x->notes[i]);
	if (left_out != NULL && r == 0)
		r = put_own(p, "note", left_out);
	free(left_out);
	return r;
}

int hr_pfw_write(struct hr_export *x, FILE *to)
{
	struct pfw_file p = {.x = x};
	int r = hr_text_out_init(&p.out, to, x->options->plain), done;

	if (r < 0)
		return r;
	r = find_limits(&p);
	if (r == 0)
		r = hr_text_out_room(&p.out, LINE_BYTES);
	if (r == 0) {
		hr_text_out_literal(&p.out, "[\n");
		r = pfw_notes(&p);
	}
	for (size_t i = 0; i < x->walk->n_streams && r == 0; i++)
		r = pfw_stream(&p, &x->walk->streams[i]);
	if (r == 0)
		r = put_damage(&p);
	if (r == 0 && (r = hr_text_out_room(&p.out, LINE_BYTES)) == 0)
		hr_text_out_literal(&p.out, "]\n");
	done = hr_text_out_done(&p.out);
	return r < 0 ? r : done;
}
