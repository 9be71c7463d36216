/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_contract.c - every table and column that statements rely on is there, by name and type, and can be written bare
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/query/fixture.h"

#define STREAM "cluster VARCHAR,job VARCHAR,attempt BIGINT,node VARCHAR"
#define PROCESS                                                                                    \
	STREAM ",proc UBIGINT,pid BIGINT,rank BIGINT,local_rank BIGINT,worker BIGINT,loader "      \
	       "BIGINT,loader_worker BIGINT"

static const struct {
	const char *table;
	const char *columns;
} contract[] = {
    {"events", PROCESS
     ",tid BIGINT,op VARCHAR,api VARCHAR,class VARCHAR,scope VARCHAR,path VARCHAR,path2 VARCHAR,"
     "mount VARCHAR,fs_type VARCHAR,base VARCHAR,pattern VARCHAR,fd BIGINT,file_offset BIGINT,"
     "asked UBIGINT,bytes BIGINT,ret BIGINT,errno BIGINT,flags BIGINT,start_ns BIGINT,end_ns "
     "BIGINT,"
     "dur_ns BIGINT,source VARCHAR"},
    {"rollups",
     PROCESS ",op VARCHAR,api VARCHAR,class VARCHAR,scope VARCHAR,mount VARCHAR,fs_type VARCHAR,"
	     "window_start_ns BIGINT,count BIGINT,bytes BIGINT,errors BIGINT,dur_ns "
	     "BIGINT,max_dur_ns BIGINT,"
	     "size_hist UBIGINT[64],dur_hist UBIGINT[64]"},
    {"file_records", PROCESS
     ",path VARCHAR,api VARCHAR,opens BIGINT,reads BIGINT,writes BIGINT,seeks BIGINT,stats BIGINT,"
     "syncs BIGINT,meta_ops BIGINT,bytes_read BIGINT,bytes_written BIGINT,read_ns BIGINT,"
     "write_ns BIGINT,meta_ns BIGINT,max_read_ns BIGINT,max_write_ns BIGINT,first_ns BIGINT,"
     "last_ns BIGINT,seq_reads BIGINT,consec_reads BIGINT,seq_writes BIGINT,consec_writes BIGINT,"
     "rw_switches BIGINT,unaligned BIGINT,read_size_hist UBIGINT[64],write_size_hist UBIGINT[64]"},
    {"processes", PROCESS ",ppid BIGINT,exe VARCHAR,cmdline VARCHAR,exec_of UBIGINT,start_ns "
			  "BIGINT,end_ns BIGINT,exit VARCHAR,restart BIGINT,"
			  "cpu_quota_milli BIGINT"},
    {"files", STREAM ",path VARCHAR,mount VARCHAR,fs_type VARCHAR,first_ns BIGINT,last_ns BIGINT"},
    {"regions",
     PROCESS ",tid BIGINT,kind VARCHAR,domain VARCHAR,category VARCHAR,name VARCHAR,depth "
	     "BIGINT,open BIGINT,"
	     "count BIGINT,args VARCHAR,start_ns BIGINT,dur_ns BIGINT,step BIGINT,epoch BIGINT"},
    {"labels", STREAM ",key VARCHAR,value VARCHAR"},
    {"levels", STREAM ",level VARCHAR,start_ns BIGINT,end_ns BIGINT"},
    {"jobs", STREAM
     ",array_job VARCHAR,array_task VARCHAR,uid BIGINT,user VARCHAR,account VARCHAR,partition "
     "VARCHAR,"
     "name VARCHAR,state VARCHAR,start_ns BIGINT,end_ns BIGINT,nodes BIGINT,ranks_seen BIGINT,"
     "ranks_expected BIGINT"},
    {"nodes", STREAM
     ",boot VARCHAR,clock_offset_ns BIGINT,clock_error_ns BIGINT,instance UBIGINT,state VARCHAR,"
     "events BIGINT,stored_bytes BIGINT"},
    {"losses", PROCESS ",reason VARCHAR,op VARCHAR,count BIGINT,bytes BIGINT,dur_ns BIGINT"},
    {"kernel_records", PROCESS ",path VARCHAR,mount VARCHAR,fs_type VARCHAR,scope VARCHAR,op "
			       "VARCHAR,api VARCHAR,class VARCHAR,cause VARCHAR,count BIGINT,bytes "
			       "BIGINT,errors BIGINT,dur_ns BIGINT"},
    {"parts", PROCESS ",epoch BIGINT,step BIGINT,loop_loader BIGINT,phase VARCHAR,part "
		      "VARCHAR,start_ns BIGINT,ns BIGINT"},
    {"waits", PROCESS
     ",epoch BIGINT,step BIGINT,loop_loader BIGINT,phase VARCHAR,batch BIGINT,start_ns BIGINT,"
     "dur_ns BIGINT,piece_ns BIGINT,piece_dur_ns BIGINT,maker UBIGINT,maker_tid BIGINT,part "
     "VARCHAR,ns BIGINT"},
    {"replays", PROCESS
     ",setting BIGINT,workers BIGINT,prefetch BIGINT,persistent BIGINT,loops BIGINT,recorded_ns "
     "BIGINT,replayed_ns "
     "BIGINT,predicted_ns BIGINT,low_ns BIGINT,high_ns BIGINT,doubt VARCHAR,refusal "
     "VARCHAR,wall_ns BIGINT,checkpoint_ns "
     "BIGINT,stall_ns BIGINT"},
    {"findings", STREAM ",number BIGINT,cause VARCHAR,lost_ns BIGINT,wall_ns BIGINT,meaning "
			"VARCHAR,rank BIGINT,whose VARCHAR,worker BIGINT,object VARCHAR,mount "
			"VARCHAR,place VARCHAR,evidence VARCHAR,action "
			"VARCHAR,gain_low_ns BIGINT,"
			"gain_high_ns BIGINT,gain_note VARCHAR,avoid VARCHAR"},
};
#define N_TABLES (sizeof(contract) / sizeof(contract[0]))

static void tables_have_their_columns(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_TABLES; i++) {
		char *sql, *text;

		assert_true(
		    asprintf(&sql,
			     "SELECT string_agg(column_name || ' ' || column_type, ',') FROM "
			     "(DESCRIBE %s)",
			     contract[i].table) > 0);
		text = fixture_ask(&fix, sql);
		/* The one field is quoted, for its commas. */
		text[strlen(text) - 2] = '\0';
		assert_string_equal(text + 1, contract[i].columns);
		free(text);
		free(sql);
	}
}

static void tables_are_all_there_is(void **state)
{
	(void)state;
	fixture_expect(&fix, "SELECT count(*) FROM duckdb_views() WHERE NOT internal", "16\n");
}

/* A column whose name is a reserved word could only be asked for in quotes. */
static void no_name_needs_quotes(void **state)
{
	(void)state;
	fixture_expect(
	    &fix,
	    "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal AND "
	    "column_name IN (SELECT keyword_name FROM duckdb_keywords() WHERE "
	    "keyword_category = 'reserved')",
	    "");
	for (size_t i = 0; i < N_TABLES; i++) {
		char *sql, *names, *answer;

		assert_true(
		    asprintf(&sql,
			     "SELECT string_agg('t.' || column_name || ', ' || column_name, "
			     "',') FROM (DESCRIBE %s)",
			     contract[i].table) > 0);
		names = fixture_ask(&fix, sql);
		free(sql);
		names[strlen(names) - 2] = '\0';
		assert_true(asprintf(&sql, "SELECT %s FROM %s t LIMIT 0", names + 1,
				     contract[i].table) > 0);
		answer = fixture_ask(&fix, sql);
		assert_string_equal(answer, "");
		free(answer);
		free(names);
		free(sql);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tables_have_their_columns),
	    cmocka_unit_test(tables_are_all_there_is),
	    cmocka_unit_test(no_name_needs_quotes),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
