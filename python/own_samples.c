/* SPDX-License-Identifier: Apache-2.0 */
#include "python/own_samples.h"

#include <stdbool.h>
#include <string.h>

#include "common/now.h"
#include "python/spent.h"

#define REPORT_NS   2000000000u
#define TEXTS_MAX   12u
#define SAMPLES_MAX 100u
#define TEXT_MORE   80u /* bytes of a text in the report, without line and stack */
#define SAMPLE_SIZE 12u /* bytes of a sample in the report: at most REPORT_NS, and a comma */

static struct {
	struct stack_text texts[TEXTS_MAX];
	struct {
		uint64_t at_ns;
		unsigned text;
	} samples[SAMPLES_MAX];
	unsigned n_texts, n;
	uint64_t every_ns;
	size_t bytes; /* of the report, at most */
} own;

void own_samples_forget(void)
{
	own.n_texts = own.n = 0;
	own.bytes = TEXT_MORE;
}

/* Returns the index of the text; n_texts: it is new. */
static unsigned find_text(const struct stack_text *text)
{
	unsigned i = 0;

	while (i < own.n_texts && strcmp(own.texts[i].stack, text->stack) != 0)
		i++;
	return i;
}

static size_t put_text(char *room, size_t n, unsigned text, uint64_t now_ns)
{
	bool first = true;

	n = spent_put(room, ARGS_MAX, n, "%s{\"line\":\"%s\",\"stack\":\"%s\"%s",
		      text > 0 ? "," : "", own.texts[text].line, own.texts[text].stack,
		      own.texts[text].in_model ? ",\"model\":true" : "");
	if (own.texts[text].compiler)
		n = spent_put(room, ARGS_MAX, n, ",\"compiler\":\"%s\"", own.texts[text].compiler);
	n = spent_put(room, ARGS_MAX, n, ",\"ago_ns\":[");
	for (unsigned i = 0; i < own.n; i++) {
		if (own.samples[i].text != text)
			continue;
		n = spent_put(room, ARGS_MAX, n, "%s%llu", first ? "" : ",",
			      (unsigned long long)(now_ns - own.samples[i].at_ns));
		first = false;
	}
	return spent_put(room, ARGS_MAX, n, "]}");
}

void own_samples_report(const struct headrace_api *api)
{
	static struct headrace_name mark = {
	    .name = "samples", .domain = "headrace", .kind = HEADRACE_MARK};
	uint64_t now = hr_now_ns(CLOCK_MONOTONIC);
	char room[ARGS_MAX];
	size_t n;

	if (own.n > 0) {
		n = spent_put(room, sizeof(room), 0, "{\"every_ns\":%llu,\"stacks\":[",
			      (unsigned long long)own.every_ns);
		for (unsigned i = 0; i < own.n_texts; i++)
			n = put_text(room, n, i, now);
		n = spent_put(room, sizeof(room), n, "]}");
		if (n < sizeof(room))
			api->mark(&mark, room);
	}
	own_samples_forget();
}

void own_samples_add(const struct headrace_api *api, uint64_t at_ns, uint64_t every_ns,
		     const struct stack_text *text)
{
	size_t more = TEXT_MORE + strlen(text->line) + strlen(text->stack) + SAMPLE_SIZE;
	unsigned i;

	if (own.n == SAMPLES_MAX || own.n_texts == TEXTS_MAX || own.bytes + more >= ARGS_MAX ||
	    (own.n > 0 && (own.every_ns != every_ns || at_ns - own.samples[0].at_ns > REPORT_NS)))
		own_samples_report(api);
	i = find_text(text);
	if (i == own.n_texts)
		own.texts[own.n_texts++] = *text;
	else
		more = SAMPLE_SIZE;
	own.every_ns = every_ns;
	own.bytes += more;
	own.samples[own.n].at_ns = at_ns;
	own.samples[own.n++].text = i;
}
