/* SPDX-License-Identifier: Apache-2.0 */
/* The macros of named queries: those in macros.sql, and those that are made from lists in C. */
#include <stdio.h>

#include "common/loss.h"
#include "common/ops.h"
#include "common/text.h"
#include "proto/args.h"
#include "query/diagnosis/parts.h"
#include "query/named.h"

/* Prints one case of a macro that maps names to texts. */
static void print_case(FILE *to, const char *name, const char *value)
{
	fprintf(to, " WHEN '%s' THEN ", name);
	hr_text_sql(to, value);
}

static void print_losses(FILE *to, const char *macro, const char *(*text)(enum hr_loss_reason))
{
	fprintf(to, "CREATE MACRO %s(reason) AS CASE reason", macro);
	for (enum hr_loss_reason i = 0; i < HR_LOSS_REASONS; i++)
		print_case(to, hr_loss_name(i), text(i));
	fputs(" END;\n", to);
}

static void print_program_losses(FILE *to)
{
	unsigned n = 0;

	fputs("CREATE MACRO hr_loss_is_programs(reason) AS reason IN (", to);
	for (enum hr_loss_reason i = 0; i < HR_LOSS_REASONS; i++)
		if (hr_loss_is_programs(hr_loss_name(i)))
			fprintf(to, "%s'%s'", n++ > 0 ? ", " : "", hr_loss_name(i));
	fputs(");\n", to);
}

void hr__macros_print(FILE *to)
{
	fputs("CREATE MACRO hr_is_copy(op) AS op IN (", to);
	for (uint16_t op = HR_OP_FIRST, n = 0; op < HR_OP_MAX; op++)
		if (hr_op_copies(op))
			fprintf(to, "%s'%s'", n++ > 0 ? ", " : "", hr_op_info(op)->name);
	fputs(");\nCREATE MACRO hr_part_group(part) AS CASE part", to);
	for (enum hr_part part = 0; part < HR_PART_END; part++)
		print_case(to, hr_part_name(part), hr_part_group(part));
	fputs(" END;\n", to);
	print_losses(to, "hr_loss_unit", hr_loss_unit);
	print_losses(to, "hr_loss_meaning", hr_loss_sentence);
	print_program_losses(to);
	fprintf(
	    to,
	    "CREATE MACRO hr_sampled(dur_ns) AS CASE WHEN dur_ns <= 0.5 * %1$d THEN dur_ns / %1$d "
	    "WHEN dur_ns < 1.5 * %1$d THEN 1 - (1.5 - dur_ns / %1$d) ** 2 / 2 ELSE 1 END;\n",
	    HR_ARGS_SAMPLES_EVERY_NS);
	fputs(hr__macros_list[0].sql, to);
}
