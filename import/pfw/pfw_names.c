/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, processes, threads and files of a .pfw file, and the records that name them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/arena.h"
#include "common/array.h"
#include "common/pathid.h"
#include "common/text.h"
#include "import/pfw/pfw_state.h"

#define NONE	    UINT32_MAX
#define HOSTS_BYTES (1u << 20)

/* ---- texts ----------------------------------------------------------------------------------- */

uint64_t hr__pfw_token(const struct pfw *p, enum hr_pfw_key key)
{
	return hr_path_id(p->line.v[key].p, p->line.v[key].n);
}

const char *hr__pfw_string(struct pfw *p, enum hr_pfw_key key, size_t *ret_bytes)
{
	const struct hr_pfw_value *v = &p->line.v[key];
	long n;

	*ret_bytes = 0;
	if (!hr_pfw_has(&p->line, key))
		return "";
	if (!hr_array_fit(p->text, (size_t)v->n + 1, p->text_room))
		return NULL;
	*ret_bytes = hr__pfw_text(v, p->text);
	p->text[*ret_bytes] = '\0';
	if (p->own && (n = hr_text_unescape(p->text)) >= 0)
		*ret_bytes = (size_t)n;
	return p->text;
}

/* ---- names of hashes ------------------------------------------------------------------------- */

int hr__pfw_name_add(struct pfw *p, uint64_t key, const char *text, size_t bytes)
{
	const char *copy = hr_arena_copy(&p->texts, text, bytes);

	if (!copy || !hr_array_reserve(p->names, p->n_names, p->names_room) ||
	    hr_map64_set(&p->name_of, key, p->n_names))
		return -ENOMEM;
	p->names[p->n_names++] = (struct pfw_name){copy, (uint32_t)bytes};
	return 0;
}

const struct pfw_name *hr__pfw_name(const struct pfw *p, uint64_t key)
{
	uint32_t i = hr_map64_get(&p->name_of, key);

	return i == HR_MAP64_NONE ? NULL : &p->names[i];
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Called for each line that has an event or a record with a name. */
typedef int line_visit(void *context, const struct hr_pfw_line *l);

/* Visits the complete lines of `text`. HR_INPUT_SLACK bytes after `text` are readable. */
static int lines_each(const char *text, size_t bytes, line_visit *visit, void *context)
{
	const char *end = text + bytes, *next;
	struct hr_pfw_line line = {0};
	int r = 0;

	for (; !r && text < end && (next = memchr(text, '\n', (size_t)(end - text))) != NULL;
	     text = next + 1)
		if (hr__pfw_line(text, (size_t)(next - text), &line) == 0 &&
		    hr_pfw_has(&line, HR_PFW_NAME))
			r = visit(context, &line);
	return r;
}

static bool record_is(const struct hr_pfw_line *l, const char *name)
{
	return hr__pfw_is(&l->v[HR_PFW_NAME], name, strlen(name)) && hr_pfw_has(l, HR_PFW_VALUE) &&
	       hr_pfw_has(l, HR_PFW_ARG_NAME);
}

/* Publishes what records HH and SH name, and raises the largest pid that may be a rank. */
static int survey_visit(void *context, const struct hr_pfw_line *l)
{
	const struct hr_pfw_value *pid = &l->v[HR_PFW_PID], *text = &l->v[HR_PFW_ARG_NAME];
	struct hr_import_file *f = context;
	int64_t number;

	if (hr_pfw_has(l, HR_PFW_PID) && pid->type == HR_PFW_STRING && hr__pfw_int(pid, &number) &&
	    number > 0)
		hr_import_pid_note(f, (uint64_t)number);
	if ((!record_is(l, "HH") && !record_is(l, "SH")) || !hr__pfw_is_global(&l->v[HR_PFW_VALUE]))
		return 0;
	return hr_import_shared_add(f, record_is(l, "HH") ? HR_IMPORT_HOSTS : HR_IMPORT_TEXTS,
				    hr_path_id(l->v[HR_PFW_VALUE].p, l->v[HR_PFW_VALUE].n), text->p,
				    text->n);
}

void hr__pfw_survey(struct hr_import_file *f, const uint8_t *head, size_t bytes)
{
	hr__pfw_line_init();
	(void)lines_each((const char *)head, bytes, survey_visit, f);
}

/* Hosts and files may have the same hash. */
static uint64_t host_key(uint64_t hash)
{
	return hash ^ 1; /* hr_path_id clears the lowest bits */
}

static int host_visit(void *context, const struct hr_pfw_line *l)
{
	const struct hr_pfw_value *text = &l->v[HR_PFW_ARG_NAME];
	struct pfw *p = context;

	if (!record_is(l, "HH"))
		return 0;
	return hr__pfw_name_add(p, host_key(hr_path_id(l->v[HR_PFW_VALUE].p, l->v[HR_PFW_VALUE].n)),
				text->p, text->n);
}

int hr__pfw_host_record(struct pfw *p)
{
	return host_visit(p, &p->line);
}

/* Reads all hosts of the file, for a record HH that comes after the first use of its hash. */
static int hosts_read(struct pfw *p)
{
	struct hr_window w;
	struct hr_input *in;
	int r = hr_input_open(p->f->path, &in);

	if (r)
		return r;
	p->hosts_complete = true;
	r = hr_window_init(&w, in, HOSTS_BYTES);
	while (!r && !w.ended) {
		const char *last = memrchr(w.p, '\n', w.used);

		if (last) {
			w.at = (size_t)(last + 1 - w.p);
			r = lines_each(w.p, w.at, host_visit, p);
		}
		if (!r)
			r = hr_window_more(&w);
		if (r == -E2BIG) { /* too long: it is no record */
			w.at = w.used;
			r = 0;
		}
		r = r > 0 ? 0 : r;
	}
	hr_input_close(in);
	free(w.p);
	return r;
}

/*
 * Finds the name of a host by its hash (malloc'ed): in this file, else in the begin of any file. It
 * is "host-HASH" if none has it.
 */
static int host_name(struct pfw *p, uint64_t hash, char **ret)
{
	const struct pfw_name *name = hr__pfw_name(p, host_key(hash));
	const struct hr_pfw_value *v = &p->line.v[HR_PFW_HHASH];
	size_t bytes;
	int r = 0;

	*ret = NULL;
	if (!name && !p->hosts_complete) {
		r = hosts_read(p);
		name = hr__pfw_name(p, host_key(hash));
	}
	if (r)
		return r;
	if (name)
		*ret = strndup(name->text, name->bytes);
	else
		*ret = hr_import_shared_find(p->f->import, HR_IMPORT_HOSTS, hash, &bytes);
	if (!name && !*ret && asprintf(ret, "host-%.*s", (int)(v->n < 64 ? v->n : 64), v->p) < 0)
		*ret = NULL;
	return *ret ? 0 : -ENOMEM;
}

/* Finds or adds the node of a stream. Two hashes of hosts may be those of one node. */
static int node_add(struct pfw *p, uint64_t host, struct hr_import_stream *s)
{
	uint32_t i = 0;

	while (i < p->n_nodes && p->nodes[i].s != s)
		i++;
	if (i == p->n_nodes) {
		if (!hr_array_reserve(p->nodes, p->n_nodes, p->nodes_room))
			return -ENOMEM;
		p->nodes[p->n_nodes++] = (struct pfw_node){.s = s};
	}
	p->last_node = i;
	p->last_host = host;
	return hr_map64_set(&p->node_of, host, i);
}

static int node_open(struct pfw *p, uint64_t host)
{
	bool hashed = hr_pfw_has(&p->line, HR_PFW_HHASH);
	struct hr_import_stream *s;
	char *owned = NULL;
	const char *name;
	size_t bytes = 0;
	int r = 0;

	if (p->n_nodes >= HR_IMPORT_NODES_MOST)
		return -EBADMSG;
	if (hashed) {
		r = host_name(p, host, &owned);
		name = owned;
		bytes = owned ? strlen(owned) : 0;
	} else {
		name = hr__pfw_string(p, HR_PFW_HOSTNAME, &bytes);
		r = name ? 0 : -ENOMEM;
	}
	if (!r)
		r = hr_import_stream(p->f, name, bytes, &s);
	free(owned);
	return r ? r : node_add(p, host, s);
}

int hr__pfw_node(struct pfw *p, struct pfw_node **ret)
{
	uint64_t host = 0;
	uint32_t i;
	int r;

	if (hr_pfw_has(&p->line, HR_PFW_HHASH))
		host = hr__pfw_token(p, HR_PFW_HHASH);
	else if (hr_pfw_has(&p->line, HR_PFW_HOSTNAME))
		host = hr__pfw_token(p, HR_PFW_HOSTNAME);
	else if (p->n_nodes) /* of the line before */
		host = p->last_host;
	if (__builtin_expect(host != p->last_host || !p->n_nodes, 0)) {
		i = hr_map64_get(&p->node_of, host);
		if (i == HR_MAP64_NONE) {
			r = node_open(p, host);
			if (r)
				return r;
		} else {
			p->last_node = i;
			p->last_host = host;
		}
	}
	*ret = &p->nodes[p->last_node];
	return 0;
}

/* ---- processes and threads ------------------------------------------------------------------- */

struct pfw_pid *hr__pfw_pid_add(struct pfw *p, struct pfw_node *n, int32_t pid)
{
	struct hr_import_process *process;
	struct pfw_pid *added;
	uint32_t proc;

	if (!hr_array_reserve(n->pids, n->n_pids, n->pids_room))
		return NULL;
	added = &n->pids[n->n_pids];
	proc = hr_import_process(n->s, pid);
	if (!proc)
		return NULL;
	*added = (struct pfw_pid){
	    .pid = pid, .proc = proc, .older = hr_map64_get(&n->pid_of, (uint32_t)pid)};
	if (hr_map64_set(&n->pid_of, (uint32_t)pid, n->n_pids))
		return NULL;
	n->n_pids++;
	if (p->ranks && p->line.v[HR_PFW_PID].type == HR_PFW_STRING) {
		process = hr_import_process_at(n->s, proc);
		process->rank = pid;
		process->rank_source = "pid";
	}
	return added;
}

/* Whether the process had its pid when something started. */
static bool pid_covers(const struct pfw_pid *pid, uint64_t start_ns)
{
	return pid->start_ns <= start_ns || pid->older == NONE;
}

uint32_t hr__pfw_process(struct pfw *p, struct pfw_node *n, uint64_t start_ns)
{
	int32_t pid = (int32_t)hr__pfw_arg(p, HR_PFW_PID, 0);
	uint32_t i = hr_map64_get(&n->pid_of, (uint32_t)pid);
	struct pfw_pid *added;

	if (i == HR_MAP64_NONE) {
		added = hr__pfw_pid_add(p, n, pid);
		return added ? added->proc : 0;
	}
	while (!pid_covers(&n->pids[i], start_ns))
		i = n->pids[i].older;
	return n->pids[i].proc;
}

uint32_t hr__pfw_thread(struct pfw *p, struct pfw_node *n, uint64_t start_ns)
{
	uint32_t pid = (uint32_t)hr__pfw_arg(p, HR_PFW_PID, 0);
	uint32_t tid = (uint32_t)hr__pfw_arg(p, HR_PFW_TID, pid);
	uint64_t key = (uint64_t)pid << 32 | tid;
	uint32_t thread = hr_map64_get(&n->thread_of, key), i, proc;

	if (__builtin_expect(thread != HR_MAP64_NONE, 1))
		return thread;
	proc = hr__pfw_process(p, n, start_ns);
	thread = proc ? hr_import_thread(n->s, proc, tid) : 0;
	i = hr_map64_get(&n->pid_of, pid);
	if (thread && n->pids[i].older == NONE && hr_map64_set(&n->thread_of, key, thread))
		return 0;
	return thread;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The first use of a hash, whose name may come later. */
static uint32_t hashed_file_add(struct pfw *p, struct pfw_node *n, enum hr_pfw_key key,
				uint64_t hash)
{
	const struct pfw_name *name = hr__pfw_name(p, hash);
	const struct hr_pfw_value *v = &p->line.v[key];
	char fallback[96];
	uint32_t file;

	if (name) {
		file = hr_import_path(n->s, name->text, name->bytes,
				      hr__pfw_arg(p, HR_PFW_RT, 0) == 1);
	} else {
		snprintf(fallback, sizeof(fallback), "fhash:%.*s", (int)(v->n < 64 ? v->n : 64),
			 v->p);
		file = hr_import_path_later(n->s, hash, fallback);
	}
	return file && hr_map64_set(&n->file_of, hash, file) ? 0 : file;
}

uint32_t hr__pfw_hashed_file(struct pfw *p, struct pfw_node *n, enum hr_pfw_key key)
{
	uint64_t hash = hr__pfw_token(p, key);
	uint32_t file = hr_map64_get(&n->file_of, hash);

	return file != HR_MAP64_NONE ? file : hashed_file_add(p, n, key, hash);
}

static uint32_t named_file(struct pfw *p, struct pfw_node *n)
{
	uint64_t hash = hr__pfw_token(p, HR_PFW_FNAME);
	uint32_t file = hr_map64_get(&n->file_of, hash);
	const char *path;
	size_t bytes;

	if (__builtin_expect(file != HR_MAP64_NONE, 1))
		return file;
	path = hr__pfw_string(p, HR_PFW_FNAME, &bytes);
	file = path ? hr_import_path(n->s, path, bytes, false) : 0;
	return file && hr_map64_set(&n->file_of, hash, file) ? 0 : file;
}

uint32_t hr__pfw_file(struct pfw *p, struct pfw_node *n)
{
	if (hr_pfw_has(&p->line, HR_PFW_FNAME))
		return named_file(p, n);
	return hr_pfw_has(&p->line, HR_PFW_FHASH) ? hr__pfw_hashed_file(p, n, HR_PFW_FHASH) : 0;
}

void hr__pfw_done(struct pfw *p)
{
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		free(p->nodes[i].pids);
		hr_map64_done(&p->nodes[i].pid_of);
		hr_map64_done(&p->nodes[i].thread_of);
		hr_map64_done(&p->nodes[i].file_of);
	}
	free(p->nodes);
	hr_map64_done(&p->node_of);
	free(p->names);
	hr_map64_done(&p->name_of);
	hr_map64_done(&p->op_of);
	hr_arena_free(&p->texts);
	free(p->text);
}
