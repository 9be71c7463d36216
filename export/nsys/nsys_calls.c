/* SPDX-License-Identifier: Apache-2.0 */
/* Operations as rows of OSRT_API and HEADRACE_OPERATIONS. */
#include "export/nsys/nsys.h"

#include <string.h>

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
			 const struct hr__nsys_thread *thread)
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
			  const struct hr__nsys_thread *thread)
{
	int64_t start_ns = hr__nsys_ns(n, c->start_ns[i]),
		end_ns = start_ns + (int64_t)c->dur_ns[i];
	int64_t row[9] = {start_ns, end_ns, HR_NSYS_CLASS_OSRT, thread->id, ++n->operations};
	int r = take_op_name(n, c->op[i], hr_op_info(c->op[i]), &row[5]);

	hr__nsys_take_end(n, end_ns);
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
	struct hr__nsys_thread thread = {0};
	int r = 0;

	(void)ws; /* it is n->ws */

	for (uint32_t k = 0; k < b->n_rows && r == 0; k++) {
		const struct hr_columns *c = &b->c;
		uint32_t i = b->rows[k];

		if (c->dur_ns[i] < n->limits.events_ns)
			continue;
		if (c->task[i] != task)
			r = hr__nsys_take_thread(n, b->process[c->task[i]]->p,
						 c->tasks[c->task[i]].tid, &thread);
		task = c->task[i];
		if (r == 0)
			r = nsys_operation(n, c, i, &thread);
	}
	return r;
}

int hr__nsys_operations(struct hr__nsys *n)
{
	return hr_export_events(n->x, n->ws, nsys_batch, n);
}
