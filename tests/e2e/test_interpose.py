#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs in which other libraries replace the functions that the shim wraps: the program must see what it sees without
the shim, and each call that it makes is recorded once.

Table       every function replaced by a generated library (interposer.py), preloaded before and after the shim
Arguments   the same with odd arguments
Allocators  tcmalloc, jemalloc, mimalloc: preloaded before and after the shim, and linked
Sanitizers  programs that are compiled with one
Memory      UCX's and libfabric's hooks, which patch mmap and its siblings in place; MPICH and Open MPI with both
"""

import os
import subprocess
import sys

import harness
import interposer
from test_arguments import ROOT, check_calls
from test_arguments import Arguments as OddArguments
from test_calls import Calls

# One process that maps a file, and does its work again after MPI_Init where a library of MPI is named.
MAPS = """
import ctypes, mmap, os, sys
if len(sys.argv) > 2:
    mpi = ctypes.CDLL(sys.argv[2], mode=ctypes.RTLD_GLOBAL)
    assert mpi.MPI_Init(None, None) == 0
fd = os.open(f"{sys.argv[1]}/mapped.{os.getpid()}", os.O_RDWR | os.O_CREAT)
os.truncate(fd, 1 << 20)
for i in range(10):
    with mmap.mmap(fd, 1 << 20) as m:
        m.madvise(mmap.MADV_WILLNEED)
        m.resize(2 << 20)
        m.flush()
    os.truncate(fd, 1 << 20)
os.close(fd)
if len(sys.argv) > 2:
    mpi.MPI_Finalize()
"""
MAPS_COUNTS = {"mmap": 10, "mremap": 10, "madvise": 10, "msync": 10, "munmap": 10}


def orders(library):
    """The preload lists: the library in front of the shim, which is how `headrace run` appends it, and after it."""
    return {"before": f"{library}:{harness.LIBRARY}", "after": f"{harness.LIBRARY}:{library}"}


class Table(Calls):
    WORKLOADS = [
        ("w_kinds", []),
        ("w_fds", ["dups"]),
        ("w_fds", ["range"]),
        ("w_fds", ["inherit"]),
        ("w_paths", ["chdir"]),
        ("w_paths", ["dirfd"]),
        ("w_paths", ["tmpfile"]),
        ("w_paths", ["rename"]),
        ("w_spawn", []),
        ("w_threads", ["8", "50"]),
    ]

    def check(self, flavour, by_class=()):
        library, replaced = interposer.build(self.folder.log, flavour, check_calls().rows(), ROOT)
        self.assertGreater(replaced, 60)
        for order, preload in orders(library).items():
            for name, args in self.WORKLOADS:
                with self.subTest(order=order, workload=name, args=args):
                    self.once(preload, [self.program(name), *self.place(name, args)], order in by_class)

    def place(self, name, args):
        return [self.folder.data, *args] if name == "w_threads" else [*args, self.folder.data]

    def once(self, preload, argv, by_class):
        self.reset()
        argv = ["/usr/bin/env", f"LD_PRELOAD={preload}", *argv]
        options = ("--exclude", self.folder.log)
        traced, tally = self.arithmetic(lambda a, **env: self.headrace(a, options=options, **env), argv)
        if not by_class:
            self.assert_tally(traced, tally)
            return
        classes = traced.counts("path NOT LIKE '%/log/%'")
        for cls, count in harness.tally_by_class(tally).items():
            self.assertGreaterEqual(classes[cls].calls, count.calls, cls)
        self.assert_consistent(traced)

    def test_functions_that_make_the_system_call(self):
        self.check("raw")

    @harness.only_all
    def test_functions_that_call_a_sibling(self):
        # before the shim, what arrives there has the sibling's name
        self.check("sibling", by_class=("before",))


class Arguments(OddArguments):
    def test_all(self):
        self.build(1, 8)
        for flavour in "raw", "sibling":
            library, _ = interposer.build(self.folder.log, flavour, check_calls().rows(), ROOT)
            expected = self.outcome("alone", LD_PRELOAD=library)
            for order, preload in orders(library).items():
                nobody = f"{self.folder.path}/none"
                got = self.outcome("absent", LD_PRELOAD=preload, HEADRACE_SOCKET=nobody)
                self.compare(got, expected, f"{flavour}, {order} the shim")


class Maps(harness.Case):
    """Programs that map files."""

    def maps(self, argv, processes=1, **env):
        options = ("--include", self.folder.data)
        traced = self.headrace(argv, options=options, **env)
        rows = traced.sql(
            "SELECT op, count(*) AS n FROM events WHERE class IN ('map', 'sync')"
            f" AND starts_with(path, '{self.folder.data}/mapped') GROUP BY op"
        )
        counts = {harness.plain_op(row["op"]): int(row["n"]) for row in rows}
        self.assertEqual(counts, {op: n * processes for op, n in MAPS_COUNTS.items()})
        self.assertEqual(traced.sql("SELECT * FROM losses"), [])

    def script(self, *more):
        path = f"{self.folder.log}/maps.py"
        with open(path, "w", encoding="ascii") as out:
            out.write(MAPS)
        return [harness.PYTHON, path, self.folder.data, *more]


def library_of(*names):
    """The first of these that the loader finds: it prints an error for a preload that it cannot find."""
    for name in names:
        done = subprocess.run(["/usr/bin/true"], env={"LD_PRELOAD": name}, capture_output=True, check=False)
        if done.stderr == b"":
            return name
    raise harness.unittest.SkipTest(f"{names[0]} is not installed")


class Allocators(Maps):
    def check(self, library):
        for order, preload in orders(library).items():
            with self.subTest(order=order):
                self.maps(["/usr/bin/env", f"LD_PRELOAD={preload}", *self.script()])
        with self.subTest("as the user's own preload"):
            self.maps(self.script(), LD_PRELOAD=library)
        with self.subTest("linked"):
            program = f"{self.folder.log}/linked"
            source = "#include <stdlib.h>\nint main(void) { for (int i = 1; i < 25; i++) free(malloc(1ul << i)); return 0; }"
            subprocess.run(
                ["cc", "-O0", "-fno-builtin", "-x", "c", "-", "-o", program, "-Wl,--no-as-needed", f"-l:{library}"],
                input=source.encode(), check=True,
            )  # fmt: skip
            self.headrace([program])

    def test_tcmalloc(self):
        self.check(library_of("libtcmalloc.so.4"))

    def test_tcmalloc_minimal(self):
        self.check(library_of("libtcmalloc_minimal.so.4"))

    def test_jemalloc(self):
        self.check(library_of("libjemalloc.so.2"))

    def test_mimalloc(self):
        self.check(library_of("libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so.3"))


class Sanitizers(harness.Case):
    """Libraries that initialize themselves at the first call of one of their functions, and take functions by dlsym then."""

    def check(self, sanitizer, **env):
        path = self.folder.write("file", "x" * 100)
        program = f"{self.folder.log}/program"
        source = """#include <fcntl.h>
            #include <unistd.h>
            int main(int argc, char **argv) { char c; int fd = open(argv[argc - 1], O_RDONLY), n = 0;
            while (read(fd, &c, 1) == 1) n++; return n != 100; }"""
        command = ["cc", f"-fsanitize={sanitizer}", "-x", "c", "-", "-o", program]
        if subprocess.run(command, input=source.encode(), capture_output=True, check=False).returncode != 0:
            self.skipTest(f"cc has no -fsanitize={sanitizer}")
        traced = self.headrace([program, path], **env)
        self.assertEqual(traced.value("SELECT count(*) AS n FROM events WHERE op = 'read'"), 101)

    def test_address(self):
        self.check("address", ASAN_OPTIONS="verify_asan_link_order=0")

    def test_thread(self):
        self.check("thread")

    def test_undefined(self):
        self.check("undefined")


class Memory(Maps):
    ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def test_ucx(self):
        program = harness.need_program("ucx_info")
        for mode in "none", "reloc", "bistro":
            with self.subTest(mode=mode):
                self.headrace([program, "-v"], UCX_MEM_MMAP_HOOK_MODE=mode)

    def ranks(self, launcher, library, *options, **env):
        """Two ranks, each of which works after MPI_Init; natively first, since not every machine can."""
        command = [harness.need_program(launcher), *options, "-n", "2", *self.script(library)]
        env = {**self.ROOT_MAY, **env}
        try:
            self.native(command, **env)
        except AssertionError as failure:
            self.skipTest(f"{launcher} {' '.join(options)} fails without headrace: {failure}")
        self.maps(command, processes=2, **env)

    def test_mpich(self):
        self.ranks("mpirun.mpich", library_of("libmpich.so.12"))

    def test_open_mpi_with_libfabric(self):
        self.ranks("mpirun.openmpi", library_of("libmpi.so.40"), "--oversubscribe", "--mca", "pml", "cm", "--mca", "mtl", "ofi")

    def test_open_mpi_with_ucx(self):
        self.ranks(
            "mpirun.openmpi", library_of("libmpi.so.40"), "--oversubscribe", "--mca", "pml", "ucx",
            "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any",
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(harness.main())
