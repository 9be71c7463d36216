/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_top_print.c - all views of `headrace top`, as a screen, as lines and as JSON, against
 * tests/cli/top.txt
 *
 * To accept what the program prints now: test_top_print print > tests/cli/top.txt
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top/top.h"
#include "common/ops.h"
#include "tests/query/fixture.h"
#include "tests/unit.h"

#define S	    UINT64_C(1000000000)
#define MS	    UINT64_C(1000000)
#define BYTES(text) ((ProtobufCBinaryData){sizeof(text) - 1, (uint8_t *)(text)})

enum { PROCESSES = 7, ROWS = 12, MOUNTS = 2, FILES = 3, USES = 4, FLIGHTS = 3 };

/* A picture of a job with two ranks, their workers, and a process without rank. */
struct picture {
	Headrace__LiveJob job;
	Headrace__LiveProcess process[PROCESSES], *processes[PROCESSES];
	Headrace__LiveRow row[ROWS], *rows[ROWS];
	uint64_t hist[ROWS][4];
	Headrace__LiveMount mount[MOUNTS], *mounts[MOUNTS];
	Headrace__LiveFile file[FILES], *files[FILES];
	Headrace__LiveUse use[USES], *uses[USES];
	Headrace__LiveInFlight flight[FLIGHTS], *in_flight[FLIGHTS];
};

static void make_processes(struct picture *p, uint64_t at)
{
	static const struct {
		uint32_t rank_plus1, worker_plus1, ended;
	} known[PROCESSES] = {{1, 0, 0}, {1, 1, 0}, {1, 2, 0}, {2, 0, 0},
			      {2, 1, 0}, {0, 0, 0}, {2, 1, 3}};

	for (uint32_t i = 0; i < PROCESSES; i++) {
		Headrace__LiveProcess *r = p->processes[i] = &p->process[i];
		bool trains = known[i].rank_plus1 > 0 && known[i].worker_plus1 == 0;

		headrace__live_process__init(r);
		r->proc = known[i].ended > 0 ? 0 : i + 1;
		r->pid = known[i].ended > 0 ? 0 : 100 + i;
		r->ended = known[i].ended;
		r->rank_plus1 = r->local_rank_plus1 = known[i].rank_plus1;
		r->worker_plus1 = known[i].worker_plus1;
		r->name = BYTES("python3");
		r->cmdline = i == 5 ? BYTES("/opt/bin/loader --lr 1\n") : BYTES("");
		r->start_ns = (1 + i) * MS;
		r->end_ns = i == 4 ? 2 * S : 0;
		r->wait_ns = trains ? at * (300 + 100 * i) * MS : 0;
		r->steps = trains ? at * (7 + i) : 0;
	}
}

static void make_rows(struct picture *p, uint64_t at)
{
	static const uint16_t ops[] = {HR_OP_pread64, HR_OP_write, HR_OP_open64, HR_OP_fsync,
				       HR_OP_stat};

	for (uint32_t i = 0; i < ROWS; i++) {
		Headrace__LiveRow *r = p->rows[i] = &p->row[i];
		uint64_t shorter = at * (10 + 3 * i), longer = at * (1 + i % 4);

		headrace__live_row__init(r);
		r->proc = i % PROCESSES == PROCESSES - 1 ? 0 : 1 + i % PROCESSES;
		r->op = ops[i % 5];
		r->mount = i % 3;
		r->count = shorter + longer;
		r->bytes = i % 5 < 2 ? r->count * 1000 * (1 + i) : 0;
		r->errors = i % 4 == 3 ? at * i : 0;
		r->dur_ns = (shorter << 11) * 3 / 2 + (longer << (20 + i % 3));
		r->max_dur_ns = UINT64_C(3) << (19 + i % 3);
		p->hist[i][0] = 11;
		p->hist[i][1] = shorter;
		p->hist[i][2] = 20 + i % 3;
		p->hist[i][3] = longer;
		r->dur_hist = p->hist[i];
		r->n_dur_hist = 4;
	}
}

static void make_files(struct picture *p, uint64_t at)
{
	static const char *const names[] = {"/data/\x1b[2Jset\n", "/scratch/model.pt", ""};
	static const char *const roots[] = {"/data", "/scratch"};

	for (uint32_t i = 0; i < MOUNTS; i++) {
		p->mounts[i] = &p->mount[i];
		headrace__live_mount__init(&p->mount[i]);
		p->mount[i].id = i + 1;
		p->mount[i].path =
		    (ProtobufCBinaryData){strlen(roots[i]), (uint8_t *)(uintptr_t)roots[i]};
		p->mount[i].fs_type = i == 0 ? "lustre" : "xfs";
	}
	for (uint32_t i = 0; i < FILES; i++) {
		p->files[i] = &p->file[i];
		headrace__live_file__init(&p->file[i]);
		p->file[i].id = 11 + i;
		p->file[i].mount = 1 + i % 2;
		p->file[i].path =
		    (ProtobufCBinaryData){strlen(names[i]), (uint8_t *)(uintptr_t)names[i]};
	}
	for (uint32_t i = 0; i < USES; i++) {
		Headrace__LiveUse *u = p->uses[i] = &p->use[i];

		headrace__live_use__init(u);
		u->proc = 1 + i;
		u->file = 11 + i % FILES;
		u->api = HR_API_POSIX;
		u->ops = at * (20 + 9 * i);
		u->bytes_read = at * 40000 * (i + 1);
		u->bytes_written = i == 1 ? at * 7777 : 0;
		u->dur_ns = at * (50 + 31 * i) * MS;
		u->max_dur_ns = (9 + i) * MS;
		u->open = i < 2;
	}
}

static void make_in_flight(struct picture *p, uint64_t now_ns)
{
	for (uint32_t i = 0; i < FLIGHTS; i++) {
		Headrace__LiveInFlight *f = p->in_flight[i] = &p->flight[i];

		headrace__live_in_flight__init(f);
		f->proc = i == 2 ? 99 : 2 + i;
		f->tid = 900 + i;
		f->op = i == 0 ? HR_OP_read : HR_OP_fsync;
		f->file = i == 0 ? 11 : 0;
		f->fd = i == 1 ? 5 : -1;
		f->since_ns = now_ns - (2 + 61 * i) * S;
		f->asked = i == 0 ? 4096 : HR_ASKED_NONE;
	}
}

static Headrace__LiveJob *make_picture(struct picture *p, uint64_t at)
{
	Headrace__LiveJob *m = &p->job;

	headrace__live_job__init(m);
	make_processes(p, at);
	make_rows(p, at);
	make_files(p, at);
	make_in_flight(p, at * 2 * S + 500 * S);
	m->job = "4711";
	m->attempt = 1;
	m->name = "resnet";
	m->node = "n1";
	m->level = "full";
	m->uid = 1000;
	m->instance = 5;
	m->boot_ns = at * 2 * S + 500 * S;
	m->real_ns = UINT64_C(1700000000) * S + at * 2 * S;
	m->since_ns = 440 * S;
	m->whole = true;
	m->processes = p->processes;
	m->n_processes = PROCESSES;
	m->rows = p->rows;
	m->n_rows = ROWS;
	m->mounts = p->mounts;
	m->n_mounts = MOUNTS;
	m->files = p->files;
	m->n_files = FILES;
	m->uses = p->uses;
	m->n_uses = USES;
	m->in_flight = p->in_flight;
	m->n_in_flight = FLIGHTS;
	m->in_flight_cut = 4;
	m->lost = at * 3;
	m->refused = at / 4;
	m->processes_total = 9;
	return m;
}

/* The screen as text: without the codes of the terminal. */
static void print_screen(FILE *to, const struct hr_screen_text *screen)
{
	for (size_t i = 0; i < screen->bytes; i++) {
		if (screen->s[i] == '\033')
			while (++i < screen->bytes && strchr("HJKm", screen->s[i]) == NULL)
				continue;
		else if (screen->s[i] != '\r')
			fputc(screen->s[i], to);
	}
	fputc('\n', to);
}

static void print_view(FILE *to, enum hr_top_view view, enum hr_top_sort sort, uint64_t from)
{
	static struct picture pictures[2];
	struct hr_top_display d = {
	    .view = view, .sort = sort, .every_ns = 2 * S, .all_columns = true};
	Headrace__LiveJob *before = from > 0 ? make_picture(&pictures[0], from) : NULL;
	Headrace__LiveJob *now = make_picture(&pictures[1], 4);
	struct hr_screen_text wide = {0}, narrow = {0};
	struct hr_top_table table;

	fprintf(to, "== by %s, sorted by %s%s\n", hr_top_view_names[view], hr_top_sort_names[sort],
		before == NULL ? ", first picture" : "");
	assert_int_equal(hr_top_sums(before, now, view, sort, &table), 0);
	d.job = now;
	d.table = &table;
	for (d.n_waits = 0; d.n_waits < 5; d.n_waits++)
		d.waits[d.n_waits] = 0.21 * d.n_waits;
	strcpy(d.finding.loss, "the training waits for batches: its workers have too few cores");
	strcpy(d.finding.action, "request 5 cores for each rank (now 1)");
	hr_top_draw(&wide, &d, 160, 30);
	d.all_columns = false;
	hr_top_draw(&narrow, &d, 72, 16);
	print_screen(to, &wide);
	print_screen(to, &narrow);
	hr_top_print(to, &d);
	hr_top_json(to, &d);
	hr_screen_text_done(&wide);
	hr_screen_text_done(&narrow);
	hr_top_table_done(&table);
}

static void print_all(FILE *to)
{
	setenv("TZ", "UTC", 1);
	for (enum hr_top_view view = 0; view < HR_TOP_VIEWS; view++)
		print_view(to, view, HR_TOP_TIME, 3);
	for (enum hr_top_sort sort = HR_TOP_BYTES; sort < HR_TOP_SORTS; sort++)
		print_view(to, HR_TOP_OP, sort, 1);
	print_view(to, HR_TOP_WORKER, HR_TOP_OPS, 0);
}

static void all_views(void **state)
{
	fixture_compare(HR_TOP, print_all);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_views)};

	if (argc == 1)
		return cmocka_run_group_tests(tests, NULL, NULL);
	print_all(stdout);
	return 0;
}
