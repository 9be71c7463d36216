/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tracks.c - in which track, and in which order, regions and operations of threads are written
 *
 * Each case has the regions and operations of one process as text: "a 10 30, b 20 25" are a region
 * from 10 to 30 and one from 20 to 25. A name can begin with the number of a thread, and then with
 *
 *      ~   a span, or an asynchronous operation
 *      *   regions that were added up
 *      -   a region that is left out
 *
 * The expected text has a line for each track with slices: "main: 10+a 20+x 25- 30-" is a region
 * from 10 to 30 with an operation from 20 to 25; "10!s" is an instant.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/trace/trace_tracks.h"
#include "tests/unit.h"

#define TRACKS	   16u
#define TEXT_BYTES 1000u
#define PID	   100

/* ---- a writer that keeps texts ---- */

struct kept_track {
	struct hr_track track;
	char name[100], text[TEXT_BYTES];
};

struct keeper {
	struct hr_trace_out out;
	struct kept_track tracks[TRACKS]; /* by id - 1 */
	unsigned n;
};

static void keep_track(struct hr_trace_out *o, const struct hr_track *t)
{
	struct keeper *k = (struct keeper *)o;

	assert_int_equal(t->id, k->n + 1);
	assert_in_range(k->n, 0, TRACKS - 1);
	assert_true(t->parent < t->id);
	k->tracks[k->n].track = *t;
	snprintf(k->tracks[k->n].name, sizeof(k->tracks[0].name), "%s", t->name);
	k->n++;
}

static void keep_slice(struct hr_trace_out *o, const struct hr_slice *s)
{
	static const char signs[] = {
	    [HR_SLICE_BEGIN] = '+', [HR_SLICE_END] = '-', [HR_SLICE_INSTANT] = '!'};
	struct kept_track *t = &((struct keeper *)o)->tracks[s->track->id - 1];
	size_t n = strlen(t->text);

	snprintf(t->text + n, sizeof(t->text) - n, " %u%c%.*s", (unsigned)s->ns, signs[s->type],
		 (int)s->name_text.bytes, (const char *)s->name_text.data);
}

/* ---- a process ---- */

/* A region or an operation. */
struct item {
	uint32_t tid;
	char sign; /* 0: none */
	char name[16];
	uint64_t start_ns, end_ns;
};

#define ITEMS 8u

static unsigned read_items(const char *text, struct item list[ITEMS])
{
	unsigned n = 0;
	int used;

	for (; *text != '\0'; text += used) {
		struct item *i = &list[n++];
		char word[16];
		const char *at = word;

		assert_in_range(n, 1, ITEMS);
		assert_int_equal(sscanf(text, "%15s %" SCNu64 " %" SCNu64 "%n", word, &i->start_ns,
					&i->end_ns, &used),
				 3);
		used += text[used] == ',';
		i->tid = PID;
		if (*at >= '1' && *at <= '9')
			i->tid += (uint32_t)(*at++ - '0');
		if (strchr("~*-", *at) != NULL)
			i->sign = *at++;
		else
			i->sign = 0;
		snprintf(i->name, sizeof(i->name), "%s", at);
	}
	return n;
}

static void describe(void *self, const struct hr_walk_region *row, struct hr_slice *ret)
{
	const struct item *i = (const struct item *)self + row->row;

	if (i->sign == '-')
		return;
	ret->type = i->sign == '*' ? HR_SLICE_INSTANT : HR_SLICE_BEGIN;
	ret->name = 1;
	ret->name_text = (struct hr_bytes){i->name, strlen(i->name)};
}

/* Makes the regions of the stream. They are listed in the order of hr_walk_region. */
static struct hr_regions *make_regions(struct hr_walk_stream *ws, const struct item *list,
				       unsigned n)
{
	struct hr_regions *made;
	Headrace__Regions *frame;

	assert_int_equal(hr_regions_new(&made), 0);
	for (unsigned i = 0; i < n; i++) {
		struct hr_region g = {.proc = 1,
				      .tid = list[i].tid,
				      .kind =
					  list[i].sign == '~' ? HR_REGION_SPAN : HR_REGION_RANGE,
				      .count = list[i].sign == '*' ? 7 : 1,
				      .start_ns = list[i].start_ns,
				      .dur_ns = list[i].end_ns - list[i].start_ns};

		assert_int_equal(hr_regions_add(made, &g), 0);
	}
	frame = (Headrace__Regions *)hr_regions_message(made);
	assert_int_equal(hr_regions_restore(frame), 0);
	ws->regions = calloc(n + 1, sizeof(*ws->regions));
	ws->n_regions = n;
	for (uint32_t i = 0; i < n; i++)
		ws->regions[i] = (struct hr_walk_region){.proc = 1,
							 .tid = list[i].tid,
							 .row = i,
							 .order = i,
							 .start_ns = list[i].start_ns,
							 .end_ns = list[i].end_ns,
							 .frame = frame};
	return made;
}

static void add_operation(struct hr_tracks *t, const struct hr_walk_stream *ws,
			  const struct item *i)
{
	struct hr_tracks_event e = {.ws = ws,
				    .p = &ws->processes[0],
				    .tid = i->tid,
				    .start_ns = i->start_ns,
				    .end_ns = i->end_ns,
				    .async = i->sign == '~'};
	struct hr_slice slice = {
	    .type = HR_SLICE_BEGIN, .name = 2, .name_text = {i->name, strlen(i->name)}};

	assert_int_equal(hr_tracks_add(t, &e, &slice), 0);
}

static void expect(const char *regions, const char *operations, const char *expected)
{
	struct item region_list[ITEMS], operation_list[ITEMS];
	unsigned n_regions = read_items(regions, region_list);
	unsigned n_operations = read_items(operations, operation_list);
	Headrace__Process msg = HEADRACE__PROCESS__INIT;
	struct hr_process process = {.msg = &msg, .rank = 3, .worker = 1};
	struct hr_walk_process walked = {.p = &process, .number = 1, .to_ns = UINT64_MAX};
	struct hr_stream s = {.node = "n1", .processes = &process, .n_processes = 1};
	struct hr_walk_stream ws = {.s = &s, .processes = &walked};
	struct hr_walk w = {.streams = &ws, .n_streams = 1, .n_processes = 1};
	struct keeper *k = calloc(1, sizeof(*k));
	struct hr_regions *made;
	struct hr_tracks *t;
	char text[TRACKS * TEXT_BYTES] = "";

	msg.proc = 1;
	msg.pid = PID;
	made = make_regions(&ws, region_list, n_regions);
	k->out = (struct hr_trace_out){.track = keep_track, .slice = keep_slice};
	assert_int_equal(hr_tracks_new(&k->out, &w, 0, describe, region_list, &t), 0);
	for (unsigned i = 0; i < n_operations; i++)
		add_operation(t, &ws, &operation_list[i]);
	assert_int_equal(hr_tracks_end_stream(t, &ws), 0);
	for (unsigned i = 0; i < k->n; i++) {
		const struct kept_track *kept = &k->tracks[i];
		size_t n = strlen(text);

		if (kept->track.process)
			assert_string_equal(kept->name, "rank 3 worker 1");
		if (kept->text[0] != '\0')
			snprintf(text + n, sizeof(text) - n, "%s:%s\n", kept->name, kept->text);
	}
	assert_string_equal(text, expected);
	hr_tracks_free(t);
	hr_regions_free(made);
	free(ws.regions);
	free(k);
}

/* ---- cases ---- */

static void operations_are_within_regions(void **state)
{
	expect("a 10 50, b 20 40", "x 12 15, y 25 30",
	       "main: 10+a 12+x 15- 20+b 25+y 30- 40- 50-\n");
	expect("a 10 20", "x 1 5, y 25 30", "main: 1+x 5- 10+a 20- 25+y 30-\n");
	/* without operations, and left out */
	expect("a 10 20, b 30 40, -n 35 38", "", "main: 10+a 20- 30+b 40-\n");
	/* a region within an operation */
	expect("a 15 18", "x 10 20, y 30 40", "main: 10+x 20- 30+y 40-\noverlapping: 15+a 18-\n");
}

static void same_moments(void **state)
{
	/* as long as its region */
	expect("a 10 20", "x 10 20", "main: 10+a 10+x 20- 20-\n");
	/* an end comes before a begin */
	expect("a 10 20, b 20 30", "x 15 20, y 20 25",
	       "main: 10+a 15+x 20- 20- 20+b 20+y 25- 30-\n");
	expect("a 10 20", "x 20 25", "main: 10+a 20- 20+x 25-\n");
	/* the outer one first */
	expect("a 10 20, b 10 20, c 10 15", "", "main: 10+a 10+b 10+c 15- 20- 20-\n");
	expect("a 10 20, b 15 20", "x 16 20", "main: 10+a 15+b 16+x 20- 20- 20-\n");
}

static void no_duration(void **state)
{
	expect("a 10 20", "w 10 10, x 15 15, y 15 18, z 20 20",
	       "main: 10+a 10+w 10- 15+x 15- 15+y 18- 20- 20+z 20-\n");
	expect("a 10 20, b 10 10, c 20 20", "x 10 12",
	       "main: 10+a 10+b 10- 10+x 12- 20- 20+c 20-\n");
}

static void what_crosses_has_lanes(void **state)
{
	expect("a 10 30, b 20 40, c 25 28", "x 26 27, y 32 35",
	       "main: 10+a 25+c 26+x 27- 28- 30- 32+y 35-\noverlapping: 20+b 40-\n");
	/* a second lane only if the first one is not free */
	expect("a 10 30, b 20 40, c 25 45, d 40 41", "x 26 35",
	       "main: 10+a 30- 40+d 41-\n"
	       "overlapping: 20+b 40-\noverlapping: 25+c 45-\noverlapping: 26+x 35-\n");
	/* operations of a thread */
	expect("", "x 10 20, y 15 25, z 25 30", "main: 10+x 20- 25+z 30-\noverlapping: 15+y 25-\n");
	expect("a 10 30", "x 25 35, y 40 50", "main: 10+a 30- 40+y 50-\noverlapping: 25+x 35-\n");
}

static void spans_have_lanes(void **state)
{
	expect("~a 10 30, r 12 40, ~b 20 40, ~c 30 35", "x 15 16",
	       "main: 12+r 15+x 16- 40-\nspans: 10+a 30- 30+c 35-\nspans: 20+b 40-\n");
}

static void asynchronous_operations_have_lanes(void **state)
{
	/* They are written when they complete. */
	expect("r 5 50", "submit 9 10, ~b 10 20, ~a 10 30, ~c 20 40, x 35 45",
	       "main: 5+r 9+submit 10- 35+x 45- 50-\n"
	       "asynchronous I/O: 10+b 20- 20+c 40-\nasynchronous I/O: 10+a 30-\n");
}

static void sums_are_instants(void **state)
{
	/* The time of all regions of a sum does not keep anything out of the track. */
	expect("a 10 30, *s 15 90, b 20 25", "x 21 22", "main: 10+a 15!s 20+b 21+x 22- 25- 30-\n");
}

static void out_of_order(void **state)
{
	/* An operation that began before the last one, and one that ended before it. */
	expect("a 5 60, b 25 60", "x 20 22, y 10 30, z 15 18, v 40 50",
	       "main: 5+a 20+x 22- 25+b 40+v 50- 60- 60-\n"
	       "overlapping: 10+y 30-\noverlapping: 15+z 18-\n");
	/* It began before a region that is already written, because x began later. */
	expect("a 10 50, b 25 30", "x 26 35, y 24 29",
	       "main: 10+a 25+b 30- 50-\noverlapping: 26+x 35-\noverlapping: 24+y 29-\n");
}

static void threads(void **state)
{
	expect("a 10 30, 1b 5 8, 1c 20 40, 2d 1 2", "1y 25 35, x 20 50, 3z 1 2",
	       "thread: 5+b 8- 20+c 25+y 35- 40-\nmain: 10+a 30-\noverlapping: 20+x 50-\n"
	       "thread: 1+z 2-\nthread: 1+d 2-\n");
}

/* ---- processes ---- */

static void names_and_pids_of_processes(void **state)
{
	Headrace__Process msgs[4];
	struct hr_process p[4];
	struct hr_walk_process walked[4];
	struct hr_stream s[2] = {{.node = "n1"}, {.node = "n2"}};
	struct hr_walk_stream ws[2] = {{.s = &s[0]}, {.s = &s[1]}};
	struct hr_walk w = {.streams = ws, .n_streams = 2, .n_processes = 4};
	struct keeper *k = calloc(1, sizeof(*k));
	struct hr_tracks *t;

	for (uint32_t i = 0; i < 4; i++) {
		headrace__process__init(&msgs[i]);
		msgs[i].pid = i == 3 ? 101 : 100;
		p[i] = (struct hr_process){.msg = &msgs[i], .rank = (int32_t)i - 1, .worker = -1};
		walked[i] = (struct hr_walk_process){.p = &p[i], .number = i + 1};
	}
	msgs[0].exe = (ProtobufCBinaryData){14, (uint8_t *)"/usr/bin/a\xff b\n"};
	p[3].worker = 0;
	k->out = (struct hr_trace_out){.track = keep_track, .slice = keep_slice};
	assert_int_equal(hr_tracks_new(&k->out, &w, 0, describe, NULL, &t), 0);
	for (uint32_t i = 0; i < 4; i++) {
		struct hr_track track = {.name = "x", .tid = msgs[i].pid};

		hr_tracks_add_track(t, &ws[i == 2], &walked[i], &track);
		assert_int_equal(track.tid, track.pid);
		assert_int_equal(track.parent, track.id - 1);
		for (uint32_t j = 0; j < i; j++)
			assert_int_not_equal(k->tracks[2 * j].track.pid, track.pid);
	}
	assert_string_equal(k->tracks[0].name, "a\xff b\n on n1");
	assert_string_equal(k->tracks[2].name, "rank 0 on n1 (pid 100)");
	assert_string_equal(k->tracks[4].name, "rank 1 on n2 (pid 100)");
	assert_string_equal(k->tracks[6].name, "rank 2 worker 0 on n1");
	assert_int_equal(k->tracks[0].track.pid, 100);
	assert_int_equal(k->tracks[6].track.pid, 101);
	hr_tracks_free(t);
	free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(operations_are_within_regions),
	    cmocka_unit_test(same_moments),
	    cmocka_unit_test(no_duration),
	    cmocka_unit_test(what_crosses_has_lanes),
	    cmocka_unit_test(spans_have_lanes),
	    cmocka_unit_test(asynchronous_operations_have_lanes),
	    cmocka_unit_test(sums_are_instants),
	    cmocka_unit_test(out_of_order),
	    cmocka_unit_test(threads),
	    cmocka_unit_test(names_and_pids_of_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
