/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and threads, and their calls that have not finished. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "import/strace/strace_state.h"

#define NONE	      HR__STRACE_NONE
#define CMDLINE_BYTES 4096u

/* ---- births ---------------------------------------------------------------------------------- */

int hr__strace_birth_add(struct strace *p, int32_t tid, int32_t parent, bool thread,
			 bool shares_files)
{
	uint32_t i = hr_map64_get(&p->birth_of, (uint32_t)tid);

	if (!hr_array_reserve(p->births, p->n_births, p->births_room))
		return -ENOMEM;
	p->births[p->n_births] = (struct strace_birth){tid, parent, NONE, thread, shares_files};
	if (i == NONE)
		return hr_map64_set(&p->birth_of, (uint32_t)tid, p->n_births++);
	while (p->births[i].next != NONE)
		i = p->births[i].next;
	p->births[i].next = p->n_births++;
	return 0;
}

bool hr__strace_birth_known(const struct strace *p, int32_t tid)
{
	return hr_map64_get(&p->birth_of, (uint32_t)tid) != NONE;
}

/* Takes the next birth of a tid. False: it is unknown. */
static bool birth_take(struct strace *p, int32_t tid, struct strace_birth *ret)
{
	uint32_t i = hr_map64_get(&p->birth_of, (uint32_t)tid);

	if (i == NONE)
		return false;
	*ret = p->births[i];
	if (ret->next == NONE)
		hr_map64_remove(&p->birth_of, (uint32_t)tid);
	else
		(void)hr_map64_set(&p->birth_of, (uint32_t)tid, ret->next);
	return true;
}

/* ---- processes ------------------------------------------------------------------------------- */

static struct hr_import_process *process_row(struct strace *p, const struct strace_process *of)
{
	return hr_import_process_at(p->s, of->proc);
}

/* Adds a process. `parent` NONE: unknown. Returns its index; NONE: no memory. */
static uint32_t process_add(struct strace *p, int32_t pid, uint32_t parent, bool shares_files,
			    uint64_t time_ns)
{
	struct strace_process *of, *from;
	struct hr_import_process *row;

	if (!hr_array_reserve(p->processes, p->n_processes, p->processes_room))
		return NONE;
	of = &p->processes[p->n_processes];
	*of = (struct strace_process){.pid = pid, .proc = hr_import_process(p->s, pid)};
	if (!of->proc)
		return NONE;
	row = process_row(p, of);
	row->start_ns = time_ns;
	row->alive = true; /* until it ends */
	if (parent == NONE) {
		of->fds = hr__strace_fds_new(p);
	} else {
		const struct hr_import_process *parent_row;

		from = &p->processes[parent];
		parent_row = process_row(p, from);
		row->ppid = from->pid;
		row->exe = parent_row->exe;
		row->cmdline = parent_row->cmdline;
		of->cwd = from->cwd ? strdup(from->cwd) : NULL;
		shares_files = shares_files && from->fds != NONE;
		of->fds = shares_files ? from->fds : hr__strace_fds_copy(p, from->fds);
		if (shares_files)
			p->fds[from->fds].refs++;
		for (uint32_t i = 0; i < from->n_maps; i++)
			if (hr__strace_map_add(of, from->maps[i].start,
					       from->maps[i].end - from->maps[i].start,
					       from->maps[i].file))
				return NONE;
	}
	return of->fds == NONE ? NONE : p->n_processes++;
}

static void process_free(struct strace *p, struct strace_process *of)
{
	hr__strace_fds_drop(p, of->fds);
	free(of->cwd);
	free(of->maps);
	of->cwd = NULL;
	of->maps = NULL;
	of->n_maps = of->maps_room = 0;
	of->fds = NONE;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static struct strace_task *task_find(const struct strace *p, int32_t tid)
{
	uint32_t i = hr_map64_get(&p->task_of, (uint32_t)tid);

	return i == NONE || p->tasks[i].dead ? NULL : &p->tasks[i];
}

struct strace_task *hr__strace_task(struct strace *p, int32_t tid, uint64_t time_ns)
{
	struct strace_task *t = task_find(p, tid), *parent = NULL;
	struct strace_birth birth = {0};
	uint32_t process = NONE;

	if (t)
		return t;
	if (birth_take(p, tid, &birth))
		parent = task_find(p, birth.parent);
	if (parent)
		process = parent->process;
	if (!parent || !birth.thread)
		process = process_add(p, tid, process, birth.shares_files, time_ns);
	if (process == NONE || !hr_array_reserve(p->tasks, p->n_tasks, p->tasks_room) ||
	    hr_map64_set(&p->task_of, (uint32_t)tid, p->n_tasks))
		return NULL;
	p->tasks[p->n_tasks] = (struct strace_task){.tid = tid, .process = process};
	return &p->tasks[p->n_tasks++];
}

void hr__strace_seen(struct strace *p, int32_t tid)
{
	struct strace_task *t = task_find(p, tid);

	if (t)
		t->seen = true;
}

uint64_t hr__strace_unseen(const struct strace *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n_tasks; i++)
		n += !p->tasks[i].seen;
	return n;
}

/*
 * Returns ["a", "b"...] as "a b...", where strace has cut a text (its option -s). NULL: no memory.
 */
static const char *cmdline_make(struct strace *p, struct hr_strace_text argv)
{
	char line[CMDLINE_BYTES + 4];
	size_t used = 0;

	while (used < CMDLINE_BYTES) {
		const char *quote = memchr(argv.p, '"', argv.n), *end = argv.p + argv.n;
		struct hr_strace_text rest = {quote, quote ? (size_t)(end - quote) : 0};
		long n;

		if (!quote)
			break;
		if (used)
			line[used++] = ' ';
		n = hr__strace_string(rest, line + used, CMDLINE_BYTES - used);
		if (n < 0)
			break;
		used += (size_t)n;
		quote += hr__strace_string_end(rest, 0); /* the string has one, as n shows */
		if (end - quote > 3 && memcmp(quote, "...", 3) == 0) {
			for (int i = 0; i < 3; i++)
				line[used++] = '.';
		}
		argv = (struct hr_strace_text){quote, quote < end ? (size_t)(end - quote) : 0};
	}
	return hr_import_text(p->s, line, used);
}

int hr__strace_exec(struct strace *p, struct strace_task *t, uint64_t time_ns, const char *exe,
		    struct hr_strace_text argv)
{
	struct strace_process *of = &p->processes[t->process];
	struct hr_import_process *row = process_row(p, of);
	int32_t ppid = row->ppid;

	if (of->described) { /* the old program ends here */
		row->exit = "exec";
		row->end_ns = time_ns;
		row->alive = false;
		of->proc = hr_import_process(p->s, of->pid);
		if (!of->proc)
			return -ENOMEM;
		row = process_row(p, of);
		row->ppid = ppid;
		row->start_ns = time_ns;
		row->alive = true;
	}
	of->described = true;
	of->n_maps = 0;
	if (hr__strace_fds_unshare(p, &of->fds))
		return -ENOMEM;
	hr__strace_fds_close(p, of->fds, 0, UINT64_MAX, true);
	row->exe = hr_import_text(p->s, exe, strlen(exe));
	row->cmdline = cmdline_make(p, argv);
	if (!row->exe || !row->cmdline)
		return -ENOMEM;
	hr_import_program(p->s, row->exe);
	return 0;
}

int hr__strace_exit(struct strace *p, int32_t tid, uint64_t time_ns, struct hr_strace_text how)
{
	struct strace_task *t = hr__strace_task(p, tid, time_ns);
	struct strace_process *of;
	struct hr_import_process *row;

	if (!t)
		return -ENOMEM;
	t->dead = t->seen = true;
	of = &p->processes[t->process];
	if (of->pid != tid)
		return 0;
	row = process_row(p, of);
	row->end_ns = time_ns;
	row->alive = false;
	row->exit = hr_import_text(p->s, how.p, how.n);
	process_free(p, of);
	return row->exit ? 0 : -ENOMEM;
}

/* ---- unfinished calls ------------------------------------------------------------------------ */

struct strace_pending *hr__strace_pending(struct strace *p, int32_t tid)
{
	uint32_t i = hr_map64_get(&p->pending_of, (uint32_t)tid);

	return i == NONE || !p->pending[i].text ? NULL : &p->pending[i];
}

int hr__strace_pending_set(struct strace *p, int32_t tid, const struct strace_shape *shape,
			   uint64_t time_ns, struct hr_strace_text text)
{
	uint32_t i = hr_map64_get(&p->pending_of, (uint32_t)tid);

	if (i == NONE) {
		if (!hr_array_reserve(p->pending, p->n_pending, p->pending_room) ||
		    hr_map64_set(&p->pending_of, (uint32_t)tid, p->n_pending))
			return -ENOMEM;
		i = p->n_pending++;
		p->pending[i] = (struct strace_pending){0};
	}
	free(p->pending[i].text);
	p->pending[i] = (struct strace_pending){malloc(text.n + 1), text.n, time_ns, shape, tid};
	if (!p->pending[i].text)
		return -ENOMEM;
	memcpy(p->pending[i].text, text.p, text.n);
	return 0;
}

int hr__strace_pending_finish(struct strace *p, struct strace_pending *pending,
			      struct hr_strace_text rest, uint64_t end_ns)
{
	struct strace_pending whole = *pending;
	char *text = realloc(whole.text, whole.n + rest.n + 1);
	int r;

	if (!text)
		return -ENOMEM;
	pending->text = NULL;
	memcpy(text + whole.n, rest.p, rest.n);
	r = hr__strace_finish(p, whole.tid, whole.shape,
			      (struct hr_strace_text){text, whole.n + rest.n}, whole.time_ns,
			      end_ns > whole.time_ns ? end_ns : whole.time_ns);
	free(text);
	return r;
}

int hr__strace_supersede(struct strace *p, int32_t from, int32_t to)
{
	struct strace_pending *pending = hr__strace_pending(p, from);
	struct strace_task *t = task_find(p, from);
	int r = 0;

	if (pending) {
		char *text = pending->text;

		pending->text = NULL;
		r = hr__strace_pending_set(p, to, pending->shape, pending->time_ns,
					   (struct hr_strace_text){text, pending->n});
		free(text);
	}
	if (t && from != to)
		t->dead = true;
	return r;
}

void hr__strace_pending_forget(struct strace *p)
{
	for (uint32_t i = 0; i < p->n_pending; i++) {
		free(p->pending[i].text);
		p->pending[i].text = NULL;
	}
}

void hr__strace_done(struct strace *p)
{
	hr__strace_pending_forget(p);
	for (uint32_t i = 0; i < p->n_processes; i++) {
		free(p->processes[i].cwd);
		free(p->processes[i].maps);
	}
	for (uint32_t i = 0; i < p->n_fds; i++)
		hr_map64_done(&p->fds[i].opens);
	for (uint32_t i = 0; i < p->n_opens; i++)
		free(p->opens[i].path);
	hr_map64_done(&p->shape_of);
	hr_map64_done(&p->task_of);
	hr_map64_done(&p->birth_of);
	hr_map64_done(&p->pending_of);
	free(p->tasks);
	free(p->processes);
	free(p->births);
	free(p->pending);
	free(p->fds);
	free(p->opens);
}
