/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training that failed because a signal killed it or a worker, or because of an exception while a
 * batch was made.
 */
#include "query/diagnosis/findings_internal.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Signals that end a program before its end, and what helps. */
static const struct deadly {
	const char *name;
	const char *of_worker, *of_training; /* of_training NULL: the same */
} signals[] = {
    {"SIGBUS",
     "find out whether /dev/shm is full (df -h /dev/shm), through which workers hand over batches; "
     "then enlarge it (docker run --shm-size, in Kubernetes an emptyDir in memory), or set fewer "
     "workers or a smaller prefetch_factor",
     "find out whether /dev/shm or another file system in memory is full, or a file that the "
     "program has mapped became shorter"},
    {"SIGKILL",
     "find out whether memory was short (journalctl -k shows 'Killed process', memory.events of "
     "the job's cgroup counts oom_kill); then set fewer workers or a smaller prefetch_factor, or "
     "request more memory",
     "find out who sent it: the kernel, because memory was short (journalctl -k shows 'Killed "
     "process', memory.events of the job's cgroup counts oom_kill), the scheduler, or a person"},
    {"SIGKILL (oom)",
     "request more memory, or use less: fewer workers, a smaller prefetch_factor, or no lists of "
     "Python objects in the data set, of which each worker gets a copy",
     "request more memory, or use less: smaller batches, fewer workers"},
    {"SIGSEGV",
     "find the native code that failed: PYTHONFAULTHANDLER=1 prints the stack when it fails "
     "again; num_workers=0 shows whether it also fails without a fork",
     "find the native code that failed: PYTHONFAULTHANDLER=1 prints the stack when it fails "
     "again"},
    {"SIGABRT",
     "read the message that the library printed before it ended the program; "
     "PYTHONFAULTHANDLER=1 prints the stack when it fails again",
     NULL},
    {"SIGILL",
     "find the library that was built for another processor: PYTHONFAULTHANDLER=1 prints the "
     "stack when it fails again",
     NULL},
    {"SIGFPE",
     "find the native code that divided by zero: PYTHONFAULTHANDLER=1 prints the stack when it "
     "fails again",
     NULL},
};

/* Training processes and workers that such a signal killed. */
struct victims {
	const struct hr_process *first, *trainer; /* `trainer` started `first`, or is it */
	int64_t first_ns;			  /* wall clock: the end of `first` */
	size_t life;				  /* of `trainer` */
	size_t n;
};

static const struct deadly *killer_of(const struct hr_process *p)
{
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (strcmp(p->msg->exit, signals[i].name) == 0)
			return &signals[i];
	return NULL;
}

static void add_victim(struct victims *v, const struct hr_process *p,
		       const struct hr_process *trainer, size_t life, int64_t end_ns)
{
	if (killer_of(p) == NULL || (v->n++ > 0 && end_ns >= v->first_ns))
		return;
	v->first = p;
	v->first_ns = end_ns;
	v->trainer = trainer;
	v->life = life;
}

static void add_victims(const struct hr_training_job *j, size_t life, struct victims *v)
{
	const struct hr_train_life *l = &j->d->lives.list[life];
	const struct hr_qstream *st = &j->d->q->streams[l->stream];
	const struct hr_process *trainer = hr_stream_process(st->s, l->proc);

	add_victim(v, trainer, trainer, life, hr_wall_ns(st, trainer->msg->end_ns));
	if (strcmp(trainer->msg->exit, "0") == 0)
		return; /* its work was complete */
	if (killer_of(trainer) == NULL && strncmp(trainer->msg->exit, "SIG", strlen("SIG")) == 0)
		return; /* somebody has ended the job */
	for (size_t i = 0; i < st->s->n_processes; i++) {
		const struct hr_process *p = &st->s->processes[i];

		if (p->msg->parent_proc == l->proc && p->worker >= 0)
			add_victim(v, p, trainer, life, hr_wall_ns(st, p->msg->end_ns));
	}
}

/* Sets the rank and the worker of a finding about this process. */
static void set_process(struct hr_training_job *j, struct hr_finding *f, const struct hr_process *p,
			size_t life)
{
	if (j->d->lives.list[life].rank >= 0)
		hr__finding_rank(j, f, life);
	if (p->msg->loader_worker_plus1 > 0)
		f->worker = p->msg->loader_worker_plus1 - 1;
}

static const char *who_text(struct hr_training_job *j, const struct hr_process *p, bool is_worker)
{
	return hr__finding_text(j, "%s process %d", is_worker ? "worker" : "the training",
				p->msg->pid);
}

/* Returns whether there are victims, after it has made their finding. */
static bool find_killed(struct hr_training_job *j)
{
	struct victims v = {0};
	const struct deadly *by;
	struct hr_finding *f;
	const char *who;
	bool is_worker;

	for (size_t i = j->first; i < j->end; i++)
		if (hr__job_has(j, i))
			add_victims(j, i, &v);
	f = v.n > 0 ? hr__finding_new(j, HR_FOUND_FAILED, 0) : NULL;
	if (f == NULL)
		return v.n > 0;
	by = killer_of(v.first);
	is_worker = v.first != v.trainer;
	set_process(j, f, v.first, v.life);
	who = who_text(j, v.first, is_worker);
	f->meaning =
	    v.n == 1 ? hr__finding_text(j, "%s was killed by %s", who, by->name)
		     : hr__finding_text(j, "%zu processes were killed by signals: first %s, by %s",
					v.n, who, by->name);
	f->evidence = hr__finding_text(
	    j, "%s after its start",
	    hr__seconds((double)(v.first->msg->end_ns - v.first->msg->start_ns) / 1e9).s);
	if (is_worker && isdigit((unsigned char)v.trainer->msg->exit[0]))
		f->evidence =
		    hr__finding_text(j, "%s; the training process ended with exit status %ld",
				     f->evidence, strtol(v.trainer->msg->exit, NULL, 10));
	f->action = is_worker || by->of_training == NULL ? by->of_worker : by->of_training;
	return true;
}

/* ---- exceptions ---- */

/* Whether the process ended by itself, and not well. */
static bool has_failed(const struct hr_process *p)
{
	return isdigit((unsigned char)p->msg->exit[0]) && strcmp(p->msg->exit, "0") != 0;
}

/* The first exception in a training process that failed later, or in a worker of it. */
struct raised {
	const struct hr_exception *first;
	size_t life, processes;
	bool is_worker;
};

static void add_raised(struct raised *to, const struct hr_exception *e, size_t life, bool is_worker)
{
	if (e->at == 0)
		return;
	if (to->processes++ == 0 || e->at < to->first->at) {
		to->first = e;
		to->life = life;
		to->is_worker = is_worker;
	}
}

static void add_raised_of(const struct hr_training_job *j, size_t life, struct raised *to)
{
	const struct hr_train_lives *all = &j->d->lives;
	const struct hr_train_life *l = &all->list[life];

	if (!has_failed(hr__job_process(j, l->stream, l->proc)))
		return;
	add_raised(to, &l->raised, life, false);
	for (size_t i = 0; i < all->n_workers; i++)
		if (all->workers[i].stream == l->stream && all->workers[i].parent == l->proc)
			add_raised(to, &all->workers[i].raised, life, true);
}

static void find_raised(struct hr_training_job *j)
{
	const struct hr_process *trainer, *process;
	const struct hr_train_life *life;
	struct raised r = {0};
	struct hr_finding *f;

	for (size_t i = j->first; i < j->end; i++)
		if (hr__job_has(j, i))
			add_raised_of(j, i, &r);
	f = r.processes > 0 ? hr__finding_new(j, HR_FOUND_FAILED, 0) : NULL;
	if (f == NULL)
		return;
	life = &j->d->lives.list[r.life];
	trainer = hr__job_process(j, life->stream, life->proc);
	process = hr__job_process(j, life->stream, r.first->proc);
	set_process(j, f, process, r.life);
	f->meaning = hr__finding_text(j, "%s raised %s while it made a batch",
				      who_text(j, process, r.is_worker),
				      r.first->type[0] != '\0' ? r.first->type : "an exception");
	f->line = r.first->line;
	f->evidence =
	    hr__finding_text(j, "%s before the training process ended with exit status %ld",
			     hr__seconds(fmax(0, (double)(life->to - r.first->at) / 1e9)).s,
			     strtol(trainer->msg->exit, NULL, 10));
	if (r.processes > 1)
		f->evidence = hr__finding_text(j, "%s; it is the first of %zu processes that did",
					       f->evidence, r.processes);
	f->action = "read the message of the exception in the program's output, and correct this "
		    "line or the sample that it cannot use";
}

void hr__find_failed(struct hr_training_job *j)
{
	if (!find_killed(j))
		find_raised(j);
}
