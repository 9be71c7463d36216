#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Functions of the project as ranges (HEADRACE_FUNCTIONS): which ones, how often, and that the program does not see it.

The witness is a counter in the program, which each function increments, or cProfile in a second run.
"""

import collections
import os
import subprocess

import harness
from harness import FETCH, INPUT_WAIT, PYTHON, STARTUP
from versions import PYTHONS, Versions, version


class Functions(Versions):
    def run_one(self, python, *command, globs="*", folder=None, **more):
        return self.run_both(python, *command, option={"HEADRACE_FUNCTIONS": globs, "HEADRACE_FUNCTIONS_FOLDER": folder or self.dir}, **more)

    @staticmethod
    def counts(told):
        return collections.Counter(f["name"] for f in told.functions) if told else collections.Counter()

    def check(self, text, **more):
        for want, told in self.each(text, **more):
            self.assertEqual(dict(self.counts(told)), want)
            self.assertEqual(told.open, [])
            self.assertEqual({(f["domain"], f["category"], f["kind"]) for f in told.functions}, {("python", "function", harness.RANGE)})
            self.nest(told)

    def nest(self, told):
        """The functions of a thread are nested: none ends after one that began before it and ended after its begin."""
        threads = collections.defaultdict(list)
        for f in told.functions:
            threads[f["pid"], f["tid"]].append((f["ns"], -f["end_ns"]))
        for spans in threads.values():
            ends = []
            for begin, end in sorted(spans):
                while ends and ends[-1] <= begin:
                    ends.pop()
                self.assertTrue(not ends or -end <= ends[-1], (begin, end, ends))
                ends.append(-end)

    def test_recursion_deeper_than_the_open_ranges_of_a_thread(self):
        self.check("""
            import sys
            N = 0
            def down(n):
                global N
                N += 1
                if n:
                    up(n - 1)
            def up(n):
                if n:
                    down(n - 1)
                    down(0)
            down(300)
            try:
                def forever():
                    global N
                    N += 1
                    forever()
                DOWN, N = N, 0
                forever()
            except RecursionError:
                pass
            print({"train.down": DOWN, "train.up": 150, "train.forever": N})
        """)

    def test_generators_and_coroutines(self):
        """A range lasts from a resume to the next yield."""
        self.check("""
            import asyncio
            def numbers(n):
                try:
                    for i in range(n):
                        yield i              # n + 1 ranges
                finally:
                    closed()
            def closed(): pass
            def outer():
                yield from numbers(2)        # 3 ranges, and 3 of numbers
            def left():
                for i in numbers(5):         # 2 ranges, and one for close()
                    if i == 1:
                        break
            def thrown():
                it = numbers(3)
                next(it)
                try:
                    it.throw(KeyError)
                except KeyError:
                    pass
            async def ticks():
                for i in range(2):
                    await asyncio.sleep(0)
                    yield i
            async def work():
                async for _ in ticks():
                    pass
            class Context:
                async def __aenter__(self): return self
                async def __aexit__(self, *_): return False
            async def main():
                async with Context():
                    await asyncio.gather(work(), work())
            list(numbers(3)); list(outer()); left(); thrown()
            asyncio.run(main())
            # work() and ticks(): each sleep suspends both; ticks() also ends once, and yields twice.
            print({"train.numbers": 4 + 3 + 3 + 2, "train.outer": 3, "train.left": 1, "train.thrown": 1, "train.closed": 4,
                   "train.work": 2 * 3, "train.ticks": 2 * 5, "train.main": 2, "train.Context.__aenter__": 1,
                   "train.Context.__aexit__": 1})
        """)

    def test_exceptions(self):
        self.check("""
            import contextlib
            N = 0
            class Fails:
                def __init__(self): raise ValueError
                @contextlib.contextmanager
                def held(self=None):
                    global N
                    N += 1
                    yield
            def catches():
                try:
                    Fails()
                except ValueError:
                    return fine()
            def fine(): pass
            def passes():
                with Fails.held():
                    catches()
                    raise KeyError
            for _ in range(3):
                try:
                    passes()
                except KeyError:
                    pass
            print({"train.Fails.__init__": 3, "train.Fails.held": 2 * N, "train.catches": 3, "train.fine": 3, "train.passes": 3})
        """)

    def test_threads(self):
        self.check("""
            import threading
            from concurrent.futures import ThreadPoolExecutor
            class Worker(threading.Thread):
                def run(self):
                    for _ in range(50): work()
            def work(): return leaf()
            def leaf(): pass
            workers = [Worker() for _ in range(4)]
            for w in workers: w.start()
            for w in workers: w.join()
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda _: work(), range(10)))
            print({"train.Worker.run": 4, "train.work": 210, "train.leaf": 210, "train.<lambda>": 10})
        """)

    WORKERS = """
        import multiprocessing, os, sys
        def twice(n): return half(n) + half(n)
        def half(n): return n
        def task(n):
            for i in range(n):
                twice(i)
            return os.getpid()
        def main():
            context = multiprocessing.get_context(METHOD)
            with context.Pool(2) as pool:
                pool.map(task, [10, 20, 30], 1)
                pool.close()
                pool.join()
        if __name__ == "__main__":
            main()
            print({"train.twice": 60, "train.half": 120, "train.task": 3, "train.main": 1})
    """

    def test_forked_workers(self):
        """Functions that are open at the fork are not ended by the child."""
        self.check(self.WORKERS.replace("METHOD", "'fork'"))

    def test_spawned_workers(self):
        self.check(self.WORKERS.replace("METHOD", "'spawn'"))

    def test_a_child_that_returns_from_the_fork(self):
        for want, told in self.each("""
            import os
            def deep(n):
                if n:
                    return deep(n - 1)
                pid = os.fork()
                leaf()
                return pid
            def leaf(): pass
            pid = deep(40)
            leaf()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
            print({"train.deep": 41, "train.leaf": 4})
        """):
            self.assertEqual(dict(self.counts(told)), want)
            self.assertEqual(told.open, [])

    def test_which_code_and_which_names(self):
        self.file("pkg/__init__.py", "from .inner import Outer\n")
        self.file("pkg/inner.py", """
            import functools
            def decorate(function):
                @functools.wraps(function)
                def wrapper(*args):
                    return function(*args)
                return wrapper
            class Outer:
                class Inner:
                    @staticmethod
                    def s(): return [i for i in (lambda: (1, 2))()]
                    @property
                    def p(self): return 1
                    @decorate
                    def d(self): return sum(x for x in (1, 2))
        """)
        self.file("pkg/__main__.py", "from pkg import Outer\ndef run():\n    Outer.Inner.s(); Outer.Inner().p; Outer.Inner().d()\nrun()\n")
        self.file(".venv/lib/python3.9/site-packages/other.py", "def foreign(): pass\n")
        main = self.file("train.py", """
            import json, sys
            sys.path.append(".venv/lib/python3.9/site-packages")
            import other, pkg.__main__
            other.foreign()
            json.dumps({"a": [1]}, indent=1)
            exec("def text(): pass\\ntext()")
            def last(): pass
            last()
        """)
        inner = {"pkg.inner.decorate": 1, "pkg.inner.decorate.<locals>.wrapper": 1, "pkg.inner.Outer.Inner.s": 1,
                 "pkg.inner.Outer.Inner.s.<locals>.<lambda>": 1, "pkg.inner.Outer.Inner.p": 1, "pkg.inner.Outer.Inner.d": 1,
                 "pkg.__main__.run": 1}
        for python in PYTHONS:
            with self.subTest(python=python):
                for command in (["-m", "pkg"], ["-m", "pkg.__main__"]):
                    self.assertEqual(dict(self.counts(self.run_one(python, *command)[1])), inner)
                self.assertEqual(dict(self.counts(self.run_one(python, main)[1])), dict(inner, **{"train.last": 1}))
                self.assertEqual(dict(self.counts(self.run_one(python, "train.py")[1])), dict(inner, **{"train.last": 1}))
                told = self.run_one(python, "-m", "pkg", globs="pkg.inner.Outer.*.[sp],*.run")[1]
                self.assertEqual(sorted(self.counts(told)), ["pkg.__main__.run", "pkg.inner.Outer.Inner.p", "pkg.inner.Outer.Inner.s"])

    def test_a_script_outside_of_the_working_folder(self):
        self.file("elsewhere/helper.py", "def help(): pass\n")
        main = self.file("elsewhere/train.py", "import helper\ndef f(): helper.help()\nf()\n")
        for python in PYTHONS:
            told = self.run_one(python, main, folder="/nowhere", cwd="/")[1]
            self.assertEqual(dict(self.counts(told)), {"train.f": 1, "helper.help": 1}, python)

    def test_a_profiler_of_the_program(self):
        """cProfile has the counts that it has without headrace. Before Python 3.12, it takes the hook; a mark has this."""
        for (want, monitoring), told in self.each("""
            import cProfile, pstats, sys
            def before(): inner()
            def inner(): pass
            def profiled():
                profile = cProfile.Profile()
                profile.enable()
                for _ in range(5): inner()
                profile.disable()
                counts = {k[2]: v[1] for k, v in pstats.Stats(profile).stats.items() if k[0] == __file__}
                assert counts == {"inner": 5}, counts
                inner()
            before()
            profiled()
            inner()
            print(({"train.before": 1, "train.inner": 8, "train.profiled": 1}, sys.version_info >= (3, 12)))
        """):
            if monitoring:
                self.assertEqual(dict(self.counts(told)), want)
                self.assertEqual(self.marks(told, "functions"), [])
            else:
                self.assertEqual(dict(self.counts(told)), {"train.before": 1, "train.inner": 1, "train.profiled": 1})
                self.assertEqual(self.marks(told, "functions"), [{"recorded": False, "reason": "another profiler"}])
            self.assertEqual(told.open, [])

    def test_a_profile_function_that_is_put_back(self):
        for want, told in self.each("""
            import sys
            def f(): pass
            def seen(*_): pass
            old = sys.getprofile()
            sys.setprofile(seen)
            f()
            sys.setprofile(old)
            f()
            print({"train.f": 1 if sys.version_info < (3, 12) else 2})
        """):
            counts = self.counts(told)
            counts.pop("train.seen", None)
            self.assertEqual(dict(counts), want)

    def test_other_tools_of_sys_monitoring(self):
        """They have taken both numbers before the start-up module runs, which this program does itself."""
        self.file("start.py", f"""
            import sys
            for tool in (3, 4):
                sys.monitoring.use_tool_id(tool, "other")
            __file__ = "{STARTUP}/sitecustomize.py"
            exec(open(__file__).read())
            def f(): pass
            f()
        """)
        for python in PYTHONS:
            if version(python) >= (3, 12):
                _, told = self.run_one(python, "start.py", PYTHONPATH="", startup=False)
                self.assertEqual(self.marks(told, "functions"), [{"recorded": False, "reason": "other tools use sys.monitoring"}])
                self.assertEqual(told.functions, [])

    def test_without_the_module_in_c(self):
        self.file("train.py", "def f(): pass\nf()\n")
        _, told = self.run_one(PYTHON, "train.py", FAKE_CTYPES="1")
        self.assertEqual(told.functions, [])
        self.assertEqual(self.marks(told, "functions"), [{"recorded": False, "reason": "_headrace_fast cannot be loaded"}])

    def test_what_is_imported(self):
        """Nothing when it is off. Otherwise only headrace, because the program may have modules with the names of others."""
        program = "import sys; print(*sorted(sys.modules))"
        for python in PYTHONS:
            modules = [set(subprocess.run([python, "-c", program], env=self.environment(**more), capture_output=True, text=True,
                                          check=True).stdout.split()) for more in ({}, {"HEADRACE_FUNCTIONS": "*"})]
            self.assertNotIn("_headrace", modules[0])
            self.assertEqual({name for name in modules[1] - modules[0] if not name.startswith("_headrace")}, set(), python)

    def test_functions_that_are_open_when_the_process_dies(self):
        self.file("train.py", """
            import os, sys
            def main(): inner()
            def inner():
                sys.stdout.flush()
                os._exit(0)
            main()
        """)
        for python in PYTHONS:
            _, told = self.run_one(python, "train.py")
            self.assertEqual([f["name"] for f in told.open], ["train.main", "train.inner"])

    def test_ranges_of_the_program_that_cross_those_of_functions(self):
        """A function ends its own range, and headrace.end() that of headrace.begin()."""
        for _, told in self.each("""
            import headrace
            def begin(): headrace.begin("phase")
            def end(): headrace.end()
            begin()
            end()
            print({})
        """):
            self.assertEqual(dict(self.counts(told)), {"train.begin": 1, "train.end": 1})
            self.assertEqual([r["name"] for r in told.regions], ["phase"])
            self.assertGreater(told.regions[0]["end_ns"], told.functions[1]["ns"])

    @harness.only_all
    def test_workers_of_a_data_loader(self):
        harness.need("torch")
        for method in ("fork", "spawn"):
            path = self.file("train.py", f"""
                import torch
                from torch.utils.data import DataLoader, Dataset
                class Data(Dataset):
                    def __len__(self): return 12
                    def __getitem__(self, i): return convert(i)
                def convert(i): return torch.tensor(float(i))
                def main():
                    for batch in DataLoader(Data(), 3, num_workers=2, multiprocessing_context="{method}"):
                        print(batch)
                if __name__ == "__main__":
                    main()
            """)
            # On a slow machine, Python warns of semaphores of workers that end while they start.
            _, told = self.run_one(PYTHON, path, PYTHONWARNINGS="ignore::UserWarning")
            counts = self.counts(told)
            counts.pop("train.Data.__len__")
            self.assertEqual(dict(counts), {"train.Data.__getitem__": 12, "train.convert": 12, "train.main": 1})
            self.assertEqual(len({f["pid"] for f in told.functions if f["name"] == "train.convert"}), 2)
            self.assertEqual((len(told.of(FETCH)), len(told.of(INPUT_WAIT)), told.open), (4, 5, []))
            for fetch in told.of(FETCH):
                inside = [f for f in told.functions if f["name"] == "train.convert" and f["pid"] == fetch["pid"]
                          and fetch["ns"] <= f["ns"] and f["end_ns"] <= fetch["end_ns"]]
                self.assertEqual(len(inside), 3)

    def test_calls_equal_those_of_cprofile(self):
        """Two modules of Python's library as the project: their copies are below its folder."""
        library = os.path.join(self.dir, "library")
        os.makedirs(library)
        for python in PYTHONS:
            with self.subTest(python=python):
                for name in ("textwrap", "tokenize", "token"):
                    source = subprocess.run([python, "-c", f"import {name}; print({name}.__file__)"], capture_output=True, text=True,
                                            check=True).stdout.strip()
                    with open(source, encoding="utf-8") as text:
                        self.file(f"library/{name}.py", text.read())
                self.file("library/train.py", """
                    import io, os, sys, textwrap, tokenize
                    def main():
                        text = open("textwrap.py").read()
                        print(len(textwrap.fill(text, 40)), len(list(tokenize.generate_tokens(io.StringIO(text).readline))))
                    if __name__ == "__main__":
                        main()
                """)
                self.file("library/profile_it.py", """
                    import cProfile, collections, io, os, pstats, sys
                    import train
                    profile = cProfile.Profile()
                    profile.runcall(train.main)
                    counts = collections.Counter()
                    for (file, line, name), (_, total, *_) in pstats.Stats(profile).stats.items():
                        if os.path.dirname(file) == os.getcwd() and (name[0] != "<" or name == "<lambda>"):
                            counts[name] += total
                    print(dict(counts))
                """)
                out = subprocess.run([python, "profile_it.py"], env=self.environment(startup=False, fake=False), cwd=library,
                                     capture_output=True, text=True, check=True).stdout
                _, told = self.run_one(python, "train.py", cwd=library)
                counts = collections.Counter(f["name"].split(".")[-1] for f in told.functions if f["ns"] >= self.main_ns(told))
                self.assertEqual(dict(counts), eval(out.splitlines()[-1]))

    @staticmethod
    def main_ns(told):
        return next(f["ns"] for f in told.functions if f["name"] == "train.main")


if __name__ == "__main__":
    harness.main()
