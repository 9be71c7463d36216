/* SPDX-License-Identifier: Apache-2.0 */
/* Table-driven tests of what has no state: filter, path building, link names, variables, path ids. */
#include "tests/shim/core/harness.h"

#include "common/pathid.h"
#include "shim/core/cmdline.h"
#include "shim/core/linkname.h"
#include "shim/core/path.h"

static void filter_verdicts(void **state)
{
	static const struct {
		struct hr_filter_config config;
		const char *path;
		unsigned want; /* enum hr_verdict; of what is left out, plus its kind */
	} rows[] = {
	    {{0}, "/data/x", HR__TRACED},
	    {{0}, "/etc", HR__LEFT_OUT},
	    {{0}, "/etc/passwd", HR__LEFT_OUT},
	    {{0}, "/etcetera/x", HR__TRACED},
	    {{0}, "/usr/lib/libc.so", HR__LEFT_OUT + 2},
	    {{0}, "/lib64/ld.so", HR__LEFT_OUT + 6},
	    {{0}, "/dev/null", HR__LEFT_OUT + 1},
	    {{0}, "/dev/shm/x", HR__TRACED},
	    {{0}, "/dev/shmem", HR__LEFT_OUT + 1},
	    {{.defaults = "/dev"}, "/dev/shm/x", HR__LEFT_OUT},
	    {{0}, "memfd:x", HR__TRACED},
	    {{0}, "/usr/lib/python3/dist-packages/a.py", HR__TRACED_RUNTIME},
	    {{0}, "/usr/lib/python3.11/os.py", HR__TRACED_RUNTIME},
	    {{0}, "/home/u/venv/lib/python3.9/site-packages/t/x.so", HR__TRACED_RUNTIME},
	    {{0}, "/home/u/lib/python3.9", HR__TRACED},
	    {{0}, "/data/__pycache__/x.pyc", HR__TRACED_RUNTIME},
	    {{0}, "/data/my__pycache__/x", HR__TRACED},
	    {{0}, "/data/site-packages", HR__TRACED},
	    {{0}, "/home/u/.local/libexec/headrace/python/startup/x.py", HR__TRACED_RUNTIME},
	    {{0}, "/home/u/build/python/_headrace/loader.py", HR__TRACED_RUNTIME},
	    {{.exclude = "/data"}, "/data/x", HR__EXCLUDED},
	    {{.exclude = "/data/"}, "/data", HR__EXCLUDED},
	    {{.exclude = "/data"}, "/database", HR__TRACED},
	    {{.exclude = ",,/a,/b"}, "/b/c", HR__EXCLUDED},
	    {{.exclude = "/a/../b/,/c/.."}, "/b/c", HR__EXCLUDED},
	    {{.exclude = "*.pyc"}, "/data/__pycache__/x.pyc", HR__EXCLUDED},
	    {{.exclude = "/data/*/tmp?"}, "/data/a/b/tmp1", HR__EXCLUDED},
	    {{.exclude = "/data/part-?"}, "/data/part-7", HR__EXCLUDED},
	    {{.exclude = "/data/part-?"}, "/data/part-10", HR__TRACED},
	    {{.exclude = "data"}, "/data/x", HR__TRACED},
	    {{.include = "/etc"}, "/etc/passwd", HR__TRACED},
	    {{.include = "/etc"}, "/data/x", HR__EXCLUDED},
	    {{.include = "/"}, "/usr/x", HR__TRACED},
	    {{.include = ""}, "/data/x", HR__TRACED},
	    {{.include = "data"}, "/data/x", HR__EXCLUDED}, /* no path begins like this */
	    {{.include = "/usr/lib/python3"}, "/usr/lib/python3/os.py", HR__TRACED},
	    {{.include = "/a", .exclude = "/a/b"}, "/a/b/c", HR__EXCLUDED},
	    {{.include = "/a", .exclude = "/a/b"}, "/a/c", HR__TRACED},
	    {{.defaults = "/scratch"}, "/scratch/x", HR__LEFT_OUT},
	    {{.defaults = "/scratch"}, "/etc/x", HR__TRACED},
	    {{.defaults = "/a,x,*.tmp"}, "/data/x.tmp", HR__LEFT_OUT + 1},
	    {{.exclude = "/opt"}, "/opt/x", HR__EXCLUDED},
	    {{.exclude = "/opt/a"}, "/opt/x", HR__LEFT_OUT + 7},
	    {{.store = "/var/s"}, "/var/s/jobs", HR__EXCLUDED},
	    {{.include = "/opt"}, "/var/x", HR__EXCLUDED},
	    {{.defaults = ""}, "/etc/x", HR__TRACED},
	    {{.store = "/data/store", .include = "/data"}, "/data/store/jobs", HR__EXCLUDED},
	    {{.store = "/data/store"}, "/data/stores", HR__TRACED},
	};
	static struct hr_filter f;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t kind = 0;

		hr_filter_init(&f, &rows[i].config);
		if (hr_filter_verdict(&f, rows[i].path, strlen(rows[i].path), &kind) + kind !=
		    rows[i].want)
			fail_msg("row %zu: %s", i, rows[i].path);
	}
}

/* Appends "/<i>/x," for each i. */
static void long_list(char *at, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		at += sprintf(at, "/%u/x,", i);
}

/* A list that is too long keeps what comes first, and takes nothing from the lists behind it. */
static void parents_taken_back(void **state)
{
	static const char *const rows[][2] = {
	    {"/a/../b", "/b"},
	    {"/a/b/..", "/a"},
	    {"/a/b/../../c/d", "/c/d"},
	    {"/..", "/"},
	    {"/../..", "/"},
	    {"/../a", "/a"},
	    {"/a/..", "/"},
	    {"/a/..b/c", "/a/..b/c"},
	    {"/a/.../b", "/a/.../b"},
	    {"/a/b../c", "/a/b../c"},
	    {"/", "/"},
	    {"/a", "/a"},
	};
	char text[32];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = (size_t)snprintf(text, sizeof(text), "%s", rows[i][0]);

		text[hr_path_resolve(text, n)] = '\0';
		assert_string_equal(text, rows[i][1]);
	}
	assert_true(hr_path_has_parent("/a/..", 5) && !hr_path_has_parent("/a/.b", 5));
}

static void filter_limits(void **state)
{
	static char list[16 * (HR_FILTER_PATTERNS + 2)], wide[HR_FILTER_BYTES + 16];
	static const char start[] = {'/', 'a', ',', '/'};
	static struct hr_filter f;
	struct hr_filter_config config = {.exclude = list, .include = list};
	uint32_t kind;

	long_list(list, HR_FILTER_PATTERNS);
	hr_filter_init(&f, &config);
	assert_int_equal(f.dropped, 0);
	long_list(list, HR_FILTER_PATTERNS + 2);
	config.include = NULL;
	hr_filter_init(&f, &config);
	assert_int_equal(f.dropped, 2);
	assert_int_equal(hr_filter_verdict(&f, "/1023/x", 7, &kind), HR__EXCLUDED);
	assert_int_equal(hr_filter_verdict(&f, "/1024/x", 7, &kind), HR__TRACED);
	assert_int_equal(hr_filter_verdict(&f, "/etc/x", 6, &kind), HR__LEFT_OUT);
	memset(wide, 'w', sizeof(wide) - 1);
	memcpy(wide, start, sizeof(start));
	config = (struct hr_filter_config){.exclude = wide};
	hr_filter_init(&f, &config);
	assert_int_equal(f.dropped, 1);
	assert_int_equal(hr_filter_verdict(&f, "/a/x", 4, &kind), HR__EXCLUDED);
	assert_int_equal(hr_filter_verdict(&f, "/etc/x", 6, &kind), HR__LEFT_OUT);
}

/* The first default excludes have a count each, as far as there are counts and room for their texts. */
static void kinds_of_default_excludes(void **state)
{
	static char list[16 * 64], wide[HR_EXCLUDED_TEXT + 16];
	static struct hr_filter f;
	struct hr_filter_config config = {.defaults = list};
	uint32_t kind;

	long_list(list, 40);
	hr_filter_init(&f, &config);
	assert_int_equal(f.kinds, HR_EXCLUDED_KINDS - 1);
	assert_int_equal(hr_filter_verdict(&f, "/14/x", 5, &kind), HR__LEFT_OUT);
	assert_int_equal(kind, 14);
	assert_int_equal(hr_filter_verdict(&f, "/39/x", 5, &kind), HR__LEFT_OUT);
	assert_int_equal(kind, HR_EXCLUDED_KINDS - 1);
	/* "/a" and its NUL take three bytes: one too many for the next. */
	snprintf(wide, sizeof(wide), "/a,/%0*d,/b", (int)HR_EXCLUDED_TEXT - 4, 1);
	config.defaults = wide;
	hr_filter_init(&f, &config);
	assert_int_equal(f.kinds, 1);
	assert_int_equal(hr_filter_verdict(&f, "/b/x", 4, &kind), HR__LEFT_OUT);
	assert_int_equal(kind, HR_EXCLUDED_KINDS - 1);
	snprintf(wide, sizeof(wide), "/a,/%0*d,/b", (int)HR_EXCLUDED_TEXT - 5, 1);
	hr_filter_init(&f, &config);
	assert_int_equal(f.kinds, 2);
}

static void globs(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool want;
	} rows[] = {
	    {"*", "", true},	     {"*", "/a/b", true},
	    {"?", "", false},	     {"a*b*c", "aXbYbZc", true},
	    {"a*b*c", "acb", false}, {"*/x/*", "/x/", true},
	    {"*/x/*", "/x", false},  {"/a/?", "/a/\xff", true},
	    {"", "", true},	     {"", "a", false},
	    {"**a", "bba", true},    {"*aab", "aaaaab", true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (hr__glob_match(rows[i].pattern, strlen(rows[i].pattern), rows[i].path,
				   strlen(rows[i].path)) != rows[i].want)
			fail_msg("row %zu: %s on %s", i, rows[i].pattern, rows[i].path);
}

static void paths_appended(void **state)
{
	static const struct {
		const char *base, *path, *want; /* want NULL: does not fit in 32 bytes */
	} rows[] = {
	    {"", "/", "/"},
	    {"", "//", "/"},
	    {"", "/a//b/./c", "/a/b/c"},
	    {"", "/a/../b", "/a/../b"},
	    {"", "/a/b/", "/a/b"},
	    {"", "/a/.", "/a"},
	    {"", "/.", "/"},
	    {"/", "a", "/a"},
	    {"/cwd", "a", "/cwd/a"},
	    {"/cwd", ".", "/cwd"},
	    {"/cwd", "..", "/cwd/.."},
	    {"/cwd", "./a/./", "/cwd/a"},
	    {"/cwd", ".hidden/..x", "/cwd/.hidden/..x"},
	    {"/cwd", "0123456789012345678901234567", NULL},
	    {"/cwd", "012345678901234567890123456", "/cwd/012345678901234567890123456"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char buf[33] = {0};
		size_t n = strlen(rows[i].base);

		memcpy(buf, rows[i].base, n);
		n = hr__path_append(buf, n, 32, rows[i].path, strlen(rows[i].path));
		buf[n] = '\0';
		if (rows[i].want == NULL)
			assert_int_equal(n, 0);
		else
			assert_string_equal(buf, rows[i].want);
	}
}

static void link_names(void **state)
{
	static const struct {
		const char *link, *want;
		bool unlinked;
	} rows[] = {
	    {"/data/x", "/data/x", false},
	    {"/data/x (deleted)", "/data/x", true},
	    {"/data/x (deleted)", "/data/x (deleted)", false},
	    {"/memfd:cache (deleted)", "memfd:cache", true},
	    {"/memfd:a (deleted) (deleted)", "memfd:a (deleted)", true},
	    {"/memfd:file", "/memfd:file", false},
	    {"/tmp/#123 (deleted)", "/tmp/#tmpfile", true},
	    {"/tmp/#1 (deleted)", "/tmp/#tmpfile", true},
	    {"/tmp/#1", "/tmp/#1", false},
	    {"/tmp/a#12 (deleted)", "/tmp/a#12", true},
	    {"/#12 (deleted)", "/#tmpfile", true},
	    {"pipe:[12]", "", false},
	    {"anon_inode:[eventfd]", "", true},
	    {"", "", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char buf[64];
		size_t n = strlen(rows[i].link);

		memcpy(buf, rows[i].link, n);
		n = hr__linkname_clean(buf, n, rows[i].unlinked);
		buf[n] = '\0';
		assert_string_equal(buf, rows[i].want);
	}
}

static void proc_names(void **state)
{
	char buf[32];

	hr__linkname_proc(buf, 0);
	assert_string_equal(buf, "/proc/thread-self/fd/0");
	hr__linkname_proc(buf, 1048576);
	assert_string_equal(buf, "/proc/thread-self/fd/1048576");
	hr__linkname_proc(buf, 2147483647);
	assert_string_equal(buf, "/proc/thread-self/fd/2147483647");
	hr__linkname_proc(buf, -1); /* does not write beyond the buffer */
	assert_string_equal(buf, "/proc/thread-self/fd/4294967295");
}

static void names_of_what_is_open(void **state)
{
	static const struct {
		const char *path;
		bool want;
	} rows[] = {
	    {"/dev/stdin", true},
	    {"/dev/stdout", true},
	    {"/dev/stderr", true},
	    {"/dev/fd/3", true},
	    {"/dev/fd/3/below", true},
	    {"/proc/self/fd/12", true},
	    {"/proc/self/fd/12/below", true},
	    {"/proc/thread-self/fd/0", true},
	    {"/proc/123/fd/4", true},
	    {"/proc/123/task/124/fd/4", true},
	    {"/proc/self/task/124/cwd", true},
	    {"/proc/self/cwd/below", true},
	    {"/proc/self/root/data", true},
	    {"/dev/stdinx", false},
	    {"/dev/std", false},
	    {"/dev/fd", false},
	    {"/dev/fd/", false},
	    {"/dev/fd/x", false},
	    {"/dev/fd/3x", false},
	    {"/proc/self/fd", false},
	    {"/proc/self/fd/", false},
	    {"/proc/self/status", false},
	    {"/proc/self", false},
	    {"/proc/task/1/fd/3", false},
	    {"/proc/1/task/fd/3", false},
	    {"/proc", false},
	    {"/data/dev/stdin", false},
	    {"/", false},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (hr__linkname_is_open(rows[i].path, strlen(rows[i].path)) != rows[i].want)
			fail_msg("row %u: %s", i, rows[i].path);
}

static void variables(void **state)
{
	static const struct {
		const char *text;
		bool want;
	} rows[] = {
	    {"RANK=1", true},	      {"RANK", true},
	    {"RANKS=1", false},	      {"HEADRACE_JOB=x", true},
	    {"HEADRACE=on", true},    {"HEADRACE_EXCLUDE=/a", false},
	    {"SLURM_PROCID=0", true}, {"SLURM_JOB_NAME=x", false},
	    {"PATH=/bin", false},     {"OMPI_COMM_WORLD_RANK=3", true},
	    {"MASTER_ADDR=h", true},  {"=x", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (hr__env_wanted(rows[i].text) != rows[i].want)
			fail_msg("%s", rows[i].text);
}

/* The values are stored in every trace: they must never change. */
static void path_ids(void **state)
{
	assert_int_equal(hr_path_id("", 0), UINT64_C(0x2d06800538d394c0));
	assert_int_equal(hr_path_id("/data/x", 7) & 7, 0);
	assert_int_not_equal(hr_path_id("/data/x", 7), hr_path_id("/data/y", 7));
	assert_int_not_equal(hr_path_id("/data/x", 7), 0);
}

static void command_lines(void **state)
{
	/* Words are separated by bars here. */
	static const struct {
		const char *line, *want;
	} rows[] = {
	    {"", ""},
	    {"/usr/bin/rsync|-a|/data|/backup", "/usr/bin/rsync"},
	    {"python3|train.py|--token|x", "python3|train.py"},
	    {"/opt/bin/python3.11|-u|-W|ignore|-Xdev|train.py|x", "/opt/bin/python3.11|train.py"},
	    {"python3|-I|-u|train.py|x", "python3|-I|train.py"},
	    {"python3|-BEs|-W|ignore|train.py", "python3|-BEs|train.py"},
	    {"python3|-XIE|train.py", "python3|train.py"},
	    {"python3|-m|torch.distributed.run|t.py", "python3|-m|torch.distributed.run"},
	    {"python3|-um|torch.distributed.run|t.py", "python3|-um|torch.distributed.run"},
	    {"python3|-mtorch.distributed.run|t.py", "python3|-mtorch.distributed.run"},
	    {"python3|-c|print('secret')|a", "python3|-c"},
	    {"python3|-cprint('secret')|a", "python3|-c"},
	    {"python3|-Bc|print('secret')|a", "python3|-Bc"},
	    {"python3|-c|from multiprocessing.spawn import spawn_main; spawn_main(7)|--x",
	     "python3|-c|from multiprocessing.spawn import spawn_main"},
	    {"python3|-", "python3|-"},
	    {"python3", "python3"},
	    {"python3|-c", "python3|-c"},
	    {"python3|-W", "python3"},
	    {"pythonista|a.py", "pythonista"},
	    {"-bash", "-bash"},
	    {"/bin/sh|-c|curl -H token", "/bin/sh|-c"},
	    {"bash|-ec|curl -H token", "bash|-ec"},
	    {"bash|-o|pipefail|--rcfile|rc|job.sh|a", "bash|job.sh"},
	    {"perl|-Mstrict|-I|lib|-i.bak|x.pl|a", "perl|x.pl"},
	    {"perl|-ne|print 'secret'", "perl|-ne"},
	    {"java|-Xmx1g|-cp|a.jar|-Dkey=secret|Main|a", "java|Main"},
	    {"java|-jar|x.jar|a", "java|x.jar"},
	    {"node|--require|x|a.js|b", "node|a.js"},
	    {"node|--eval|secret", "node"},
	    {"node|-p|secret", "node|-p"},
	    {"pypy3|-c|secret", "pypy3|-c"},
	    {"dash|-o|errexit|-c|secret", "dash|-c"},
	    {"ksh|-c|secret", "ksh|-c"},
	    {"zsh|-xc|secret", "zsh|-xc"},
	    {"ruby|-ne|secret", "ruby|-ne"},
	    {"ruby|-I|lib|x.rb|a", "ruby|x.rb"},
	    {"lua5.4|-l|lib|-e|secret", "lua5.4|-e"},
	    {"php|-d|key=secret|-r|secret", "php|-r"},
	    {"julia|--project|/p|-t|4|x.jl|a", "julia|x.jl"},
	    {"julia|-E|secret", "julia|-E"},
	    {"Rscript|-e|secret", "Rscript|-e"},
	    {"ray::worker 1|secret", "ray::worker 1"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (unsigned ended = 0; ended < 2; ended++) { /* by a NUL, or cut short */
			size_t n = strlen(rows[i].line);
			char *buf = malloc(n + ended + 1);

			memcpy(buf, rows[i].line, n);
			buf[n] = '|';
			for (size_t k = 0; k < n + ended; k++)
				if (buf[k] == '|')
					buf[k] = '\0';
			n = hr__cmdline_cut(buf, n + ended);
			for (size_t k = 0; k < n; k++)
				if (buf[k] == '\0')
					buf[k] = '|';
			if (n != strlen(rows[i].want) || memcmp(buf, rows[i].want, n) != 0)
				fail_msg("%s: %.*s", rows[i].line, (int)n, buf);
			free(buf);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(filter_verdicts),
	    cmocka_unit_test(parents_taken_back),
	    cmocka_unit_test(filter_limits),
	    cmocka_unit_test(kinds_of_default_excludes),
	    cmocka_unit_test(globs),
	    cmocka_unit_test(paths_appended),
	    cmocka_unit_test(link_names),
	    cmocka_unit_test(proc_names),
	    cmocka_unit_test(names_of_what_is_open),
	    cmocka_unit_test(variables),
	    cmocka_unit_test(path_ids),
	    cmocka_unit_test(command_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
