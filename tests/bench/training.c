/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a training job: when each rank waits and computes, and what its fetches do. */
#include "tests/bench/training.h"

#include <stdlib.h>

#define MS	     1e6
#define CREATE_NS    (12 * MS) /* to start a worker */
#define START_NS     (60 * MS) /* until a worker begins its first fetch */
#define HANDOVER_NS  (0.4 * MS)
#define END_NS	     (30 * MS)
#define FORWARD_NS   (25 * MS)
#define BACKWARD_NS  (50 * MS)
#define VARIES_NS    (0.5 * MS)
#define OPTIMIZER_NS (4 * MS)
#define GAP_NS	     (0.3 * MS)
#define SAVE_NS	     (900 * MS)
#define SLOWER	     8 /* the slow storage */
#define FILE_SAMPLES 150u

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void call(struct hr_train_call **at, uint64_t *now, uint16_t op, uint64_t ns, uint64_t pause)
{
	struct hr_train_call *c = (*at)++;

	*c = (struct hr_train_call){.from = *now + pause, .ns = ns, .op = op};
	*now = c->from + ns;
}

/* Reads one sample: open, fstat, lseek, read, a read at the end of the sample, close. */
static void read_sample(struct hr_gen_random *r, struct hr_train_call **at, uint64_t *now,
			uint32_t file, uint64_t offset, double slower)
{
	struct hr_train_call *first = *at;
	uint64_t bytes = HR_TRAIN_SAMPLE / 2 + hr_gen_random(r) % (HR_TRAIN_SAMPLE / 2);

	call(at, now, HR_OP_open64, hr_gen_noisy(r, 220e3 * slower), hr_gen_noisy(r, 9000));
	call(at, now, HR_OP_fstat64, hr_gen_noisy(r, 560), 2500);
	call(at, now, HR_OP_lseek64, hr_gen_noisy(r, 310), 2500);
	first[2].offset = offset;
	call(at, now, HR_OP_read, hr_gen_noisy(r, (400e3 + 4.0 * (double)bytes) * slower), 2500);
	first[3].offset = offset;
	first[3].bytes = bytes;
	call(at, now, HR_OP_read, hr_gen_noisy(r, 400), 2500);
	first[4].offset = offset + bytes;
	call(at, now, HR_OP_close, hr_gen_noisy(r, 900), 2500);
	for (unsigned i = 0; i < 6; i++)
		first[i].file = file;
}

uint64_t hr_train_fetch(struct hr_train_plan *p, uint32_t rank, uint32_t pass, uint32_t batch,
			uint64_t from, struct hr_train_call *calls, size_t *ret_n,
			uint64_t *ret_cpu_ns)
{
	uint64_t samples = (uint64_t)p->config.files * FILE_SAMPLES, now = from;
	double slower = rank == p->slow ? SLOWER : 1;
	struct hr_train_call *at = calls;

	p->random.state = hr_gen_mix((uint64_t)rank << 40 ^ (uint64_t)pass << 32 ^ (batch + 1));
	*ret_cpu_ns = 0;
	for (unsigned i = 0; i < HR_TRAIN_BATCH; i++) {
		uint64_t sample = hr_gen_random(&p->random) % samples;
		uint64_t decode = hr_gen_noisy(&p->random, 4.5 * MS);

		read_sample(&p->random, &at, &now, (uint32_t)(sample % p->config.files),
			    sample / p->config.files * HR_TRAIN_SAMPLE, slower);
		now += decode;
		*ret_cpu_ns += decode;
	}
	*ret_n = (size_t)(at - calls);
	return now;
}

/* A fetch begins when its worker has time, and the batch has been requested. */
static void plan_wait(struct hr_train_plan *p, uint32_t rank, uint32_t pass, uint32_t batch,
		      uint64_t now)
{
	uint32_t workers = hr_train_workers(rank), ahead = workers * HR_TRAIN_PREFETCH;
	struct hr_train_step *s = hr_train_step_of(p, rank, pass, batch);
	uint64_t ready = hr_train_pass_of(p, rank, pass)->created + (uint64_t)START_NS, cpu_ns;
	struct hr_train_call calls[HR_TRAIN_FETCH_MAX];
	size_t n;

	if (batch >= workers)
		ready = most(ready, s[-(ptrdiff_t)workers].fetch_to + 100000);
	if (batch >= ahead)
		ready = most(ready, s[-(ptrdiff_t)ahead].wait_to);
	s->fetch_from = ready;
	s->fetch_to = hr_train_fetch(p, rank, pass, batch, ready, calls, &n, &cpu_ns);
	s->wait_from = now;
	s->wait_to = most(now, s->fetch_to) + hr_gen_noisy(&p->random, HANDOVER_NS);
	s->backward_from = s->wait_to + (uint64_t)FORWARD_NS + hr_gen_noisy(&p->random, VARIES_NS);
	s->backward_to =
	    s->backward_from + (uint64_t)BACKWARD_NS + hr_gen_noisy(&p->random, VARIES_NS);
}

/* All ranks end backward() together. Returns when they begin the next step. */
static uint64_t plan_step(struct hr_train_plan *p, uint32_t pass, uint32_t batch, uint64_t now)
{
	uint64_t together = 0;

	for (uint32_t rank = 0; rank < p->ranks; rank++) {
		plan_wait(p, rank, pass, batch, now);
		together = most(together, hr_train_step_of(p, rank, pass, batch)->backward_to);
	}
	for (uint32_t rank = 0; rank < p->ranks; rank++) {
		struct hr_train_step *s = hr_train_step_of(p, rank, pass, batch);

		s->backward_to = together;
		s->optimized = together + (uint64_t)OPTIMIZER_NS;
	}
	return together + (uint64_t)(OPTIMIZER_NS + GAP_NS);
}

static uint64_t plan_pass(struct hr_train_plan *p, uint32_t pass, uint64_t now)
{
	uint64_t last = 0, begin = now;

	for (uint32_t rank = 0; rank < p->ranks; rank++) {
		struct hr_train_pass *t = hr_train_pass_of(p, rank, pass);

		t->from = now;
		t->created = now + (uint64_t)(CREATE_NS * hr_train_workers(rank));
		begin = most(begin, t->created);
	}
	now = begin;
	for (uint32_t batch = 0; batch < p->batches; batch++)
		now = plan_step(p, pass, batch, now);
	for (uint32_t rank = 0; rank < p->ranks; rank++) {
		struct hr_train_pass *t = hr_train_pass_of(p, rank, pass);

		t->last_wait = now;
		t->to = now + (uint64_t)END_NS;
		t->saved = t->to + (rank == 0 ? (uint64_t)SAVE_NS : 0);
		last = most(last, t->saved);
	}
	return last + 1000000;
}

void hr_train_plan_make(const struct hr_train_config *config, struct hr_train_plan *ret)
{
	uint64_t now = HR_GEN_BOOT_NS + UINT64_C(8000000000), fetches;

	*ret = (struct hr_train_plan){.config = *config, .ranks = config->nodes * config->local};
	/* Each step has a line of a log, too. */
	fetches = config->events / (HR_TRAIN_FETCH_MAX + 1) / ret->ranks;
	ret->batches = (uint32_t)(fetches / HR_TRAIN_PASSES) + 1;
	ret->slow = ret->ranks / 2 + 5 < ret->ranks ? ret->ranks / 2 + 5 : 0;
	ret->steps = build_must(
	    calloc((size_t)ret->ranks * HR_TRAIN_PASSES * ret->batches, sizeof(*ret->steps)));
	ret->passes =
	    build_must(calloc((size_t)ret->ranks * HR_TRAIN_PASSES, sizeof(*ret->passes)));
	hr_gen_random_init(&ret->random, 1);
	for (uint32_t pass = 0; pass < HR_TRAIN_PASSES; pass++)
		now = plan_pass(ret, pass, now);
}

void hr_train_plan_done(struct hr_train_plan *p)
{
	free(p->steps);
	free(p->passes);
}
