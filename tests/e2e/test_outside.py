#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What reaches libc without a wrapper, or files without their usual name: functions taken by a handle, libraries with a libc or with
functions of their own, descriptors of one thread, names of descriptors, deep folders, little memory.

The witness is the program's own count.
"""

import os
import subprocess

import harness

SIZES = (4096, 1000)  # bytes of the files a and b

PRELUDE = """
import ctypes, os, signal, sys, threading
A, B = sys.argv[1:3]
process, libc = ctypes.CDLL(None, use_errno=True), ctypes.CDLL("libc.so.6", use_errno=True)
buffer = ctypes.create_string_buffer(100)
def read(fd, times=1):
    for _ in range(times):
        assert len(os.pread(fd, 100, 0)) == 100
"""

# Each confines itself and reads A and B afterwards: `how` installs the filter, which ends the process for any other system call.
CONFINED = """
import struct
ALLOWED = (0, 1, 3, 5, 8, 9, 10, 11, 12, 13, 14, 16, 17, 25, 28, 60, 202, 217, 231, 257, 262)  # on x86-64
filter = [struct.pack("HBBI", 0x20, 0, 0, 0)]
for number in ALLOWED:
    filter += [struct.pack("HBBI", 0x15, 0, 1, number), struct.pack("HBBI", 6, 0, 0, 0x7FFF0000)]
filter.append(struct.pack("HBBI", 6, 0, 0, 0x80000000))
code = ctypes.create_string_buffer(b"".join(filter))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(filter), ctypes.addressof(code)))
def confine():
    assert taken(b"prctl")(38, 1, 0, 0, 0) == 0
    assert taken(b"prctl")(22, 2, program, 0, 0) == 0
def taken(name):
    lookup = getattr(process, how)
    lookup.restype, lookup.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_void_p, ctypes.c_long, ctypes.c_long)(
        lookup(libc._handle, name, b"GLIBC_2.2.5"))
"""

MADVISE, READLINKAT, STATX = 28, 267, 332  # system calls of x86-64

# Starts a program in which the kernel refuses a system call (EPERM).
WITHOUT = """
import ctypes, os, struct, sys
filter = [(0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in filter))
libc = ctypes.CDLL("libc.so.6")
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(filter), ctypes.addressof(code))), 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""


class Outside(harness.Case):
    def setUp(self):
        super().setUp()
        self.files = [os.path.join(self.folder.data, name) for name in "ab"]
        for path, size in zip(self.files, SIZES):
            with open(path, "wb") as f:
                f.write(b"x" * size)

    def reads(self, traced):
        """The number of reads of each file, by name."""
        rows = traced.sql("SELECT path, count(*) AS n FROM events WHERE class = 'read' AND scope = 'data' GROUP BY path")
        return {row["path"]: int(row["n"]) for row in rows}

    def run_it(self, text, *, options=(), words=(), **reads):
        """Runs a program in Python, which reads A and B so often."""
        traced = self.headrace([harness.PYTHON, "-S", "-c", PRELUDE + text, *self.files, *words], options=("--include", self.folder.data, *options))
        found = self.reads(traced)
        self.assertEqual([found.get(path, 0) for path in self.files], [reads.get(name, 0) for name in "ab"])
        return traced

    def lost(self, traced):
        return {row["reason"]: int(row["n"]) for row in traced.sql("SELECT reason, sum(count) AS n FROM losses GROUP BY reason")}


class Handles(Outside):
    """Functions of libc that a program takes by a handle."""

    def test_reads(self):
        self.run_it("""
for lib, path in (libc, A), (process, B):
    fd = lib.open(path.encode(), 0)
    for _ in range(50):
        assert lib.pread(fd, buffer, ctypes.c_size_t(100), ctypes.c_long(0)) == 100
    lib.close(fd)
""", a=50, b=50)

    def test_a_descriptor_that_changes_hands(self):
        self.run_it("""
a = os.open(A, os.O_RDONLY); read(a)
libc.close(a)
b = libc.open(B.encode(), 0)
assert a == b
read(b, 20)
""", a=1, b=20)

    def test_programs_that_confine_themselves(self):
        for how in "dlsym", "dlvsym":
            for attached in True, False:
                traced = self.headrace([harness.PYTHON, "-S", "-c", PRELUDE + CONFINED + f"""
how = {how!r}
if {attached}:
    read(os.open(A, os.O_RDONLY))
pid = os.fork()
if pid == 0:
    confine()
    for path in A, B:
        fd = os.open(path, os.O_RDONLY)
        read(fd, 10)
        os.close(fd)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
""", *self.files], options=("--include", self.folder.data))
                counted = sum(self.reads(traced).values())
                lost = traced.value("SELECT coalesce(sum(count), 0) AS n FROM losses WHERE op IN ('pread', 'pread64')")
                self.assertEqual(counted + lost, 20 + attached, (how, attached))


    def test_calls_that_fail(self):
        """A descriptor stays in the table if a call that would replace or close it fails."""
        self.run_it("""
a = os.open(A, os.O_RDONLY)
assert libc.dup2(a + 100, a) == -1
read(a, 20)
assert libc.close_range(3, a, 0x80) == -1
read(a, 20)
""", a=40)

    def test_files_that_libc_opens_in_a_child(self):
        """posix_spawn opens them without a wrapper; the new program reads them."""
        traced = self.run_it("""
pid = os.posix_spawn("/usr/bin/head", ["head", "-c", "50"], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 0, A, os.O_RDONLY, 0)])
assert os.waitpid(pid, 0)[1] == 0
""", a=1)
        self.assertEqual(traced.sql("SELECT op FROM events WHERE class = 'open' AND scope = 'data'"), [])


class Libraries(Outside):
    """Libraries that call libc in a way of their own, or define its names for themselves."""

    def test_a_library_with_references_of_its_own(self):
        """Its calls are counted as a loss, and a descriptor that it exchanges is known nevertheless."""
        library = os.path.join(harness.PROGRAMS, "libunseen.so")
        harness.need(library, "libunseen.so")
        loads = {
            "deepbind": f"lib = ctypes.CDLL({library!r}, mode=os.RTLD_NOW | os.RTLD_DEEPBIND)",
            "scope": f"""
process.dlmopen.restype = ctypes.c_void_p
lib = ctypes.CDLL("x", handle=process.dlmopen(ctypes.c_long(-1), {library.encode()!r}, 2))""",
        }
        for how, load in loads.items():
            with self.subTest(how):
                traced = self.run_it(f"""
a = os.open(A, os.O_RDONLY); read(a)
{load}
assert lib.unseen_reads(A.encode(), 30) == 30
assert lib.unseen_exchange(a, B.encode()) == a
read(a, 20)
""", a=1, b=20)
                self.assertEqual(self.lost(traced), {"library": 1})

    def test_functions_with_names_of_libc(self):
        """Natively, the program gets the library's functions, whose arguments are others."""
        program = os.path.join(harness.PROGRAMS, "w_own_names")
        harness.need(program, "w_own_names")
        expected = self.native([program, self.files[0]]).stdout
        traced = self.headrace([program, self.files[0]])
        self.assertEqual(traced.result.stdout, expected)
        self.assertEqual(self.reads(traced), {self.files[0]: 10})
        self.assertEqual(traced.sql("SELECT DISTINCT op FROM events WHERE op IN ('access', 'remove', 'link', 'lockf', 'sync')"), [])


class Tables(Outside):
    """Descriptors and working folders of one thread, or of two processes."""

    def test_descriptors_of_a_thread(self):
        self.run_it("""
begin, opened = threading.Barrier(2), threading.Barrier(2)
numbers = []
def work(path, times):
    assert process.unshare(0x400) == 0
    begin.wait()
    fd = os.open(path, os.O_RDONLY)
    numbers.append(fd)
    opened.wait()
    read(fd, times)
threads = [threading.Thread(target=work, args=args) for args in ((A, 1000), (B, 10))]
for t in threads: t.start()
for t in threads: t.join()
assert numbers[0] == numbers[1]
""", a=1000, b=10)

    def test_working_folders_of_a_thread(self):
        inner = [os.path.join(self.folder.data, name, "f") for name in ("one", "two")]
        for path in inner:
            os.mkdir(os.path.dirname(path))
            os.link(self.files[0], path)
        self.files = inner
        self.run_it("""
moved = threading.Barrier(2)
def work(path, times):
    assert process.unshare(0x200) == 0
    os.chdir(os.path.dirname(path))
    moved.wait()
    for _ in range(times):
        fd = os.open("f", os.O_RDONLY)
        read(fd)
        os.close(fd)
threads = [threading.Thread(target=work, args=args) for args in ((A, 100), (B, 10))]
for t in threads: t.start()
for t in threads: t.join()
""", a=100, b=10)

    def test_descriptors_of_two_processes(self):
        self.run_it("""
a = os.open(A, os.O_RDONLY); read(a)
pid = process.syscall(56, 0x400 | signal.SIGCHLD, 0, 0, 0, 0)  # clone on x86-64
if pid == 0:
    os.close(a)
    assert os.open(B, os.O_RDONLY) == a
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
read(a, 20)
""", a=1, b=20)


class Names(Outside):
    def test_names_of_descriptors(self):
        traced = self.headrace(["/bin/sh", "-c", 'exec "$0" "$@" < "$4"', harness.PYTHON, "-S", "-c", PRELUDE + """
fd, folder = os.open(A, os.O_RDONLY), os.open(os.path.dirname(A), os.O_RDONLY)
own = f"/proc/{os.getpid()}"
for name in ("/dev/stdin", f"/dev/fd/{fd}", f"/proc/self/fd/{fd}", f"{own}/fd/{fd}", f"{own}/task/{os.getpid()}/fd/{fd}",
             f"/proc/thread-self/fd/{fd}", f"/proc/self/fd/{folder}/a", f"/proc/self/root{A}"):
    read(os.open(name, os.O_RDONLY), 10)
memory = os.memfd_create("blob"); os.write(memory, b"x" * 100)
read(os.open(f"/proc/self/fd/{memory}", os.O_RDONLY), 10)
""", *self.files])
        found = self.reads(traced)
        self.assertEqual(found[self.files[0]], 80)
        self.assertEqual(found["memfd:blob"], 10)

    def test_folders_that_are_deeper_than_paths_may_be(self):
        """The operations are there, with the end of the path."""
        traced = self.headrace([harness.PYTHON, "-S", "-c", PRELUDE + """
os.chdir(os.path.dirname(A))
for _ in range(30):
    os.mkdir("d" * 200); os.chdir("d" * 200)
    with open("f", "wb") as f: f.write(b"x" * 100)
    read(os.open("f", os.O_RDONLY), 10)
folder = os.open(".", os.O_RDONLY)
read(os.open("f", os.O_RDONLY, dir_fd=folder), 10)
""", *self.files])
        found = self.reads(traced)
        self.assertEqual(sum(found.values()), 310)
        self.assertGreaterEqual(found["(unknown folder)/f"], 100)
        subprocess.run(["rm", "-rf", os.path.join(self.folder.data, "d" * 200)], check=True)


class Memory(Outside):
    def test_a_limit_of_data(self):
        """ulimit -d: the tables of the shim take a small part of it."""
        program = os.path.join(harness.PROGRAMS, "w_own_names")
        harness.need(program, "w_own_names")
        for limit in 2000, 4000, 17000, 20000:
            traced = self.headrace(["/bin/sh", "-c", f'ulimit -d {limit}; exec "$0" "$1"', program, self.files[0]])
            self.assertEqual(self.reads(traced), {self.files[0]: 10}, limit)

    def test_one_free_descriptor(self):
        """headraced's answer has two, so the process gets no session, but its hello brings its counts."""
        traced = self.run_it("""
import resource
a = os.open("/dev/null", os.O_RDONLY)
os.close(a)
resource.setrlimit(resource.RLIMIT_NOFILE, (a + 2, a + 2))
fd = os.open(A, os.O_RDONLY); assert fd == a
read(fd, 100)
""")
        self.assertEqual(self.lost(traced), {"detached": 101, "unattached": 1})

    def without(self, number, *argv):
        return self.headrace([harness.PYTHON, "-S", "-c", WITHOUT, str(number), *argv], HEADRACE_SECCOMP="allow")

    def test_without_madvise(self):
        """The library cannot work."""
        program = os.path.join(harness.PROGRAMS, "w_own_names")
        harness.need(program, "w_own_names")
        traced = self.without(MADVISE, program, self.files[0])
        self.assertEqual(self.lost(traced), {"unable": 1})
        self.assertEqual(traced.value("SELECT exe FROM processes JOIN losses USING (job, node, proc)"), program)

    def test_without_statx_and_proc(self):
        """Also a descriptor that the program inherits."""
        program = os.path.join(harness.PROGRAMS, "w_own_names")
        harness.need(program, "w_own_names")
        for number, name in (STATX, self.files[1]), (READLINKAT, "(unknown folder)"):
            traced = self.without(number, "/bin/sh", "-c", '"$0" "$1"; exec head -c 50 < "$2"', program, *self.files)
            self.assertEqual(self.reads(traced), {self.files[0]: 10, name: 1})
            self.assertEqual(self.lost(traced), {})


if __name__ == "__main__":
    harness.main()
