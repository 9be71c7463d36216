/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata records: names of hashes, processes, notes of headrace. */
#include <errno.h>
#include <stdlib.h>

#include "import/pfw/pfw_state.h"

/* A record FH: names a file, also one that was used before. */
static int path_record(struct pfw *p)
{
	uint64_t key = hr__pfw_token(p, HR_PFW_VALUE);
	size_t bytes;
	const char *path = hr__pfw_string(p, HR_PFW_ARG_NAME, &bytes);
	int r = path ? hr__pfw_name_add(p, key, path, bytes) : -ENOMEM;

	for (uint32_t i = 0; i < p->n_nodes && !r; i++) {
		uint32_t file = hr_map64_get(&p->nodes[i].file_of, key);

		if (file != HR_MAP64_NONE)
			r = hr_import_path_resolve(p->nodes[i].s, file, path, bytes);
	}
	if (r || !hr__pfw_is_global(&p->line.v[HR_PFW_VALUE]))
		return r;
	return hr_import_shared_add(p->f, HR_IMPORT_PATHS, key, path, bytes);
}

static int text_record(struct pfw *p)
{
	size_t bytes;
	const char *text = hr__pfw_string(p, HR_PFW_ARG_NAME, &bytes);

	return text ? hr__pfw_name_add(p, hr__pfw_token(p, HR_PFW_VALUE), text, bytes) : -ENOMEM;
}

/* Returns a copy of a string of the line. NULL: it is empty, or there is no memory. */
static const char *line_text(struct pfw *p, struct pfw_node *n, enum hr_pfw_key key)
{
	size_t bytes;
	const char *text = hr__pfw_string(p, key, &bytes);

	return text && bytes ? hr_import_text(n->s, text, bytes) : NULL;
}

/* The entry for a record that describes a process: a new one if another has the pid already. */
static struct pfw_pid *pid_describe(struct pfw *p, struct pfw_node *n)
{
	int32_t pid = (int32_t)hr__pfw_arg(p, HR_PFW_PID, 0);
	uint32_t i = hr_map64_get(&n->pid_of, (uint32_t)pid);
	struct pfw_pid *of = i == HR_MAP64_NONE ? NULL : &n->pids[i];

	if (!of || of->described) {
		of = hr__pfw_pid_add(p, n, pid);
		hr_map64_done(&n->thread_of); /* it may have threads of this pid */
	}
	if (of)
		of->described = true;
	return of;
}

static bool time_read(const struct pfw *p, enum hr_pfw_key key, uint64_t *ret_ns)
{
	return hr_pfw_has(&p->line, key) && hr__pfw_time(&p->line.v[key], p->unit_ns, ret_ns);
}

static int process_record(struct pfw *p)
{
	struct hr_import_process *to;
	struct pfw_pid *pid;
	struct pfw_node *n;
	int r = hr__pfw_node(p, &n);

	if (r)
		return r;
	pid = pid_describe(p, n);
	if (!pid)
		return -ENOMEM;
	to = hr_import_process_at(n->s, pid->proc);
	to->cmdline = line_text(p, n, HR_PFW_ARG_NAME);
	to->exe = line_text(p, n, HR_PFW_EXE);
	to->exit = line_text(p, n, HR_PFW_EXIT);
	to->ppid = (int32_t)hr__pfw_arg(p, HR_PFW_PPID, 0);
	to->rank = (int32_t)hr__pfw_arg(p, HR_PFW_RANK, to->rank);
	to->local_rank = (int32_t)hr__pfw_arg(p, HR_PFW_LOCAL_RANK, -1);
	to->worker = (int32_t)hr__pfw_arg(p, HR_PFW_WORKER, -1);
	to->world_size = (uint32_t)hr__pfw_arg(p, HR_PFW_WORLD_SIZE, 0);
	to->loader = (int32_t)hr__pfw_arg(p, HR_PFW_LOADER, -1);
	to->loader_worker = (int32_t)hr__pfw_arg(p, HR_PFW_LOADER_WORKER, -1);
	to->restart = (int32_t)hr__pfw_arg(p, HR_PFW_RESTART, -1);
	to->cpus = (uint32_t)hr__pfw_arg(p, HR_PFW_CPUS, 0);
	to->first_cpu = (uint32_t)hr__pfw_arg(p, HR_PFW_FIRST_CPU, 0);
	to->cpu_quota_milli = (uint32_t)hr__pfw_arg(p, HR_PFW_CPU_QUOTA, 0);
	(void)time_read(p, HR_PFW_START_US, &to->start_ns);
	(void)time_read(p, HR_PFW_END_US, &to->end_ns);
	if (hr_pfw_has(&p->line, HR_PFW_NS))
		hr__pfw_ns(&p->line.v[HR_PFW_NS], &to->start_ns, &to->end_ns);
	to->alive = p->own && to->end_ns == 0;
	pid->start_ns = to->start_ns;
	if (to->cmdline)
		hr_import_program(n->s, to->cmdline);
	return 0;
}

/* Sets the command line from its hash. Its record SH may be in the file of the parent process. */
static int command_set(struct pfw *p, struct pfw_node *n, struct hr_import_process *to)
{
	uint64_t key = hr__pfw_token(p, HR_PFW_CMD_HASH);
	const struct pfw_name *name = hr__pfw_name(p, key);
	char *shared = NULL, *text;
	size_t bytes = 0;

	if (!name) {
		shared = hr_import_shared_find(p->f->import, HR_IMPORT_TEXTS, key, &bytes);
		if (!shared)
			return 0;
	}
	text = (char *)(uintptr_t)(name ? hr_import_text(n->s, name->text, name->bytes)
					: hr_import_text(n->s, shared, bytes));
	free(shared);
	for (char *c = text; c && *c; c++) /* dftracer puts a semicolon between arguments */
		if (*c == ';')
			*c = ' ';
	to->cmdline = text;
	if (text)
		hr_import_program(n->s, text);
	return text ? 0 : -ENOMEM;
}

int hr__pfw_life(struct pfw *p, bool starts)
{
	struct hr_import_process *to;
	struct pfw_pid *pid;
	struct pfw_node *n;
	uint64_t ts_ns = 0;
	uint32_t proc;
	int r = hr__pfw_node(p, &n);

	if (r)
		return r;
	(void)hr__pfw_time(&p->line.v[HR_PFW_TS], p->unit_ns, &ts_ns);
	if (!starts) {
		proc = hr__pfw_process(p, n, ts_ns);
		if (proc)
			hr_import_process_at(n->s, proc)->end_ns = ts_ns;
		return proc ? 0 : -ENOMEM;
	}
	pid = pid_describe(p, n);
	if (!pid)
		return -ENOMEM;
	pid->start_ns = ts_ns;
	to = hr_import_process_at(n->s, pid->proc);
	to->start_ns = ts_ns;
	to->ppid = (int32_t)hr__pfw_arg(p, HR_PFW_PPID, 0);
	return hr_pfw_has(&p->line, HR_PFW_CMD_HASH) ? command_set(p, n, to) : 0;
}

/* A record of headrace: the version of its further arguments, or what its recording lacked. */
static int headrace_record(struct pfw *p)
{
	size_t bytes;
	const char *note;

	if (hr__pfw_is(&p->line.v[HR_PFW_ARG_NAME], "version", 7)) {
		p->own = true;
		return 0;
	}
	if (!hr__pfw_is(&p->line.v[HR_PFW_ARG_NAME], "note", 4))
		return 0;
	note = hr__pfw_string(p, HR_PFW_VALUE, &bytes);
	if (!note)
		return -ENOMEM;
	hr_import_missing(p->f, HR_LOSS_IMPORT_NOTED, 1, "its recording states: %s", note);
	return 0;
}

static int unit_record(struct pfw *p)
{
	const struct hr_pfw_value *v = &p->line.v[HR_PFW_VALUE];

	if (hr__pfw_is(&p->line.v[HR_PFW_ARG_NAME], "time_metric", 11))
		p->unit_ns = hr__pfw_is(v, "NS", 2)   ? 1
			     : hr__pfw_is(v, "MS", 2) ? UINT64_C(1000000)
			     : hr__pfw_is(v, "S", 1)  ? UINT64_C(1000000000)
						      : UINT64_C(1000);
	return 0;
}

int hr__pfw_metadata(struct pfw *p)
{
	static const struct {
		const char *name;
		int (*read)(struct pfw *p);
		bool needs_value;
	} kinds[] = {
	    {"HH", hr__pfw_host_record, true},	 {"FH", path_record, true},
	    {"SH", text_record, true},		 {"PR", process_record, false},
	    {"headrace", headrace_record, true}, {"CM", unit_record, true},
	};
	const struct hr_pfw_value *name = &p->line.v[HR_PFW_NAME];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!hr__pfw_is(name, kinds[i].name, strlen(kinds[i].name)))
			continue;
		if (!hr_pfw_has(&p->line, HR_PFW_ARG_NAME) ||
		    (kinds[i].needs_value && !hr_pfw_has(&p->line, HR_PFW_VALUE)))
			return -EBADMSG;
		return kinds[i].read(p);
	}
	return 0; /* others describe the tracer */
}
