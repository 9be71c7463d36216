/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a running job: sums that never shrink, whatever is sent, ended or restarted meanwhile; and bounded. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/engine/live.h"
#include "daemon/engine/mounts.h"
#include "rig.h"
#include "tests/unit.h"

#define NONE HR_OFFSET_NONE

struct sum {
	uint64_t count, bytes, errors, dur_ns, max_ns, hist;
};

/* proc UINT64_MAX, op 0: of all. */
static struct sum sum_of(const struct hr_live_picture *p, uint64_t proc, uint16_t op)
{
	struct sum s = {0};

	for (size_t i = 0; i < p->m.n_rows; i++) {
		const Headrace__LiveRow *row = p->m.rows[i];

		if ((proc != UINT64_MAX && row->proc != proc) || (op && row->op != op))
			continue;
		s.count += row->count;
		s.bytes += row->bytes;
		s.errors += row->errors;
		s.dur_ns += row->dur_ns;
		s.max_ns = row->max_dur_ns > s.max_ns ? row->max_dur_ns : s.max_ns;
		for (size_t k = 1; k < row->n_dur_hist; k += 2)
			s.hist += row->dur_hist[k];
	}
	return s;
}

static const Headrace__LiveProcess *process_of(const struct hr_live_picture *p, uint64_t proc)
{
	for (size_t i = 0; i < p->m.n_processes; i++)
		if (p->m.processes[i]->proc == proc)
			return p->m.processes[i];
	return NULL;
}

static const char *path_of(const struct hr_live_picture *p, uint32_t file)
{
	static char text[4096];

	for (size_t i = 0; i < p->m.n_files; i++) {
		if (p->m.files[i]->id != file)
			continue;
		snprintf(text, sizeof(text), "%.*s", (int)p->m.files[i]->path.len,
			 (const char *)p->m.files[i]->path.data);
		return text;
	}
	return NULL;
}

/* Three reads, one of which fails. */
static void reads(struct rig *r, uint64_t proc, const char *path)
{
	struct hr_record s[16];
	unsigned n = rig_path(s, path, false);

	s[n++] = rig_op(r, "pread", path, 5, 100, 100, 0, 0, 1000);
	s[n++] = rig_op(r, "pread", path, 5, 50, 100, 100, 0, 3000);
	s[n++] = rig_op(r, "pread", path, 5, -5, 100, 200, 0, 2000);
	rig_records(r, proc, s, n);
}

static void check_sum(const struct hr_live_picture *p, uint64_t proc, unsigned times)
{
	struct sum s = sum_of(p, proc, hr_op_by_name("pread"));

	assert_int_equal(s.count, 3 * times);
	assert_int_equal(s.hist, 3 * times);
	assert_int_equal(s.bytes, 150 * times);
	assert_int_equal(s.errors, times);
	assert_int_equal(s.dur_ns, 6000 * times);
	assert_int_equal(s.max_ns, 3000);
}

static void check_reads(struct rig *r, uint64_t proc, unsigned times)
{
	struct hr_live_picture *p = rig_picture(r, NULL, 0);

	check_sum(p, proc, times);
	hr_live_free(p);
}

static void sums_outlive_windows_and_checkpoints(void **state)
{
	struct hr_live_picture *p;
	struct rig r;
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10, .exe = "/usr/bin/python3"});
	for (unsigned i = 1; i <= 5; i++) {
		reads(&r, proc, "/data/a");
		check_reads(&r, proc, i); /* in the open window */
		rig_tick(&r, r.now + 4 * RIG_SECOND);
		check_reads(&r, proc, i);
		if (i == 3)
			rig_checkpoint(&r);
		rig_tick(&r, r.now + 12 * RIG_SECOND);
		check_reads(&r, proc, i); /* and sent */
	}
	p = rig_picture(&r, NULL, 0);
	assert_true(p->m.whole);
	assert_int_equal(p->m.since_ns, RIG_START);
	assert_int_equal(p->m.n_processes, 1);
	assert_memory_equal(p->m.processes[0]->name.data, "python3", 7);
	hr_live_free(p);
	/* Who goes on after a restart does not know what was sent before the checkpoint, and says so. */
	rig_restart(&r);
	reads(&r, proc, "/data/a");
	check_reads(&r, proc, 1);
	p = rig_picture(&r, NULL, 0);
	assert_false(p->m.whole);
	assert_true(p->m.since_ns > RIG_START);
	hr_live_free(p);
	rig_done(&r);
}

/* A file's counters go on, too, over a checkpoint; and its name is there long after it was sent. */
static void files_in_use(void **state)
{
	struct hr_live_picture *p;
	struct rig r;
	char path[200];
	struct hr_record s[16];
	uint64_t proc;
	unsigned n;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	n = rig_path(s, "/data/index", false);
	s[n++] = rig_op(&r, "open64", "/data/index", 9, 9, HR_ASKED_NONE, NONE, O_RDONLY, 10);
	rig_records(&r, proc, s, n);
	reads(&r, proc, "/data/index");
	for (unsigned i = 0; i < 30000; i++) { /* 4 MB of names */
		snprintf(path, sizeof(path), "/data/%0100u/%u", i, i);
		n = rig_path(s, path, false);
		s[n++] = rig_op(&r, "open64", path, 5, 5, HR_ASKED_NONE, NONE, O_RDONLY, 10);
		s[n++] = rig_op(&r, "close", path, 5, 0, HR_ASKED_NONE, NONE, 0, 10);
		rig_records(&r, proc, s, n);
		if (i % 1000 == 0) {
			rig_tick(&r, r.now + RIG_SECOND);
			rig_clear(&r);
		}
		if (i == 10000)
			rig_checkpoint(&r);
	}
	reads(&r, proc, "/data/index");
	p = rig_picture(&r, NULL, 0);
	n = 0;
	for (size_t i = 0; i < p->m.n_uses; i++) {
		const Headrace__LiveUse *u = p->m.uses[i];

		assert_non_null(path_of(p, u->file));
		if (strcmp(path_of(p, u->file), "/data/index") != 0)
			continue;
		assert_int_equal(u->ops, 7);
		assert_int_equal(u->bytes_read, 300);
		assert_int_equal(u->dur_ns, 10 + 2 * 6000);
		assert_true(u->open);
		n++;
	}
	assert_int_equal(n, 1);
	assert_true(p->m.n_uses < 1000);
	assert_int_equal(p->m.files_cut, 0);
	hr_live_free(p);
	rig_done(&r);
}

static void wait_and_step(struct rig *r, uint64_t proc)
{
	static const uint32_t kinds[] = {HR_REGION_INPUT_WAIT, HR_REGION_STEP};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct hr_record s = {.op = HR_CTL_REGION,
				      .file = 800,
				      .start_ticks = r->now,
				      .dur_lo = 70,
				      .offset = HR_REGION_NONE,
				      .ret = HR_REGION_NONE,
				      .asked = 1,
				      .flags = HR_REGION_KIND(kinds[i])};

		r->now += 70;
		rig_records(r, proc, &s, 1);
	}
}

/* Thousands of short processes of two ranks: their sums stay with their ranks, and the picture does not grow with them. */
static void ended_processes_are_summed_up(void **state)
{
	struct hr_live_picture *p;
	uint64_t of_rank[3] = {0}, ended = 0, steps = 0, wait_ns = 0;
	struct rig r;

	rig_init(&r);
	for (unsigned i = 0; i < 2000; i++) {
		uint64_t proc = rig_attach(
		    &r, &(struct rig_hello){.pid = 100 + (int)i,
					    .env = {i % 3 ? "RANK=1" : "RANK=2", "WORLD_SIZE=4"}});

		reads(&r, proc, "/data/a");
		wait_and_step(&r, proc);
		rig_end(&r, proc, "");
		rig_tick(&r, r.now + RIG_SECOND / 4);
		rig_clear(&r);
	}
	p = rig_picture(&r, NULL, 0);
	for (size_t i = 0; i < p->m.n_rows; i++) {
		const Headrace__LiveProcess *who = process_of(p, p->m.rows[i]->proc);

		assert_non_null(who);
		of_rank[who->rank_plus1 - 1] += p->m.rows[i]->count;
	}
	assert_int_equal(of_rank[1], 3 * 1333);
	assert_int_equal(of_rank[2], 3 * 667);
	for (size_t i = 0; i < p->m.n_processes; i++) {
		ended += p->m.processes[i]->pid ? 1 : p->m.processes[i]->ended;
		steps += p->m.processes[i]->steps;
		wait_ns += p->m.processes[i]->wait_ns;
	}
	assert_int_equal(ended, 2000);
	assert_int_equal(steps, 2000);
	assert_int_equal(wait_ns, 2000 * 70);
	assert_true(p->m.n_processes < 2 + 2 * HR_LIVE_ENDED_MANY + 40 * 4);
	assert_false(p->m.rows_cut);
	assert_true(p->m.whole);
	check_sum(p, UINT64_MAX, 2000);
	hr_live_free(p);
	rig_done(&r);
}

/* So many keys that there is no room for all: nothing is lost of the sum, and a picture says so. */
static void rows_are_bounded(void **state)
{
	static const char *const ops[] = {"read", "write", "pread", "pwrite",
					  "open", "close", "lseek", "fsync"};
	struct hr_live_picture *p;
	struct hr_record s[8];
	struct rig r;
	uint8_t *packed;
	size_t bytes;

	rig_init(&r);
	for (unsigned i = 0; i < 5000; i++) {
		uint64_t proc = rig_attach(&r, &(struct rig_hello){.pid = 100 + (int)i});

		for (unsigned k = 0; k < 8; k++)
			s[k] = rig_op(&r, ops[k], NULL, 5, 0, 1, NONE, 0, 100);
		rig_records(&r, proc, s, 8);
		if (i % 500 == 0)
			rig_clear(&r);
	}
	p = rig_picture(&r, NULL, 0);
	assert_int_equal(sum_of(p, UINT64_MAX, 0).count, 5000 * 8);
	assert_true(p->m.n_rows <= HR_LIVE_ROWS_MOST + HR_OP_MAX);
	assert_true(p->m.rows_cut);
	assert_int_equal(p->m.n_processes + p->m.processes_cut, 5000);
	assert_true(p->m.processes_cut > 0);
	assert_int_equal(hr_live_pack(p, &packed, &bytes), 0);
	assert_true(bytes < 4u << 20);
	free(packed);
	hr_live_free(p);
	rig_done(&r);
}

static void no_frame_says(const struct rig *r, const char *word)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->n_frames; i++) {
		const Headrace__Frame *f = &r->frames[i]->frame;
		size_t bytes = headrace__frame__get_packed_size(f);
		uint8_t *packed = malloc(bytes);

		assert_non_null(packed);
		headrace__frame__pack(f, packed);
		assert_null(memmem(packed, bytes, word, strlen(word)));
		n += f->body_case == HEADRACE__FRAME__BODY_PATHS && f->paths->n_mounts > 0;
		free(packed);
	}
	assert_int_equal(n, 1);
}

/* What a site hides is hidden here, and in the frames. */
static void private_words_are_hidden(void **state)
{
	struct hr_entry_privacy in = {
	    .rules = {
		.paths = HR_PATHS_HASH, .keep = 1, .commands = HR_COMMANDS_PROGRAM, .key = "one"}};
	char mountinfo[] = "36 35 98:7 / /data/secret rw - lustre secret@tcp rw\n";
	union {
		struct hr_entry_mounts m;
		uint8_t bytes[256];
	} mounts = {0};
	const struct hr_mounts none = {0};
	struct hr_live_picture *p;
	struct rig r;
	uint64_t proc, used;

	rig_init(&r);
	rig_entry(&r, HR_ENTRY_PRIVACY, &in, sizeof(in));
	used = hr_mountinfo_rows(&none, mountinfo, mounts.m.rows, 128, &mounts.m.n);
	rig_entry(&r, HR_ENTRY_MOUNTS, &mounts, sizeof(mounts.m) + used);
	for (int pid = 10; pid < 12; pid++) {
		proc = rig_attach(&r,
				  &(struct rig_hello){.pid = pid,
						      .exe = "/usr/secret/program",
						      .cmdline = "/usr/secret/program --password"});
		reads(&r, proc, "/data/secret/password");
		if (pid == 10)
			rig_end(&r, proc, "");
	}
	for (int sent = 0; sent < 2; sent++) {
		uint8_t *packed;
		size_t bytes;

		p = rig_picture(&r, NULL, 0);
		assert_int_equal(p->m.n_processes, 2);
		assert_int_equal(p->m.n_files, 1);
		assert_memory_equal(p->m.files[0]->path.data, "/data/", 6);
		assert_int_equal(hr_live_pack(p, &packed, &bytes), 0);
		assert_null(memmem(packed, bytes, "secret", 6));
		assert_null(memmem(packed, bytes, "password", 8));
		assert_null(memmem(packed, bytes, "program", 7));
		free(packed);
		hr_live_free(p);
		rig_tick(&r, r.now + RIG_SECOND / 2);
	}
	no_frame_says(&r, "secret");
	rig_done(&r);
}

static void cells_are_checked(void **state)
{
	struct hr_live_picture *p;
	struct rig r;
	uint64_t proc;

	rig_init(&r);
	proc = rig_attach(&r, &(struct rig_hello){.pid = 10});
	reads(&r, proc, "/data/a");
	{
		struct hr_inflight of = {
		    .op = hr_op_by_name("pread"), .file = rig_hash("/data/a"), .fd = 5, .asked = 7};
		struct hr_inflight none = {.op = 9}, high = {.op = UINT16_MAX}, strange = of;
		struct hr_live_cell cells[] = {
		    {proc, 0, 0, 5000, of},	 {proc, 0, 0, 5000, none},
		    {proc, 0, 0, 5000, high},	 {proc + 1, 0, 0, 5000, of},
		    {proc, 63, 3, 5000, of},	 {proc, 0, 0, UINT64_MAX, of},
		    {proc, 0, 0, 5000, strange},
		};

		cells[6].cell.file = 12345;
		p = rig_picture(&r, cells, 7);
	}
	assert_int_equal(p->m.n_in_flight, 3);
	assert_int_equal(p->m.in_flight[0]->proc, proc);
	assert_int_equal(p->m.in_flight[0]->since_ns, r.now - 5000);
	assert_int_equal(p->m.in_flight[0]->asked, 7);
	assert_string_equal(path_of(p, p->m.in_flight[0]->file), "/data/a");
	assert_int_equal(p->m.in_flight[1]->tid, 0);
	assert_int_equal(p->m.in_flight[2]->file, 0);
	hr_live_free(p);
	rig_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sums_outlive_windows_and_checkpoints),
	    cmocka_unit_test(files_in_use),
	    cmocka_unit_test(ended_processes_are_summed_up),
	    cmocka_unit_test(rows_are_bounded),
	    cmocka_unit_test(private_words_are_hidden),
	    cmocka_unit_test(cells_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
