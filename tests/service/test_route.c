/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a process's variables names its job. */
#include "daemon/service/route.c" // NOLINT(bugprone-suspicious-include): for its static functions

#include "tests/unit.h"

static size_t put_variable(uint8_t *to, const char *text)
{
	struct hr_item_hdr hdr = {HR_ITEM_ENV, (uint16_t)strlen(text)};

	memcpy(to, &hdr, sizeof(hdr));
	memcpy(to + sizeof(hdr), text, hdr.bytes);
	return sizeof(hdr) + hdr.bytes;
}

/* In any order: a job of one scheduler may have variables of another one. */
static void the_first_scheduler_counts(void **state)
{
	static const struct {
		const char *env[3];
		const char *want;
	} rows[] = {
	    {{"JOB_ID=9"}, "9"},
	    {{"SLURM_JOB_ID=7", "JOB_ID=9"}, "7"},
	    {{"JOB_ID=9", "SLURM_JOB_ID=7"}, "7"},
	    {{"COBALT_JOBID=8", "PBS_JOBID=7", "LSB_JOBID=9"}, "7"},
	    {{"SLURM_JOB_ID=", "JOB_ID=9"}, "9"},
	    {{"RANK=7"}, ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t message[sizeof(struct hr_hello) + 256] = {0};
		size_t bytes = sizeof(struct hr_hello);
		struct named named;

		for (size_t k = 0; k < 3 && rows[i].env[k]; k++)
			bytes += put_variable(message + bytes, rows[i].env[k]);
		read_names(message, bytes, &named);
		assert_string_equal(named.scheduler, rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_first_scheduler_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
