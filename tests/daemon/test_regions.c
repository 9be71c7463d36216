/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: names and numbers on their way into frames, what is left open, limits, restarts, lies. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/regions.h"
#include "daemon/engine/live.h"
#include "rig.h"
#include "tests/unit.h"

#define NONE HR_REGION_NONE
#define ROWS 64u

struct row {
	struct hr_region g;
	char domain[64], category[64], name[64], args[64];
};

static void text(const Headrace__Regions *m, uint32_t number, char ret[64])
{
	const ProtobufCBinaryData *t = number ? &m->texts[number - 1] : NULL;

	snprintf(ret, 64, "%.*s", t ? (int)t->len : 0, t ? (const char *)t->data : "");
}

/* All regions of the frames seen so far, which are forgotten. */
static unsigned rows(struct rig *r, struct row *ret)
{
	unsigned n = 0;

	rig_tick(r, r->now + 2 * RIG_SECOND);
	for (unsigned i = 0; i < r->n_frames; i++) {
		Headrace__Regions *m = r->frames[i]->frame.regions;

		if (r->frames[i]->frame.body_case != HEADRACE__FRAME__BODY_REGIONS)
			continue;
		assert_int_equal(hr_regions_restore(m), 0);
		for (size_t k = 0; k < m->n_key && n < ROWS; k++, n++) {
			hr_regions_get(m, k, &ret[n].g);
			text(m, ret[n].g.domain, ret[n].domain);
			text(m, ret[n].g.category, ret[n].category);
			text(m, ret[n].g.name, ret[n].name);
			text(m, ret[n].g.args, ret[n].args);
		}
	}
	rig_clear(r);
	return n;
}

static uint64_t process(struct rig *r, int pid)
{
	struct hr_record thread = {.op = HR_CTL_THREAD, .fd = 77};
	uint64_t proc = rig_attach(r, &(struct rig_hello){.pid = pid});

	rig_records(r, proc, &thread, 1);
	return proc;
}

/* ---- rows ------------------------------------------------------------------------------------------ */

static void names_and_numbers(void **state)
{
	struct row found[ROWS];
	struct hr_record s[4];
	struct rig r;
	uint64_t proc, other;

	rig_init(&r);
	proc = process(&r, 10);
	other = process(&r, 11);
	rig_region_key(&r, proc, 800, HR_REGION_RANGE, "reader", "io", "load");
	rig_region_key(&r, proc, 808, HR_REGION_CHECKPOINT, "", "", "save");
	s[0] = rig_region(&r, 800, HR_REGION_RANGE, 50);
	s[0].offset = 3;
	s[0].ret = 1;
	s[0].fd = 2;
	s[0].asked = 7;
	rig_records(&r, proc, s, 1);
	s[0] = rig_region(&r, 808, HR_REGION_CHECKPOINT, 90);
	s[0].flags |= HR_REGION_IS_SPAN | HR_REGION_IS_OPEN | HR_REGION_HAS_ARGS;
	s[0].fd = 4321;
	rig_records(&r, other, s,
		    rig_text(s, "{\"a\":1}", 7)); /* one process announces the key for all */
	assert_int_equal(rows(&r, found), 2);
	assert_int_equal(found[0].g.proc, proc);
	assert_int_equal(found[0].g.tid, 77);
	assert_int_equal(found[0].g.depth, 2);
	assert_int_equal(found[0].g.count, 7);
	assert_int_equal(found[0].g.step, 3);
	assert_int_equal(found[0].g.epoch, 1);
	assert_int_equal(found[0].g.dur_ns, 50);
	assert_false(found[0].g.open);
	assert_string_equal(found[0].domain, "reader");
	assert_string_equal(found[0].category, "io");
	assert_string_equal(found[0].name, "load");
	assert_int_equal(found[1].g.proc, other);
	assert_int_equal(found[1].g.kind, HR_REGION_CHECKPOINT);
	assert_int_equal(found[1].g.tid, 4321);
	assert_int_equal(found[1].g.depth, 0);
	assert_true(found[1].g.open);
	assert_true(found[1].g.step == HR_REGION_UNKNOWN && found[1].g.epoch == HR_REGION_UNKNOWN);
	assert_string_equal(found[1].name, "save");
	assert_string_equal(found[1].args, "{\"a\":1}");
	assert_int_equal(rig_loss(&r, "hostile"), 0);
	rig_done(&r);
}

/* With privacy rules, a region has its name, but no arguments: these may contain paths. */
static void private_arguments_are_left_out(void **state)
{
	static const char args[] = "{\"path\":\"/data/secret\"}";
	struct hr_entry_privacy in = {.rules = {.paths = HR_PATHS_HASH, .keep = 1, .key = "one"}};
	struct row found[ROWS];
	struct hr_record s[4];
	struct rig r;
	uint64_t proc;

	rig_init(&r);
	rig_entry(&r, HR_ENTRY_PRIVACY, &in, sizeof(in));
	proc = process(&r, 10);
	rig_region_key(&r, proc, 808, HR_REGION_CHECKPOINT, "", "", "save");
	s[0] = rig_region(&r, 808, HR_REGION_CHECKPOINT, 90);
	s[0].flags |= HR_REGION_HAS_ARGS;
	rig_records(&r, proc, s, rig_text(s, args, strlen(args)));
	assert_int_equal(rows(&r, found), 1);
	assert_string_equal(found[0].name, "save");
	assert_int_equal(found[0].g.dur_ns, 90);
	assert_string_equal(found[0].args, "");
	rig_done(&r);
}

/* What was told before a checkpoint is known behind it, also to the next daemon. */
static void names_outlive_restarts(void **state)
{
	struct row found[ROWS];
	struct hr_record s;
	struct rig r;
	uint64_t proc;

	rig_init(&r);
	proc = process(&r, 10);
	rig_region_key(&r, proc, 800, HR_REGION_RANGE, "d", "c", "load");
	rig_checkpoint(&r);
	rig_restart(&r);
	s = rig_region(&r, 800, HR_REGION_RANGE, 50);
	rig_records(&r, proc, &s, 1);
	assert_int_equal(rows(&r, found), 1);
	assert_string_equal(found[0].name, "load");
	assert_string_equal(found[0].category, "c");
	assert_string_equal(found[0].domain, "d");
	assert_int_equal(found[0].g.tid, 77);
	rig_done(&r);
}

static void names_have_an_end(void **state)
{
	struct row found[ROWS];
	struct hr_record s;
	struct rig r;
	char name[32];
	uint64_t proc;

	rig_init(&r);
	proc = process(&r, 10);
	for (unsigned i = 0; i <= HR_REGION_KEYS; i++) {
		snprintf(name, sizeof(name), "iteration %u", i);
		rig_region_key(&r, proc, 8 * (i + 1), HR_REGION_RANGE, "", "", name);
	}
	s = rig_region(&r, UINT64_C(8) * HR_REGION_KEYS, HR_REGION_RANGE, 50);
	rig_records(&r, proc, &s, 1);
	s = rig_region(&r, UINT64_C(8) * (HR_REGION_KEYS + 1), HR_REGION_RANGE, 50);
	rig_records(&r, proc, &s, 1);
	assert_int_equal(rows(&r, found), 2);
	snprintf(name, sizeof(name), "iteration %u", HR_REGION_KEYS - 1);
	assert_string_equal(found[0].name, name);
	assert_non_null(strstr(found[1].name, "more names"));
	assert_int_equal(found[1].g.dur_ns, 50);
	rig_done(&r);
}

/* A thread uses a name that another one has told, and its ring is read first. What is never told stays without. */
static void names_told_later(void **state)
{
	struct row found[ROWS];
	struct hr_record s[3];
	struct rig r;
	uint64_t proc;

	rig_init(&r);
	proc = process(&r, 10);
	s[0] = rig_region(&r, 800, HR_REGION_RANGE, 50);
	s[1] = rig_region(&r, 808, HR_REGION_RANGE, 60);
	s[2] = rig_region(&r, 816, HR_REGION_RANGE, 70);
	rig_records(&r, proc, s, 3);
	rig_region_key(&r, proc, 800, HR_REGION_RANGE, "reader", "io", "load");
	rig_region_key(&r, proc, 816, HR_REGION_RANGE, "", "", "save");
	s[0] = rig_region(&r, 800, HR_REGION_RANGE, 80);
	rig_records(&r, proc, s, 1);
	assert_int_equal(rows(&r, found), 4);
	for (unsigned i = 0; i < 4; i += 3) {
		assert_string_equal(found[i].domain, "reader");
		assert_string_equal(found[i].category, "io");
		assert_string_equal(found[i].name, "load");
	}
	assert_non_null(strstr(found[1].name, "more names"));
	assert_string_equal(found[2].name, "save");
	assert_string_equal(found[2].domain, "");
	assert_int_equal(found[0].g.dur_ns, 50);
	assert_int_equal(found[3].g.dur_ns, 80);
	rig_done(&r);
}

/* More than a frame holds go into two. */
static void frames_have_an_end(void **state)
{
	struct hr_record s[256];
	uint64_t proc, n = 0;
	struct rig r;

	rig_init(&r);
	proc = process(&r, 10);
	rig_region_key(&r, proc, 800, HR_REGION_RANGE, "", "", "x");
	for (unsigned i = 0; i < HR_REGIONS_MAX / 256 + 1; i++) {
		for (unsigned k = 0; k < 256; k++)
			s[k] = rig_region(&r, 800, HR_REGION_RANGE, 1 + k);
		rig_records(&r, proc, s, 256);
	}
	rig_tick(&r, r.now + 2 * RIG_SECOND);
	for (unsigned i = 0; i < r.n_frames; i++)
		if (r.frames[i]->frame.body_case == HEADRACE__FRAME__BODY_REGIONS)
			n += r.frames[i]->frame.regions->n_key;
	assert_int_equal(n, HR_REGIONS_MAX + 256);
	rig_done(&r);
}

/* ---- the dead --------------------------------------------------------------------------------------- */

struct left {
	struct hr_entry_left_regions in;
	struct hr_region_cell cells[2];
};

static struct left left_by(const struct rig *r, uint64_t proc, uint64_t key0, uint64_t key1)
{
	struct left l = {.in = {.proc = proc, .now_ticks = r->now + 500, .n = 2}};

	for (unsigned i = 0; i < 2; i++)
		l.cells[i] = (struct hr_region_cell){.key = i ? key1 : key0,
						     .start_ticks = r->now,
						     .step = 9,
						     .epoch = NONE,
						     .flags = HR_REGION_KIND(HR_REGION_RANGE),
						     .tid = 99};
	return l;
}

/* A cell whose record came is none, also for a daemon that has only read of it. */
static void left_open(void **state)
{
	struct row found[ROWS];
	struct hr_record s;
	struct rig r;
	struct left l;
	uint64_t proc;

	rig_init(&r);
	proc = process(&r, 10);
	rig_region_key(&r, proc, 800, HR_REGION_RANGE, "", "", "outer");
	rig_region_key(&r, proc, 808, HR_REGION_RANGE, "", "", "inner");
	s = rig_region(&r, 808, HR_REGION_RANGE, 20);
	rig_records(&r, proc, &s, 1);
	assert_int_equal(rows(&r, found), 1);
	l = left_by(&r, proc, 800, 808);
	l.cells[1].start_ticks = s.start_ticks;
	rig_restart(&r);
	rig_entry(&r, HR_ENTRY_LEFT_REGIONS, &l, sizeof(l));
	assert_int_equal(rows(&r, found), 1);
	assert_string_equal(found[0].name, "outer");
	assert_true(found[0].g.open);
	assert_int_equal(found[0].g.tid, 77);
	assert_int_equal(found[0].g.depth, 0);
	assert_int_equal(found[0].g.step, 9);
	assert_int_equal(found[0].g.dur_ns, 500);
	l = left_by(&r, proc, 800, 808);
	l.in.what = HR_LEFT_SPANS;
	rig_entry(&r, HR_ENTRY_LEFT_REGIONS, &l, sizeof(l));
	assert_int_equal(rows(&r, found), 2);
	assert_true(found[1].g.open && found[1].g.tid == 99 && found[1].g.depth == 0);
	rig_done(&r);
}

/* Short ones that no record has told; one whose record came, and whose thread died before the cell went, is none. */
static void left_sums(void **state)
{
	struct {
		struct hr_entry_left_regions in;
		struct hr_region_short cells[3];
	} l = {.in = {.what = HR_LEFT_SHORTS, .n = 3}};
	struct row found[ROWS];
	struct hr_record s;
	struct rig r;
	uint64_t proc;

	rig_init(&r);
	proc = process(&r, 10);
	rig_region_key(&r, proc, 800, HR_REGION_RANGE, "", "", "tiny");
	s = rig_region(&r, 800, HR_REGION_RANGE, 20);
	s.asked = 5;
	rig_records(&r, proc, &s, 1);
	l.in.proc = proc;
	l.in.now_ticks = r.now + 500;
	for (unsigned i = 0; i < 3; i++)
		l.cells[i] = (struct hr_region_short){.key = 800,
						      .start_ticks = s.start_ticks + i,
						      .step = NONE,
						      .epoch = NONE,
						      .ticks = 40 + i,
						      .count = 5 + i,
						      .depth = i,
						      .flags = HR_REGION_KIND(HR_REGION_RANGE)};
	l.cells[2].ticks = UINT64_C(1) << 60; /* a lie */
	rig_entry(&r, HR_ENTRY_LEFT_REGIONS, &l, sizeof(l));
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_loss(&r, "hostile"), 1);
	assert_int_equal(rows(&r, found), 2);
	assert_int_equal(found[0].g.count, 5);
	assert_int_equal(found[1].g.count, 6);
	assert_int_equal(found[1].g.dur_ns, 41);
	assert_int_equal(found[1].g.depth, 1);
	assert_false(found[1].g.open);
	rig_done(&r);
}

/* Ranges that had no cell are counted, as far as a thread can have begun them. */
static void left_deeper(void **state)
{
	struct row found[ROWS];
	struct rig r;
	struct left l;
	uint64_t proc;

	rig_init(&r);
	proc = process(&r, 10);
	l = left_by(&r, proc, 800, 808);
	l.in.deeper = 968;
	rig_entry(&r, HR_ENTRY_LEFT_REGIONS, &l, sizeof(l));
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_loss(&r, "regions"), 968);
	assert_int_equal(rig_loss(&r, "hostile"), 0);
	assert_int_equal(rows(&r, found), 2);
	l = left_by(&r, proc, 816, 824);
	l.in.deeper = UINT32_MAX - HR_REGION_DEPTH; /* a lie */
	rig_entry(&r, HR_ENTRY_LEFT_REGIONS, &l, sizeof(l));
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_loss(&r, "regions"), 0);
	assert_int_equal(rig_loss(&r, "hostile"), 1);
	assert_int_equal(rows(&r, found), 2);
	rig_done(&r);
}

/* ---- who looks ---------------------------------------------------------------------------------------- */

static void waits_are_of_the_living(void **state)
{
	struct hr_engine_stats stats;
	struct hr_record s;
	struct rig r;
	uint64_t proc[2];

	rig_init(&r);
	for (int i = 0; i < 2; i++) {
		proc[i] = process(&r, 10 + i);
		s = rig_region(&r, 800, HR_REGION_INPUT_WAIT, 100);
		rig_records(&r, proc[i], &s, 1);
		s = rig_region(&r, 808, HR_REGION_STEP, 300);
		rig_records(&r, proc[i], &s, 1);
	}
	s = rig_region(&r, 800, HR_REGION_INPUT_WAIT, 50);
	rig_records(&r, proc[1], &s, 1);
	hr_engine_stats_get(r.engine, &stats);
	assert_int_equal(stats.waiters, 2);
	assert_int_equal(stats.waited_ns, 250);
	assert_int_equal(stats.steps, 2);
	rig_end(&r, proc[0], "0");
	hr_engine_stats_get(r.engine, &stats);
	assert_int_equal(stats.waiters, 1);
	assert_int_equal(stats.waited_ns, 150);
	rig_end(&r, proc[1], "0");
	hr_engine_stats_get(r.engine, &stats);
	assert_int_equal(stats.waiters + stats.waited_ns + stats.waiting_since_ns, 0);
	assert_int_equal(stats.steps, 2);
	rig_done(&r);
}

/* ---- what clients may say ----------------------------------------------------------------------------- */

static void lies_change_nothing(void **state)
{
	struct row found[ROWS];
	struct hr_record s[2];
	struct rig r;
	uint64_t proc;
	unsigned lies = 0;

	rig_init(&r);
	proc = process(&r, 10);
	rig_region_key(&r, proc, 800, HR_REGION_RANGE, "", "", "x");
#define LIE(field, value)                                                                          \
	do {                                                                                       \
		s[0] = rig_region(&r, 800, HR_REGION_RANGE, 20);                                   \
		s[0].field = value;                                                                \
		rig_records(&r, proc, s, 1);                                                       \
		lies++;                                                                            \
	} while (0)
	LIE(flags, HR_REGION_KIND(99));
	LIE(flags, 0);
	LIE(asked, 0);
	LIE(asked, UINT64_C(1) << 50);
	LIE(fd, -1);
	LIE(fd, 33);
	LIE(start_ticks, 1);
	LIE(start_ticks, r.now + 100 * RIG_SECOND);
	LIE(dur_hi, 0xffff);
	/* Texts: no separators, a kind that nobody knows, nothing. */
	s[0] = (struct hr_record){.op = HR_CTL_REGION_KEY, .file = 816};
	rig_records(&r, proc, s, rig_text(s, "\0Bname", 6));
	s[0] = (struct hr_record){.op = HR_CTL_REGION_KEY, .file = 816};
	rig_records(&r, proc, s, rig_text(s, "\0z\0\0x", 5));
	s[0] = (struct hr_record){.op = HR_CTL_REGION_KEY, .file = 816};
	rig_records(&r, proc, s, rig_text(s, "", 1));
	lies += 3;
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_loss(&r, "hostile"), lies);
	assert_int_equal(rows(&r, found), 0);
	rig_done(&r);
}

/* Too deep, too many, no room: counted apart from operations. */
static void losses(void **state)
{
	struct {
		struct hr_entry_lost in;
		struct hr_lost_row row;
	} lost = {.in = {.n = 1}, .row = {.op = HR_CTL_REGION, .total = {.count = 5}}};
	struct rig r;

	rig_init(&r);
	lost.in.proc = process(&r, 10);
	rig_entry(&r, HR_ENTRY_LOST, &lost, sizeof(lost));
	lost.row.total.count = 8;
	rig_entry(&r, HR_ENTRY_LOST, &lost, sizeof(lost));
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_loss(&r, "regions"), 8);
	/* Of children that have no session. */
	lost.row = (struct hr_lost_row){.op = HR_LOST_STRAYS + HR_CTL_REGION, .total.count = 100};
	rig_entry(&r, HR_ENTRY_LOST, &lost, sizeof(lost));
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_loss(&r, "regions"), 108);
	assert_int_equal(rig_loss(&r, "hostile"), 0);
	lost.row.op = HR_LOST_STRAYS + HR_CTL_REGION_KEY;
	rig_entry(&r, HR_ENTRY_LOST, &lost, sizeof(lost));
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_loss(&r, "hostile"), 1);
	assert_int_equal(rig_loss(&r, "regions"), 108);
	assert_int_equal(rig_loss(&r, "stray"), 0);
	assert_int_equal(rig_loss(&r, "ring_full"), 0);
	/* Of one that said them before a daemon was there. */
	rig_attach(&r, &(struct rig_hello){.pid = 11,
					   .detached = {.op = HR_CTL_REGION, .total.count = 1000}});
	rig_tick(&r, r.now + RIG_SECOND);
	assert_int_equal(rig_loss(&r, "regions"), 1108);
	assert_int_equal(rig_loss(&r, "detached"), 0);
	rig_done(&r);
}

/* Files of a checkpoint that are saved soon after each other are one save; a later one is another. */
static void last_checkpoint(void **state)
{
	static const uint64_t pauses[] = {RIG_SECOND / 2, 3 * RIG_SECOND};
	struct hr_live_picture *p;
	struct hr_record s;
	struct rig r;
	uint64_t proc, start;

	rig_init(&r);
	proc = process(&r, 10);
	rig_region_key(&r, proc, 808, HR_REGION_CHECKPOINT, "", "", "save");
	s = rig_region(&r, 808, HR_REGION_CHECKPOINT, RIG_SECOND);
	start = s.start_ticks;
	rig_tick(&r, r.now + RIG_SECOND);
	rig_records(&r, proc, &s, 1);
	for (size_t i = 0; i < 2; i++) {
		rig_tick(&r, r.now + pauses[i]);
		s = rig_region(&r, 808, HR_REGION_CHECKPOINT, RIG_SECOND);
		start = i == 0 ? start : s.start_ticks;
		rig_tick(&r, r.now + RIG_SECOND);
		rig_records(&r, proc, &s, 1);
		p = rig_picture(&r, NULL, 0);
		assert_int_equal(p->m.n_processes, 1);
		assert_int_equal(p->m.processes[0]->save_end_ns - p->m.processes[0]->save_start_ns,
				 s.start_ticks - start + RIG_SECOND);
		hr_live_free(p);
	}
	rig_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_and_numbers),
	    cmocka_unit_test(private_arguments_are_left_out),
	    cmocka_unit_test(names_outlive_restarts),
	    cmocka_unit_test(names_have_an_end),
	    cmocka_unit_test(names_told_later),
	    cmocka_unit_test(frames_have_an_end),
	    cmocka_unit_test(left_open),
	    cmocka_unit_test(left_sums),
	    cmocka_unit_test(left_deeper),
	    cmocka_unit_test(lies_change_nothing),
	    cmocka_unit_test(losses),
	    cmocka_unit_test(waits_are_of_the_living),
	    cmocka_unit_test(last_checkpoint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
