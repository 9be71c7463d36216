/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/query/query.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "query/query.h"
#include "store/store.h"
#include "common/region.h"
#include "common/text.h"

#define SUGGESTIONS 3u

struct contents {
	/* whether the store has input waits, DataLoader workers, several ranks */
	bool waits, workers, ranks;
};

/* The first SUGGESTIONS rows whose condition holds are printed. */
static const struct suggestion {
	const char *command; /* printed before the store */
	const char *query, *what;
	size_t condition; /* offset of a member of struct contents */
	bool always;
} suggestions[] = {
    {"diagnose", "", "why did the training lose time?", offsetof(struct contents, waits), false},
    {"query", "blame", "what did the longest waits for data consist of?",
     offsetof(struct contents, waits), false},
    {"query", "ranks", "do the ranks differ?", offsetof(struct contents, ranks), false},
    {"query", "workers", "do the DataLoader workers differ?", offsetof(struct contents, workers),
     false},
    {"query", "summary", "how much I/O was done?", 0, true},
    {"query", "files", "which files took the most time?", 0, true},
    {"query", "slow", "which operations were the slowest?", 0, true},
};

/* Returns 1 if the frame has an input wait. */
static int frame_waits(void *context, Headrace__Frame *f)
{
	struct hr_region region = {0};
	int waits = 0;

	(void)context;
	if (hr_regions_restore(f->regions) == 0)
		for (size_t i = 0; i < f->regions->n_key && !waits; i++) {
			hr_regions_get(f->regions, i, &region);
			waits = region.kind == HR_REGION_INPUT_WAIT;
		}
	return waits;
}

static void see_stream(struct contents *c, const struct hr_stream *stream)
{
	for (uint32_t i = 0; i < stream->n_processes; i++) {
		c->ranks |= stream->processes[i].rank > 0;
		c->workers |= stream->processes[i].worker > 0;
	}
	if (!c->waits)
		c->waits = hr_stream_each_frame(stream, HR_FRAME_BIT(REGIONS), frame_waits, NULL,
						NULL) > 0;
}

static struct contents look_into(const char *store)
{
	const struct hr_stream *streams;
	struct contents c = {0};
	struct hr_catalog *catalog;

	if (hr_catalog_open(&store, 1, NULL, &catalog, NULL) == 0) {
		size_t n = hr_catalog_streams(catalog, &streams);

		for (size_t i = 0; i < n; i++)
			see_stream(&c, &streams[i]);
		hr_catalog_free(catalog);
	}
	return c;
}

static void print_suggestions(const struct contents *c, const char *typed)
{
	unsigned shown = 0;

	for (size_t i = 0; i < sizeof(suggestions) / sizeof(suggestions[0]); i++) {
		const struct suggestion *q = &suggestions[i];

		if (shown == SUGGESTIONS ||
		    (!q->always && !*(const bool *)((const char *)c + q->condition)))
			continue;
		shown++;
		printf("  headrace %s%s%s%s%s\n      %s\n", q->command, *typed ? " " : "", typed,
		       *q->query ? " " : "", q->query, q->what);
	}
}

static void print_tables(void)
{
	fputs("\nTables for SQL:", stdout);
	for (unsigned i = 0; hr_query_table_name(i) != NULL; i++)
		printf("%s%s", i % 8 == 0 ? "\n  " : ", ", hr_query_table_name(i));
	putchar('\n');
}

int hr_query_start(const char *store, const char *typed)
{
	struct contents contents = {0};
	char *quoted = hr_text_quote(typed);
	const char *word = typed[0] != '\0' && quoted != NULL ? quoted : "";
	const char *blank = word[0] != '\0' ? " " : "";

	if (store == NULL || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		hr_report("no query given" HR_HINT "`headrace query%s%s summary`, or SQL in "
			  "quotes; `headrace query --list` lists the named queries",
			  blank, word);
		free(quoted);
		return HR_EXIT_USAGE;
	}
	contents = look_into(store);
	puts("What do you want to know? For example:\n");
	print_suggestions(&contents, word);
	printf("  headrace query%s%s \"SELECT op, count(*) FROM events GROUP BY op\"\n"
	       "      SQL, by DuckDB\n\n"
	       "All named queries:      headrace query --list\n"
	       "Arguments of a query:   headrace query --explain NAME\n",
	       blank, word);
	print_tables();
	printf("The columns of a table: headrace query%s%s \"DESCRIBE events\"\n"
	       "DuckDB's own shell:     headrace query%s%s \"FROM events\" --format parquet "
	       "-o events.parquet\n"
	       "                        duckdb -cmd \"CREATE VIEW events AS FROM "
	       "'events.parquet'\"\n",
	       blank, word, blank, word);
	free(quoted);
	return EXIT_SUCCESS;
}
