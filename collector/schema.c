/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/schema.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/schema.h"
#include "clickhouse/target.h"
#include "common/text.h"

#define EXIT_USAGE 2
#define DAY_NS	   (86400ull * 1000000000)

static int schema_refuse(const char *text)
{
	hr_text_print(stderr, "headrace-collector schema: %s (see headrace-collector --help)\n",
		      text);
	return EXIT_USAGE;
}

int hr_schema_command(int argc, char **argv)
{
	static const struct option options[] = {{"database", required_argument, NULL, 'd'},
						{"cluster", required_argument, NULL, 'c'},
						{"keep", required_argument, NULL, 'k'},
						{"replicated", no_argument, NULL, 'r'},
						{"old", no_argument, NULL, 'o'},
						{0}};
	struct hr_ch_schema schema = {.database = "headrace"};
	uint64_t keep_ns = 0;
	int option;

	if (argc < 1 || strcmp(argv[0], "clickhouse") != 0)
		return schema_refuse("the only schema is `schema clickhouse`");
	// NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'd')
			schema.database = optarg;
		else if (option == 'c')
			schema.cluster = optarg;
		else if (option == 'r')
			schema.replicated = true;
		else if (option == 'o')
			schema.old = true;
		else if (option != 'k')
			return EXIT_USAGE;
		else if (hr_text_parse_duration(optarg, &keep_ns) < 0 || keep_ns < DAY_NS)
			return schema_refuse("--keep: must be at least one day, for example 365d");
	}
	if (optind < argc)
		return schema_refuse("too many words");
	if (!hr_ch_is_name(schema.database) || (schema.cluster && !hr_ch_is_name(schema.cluster)))
		return schema_refuse("names must have letters, digits and _");
	if (schema.old && keep_ns > 0)
		return schema_refuse(
		    "--keep: ClickHouse before 20.1 deletes nothing by itself; use "
		    "ALTER TABLE ... DROP PARTITION");
	schema.keep_days = keep_ns / DAY_NS;
	hr_ch_schema_print(&schema, stdout);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
