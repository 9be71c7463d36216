#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The package headrace: what a program says arrives, and nothing happens where nobody listens."""

import os
import shutil

import harness
from harness import CHECKPOINT, INPUT_WAIT, MARK, MODULES, NONE, RANGE, Case


class Api(Case):
    def regions(self, text, **env):
        self.run_python(text, env=self.environment(**env))
        told = self.told()
        return told, [(r["name"], r["domain"], r["category"], r["kind"], r["args"]) for r in told.regions]

    def test_ranges(self):
        told, regions = self.regions("""
            import headrace
            headrace.begin("outer")
            headrace.begin("inner", domain="d", category="c", kind=headrace.CHECKPOINT)
            headrace.end({"a": 1})
            headrace.end()
            with headrace.region("block", domain="d") as r:
                r.args = {"b": [1, "x"]}
            with headrace.region("text", args='{"t":1}'):
                pass
            try:
                with headrace.region("fails"):
                    1 / 0
            except ZeroDivisionError:
                pass
        """)
        self.assertEqual(regions, [
            ("inner", "d", "c", CHECKPOINT, {"a": 1}),
            ("outer", None, None, RANGE, None),
            ("block", "d", None, RANGE, {"b": [1, "x"]}),
            ("text", None, None, RANGE, {"t": 1}),
            ("fails", None, None, RANGE, None),
        ])
        self.assertEqual([c["depth"] for c in told.calls if c["call"] == "begin"], [1, 2, 1, 1, 1])

    def test_decorated(self):
        told, regions = self.regions("""
            import asyncio, headrace, inspect, pickle

            @headrace.region("f", args={"k": 1})
            def f(a, b=2):
                "doc"
                return a + b

            @headrace.region("g")
            def g(n):
                got = yield n
                return got

            @headrace.region("c")
            async def c(n):
                await asyncio.sleep(0)
                return n

            @headrace.region("m")
            class M:
                def __init__(self, n=1):
                    self.n = n

                @headrace.region("s")
                @staticmethod
                def s(n):
                    return n

                @headrace.region("k")
                @classmethod
                def k(cls):
                    return cls.__name__

                @headrace.region("nothing to call")
                @property
                def p(self):
                    return self.n

            class N(M):
                pass

            assert (f(1), f.__doc__, str(inspect.signature(f))) == (3, "doc", "(a, b=2)")
            assert pickle.loads(pickle.dumps(f)) is f and inspect.isgeneratorfunction(g) and inspect.iscoroutinefunction(c)
            one, two = g(1), g(2)
            next(one), next(two)
            try:
                one.send(5)
            except StopIteration as stop:
                assert stop.value == 5
            del two

            async def both():
                return await asyncio.gather(c(1), c(2))
            assert asyncio.run(both()) == [1, 2]
            assert isinstance(M(), M) and N(4).p == 4 and (M.s(2), N.k()) == (2, "N")
            assert inspect.getfullargspec(f) == inspect.getfullargspec(f.__wrapped__) and f.__defaults__ == (2,)
            inner = inspect.getfullargspec(g.__wrapped__)
            assert inspect.getfullargspec(headrace.region("w")(g)).args == inspect.getfullargspec(g).args == inner.args
        """)
        self.assertEqual(sorted(r[0] for r in regions), ["c", "c", "f", "g", "g", "k", "m", "m", "s"])
        self.assertEqual(len([c for c in told.calls if c["call"] == "start"]), 4)
        self.assertEqual([r[4] for r in regions if r[0] == "f"], [{"k": 1}])

    def test_spans_of_other_threads(self):
        told, _ = self.regions("""
            import headrace, threading
            spans = [headrace.start("span", domain="d") for _ in range(3)]
            thread = threading.Thread(target=lambda: [headrace.finish(s, {"s": s}) for s in spans])
            thread.start()
            thread.join()
        """)
        self.assertEqual([r["args"]["s"] for r in told.of(name="span")], [r["span"] for r in told.of(name="span")])
        self.assertEqual(len(set(c["tid"] for c in told.calls)), 2)

    def test_marks_steps_epochs(self):
        told, _ = self.regions("""
            import headrace
            headrace.mark("here", {"x": 1.5}, domain="d")
            headrace.mark("there")
            headrace.epoch(0)
            for i in (0, 1, 2**40, None):
                headrace.step(i)
            headrace.epoch(None)
            assert headrace.recording() is True
        """)
        self.assertEqual([(c["name"], c["kind"], c["args"]) for c in told.calls if c["call"] == "mark"],
                         [("here", MARK, {"x": 1.5}), ("there", MARK, None)])
        self.assertEqual([c["number"] for c in told.calls if c["call"] == "step"], [0, 1, 2**40, NONE])
        self.assertEqual(told.numbers("epoch"), [0, None])

    def test_names_that_are_odd_or_very_many(self):
        told, _ = self.regions("""
            import headrace
            from _headrace import api
            assert api.name("x") is api.name("x") and api.name("x") is not api.name("x", "d")
            for name in ("ü漢", "a\\udcffb", 7, "cut\\0here"):
                with headrace.region(name):
                    pass
            for i in range(api.NAMES_MAX + 10):
                api.name("n%d" % i)
            with headrace.region("one more"):
                pass
            headrace.begin("x")
            headrace.end({1: object()})
            headrace.begin("x")
            headrace.end({(1, 2): 3})
        """)
        names = [r["name"] for r in told.regions]
        self.assertEqual(names, ["ü漢", "a?b", "7", "cut", "(further names)", "x", "x"])
        self.assertIn("object", told.regions[-2]["args"]["1"])
        self.assertEqual(told.regions[-1]["args"], None)  # no JSON

    def test_what_a_thread_has_spent(self):
        told, _ = self.regions("""
            import time
            from _headrace import api
            first = time.thread_time_ns()
            before = api.begin_spent(api.name("x"))
            until = time.thread_time_ns() + 20000000
            while time.thread_time_ns() < until:
                pass
            time.sleep(0.05)
            api.end_spent(b'{"loader":0,"worker":1', before)
            # Another thread's time is not this one's.
            import threading
            mine = time.thread_time_ns()
            before = api.begin_spent(api.name("y"))
            def spend():
                until = time.thread_time_ns() + 50000000
                while time.thread_time_ns() < until:
                    pass
            other = threading.Thread(target=spend)
            other.start()
            other.join()
            api.end_spent(b'{"loader":0', before)
            print(mine - first, time.thread_time_ns() - mine, file=open("spent", "w"))
        """)
        x, y = told.regions
        with open(f"{self.dir}/spent", encoding="ascii") as f:
            spent_x, spent_y = map(int, f.read().split())
        self.assertEqual({k: x["args"][k] for k in ("loader", "worker")}, {"loader": 0, "worker": 1})
        self.assertTrue(20e6 <= x["args"]["cpu_ns"] <= spent_x, x)
        self.assertLessEqual(y["args"]["cpu_ns"], spent_y)
        for region in (x, y):  # what the fake library adds between two calls
            self.assertEqual([region["args"][group] for group in ("sleep_ns", "network_ns", "lock_ns")], [1000000, 2000000, 3000000])

    def test_waits_that_the_program_marks(self):
        """They have their own args, whatever these are, and what the thread spent, if one thread has entered and left the wait."""
        calls, regions = self.regions("""
            import headrace, threading, time
            for args in (None, {}, {"a": [1]}, '{"a":1} ', "[1, 2]", "{}"):
                with headrace.region("w", kind=headrace.INPUT_WAIT, args=args):
                    time.sleep(0.01)
            @headrace.region("f", kind=headrace.INPUT_WAIT, args={"b": 2})
            def f(x):
                return x + 1
            assert f(1) == 2
            shared = headrace.region("shared", kind=headrace.INPUT_WAIT)
            def other():
                with shared:
                    entered.set()
                    left.wait()
            entered, left = threading.Event(), threading.Event()
            thread = threading.Thread(target=other)
            with shared:
                thread.start()
                entered.wait()
            left.set()
            thread.join()
            try:
                with headrace.region("fails", kind=headrace.INPUT_WAIT):
                    raise ValueError
            except ValueError:
                pass
            again = headrace.region("again", kind=headrace.INPUT_WAIT)
            with again, again:
                pass
        """)
        self.assertEqual((calls.open, calls.stray, {r[3] for r in regions}), ([], [], {INPUT_WAIT}))
        spent = {"cpu_ns", "storage_bytes", "sleep_ns", "network_ns", "lock_ns"}
        own = [{name: value for name, value in args.items() if name not in spent | {"before_cpu_ns", "before_ns", "others_cpu_ns", "before_core_ns", "core_wait_ns", "major_faults"}}
               for *_, args in regions]
        none = {"own": True}
        self.assertEqual(own, [none, {"args": {}}, {"a": [1]}, {"a": 1}, {"args": [1, 2]}, {"args": {}}, {"b": 2}, none, none, none, none, none])
        known = [spent <= set(args) for *_, args in regions]
        self.assertEqual([known[i] for i in (0, 2, 3, 6, 9, 10)], [True] * 6)
        self.assertEqual((known[7], known[11]), (False, False))  # another thread, or the same one, had entered it since

    def test_a_generator_of_batches(self):
        """Each request is a wait; values and exceptions reach the generator, and its end reaches the loop."""
        calls, regions = self.regions("""
            import headrace, time
            ended = []
            @headrace.region("batches", kind=headrace.INPUT_WAIT)
            def batches(n):
                try:
                    for i in range(n):
                        time.sleep(0.01)
                        try:
                            sent = yield i
                        except KeyError as error:
                            sent = str(error)
                        if sent:
                            yield sent
                    return "all"
                finally:
                    ended.append(n)
            assert list(batches(3)) == [0, 1, 2]
            requests = batches(5)
            assert next(requests) == 0 and requests.send("x") == "x" and next(requests) == 1 and requests.throw(KeyError(7)) == "7"
            requests.close()
            def of():
                return (yield from batches(1))
            outer = of()
            next(outer)
            try:
                next(outer)
            except StopIteration as end:
                assert end.value == "all"
            try:
                batches(1).throw(ValueError)
            except ValueError:
                pass
            unused = batches(9)
            assert ended == [3, 5, 1], ended
        """)
        self.assertEqual((calls.open, calls.stray, {r[3] for r in regions}), ([], [], {INPUT_WAIT}))
        self.assertEqual(len(regions), 4 + 4 + 2)

    def test_bytes_from_storage(self):
        """The kernel's own count for the thread (/proc), for a file that is not in the page cache, and again when it is."""
        out = self.run_python("""
            import os, tempfile
            from _headrace import api
            def storage():
                with open("/proc/thread-self/io") as f:
                    return int(next(line for line in f if line.startswith("read_bytes")).split()[1])
            with tempfile.NamedTemporaryFile(dir="/var/tmp") as f:
                f.write(os.urandom(1 << 20))
                f.flush()
                os.fsync(f.fileno())
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                for _ in range(2):
                    at = storage()
                    before = api.begin_spent(api.name("read"))
                    os.pread(f.fileno(), 1 << 20, 0)
                    api.end_spent(b'{"loader":0', before)
                    print(storage() - at)
        """, env=self.environment())
        counted = [int(n) for n in out.split()]
        self.assertEqual([region["args"]["storage_bytes"] for region in self.told().regions], counted)
        self.assertEqual(counted[1], 0)

    def test_ranks_of_jax_and_tensorflow(self):
        """Of stand-ins for their modules. A parameter server of TensorFlow has no rank."""
        recorded, _ = self.regions("""
            import types
            from _headrace import ranks
            class State:
                process_id, num_processes = 3, 8
                def initialize(self, address, number=None):
                    return address, number
            ranks.mark_jax(types.SimpleNamespace(State=State))
            assert State().initialize("a", number=1) == ("a", 1)
            module = types.SimpleNamespace(id_in_cluster=lambda spec, kind, number: number + (kind == "worker"), worker_count=lambda spec, kind: 5)
            ranks.mark_tensorflow(module)
            assert [module.id_in_cluster({}, kind, 0) for kind in ("ps", "chief", "worker")] == [0, 0, 1]
        """)
        self.assertEqual([call["text"] for call in recorded.calls if call["call"] == "variable"],
                         ["RANK=3", "WORLD_SIZE=8", "RANK=0", "WORLD_SIZE=5", "RANK=1", "WORLD_SIZE=5"])

    def test_the_callback_for_transformers(self):
        """Of several nodes, one process logs: the first one of all, not of each node. The package is a stand-in."""
        self.run_python("""
            import sys, types
            package = types.ModuleType("transformers")
            package.TrainerCallback = object
            sys.modules["transformers"] = package
            import headrace, headrace.transformers
            tracked, closed = [], []
            def track(*targets, **options):
                tracked.append((targets, options))
                return types.SimpleNamespace(close=lambda: closed.append(targets))
            headrace.track = track
            for of_all, of_node in ((True, True), (False, True), (False, False)):
                state = types.SimpleNamespace(is_world_process_zero=of_all, is_local_process_zero=of_node)
                callback = headrace.transformers.Callback("run", every=5)
                callback.on_train_begin(None, state, None)
                callback.on_train_end(None, state, None)
            assert tracked == [(("run",), {"every": 5}), ((), {"every": 5}), ((), {"every": 5})], tracked
            assert closed == [("run",), (), ()], closed
        """, env=self.environment())

    def test_whatever_is_passed(self):
        """As without the library, where nobody looks at it: nothing is raised, and what is no number is none."""
        program = """
            import functools, headrace, pickle, sys
            from headrace.dftracer import dft_fn

            class Odd:
                __hash__ = None
                def __str__(self):
                    raise KeyError("odd")

            class Call:
                def __call__(self):
                    return 1

            for name in (None, ["x"], Odd(), b"bytes", 1.5):
                with headrace.region(name, domain={}, category=Odd()):
                    headrace.mark(name, memoryview(b"x"), domain=Odd())
            for kind in (None, "checkpoint", -1, 2**40, 1.0, []):
                headrace.begin("kind", kind=kind)
                headrace.end(Odd())
            for span in (None, "x", -5, 2**80, 0):
                headrace.finish(span)
            for number in (2**70, -(2**70), 1.9):
                headrace.step(number)
                headrace.epoch(number)
            headrace.step(None), headrace.epoch(None)
            d = dft_fn("c")
            assert (d.log(Call())(), d.log(functools.partial(int, "3"))(), headrace.region("x")(Call())()) == (1, 3, 1)
            copied = pickle.loads(pickle.dumps(headrace.region("copied", "d", args={"a": 1})))
            with copied:
                pass
        """
        self.run_python(program, env=self.environment(startup=False, fake=False, PYTHONPATH=MODULES))
        self.run_python(program)
        told = harness.Told(self.told_at)
        self.assertEqual((told.open, {call["call"] for call in told.stray}), ([], {"finish"}))
        regions = [(r["name"], r["domain"], r["category"], r["kind"], r["args"]) for r in told.regions]
        names = ["None", "['x']", "?", "b'bytes'", "1.5", *6 * ["kind"]]
        self.assertEqual([r[0] for r in regions[:11]], names)
        self.assertEqual({r[3] for r in regions[5:11]}, {RANGE})
        self.assertEqual(told.numbers("step"), [None, None, 1, None])
        self.assertEqual(told.numbers("epoch"), [None, None, 1, None])
        self.assertEqual(regions[-1], ("copied", "d", None, RANGE, {"a": 1}))

    def test_in_what_torch_compiles(self):
        """Nothing is told, and no function of ours that torch.compile could not look into is called."""
        self.run_python("""
            import headrace
            from _headrace import api
            from headrace.dftracer import ai

            def never(*_):
                raise AssertionError
            region, made = headrace.region("made before"), headrace.region("f")(lambda: 1)
            api.compiling = lambda: True
            for name in ("begin", "end", "start", "finish", "mark", "step", "epoch", "recording", "name"):
                setattr(api, name, never)
            headrace._begin = headrace._end = headrace._name = never
            with region, headrace.region("made within"):
                headrace.begin("b"), headrace.end({"a": 1}), headrace.mark("m"), headrace.step(1), headrace.epoch(1)
            with ai.compute.forward:
                headrace.finish(headrace.start("s"))
            assert (made(), headrace.recording()) == (1, False)
        """)
        self.assertFalse(os.path.exists(self.told_at))

    def test_what_is_made_in_what_torch_compiles(self):
        _, regions = self.regions("""
            import headrace
            from _headrace import api
            answer, api.compiling = api.compiling, lambda: True
            region = headrace.region("made within", "d")
            api.compiling = answer
            with region:
                pass
        """)
        self.assertEqual(regions, [("made within", "d", None, RANGE, None)])

    def test_what_a_signals_handler_raises(self):
        """An exception between any two calls leaves no range open."""
        self.run_python("""
            import headrace, signal

            def late(*_):
                raise TimeoutError

            @headrace.region("function")
            def function():
                pass

            signal.signal(signal.SIGALRM, late)
            for _ in range(300):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 5e-4)
                    while True:
                        function()
                except TimeoutError:
                    pass
        """)
        depths = {c["depth"] for c in self.told().calls if c["call"] == "begin"}
        self.assertEqual(depths, {1})

    def test_nobody_listens(self):
        self.run_python("""
            import sys
            import headrace
            import headrace.dftracer
            assert "ctypes" not in sys.modules and not headrace.present
            f = lambda: 1
            assert headrace.region("f")(f) is f and headrace.recording() is False
            headrace.begin("x"); headrace.end({"a": 1}); headrace.step(1); headrace.epoch(None); headrace.mark("m")
            headrace.finish(headrace.start("s"))
            with headrace.region("r", kind=headrace.CHECKPOINT):
                pass
        """, env=self.environment(startup=False, fake=False, PYTHONPATH=MODULES))

    def test_what_is_not_called_right_says_so(self):
        self.run_python("""
            import headrace
            for call in (lambda: headrace.step("x"), lambda: headrace.begin(), lambda: headrace.region()):
                try:
                    call()
                except (TypeError, ValueError):
                    continue
                raise AssertionError("no exception")
        """)


class Pip(Case):
    def test_a_package_of_pip(self):
        """It has no module in C, but the start-up module has one."""
        for name in "headrace", "_headrace":
            shutil.copytree(f"{MODULES}/{name}", f"{self.dir}/site/{name}")
        for startup, found in (True, "True\n"), (False, "False\n"):
            out = self.run_python(f"""
                import sys
                sys.path.insert(0, {self.dir + "/site"!r})
                import headrace
                from _headrace import api
                assert api.__file__.startswith({self.dir!r})
                print(api.module is not None)
            """, env=self.environment(startup=startup))
            self.assertEqual(out, found)


class Ctypes(Api):
    """The same where the module of C is not there."""

    def environment(self, **more):
        for name in ("startup", "headrace", "_headrace"):
            link = os.path.join(self.dir, "links", name)
            os.makedirs(os.path.dirname(link), exist_ok=True)
            if not os.path.islink(link):
                os.symlink(os.path.join(MODULES, name), link)
        env = super().environment(**more)
        env["PYTHONPATH"] = env["PYTHONPATH"].replace(MODULES, os.path.join(self.dir, "links"))
        return env

    def test_which_is_used(self):
        text = "from _headrace import api; print(type(api.begin).__name__)"
        self.assertEqual(self.run_python(text), "CFunctionType\n")
        self.assertEqual(self.run_python(text, env=super().environment()), "builtin_function_or_method\n")


if __name__ == "__main__":
    harness.main()
