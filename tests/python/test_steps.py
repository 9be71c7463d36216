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
        self.said = []
        for name, what in (("step", "s"), ("epoch", "e")):
            real = getattr(api, name)
            self.addCleanup(setattr, api, name, real)
            setattr(api, name, lambda n, what=what: self.said.append(what + ("-" if n == api.NONE else str(n))))
        steps.forked()
        steps.own_steps = steps.own_epochs = False

    # What the marks of torch do.

    def loader(self, length=None):
        return type("Loader", (steps.Loader,), {"length": lambda self: length})(0)

    def ask(self, one, ends=False):
        if steps.last is not one:
            steps.turn(one)
        if one.leads:
            steps.begin(one)
        if ends:
            steps.over(one, True)
            return
        one.batch += 1
        if one.late:
            steps.came(one)

    def optimize(self):
        steps.optimized += 1
        if steps.last is not None and not steps.last.leads:
            steps.found()

    def train(self, loader, batches, each=1):
        one = steps.Pass(loader, 0)
        for i in range(batches):
            self.ask(one)
            if (i + 1) % each == 0:
                self.optimize()
        self.ask(one, ends=True)

    def look(self, loader, batches):
        one = steps.Pass(loader, 0)
        for _ in range(batches):
            self.ask(one)
        self.ask(one, ends=True)

    def told(self):
        said, self.said = " ".join(self.said), []
        return said

    def test_two_epochs(self):
        loader = self.loader(3)
        self.train(loader, 3)
        self.assertEqual(self.told(), "e0 s0 s1 s2 s- s- e-")
        self.train(loader, 3)
        self.assertEqual(self.told(), "e1 s3 s4 s5 s- s- e-")

    def test_a_length_that_is_learned(self):
        loader = self.loader()
        self.train(loader, 2)
        self.assertEqual(self.told(), "e0 s0 s1 s2 s- e-")  # nobody knew that step 2 would get no batch
        self.train(loader, 2)
        self.assertEqual(self.told(), "e1 s2 s3 s- s- e-")

    def test_more_batches_than_expected(self):
        self.train(self.loader(2), 4)
        self.assertEqual(self.told(), "e0 s0 s1 s- s2 s3 s4 s- e-")

    def test_a_loader_that_is_only_looked_at(self):
        train, look = self.loader(2), self.loader()
        self.look(look, 3)
        self.assertEqual(self.told(), "")
        for _ in range(2):
            self.train(train, 2)
            self.look(look, 3)
        self.assertEqual(self.told(), "e0 s0 s1 s- s- e- e1 s2 s3 s- s- e-")

    def test_a_look_in_the_middle_of_an_epoch(self):
        loader, look = self.loader(4), self.loader()
        one = steps.Pass(loader, 0)
        for i in range(4):
            self.ask(one)
            self.optimize()
            if i % 2:
                self.look(look, 2)
        self.ask(one, ends=True)
        self.assertEqual(self.told(), "e0 s0 s1 s2 s3 s- s- e-")

    def test_a_step_of_several_batches(self):
        loader = self.loader(6)
        self.train(loader, 6, each=3)
        self.assertEqual(self.told(), "e0 s2 s3 s4 s5 s- s- e-")  # known at the third batch's end
        self.train(loader, 6, each=3)
        self.assertEqual(self.told(), "e1 s6 s7 s8 s9 s10 s11 s- s- e-")

    def test_several_optimizers_for_a_batch(self):
        one = steps.Pass(self.loader(2), 0)
        for _ in range(2):
            self.ask(one)
            self.optimize()
            self.optimize()
        self.ask(one, ends=True)
        self.assertEqual(self.told(), "e0 s0 s1 s- s- e-")

    def test_two_loaders_for_one_step(self):
        a, b = steps.Pass(self.loader(3), 0), steps.Pass(self.loader(3), 0)
        for _ in range(3):
            self.ask(a)
            self.ask(b)
            self.optimize()
        self.ask(a, ends=True)
        self.assertEqual(self.told(), "e0 s0 s1 s2")
        steps.over(b)
        self.assertEqual(self.told(), "s- e-")

    def test_a_batch_ahead(self):
        one = steps.Pass(self.loader(3), 0)
        self.ask(one)
        for i in range(3):
            self.ask(one, ends=i == 2)
            self.optimize()
        self.assertEqual(self.told(), "e0 s1 s2 s- s- e-")

    def test_abandoned(self):
        loader = self.loader(5)
        one = steps.Pass(loader, 0)
        self.ask(one)
        self.optimize()
        one.freed(None)
        self.assertEqual(self.told(), "e0 s0 s- e-")
        one = steps.Pass(loader, 0)
        self.ask(one)
        steps.over(one)  # an exception
        self.assertEqual(self.told(), "e1 s1 s- e-")
        self.ask(one)  # asked on all the same
        self.optimize()
        steps.over(one)
        self.assertEqual(self.told(), "e2 s2 s- e-")

    def test_an_end_that_nobody_tells(self):
        """A loader that keeps its iterator is left in the middle, and another is trained on."""
        first, second = steps.Pass(self.loader(9), 0), steps.Pass(self.loader(9), 0)
        for _ in range(2):
            self.ask(first)
            self.optimize()
        for _ in range(3):
            self.ask(second)
            self.optimize()
        self.assertEqual(self.told(), "e0 s0 s1 s- e- e1 s2 s3 s4")
        steps.over(first)
        self.ask(second)
        self.assertEqual(self.told(), "s5")

    def test_no_loader_at_all(self):
        self.optimize()
        self.assertEqual(self.told(), "")

    def test_numbers_of_the_programs_own(self):
        steps.own_steps = True
        self.train(self.loader(2), 2)
        self.assertEqual(self.told(), "e0 e-")
        steps.own_steps, steps.own_epochs = False, True
        self.train(self.loader(2), 2)
        self.assertNotIn("e", self.told())

    def test_a_child_begins_anew(self):
        one = steps.Pass(self.loader(9), 0)
        self.ask(one)
        self.optimize()
        self.told()
        steps.forked()
        one.freed(None)  # the child frees what it inherited
        self.assertEqual(self.told(), "")
        self.train(self.loader(1), 1)
        self.assertEqual(self.told(), "e0 s0 s- s- e-")


if __name__ == "__main__":
    harness.main()
