/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about what the training thread computes itself, and what keeps it from computing. */
#include <math.h>
#include <string.h>

#include "query/diagnosis/findings_internal.h"

/*
 * The training thread is a finding if it computes other things than the model for at least
 * MAIN_FACTOR times as long as the model, and for at least the share MAIN_SHARE of the wall time.
 * Chosen, not measured: the time of the model is itself assumed.
 */
#define MAIN_FACTOR 2.0
#define MAIN_SHARE  0.2
/*
 * How many times as long as backward() the model computes. Assumed, not measured: the forward pass
 * takes half as long as backward(), which computes two products for each of its products.
 */
#define MODEL_BACKWARDS 1.5
/* A line outside of the model is a finding from this share of the wall time on. Chosen. */
#define OWN_CODE_SHARE 0.1
/* If the training thread's own I/O takes more than this share of its time, it is the cause. */
#define OWN_CODE_IO 0.3
/*
 * If the training thread waits for a core for a smaller share of its time, all is well: a job in
 * which nothing was to be changed waited for 11 %. Chosen.
 */
#define NO_CORE_LEAST 0.2
/* From so many calls of backward() for a step of the optimizer on, gradients are accumulated. */
#define ACCUMULATED 1.5
/*
 * Of the waits in backward() that an exchange of gradients does not need: the least share that is
 * saved, and the most. Chosen: the exchange also takes the cores of those that compute.
 */
#define EXCHANGE_LOW  0.5
#define EXCHANGE_HIGH 1.5

/* If a smaller share of what an optimizer updates is in rows without a gradient, all is well. */
#define IDLE_SHARE 0.5
/*
 * Without these rows, the step saves at least this share of their part. Chosen. backward() fills
 * their gradient with zeros, which can take all of its time: four planted jobs saved 1.4 times the
 * part of the step.
 */
#define IDLE_LOW 0.6
/*
 * The shares of a step of Adam or AdamW that fused=True saves on two cores, with torch 2.15: 10
 * tensors of 1,000,000 numbers 0.87 and 0.67, 300 of 4,096 numbers 0.87, one of 9,600,000 0.87.
 */
#define FUSED_LOW  0.65
#define FUSED_HIGH 0.9

/* From this share on, batches are mostly padding, whatever their longest sequence is. Chosen. */
#define MOSTLY_PADDED 0.4

static void advise_own_line(struct hr_training_job *j, struct hr_finding *f)
{
	if (j->own_lines.first != NULL) {
		f->line = j->own_lines.where;
		f->action = hr__finding_text(j,
					     "make %s faster, or do it seldom; if it works on the "
					     "batch, do it in the data set, so that workers do it",
					     j->own_lines.first);
	}
	hr__avoid(j, f, 1 << HR_USUAL_STORAGE | 1 << HR_USUAL_WORKERS,
		  "more workers or faster storage: the batches are ready");
}

/* Advises against the remedies for waits: the training does not wait for batches. */
static void avoid_usual(struct hr_training_job *j, struct hr_finding *f)
{
	hr__avoid(j, f, 1 << HR_USUAL_STORAGE | 1 << HR_USUAL_WORKERS,
		  "faster storage or more workers: the batches are ready");
}

/* Whether an accelerator works for the job, so that a line of Python can wait for it. */
static bool is_accelerated(const struct hr_training_job *j)
{
	double asked = hr__job_part(j, HR_PART_WAIT_HIDDEN);

	for (size_t i = j->first; i < j->end; i++)
		asked += j->d->lives.list[i].asked_ns;
	return asked > 0;
}

/*
 * Finds a line in which the training thread is for long, outside of the model. Its own I/O has
 * other causes. Without samples in the model, the line may be the model.
 */
static void find_own_code(struct hr_training_job *j)
{
	double lost = j->own_lines.first_s, io = 0;
	struct hr_finding *f;

	for (unsigned phase = 0; phase < HR_PHASES; phase++)
		for (unsigned part = HR_PART_OWN_READ; part <= HR_PART_OWN_FAULT; part++)
			io += hr_phase_loops(phase) ? j->part[phase][part] : 0;
	if (j->own_lines.first == NULL || j->model_samples < HR_SAMPLES_LEAST ||
	    lost < OWN_CODE_SHARE * j->wall || io > OWN_CODE_IO * lost || is_accelerated(j))
		return;
	f = hr__finding_add(j, HR_FOUND_OWN_CODE, lost);
	if (f == NULL)
		return;
	f->evidence = hr__finding_text(j,
				       "in training loops, outside of the model, backward() and "
				       "optimizers, it was longest in %s",
				       j->own_lines.text);
	advise_own_line(j, f);
}

/*
 * Finds a training thread that computes much outside backward() and optimizers: it probably makes
 * or converts batches.
 */
static void find_main(struct hr_training_job *j)
{
	const struct hr_diagnosis *d = j->d;
	double backward = j->part[HR_PHASE_TRAIN][HR_PART_BACKWARD], lost, cpu = 0;
	double model = MODEL_BACKWARDS * backward + j->part[HR_PHASE_TRAIN][HR_PART_OPTIMIZER];
	double between = backward + j->part[HR_PHASE_TRAIN][HR_PART_COMPUTE] +
			 j->part[HR_PHASE_TRAIN][HR_PART_OPTIMIZER];
	struct hr_finding *f;

	for (size_t i = j->first; i < j->end; i++)
		if (hr__job_has(j, i))
			cpu += hr_life_main_use(&d->lives.list[i]).share / (double)j->lives;
	lost = cpu * between - model;
	/* The negated comparison is also true if `lost` is unknown (NAN). */
	if (backward <= 0 || !(lost > MAIN_FACTOR * model) || lost < MAIN_SHARE * j->wall) {
		find_own_code(j);
		return;
	}
	f = hr__finding_add(j, HR_FOUND_HEAVY_MAIN, lost);
	if (f == NULL)
		return;
	f->evidence = hr__finding_text(
	    j,
	    "the training thread computes for %s in each step; backward() and the optimizer take "
	    "%s of that",
	    hr__seconds(cpu * between / fmax(1, j->batches)).s,
	    hr__seconds((backward + j->part[HR_PHASE_TRAIN][HR_PART_OPTIMIZER]) /
			fmax(1, j->batches))
		.s);
	if (j->own_lines.first != NULL)
		f->evidence = hr__finding_text(j, "%s; outside of the model, it was longest in %s",
					       f->evidence, j->own_lines.text);
	advise_own_line(j, f);
}

/* ---- a core ---- */

/*
 * Whether workers start again and again. They then use cores for imports, which are not part of
 * j->used.
 */
static bool restarts_workers(const struct hr_training_job *j)
{
	return !j->persistent && j->loops > 1 &&
	       hr__job_part(j, HR_PART_WAIT_WORKER_START) >= hr__worth(j);
}

static const char *advise_core(struct hr_training_job *j, struct hr_main_use use)
{
	double made = j->used - use.share - use.others; /* cores that workers use */

	if (j->quota > 0)
		return hr__raise_quota(j);
	if (restarts_workers(j))
		return "start the workers once (persistent_workers=True): while they start, they "
		       "use the cores";
	if (hr__leaves_cores(j))
		return hr__cause_action(HR_FOUND_DISTURBED);
	if (use.others >= HR_PARALLEL_CORES && use.others > made)
		return "let the training process compute with fewer threads "
		       "(torch.set_num_threads), or request more cores";
	if (hr__has_workers(j))
		return hr__finding_text(
		    j, "make %s faster, because workers use the cores; or request more cores",
		    j->line != NULL ? j->line : "the transforms of the data set");
	return "request more cores";
}

/* Finds a training thread that is ready to compute for the next step, but has no core. */
static void find_no_core(struct hr_training_job *j, struct hr_main_use use)
{
	const double *p = j->part[HR_PHASE_TRAIN];
	double between = p[HR_PART_COMPUTE] + p[HR_PART_BACKWARD] + p[HR_PART_OPTIMIZER];
	struct hr_finding *f = use.core < NO_CORE_LEAST
				   ? NULL
				   : hr__finding_add(j, HR_FOUND_NO_CORE, use.core * between);

	if (f == NULL)
		return;
	f->evidence = hr__finding_text(
	    j,
	    "between waits for batches, the training thread computes for %.0f %% of the time, and "
	    "waits for a core for %.0f %%",
	    100 * use.share, 100 * use.core);
	if (!restarts_workers(j))
		f->evidence =
		    hr__finding_text(j, "%s; the job keeps at most %.1f of %g core%s busy",
				     f->evidence, j->used, j->cores, j->cores == 1 ? "" : "s");
	f->action = advise_core(j, use);
	f->gain_high = f->lost;
}

/* ---- gradients ---- */

/* Finds ranks whose backward() waits, but not for a rank that is late (parts.h: stall). */
static void find_gradients(struct hr_training_job *j, struct hr_main_use use)
{
	double all = 0, cpu = 0, calls = 0, steps = 0, lost, each;
	struct hr_finding *f;

	if (j->lives < 2 || is_accelerated(j))
		return;
	for (size_t i = j->first; i < j->end; i++) {
		const struct hr_train_life *life = &j->d->lives.list[i];

		if (!hr__job_has(j, i))
			continue;
		all += (double)life->backward_ns / 1e9 / (double)j->lives;
		cpu += (double)life->backward_cpu_ns / 1e9 / (double)j->lives;
		cpu += (double)j->d->sums[i].ns[HR_PHASE_TRAIN][HR_PART_STALL] / 1e9 /
		       (double)j->lives;
		calls += (double)life->n_backward;
		steps += (double)life->optimized;
	}
	lost = all - cpu - use.core * all;
	f = steps > 0 ? hr__finding_add(j, HR_FOUND_GRADIENTS, lost) : NULL;
	if (f == NULL)
		return;
	each = calls / steps;
	f->line = j->backward_lines.first;
	f->evidence = hr__finding_text(
	    j,
	    "backward() takes %s in each rank; for %.0f %% of it, its thread neither computes nor "
	    "waits for a late rank; %.3g call%s of backward() for each step of the optimizer",
	    hr__seconds(all).s, 100 * lost / all, each, fabs(each - 1) < 0.005 ? "" : "s");
	if (each >= ACCUMULATED) {
		f->action = "exchange gradients only in the last backward() of a step: put the "
			    "others, with their forward passes, into `with model.no_sync():` "
			    "(DistributedDataParallel)";
		f->gain_low = EXCHANGE_LOW * lost * (1 - 1 / each);
		f->gain_high = EXCHANGE_HIGH * lost * (1 - 1 / each);
	} else {
		f->action = "exchange fewer bytes: a larger batch for each rank, several batches "
			    "for each step (with model.no_sync()), or a communication hook of "
			    "DistributedDataParallel (bf16_compress_hook)";
		f->gain_high = lost;
	}
	avoid_usual(j, f);
}

/* ---- optimizers ---- */

/* Advises sparse gradients, because most rows of the parameters have none. */
static void advise_sparse(struct hr_training_job *j, struct hr_finding *f,
			  const struct hr_updates *u)
{
	f->evidence = hr__finding_text(
	    j,
	    "%s; %.0f %% of the %s numbers that %s updates are in rows whose gradient is 0, as in "
	    "the embedding of %s x %s",
	    f->evidence, 100 * u->idle / u->elements, hr_text_count((uint64_t)u->elements).s,
	    u->type, hr_text_count(u->rows).s, hr_text_count(u->columns).s);
	f->action = "update only the rows that a batch uses: torch.nn.Embedding(..., sparse=True), "
		    "and torch.optim.SparseAdam (or SGD) in an optimizer of its own for these "
		    "parameters";
	f->gain_low = IDLE_LOW * f->lost;
	f->gain_high = HR_REST * (f->lost + j->part[HR_PHASE_TRAIN][HR_PART_BACKWARD]);
	f->gain_note = "backward() also becomes shorter";
}

/*
 * Finds an optimizer whose steps take longer than backward(), update rows that have no gradient, or
 * would be much faster in one kernel.
 */
static void find_optimizer(struct hr_training_job *j)
{
	double took = j->part[HR_PHASE_TRAIN][HR_PART_OPTIMIZER], steps = 0;
	double backward = j->part[HR_PHASE_TRAIN][HR_PART_BACKWARD], lost = 0;
	struct hr_updates u = {0};
	struct hr_finding *f;
	bool idle, fusible;

	for (size_t i = j->first; i < j->end; i++) {
		const struct hr_train_life *life = &j->d->lives.list[i];

		if (!hr__job_has(j, i))
			continue;
		steps += (double)life->optimized / (double)j->lives;
		if (life->updates.elements > u.elements)
			u = life->updates;
	}
	idle = u.rows > 0 && u.idle >= IDLE_SHARE * u.elements;
	fusible = !idle && !u.fused && u.type != NULL &&
		  (strcmp(u.type, "Adam") == 0 || strcmp(u.type, "AdamW") == 0) &&
		  FUSED_LOW * took >= OWN_CODE_SHARE * j->wall;
	if (idle)
		lost = took * u.idle / u.elements;
	else if (fusible)
		lost = FUSED_LOW * took;
	else if (backward > 0)
		lost = took - backward;
	f = is_accelerated(j) ? NULL : hr__finding_add(j, HR_FOUND_OPTIMIZER, lost);
	if (f == NULL)
		return;
	f->line = j->optimizer_lines.first;
	f->evidence = hr__finding_text(j, "each step() takes %s; backward() takes %s for it",
				       hr__seconds(took / fmax(1, steps)).s,
				       hr__seconds(backward / fmax(1, steps)).s);
	if (idle) {
		advise_sparse(j, f, &u);
	} else if (fusible) {
		f->action = hr__finding_text(
		    j, "pass fused=True to %s (on the CPU, with PyTorch 2.4 or newer)", u.type);
		f->gain_low = FUSED_LOW * took;
		f->gain_high = FUSED_HIGH * took;
		f->gain_note = "the share depends on the sizes of the parameters";
	} else {
		f->action = "make fewer steps: larger batches, or several batches for each step";
		f->gain_high = f->lost;
	}
	avoid_usual(j, f);
}

/* ---- padding ---- */

/* Finds batches that are padded beyond their longest sequence, or that are mostly padding. */
static void find_padding(struct hr_training_job *j)
{
	const double *p = j->part[HR_PHASE_TRAIN];
	double model = p[HR_PART_COMPUTE] + p[HR_PART_BACKWARD], beyond, all;
	struct hr_padding sum = {0};
	struct hr_finding *f;
	bool too_far;

	for (size_t i = j->first; i < j->end; i++) {
		const struct hr_padding *one = &j->d->lives.list[i].padding;

		if (!hr__job_has(j, i))
			continue;
		sum.tokens += one->tokens;
		sum.padded += one->padded;
		sum.beyond += one->beyond;
	}
	beyond = sum.tokens > 0 ? sum.beyond / sum.tokens : 0;
	all = sum.tokens > 0 ? sum.padded / sum.tokens : 0;
	too_far = beyond * model >= hr__worth(j);
	if (!too_far && all < MOSTLY_PADDED)
		return;
	f = hr__finding_add(j, HR_FOUND_PADDING, model * (too_far ? beyond : all));
	if (f == NULL)
		return;
	f->evidence = hr__finding_text(
	    j,
	    "%.0f %% of the elements of the first batches are padding (attention_mask); %.0f %% "
	    "are beyond the longest sequence of the batch",
	    100 * all, 100 * beyond);
	if (too_far) {
		f->action =
		    "pad each batch only to its longest sequence: in collate_fn (for example "
		    "transformers.DataCollatorWithPadding), not with padding=\"max_length\" when "
		    "the texts are tokenized";
	} else {
		f->action =
		    "put sequences of similar length into a batch (group_by_length=True of "
		    "transformers.TrainingArguments, or a sampler), or pack several into one";
		f->gain_low = 0;
		f->gain_high = f->lost;
	}
	avoid_usual(j, f);
}

/* ---- compilers ---- */

static const char *advise_shapes(const char *compiler)
{
	if (strcmp(compiler, "torch") == 0)
		return "let one compiled function serve all batches: torch.compile(dynamic=True), "
		       "or batches of few shapes (pad to a few lengths, drop_last=True); "
		       "TORCH_LOGS=recompiles prints why it compiles";
	if (strcmp(compiler, "tensorflow") == 0)
		return "let one traced function serve all batches: "
		       "tf.function(reduce_retracing=True) or an input_signature, batches of few "
		       "shapes (drop_remainder=True), and no Python numbers as arguments";
	return "give jitted functions few shapes: pad the batches to one or a few lengths, and "
	       "drop the last, smaller batch; JAX_LOG_COMPILES=1 prints what it compiles";
}

/* Finds a training that compiles after its first batches, too. False: it does not. */
static bool find_compiles(struct hr_training_job *j)
{
	double lost = 0;
	const char *compiler = NULL;
	struct hr_finding *f;

	for (size_t i = j->first; i < j->end; i++) {
		const struct hr_train_life *life = &j->d->lives.list[i];

		for (size_t k = 0; k < life->n_own_lines && hr__job_has(j, i); k++) {
			if (life->own_lines[k].phase != HR_OWN_COMPILER)
				continue;
			lost += (double)life->own_lines[k].ns / 1e9 / (double)j->lives;
			compiler = life->own_lines[k].compiler;
		}
	}
	f = j->compiler_lines.first == NULL ? NULL : hr__finding_add(j, HR_FOUND_COMPILES, lost);
	if (f == NULL)
		return false;
	f->line = j->compiler_lines.first;
	f->evidence = hr__finding_text(
	    j,
	    "after the first %u batches, %s still traces and compiles for %s, longest in %s; it "
	    "compiles a function again for each new shape of its arguments",
	    HR_COMPILED_BATCHES, compiler, hr__seconds(lost).s, j->compiler_lines.text);
	f->action = advise_shapes(compiler);
	avoid_usual(j, f);
	return true;
}

void hr__find_compute(struct hr_training_job *j)
{
	struct hr_main_use use = {0};

	for (size_t i = j->first; i < j->end; i++) {
		struct hr_main_use one = hr_life_main_use(&j->d->lives.list[i]);

		if (!hr__job_has(j, i) || isnan(one.share))
			continue;
		use.share += one.share / (double)j->lives;
		use.others += one.others / (double)j->lives;
		use.core += one.core / (double)j->lives;
	}
	find_no_core(j, use);
	find_gradients(j, use);
	find_padding(j);
	find_optimizer(j);
	if (!find_compiles(j))
		find_main(j);
}
