/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_passes.c - steps and epochs of programs that report none, from their waits for batches
 */
#include <string.h>

#include "tests/query/fixture_frames.h"
#include "tests/unit.h"

#define MS UINT64_C(1000000)

static const struct {
	uint64_t proc;
	uint32_t kind;
	const char *name, *args;
	uint64_t start_ms, dur_ms;
} regions[] = {
    /* Two passes over a loader, the second of which ends early. Another loader's pass is within. */
    {1, HR_REGION_RANGE, "DataLoader.__iter__", NULL, 0, 9},
    {1, HR_REGION_INPUT_WAIT, "w", "{\"loader\":0,\"workers\":2,\"batch\":0}", 10, 5},
    {1, HR_REGION_INPUT_WAIT, "w", "{\"loader\":0,\"workers\":2,\"batch\":1}", 30, 5},
    {1, HR_REGION_INPUT_WAIT, "w", "{\"loader\":1,\"workers\":2,\"batch\":0}", 40, 1},
    {1, HR_REGION_INPUT_WAIT, "w", "{\"loader\":1,\"batch\":1,\"end\":true}", 42, 1},
    {1, HR_REGION_INPUT_WAIT, "w", "{\"loader\":0,\"batch\":2,\"end\":true}", 60, 2},
    {1, HR_REGION_INPUT_WAIT, "w", "{\"loader\":0,\"batch\":0}", 100, 5},
    {1, HR_REGION_INPUT_WAIT, "w", "{\"loader\":0,\"batch\":1}", 120, 7},
    /* The number of the loader is not known; the second pass has no batch. */
    {2, HR_REGION_INPUT_WAIT, "w", "{\"loader\":null,\"batch\":0}", 200, 1},
    {2, HR_REGION_INPUT_WAIT, "w", "{\"loader\":null,\"batch\":1,\"end\":true}", 210, 1},
    {2, HR_REGION_INPUT_WAIT, "w", "{\"loader\":null,\"batch\":0,\"end\":true}", 220, 1},
    /* An optimizer, steps of the program's own, and waits that are not for a loader. */
    {3, HR_REGION_INPUT_WAIT, "w", "{\"loader\":0,\"batch\":0}", 300, 1},
    {3, HR_REGION_OPTIMIZER, "o", NULL, 310, 1},
    {4, HR_REGION_INPUT_WAIT, "w", "{\"loader\":0,\"batch\":0}", 400, 1},
    {4, HR_REGION_STEP, "s", NULL, 410, 3},
    {5, HR_REGION_INPUT_WAIT, "w", "{\"own\":true}", 500, 1},
    {5, HR_REGION_INPUT_WAIT, "w", NULL, 510, 1},
    {5, HR_REGION_INPUT_WAIT, "w", "{\"loader\":0,\"batch\":\"x\"}", 520, 1},
};

static void fill(struct fixture__stream *s)
{
	Headrace__Process rows[5];

	for (unsigned i = 0; i < 5; i++)
		rows[i] = (Headrace__Process){.proc = i + 1, .pid = (int32_t)i + 1};
	build_processes(&s->b, rows, 5);
	for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++)
		build_region(
		    &s->b,
		    (struct hr_region){.proc = regions[i].proc,
				       .tid = (uint32_t)regions[i].proc,
				       .kind = regions[i].kind,
				       .start_ns = FIX_BOOT_NS + regions[i].start_ms * MS,
				       .dur_ns = regions[i].dur_ms * MS,
				       .step = HR_REGION_UNKNOWN,
				       .epoch = HR_REGION_UNKNOWN},
		    (struct build_texts){.args = regions[i].args, .name = regions[i].name});
	build_regions(&s->b);
}

static void passes_are_epochs_and_batches_are_steps(void **state)
{
	fixture_expect(&fix,
		       "SELECT pid, kind, epoch, step, (start_ns - (SELECT min(start_ns) FROM "
		       "regions)) // 1000000 AS start, "
		       "dur_ns // 1000000 AS dur FROM regions WHERE kind IN ('step', 'epoch') "
		       "ORDER BY pid, start, kind",
		       "1,epoch,0,,0,62\n"
		       "1,step,0,0,10,20\n"
		       "1,step,0,1,30,30\n"
		       "1,epoch,1,,100,27\n"
		       "1,step,1,2,100,20\n"
		       "1,step,1,3,120,7\n"
		       "2,epoch,0,,200,11\n"
		       "2,step,0,0,200,10\n"
		       "2,epoch,1,,220,1\n"
		       "4,step,,,410,3\n");
}

static void hr_during_has_them(void **state)
{
	fixture_expect(&fix,
		       "SELECT tid, count(*), sum(dur_ns) // 1000000 FROM hr_during(kind := "
		       "'step') GROUP BY tid ORDER BY tid",
		       "1,4,77\n2,1,10\n4,1,3\n");
}

static int setup(void **state)
{
	return fixture__one_job(state, 5, fill);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(passes_are_epochs_and_batches_are_steps),
	    cmocka_unit_test(hr_during_has_them),
	};

	return cmocka_run_group_tests(tests, setup, fixture_teardown);
}
