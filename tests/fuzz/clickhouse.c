/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of ClickHouse, and its answers, which come from another machine; also rules of alerts. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clickhouse/client.h"
#include "clickhouse/target.h"
#include "collector/alert_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(const char *text)
{
	(void)text;
}

static void read_address(const char *text)
{
	struct hr_ch_target target;
	char *error = NULL;

	/* no files: a fuzzer would name any */
	if (!strstr(text, "password_file") && hr_ch_target_parse(text, &target, &error) == 0 &&
	    (target.n_hosts == 0 || target.n_shards == 0 || !target.database))
		abort();
	if (!strstr(text, "password_file"))
		hr_ch_target_done(&target);
	free(error);
}

static void read_answer(const uint8_t *data, size_t size)
{
	struct hr_ch_answer a = {.data = data, .bytes = size};

	while (!a.failed && a.at < a.bytes) {
		size_t n;
		const char *text = hr_ch_take_text(&a, &n);

		if (!a.failed && (text + n > (const char *)data + size || a.at > a.bytes))
			abort();
		(void)hr_ch_take_u64(&a);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct hr_alert_rules rules;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	read_address(text);
	(void)hr_alert_rules_parse(text, &rules, ignore);
	read_answer(data, size);
	free(text);
	return 0;
}
