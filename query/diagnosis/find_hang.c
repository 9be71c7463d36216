/* SPDX-License-Identifier: Apache-2.0 */
/* A training that makes no step: what its thread, or the worker that it waits for, does. */
#include "query/diagnosis/findings_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"

/* What a thread does in a system call, and what helps. */
static const struct in_call {
	const char *calls; /* separated by blanks */
	const char *does;
	const char
	    *to; /* the target of the call follows or, if it is not known, this; NULL: none */
	const char *action;
} kinds[] = {
    {"futex", "waits for a lock or for another thread", NULL,
     "find out which thread has the lock, and why it does not release it"},
    {"read pread64 readv", "reads", "a file",
     "find out why nothing arrives: storage that does not answer, or a pipe or terminal into "
     "which nothing is written"},
    {"write pwrite64 writev", "writes to", "a file",
     "find out why it takes no data: storage that does not answer, or a pipe that nothing reads"},
    {"recvfrom recvmsg accept accept4", "waits for data from", "the network",
     "find out why the other side does not answer, and set a timeout"},
    {"sendto sendmsg connect", "sends to", "the network",
     "find out why the other side does not answer, and set a timeout"},
    {"poll ppoll select pselect6 epoll_wait epoll_pwait", "waits for files, pipes or connections",
     NULL, "find out why nothing arrives, and set a timeout"},
    {"wait4 waitid", "waits for the end of", "a child process",
     "find out why this process does not end"},
    {"nanosleep clock_nanosleep", "sleeps", NULL, "find out why this line sleeps"},
    {"flock fcntl", "waits for a lock on", "a file",
     "find the process that has the lock (lslocks)"},
    {"fsync fdatasync fallocate ioctl", "waits for", "a file or device",
     "find out why this storage or device does not answer"},
    {"openat open stat", "looks up a path", NULL, "find out why this storage does not answer"},
};
static const struct in_call runs = {
    "", "runs Python or C code", NULL,
    "find out what the code at this line does, and whether it ends"};
static const struct in_call other = {"", "is in a system call", NULL,
				     "find out what this line waits for"};

static const struct in_call *kind_of(const struct hr_hang *h)
{
	if (h->call[0] == '\0')
		return &runs;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (hr_text_has_word(kinds[i].calls, h->call))
			return &kinds[i];
	return &other;
}

/*
 * The training process that keeps the job (NULL: none hangs), and its worker that does (NULL: it is
 * the process itself).
 */
struct culprit {
	const struct hr_train_life *life;
	size_t index;
	const struct hr_worker *worker;
	int sure;    /* 2: it does not wait for another rank; 1: perhaps */
	size_t hang; /* number of training processes that hang */
};

/* Whether the process lives, or a signal ended it: one that ends by itself has not hung. */
static bool is_stopped(const struct hr_training_job *j, const struct hr_train_life *life)
{
	const struct hr_process *p = hr__job_process(j, life->stream, life->proc);

	return p->msg->end_ns == 0 || strncmp(p->msg->exit, "SIG", strlen("SIG")) == 0;
}

/* Returns the worker of a process that has been longest at its batch; NULL: none hangs. */
static const struct hr_worker *hung_worker(const struct hr_training_job *j,
					   const struct hr_train_life *life)
{
	const struct hr_train_lives *l = &j->d->lives;
	const struct hr_worker *found = NULL;

	for (size_t i = 0; i < l->n_workers; i++) {
		const struct hr_worker *w = &l->workers[i];

		if (w->stream == life->stream && w->parent == life->proc && w->hang.at != 0 &&
		    (found == NULL || w->hang.since_ns > found->hang.since_ns))
			found = w;
	}
	return found;
}

/* Whether a thread is in a collective, or in backward(), in which DistributedDataParallel is. */
static bool waits_for_ranks(const struct hr_hang *h)
{
	return strstr(h->stack, "distributed/") != NULL || strstr(h->stack, "autograd/") != NULL;
}

static struct culprit find_culprit(const struct hr_training_job *j)
{
	struct culprit best = {0};

	for (size_t i = j->first; i < j->end; i++) {
		const struct hr_train_life *life = &j->d->lives.list[i];
		struct culprit c = {.life = life, .index = i};

		if (!hr__job_has(j, i) || life->hang.at == 0 || !is_stopped(j, life))
			continue;
		best.hang++;
		if (life->hang.in == HR_HANG_WAIT)
			c.worker = hung_worker(j, life);
		c.sure = c.worker != NULL || !waits_for_ranks(&life->hang) ? 2 : 1;
		if (c.sure < best.sure ||
		    (c.sure == best.sure && life->hang.since_ns <= best.life->hang.since_ns))
			continue;
		c.hang = best.hang;
		best = c;
	}
	return best;
}

/* Returns the seconds since the work of a hang began until the end of the training process. */
static double lasted(const struct hr_train_life *life, const struct hr_hang *h)
{
	return (double)(life->to - h->at) / 1e9 + (double)h->since_ns / 1e9;
}

/* Returns the seconds of the wait that has not ended, if it is a block whose cause is not known. */
static double open_wait(const struct hr_train_life *life)
{
	size_t n = hr_array_search(i, life->n, life->blocks[i].from <= life->hang.at);
	const struct hr_block *b = n > 0 ? &life->blocks[n - 1] : NULL;

	return life->hang.at != 0 && b != NULL && b->kind == HR_BLOCK_UNKNOWN
		   ? (double)(b->to - b->from) / 1e9
		   : 0;
}

/* Example: "reads /tmp/pipe". */
static const char *does(struct hr_training_job *j, const struct hr_hang *h)
{
	const struct in_call *kind = kind_of(h);

	if (kind->to == NULL)
		return kind->does;
	return hr__finding_text(j, "%s %s", kind->does,
				h->target[0] != '\0' ? h->target : kind->to);
}

/* Example: "1 of 2 ranks waits in init_process_group() for the others". */
static const char *group_text(struct hr_training_job *j, const struct culprit *c)
{
	unsigned of = hr__job_process(j, c->life->stream, c->life->proc)->msg->world_size;
	const char *ranks =
	    of > 0 ? hr__finding_text(j, "%zu of %u ranks", c->hang, of)
		   : hr__finding_text(j, "%zu rank%s", c->hang, c->hang == 1 ? "" : "s");

	return hr__finding_text(j, "%s wait%s in init_process_group() for the others", ranks,
				c->hang == 1 ? "s" : "");
}

static const char *what_for(struct hr_training_job *j, const struct culprit *c,
			    const struct hr_hang *h)
{
	if (c->worker != NULL)
		return hr__finding_text(
		    j, "the training waits for a batch of worker process %d, which %s",
		    hr__job_process(j, c->worker->stream, c->worker->proc)->msg->pid, does(j, h));
	if (h->in == HR_HANG_WAIT)
		return "the training waits for a batch of its workers";
	if (h->in == HR_HANG_GROUP)
		return group_text(j, c);
	if (c->sure == 1 && c->hang > 1)
		return "the ranks wait for each other in backward() or a collective";
	return hr__finding_text(j, "the training thread %s", does(j, h));
}

static const char *evidence(struct hr_training_job *j, const struct culprit *c,
			    const struct hr_hang *h)
{
	static const char *const works[] = {[HR_HANG_STEP] = "this step",
					    [HR_HANG_WAIT] = "this wait",
					    [HR_HANG_FETCH] = "this batch",
					    [HR_HANG_GROUP] = "this call"};
	const char *text =
	    hr__finding_text(j, "%s has taken %s", works[h->in], hr__seconds(lasted(c->life, h)).s);

	if (h->usual_ns > 0)
		text = hr__finding_text(j, "%s, earlier ones %s on average", text,
					hr_text_duration(h->usual_ns).s);
	if (h->call[0] != '\0')
		text =
		    hr__finding_text(j, "%s; the thread is in the system call %s", text, h->call);
	if (h->stack[0] != '\0')
		text = hr__finding_text(j, "%s; its stack: %s", text, h->stack);
	if (c->hang > 1)
		text = hr__finding_text(j, "%s; %zu of %zu training processes make no step", text,
					c->hang, j->lives);
	if (h->others[0] != '\0')
		text = hr__finding_text(j, "%s; other threads of the process: %s", text, h->others);
	return text;
}

static const char *action(struct hr_training_job *j, const struct culprit *c,
			  const struct hr_hang *h)
{
	const struct in_call *kind = kind_of(h);
	const char *text = kind->action;

	if (strstr(h->stack, "multiprocessing/pool.py") != NULL)
		return "find out whether a process of the pool was killed (journalctl -k shows "
		       "'Killed process'), after which multiprocessing.Pool waits for ever; "
		       "concurrent.futures.ProcessPoolExecutor raises an error instead";
	if (h->in == HR_HANG_GROUP)
		return "find out which rank is missing (`headrace top --by process` lists them): "
		       "it "
		       "was not started, has ended, does something else first, or has another "
		       "address, port or WORLD_SIZE";
	if (c->worker == NULL && h->in != HR_HANG_WAIT)
		return text;
	if (c->worker == NULL)
		text = "find out what the workers do (`headrace top --by process` lists the PIDs, "
		       "`py-spy dump --pid PID` shows the lines)";
	else if (kind == &kinds[0])
		text = hr__finding_text(
		    j,
		    "%s; a forked worker lacks the threads of its parent, and a lock that was "
		    "locked then stays locked: make pools and locks in the worker, or use "
		    "multiprocessing_context='spawn'",
		    text);
	return hr__finding_text(
	    j, "%s; timeout=SECONDS of the DataLoader makes such a wait an error", text);
}

void hr__find_hang(struct hr_training_job *j)
{
	struct culprit c = find_culprit(j);
	const struct hr_hang *h;
	struct hr_finding *f;

	if (c.life == NULL)
		return;
	h = c.worker != NULL ? &c.worker->hang : &c.life->hang;
	f = hr__finding_new(j, HR_FOUND_HANG, lasted(c.life, &c.life->hang));
	if (f == NULL)
		return;
	for (size_t i = j->first; i < j->end; i++)
		j->hung +=
		    hr__job_has(j, i) ? open_wait(&j->d->lives.list[i]) / (double)j->lives : 0;
	if (c.life->rank >= 0)
		hr__finding_rank(j, f, c.index);
	if (c.worker != NULL)
		f->worker = c.worker->number;
	f->meaning = hr__finding_text(j, "no step in the last %s: %s", hr__seconds(f->lost).s,
				      what_for(j, &c, h));
	f->line = h->line;
	f->evidence = evidence(j, &c, h);
	f->action = action(j, &c, h);
}
