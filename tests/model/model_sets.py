# SPDX-License-Identifier: Apache-2.0
"""Generated measurements of functions from Extra-P's search space, the same in each run.

usage: model_sets.py KIND COUNT SEED >sets.jsonl        KIND: one, two, three, negative, no-logs, noisy-one, noisy-two
"""

import json
import math
import random
import sys

LOGS = ((0, 1, 1), (0, 1, 2), (1, 4, 1), (1, 3, 1), (1, 4, 2), (1, 3, 2), (1, 2, 1), (1, 2, 2), (2, 3, 1), (3, 4, 1),
        (2, 3, 2), (3, 4, 2), (1, 1, 1), (1, 1, 2), (5, 4, 1), (4, 3, 1), (3, 2, 1), (3, 2, 2), (2, 1, 1), (2, 1, 2),
        (5, 2, 1), (5, 2, 2), (3, 1, 1))
PLAIN = tuple((n, d, 0) for n, d in ((1, 4), (1, 3), (1, 2), (2, 3), (3, 4), (4, 5), (1, 1), (5, 4), (4, 3), (3, 2), (5, 3),
                                     (7, 4), (2, 1), (9, 4), (7, 3), (5, 2), (8, 3), (11, 4), (3, 1)))
POINTS = ((2, 4, 8, 16, 32), (1, 2, 4, 8, 16, 32), (4, 8, 16, 32, 64, 128), (2, 3, 5, 8, 12, 16, 24),
          (10, 20, 30, 40, 50), (16, 8, 4, 64, 32), (1.5, 2.5, 4, 7, 11))
# Only random() is used: Python documents that its sequence remains the same.


class Sets:
    """Random choices."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def choice(self, of):
        return of[int(self.random() * len(of))]

    def between(self, low, high):
        return low + (high - low) * self.random()


def term_value(term, x):
    numerator, denominator, log = term
    return x ** (numerator / denominator) * math.log2(x) ** log if log else x ** (numerator / denominator)


def space_of(kind):
    negative = tuple((-n, d, -log) for n, d, log in LOGS + PLAIN)
    return {"no-logs": PLAIN, "negative": LOGS + PLAIN + negative}.get(kind, LOGS + PLAIN)


def points_of(kind, sets):
    points = sets.choice(POINTS)
    return POINTS[0] if kind == "negative" and min(points) <= 1 else points


def one(kind, sets):
    """[(point, value)]: a constant, or one term; some with a part of 0, some that shrink."""
    points, term = points_of(kind, sets), sets.choice(space_of(kind))
    largest = max(term_value(term, x) for x in points)
    constant, share = sets.between(1, 1000), sets.between(0.01, 0.99)
    coefficient = constant * share / (1 - share) / largest
    how = sets.random()
    if how < 0.03:
        coefficient = 0
    elif how < 0.1:
        constant = 0
    elif how < 0.2:
        coefficient = -constant * sets.between(0.1, 0.9) / largest
    return [((x,), constant + coefficient * term_value(term, x)) for x in points]


def several(n, sets):
    """[(point, value)]: a sum of products of one term for each parameter, on a full grid."""
    points = [sets.choice(POINTS[:1] + POINTS[4:5] + ((2, 4, 6, 8, 10),)) for _ in range(n)]
    terms = [sets.choice(LOGS + PLAIN) for _ in range(n)]
    products = sets.choice([[sum(1 << i for i in range(n))], [1 << i for i in range(n)],
                            [1, sum(1 << i for i in range(n))], [1 << sets.choice(range(n))]])
    largest = [max(term_value(terms[i], x) for x in points[i]) for i in range(n)]
    coefficients = [sets.between(1, 100) for _ in products]
    values = []
    grid = [()]
    for part in points:
        grid = [x + (y,) for x in grid for y in part]
    for x in grid:
        value = 10
        for product, coefficient in zip(products, coefficients):
            for i in range(n):
                if product >> i & 1:
                    coefficient *= term_value(terms[i], x[i]) / largest[i]
            value += coefficient
        values.append((x, value))
    return values


def parameters_of(kind):
    return {"two": 2, "noisy-two": 2, "three": 3}.get(kind, 1)


def write(kind, count, seed, out):
    """Writes `count` sets as JSON lines: the region is the number of the set. Noisy sets have 5 % noise and 3 repetitions."""
    sets = Sets(seed)
    noise, repetitions = (0.05, 3) if kind.startswith("noisy") else (0, 1)
    names = ("ranks", "workers", "batch")
    for number in range(count):
        n = parameters_of(kind)
        for point, value in one(kind, sets) if n == 1 else several(n, sets):
            for _ in range(repetitions):
                measured = value * (1 + noise * (sum(sets.random() for _ in range(12)) - 6)) if noise else value
                out.write(json.dumps({"params": dict(zip(names, point)), "callpath": f"set->{number}", "metric": "read_s",
                                      "value": measured}) + "\n")


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.stdout)
