/* SPDX-License-Identifier: Apache-2.0 */
/* The cause of a planted difference, and none where there is no difference. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/compare/made_runs.h"
#include "tests/unit.h"

#define KIB 1024.0

static struct made_side a, b;

static int make(void **state)
{
	made_side_init(&a);
	made_side_init(&b);
	return 0;
}

static struct hr_comparison compare(void)
{
	struct hr_compare_side sides[HR_COMPARE_SIDES] = {made_side(&a), made_side(&b)};
	struct hr_comparison c;

	assert_int_equal(hr_compare(sides, &c), 0);
	return c;
}

/* Compares, and checks the first cause and its seconds. */
static void assert_first(enum hr_compare_cause_id id, double seconds)
{
	struct hr_comparison c = compare();

	assert_true(c.n_causes > 0);
	assert_string_equal(hr_compare_cause_name(c.causes[0].id), hr_compare_cause_name(id));
	assert_float_equal(c.causes[0].seconds, seconds, 0.02 * fabs(seconds));
	assert_non_null(c.causes[0].what);
	hr_comparison_done(&c);
}

/* The noise of the training loops of one run each, whose pieces last 1 s, more or less. */
static double noise_of_pieces(double by)
{
	struct made_side *both[] = {&a, &b};
	struct hr_compare_side sides[HR_COMPARE_SIDES];
	struct hr_comparison c;
	double noise;

	for (int i = 0; i < HR_COMPARE_SIDES; i++) {
		made_side_init(both[i]);
		for (int k = 0; k < 10; k++)
			made_side_add(both[i],
				      (struct hr_measure){.measure = "part_s",
							  .rank = 0,
							  .phase = "train",
							  .name = "compute",
							  .piece = k,
							  .value = k % 2 == 0 ? 1 + by : 1 - by});
		sides[i] = made_side(both[i]);
		sides[i].n = 1;
	}
	assert_int_equal(hr_compare(sides, &c), 0);
	noise = c.quantities[HR_QUANTITY_loop].noise;
	hr_comparison_done(&c);
	return noise;
}

/* With one run of each side, the spread of its pieces is the noise. */
static void uneven_run(void **state)
{
	assert_true(noise_of_pieces(0.9) > 2 * noise_of_pieces(0));
}

/* The training thread waits for reads, and the workers' reads are those of `img`. */
static void add_reads(struct made_side *s, double waited, double opens, double reads, double bytes,
		      double each)
{
	made_side_part(s, 0, "train", "wait_read", waited);
	made_side_reads(s, "img", opens, reads, bytes, each);
}

static void equal(void **state)
{
	struct hr_comparison c;

	add_reads(&a, 3, 100, 1000, 64 * KIB, 0.006);
	add_reads(&b, 3, 100, 1000, 64 * KIB, 0.006);
	c = compare();
	assert_int_equal(c.n_causes, 0);
	for (unsigned i = 0; i < HR_QUANTITIES; i++)
		assert_false(c.quantities[i].differs);
	assert_float_equal(c.quantities[HR_QUANTITY_wall].a, 13, 1e-9);
	hr_comparison_done(&c);
}

static void slower_storage(void **state)
{
	add_reads(&a, 3, 100, 1000, 64 * KIB, 0.006);
	add_reads(&b, 7, 100, 1000, 64 * KIB, 0.014);
	assert_first(HR_WHY_storage, 4);
}

/* The mount is the one with most of the time: a short read elsewhere does not count. */
static void another_mount(void **state)
{
	struct made_side *sides[] = {&a, &b};

	add_reads(&a, 3, 100, 1000, 64 * KIB, 0.006);
	add_reads(&b, 7, 100, 1000, 64 * KIB, 0.014);
	for (unsigned i = 0; i < MADE_RUNS; i++)
		for (size_t k = 0; k < b.made[i].n; k++)
			if (b.made[i].list[k].mount != NULL)
				b.made[i].list[k].mount = "/slow";
	for (int i = 0; i < 2; i++)
		made_side_add(sides[i], (struct hr_measure){.measure = "read_s",
							    .rank = 0,
							    .piece = -1,
							    .name = "img",
							    .mount = "/tmp",
							    .value = 0.01});
	assert_first(HR_WHY_mount, 4);
}

static void faster_storage(void **state)
{
	add_reads(&a, 7, 100, 1000, 64 * KIB, 0.014);
	add_reads(&b, 3, 100, 1000, 64 * KIB, 0.006);
	assert_first(HR_WHY_storage, -4);
}

static void smaller_reads(void **state)
{
	add_reads(&a, 3, 100, 1000, 64 * KIB, 0.006);
	add_reads(&b, 9, 100, 16000, 4 * KIB, 0.0011);
	assert_first(HR_WHY_read_size, 6);
}

/* A larger file takes longer to read, but its bytes do not. */
static void larger_files(void **state)
{
	add_reads(&a, 3, 100, 100, 64 * KIB, 0.06);
	add_reads(&b, 6, 100, 100, 128 * KIB, 0.12);
	assert_first(HR_WHY_read_amount, 3);
}

static void more_files(void **state)
{
	add_reads(&a, 3, 100, 1000, 64 * KIB, 0.006);
	add_reads(&b, 6, 200, 2000, 64 * KIB, 0.006);
	assert_first(HR_WHY_file_count, 3);
}

static void files_of_a_new_kind(void **state)
{
	add_reads(&a, 3, 100, 1000, 64 * KIB, 0.006);
	add_reads(&b, 5, 100, 1000, 64 * KIB, 0.006);
	made_side_reads(&b, "labels", 100, 100, 1 * KIB, 0.04);
	assert_first(HR_WHY_new_files, 2);
}

static void from_storage(struct made_side *s, double bytes)
{
	made_side_add(
	    s, (struct hr_measure){
		   .measure = "fetch_storage_bytes", .rank = 0, .piece = -1, .value = bytes});
}

/* The kernel read some bytes from the device in A only, but the reads of B took longer. */
static void slower_storage_and_warmer_page_cache(void **state)
{
	add_reads(&a, 1, 100, 1000, 64 * KIB, 0.001);
	add_reads(&b, 4, 100, 1000, 64 * KIB, 0.004);
	from_storage(&a, 6400 * KIB);
	from_storage(&b, 0);
	assert_first(HR_WHY_storage, 3);
}

/* The kernel read the same bytes from the device in B only. */
static void cold_page_cache(void **state)
{
	add_reads(&a, 1, 100, 1000, 64 * KIB, 0.001);
	add_reads(&b, 4, 100, 1000, 64 * KIB, 0.004);
	from_storage(&a, 0);
	from_storage(&b, 64000 * KIB);
	assert_first(HR_WHY_page_cache, 3);
}

/* The kernel read all bytes from the device in both. */
static void slower_device(void **state)
{
	add_reads(&a, 1, 100, 1000, 64 * KIB, 0.001);
	add_reads(&b, 4, 100, 1000, 64 * KIB, 0.004);
	from_storage(&a, 64000 * KIB);
	from_storage(&b, 64000 * KIB);
	assert_first(HR_WHY_storage, 3);
}

/* Reads that were so short that their bytes can only have come from the page cache. */
static void cached_reads(struct made_side *s, double n, double seconds)
{
	struct hr_measure m = {.rank = 0, .piece = -1, .name = "img"};

	m.measure = "read_cached";
	m.value = n;
	made_side_add(s, m);
	m.measure = "read_cached_s";
	m.value = seconds;
	made_side_add(s, m);
}

/* No bytes of the storage are known, and the page cache served fewer reads of B. */
static void fewer_cached_reads(void **state)
{
	add_reads(&a, 1, 100, 1000, 64 * KIB, 0.001);
	add_reads(&b, 4, 100, 1000, 64 * KIB, 0.004);
	cached_reads(&a, 950, 0.5);
	cached_reads(&b, 300, 0.3);
	assert_first(HR_WHY_storage_or_cache, 3);
}

/* Pages of mapped files: the training waited for them, and no operation shows it. */
static void mapped_files(void **state)
{
	made_side_part(&a, 0, "train", "wait_fault", 1);
	made_side_part(&b, 0, "train", "wait_fault", 3);
	assert_first(HR_WHY_files, 2);
}

static void setting(struct made_side *s, const char *name, double value)
{
	made_side_add(
	    s, (struct hr_measure){
		   .measure = "setting", .rank = -1, .piece = -1, .name = name, .value = value});
}

static void fetches(struct made_side *s, double seconds)
{
	made_side_add(
	    s, (struct hr_measure){.measure = "fetches", .rank = 0, .piece = -1, .value = 100});
	made_side_add(
	    s, (struct hr_measure){.measure = "fetch_s", .rank = 0, .piece = -1, .value = seconds});
}

static void fewer_workers(void **state)
{
	add_reads(&a, 3, 100, 1000, 64 * KIB, 0.03);
	add_reads(&b, 9, 100, 1000, 64 * KIB, 0.03);
	setting(&a, "num_workers", 4);
	setting(&b, "num_workers", 2);
	fetches(&a, 30);
	fetches(&b, 30);
	assert_first(HR_WHY_workers, 6);
}

/* Half as many workers, and reads that take four times as long: the reads are two thirds of it. */
static void fewer_workers_on_slower_storage(void **state)
{
	struct hr_comparison c;

	add_reads(&a, 3, 100, 1000, 64 * KIB, 0.01);
	add_reads(&b, 12, 100, 1000, 64 * KIB, 0.04);
	setting(&a, "num_workers", 4);
	setting(&b, "num_workers", 2);
	fetches(&a, 10);
	fetches(&b, 40);
	c = compare();
	assert_int_equal(c.n_causes, 2);
	assert_int_equal(c.causes[0].id, HR_WHY_storage);
	assert_float_equal(c.causes[0].seconds, 6, 0.2);
	assert_int_equal(c.causes[1].id, HR_WHY_workers);
	assert_float_equal(c.causes[1].seconds, 3, 0.2);
	hr_comparison_done(&c);
}

/* Each rank has its own time, without the time in which it waits for others. */
static void assert_ranks(void)
{
	struct hr_comparison c = compare();
	const struct hr_compare_rank *r = c.ranks.list;

	assert_int_equal(c.ranks.n, 2);
	assert_int_equal(r[1].rank, 1);
	assert_float_equal(hr_compare_rank_own(&r[0].side[HR_COMPARE_B]), 8, 0.1);
	assert_float_equal(r[0].side[HR_COMPARE_B].seconds[HR_QUANTITY_stall], 2, 0.1);
	assert_float_equal(hr_compare_rank_own(&r[1].side[HR_COMPARE_A]), 8, 0.1);
	assert_float_equal(hr_compare_rank_own(&r[1].side[HR_COMPARE_B]), 10, 0.1);
	hr_comparison_done(&c);
}

/* Side B has a rank that A lacks, and a process without a rank. */
static void further_ranks(void **state)
{
	static const int64_t more[] = {-1, 3};
	struct hr_comparison c;

	for (int i = 0; i < 2; i++) {
		made_side_add(
		    &b, (struct hr_measure){
			    .measure = "processes", .rank = more[i], .piece = -1, .value = 1});
		made_side_part(&b, more[i], "train", "compute", 8);
	}
	c = compare();
	assert_int_equal(c.ranks.n, 2);
	assert_int_equal(c.ranks.list[0].rank, 0);
	assert_int_equal(c.ranks.list[1].rank, 3);
	assert_float_equal(c.ranks.list[1].side[HR_COMPARE_A].processes, 0, 0);
	hr_comparison_done(&c);
}

/* Rank 1 of one side computes 2 s longer, and rank 0 waits for it. */
static void slow_rank_of(const struct made_side *slow)
{
	struct made_side *sides[] = {&a, &b};

	for (int i = 0; i < 2; i++) {
		made_side_add(sides[i],
			      (struct hr_measure){
				  .measure = "processes", .rank = 1, .piece = -1, .value = 1});
		made_side_add(
		    sides[i],
		    (struct hr_measure){.measure = "steps", .rank = 1, .piece = -1, .value = 100});
		made_side_part(sides[i], 1, "start", "imports", 2);
		made_side_part(sides[i], 1, "train", "compute", sides[i] == slow ? 10 : 8);
		made_side_part(sides[i], 0, "train", "stall", sides[i] == slow ? 2 : 0.01);
	}
}

static void slow_rank(void **state)
{
	slow_rank_of(&b);
	assert_first(HR_WHY_slow_rank, 2);
	assert_ranks();
}

static void rank_that_was_slow(void **state)
{
	slow_rank_of(&a);
	assert_first(HR_WHY_slow_rank, -2);
}

static void checkpoint(struct made_side *s, double n, double bytes, double seconds)
{
	made_side_add(
	    s, (struct hr_measure){.measure = "checkpoints", .rank = 0, .piece = -1, .value = n});
	made_side_add(
	    s, (struct hr_measure){
		   .measure = "checkpoint_bytes", .rank = 0, .piece = -1, .value = n * bytes});
	made_side_part(s, 0, "train", "checkpoint", seconds);
}

static void larger_checkpoints(void **state)
{
	checkpoint(&a, 5, 1e8, 2);
	checkpoint(&b, 5, 2e8, 4);
	assert_first(HR_WHY_checkpoint_size, 2);
}

static void smaller_checkpoints(void **state)
{
	checkpoint(&a, 5, 2e8, 4);
	checkpoint(&b, 5, 1e8, 2);
	assert_first(HR_WHY_checkpoint_size, -2);
}

static void more_checkpoints(void **state)
{
	checkpoint(&a, 5, 1e8, 2);
	checkpoint(&b, 10, 1e8, 4);
	assert_first(HR_WHY_checkpoint_count, 2);
}

static void slower_checkpoints(void **state)
{
	checkpoint(&a, 5, 1e8, 2);
	checkpoint(&b, 5, 1e8, 4);
	assert_first(HR_WHY_checkpoint_speed, 2);
}

static void first_checkpoints(void **state)
{
	checkpoint(&b, 5, 1e8, 2);
	assert_first(HR_WHY_checkpoint_count, 2);
}

/* A persistent worker has no further starts. */
static void persistent_workers(void **state)
{
	struct hr_comparison c;

	setting(&a, "persistent_workers", 0);
	setting(&b, "persistent_workers", 1);
	made_side_part(&a, 0, "train", "wait_worker_start", 5);
	c = compare();
	assert_int_equal(c.n_causes, 1);
	assert_int_equal(c.causes[0].id, HR_WHY_worker_life);
	assert_non_null(strstr(c.causes[0].what, "persistent_workers=True in B"));
	hr_comparison_done(&c);
}

/* One run each, whose workers start once: the start is in one of ten pieces, and is no chance. */
static void one_start_of_workers(void **state)
{
	struct made_side *both[] = {&a, &b};
	struct hr_compare_side sides[HR_COMPARE_SIDES];
	struct hr_comparison c;

	for (int i = 0; i < HR_COMPARE_SIDES; i++) {
		made_side_add(both[i], (struct hr_measure){.measure = "part_s",
							   .rank = 0,
							   .phase = "train",
							   .name = "wait_worker_start",
							   .piece = 0,
							   .value = i == HR_COMPARE_A ? 13 : 1});
		sides[i] = made_side(both[i]);
		sides[i].n = 1;
	}
	assert_int_equal(hr_compare(sides, &c), 0);
	assert_true(c.quantities[HR_QUANTITY_workers].differs);
	assert_true(c.quantities[HR_QUANTITY_loop].differs);
	assert_int_equal(c.causes[0].id, HR_WHY_worker_life);
	hr_comparison_done(&c);
}

/* One run each, whose batches wait in one of ten pieces: it can be chance, and is not concealed. */
static void unsure(void **state)
{
	struct hr_compare_side sides[HR_COMPARE_SIDES];
	struct hr_comparison c;

	made_side_add(&b, (struct hr_measure){.measure = "part_s",
					      .rank = 0,
					      .phase = "train",
					      .name = "wait_lock",
					      .piece = 4,
					      .value = 6});
	sides[HR_COMPARE_A] = made_side(&a);
	sides[HR_COMPARE_B] = made_side(&b);
	sides[HR_COMPARE_A].n = sides[HR_COMPARE_B].n = 1;
	assert_int_equal(hr_compare(sides, &c), 0);
	assert_int_equal(c.n_causes, 0);
	assert_int_equal(c.unsure.quantity, HR_QUANTITY_lock);
	assert_float_equal(c.unsure.seconds, 6, 0.1);
	assert_true(c.unsure.noise > c.unsure.seconds);
	hr_comparison_done(&c);
	/* a larger cause that is sure */
	made_side_part(&b, 0, "start", "imports", 20);
	sides[HR_COMPARE_B] = made_side(&b);
	sides[HR_COMPARE_B].n = 1;
	assert_int_equal(hr_compare(sides, &c), 0);
	assert_int_equal(c.causes[0].id, HR_WHY_start);
	assert_true(c.unsure.seconds == 0);
	hr_comparison_done(&c);
}

/* Half as many steps in B, which takes as long: each step takes twice as long. */
static void other_number_of_steps(void **state)
{
	struct hr_comparison c;

	for (unsigned i = 0; i < MADE_RUNS; i++)
		b.made[i].list[1].value = 50;
	c = compare();
	assert_true(c.scaled);
	assert_float_equal(c.quantities[HR_QUANTITY_loop].b, 16, 1e-9);
	assert_float_equal(c.measured[HR_QUANTITY_loop].b, 8, 1e-9);
	assert_float_equal(c.quantities[HR_QUANTITY_start].b, 2, 1e-9);
	assert_int_equal(c.n_causes, 2);
	for (int i = 0; i < 2; i++) {
		bool work = c.causes[i].id == HR_WHY_work;

		assert_int_equal(c.causes[i].id, work ? HR_WHY_work : HR_WHY_compute);
		assert_float_equal(c.causes[i].seconds, work ? -8 : 8, 1e-9);
	}
	hr_comparison_done(&c);
}

/* Each sample came twice in A, and the epochs are the same: B does half of the work. */
static void half_of_the_samples(void **state)
{
	struct hr_comparison c;

	a = (struct made_side){0};
	made_side_add(&a, (struct hr_measure){.measure = "processes", .piece = -1, .value = 1});
	made_side_add(&a, (struct hr_measure){.measure = "steps", .piece = -1, .value = 200});
	made_side_part(&a, 0, "start", "imports", 2);
	made_side_part(&a, 0, "train", "compute", 16);
	made_side_add(&a, (struct hr_measure){.measure = "epochs", .piece = -1, .value = 2});
	made_side_add(&b, (struct hr_measure){.measure = "epochs", .piece = -1, .value = 2});
	setting(&a, "batch_size", 8);
	setting(&b, "batch_size", 8);
	made_side_reads(&a, "img", 200, 2000, 64 * KIB, 0.006);
	made_side_reads(&b, "img", 100, 1000, 64 * KIB, 0.006);
	c = compare();
	assert_false(c.quantities[HR_QUANTITY_loop].differs);
	assert_true(c.measured[HR_QUANTITY_loop].differs);
	assert_int_equal(c.n_causes, 1);
	assert_int_equal(c.causes[0].id, HR_WHY_work);
	assert_float_equal(c.causes[0].seconds, -8, 1e-9);
	assert_string_equal(c.causes[0].what, "B did less work: 800 samples instead of 1,600");
	assert_string_equal(c.causes[0].evidence,
			    "the same number of epochs (2), each with 0.50x the samples");
	assert_float_equal(c.kinds.list[0].side[HR_COMPARE_B].reads, 2000, 1e-6);
	assert_float_equal(c.kinds.list[0].measured.reads, 1000, 1e-6);
	hr_comparison_done(&c);
}

/* Batches twice as large, half as many steps: the same work, so nothing is scaled. */
static void other_batch_size(void **state)
{
	struct hr_comparison c;

	setting(&a, "batch_size", 8);
	setting(&b, "batch_size", 16);
	for (unsigned i = 0; i < MADE_RUNS; i++)
		b.made[i].list[1].value = 50;
	c = compare();
	assert_false(c.scaled);
	assert_true(c.samples);
	assert_float_equal(c.work[HR_COMPARE_B], 800, 1e-9);
	assert_int_equal(c.n_causes, 0);
	hr_comparison_done(&c);
}

/* No training loop: only the whole run is known. */
static void no_training(void **state)
{
	struct hr_comparison c;

	a = (struct made_side){0};
	b = (struct made_side){0};
	made_side_add(&a,
		      (struct hr_measure){.measure = "job_s", .rank = -1, .piece = -1, .value = 5});
	made_side_add(&b,
		      (struct hr_measure){.measure = "job_s", .rank = -1, .piece = -1, .value = 9});
	c = compare();
	assert_true(c.quantities[HR_QUANTITY_wall].differs);
	assert_int_equal(c.n_causes, 0);
	hr_comparison_done(&c);
}

/* Only one side has a training loop: its parts have nothing to be compared with. */
static void training_on_one_side(void **state)
{
	struct hr_comparison c;

	a = (struct made_side){0};
	made_side_add(
	    &a, (struct hr_measure){.measure = "job_s", .rank = -1, .piece = -1, .value = 11});
	made_side_add(
	    &b, (struct hr_measure){.measure = "job_s", .rank = -1, .piece = -1, .value = 11});
	c = compare();
	assert_false(c.trains);
	assert_int_equal(c.n_causes, 0);
	for (unsigned i = 0; i < HR_QUANTITIES; i++)
		assert_false(c.quantities[i].differs);
	hr_comparison_done(&c);
}

/* The seconds of all causes sum to the difference of the whole run, within what is left out. */
static void sum_of_causes(void **state)
{
	struct hr_comparison c;
	double sum = 0;

	add_reads(&a, 3, 100, 1000, 64 * KIB, 0.006);
	add_reads(&b, 7, 100, 1000, 64 * KIB, 0.014);
	checkpoint(&a, 5, 1e8, 2);
	checkpoint(&b, 5, 2e8, 5);
	made_side_part(&b, 0, "validation", "compute", 1);
	c = compare();
	for (size_t i = 0; i < c.n_causes; i++)
		sum += c.causes[i].seconds;
	assert_int_equal(c.n_causes, 3);
	assert_float_equal(sum, c.quantities[HR_QUANTITY_wall].b - c.quantities[HR_QUANTITY_wall].a,
			   1e-9);
	hr_comparison_done(&c);
}

#define CAUSE_TEST(name) cmocka_unit_test_setup(name, make)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CAUSE_TEST(uneven_run),
	    CAUSE_TEST(equal),
	    CAUSE_TEST(slower_storage),
	    CAUSE_TEST(another_mount),
	    CAUSE_TEST(faster_storage),
	    CAUSE_TEST(smaller_reads),
	    CAUSE_TEST(larger_files),
	    CAUSE_TEST(more_files),
	    CAUSE_TEST(files_of_a_new_kind),
	    CAUSE_TEST(cold_page_cache),
	    CAUSE_TEST(slower_storage_and_warmer_page_cache),
	    CAUSE_TEST(slower_device),
	    CAUSE_TEST(fewer_cached_reads),
	    CAUSE_TEST(mapped_files),
	    CAUSE_TEST(fewer_workers),
	    CAUSE_TEST(fewer_workers_on_slower_storage),
	    CAUSE_TEST(slow_rank),
	    CAUSE_TEST(rank_that_was_slow),
	    CAUSE_TEST(further_ranks),
	    CAUSE_TEST(larger_checkpoints),
	    CAUSE_TEST(smaller_checkpoints),
	    CAUSE_TEST(more_checkpoints),
	    CAUSE_TEST(slower_checkpoints),
	    CAUSE_TEST(first_checkpoints),
	    CAUSE_TEST(persistent_workers),
	    CAUSE_TEST(one_start_of_workers),
	    CAUSE_TEST(unsure),
	    CAUSE_TEST(other_number_of_steps),
	    CAUSE_TEST(half_of_the_samples),
	    CAUSE_TEST(other_batch_size),
	    CAUSE_TEST(no_training),
	    CAUSE_TEST(training_on_one_side),
	    CAUSE_TEST(sum_of_causes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
