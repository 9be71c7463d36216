#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Output of strace: what becomes what, against what the program itself does, and against `headrace run`."""

import glob
import os
import shutil
import subprocess

import harness

WORK = os.environ["HR_STRACE_WORK"]
STRACE = shutil.which("strace")
A = r'a "q"\x0A\xFF<x>,y'
# What strace_work does in its folder: class, path, path2, offset, asked, result, bytes.
FIRST = [("dir", "", None, None, None, 0, None), ("dir", "/sub", None, None, None, 0, None), ("open", A, None, None, None, "fd", None),
         ("write", A, None, 0, 8192, 8192, 8192), ("seek", A, None, 100, None, 100, None), ("read", A, None, 100, 200, 200, 200),
         ("read", A, None, 300, 30, 30, 30), ("read", A, None, 4000, 30, 30, 30), ("write", A, None, 330, 30, 30, 30),
         ("write", A, None, 5000, 60, 60, 60), ("meta", A, None, None, None, "fd", None), ("read", A, None, 360, 11, 11, 11),
         ("close", A, None, None, None, 0, None), ("meta", A, None, None, 9000, 0, None), ("sync", A, None, None, None, 0, None),
         ("sync", A, None, None, None, 0, None), ("map", A, None, 4096, 4096, 0, None), ("map", A, None, None, 4096, 0, None),
         ("map", A, None, None, 4096, 0, None), ("close", A, None, None, None, 0, None), ("open", "/log", None, None, None, "fd", None),
         ("write", "/log", None, None, 10, 10, 10), ("write", "/log", None, None, 20, 20, 20), ("close", "/log", None, None, None, 0, None),
         ("meta", "/log", "/sub/old", None, None, 0, None), ("meta", "/sub/old", "/sub/../hard", None, None, 0, None),
         ("meta", "/hard", None, None, None, 0, None), ("meta", "/hard", None, None, None, 0, None),
         ("open", "/missing", None, None, None, -2, None), ("dir", "/sub", None, None, None, -17, None),
         ("dir", "/sub", None, None, None, 0, None), ("meta", "/sub/old", None, None, None, 0, None),
         ("dir", "/sub/..", None, None, None, 0, None), ("dir", "/sub", None, None, None, 0, None)]
THREAD = [("read", A, None, 100 * i, 100, 100, 100) for i in range(5)]
CHILD = [("open", "/child file", None, None, None, "fd", None), ("write", "/child file", None, 0, 50, 50, 50),
         ("close", "/child file", None, None, None, 0, None)]
AGAIN = [("open", "/child file", None, None, None, "fd", None), ("seek", "/child file", None, 10, None, 10, None),
         ("read", "/child file", None, 10, 100, 40, 40), ("read", "/child file", None, 50, 100, 0, 0),
         ("close", "/child file", None, None, None, 0, None)]


def expected():
    full = lambda rows: [tuple("/" + v if i == 1 and v == A else v for i, v in enumerate(row)) for row in rows]
    return sorted(map(full, (FIRST, THREAD, THREAD, CHILD, AGAIN)))


class Strace(harness.Case):
    def setUp(self):
        super().setUp()
        if not STRACE or subprocess.run([STRACE, "-o", "/dev/null", "true"], check=False, capture_output=True).returncode:
            self.skipTest("no strace, or no ptrace")

    def data(self):
        self.folder = os.path.join(self.dir, "data")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.mkdir(self.folder)
        return self.folder

    def trace(self, *options, to="t.strace", command=(), stderr=None):
        """Runs the program in a fresh folder, whose path is left out of paths below."""
        command = command or (WORK, self.data())
        out = () if stderr else ("-o", self.path(to))
        subprocess.run([STRACE, *options, *out, *command], check=False, stderr=stderr, stdout=subprocess.DEVNULL,
                       env={"PATH": os.environ["PATH"]})
        return self.path(to)

    def threads(self, store=None, job="%"):
        """The operations in the folder, by thread, in the order of their starts."""
        rows = self.query(f"""SELECT proc, tid, class, path, path2, file_offset, asked, CASE WHEN errno IS NOT NULL THEN -errno
            WHEN class = 'open' OR op IN ('dup', 'fcntl') THEN -1 ELSE ret END, bytes FROM events
            WHERE path LIKE '{self.folder}%' AND job LIKE '{job}' AND class != 'stat' ORDER BY start_ns""", store)
        by_thread = {}
        for proc, tid, kind, path, path2, *rest in rows:
            cut = lambda p: p[len(self.folder):] if p else p
            rest[2] = "fd" if rest[2] == -1 else rest[2]
            by_thread.setdefault((proc, tid), []).append((kind, cut(path), cut(path2), *rest))
        return sorted(by_thread.values())

    def test_one_file(self):
        said = self.run_import(self.trace("-f", "-ttt", "-T", "-y", "-s", "999"))
        self.assertEqual(self.threads(), expected())
        self.assertEqual(said.count("\n"), 2, said)
        processes = self.query("SELECT exe, cmdline, exit, ppid IS NULL, exec_of FROM processes ORDER BY proc")
        self.assertEqual(processes, [(WORK, f"{WORK} {self.folder}", "SIGKILL", True, None), (WORK, f"{WORK} {self.folder}", "exec", False, None),
                                     (WORK, f"{WORK} again", "3", False, 2)])
        self.assertEqual(self.query("SELECT count(*) FROM events WHERE dur_ns = 0 OR end_ns < start_ns"), [(0,)])
        self.assertEqual(self.query("SELECT * FROM losses"), [])

    def test_a_file_for_each_task(self):
        self.trace("-ff", "-ttt", "-T", "-y", to="parts/t")
        self.assertEqual(len(glob.glob(self.path("parts/t.*"))), 4)
        self.run_import(self.path("parts"))
        self.assertEqual(self.threads(), expected())
        self.assertEqual(self.query("SELECT count(*) FROM processes"), [(3,)])
        self.assertEqual(self.query("SELECT * FROM losses"), [])

    def test_compressed_files_for_each_task(self):
        self.trace("-ff", "-ttt", "-T", "-y", to="parts/t")
        for i, path in enumerate(sorted(glob.glob(self.path("parts/t.*")))):
            if i != 1:  # one remains as it is
                with open(path, "rb") as f:
                    self.file(f"parts/{os.path.basename(path)}.gz", f.read())
                os.unlink(path)
        self.run_import(self.path("parts"))
        self.assertEqual(self.threads(), expected())
        self.assertEqual(self.query("SELECT count(*), min(pid) > 0 FROM processes"), [(3, True)])
        self.assertEqual(self.query("SELECT * FROM losses"), [])

    def test_to_a_terminal(self):
        path = self.path("terminal")
        with open(path, "wb") as f:
            self.trace("-f", "-ttt", "-T", "-y", stderr=f)
        said = self.run_import(path)
        self.assertEqual(self.threads(), expected())
        with open(path, encoding="utf-8", errors="replace") as f:  # the order of its lines is another one each time
            self.assertEqual(self.query("SELECT exit, ppid IS NULL FROM processes ORDER BY proc"),
                             [("SIGKILL", True), ("exec", False), ("3", False)], said + f.read())

    def test_without_options(self):
        said = self.run_import(self.trace("-f", "-ttt"), "--job", "bare")
        self.assertIn("no durations: they need the option -T", said)
        self.assertIn("no paths of descriptors", said)
        self.assertEqual(self.threads(job="bare"), expected())
        said = self.run_import(self.trace("-ttt", "-T", "-yy", to="single"), "--job", "single")
        self.assertIn("3 child processes or threads are not in the trace: they need the option -f", said)
        self.assertEqual(self.threads(job="single"), [expected()[0]])
        said = self.run_import(self.trace("-f", to="none"), "--job", "none", status=1)
        self.assertIn("none: no times: not imported; record with strace -f -ttt -T -y -o FILE COMMAND", said)

    def test_options(self):
        """What strace writes with other options is the same: only times without a date are reported."""
        for i, options in enumerate((("-xx", "-y"), ("-x", "-y"), ("-xx", "-yy"), ("-i", "-y"), ("-n", "-y"), ("-i", "-n", "-y"), ("-Y", "-y"), ("-Y", "-yy"),
                                     ("-X", "verbose", "-y"), ("-X", "raw", "-y"), ("-C", "-y"), ("-e", "read=3,4", "-y"), ("-e", "write=all", "-y"), ("-r", "-y"))):
            said = self.run_import(self.trace("-f", "-ttt", "-T", *options, to=f"t{i}"), store=self.path(f"s{i}"))
            self.assertEqual(self.threads(self.path(f"s{i}")), expected(), options)
            self.assertEqual(len(said.splitlines()), 2, (options, said))  # what was imported, and the next command
            self.assertEqual(self.query("SELECT * FROM losses", self.path(f"s{i}")), [], options)

    def test_times_without_a_date(self):
        for i, (option, why) in enumerate((("-tt", "its times have no date"), ("-t", "its times have no date"), ("-r", "its times begin at 0, because strace had the option -r"))):
            path, store = self.trace("-f", option, "-T", "-y", to=f"t{i}"), self.path(f"s{i}")
            self.assertIn(why, self.run_import(path, store=store))
            self.assertEqual(self.threads(store), expected())
        self.assertEqual(self.query("SELECT min(start_ns) < 1e9, max(start_ns) > max(dur_ns) FROM events", self.path("s2")), [(True, True)])
        # Midnight, and then a clock that is set back by 50 ms: only the first one begins a day.
        lines = ('7 23:59:59.9 openat(AT_FDCWD</d>, "a", O_RDONLY) = 3</d/a> <0.000010>', '7 00:00:01.25 read(3</d/a>, "", 9) = 9 <0.000010>',
                 '7 00:00:01.2 read(3</d/a>, "", 9) = 8 <0.000010>', "7 00:00:03.5 close(3</d/a>) = 0 <0.000010>")
        self.run_import(self.file("midnight", "".join(line + "\n" for line in lines)), store=self.path("m"))
        self.assertEqual(self.query("SELECT bytes, start_ns // 1000000 FROM events ORDER BY start_ns", self.path("m")),
                         [(None, 86_399_900), (9, 86_401_250), (8, 86_401_250), (None, 86_403_500)])
        os.mkdir(self.path("parts"))
        self.trace("-ff", "-r", "-T", "-y", to="parts/t")
        said = self.run_import(self.path("parts"), "--job", "parts", status=1)
        self.assertIn("the times of -r and -ff have no common begin: not imported; record with strace -f -ttt -T -y", said)
        os.mkdir(self.path("days"))
        self.trace("-ff", "-tt", "-T", "-y", to="days/t")
        self.run_import(self.path("days"), store=self.path("days.store"))
        self.assertEqual(self.threads(self.path("days.store")), expected())

    def test_a_child_whose_first_line_ends_its_clone(self):
        lines = ('7 1700000000.000001 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>', "8 1700000000.000002 <... clone resumed>) = 0", "7 1700000000.000003 <... clone resumed>) = 8 <0.000002>",
                 '8 1700000000.000004 openat(AT_FDCWD</d>, "a", O_RDONLY) = 3</d/a>', "9 1700000000.000005 <... clone resumed>) = 10", "8 1700000000.000006 +++ exited with 0 +++")
        said = self.run_import(self.file("t", "".join(line + "\n" for line in lines)))
        self.assertIn("1 of 6 lines could not be read, the first is line 5", said)  # the begin of that call is missing
        self.assertEqual(self.query("SELECT pid, ppid FROM processes ORDER BY pid"), [(7, None), (8, 7)])

    def test_same_as_headrace_run(self):
        self.run_import(self.trace("-f", "-ttt", "-T", "-y"))
        traced = self.threads()
        store = os.path.join(self.dir, "recorded")
        done = subprocess.run([harness.HEADRACE, "run", "-o", store, "--include", self.data(), "--", WORK, self.folder],
                              env={**harness.environment(), "HOME": self.dir}, capture_output=True, text=True, check=False)
        if not os.path.isdir(store):
            self.skipTest("headrace run does not work here: " + done.stderr)
        self.assertEqual(self.threads(store), traced)

    def test_lines(self):
        t = 1700000000
        lines = ['7 {}.000001 execve("/bin/x", ["x", "a b"], 0x7ffe /* 20 vars */) = 0 <0.000100>',
                 '7 {}.000200 openat(AT_FDCWD</home>, "d/../f\\1\\x41\\"", O_RDWR|O_LARGEFILE) = 3</home/f\\1A"> <0.000010>',
                 '7 {}.000300 read(3</home/f\\1A">,  <unfinished ...>', '7 {}.000350 --- SIGCHLD {{si_signo=SIGCHLD}} ---',
                 '7 {}.000400 <... read resumed>"abc)\\" = 1, "..., 4096) = 100 <0.000095>', "7 {}.000500 read(3</home/f\\1A\">, \"\", 5) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.1>",
                 '7 {}.000600 write(1</dev/pts/0<char 136:0>>, "x", 1) = 1 <0.000001>', '7 {}.000700 read(4<TCP:[127.0.0.1:1->127.0.0.1:2]>, "", 9) = 9 <0.000001>',
                 '7 {}.000800 write(3</home/f\\1A">(deleted), "y"..., 70) = -1 ENOSPC (No space left on device) <0.000001>', '7 {}.000850 io_uring_enter(5<anon_inode:[io_uring]>, 1, 1, 0, NULL, 8) = 1',
                 "7 {}.000900 fsync(3</home/f\\1A\"> <unfinished ...>) = ?", "garbage", "7 {}.000950 read(3", "7 {}.001000 +++ killed by SIGSEGV (core dumped) +++", "7 {}.001100 read(3</home/f\\1A"]
        said = self.run_import(self.file("t", "\n".join(lines).format(*[t] * 40)), "--node", "n1")
        self.assertEqual(self.query("SELECT op, path, fd, flags, file_offset, asked, ret, errno, dur_ns FROM events ORDER BY start_ns"), [
            ("openat", r'/home/f\x01A"', 3, os.O_RDWR, None, None, 3, None, 10000), ("read", r'/home/f\x01A"', 3, 0, 0, 4096, 100, None, 95000),
            ("write", "/dev/pts/0", 1, 0, None, 1, 1, None, 1000), ("write", r'/home/f\x01A"', 3, 0, 100, 70, -1, 28, 1000),
            ("fsync", r'/home/f\x01A"', 3, 0, None, None, None, None, 0)])
        self.assertEqual(self.query("SELECT node, pid, exe, cmdline, exit FROM processes"), [("n1", 7, "/bin/x", "x a b", "SIGSEGV")])
        self.assertEqual(self.query("SELECT reason, count FROM losses ORDER BY reason"),
                         [("import_cut", 1), ("import_lines", 2), ("import_noted", 1)])
        self.assertIn("2 of 15 lines could not be read, the first is line 12", said)

    def test_positions(self):
        """After what changes a position, and after a gap in the trace, the offset is right or unknown."""
        steps = [('openat(AT_FDCWD</d>, "a", O_RDONLY)', "3</d/a>"), ('read(3</d/a>, "", 10)', 10), ("dup2(3</d/a>, 9)", "9</d/a>"),
                 ('read(9</d/a>, "", 10)', 10), ("close(3</d/a>)", 0), ("fcntl(9</d/a>, F_DUPFD_CLOEXEC, 20)", "20</d/a>"),
                 ('read(20</d/a>, "", 10)', 10), ("lseek(9</d/a>, -5, SEEK_CUR)", 25), ('read(20</d/a>, "", 10)', 3),
                 ('rename("/d/a", "/d/b")', 0), ('read(9</d/b>, "", 10)', 2), ("close_range(9, 10, 0)", 0), ('read(9</d/c>, "", 10)', 1),
                 ('read(20</d/x>, "", 10)', 1), ('pread64(20</d/x>, "", 10, 70)', 1), ("lseek(20</d/x>, 5, SEEK_SET)", 5),
                 ('read(20</d/x>, "", 10)', 1), ('read(20</d/x>, "", 10)', 1)]
        self.run_import(self.file("t", "".join(f"7 1700000000.0{i:05} {call} = {ret} <0.000001>\n" for i, (call, ret) in enumerate(steps))))
        self.assertEqual(self.query("SELECT path, file_offset FROM events WHERE class = 'read' ORDER BY start_ns"),
                         [("/d/a", 0), ("/d/a", 10), ("/d/a", 20), ("/d/a", 25), ("/d/b", 28), ("/d/c", None), ("/d/x", None), ("/d/x", 70),
                          ("/d/x", 5), ("/d/x", 6)])

    def calls(self, *steps, name="t"):
        """Imports a trace of one process: calls, and what they return."""
        return self.run_import(self.file(name, "".join(f"7 1700000000.0{i:05} {call} = {ret}\n" for i, (call, ret) in enumerate(steps))))

    def test_folders_of_descriptors(self):
        """Without -y: paths below descriptors of folders, as tar, grep -r and rm -r use them."""
        said = self.calls(
            ('chdir("/home/u")', 0), (r'openat(AT_FDCWD, "a\\b", O_RDONLY|O_DIRECTORY)', 3), ('openat(3, "sub", O_RDONLY)', 4), ("dup(4)", 5),
            ("close(4)", 0), ('openat(5, "./c", O_RDONLY)', 4), ('read(4, "", 9)', 9), ('newfstatat(5, "d", {}, 0)', 0),
            ('openat(7, "/abs", O_RDONLY)', 6), ('read(6, "", 5)', 5), ("fchdir(5)", 0), ('unlink("e")', 0),
            ('renameat(3, "f", AT_FDCWD, "g")', 0), ('openat(8, "a", O_RDONLY)', 4), ('read(4, "", 9)', 9), ('newfstatat(8, "a", {}, 0)', 0))
        self.assertEqual(self.query("SELECT op, path, path2, bytes FROM events WHERE class != 'open' ORDER BY start_ns"), [
            ("chdir", "/home/u", None, None), ("dup", r"/home/u/a\\b/sub", None, None), ("close", r"/home/u/a\\b/sub", None, None),
            ("read", r"/home/u/a\\b/sub/c", None, 9), ("fstatat", r"/home/u/a\\b/sub/d", None, None), ("read", "/abs", None, 5),
            ("fchdir", r"/home/u/a\\b/sub", None, None), ("unlink", r"/home/u/a\\b/sub/e", None, None),
            ("renameat", r"/home/u/a\\b/f", r"/home/u/a\\b/sub/g", None)])
        self.assertIn("3 calls use descriptors without a known file: not imported", said)
        self.assertEqual(self.query("SELECT reason, count FROM losses"), [("import_noted", 3)])

    def test_a_tree_without_y(self):
        """Programs that open files below descriptors read the same with and without -y."""
        for i in range(6):
            self.file(f"tree/{i % 3}/{i}", "x" * 1000 * (i + 1))
        for command in (("grep", "-r", "zzz", self.path("tree")), ("tar", "-cf", self.path("out.tar"), "-C", self.path("tree"), ".")):
            sums = []
            for options in ((), ("-y",)):
                job = command[0] + "".join(options)
                self.run_import(self.trace("-f", "-ttt", "-T", *options, to=job, command=command), "--job", job)
                sums.append(self.query(f"SELECT path, sum(bytes), count(*) FROM events WHERE job = '{job}' AND class = 'read' AND "
                                       f"path LIKE '{self.path('tree')}%' GROUP BY path ORDER BY path"))
            self.assertEqual([row[1] for row in sums[0]], [1000, 4000, 2000, 5000, 3000, 6000])
            self.assertEqual(sums[0], sums[1])

    def written(self):
        return self.query("SELECT path, sum(bytes) FROM events WHERE class = 'write' GROUP BY path ORDER BY path")

    def test_descriptors_that_execve_closes(self):
        """Without -y: after execve, a number that was closed is not the file of before."""
        name = iter("abcdefghij")
        opened = lambda fd, flags="": (f'openat(AT_FDCWD, "/{next(name)}", O_WRONLY{flags})', fd)
        execve = ('execve("/bin/x", ["x"], 0x7ff /* 1 var */)', 0)
        writes = [(f'write({fd}, "", 9)', fd) for fd in range(3, 15)]
        said = self.calls(
            opened(3, "|O_CLOEXEC"), opened(4), ("dup3(4, 5, O_CLOEXEC)", 5), ("dup2(5, 6)", 6), ("fcntl(4, F_DUPFD_CLOEXEC, 7)", 7),
            ("fcntl(7, F_DUPFD, 8)", 8), opened(9), ("fcntl(9, F_SETFD, FD_CLOEXEC)", 0), opened(10, "|O_CLOEXEC"), ("fcntl(10, F_SETFD, 0)", 0),
            opened(11), ("ioctl(11, FIOCLEX)", 0), opened(12), ("close_range(12, 12, CLOSE_RANGE_UNSHARE|CLOSE_RANGE_CLOEXEC)", 0),
            opened(13), ("close_range(13, 13, CLOSE_RANGE_UNSHARE)", 0), opened(14, "|O_CLOEXEC"), ("dup2(14, 14)", 14), execve, *writes)
        self.assertEqual(self.written(), [("/b", 4 + 6 + 8), ("/d", 10)])
        self.assertIn("8 calls use descriptors without a known file", said)

    def test_ranges_of_many_descriptors(self):
        """Without -y: close_range closes all of its descriptors, and no other."""
        fds = range(3, 203)
        said = self.calls(*[(f'openat(AT_FDCWD, "/{fd}", O_WRONLY)', fd) for fd in fds], ("close_range(4, 4294967295, 0)", 0),
                          *[(f'write({fd}, "", 9)', 9) for fd in fds])
        self.assertEqual(self.written(), [("/3", 9)])
        self.assertIn("199 calls use descriptors without a known file", said)

    def test_descriptors_of_no_file(self):
        """Without -y: a descriptor of a socket or a pipe replaces what its number meant."""
        opens = [(f'openat(AT_FDCWD, "/{fd}", O_WRONLY)', fd) for fd in range(3, 10)]
        makers = [("socket(AF_INET, SOCK_STREAM, IPPROTO_IP)", 3), ("pipe2([4, 5], O_CLOEXEC)", 0), ("socketpair(AF_UNIX, SOCK_STREAM, 0, [6, 7])", 0),
                  ("accept4(3, NULL, NULL, SOCK_CLOEXEC)", 8)]
        said = self.calls(*opens, *makers, *[(f'write({fd}, "", 9)', fd) for fd in range(3, 10)])
        self.assertEqual(self.written(), [("/9", 9)])
        self.assertNotIn("without a known file", said)

    def test_an_execve_without_y(self):
        """A program that a script starts after it has opened files: the same sums with and without -y."""
        program = """import os, sys
            fd = os.open("{0}/kept", os.O_CREAT | os.O_WRONLY); os.dup2(fd, 20); os.write(20, b"x" * 10)
            for i in range(9): os.open("{0}/%d" % i, os.O_CREAT | os.O_WRONLY)
            os.execv(sys.executable, [sys.executable, "-c", '''if 1:
                import os, socket
                s = [socket.socketpair() for i in range(4)]; os.write(s[3][0].fileno(), b"x" * 5000); os.write(20, b"y" * 7)'''])""".format(self.data()).replace("\n            ", "\n")
        for options in ((), ("-y",)):
            job = "exec" + "".join(options)
            self.run_import(self.trace("-f", "-ttt", "-T", *options, to=job, command=("/usr/bin/python3", "-c", program)), "--job", job)
            self.assertEqual(self.query(f"SELECT path, sum(bytes) FROM events WHERE job = '{job}' AND class = 'write' GROUP BY path"),
                             [(self.folder + "/kept", 17)])

    def test_commands_of_fcntl(self):
        """Only F_DUPFD and F_DUPFD_CLOEXEC return a descriptor."""
        self.calls(('openat(AT_FDCWD, "/a", O_WRONLY)', 0), ('openat(AT_FDCWD, "/b", O_WRONLY)', 3), ("fcntl(3, F_SETOWN, 100)", 0),
                   ("fcntl(3, F_LATER, 100)", 0), ("fcntl(3, 0x50 /* F_??? */, 100)", 0), ('write(0, "", 5)', 5), ("fcntl(0, F_DUPFD, 9)", 9),
                   ('write(9, "", 7)', 7))
        self.assertEqual(self.query("SELECT path, bytes FROM events WHERE class = 'write' ORDER BY start_ns"), [("/a", 5), ("/a", 7)])

    def test_calls_that_do_not_finish(self):
        """A trace ends in calls, because strace has ended, or the tasks have."""
        t = 1700000000
        lines = [f'7 {t}.0 openat(AT_FDCWD, "/a", O_RDWR) = 3', f"7 {t}.1 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 8",
                 f'8 {t}.2 write(3, "x", 70 <unfinished ...>', f'7 {t}.3 read(3,  <unfinished ...>', f"8 {t}.5 +++ killed by SIGKILL +++",
                 f"9 {t}.6 accept(4,  <unfinished ...>", f'6 {t}.7 openat(AT_FDCWD, "/b", O_RDWR <detached ...>', f"5 {t}.9 exit(0) = ?"]
        self.run_import(self.file("t", "\n".join(lines) + "\n"))
        self.assertEqual(self.query("SELECT tid, op, path, asked, ret, errno, dur_ns FROM events ORDER BY start_ns"), [
            (7, "openat", "/a", None, 3, None, 0), (8, "write", "/a", 70, None, None, 300000000), (7, "read", "/a", None, None, None, 600000000),
            (6, "openat", "/b", None, None, None, 200000000)])
        self.assertEqual(self.query("SELECT pid FROM processes ORDER BY pid"), [(6,), (7,), (9,)])
        self.assertEqual(self.query("SELECT reason, count FROM losses"), [])

    def test_a_child_that_ends_before_its_clone(self):
        """strace reports a clone's result after the end of the task that the clone made."""
        t = 1700000000
        thread = "clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, exit_signal=0}, 88) = 8"
        lines = [f"{t}.0 set_tid_address(0x7) = 7 <0.000001>", f'{t}.1 openat(AT_FDCWD, "/a", O_RDWR) = 3 <0.000001>',
                 f"{t}.2 {thread.partition(', exit')[0]}strace: Process 8 attached", " <unfinished ...>",
                 f'[pid     8] {t}.3 write(3, "x", 1) = 1 <0.000001>', f"[pid     8] {t}.4 +++ exited with 0 +++",
                 f"{t}.5 <... clone3 resumed>, exit{thread.partition(', exit')[2]} <0.300000>",
                 f"{t}.6 clone(flags=SIGCHLDstrace: Process 9 attached", " <unfinished ...>",
                 f'[pid     9] {t}.7 write(3, "x", 2) = 2 <0.000001>', f"[pid     9] {t}.8 +++ exited with 4 +++",
                 f"{t}.85 <... clone resumed>) = 9 <0.250000>", f"{t}.9 +++ exited with 0 +++"]
        output = self.run_import(self.file("terminal", "\n".join(lines) + "\n"))
        self.assertNotIn("not in the trace", output)
        self.assertEqual(self.query("SELECT pid, ppid, exit FROM processes ORDER BY pid"), [(7, None, "0"), (9, 7, "4")])
        self.assertEqual(self.query("SELECT tid, path, bytes FROM events WHERE class = 'write' ORDER BY tid"), [(8, "/a", 1), (9, "/a", 2)])

    def test_append_by_fcntl(self):
        self.calls(('openat(AT_FDCWD, "/a", O_RDWR)', 3), ("dup(3)", 4), ('write(3, "", 5)', 5), ("fcntl(4, F_SETFL, O_RDWR|O_APPEND|O_NONBLOCK)", 0),
                   ('write(3, "", 6)', 6), ('read(3, "", 1)', 1), ("lseek(3, 2, SEEK_SET)", 2), ('read(3, "", 1)', 1), ('write(4, "", 7)', 7),
                   ("fcntl(3, F_SETFL, 0)", 0), ("lseek(3, 2, SEEK_SET)", 2), ('write(4, "", 8)', 8), ("fcntl(3, F_SETFL, O_APPEND)", "-1 EPERM (No)"),
                   ('write(4, "", 9)', 9))
        self.assertEqual(self.query("SELECT bytes, file_offset FROM events WHERE class IN ('read', 'write') ORDER BY start_ns"),
                         [(5, 0), (6, None), (1, None), (1, 2), (7, None), (8, 2), (9, 10)])

    def test_octal_numbers(self):
        self.calls(('mkdir("/a", 0755)', 0), ('fchmodat(AT_FDCWD, "/a", 01777)', 0), ('mkdir("/b", 0)', 0))
        self.assertEqual(self.query("SELECT op, flags FROM events ORDER BY start_ns"), [("mkdir", 0o755), ("fchmodat", 0o1777), ("mkdir", 0)])

    def test_append_by_call(self):
        """Linux ignores the offset of a write in append mode."""
        self.calls(('openat(AT_FDCWD, "/a", O_RDWR)', 3), ('write(3, "", 5)', 5), ('pwritev2(3, [{iov_base="", iov_len=6}], 1, 2, RWF_APPEND)', 6),
                   ('write(3, "", 7)', 7), ('pwritev2(3, [{iov_base="", iov_len=8}], 1, -1, RWF_APPEND|RWF_SYNC)', 8), ('read(3, "", 9)', 9),
                   ('openat(AT_FDCWD, "/a", O_RDWR|O_APPEND)', 4), ('pwrite64(4, "", 10, 3)', 10), ('pread64(4, "", 11, 3)', 11))
        self.assertEqual(self.query("SELECT bytes, file_offset FROM events WHERE class IN ('read', 'write') ORDER BY start_ns"),
                         [(5, 0), (6, None), (7, 5), (8, None), (9, None), (10, None), (11, 3)])

    def test_copies(self):
        """A copy has two files. It moves the position of each file whose offset it does not name."""
        self.calls(('openat(AT_FDCWD, "/a", O_RDONLY)', 3), ('openat(AT_FDCWD, "/b", O_WRONLY)', 4), ("sendfile(4, 3, NULL, 100)", 100),
                   ("copy_file_range(3, NULL, 4, NULL, 50, 0)", 50), ("copy_file_range(3, [10] => [17], 4, NULL, 7, 0)", 7),
                   ("copy_file_range(3, NULL, 4, [0] => [5], 5, 0)", 5), ("sendfile(4, 3, [1000] => [1003], 3)", 3),
                   ("sendfile(4, 3, NULL, 9)", "-1 EAGAIN (Try again)"), ('read(3, "", 1)', 1), ('write(4, "", 1)', 1))
        self.assertEqual(self.query("SELECT op, path, path2, file_offset, asked, bytes FROM events WHERE class != 'open' ORDER BY start_ns"), [
            ("sendfile", "/a", "/b", 0, 100, 100), ("copy_file_range", "/a", "/b", 100, 50, 50), ("copy_file_range", "/a", "/b", 10, 7, 7),
            ("copy_file_range", "/a", "/b", 150, 5, 5), ("sendfile", "/a", "/b", 1000, 3, 3), ("sendfile", "/a", "/b", 155, 9, 0),
            ("read", "/a", None, 155, 1, 1), ("write", "/b", None, 160, 1, 1)])
        self.assertEqual(self.query("SELECT path, bytes_read, bytes_written FROM file_records ORDER BY path"), [("/a", 166, 0), ("/b", 0, 166)])

    def test_submitted_operations(self):
        said = self.calls(("io_uring_setup(8, {})", 3), ("io_uring_enter(3, 2, 0, 0, NULL, 8)", 2), ("io_uring_enter(3, 0, 1, IORING_ENTER_GETEVENTS, NULL, 8)", 0),
                          ("io_submit(0x7f01, 1, [{aio_data=0}])", 1), ("io_submit(0x7f01, 0, [])", 0), ('access("/a", F_OK)', 0))
        self.assertIn("2 calls submit I/O by io_uring or libaio", said)
        self.assertEqual(self.query("SELECT reason, count FROM losses"), [("import_noted", 2)])

    def test_an_execve_of_a_thread(self):
        """After execve by a thread, the program has the pid of the process."""
        program = """import os, threading, time
            def run():
                time.sleep(0.2)
                os.write(os.open("{0}/a", os.O_CREAT | os.O_WRONLY), b"x" * 10)
                os.execv("/bin/cat", ["cat", "{0}/a"])
            threading.Thread(target=run).start(); time.sleep(3000)""".format(self.data()).replace("\n            ", "\n")
        for options, to in (("-f", "one"), ("-ff", "each/t")):
            self.trace(options, "-ttt", "-T", "-y", to=to, command=("/usr/bin/python3", "-c", program))
            self.run_import(self.path(to.split("/")[0]), "--job", to[:3])
            self.assertEqual(self.query(f"SELECT exe, exit, pid = min(pid) OVER () FROM processes WHERE job = '{to[:3]}' ORDER BY proc"),
                             [("/usr/bin/python3", "exec", True), ("/bin/cat", "0", True)])
            self.assertEqual(self.query(f"SELECT class, proc, tid = min(tid) OVER (), bytes FROM events WHERE job = '{to[:3]}' AND bytes > 0 AND "
                                        f"path = '{self.folder}/a' ORDER BY start_ns"), [("write", 1, False, 10), ("read", 2, True, 10)])
        self.assertEqual(self.query("SELECT reason, count FROM losses"), [])

    def test_a_number_that_another_thread_opens(self):
        """The trace has the open before the result of the close that freed its number."""
        for name, a, b in (("bare", "", ""), ("shown", "</a>", "</b>")):
            lines = ['7 {t}.1 openat(AT_FDCWD, "/a", O_RDWR) = 3{a} <0.01>', "7 {t}.2 clone(child_stack=0x7f, flags=CLONE_FILES|CLONE_THREAD) = 8",
                     '7 {t}.3 close(3{a} <unfinished ...>', '8 {t}.4 openat(AT_FDCWD, "/b", O_RDWR) = 3{b} <0.01>',
                     "7 {t}.5 <... close resumed>) = 0 <0.2>", '8 {t}.6 read(3{b}, "x", 9) = 9 <0.01>', "8 {t}.7 close(3{b}) = 0 <0.01>"]
            self.run_import(self.file(name, "\n".join(lines).format(t=1700000000, a=a, b=b) + "\n"), "--job", name)
            self.assertEqual(self.query(f"SELECT op, path, file_offset FROM events WHERE job = '{name}' AND tid = 8 ORDER BY start_ns"),
                             [("openat", "/b", None), ("read", "/b", 0), ("close", "/b", None)])
            self.assertEqual(self.query(f"SELECT path FROM events WHERE job = '{name}' AND op = 'close' AND tid = 7"), [("/a",)] if a else [])
            self.assertEqual(self.query(f"SELECT reason, count FROM losses WHERE job = '{name}'"), [] if a else [("import_noted", 1)])


if __name__ == "__main__":
    harness.main()
