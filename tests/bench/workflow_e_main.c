/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workflow_e_main.c - makes the store that docs/workflow-e.md queries, and prints its sums; or the
 * store of a large training job
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/training.h"
#include "tests/bench/workflow_e.h"

static int usage(void)
{
	fprintf(
	    stderr,
	    "usage: workflow_e [-n EVENTS] [-l LOST] STORE\n"
	    "       workflow_e -t [-n EVENTS] [-N NODES] [-f FILES] STORE\n"
	    "Writes the jobs noscr (EVENTS, at least %u, else %" PRIu64
	    ") and scr (a tenth of that).\n"
	    "-l: the second node of scr reports that it lost so many operations.\n"
	    "-t: writes the job train instead: 8 ranks on each node, DataLoader workers, about\n"
	    "    EVENTS events (150 M) on NODES nodes (128); the data set has FILES files "
	    "(8192).\n",
	    HR_WE_EVENTS_MIN, HR_WE_EVENTS);
	return 2;
}

static uint64_t largest(const uint64_t ns[HR_WE_RANKS])
{
	uint64_t max = 0;

	for (unsigned i = 0; i < HR_WE_RANKS; i++)
		max = ns[i] > max ? ns[i] : max;
	return max;
}

static void say(const char *job, const struct hr_we_totals *t)
{
	printf("%s\n  %" PRIu64 " events, %" PRIu64
	       " regions, %.2f bytes an event on disk, all told\n",
	       job, t->events, t->regions, (double)t->bytes / (double)t->events);
	printf("  in %s, largest rank: %.3f s\n", HR_WE_REGION,
	       (double)largest(t->checkpoint_ns) / 1e9);
	for (unsigned i = 0; i < HR_WE_MOUNTS; i++)
		printf("  in calls on %s, largest rank: %.3f s\n", hr_we_mounts[i].path,
		       (double)largest(t->mount_ns[i]) / 1e9);
	for (unsigned i = 0; i < HR_WE_PATTERNS; i++)
		printf("  %s: %" PRIu64 " bytes read, %" PRIu64 " written\n", hr_we_patterns[i],
		       t->bytes_read[i], t->bytes_written[i]);
	for (uint16_t op = 0; op < HR_OP_MAX; op++)
		if (t->model_ops[op] > 0)
			printf("  %s of model*: %" PRIu64 "\n", hr_op_info(op)->name,
			       t->model_ops[op]);
	printf("  %zu writes\n", t->n_writes);
}

static void make(const struct hr_we_config *config, const char *store)
{
	struct hr_we_totals totals = {0};

	hr_we_store(config, store, &totals);
	say(config->job, &totals);
	hr_we_totals_done(&totals);
}

static void make_training(const struct hr_train_config *config, const char *store)
{
	struct hr_train_totals totals = {0};

	hr_train_store(config, store, &totals);
	printf("%s\n  %" PRIu64 " events, %" PRIu64 " regions, %" PRIu64 " bytes on disk\n",
	       config->job, totals.events, totals.regions, totals.bytes);
}

int main(int argc, char **argv)
{
	struct hr_we_config noscr = {.job = "noscr", .events = HR_WE_EVENTS};
	struct hr_we_config scr = {.job = "scr", .scr = true};
	struct hr_train_config training = HR_TRAIN_CONFIG(UINT64_C(150000000));
	bool trains = false;
	int c;

	while ((c = getopt(argc, argv, "n:l:tN:f:")) != -1) {
		if (c == 'n')
			training.events = noscr.events = strtoull(optarg, NULL, 0);
		else if (c == 't')
			trains = true;
		else if (c == 'N')
			training.nodes = (uint32_t)strtoul(optarg, NULL, 0);
		else if (c == 'f')
			training.files = (uint32_t)strtoul(optarg, NULL, 0);
		else if (c == 'l')
			scr.lost = strtoull(optarg, NULL, 0);
		else
			return usage();
	}
	scr.events = noscr.events / 10 > HR_WE_EVENTS_MIN ? noscr.events / 10 : HR_WE_EVENTS_MIN;
	if (argc != optind + 1 || noscr.events < HR_WE_EVENTS_MIN)
		return usage();
	if (trains && (training.nodes == 0 || training.files == 0))
		return usage();
	if (trains) {
		make_training(&training, argv[optind]);
		return 0;
	}
	make(&noscr, argv[optind]);
	make(&scr, argv[optind]);
	return 0;
}
