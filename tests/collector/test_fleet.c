/* SPDX-License-Identifier: Apache-2.0 */
/* What all jobs do now: sums over nodes, order, who sees which jobs, silent nodes, and impossible messages. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/fleet.h"
#include "common/fleet_json.h"
#include "proto/now.h"
#include "tests/unit.h"

#define SECOND UINT64_C(1000000000)
#define ALICE  1000u
#define BOB    1001u
#define MANY   1000000u

static struct hr_fleet fleet;
static struct hr_arena memory;
static Headrace__Fleet seen;

static struct hr_fleet_stream *node(const char *job, const char *name)
{
	Headrace__Open open = HEADRACE__OPEN__INIT;
	struct hr_fleet_stream *s;

	open.cluster = "c1";
	open.attempt = 3;
	open.job = (char *)(uintptr_t)job;
	open.node = (char *)(uintptr_t)name;
	s = hr_fleet_add(&fleet, &open);
	assert_non_null(s);
	return s;
}

static ProtobufCBinaryData bytes(const char *text)
{
	return (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)(uintptr_t)text};
}

/* In two seconds: one rank, which made `stats` and `reads` of 1 KiB on `mount`, all in `folder`. */
static void did(struct hr_fleet_stream *s, uint32_t uid, uint32_t rank, uint64_t stats,
		uint64_t reads, const char *mount, const char *folder, uint64_t at_ms)
{
	Headrace__Now now = HEADRACE__NOW__INIT;
	Headrace__NowSum sum = HEADRACE__NOW_SUM__INIT;
	Headrace__NowRank r = HEADRACE__NOW_RANK__INIT, *ranks = &r;
	Headrace__NowMount m = HEADRACE__NOW_MOUNT__INIT, *mounts = &m;
	Headrace__NowFolder f = HEADRACE__NOW_FOLDER__INIT, *folders = &f;

	sum.metadata = stats;
	sum.reads = reads;
	sum.bytes_read = reads * 1024;
	r.rank_plus1 = rank + 1;
	r.sum = &sum;
	r.loops = 1;
	r.wait_ns = SECOND;
	r.steps = 10;
	m.path = bytes(mount);
	m.fs_type = "lustre";
	m.sum = &sum;
	f.path = bytes(folder);
	f.ops = 3;
	now.interval_ns = 2 * SECOND;
	now.uid = uid;
	now.user = uid == ALICE ? "alice" : "bob";
	now.name = "train";
	now.processes = 1;
	now.named_ops = 4;
	now.n_ranks = now.n_mounts = now.n_folders = 1;
	now.ranks = &ranks;
	now.mounts = &mounts;
	now.folders = &folders;
	assert_int_equal(hr_fleet_take(s, &now, at_ms), 0);
}

/* Looks at the jobs of `uid`; 0: at all. */
static void look(const char *job, const char *by, uint32_t uid, uint64_t at_ms)
{
	const struct hr_fleet_view view = {
	    .all = uid == 0, .uid = uid, .max_jobs = 10, .max_stuck = HR_FLEET_STUCK};
	Headrace__Look l = HEADRACE__LOOK__INIT;

	hr_arena_free(&memory);
	l.job = (char *)(uintptr_t)job;
	l.by = (char *)(uintptr_t)by;
	assert_int_equal(hr_fleet_look(&fleet, &l, &view, at_ms, &memory, &seen), 0);
}

static void sums_and_order(void **state)
{
	struct hr_fleet_stream *s[] = {node("storm", "n1"), node("storm", "n2"),
				       node("train", "n3")};

	did(s[0], ALICE, 0, 100, 0, "/scratch", "/scratch/many", 1000);
	did(s[1], ALICE, 1, 300, 0, "/scratch", "/scratch/many", 1000);
	did(s[2], BOB, 0, 20, 2000, "/scratch", "/scratch/data", 1000);
	look("", "metadata", 0, 1500);
	assert_int_equal(seen.jobs_total, 2);
	assert_string_equal(seen.jobs[0]->job, "storm");
	assert_string_equal(seen.jobs[0]->user, "alice");
	assert_int_equal(seen.jobs[0]->nodes, 2);
	assert_int_equal(seen.jobs[0]->ranks, 2);
	assert_float_equal(seen.jobs[0]->rate->metadata, 200, 1e-9);
	assert_float_equal(seen.jobs[0]->waiting, 1, 1e-9);
	assert_float_equal(seen.jobs[0]->steps, 10, 1e-9);
	assert_string_equal(seen.jobs[0]->rank->node, "n2");
	assert_int_equal(seen.jobs[0]->rank->rank_plus1, 2);
	assert_float_equal(seen.jobs[0]->folder->share, 0.75, 1e-9);
	assert_string_equal(seen.jobs[0]->folder->node, "n2");
	assert_int_equal(seen.n_mounts, 1);
	assert_float_equal(seen.mounts[0]->rate->metadata, 210, 1e-9);
	assert_float_equal(seen.mounts[0]->rate->bytes_read, 1024000, 1e-6);
	assert_string_equal(seen.mounts[0]->job, "train");
	assert_float_equal(seen.mounts[0]->share, 1010 / 1210.0, 1e-9);
	assert_int_equal(seen.loops, 3);
	look("", "bytes", 0, 1500);
	assert_string_equal(seen.jobs[0]->job, "train");
	look("storm", "", 0, 1500);
	assert_int_equal(seen.n_jobs, 1);
	for (size_t i = 0; i < 3; i++)
		hr_fleet_remove(s[i]);
	look("", "", 0, 1500);
	assert_int_equal(seen.jobs_total, 0);
	hr_arena_free(&memory);
}

/* Numbers that differ in each field and each row: `n` is the number of the row. */
static Headrace__NowSum sum_of(uint64_t n)
{
	Headrace__NowSum s = HEADRACE__NOW_SUM__INIT;

	s.metadata = 2 * n;
	s.reads = 20 * n;
	s.writes = 200 * n;
	s.bytes_read = 2000 * n;
	s.bytes_written = 20000 * n;
	s.dur_ns = n * SECOND;
	return s;
}

/* A node of two ranks on two mounts: all its numbers are multiples of `n`, in two seconds. */
static void works(struct hr_fleet_stream *s, uint64_t n, uint64_t at_ms)
{
	Headrace__Now now = HEADRACE__NOW__INIT;
	Headrace__NowSum small = sum_of(n), large = sum_of(3 * n), most = sum_of(4 * n);
	Headrace__NowRank r[] = {HEADRACE__NOW_RANK__INIT, HEADRACE__NOW_RANK__INIT};
	Headrace__NowMount m[] = {HEADRACE__NOW_MOUNT__INIT, HEADRACE__NOW_MOUNT__INIT};
	Headrace__NowFolder f[] = {HEADRACE__NOW_FOLDER__INIT, HEADRACE__NOW_FOLDER__INIT};
	Headrace__NowStuck k[] = {HEADRACE__NOW_STUCK__INIT, HEADRACE__NOW_STUCK__INIT};

	r[0].rank_plus1 = (uint32_t)(2 * n - 1);
	r[0].sum = m[0].sum = &small;
	r[1].rank_plus1 = (uint32_t)(2 * n);
	r[1].sum = &most;
	m[1].sum = &large;
	r[0].loops = r[1].loops = 1;
	r[0].wait_ns = r[1].wait_ns = SECOND / 2;
	r[0].steps = r[1].steps = 10 * n;
	r[1].save_start_ns = SECOND;
	r[1].save_end_ns = (1 + n) * SECOND;
	m[0].path = bytes("/home");
	m[0].fs_type = "nfs4";
	m[1].path = bytes("/scratch");
	m[1].fs_type = "lustre";
	f[0].path = bytes("/home/a");
	f[0].ops = 1;
	f[1].path = bytes("/scratch/b");
	f[1].ops = 3;
	k[0].op = "read";
	k[0].path = bytes("/home/a/x");
	k[0].rank_plus1 = 1;
	k[0].worker_plus1 = 2;
	k[0].pid = (uint32_t)(100 * n);
	k[0].tid = (uint32_t)(100 * n + 1);
	k[0].age_ns = 20 * n;
	k[1].op = "step";
	k[1].hang = true;
	k[1].pid = k[1].tid = 7;
	k[1].age_ns = 30 + n;
	now.interval_ns = 2 * SECOND;
	now.uid = ALICE;
	now.user = "alice";
	now.name = "train";
	now.processes = (uint32_t)(3 * n);
	now.lost = n;
	now.named_ops = 4;
	now.n_ranks = now.n_mounts = now.n_folders = now.n_stuck = 2;
	now.ranks = (Headrace__NowRank *[]){&r[0], &r[1]};
	now.mounts = (Headrace__NowMount *[]){&m[0], &m[1]};
	now.folders = (Headrace__NowFolder *[]){&f[0], &f[1]};
	now.stuck = (Headrace__NowStuck *[]){&k[0], &k[1]};
	assert_int_equal(hr_fleet_take(s, &now, at_ms), 0);
}

/* The whole answer, as `headrace top --json` prints it. */
static void every_field(void **state)
{
	static const char expected[] =
	    "{\"schema\": \"headrace-fleet/1\", \"software\": \"\", \"real_ns\": 0, "
	    "\"connected_nodes\": 0, "
	    "\"connected_streams\": 0, \"jobs_total\": 2, \"training_loops\": 6, "
	    "\"waiting_loops\": 1.5, \"stuck_total\": 6, \"metadata_per_s\": 20, "
	    "\"reads_per_s\": 200, \"writes_per_s\": 2000, \"bytes_read_per_s\": 20000, "
	    "\"bytes_written_per_s\": 200000, \"in_io\": 10, "
	    "\"jobs\": [{\"cluster\": \"c1\", \"job\": \"big\", \"attempt\": 3, "
	    "\"name\": \"train\", \"uid\": 1000, \"user\": \"alice\", \"nodes\": 2, "
	    "\"silent_nodes\": 1, \"silent_node\": \"n4\", \"silent_ms\": 5990, "
	    "\"processes\": 9, \"ranks\": 4, \"training_loops\": 4, \"waiting_loops\": 1, "
	    "\"steps_per_s\": 30, \"lost\": 3, \"metadata_per_s\": 15, "
	    "\"reads_per_s\": 150, \"writes_per_s\": 1500, \"bytes_read_per_s\": 15000, "
	    "\"bytes_written_per_s\": 150000, \"in_io\": 7.5, "
	    "\"busiest_rank\": {\"node\": \"n2\", \"rank\": 3, \"metadata_per_s\": 8, "
	    "\"reads_per_s\": 80, \"writes_per_s\": 800, \"bytes_read_per_s\": 8000, "
	    "\"bytes_written_per_s\": 80000, \"in_io\": 4 }, "
	    "\"busiest_folder\": {\"node\": \"n2\", \"path\": \"/scratch/b\", "
	    "\"share\": 0.75 }, \"checkpoint\": {\"node\": \"n2\", \"rank\": 3, "
	    "\"dur_ns\": 2000000000, \"usual_ns\": null }, "
	    "\"mounts\": [{\"mount\": \"/scratch\", \"fs_type\": \"lustre\", "
	    "\"metadata_per_s\": 9, \"reads_per_s\": 90, \"writes_per_s\": 900, "
	    "\"bytes_read_per_s\": 9000, \"bytes_written_per_s\": 90000, \"in_io\": 4.5 }, "
	    "{\"mount\": \"/home\", \"fs_type\": \"nfs4\", \"metadata_per_s\": 3, "
	    "\"reads_per_s\": 30, \"writes_per_s\": 300, \"bytes_read_per_s\": 3000, "
	    "\"bytes_written_per_s\": 30000, \"in_io\": 1.5 } ], \"stuck_total\": 4, "
	    "\"stuck\": [{\"node\": \"n2\", \"rank\": 0, \"worker\": 1, \"pid\": 200, "
	    "\"tid\": 201, \"op\": \"read\", \"path\": \"/home/a/x\", \"age_ns\": 40, "
	    "\"hang\": false }, "
	    "{\"node\": \"n2\", \"rank\": null, \"worker\": null, \"pid\": 7, \"tid\": 7, "
	    "\"op\": \"step\", \"path\": null, \"age_ns\": 32, "
	    "\"hang\": true }, {\"node\": \"n1\", "
	    "\"rank\": null, \"worker\": null, \"pid\": 7, \"tid\": 7, \"op\": \"step\", "
	    "\"path\": null, \"age_ns\": 31, "
	    "\"hang\": true }, {\"node\": \"n1\", \"rank\": 0, "
	    "\"worker\": 1, \"pid\": 100, \"tid\": 101, \"op\": \"read\", "
	    "\"path\": \"/home/a/x\", \"age_ns\": 20, "
	    "\"hang\": false } ] }, {\"cluster\": \"c1\", "
	    "\"job\": \"small\", \"attempt\": 3, \"name\": \"train\", \"uid\": 1000, "
	    "\"user\": \"alice\", \"nodes\": 1, \"silent_nodes\": 0, "
	    "\"silent_node\": null, \"silent_ms\": 0, \"processes\": 3, \"ranks\": 2, "
	    "\"training_loops\": 2, \"waiting_loops\": 0.5, \"steps_per_s\": 10, "
	    "\"lost\": 1, \"metadata_per_s\": 5, \"reads_per_s\": 50, "
	    "\"writes_per_s\": 500, \"bytes_read_per_s\": 5000, "
	    "\"bytes_written_per_s\": 50000, \"in_io\": 2.5, "
	    "\"busiest_rank\": {\"node\": \"n3\", \"rank\": 1, \"metadata_per_s\": 4, "
	    "\"reads_per_s\": 40, \"writes_per_s\": 400, \"bytes_read_per_s\": 4000, "
	    "\"bytes_written_per_s\": 40000, \"in_io\": 2 }, "
	    "\"busiest_folder\": {\"node\": \"n3\", \"path\": \"/scratch/b\", "
	    "\"share\": 0.75 }, \"checkpoint\": {\"node\": \"n3\", \"rank\": 1, "
	    "\"dur_ns\": 1000000000, \"usual_ns\": null }, "
	    "\"mounts\": [{\"mount\": \"/scratch\", \"fs_type\": \"lustre\", "
	    "\"metadata_per_s\": 3, \"reads_per_s\": 30, \"writes_per_s\": 300, "
	    "\"bytes_read_per_s\": 3000, \"bytes_written_per_s\": 30000, \"in_io\": 1.5 }, "
	    "{\"mount\": \"/home\", \"fs_type\": \"nfs4\", \"metadata_per_s\": 1, "
	    "\"reads_per_s\": 10, \"writes_per_s\": 100, \"bytes_read_per_s\": 1000, "
	    "\"bytes_written_per_s\": 10000, \"in_io\": 0.5 } ], \"stuck_total\": 2, "
	    "\"stuck\": [{\"node\": \"n3\", \"rank\": null, \"worker\": null, \"pid\": 7, "
	    "\"tid\": 7, \"op\": \"step\", \"path\": null, \"age_ns\": 31, "
	    "\"hang\": true }, "
	    "{\"node\": \"n3\", \"rank\": 0, \"worker\": 1, \"pid\": 100, \"tid\": 101, "
	    "\"op\": \"read\", \"path\": \"/home/a/x\", \"age_ns\": 20, "
	    "\"hang\": false } ] } ], "
	    "\"mounts\": [{\"mount\": \"/scratch\", \"fs_type\": \"lustre\", "
	    "\"metadata_per_s\": 12, \"reads_per_s\": 120, \"writes_per_s\": 1200, "
	    "\"bytes_read_per_s\": 12000, \"bytes_written_per_s\": 120000, \"in_io\": 6, "
	    "\"job\": \"big\", \"job_share\": 0.75 }, {\"mount\": \"/home\", "
	    "\"fs_type\": \"nfs4\", \"metadata_per_s\": 4, \"reads_per_s\": 40, "
	    "\"writes_per_s\": 400, \"bytes_read_per_s\": 4000, "
	    "\"bytes_written_per_s\": 40000, \"in_io\": 2, \"job\": \"big\", "
	    "\"job_share\": 0.75 } ] }\n";
	struct hr_fleet_stream *a = node("big", "n1"), *b = node("big", "n2"),
			       *c = node("small", "n3"), *d = node("big", "n4");
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	works(a, 1, 1000);
	works(b, 2, 1000);
	works(c, 1, 1000);
	works(d, 1, 10); /* silent since then */
	look("", "", 0, 1000 + HR_NOW_FRESH_MS);
	hr_fleet_json(out, &seen);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	hr_fleet_remove(a);
	hr_fleet_remove(b);
	hr_fleet_remove(c);
	hr_fleet_remove(d);
	hr_arena_free(&memory);
}

/* A node whose only numbers are these. */
static void one_of(struct hr_fleet_stream *s, uint64_t ops, uint64_t wait_ns, uint64_t age_ns)
{
	Headrace__Now now = HEADRACE__NOW__INIT;
	Headrace__NowRank r = HEADRACE__NOW_RANK__INIT, *ranks = &r;
	Headrace__NowMount m = HEADRACE__NOW_MOUNT__INIT, *mounts = &m;
	Headrace__NowSum sum = HEADRACE__NOW_SUM__INIT;
	Headrace__NowStuck k = HEADRACE__NOW_STUCK__INIT, *stuck = &k;

	sum.reads = ops;
	r.sum = m.sum = &sum;
	m.fs_type = "ext4";
	r.loops = 1;
	r.wait_ns = wait_ns;
	k.op = "read";
	k.age_ns = age_ns;
	now.interval_ns = SECOND;
	now.n_ranks = now.n_mounts = 1;
	now.n_stuck = age_ns > 0;
	now.ranks = &ranks;
	now.mounts = &mounts;
	now.stuck = &stuck;
	assert_int_equal(hr_fleet_take(s, &now, 1000), 0);
}

/* A node also reports the part of a wait that was before the interval. */
static void a_loop_waits_all_the_time_at_most(void **state)
{
	struct hr_fleet_stream *s = node("job", "n1");

	one_of(s, 1, 3 * SECOND, 0); /* in one second */
	look("", "", 0, 1000);
	assert_float_equal(seen.jobs[0]->waiting, 1, 1e-9);
	hr_fleet_remove(s);
	hr_arena_free(&memory);
}

static void all_orders(void **state)
{
	static const char *const orders[][2] = {
	    {"ops", "abc"}, {"", "abc"}, {"waiting", "bca"}, {"stuck", "cab"}, {"bytes", "abc"}};
	struct hr_fleet_stream *s[] = {node("c", "n1"), node("b", "n1"), node("a", "n1"),
				       node("c", "n2")};

	one_of(s[0], 1, 2, 1);
	one_of(s[1], 2, 3, 0);
	one_of(s[2], 3, 1, 4);
	one_of(s[3], 0, 0, 5);
	for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
		char is[4] = "";

		look("", orders[i][0], 0, 1000);
		assert_int_equal(seen.n_jobs, 3);
		for (size_t k = 0; k < 3; k++)
			is[k] = seen.jobs[k]->job[0];
		assert_string_equal(is, orders[i][1]);
	}
	for (size_t i = 0; i < 4; i++)
		hr_fleet_remove(s[i]);
	hr_arena_free(&memory);
}

static void users_see_their_own_jobs(void **state)
{
	struct hr_fleet_stream *a = node("same", "n1"), *b = node("same", "n2");

	did(a, ALICE, 0, 100, 0, "/a", "/a", 1);
	did(b, BOB, 0, 100, 0, "/b", "/b", 1);
	look("", "", BOB, 2);
	assert_int_equal(seen.jobs_total, 1);
	assert_string_equal(seen.jobs[0]->user, "bob");
	assert_int_equal(seen.n_mounts, 1);
	assert_memory_equal(seen.mounts[0]->path.data, "/b", 2);
	look("", "", 0, 2); /* the same id of two users is two jobs */
	assert_int_equal(seen.jobs_total, 2);
	hr_fleet_remove(a);
	hr_fleet_remove(b);
	hr_arena_free(&memory);
}

/* A job that was requeued, and one of another cluster with the same id, are jobs of their own. */
static void attempts_and_clusters_are_jobs(void **state)
{
	Headrace__Open open = HEADRACE__OPEN__INIT;
	struct hr_fleet_stream *s[3] = {node("same", "n1")};

	open.cluster = "c1";
	open.job = "same";
	open.node = "n1";
	open.attempt = 4;
	s[1] = hr_fleet_add(&fleet, &open);
	open.cluster = "c2";
	s[2] = hr_fleet_add(&fleet, &open);
	for (size_t i = 0; i < 3; i++) {
		assert_non_null(s[i]);
		did(s[i], ALICE, 0, 100, 0, "/a", "/a", 1);
	}
	look("", "", 0, 2);
	assert_int_equal(seen.jobs_total, 3);
	for (size_t i = 0; i < 3; i++)
		hr_fleet_remove(s[i]);
	hr_arena_free(&memory);
}

static void silent_nodes_have_no_rates(void **state)
{
	struct hr_fleet_stream *a = node("job", "n1"), *b = node("job", "n2"),
			       *c = node("job", "n3");

	did(a, ALICE, 0, 100, 0, "/a", "/a", 1000);
	did(b, ALICE, 1, 100, 0, "/a", "/a", 1000 + HR_NOW_FRESH_MS);
	look("", "", 0, 1001 + HR_NOW_FRESH_MS);
	assert_int_equal(seen.jobs[0]->nodes, 1);
	assert_int_equal(seen.jobs[0]->silent_nodes, 1); /* n3 has never sent any */
	assert_string_equal(seen.jobs[0]->silent_node, "n1");
	assert_int_equal(seen.jobs[0]->silent_ms, HR_NOW_FRESH_MS + 1);
	assert_float_equal(seen.jobs[0]->rate->metadata, 50, 1e-9);
	hr_fleet_note_frame(a, 4000);
	look("", "", 0, 1001 + HR_NOW_FRESH_MS);
	assert_int_equal(seen.jobs[0]->silent_ms, HR_NOW_FRESH_MS + 1001 - 4000);
	hr_fleet_remove(a);
	hr_fleet_remove(b);
	hr_fleet_remove(c);
	hr_arena_free(&memory);
}

/* A rank that saved from `start` to `end`, in seconds. */
static void saved(struct hr_fleet_stream *s, uint64_t start, uint64_t end)
{
	Headrace__Now now = HEADRACE__NOW__INIT;
	Headrace__NowRank r[2] = {HEADRACE__NOW_RANK__INIT, HEADRACE__NOW_RANK__INIT};
	Headrace__NowRank *ranks[2] = {&r[0], &r[1]};

	r[0].rank_plus1 = 1;
	r[1].rank_plus1 = 2;
	r[1].save_start_ns = start * SECOND;
	r[1].save_end_ns = end * SECOND;
	now.interval_ns = SECOND;
	now.n_ranks = 2;
	now.ranks = ranks;
	assert_int_equal(hr_fleet_take(s, &now, 1000), 0);
}

static void slow_checkpoints(void **state)
{
	struct hr_fleet_stream *a = node("job", "n1"), *b = node("job", "n2");

	saved(a, 0, 0);
	saved(b, 0, 0);
	look("", "", 0, 1000);
	assert_null(seen.jobs[0]->save);
	for (uint64_t i = 0; i < 40; i++) { /* it lasts for 2 s, or sometimes for 9 s */
		saved(a, 100 * i, 100 * i + 1);
		saved(a, 100 * i, 100 * i + (i % 5 == 0 ? 9 : 2));
		saved(b, 1, 50);
		look("", "", 0, 1000);
		if (i < 3)
			assert_int_equal(seen.jobs[0]->save->usual_ns, 0);
	}
	assert_int_equal(seen.jobs[0]->save->dur_ns, 2 * SECOND);
	saved(a, 4000, 4007);
	look("", "", 0, 1000);
	assert_string_equal(seen.jobs[0]->save->node, "n1");
	assert_int_equal(seen.jobs[0]->save->rank_plus1, 2);
	assert_int_equal(seen.jobs[0]->save->dur_ns, 7 * SECOND);
	assert_int_equal(seen.jobs[0]->save->usual_ns, 2 * SECOND);
	saved(a, 5000, 4999); /* impossible, and then far in the future */
	saved(a, UINT64_MAX / SECOND - 1, UINT64_MAX / SECOND);
	look("", "", 0, 1000);
	hr_fleet_remove(a);
	hr_fleet_remove(b);
	hr_arena_free(&memory);
}

static void impossible_messages(void **state)
{
	struct hr_fleet_stream *s = node("job", "n1");
	Headrace__NowRank row = HEADRACE__NOW_RANK__INIT, **ranks = calloc(MANY, sizeof(*ranks));
	Headrace__NowStuck stuck = HEADRACE__NOW_STUCK__INIT, *stucks[1000];
	Headrace__Now now = HEADRACE__NOW__INIT;
	Headrace__Look l = HEADRACE__LOOK__INIT;
	char *path = calloc(1, MANY);

	assert_non_null(ranks);
	assert_non_null(path);
	assert_int_equal(hr_fleet_take(s, &now, 1), -EINVAL); /* no interval */
	now.interval_ns = UINT64_MAX;
	assert_int_equal(hr_fleet_take(s, &now, 1), -EINVAL);
	now.interval_ns = 1;
	row.rank_plus1 = UINT32_MAX;
	row.loops = UINT32_MAX;
	row.wait_ns = row.steps = UINT64_MAX;
	for (size_t i = 0; i < MANY; i++)
		ranks[i] = &row;
	now.ranks = ranks;
	now.n_ranks = MANY;
	memset(path, 'x', MANY - 1);
	stuck.path = bytes(path);
	stuck.op = path;
	for (size_t i = 0; i < 1000; i++)
		stucks[i] = &stuck;
	now.stuck = stucks;
	now.n_stuck = 1000;
	now.user = path;
	assert_int_equal(hr_fleet_take(s, &now, 1), 0);
	look("", "", 0, 1);
	assert_int_equal(seen.jobs[0]->n_stuck, HR_FLEET_STUCK);
	assert_int_equal(seen.jobs[0]->stuck_total, HR_NOW_STUCK);
	assert_int_equal(seen.jobs[0]->stuck[0]->op->path.len, HR_FLEET_PATH);
	assert_int_equal(strlen(seen.jobs[0]->user), 255);
	l.by = "nonsense";
	assert_int_equal(
	    hr_fleet_look(&fleet, &l, &(struct hr_fleet_view){.all = true}, 1, &memory, &seen),
	    -EINVAL);
	hr_fleet_remove(s);
	hr_arena_free(&memory);
	free(ranks);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sums_and_order),
	    cmocka_unit_test(a_loop_waits_all_the_time_at_most),
	    cmocka_unit_test(every_field),
	    cmocka_unit_test(all_orders),
	    cmocka_unit_test(users_see_their_own_jobs),
	    cmocka_unit_test(attempts_and_clusters_are_jobs),
	    cmocka_unit_test(silent_nodes_have_no_rates),
	    cmocka_unit_test(slow_checkpoints),
	    cmocka_unit_test(impossible_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
