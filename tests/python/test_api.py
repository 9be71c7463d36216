#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The package headrace: what a program says arrives, and nothing happens where nobody listens."""

import os

import harness
from harness import CHECKPOINT, MARK, MODULES, NONE, RANGE, Case


class Api(Case):
    def regions(self, text):
        self.run_python(text)
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
            M()
        """)
        self.assertEqual(sorted(r[0] for r in regions), ["c", "c", "f", "g", "g", "m"])
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
            before = api.begin_spent(api.name("x"))
            until = time.thread_time_ns() + 20000000
            while time.thread_time_ns() < until:
                pass
            time.sleep(0.05)
            api.end_spent(b'{"loader":0,"worker":1', before)
            # Another thread's time is not this one's.
            import threading
            before = api.begin_spent(api.name("y"))
            def spend():
                until = time.thread_time_ns() + 50000000
                while time.thread_time_ns() < until:
                    pass
            other = threading.Thread(target=spend)
            other.start()
            other.join()
            api.end_spent(b'{"loader":0', before)
        """)
        x, y = told.regions
        self.assertEqual({k: x["args"][k] for k in ("loader", "worker")}, {"loader": 0, "worker": 1})
        self.assertTrue(20e6 <= x["args"]["cpu_ns"] <= x["end_ns"] - x["ns"] - 40e6, x)
        self.assertLess(y["args"]["cpu_ns"], 40e6)

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
