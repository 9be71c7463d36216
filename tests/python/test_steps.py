#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The rule of steps and epochs, by itself: loaders are asked and optimizers step, and what is reported is compared with the text of
_headrace/steps.py."""

import sys
import unittest
import weakref

import harness
from harness import MODULES

sys.path.insert(0, MODULES)
from _headrace import api, steps  # noqa: E402


class Steps(unittest.TestCase):
    def setUp(self):
        """What is reported: `s3`, step 3 begins; `s3@7`, it began at moment 7; `s-`, none; `sx`, it was none. `e`: epochs."""
        self.reports, self.moment = [], 0

        def reporter(what):
            return lambda n, at=0: self.reports.append(what + ("-" if n == api.NONE else str(n)) + (f"@{at}" if at else ""))

        calls = {"step": reporter("s"), "step_at": reporter("s"), "epoch_at": reporter("e"), "now": lambda: self.moment,
                 "step_undo": lambda: self.reports.append("sx")}
        for name, call in calls.items():
            self.addCleanup(setattr, api, name, getattr(api, name))
            setattr(api, name, call)
        self.thread = 1
        self.addCleanup(setattr, steps, "get_ident", steps.get_ident)
        steps.get_ident = lambda: self.thread
        steps.forked()
        steps.own_steps = steps.own_epochs = steps.framework_steps = False
        self.addCleanup(setattr, steps, "COMPILED", steps.COMPILED)
        steps.COMPILED = ("no module",)

    # What the marks of torch do.

    def loader(self):
        return steps.Loader(0)

    def iterate(self, loader):
        self.moment += 1
        return steps.Pass(loader, 0, self.moment)

    def ask(self, one, ends=False):
        self.moment += 1
        steps.ask(one)
        if ends:
            steps.failed(one)
        else:
            one.batch += 1

    def optimize(self, optimizer=None):
        if self.thread == steps.trainer:
            steps.optimized += 1
        if steps.last is not None:
            if not steps.last.leads:
                steps.found(self.thread)
        elif steps.trainer is None:
            self.moment += 1
            steps.stepped(optimizer or self, self.moment)

    def train(self, loader, batches, each=1):
        one = self.iterate(loader)
        for i in range(batches):
            self.ask(one)
            if (i + 1) % each == 0:
                self.optimize()
        self.ask(one, ends=True)

    def look(self, loader, batches):
        one = self.iterate(loader)
        for _ in range(batches):
            self.ask(one)
        self.ask(one, ends=True)

    def reported(self):
        reports, self.reports = " ".join(self.reports), []
        return reports

    def test_two_epochs(self):
        loader = self.loader()
        self.train(loader, 3)
        self.assertEqual(self.reported(), "e0@1 s0@2 s1 s2 s3 sx s- e-")
        self.train(loader, 3)
        self.assertEqual(self.reported(), "e1@6 s3 s4 s5 s6 sx s- e-")

    def in_turns(self, threads, epochs, batches):
        """Loops in threads, each with a loader of its own, one ask and one optimizer's step after the other."""
        def loop():
            loader = self.loader()
            for _ in range(epochs):
                one = self.iterate(loader)
                for _ in range(batches):
                    self.ask(one)
                    yield
                    self.optimize()
                    yield
                self.ask(one, ends=True)

        loops = {thread: loop() for thread in range(1, threads + 1)}
        while loops:
            for self.thread in list(loops):
                if next(loops[self.thread], self) is self:
                    del loops[self.thread]

    def test_loops_in_threads(self):
        self.in_turns(1, 3, 4)
        alone = [what.split("@")[0] for what in self.reported().split()]
        steps.forked()
        self.in_turns(5, 3, 4)
        self.assertEqual([what.split("@")[0] for what in self.reported().split()], alone)

    def test_a_loop_in_another_thread_than_the_last_one(self):
        loader, look = self.loader(), self.loader()
        for self.thread in (1, 2):
            self.train(loader, 2)
            self.look(look, 1)
        self.assertEqual(self.reported(), "e0@1 s0@2 s1 s2 sx s- e- e1@8 s2 s3 s4 sx s- e-")

    def test_batches_that_another_thread_asks_for(self):
        one = self.iterate(self.loader())
        for _ in range(3):
            self.thread = 2
            self.ask(one)
            self.thread = 1
            self.optimize()
        self.thread = 2
        self.ask(one, ends=True)
        self.assertEqual(self.reported(), "e0@1 s0@2 s1 s2 s3 sx s- e-")

    def test_a_loader_for_each_epoch(self):
        self.train(self.loader(), 2)
        self.assertEqual(self.reported(), "e0@1 s0@2 s1 s2 sx s- e-")
        self.train(self.loader(), 2)
        self.assertEqual(self.reported(), "e1@5 s2@6 s3 s4 sx s- e-")

    def test_a_loader_that_is_only_looked_at(self):
        train, look = self.loader(), self.loader()
        self.look(look, 3)
        self.assertEqual(self.reported(), "")
        for _ in range(2):
            self.train(train, 2)
            self.look(look, 3)
        self.assertEqual(self.reported(), "e0@6 s0@7 s1 s2 sx s- e- e1@15 s2 s3 s4 sx s- e-")

    def test_a_look_in_the_middle_of_an_epoch(self):
        loader, look = self.loader(), self.loader()
        one = self.iterate(loader)
        for i in range(4):
            self.ask(one)
            self.optimize()
            if i % 2:
                self.look(look, 2)
        self.ask(one, ends=True)
        self.assertEqual(self.reported(), "e0@1 s0@2 s1 s2 s3 s4 sx s- e-")

    def test_a_step_of_several_batches(self):
        loader = self.loader()
        self.train(loader, 6, each=3)
        self.assertEqual(self.reported(), "e0@1 s0@2 s1@3 s2@4 s3 s4 s5 s6 sx s- e-")  # known when the third batch has come
        self.train(loader, 6, each=3)
        self.assertEqual(self.reported(), "e1@9 s6 s7 s8 s9 s10 s11 s12 sx s- e-")

    def test_more_batches_than_are_remembered(self):
        loader, n = self.loader(), steps.ASKS_MAX + 3
        self.train(loader, n, each=n)
        reported = self.reported().split()
        self.assertEqual(reported[:3], ["e0@1", "s0@2", "s1@3"])
        self.assertEqual(reported[-6:], [f"s{n - 5}@{n - 3}", f"s{n - 1}@{n + 1}", f"s{n}", "sx", "s-", "e-"])

    def test_several_optimizers_for_a_batch(self):
        one = self.iterate(self.loader())
        for _ in range(2):
            self.ask(one)
            self.optimize()
            self.optimize()
        self.ask(one, ends=True)
        self.assertEqual(self.reported(), "e0@1 s0@2 s1 s2 sx s- e-")

    def test_two_loaders_for_one_step(self):
        a, b = self.iterate(self.loader()), self.iterate(self.loader())
        for _ in range(3):
            self.ask(a)
            self.ask(b)
            self.optimize()
        self.ask(a, ends=True)
        self.assertEqual(self.reported(), "e0@2 s0@4 s1 s2")
        steps.over(b)
        self.assertEqual(self.reported(), "s- e-")

    def test_a_batch_ahead(self):
        one = self.iterate(self.loader())
        self.ask(one)
        for i in range(3):
            self.ask(one, ends=i == 2)
            self.optimize()
        self.assertEqual(self.reported(), "e0@1 s0@2 s1@3 s2 s3 sx s- e-")

    def test_abandoned(self):
        loader = self.loader()
        one = self.iterate(loader)
        self.ask(one)
        self.optimize()
        one.freed(None)
        self.assertEqual(self.reported(), "e0@1 s0@2 s- e-")
        one = self.iterate(loader)
        self.ask(one)
        self.ask(one, ends=True)  # an exception
        self.assertEqual(self.reported(), "e1@3 s1 s2 sx s- e-")
        self.ask(one)  # asked on all the same
        self.optimize()
        steps.over(one)
        self.assertEqual(self.reported(), "e2@6 s2@6 s- e-")

    def test_an_end_that_is_not_reported(self):
        """A loader that keeps its iterator is left in the middle, and another is trained on."""
        first, second = self.iterate(self.loader()), self.iterate(self.loader())
        for _ in range(2):
            self.ask(first)
            self.optimize()
        for _ in range(3):
            self.ask(second)
            self.optimize()
        self.assertEqual(self.reported(), "e0@1 s0@3 s1 s-@5 e-@5 e1@5 s2@5 s3 s4")
        steps.over(first)
        self.ask(second)
        self.assertEqual(self.reported(), "s5")

    def test_a_second_loader_joins(self):
        """A batch of another loader, too, for some steps: the first one still leads."""
        first, second = self.iterate(self.loader()), self.iterate(self.loader())
        self.ask(first)
        self.optimize()
        for _ in range(2):
            self.ask(first)
            self.ask(second)
            self.optimize()
        self.ask(first)
        self.optimize()
        self.assertEqual(self.reported(), "e0@1 s0@3 s1 s2 s3")

    def test_no_loader_at_all(self):
        """A step lasts from one optimizer's step to the next; the first one begins with it."""
        for _ in range(3):
            self.moment += 4
            self.optimize()
        self.assertEqual(self.reported(), "s0@5 s- s1@5 s- s2@10 s-")
        self.train(self.loader(), 2)
        self.assertEqual(self.reported(), "e0@16 s3@17 s4 s5 sx s- e-")
        self.optimize()  # of the batch that was asked for ahead
        self.assertEqual(self.reported(), "")

    def test_several_optimizers_and_no_loader(self):
        """The one that stepped first counts, as long as it is there and steps."""
        class Optimizer:
            pass

        first, second = Optimizer(), Optimizer()
        for _ in range(2):
            self.optimize(first)
            self.optimize(second)
            self.optimize(second)
        self.assertEqual(self.reported(), "s0@1 s- s1@1 s-")
        del first
        self.optimize(second)
        self.assertEqual(self.reported(), "s2@7 s-")
        third = Optimizer()
        for _ in range(steps.OTHERS_MAX):
            self.optimize(third)
        self.assertEqual(self.reported(), f"s3@{7 + steps.OTHERS_MAX} s-")

    def test_an_optimizer_that_cannot_be_referred_to(self):
        self.optimize(object())
        self.assertEqual(self.reported(), "")

    def test_numbers_of_the_programs_own(self):
        steps.own_steps = True
        self.train(self.loader(), 2)
        self.assertEqual(self.reported(), "e0@1 e-")
        steps.own_steps, steps.own_epochs = False, True
        self.train(self.loader(), 2)
        self.assertEqual(self.reported(), "s2@6 s3 s4 sx s-")

    def test_a_child_begins_anew(self):
        loader = self.loader()
        one = self.iterate(loader)
        self.ask(one)
        self.optimize()
        self.reported()
        later = self.iterate(self.loader())
        self.moment += 1
        steps.forked()
        one.freed(None)  # the child frees what it inherited
        self.assertEqual(self.reported(), "")
        self.train(loader, 1)
        self.assertEqual(self.reported(), "e0@5 s0 s1 sx s- e-")
        self.ask(later)
        self.optimize()
        self.assertEqual(self.reported(), "e1@4 s1@8")  # not before the child was there

    def compiled(self):
        """From now on, the optimizer is compiled: optimize() is not called."""
        steps.COMPILED = ("sys",)

    def walk(self, loader, batches):
        one = self.iterate(loader)
        for _ in range(batches):
            self.ask(one)
        self.ask(one, ends=True)

    def test_compiled_optimizers(self):
        self.compiled()
        loader, look = self.loader(), self.loader()
        for _ in range(2):
            self.walk(loader, 2)
            self.walk(look, 1)
        self.assertEqual(self.reported(), "e0@1 s0 s1 s2 sx s- e- e1@8 s2 s3 s4 sx s- e-")

    def test_compiled_optimizers_after_a_look_at_one_batch(self):
        self.compiled()
        looked, loader = self.loader(), self.loader()
        one = self.iterate(looked)
        self.ask(one)
        self.assertEqual(self.reported(), "e0@1 s0")
        self.walk(loader, 11)
        reported = self.reported()
        self.assertIn("s1@4 ", reported)  # when the loop requested its first batch
        self.assertTrue(reported.endswith("s10 s11 s12 sx s- e-"), reported)

    def test_compiled_optimizers_and_a_new_data_set_for_each_epoch(self):
        class Data:
            pass

        self.compiled()
        for _ in range(2):
            data, loader = Data(), self.loader()
            loader.ref = weakref.ref(data)
            self.walk(loader, 2)
            del data
        self.assertEqual(self.reported(), "e0@1 s0 s1 s2 sx s- e- e1@5 s2 s3 s4 sx s- e-")

    def test_one_loader_twice_at_a_time(self):
        self.compiled()
        loader = self.loader()
        pair = [self.iterate(loader), self.iterate(loader)]
        for _ in range(2):
            for one in pair:
                self.ask(one)
        self.assertEqual(self.reported(), "e0@1 s0 s1")

    def test_an_optimizer_that_is_known_after_all(self):
        self.compiled()
        look, loader = self.loader(), self.loader()
        self.walk(look, 1)
        self.reported()
        self.train(loader, 2)
        self.assertEqual(self.reported(), "e1@4 s1@5 s2 s3 sx s- e-")

    def test_steps_of_keras(self):
        self.compiled()
        steps.framework_steps = True
        self.walk(self.loader(), 2)
        self.assertEqual(self.reported(), "")


if __name__ == "__main__":
    harness.main()
