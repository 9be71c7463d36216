/* SPDX-License-Identifier: Apache-2.0 */
/* A training that failed because a signal killed it, or a worker of it. */
#include "query/diagnosis/findings_internal.h"

#include <ctype.h>
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

void hr__find_killed(struct hr_training_job *j)
{
	struct victims v = {0};
	const struct deadly *by;
	struct hr_finding *f;
	const char *who;
	bool is_worker;

	for (size_t i = j->first; i < j->end; i++)
		if (hr__job_has(j, i))
			add_victims(j, i, &v);
	f = v.n > 0 ? hr__finding_new(j, HR_FOUND_KILLED, 0) : NULL;
	if (f == NULL)
		return;
	by = killer_of(v.first);
	is_worker = v.first != v.trainer;
	if (v.trainer->rank >= 0)
		hr__finding_rank(j, f, v.life);
	if (is_worker && v.first->msg->loader_worker_plus1 > 0)
		f->worker = v.first->msg->loader_worker_plus1 - 1;
	who = hr__finding_text(j, "%s process %d", is_worker ? "worker" : "the training",
			       v.first->msg->pid);
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
}
