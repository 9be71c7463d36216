/* SPDX-License-Identifier: Apache-2.0 */
#include "common/loss.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

enum loss_unit {
#define HR_LOSS_UNIT(id, ...) UNIT_##id,
#include "proto/losses.def"
};

static const struct loss_words {
	const char *before, *one, *many;
	bool unknown, operations;
} units[] = {
#define HR_LOSS_UNIT(id, ...) {__VA_ARGS__},
#include "proto/losses.def"
};

enum loss_totals { NOT_KNOWN, COMPLETE, TOO_LOW };

static const struct loss_row {
	const char *name;
	enum loss_unit unit;
	enum loss_totals totals;
	const char *sentence;
} rows[HR_LOSS_REASONS + 1] = {
#define HR_LOSS(id, name, unit, ...) {name, UNIT_##unit, __VA_ARGS__},
#include "proto/losses.def"
    {"", UNIT_OPERATION, NOT_KNOWN, "unknown reason: a newer headrace recorded it"},
};

const char *hr_loss_name(enum hr_loss_reason reason)
{
	return rows[reason].name;
}

const char *hr_loss_sentence(enum hr_loss_reason reason)
{
	return rows[reason].sentence;
}

const char *hr_loss_unit(enum hr_loss_reason reason)
{
	return units[rows[reason].unit].many;
}

int hr_loss_by_name(const char *name)
{
	for (int i = 0; i < HR_LOSS_REASONS; i++)
		if (strcmp(rows[i].name, name) == 0)
			return i;
	return -ENOENT;
}

static const struct loss_row *find_row(const char *name)
{
	int reason = hr_loss_by_name(name);

	return &rows[reason < 0 ? HR_LOSS_REASONS : reason];
}

bool hr_loss_is_operations(const char *name)
{
	return units[find_row(name)->unit].operations;
}

bool hr_loss_is_programs(const char *name)
{
	return find_row(name)->unit == UNIT_PROGRAM;
}

static void print_amount(FILE *out, const struct hr_loss_sum *loss, const struct loss_words *words)
{
	bool one = loss->count == 1;

	if (loss->count == 0)
		fprintf(out, "an unknown number of %s", words->many);
	else
		fprintf(out, "%s%s %s", words->before, hr_text_count(loss->count).s,
			one ? words->one : words->many);
	if (loss->program != NULL)
		fprintf(out, " (%s%s)", one ? "" : "first: ", loss->program);
	else if (loss->bytes > 0)
		fprintf(out, " (%s)", hr_text_size(loss->bytes).s);
}

char *hr_loss_text(const struct hr_loss_sum *loss)
{
	const struct loss_row *row = find_row(loss->reason);
	const struct loss_words *words = &units[row->unit];
	char *text = NULL;
	size_t bytes;
	FILE *out;

	if (row->unit == UNIT_NOTHING || (loss->count == 0 && !words->unknown))
		return NULL;
	out = open_memstream(&text, &bytes);
	if (out == NULL)
		return NULL;
	print_amount(out, loss, words);
	fprintf(out, ": %s (%s)", row->sentence, loss->reason);
	if (row->totals == TOO_LOW)
		fputs("; totals are too low", out);
	else if (row->totals == COMPLETE && !loss->totals_unsure)
		fputs("; totals are not affected", out);
	return hr_text_close(out, &text);
}
