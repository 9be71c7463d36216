/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a stream: processes and threads, regions (NVTX_EVENTS and HEADRACE_REGIONS), and
 * operations (OSRT_API and HEADRACE_OPERATIONS).
 */
#include "export/nsys/nsys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A global id has 7 + 8 bits for the node, so that it is not negative. */
#define NODES_HIGH 127
#define NODES_LOW  256

/* The thread of the current row. */
struct nsys_thread {
	int64_t id, rank, worker; /* HR_NSYS_NULL: no rank or worker */
};

/* Converts a time of the current stream's node. */
static int64_t file_ns(const struct hr__nsys *n, uint64_t boot_ns)
{
	return hr_stream_real_ns(n->ws->s, boot_ns) - n->base_ns;
}

static void take_end(struct hr__nsys *n, int64_t end_ns)
{
	n->end_ns = end_ns > n->end_ns ? end_ns : n->end_ns;
}

/* ---- processes and threads ---- */

static int64_t or_null(int64_t value)
{
	return value >= 0 ? value : HR_NSYS_NULL;
}

int64_t hr__nsys_node_bits(const struct hr_walk *w, size_t stream)
{
	int64_t first = 0;

	while (strcmp(w->streams[first].s->node, w->streams[stream].s->node) != 0)
		first++;
	return (1 + first % NODES_HIGH) << 56 | first / NODES_HIGH % NODES_LOW << 48;
}

static int64_t process_id(const struct hr__nsys *n, const struct hr_process *p)
{
	return n->node | ((int64_t)p->msg->pid & 0xffffff) << 24;
}

static void thread_name(const struct hr_process *p, bool main, char *ret, size_t bytes)
{
	int at = hr_walk_process_name(p, "", ret, bytes);

	if (!main)
		snprintf(ret + at, bytes - (size_t)at, " thread");
}

/* Finds the thread, and writes its name before its first row. Returns 0 or -errno. */
static int take_thread(struct hr__nsys *n, const struct hr_process *p, uint32_t tid,
		       struct nsys_thread *ret)
{
	int64_t row[3] = {0, 0, process_id(n, p) | (tid & 0xffffff)};
	char name[160];
	int r = 0;

	*ret = (struct nsys_thread){row[2], or_null(p->rank), or_null(p->worker)};
	if (hr_map64_get(&n->threads, (uint64_t)row[2]) != HR_MAP64_NONE)
		return 0;
	thread_name(p, tid == (uint32_t)p->msg->pid, name, sizeof(name));
	r = hr_map64_set(&n->threads, (uint64_t)row[2], 0);
	if (r == 0)
		r = hr_nsys_string(n->db, name, strlen(name), &row[0]);
	return r == 0 ? hr_nsys_insert(n->db, HR_NSYS_ThreadNames, row, NULL) : r;
}

static int put_process(struct hr__nsys *n, const struct hr_process *p)
{
	int64_t row[2] = {process_id(n, p), p->msg->pid};
	int64_t own[5] = {row[0], p->msg->ppid, p->msg->cpus, p->msg->first_cpu,
			  p->msg->cpu_quota_milli};
	struct hr_nsys_text name = {.text = p->msg->exe.data, .bytes = p->msg->exe.len};
	struct nsys_thread main;
	int r = hr_nsys_insert(n->db, HR_NSYS_PROCESSES, row, &name);

	if (r == 0)
		r = hr_nsys_insert(n->db, HR_NSYS_HEADRACE_PROCESSES, own, NULL);
	return r == 0 ? take_thread(n, p, (uint32_t)p->msg->pid, &main) : r;
}

static int put_env(struct hr__nsys *n, const char *name, const char *value)
{
	int64_t row[2] = {n->node, 0};
	struct hr_nsys_text texts[3] = {hr_nsys_text("headrace"), hr_nsys_text(name),
					hr_nsys_text(value)};

	return hr_nsys_insert(n->db, HR_NSYS_TARGET_INFO_SYSTEM_ENV, row, texts);
}

/* Writes the processes of a stream, and what is known about its node. */
static int nsys_processes(struct hr__nsys *n)
{
	uint32_t cpus = 0, selected = 0;
	char text[16];
	int r = 0;

	for (uint32_t i = 0; i < n->ws->s->n_processes && r == 0; i++) {
		const struct hr_process *p = n->ws->processes[i].p;

		if (n->ws->processes[i].number == 0)
			continue;
		selected++;
		cpus = p->msg->cpus > cpus ? p->msg->cpus : cpus;
		r = put_process(n, p);
	}
	if (r == 0 && selected > 0)
		r = put_env(n, "Hostname", n->ws->s->node);
	snprintf(text, sizeof(text), "%u", cpus);
	return r == 0 && cpus > 0 ? put_env(n, "CpuCores", text) : r;
}

/* ---- regions ---- */

/* Writes a row that names a category, or a domain, before its first use. */
static int put_definition(struct hr__nsys *n, enum hr_nsys_event type, int64_t domain,
			  int64_t category, int64_t thread, const struct hr_nsys_text *text)
{
	uint64_t key = (uint64_t)domain << 32 | (uint64_t)(category & UINT32_MAX);
	int64_t row[8] = {0,
			  HR_NSYS_NULL,
			  type,
			  HR_NSYS_NULL,
			  type == HR_NSYS_CATEGORY ? category : HR_NSYS_NULL,
			  thread,
			  HR_NSYS_NULL,
			  domain};
	struct hr_nsys_text texts[2] = {*text, {0}};
	int r;

	if (hr_map64_get(&n->defined, key) != HR_MAP64_NONE)
		return 0;
	r = hr_map64_set(&n->defined, key, 0);
	return r == 0 ? hr_nsys_insert(n->db, HR_NSYS_NVTX_EVENTS, row, texts) : r;
}

/* Returns the id of a category of a domain; without a text, NULL. */
static int take_category(struct hr__nsys *n, const struct hr_nsys_text *text, int64_t domain,
			 int64_t thread, int64_t *ret)
{
	int r;

	*ret = HR_NSYS_NULL;
	if (text->text == NULL)
		return 0;
	r = hr_nsys_string(n->db, text->text, text->bytes, ret);
	return r == 0 ? put_definition(n, HR_NSYS_CATEGORY, domain, *ret, thread, text) : r;
}

static int take_domain(struct hr__nsys *n, const struct hr_nsys_text *text, int64_t thread,
		       int64_t *ret)
{
	int r;

	*ret = 0;
	if (text->text == NULL)
		return 0;
	r = hr_nsys_string(n->db, text->text, text->bytes, ret);
	return r == 0 ? put_definition(n, HR_NSYS_DOMAIN, *ret, 0, thread, text) : r;
}

/*
 * Returns the category that a kind implies; NULL: none. Extra-Deep reads "epoch" and
 * "training_step". A loop without an optimizer (validation) has no steps, so each step trains.
 */
static const char *kind_category(uint32_t kind)
{
	switch (kind) {
	case HR_REGION_RANGE:
	case HR_REGION_SPAN:
	case HR_REGION_MARK:
		return NULL;
	case HR_REGION_STEP:
		return "training_step";
	default:
		return hr_region_kind_name(kind);
	}
}

int hr__nsys_categories(struct hr__nsys *n)
{
	struct hr_nsys_text testing = hr_nsys_text("testing_step");
	int64_t id;
	int r = take_category(n, &testing, 0, HR_NSYS_NULL, &id);

#define HR__REGION_KIND(name, number, text)                                                        \
	if (r == 0) {                                                                              \
		struct hr_nsys_text t = hr_nsys_text(kind_category(number));                       \
		r = take_category(n, &t, 0, HR_NSYS_NULL, &id);                                    \
	}
	HR_REGION_KINDS(HR__REGION_KIND)
#undef HR__REGION_KIND
	return r;
}

/* Of short regions that were added up, the duration is a sum, which does not nest. */
static enum hr_nsys_event region_type(const struct hr_region *region)
{
	if (region->kind == HR_REGION_MARK)
		return HR_NSYS_MARK;
	return region->kind == HR_REGION_SPAN || region->count > 1 ? HR_NSYS_START_END
								   : HR_NSYS_PUSH_POP;
}

static struct hr_nsys_text region_text(const Headrace__Regions *frame, uint32_t number)
{
	const ProtobufCBinaryData *text = hr_walk_text(frame, number);

	return text != NULL ? (struct hr_nsys_text){.text = text->data, .bytes = text->len}
			    : (struct hr_nsys_text){0};
}

/* Writes what NVTX_EVENTS has no column for, and a category that the one of the kind replaces. */
static int put_region(struct hr__nsys *n, const struct hr_walk_region *from,
		      const struct hr_region *region, const struct nsys_thread *thread)
{
	int64_t row[8] = {n->regions,
			  region->step == HR_REGION_UNKNOWN ? HR_NSYS_NULL : (int64_t)region->step,
			  region->epoch == HR_REGION_UNKNOWN ? HR_NSYS_NULL
							     : (int64_t)region->epoch,
			  (int64_t)region->count,
			  region->open,
			  thread->rank,
			  thread->worker,
			  region->depth};
	struct hr_nsys_text texts[2] = {hr_nsys_text(hr_region_kind_name(region->kind))};

	if (kind_category(region->kind) != NULL)
		texts[1] = region_text(from->frame, region->category);
	return hr_nsys_insert(n->db, HR_NSYS_HEADRACE_REGIONS, row, texts);
}

static int nsys_region(struct hr__nsys *n, const struct hr_walk_region *row)
{
	struct hr_nsys_text texts[2], domain, category;
	int64_t numbers[8];
	struct hr_region region;
	struct nsys_thread thread;
	int r = take_thread(n, hr_walk_process(n->ws, row->proc)->p, row->tid, &thread);

	hr_regions_get(row->frame, row->row, &region);
	texts[0] = region_text(row->frame, region.name);
	if (texts[0].text == NULL)
		texts[0] = hr_nsys_text(hr_region_kind_name(region.kind));
	texts[1] = region_text(row->frame, region.args);
	texts[1].json = true;
	domain = region_text(row->frame, region.domain);
	category = hr_nsys_text(kind_category(region.kind));
	if (category.text == NULL)
		category = region_text(row->frame, region.category);
	numbers[0] = file_ns(n, region.start_ns);
	numbers[1] = numbers[0] + (int64_t)region.dur_ns;
	take_end(n, numbers[1]);
	numbers[2] = region_type(&region);
	if (numbers[2] == HR_NSYS_MARK)
		numbers[1] = HR_NSYS_NULL;
	numbers[3] = ++n->regions;
	numbers[5] = thread.id;
	numbers[6] = HR_NSYS_NULL;
	if (r == 0)
		r = take_domain(n, &domain, thread.id, &numbers[7]);
	if (r == 0)
		r = take_category(n, &category, numbers[7], thread.id, &numbers[4]);
	if (r == 0 && texts[0].text != NULL)
		r = hr_nsys_string(n->db, texts[0].text, texts[0].bytes, &numbers[6]);
	if (r == 0)
		r = hr_nsys_insert(n->db, HR_NSYS_NVTX_EVENTS, numbers, texts);
	return r == 0 ? put_region(n, row, &region, &thread) : r;
}

static int nsys_regions(struct hr__nsys *n)
{
	int r = 0;

	for (size_t i = 0; i < n->ws->n_regions && r == 0; i++) {
		const struct hr_walk_region *row = &n->ws->regions[i];

		if (row->end_ns - row->start_ns >= n->limits.regions_ns)
			r = nsys_region(n, row);
	}
	return r;
}

/* ---- operations ---- */

/* Returns the id of a path; without a path, NULL. */
static int take_path(struct hr__nsys *n, uint32_t file, int64_t *ret)
{
	uint32_t number = file != 0 ? hr_stream_file_number(n->ws->s, file) : 0;
	struct hr_file_info info;
	int r = 0;

	*ret = HR_NSYS_NULL;
	if (number == 0)
		return 0;
	if (n->paths[number] == 0) {
		if (hr_stream_file_at(n->ws->s, number, true, &info) < 0 || info.path == NULL)
			return 0;
		r = hr_nsys_string(n->db, info.path, info.path_bytes, ret);
		n->paths[number] = (uint32_t)*ret;
	}
	*ret = n->paths[number];
	return r;
}

static int take_op_name(struct hr__nsys *n, uint16_t op, const struct hr_op_info *info,
			int64_t *ret)
{
	int64_t *id = &n->op_names[op % HR_OP_MAX];
	const char *name = info->name != NULL ? info->name : "unknown";
	int r = *id == 0 ? hr_nsys_string(n->db, name, strlen(name), id) : 0;

	*ret = *id;
	return r;
}

/* Writes what OSRT_API has no column for. */
static int put_operation(struct hr__nsys *n, const struct hr_columns *c, uint32_t i,
			 const struct nsys_thread *thread)
{
	const struct hr_op_info *info = hr_op_info(c->op[i]);
	uint64_t bytes = c->ret[i] == HR_RET_NONE ? UINT64_MAX
						  : hr_bytes_moved(info->bytes_rule, c->ret[i],
								   c->asked[i], c->flags[i]);
	int64_t row[11] = {n->operations,
			   HR_NSYS_NULL,
			   HR_NSYS_NULL,
			   c->offset[i] != HR_OFFSET_NONE ? c->offset[i] : HR_NSYS_NULL,
			   bytes != UINT64_MAX ? (int64_t)bytes : HR_NSYS_NULL,
			   c->ret[i] < 0 ? -1 : c->ret[i],
			   c->ret[i] < 0 ? -c->ret[i] : HR_NSYS_NULL,
			   thread->rank,
			   thread->worker,
			   (c->bits[i] & HR_EV_SCOPE_RUNTIME) != 0,
			   (c->bits[i] & HR_EV_BPF) != 0};
	int r = take_path(n, c->file[i], &row[1]);

	if (c->ret[i] == HR_RET_NONE)
		row[5] = row[6] = HR_NSYS_NULL;
	if (r == 0 && c->file2[i] != 0)
		r = take_path(n, c->file2[i], &row[2]);
	return r == 0 ? hr_nsys_insert(n->db, HR_NSYS_HEADRACE_OPERATIONS, row, NULL) : r;
}

static int nsys_operation(struct hr__nsys *n, const struct hr_columns *c, uint32_t i,
			  const struct nsys_thread *thread)
{
	int64_t start_ns = file_ns(n, c->start_ns[i]), end_ns = start_ns + (int64_t)c->dur_ns[i];
	int64_t row[9] = {start_ns, end_ns, HR_NSYS_CLASS_OSRT, thread->id, ++n->operations};
	int r = take_op_name(n, c->op[i], hr_op_info(c->op[i]), &row[5]);

	take_end(n, end_ns);
	/* The column cannot be NULL: of a call that has not returned, it is 0. */
	row[6] = c->ret[i] == HR_RET_NONE ? 0 : c->ret[i] < 0 ? -1 : c->ret[i];
	if (r == 0)
		r = hr_nsys_insert(n->db, HR_NSYS_OSRT_API, row, NULL);
	return r == 0 ? put_operation(n, c, i, thread) : r;
}

static int nsys_batch(void *self, const struct hr_walk_stream *ws, const struct hr_walk_batch *b)
{
	struct hr__nsys *n = self;
	uint32_t task = UINT32_MAX;
	struct nsys_thread thread = {0};
	int r = 0;

	(void)ws; /* it is n->ws */
	for (uint32_t k = 0; k < b->n_rows && r == 0; k++) {
		const struct hr_columns *c = &b->c;
		uint32_t i = b->rows[k];

		if (c->dur_ns[i] < n->limits.events_ns)
			continue;
		if (c->task[i] != task)
			r = take_thread(n, b->process[c->task[i]]->p, c->tasks[c->task[i]].tid,
					&thread);
		task = c->task[i];
		if (r == 0)
			r = nsys_operation(n, c, i, &thread);
	}
	return r;
}

/* ---- the stream ---- */

int hr__nsys_stream(struct hr__nsys *n, size_t stream)
{
	uint32_t n_files = 0;
	int r;

	n->ws = &n->x->walk->streams[stream];
	n->node = hr__nsys_node_bits(n->x->walk, stream);
	r = hr_stream_files(n->ws->s, &n_files);
	n->paths = calloc((size_t)n_files + 1, sizeof(*n->paths));
	if (r == 0 && n->paths == NULL)
		r = -ENOMEM;
	if (r == 0)
		r = nsys_processes(n);
	if (r == 0)
		r = nsys_regions(n);
	if (r == 0)
		r = hr_export_events(n->x, n->ws, nsys_batch, n);
	free(n->paths);
	return r;
}
