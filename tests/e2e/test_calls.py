#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""C programs that count their own calls, against strace and against headrace: threads,
descriptors, names, processes, jumps.
"""

import errno
import glob
import os
import re
import subprocess
import unittest

import harness
from harness import Case


class Calls(Case):
    """Each scenario runs three times: alone under strace (is the arithmetic right?), and under
    headrace.
    """

    FILES = 128

    def program(self, name):
        path = os.path.join(harness.PROGRAMS, name)
        harness.need(path, name)
        return path

    def arithmetic(self, run, argv, **env):
        """Runs argv with a fresh tally; returns (what run returned, the tally)."""
        tally = os.path.join(self.folder.log, f"tally{len(os.listdir(self.folder.log))}")
        result = run(argv, E2E_TALLY=tally, **env)
        return result, harness.read_tally(tally)

    def reset(self):
        """The data folder as it was before a scenario made files in it."""
        harness.shutil.rmtree(self.folder.data)
        os.mkdir(self.folder.data)
        self.folder.fill(self.FILES)

    def scenario(self, name, *args, expect_cut=0, twin=True):
        argv = [self.program(name), *args]
        if twin:
            self.assert_arithmetic(argv)
        self.reset()
        options = ("--exclude", self.folder.log)
        traced, tally = self.arithmetic(
            lambda a, **env: self.headrace(a, options=options, **env), argv
        )
        self.assert_tally(traced, tally, expect_cut)
        return traced

    def assert_arithmetic(self, argv):
        """What the generator counts is what strace sees."""
        self.reset()
        seen, tally = self.arithmetic(self.strace, argv)
        classes = harness.witness.by_class(seen)
        for cls, count in harness.tally_by_class(tally).items():
            message = f"strace against the generator, class {cls}"
            self.assertEqual(classes.get(cls), count, message)

    def assert_tally(self, traced, tally, expect_cut=0):
        mine = {}
        for (op, path), count in traced.counts(key=("op", "path")).items():
            key = (harness.plain_op(op), harness.unescape(path))
            total = mine.setdefault(key, harness.witness.Count())
            total.calls, total.bytes, total.cut = (
                total.calls + count.calls,
                total.bytes + count.bytes,
                total.cut + count.cut,
            )
        for key, count in tally.items():
            self.assertEqual(mine.get(key), count, f"{key}: headrace against the generator")
        ours = {op for op, _ in tally}
        extra = {
            (op, path): count
            for (op, path), count in mine.items()
            if (op, path) not in tally and op in ours and count.calls and not os.path.isdir(path)
        }
        self.assertEqual(extra, {}, "what the generator did not do")
        self.assertEqual(
            sum(c.cut for c in mine.values()), expect_cut, "operations that did not return"
        )
        self.assert_consistent(traced)


class Threads(Calls):
    def test_64_threads_at_once(self):
        program = self.program("w_threads")
        self.assert_arithmetic([program, self.folder.data, "64", "100"])  # strace is slow
        traced = self.scenario("w_threads", self.folder.data, "64", "2000", twin=False)
        tids = traced.value("SELECT count(DISTINCT tid) AS n FROM events WHERE class = 'read'")
        self.assertEqual(tids, 64)

    def test_subprocesses_of_fresh_threads(self):
        """CPython starts them by vfork; the child changes its folder before exec, on a thread that has done no I/O."""
        script = (
            "import subprocess, threading\n"
            f"open('{self.folder.data}/f', 'w').close()\n"
            "for i in range(5):\n"
            "    run = lambda: subprocess.run(['/bin/true'], cwd='" + self.folder.data + "', check=True)\n"
            "    thread = threading.Thread(target=run)\n"
            "    thread.start()\n"
            "    thread.join()\n"
        )
        traced = self.headrace([harness.PYTHON, "-c", script])
        self.assertEqual(traced.counts("op = 'chdir'", key=("op",))["chdir"].calls, 5)
        self.assertEqual(traced.sql("SELECT * FROM losses"), [])


class ManyThreads(Calls):
    """More threads than a session has rings for, and threads that cannot ask for one."""

    FILES = 401

    def test_400_threads_at_once(self):
        traced = self.scenario("w_threads", self.folder.data, "400", "50", twin=False)
        tids = traced.value("SELECT count(DISTINCT tid) AS n FROM events WHERE op = 'close'")
        self.assertEqual(tids, 401)

    def test_threads_of_a_process_that_became_another_user(self):
        if os.getuid() != 0:
            self.skipTest("only root may become another user")
        for folder in self.folder.path, self.folder.log:
            os.chmod(folder, 0o777)
        mask = os.umask(0)
        self.addCleanup(os.umask, mask)
        self.scenario("w_threads", self.folder.data, "40", "50", "65534", twin=False)


class Kinds(Calls):
    def test_every_kind_of_call(self):
        # no twin: strace sees the calls inside fread and fopen, not fread and fopen
        traced = self.scenario("w_kinds", self.folder.data, twin=False)
        name = f"{self.folder.data}/characters"
        (row,) = traced.sql(
            "SELECT sum(bytes_written) AS written, sum(bytes_read) AS read FROM file_records"
            f" WHERE path = '{name}'"
        )
        self.assertEqual((row["written"], row["read"]), (1000, 700), "putc and getc")
        (row,) = traced.sql(
            f"SELECT sum(bytes_read) AS read FROM file_records WHERE path = '{self.folder.data}/inlined'"
        )
        self.assertEqual(row["read"], 10000, "getc_unlocked")
        rows = traced.sql("SELECT path2 FROM events WHERE op = 'copy_file_range'")
        self.assertEqual(rows, [{"path2": f"{self.folder.data}/copy"}])


class Requests(Calls):
    """libaio: strace's account of a twin run is put together by the number that each request has."""

    SUBMITTED = re.compile(
        rb"aio_data=(\w+), aio_lio_opcode=IOCB_CMD_(\w+),.*? aio_fildes=\d+<([^>]*)>"
    )
    OVER = re.compile(rb"{data=(\w+), obj=\w+, res=(-?\d+)")

    def test_requests_of_libaio(self):
        self.assert_requests([self.program("w_libaio"), self.folder.data])
        traced = self.scenario("w_libaio", self.folder.data, expect_cut=1, twin=False)
        rows = traced.sql("SELECT DISTINCT api FROM events WHERE starts_with(op, 'io_')")
        self.assertEqual(rows, [{"api": "aio"}])
        failed = {("io_submit", errno.EBADF)}
        direct = f"{self.folder.data}/direct"
        if os.path.exists(direct) and os.path.getsize(direct) > 0:
            failed.add(("io_pread", errno.EINVAL))
        rows = traced.sql("SELECT DISTINCT op, errno FROM events WHERE op LIKE 'io_%' AND ret < 0")
        self.assertEqual({(r["op"], int(r["errno"])) for r in rows}, failed)

    def assert_requests(self, argv):
        """What the generator counts is what strace sees submitted and over."""
        strace = [harness.need_program("strace"), "-ff", "-y", "-v", "-e", "signal=none"]
        strace += ["-e", "trace=io_submit,io_getevents", "-o", f"{self.folder.log}/requests"]
        self.reset()
        _, tally = self.arithmetic(self.native, strace + argv)
        text = b""
        for name in glob.glob(f"{self.folder.log}/requests.*"):
            with open(name, "rb") as trace:
                text += trace.read()
        asked = {number: key for number, *key in self.SUBMITTED.findall(text)}
        seen = {}
        for number, result in self.OVER.findall(text):
            how, path = asked[number]
            count = seen.setdefault((f"io_{how.decode().lower()}", path), harness.witness.Count())
            count.calls, count.bytes = count.calls + 1, count.bytes + max(int(result), 0)
        wanted = {key: n for key, n in tally.items() if key[0] not in ("open", "close", "io_submit")}
        self.assertEqual(seen, wanted, "strace against the generator")
        calls = sum(n.calls for key, n in tally.items() if key[0] == "io_submit")
        self.assertEqual(text.count(b"io_submit("), calls)


class Descriptors(Calls):
    def test_dup_family(self):
        self.scenario("w_fds", "dups", self.folder.data)

    def test_close_range(self):
        self.scenario("w_fds", "range", self.folder.data)

    def test_inherited_over_exec(self):
        self.scenario("w_fds", "inherit", self.folder.data)

    def test_passed_over_a_socket(self):
        self.scenario("w_fds", "socket", self.folder.data)

    def test_highest_numbers_this_machine_allows(self):
        self.scenario("w_fds", "high", self.folder.data)


class HighDescriptors(Calls):
    """Where the hard limit forbids such numbers, `highfd` stands between the program and the kernel
    and makes them; strace cannot watch that too, so that the arithmetic alone is the witness.
    """

    def test_numbers_above_65536(self):
        if harness.resource_limit() > 65537:
            traced = self.scenario("w_fds", "high", self.folder.data)
        else:
            traced = self.shifted([self.program("highfd"), self.program("w_fds"), "high"])
        self.assertGreater(traced.value("SELECT max(fd) AS n FROM events"), 65536)

    def shifted(self, argv):
        self.folder.fill()
        tally = f"{self.folder.log}/tally"
        options = ("--exclude", self.folder.log)
        traced = self.headrace(
            [*argv, self.folder.data], options=options, status=None, E2E_TALLY=tally
        )
        if traced.result.returncode == 77:
            raise unittest.SkipTest(
                "descriptors above 65,536: limit too low, and no ptrace to fake"
            )
        self.assertEqual(traced.result.returncode, 0, traced.result.stderr)
        self.assert_tally(traced, harness.read_tally(tally))
        return traced


class Paths(Calls):
    def test_relative_after_chdir_and_fchdir(self):
        self.scenario("w_paths", "chdir", self.folder.data)

    def test_openat_with_a_dirfd(self):
        self.scenario("w_paths", "dirfd", self.folder.data)

    def test_o_tmpfile(self):
        self.scenario("w_paths", "tmpfile", self.folder.data)

    def test_rename_while_open(self):
        traced = self.scenario("w_paths", "rename", self.folder.data)
        (row,) = traced.sql("SELECT path, path2 FROM events WHERE op = 'rename'")
        self.assertEqual(
            [row["path"], row["path2"]],
            [f"{self.folder.data}/ckpt.tmp", f"{self.folder.data}/ckpt.pt"],
        )

    def test_names_of_any_bytes(self):
        self.scenario("w_paths", "names", self.folder.data)

    def test_path_of_4095_bytes(self):
        self.scenario("w_paths", "long", self.folder.data)


class Processes(Calls):
    def test_fork_vfork_spawn_exec_chains(self):
        traced = self.scenario("w_spawn", self.folder.data)
        chain = traced.value("SELECT count(*) AS n FROM processes WHERE exec_of IS NOT NULL")
        self.assertGreaterEqual(chain, 4, "images of an exec chain know which image they replaced")


    # Children that go where the daemon cannot be reached; the last one has no descriptor to knock with.
    LEAVERS = """
import os, resource, sys
fd = os.open(sys.argv[1] + "/f000", os.O_RDONLY)
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
for leave in (
    lambda: os.chroot(sys.argv[2]),
    lambda: os.setuid(65534),
    lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (0, limit)),
):
    pid = os.fork()
    if pid == 0:
        leave()
        for i in range(10):
            os.pread(fd, 100, 0)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""

    def test_children_that_leave(self):
        if os.geteuid() != 0:
            raise unittest.SkipTest("chroot and setuid need root")
        self.folder.fill(1)
        argv = [harness.PYTHON, "-c", self.LEAVERS, self.folder.data, self.folder.log]
        traced = self.headrace(argv)
        reads = traced.counts("class = 'read'", ("path",))
        self.assertEqual(reads[f"{self.folder.data}/f000"].calls, 20)
        rows = traced.sql("SELECT reason, op, count, bytes FROM losses WHERE op LIKE 'pread%'")
        self.assertEqual(
            [(r["reason"], int(r["count"]), int(r["bytes"])) for r in rows], [("stray", 10, 1000)]
        )


class Subprocesses(Calls):
    """What Python makes of vfork, posix_spawn and exec, against a twin under strace."""

    def test_python_starts_programs(self):
        argv = [harness.PYTHON, f"{harness.WORKLOADS}/subprocesses.py", self.folder.data]
        self.reset()
        twin = self.strace(argv)
        self.reset()
        traced = self.headrace(argv)
        # sync apart: what stdio flushes is no call of the kernel's
        self.assert_classes(traced, twin, ("open", "read", "write", "seek", "stat", "close"))
        mine = traced.counts("class IN ('read', 'write')", ("class", "path"))
        theirs = {
            (cls, os.fsdecode(path)): count
            for (cls, path), count in twin.items()
            if cls in ("read", "write")
        }
        self.assertEqual(mine, theirs)
        self.assert_consistent(traced)


class BlockFs(Calls):
    """With a file system of our own below the data, which can make one wait."""

    options = ()

    def setUp(self):
        super().setUp()
        self.mount = os.path.join(self.folder.data, "blockfs")

    def reset(self):
        self.unmount()
        super().reset()
        os.mkdir(self.mount)
        self.server = subprocess.Popen(
            [self.program("blockfs"), self.mount, *self.options], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.addCleanup(self.unmount)
        if self.server.stdout.readline() != b"ready\n":
            raise unittest.SkipTest(f"no FUSE here: {self.server.stderr.read().decode().strip()}")

    def unmount(self):
        if os.path.ismount(self.mount):
            subprocess.run(["umount", "-l", self.mount], check=True)
            with self.server:
                self.server.kill()


class Jumps(BlockFs):
    ROUNDS = "20"

    def test_siglongjmp_and_cancel_out_of_a_blocking_read(self):
        traced = self.scenario(
            "w_jump",
            os.path.join(self.mount, "block"),
            self.folder.data,
            self.ROUNDS,
            expect_cut=2 * int(self.ROUNDS),
        )
        cut = traced.sql("SELECT DISTINCT op, bytes FROM events WHERE ret IS NULL")
        self.assertEqual({r["op"] for r in cut} - {"pread", "pread64"}, set())


class Waits(BlockFs):
    """The first call of a process may take long: it is an event like any other."""

    options = ("1500",)

    def test_slow_first_open(self):
        self.reset()
        program = f"head -c 10 {self.mount}/block >{os.devnull}"
        traced = self.headrace(["sh", "-c", program])
        rows = traced.sql(
            "SELECT op, dur_ns, e.start_ns - p.start_ns AS late, e.start_ns >= p.start_ns AS sane"
            " FROM events e JOIN processes p USING (job, node, proc) WHERE class = 'open'"
        )
        self.assertEqual(len(rows), 1)
        self.assertGreater(int(rows[0]["dur_ns"]), 1_400_000_000)
        self.assertTrue(rows[0]["sane"])
        self.assertEqual(traced.sql("SELECT reason, op, count FROM losses"), [])
        self.assert_consistent(traced)


if __name__ == "__main__":
    harness.main()
