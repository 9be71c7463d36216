/* SPDX-License-Identifier: Apache-2.0 */
/* test_answers.c - what SQL says about the small store is what fixture_store.c wrote */
#include <stdlib.h>

#include "tests/query/fixture.h"
#include "tests/unit.h"

#define EXPECT(sql, expected) fixture_expect(&fix, sql, expected)
#define N1		      " WHERE job = '7' AND node = 'n1' "

static void events_say_who(void **state)
{
	EXPECT("SELECT cluster, job, attempt, node, proc, pid, rank, local_rank, worker, loader, "
	       "loader_worker, tid, count(*) FROM events GROUP BY ALL ORDER BY node, proc",
	       "c,7,2,n1,1,100,0,0,,,,100,4\n"
	       "c,7,2,n1,2,101,0,0,3,0,5,101,4\n"
	       "c,7,2,n1,3,102,,,,,,102,2\n"
	       "c,7,2,n2,1,100,2,0,,,,100,3\n"
	       "c,7,2,n2,2,101,2,0,3,0,5,101,2\n");
}

static void events_say_what(void **state)
{
	EXPECT("SELECT op, api, class, scope, fd, file_offset, asked, bytes, ret, errno, flags, "
	       "source FROM events" N1 "ORDER BY start_ns",
	       "open64,posix,open,data,5,,,,5,,524288,shim\n"
	       "read,posix,read,data,5,0,65536,4096,4096,,0,shim\n"
	       "write,posix,write,data,6,0,1000,1000,1000,,0,shim\n"
	       "close,posix,close,data,5,,,,0,,0,shim\n"
	       "write,posix,write,data,6,1000,1000,0,-1,28,0,shim\n"
	       "open64,posix,open,data,,,,,-1,2,0,shim\n"
	       "read,posix,read,data,7,,10,,,,0,shim\n"
	       "fread,stdio,read,runtime,8,,40,24,3,,8,shim\n"
	       "rename,posix,meta,data,,,,,0,,0,shim\n"
	       "read,posix,read,data,9,,7,7,7,,0,bpf\n");
}

static void events_say_when(void **state)
{
	EXPECT("SELECT start_ns, end_ns, dur_ns FROM events" N1 "ORDER BY start_ns LIMIT 2",
	       "1700000000000000000,1700000000000000100,100\n"
	       "1700000000000001000,1700000000000001100,100\n");
}

static void events_say_where(void **state)
{
	EXPECT("SELECT path, path2, mount, fs_type, base, pattern FROM events" N1
	       "AND op IN ('write', 'rename', 'fread') ORDER BY start_ns",
	       "/scratch/ckpt/model-10.pt,,/scratch,xfs,model-10.pt,model.pt\n"
	       "/scratch/ckpt/model-20.pt,,/scratch,xfs,model-20.pt,model.pt\n"
	       "/usr/lib/python3/os.py,,,,os.py,os.py\n"
	       "/scratch/ckpt/model-10.pt,/scratch/ckpt/model-20.pt,/scratch,xfs,model-10.pt,"
	       "model.pt\n");
	EXPECT("SELECT DISTINCT path, base, pattern FROM events" N1 "AND errno = 2",
	       "/data/odd\\x0A\\xFF\\\\1,odd\\x0A\\xFF\\\\1,odd\\x0A\\xFF\\\\\n");
	EXPECT("SELECT DISTINCT file_id FROM hr_events()" N1 "ORDER BY 1",
	       "1000\n1001\n1002\n1003\n1004\n");
}

static void one_file_is_found(void **state)
{
	EXPECT("SELECT op, errno FROM events" N1
	       "AND path = '/data/odd\\x0A\\xFF\\\\1' ORDER BY start_ns",
	       "open64,2\nread,\n");
	EXPECT("SELECT count(*) FROM events WHERE path = '/data/train/img-001.jpg'", "7\n");
	EXPECT("SELECT count(*) FROM events WHERE path = '/nosuch'", "0\n");
}

static void counting_needs_no_column(void **state)
{
	struct hr_query_scan scan;

	EXPECT("SELECT count(*) FROM events", "15\n");
	hr_query_scan(fix.q, &scan);
	assert_int_equal(scan.batches_read, 3);
	EXPECT("SELECT count(*), count(rank), count(bytes), sum(bytes) FROM events",
	       "15,13,8,10223\n");
}

static void rollups_add_up(void **state)
{
	EXPECT("SELECT job, node, proc, rank, op, api, class, scope, mount, fs_type, "
	       "window_start_ns, count, bytes, errors, dur_ns, max_dur_ns FROM rollups",
	       "7,n1,1,0,read,posix,read,data,/data,lustre,1700000000000000000,7,800,2,1050,800\n");
	EXPECT("SELECT size_hist[7], size_hist[1], list_sum(size_hist::UBIGINT[]), dur_hist[8], "
	       "len(dur_hist::UBIGINT[]) FROM rollups",
	       "7,0,7,7,64\n");
}

static void file_records_add_up(void **state)
{
	EXPECT("SELECT path, api, opens, reads, writes, bytes_read, read_ns, max_read_ns, "
	       "first_ns, last_ns, seq_reads, read_size_hist[13], "
	       "list_sum(write_size_hist::UBIGINT[]) FROM file_records",
	       "/data/train/img-001.jpg,posix,2,4,0,16384,800,90,1700000000000000500,"
	       "1700000000000002000,2,4,0\n");
	EXPECT("SELECT file_id, scope, pattern, mount FROM hr_file_records()",
	       "1000,data,img.jpg,/data\n");
}

static void files_are_listed(void **state)
{
	EXPECT("SELECT job, node, path, mount, fs_type, first_ns, last_ns FROM files "
	       "WHERE mount = '/data' ORDER BY node, path",
	       "7,n1,/data/odd\\x0A\\xFF\\\\1,/data,lustre,,\n"
	       "7,n1,/data/train/img-001.jpg,/data,lustre,1700000000000000500,"
	       "1700000000000002000\n"
	       "7,n2,/data/odd\\x0A\\xFF\\\\1,/data,lustre,,\n"
	       "7,n2,/data/train/img-001.jpg,/data,lustre,,\n");
	EXPECT("SELECT count(*), count(mount), count(DISTINCT path) FROM files", "10,8,5\n");
}

static void processes_are_listed(void **state)
{
	EXPECT("SELECT proc, pid, ppid, rank, worker, exe, cmdline, exec_of, start_ns, end_ns, "
	       "exit FROM processes" N1 "ORDER BY proc",
	       "1,100,99,0,,/usr/bin/python3,python3 train.py,,1700000000000000000,,\n"
	       "2,101,99,0,3,/usr/bin/python3,python3 train.py,,1700000000000000000,"
	       "1700000002000000000,SIGKILL\n"
	       "3,102,99,,,/usr/bin/python3,python3 train.py,1,1700000000000000000,,\n");
	EXPECT("SELECT proc, excluded_opens, excluded FROM hr_processes()" N1 "ORDER BY proc",
	       "1,2399,\"/opt=1200,/etc=1199\"\n2,1199,/etc=1199\n3,0,\n");
}

static void jobs_are_put_together(void **state)
{
	EXPECT("SELECT job, attempt, node, uid, \"user\", name, state, start_ns, end_ns, nodes, "
	       "ranks_seen, ranks_expected FROM jobs ORDER BY job",
	       "7,2,,1000,ada,train,killed,1700000000000000000,1700000003000000000,2,2,4\n"
	       "8,2,,,,,ended,,,1,0,\n");
	EXPECT("SELECT * FROM labels", "c,7,2,,model,resnet\n");
	EXPECT("SELECT job, node, boot, clock_offset_ns, clock_error_ns, instance, state, events "
	       "FROM nodes ORDER BY job, node",
	       "7,n1,b,,,77,ended,10\n7,n2,b,,,77,killed,5\n8,n1,b,,,77,ended,0\n");
	EXPECT("SELECT job, node, level, end_ns - start_ns FROM levels",
	       "7,n1,counters,1500000000\n");
}

static void losses_add_up(void **state)
{
	EXPECT("SELECT job, node, proc, pid, rank, worker, reason, op, count, bytes, dur_ns "
	       "FROM losses",
	       "7,n1,2,101,0,3,ring_full,read,11,110,0\n");
}

static void regions_say_what_was_done(void **state)
{
	EXPECT(
	    "SELECT job, node, proc, pid, rank, worker, tid, kind, domain, category, name, depth, "
	    "open, count, args, start_ns - 1700000000000000000, dur_ns, step, epoch "
	    "FROM regions ORDER BY ALL",
	    "7,n1,1,100,0,,100,checkpoint,torch,a\\x0A\\xFF,save,2,0,1,\"{\"\"k\"\": "
	    "1}\",1400,300,,0\n"
	    "7,n1,1,100,0,,100,epoch,,,,0,1,1,,0,0,,0\n"
	    "7,n1,1,100,0,,100,step,,,,1,0,1,,500,2000,7,0\n"
	    "7,n1,2,101,0,3,101,fetch,torch,,,0,0,1000,,0,70,,\n");
	/* Only the texts of columns that are asked for are made. */
	EXPECT("SELECT count(*), count(category), count(args), max(step) FROM regions",
	       "4,1,1,7\n");
	EXPECT("SELECT DISTINCT domain FROM regions ORDER BY 1", "torch\n\n");
}

static void tables_join(void **state)
{
	EXPECT("SELECT e.op, p.exit, count(*) FROM events e JOIN processes p USING (cluster, job, "
	       "attempt, node, proc) WHERE e.worker = 3 GROUP BY ALL ORDER BY ALL",
	       "fread,SIGKILL,1\nread,SIGKILL,1\nwrite,SIGKILL,4\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(events_say_who),
	    cmocka_unit_test(events_say_what),
	    cmocka_unit_test(events_say_when),
	    cmocka_unit_test(events_say_where),
	    cmocka_unit_test(one_file_is_found),
	    cmocka_unit_test(counting_needs_no_column),
	    cmocka_unit_test(rollups_add_up),
	    cmocka_unit_test(file_records_add_up),
	    cmocka_unit_test(files_are_listed),
	    cmocka_unit_test(processes_are_listed),
	    cmocka_unit_test(jobs_are_put_together),
	    cmocka_unit_test(losses_add_up),
	    cmocka_unit_test(regions_say_what_was_done),
	    cmocka_unit_test(tables_join),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
