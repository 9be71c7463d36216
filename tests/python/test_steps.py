#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The rule of steps and epochs, by itself: loaders are asked and optimizers step, and what is told is held against the text of
_headrace/steps.py."""

import sys
import unittest

import harness
from harness import MODULES

sys.path.insert(0, MODULES)
from _headrace import api, steps  # noqa: E402


class Steps(unittest.TestCase):
    def setUp(self):
        """What is told: `s3`, step 3 begins; `s3@7`, it began at moment 7; `s-`, none; `sx`, it was none. `e`: epochs."""
        self.said, self.moment = [], 0

        def tell(what):
            return lambda n, at=0: self.said.append(what + ("-" if n == api.NONE else str(n)) + (f"@{at}" if at else ""))

        calls = {"step": tell("s"), "step_at": tell("s"), "epoch_at": tell("e"), "now": lambda: self.moment,
                 "step_undo": lambda: self.said.append("sx")}
        for name, call in calls.items():
            self.addCleanup(setattr, api, name, getattr(api, name))
            setattr(api, name, call)
        self.thread = 1
        self.addCleanup(setattr, steps, "get_ident", steps.get_ident)
        steps.get_ident = lambda: self.thread
        steps.forked()
        steps.own_steps = steps.own_epochs = False

    # What the marks of torch do.

    def loader(self):
        return steps.Loader(0)

    def iterate(self, loader):
        self.moment += 1
        return steps.Pass(loader, 0, self.moment)

    def ask(self, one, ends=False):
        self.moment += 1
        if steps.last is not one:
            steps.turn(one)
        if one.leads:
            steps.begin(one)
        else:
            steps.remember(one)
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

    def told(self):
        said, self.said = " ".join(self.said), []
        return said

    def test_two_epochs(self):
        loader = self.loader()
        self.train(loader, 3)
        self.assertEqual(self.told(), "e0@1 s0@2 s1 s2 s3 sx s- e-")
        self.train(loader, 3)
        self.assertEqual(self.told(), "e1@6 s3 s4 s5 s6 sx s- e-")

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
        alone = [what.split("@")[0] for what in self.told().split()]
        steps.forked()
        self.in_turns(5, 3, 4)
        self.assertEqual([what.split("@")[0] for what in self.told().split()], alone)

    def test_a_loop_in_another_thread_than_the_last_one(self):
        loader, look = self.loader(), self.loader()
        for self.thread in (1, 2):
            self.train(loader, 2)
            self.look(look, 1)
        self.assertEqual(self.told(), "e0@1 s0@2 s1 s2 sx s- e- e1@8 s2 s3 s4 sx s- e-")

    def test_batches_that_another_thread_asks_for(self):
        one = self.iterate(self.loader())
        for _ in range(3):
            self.thread = 2
            self.ask(one)
            self.thread = 1
            self.optimize()
        self.thread = 2
        self.ask(one, ends=True)
        self.assertEqual(self.told(), "e0@1 s0@2 s1 s2 s3 sx s- e-")

    def test_a_loader_for_each_epoch(self):
        self.train(self.loader(), 2)
        self.assertEqual(self.told(), "e0@1 s0@2 s1 s2 sx s- e-")
        self.train(self.loader(), 2)
        self.assertEqual(self.told(), "e1@5 s2@6 s3 s4 sx s- e-")

    def test_a_loader_that_is_only_looked_at(self):
        train, look = self.loader(), self.loader()
        self.look(look, 3)
        self.assertEqual(self.told(), "")
        for _ in range(2):
            self.train(train, 2)
            self.look(look, 3)
        self.assertEqual(self.told(), "e0@6 s0@7 s1 s2 sx s- e- e1@15 s2 s3 s4 sx s- e-")

    def test_a_look_in_the_middle_of_an_epoch(self):
        loader, look = self.loader(), self.loader()
        one = self.iterate(loader)
        for i in range(4):
            self.ask(one)
            self.optimize()
            if i % 2:
                self.look(look, 2)
        self.ask(one, ends=True)
        self.assertEqual(self.told(), "e0@1 s0@2 s1 s2 s3 s4 sx s- e-")

    def test_a_step_of_several_batches(self):
        loader = self.loader()
        self.train(loader, 6, each=3)
        self.assertEqual(self.told(), "e0@1 s0@2 s1@3 s2@4 s3 s4 s5 s6 sx s- e-")  # known when the third batch has come
        self.train(loader, 6, each=3)
        self.assertEqual(self.told(), "e1@9 s6 s7 s8 s9 s10 s11 s12 sx s- e-")

    def test_more_batches_than_are_remembered(self):
        loader, n = self.loader(), steps.ASKS_MAX + 3
        self.train(loader, n, each=n)
        told = self.told().split()
        self.assertEqual(told[:3], ["e0@1", "s0@2", "s1@3"])
        self.assertEqual(told[-6:], [f"s{n - 5}@{n - 3}", f"s{n - 1}@{n + 1}", f"s{n}", "sx", "s-", "e-"])

    def test_several_optimizers_for_a_batch(self):
        one = self.iterate(self.loader())
        for _ in range(2):
            self.ask(one)
            self.optimize()
            self.optimize()
        self.ask(one, ends=True)
        self.assertEqual(self.told(), "e0@1 s0@2 s1 s2 sx s- e-")

    def test_two_loaders_for_one_step(self):
        a, b = self.iterate(self.loader()), self.iterate(self.loader())
        for _ in range(3):
            self.ask(a)
            self.ask(b)
            self.optimize()
        self.ask(a, ends=True)
        self.assertEqual(self.told(), "e0@2 s0@4 s1 s2")
        steps.over(b)
        self.assertEqual(self.told(), "s- e-")

    def test_a_batch_ahead(self):
        one = self.iterate(self.loader())
        self.ask(one)
        for i in range(3):
            self.ask(one, ends=i == 2)
            self.optimize()
        self.assertEqual(self.told(), "e0@1 s0@2 s1@3 s2 s3 sx s- e-")

    def test_abandoned(self):
        loader = self.loader()
        one = self.iterate(loader)
        self.ask(one)
        self.optimize()
        one.freed(None)
        self.assertEqual(self.told(), "e0@1 s0@2 s- e-")
        one = self.iterate(loader)
        self.ask(one)
        self.ask(one, ends=True)  # an exception
        self.assertEqual(self.told(), "e1@3 s1 s2 sx s- e-")
        self.ask(one)  # asked on all the same
        self.optimize()
        steps.over(one)
        self.assertEqual(self.told(), "e2@6 s2@6 s- e-")

    def test_an_end_that_nobody_tells(self):
        """A loader that keeps its iterator is left in the middle, and another is trained on."""
        first, second = self.iterate(self.loader()), self.iterate(self.loader())
        for _ in range(2):
            self.ask(first)
            self.optimize()
        for _ in range(3):
            self.ask(second)
            self.optimize()
        self.assertEqual(self.told(), "e0@1 s0@3 s1 s-@5 e-@5 e1@5 s2@5 s3 s4")
        steps.over(first)
        self.ask(second)
        self.assertEqual(self.told(), "s5")

    def test_no_loader_at_all(self):
        """A step lasts from one optimizer's step to the next; the first one begins with it."""
        for _ in range(3):
            self.moment += 4
            self.optimize()
        self.assertEqual(self.told(), "s0@5 s- s1@5 s- s2@10 s-")
        self.train(self.loader(), 2)
        self.assertEqual(self.told(), "e0@16 s3@17 s4 s5 sx s- e-")
        self.optimize()  # of the batch that was asked for ahead
        self.assertEqual(self.told(), "")

    def test_several_optimizers_and_no_loader(self):
        """The one that stepped first counts, as long as it is there and steps."""
        class Optimizer:
            pass

        first, second = Optimizer(), Optimizer()
        for _ in range(2):
            self.optimize(first)
            self.optimize(second)
            self.optimize(second)
        self.assertEqual(self.told(), "s0@1 s- s1@1 s-")
        del first
        self.optimize(second)
        self.assertEqual(self.told(), "s2@7 s-")
        third = Optimizer()
        for _ in range(steps.OTHERS_MAX):
            self.optimize(third)
        self.assertEqual(self.told(), f"s3@{7 + steps.OTHERS_MAX} s-")

    def test_an_optimizer_that_cannot_be_referred_to(self):
        self.optimize(object())
        self.assertEqual(self.told(), "")

    def test_numbers_of_the_programs_own(self):
        steps.own_steps = True
        self.train(self.loader(), 2)
        self.assertEqual(self.told(), "e0@1 e-")
        steps.own_steps, steps.own_epochs = False, True
        self.train(self.loader(), 2)
        self.assertEqual(self.told(), "s2@6 s3 s4 sx s-")

    def test_a_child_begins_anew(self):
        loader = self.loader()
        one = self.iterate(loader)
        self.ask(one)
        self.optimize()
        self.told()
        later = self.iterate(self.loader())
        self.moment += 1
        steps.forked()
        one.freed(None)  # the child frees what it inherited
        self.assertEqual(self.told(), "")
        self.train(loader, 1)
        self.assertEqual(self.told(), "e0@5 s0 s1 sx s- e-")
        self.ask(later)
        self.optimize()
        self.assertEqual(self.told(), "e1@4 s1@8")  # not before the child was there


if __name__ == "__main__":
    harness.main()
