#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How good predictions from noisy measurements are: `headrace model`, and Extra-P on the same sets.

Each set has 5 points (2 to 32 ranks) with 3 to 5 repetitions of one function, with normally distributed relative noise. Both predict the
value at 128 ranks. Printed: how often the range of headrace holds the true value, and the error of the predicted values (median and 90th
percentile). Three kinds of functions: the ten usual terms, all 42 terms of Extra-P, and two parameters
with usual terms (25 points with 3 repetitions; a fifth of the sets).

usage: model_noise.py --headrace build-release/cli/headrace [--sets 1000] [--seed 1] [--noise 1,3,10]
       HEADRACE_EXTRAP: a Python with extrap 4.2.5; without it, only headrace is measured
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time

MODEL_TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model")
sys.path.insert(0, MODEL_TESTS)
import model_sets  # pylint: disable=wrong-import-position

POINTS, TARGET, NAMES = (2, 4, 8, 16, 32), 128, ("ranks", "workers")
USUAL = ((1, 2, 0), (1, 1, 0), (0, 1, 1), (1, 1, 1), (1, 4, 0), (2, 3, 0), (3, 2, 0), (2, 1, 0), (1, 2, 1), (0, 1, 2))


def make_set(chance, terms, noise):
    """([(point, values)], the true value at the target)"""
    term = chance.choice(terms)
    constant, share = chance.uniform(1, 10), chance.uniform(0.1, 0.9)  # share of the term at the largest point
    coefficient = constant * share / (1 - share) / model_sets.term_value(term, POINTS[-1])

    def value(x):
        return constant + coefficient * model_sets.term_value(term, x)
    repetitions = chance.randint(3, 5)
    return [((x,), [value(x) * (1 + chance.gauss(0, noise)) for _ in range(repetitions)]) for x in POINTS], value(TARGET)


def make_set_of_two(chance, terms, noise):
    """The same with two parameters: the product of two terms, their sum, or one term and the product."""
    pair = chance.choice(terms), chance.choice(terms)
    constant, shares = chance.uniform(1, 10), [chance.uniform(0.1, 2) for _ in range(2)]
    form = chance.choice(("product", "sum", "both"))

    def value(x, y):
        a, b = (model_sets.term_value(t, v) / model_sets.term_value(t, POINTS[-1]) for t, v in zip(pair, (x, y)))
        return constant * (1 + {"product": shares[0] * a * b, "sum": shares[0] * a + shares[1] * b,
                                "both": shares[0] * a + shares[1] * a * b}[form])
    grid = [(x, y) for x in POINTS for y in POINTS]
    return ([(point, [value(*point) * (1 + chance.gauss(0, noise)) for _ in range(3)]) for point in grid],
            value(TARGET, TARGET))


def write_sets(path, sets):
    with open(path, "w", encoding="utf-8") as out:
        for number, (points, _) in enumerate(sets):
            for point, values in points:
                for value in values:
                    out.write(json.dumps({"params": dict(zip(NAMES, point)), "callpath": str(number), "metric": "read_s",
                                          "value": value}) + "\n")


def evaluate(model, x):
    """The value of a model of tests/model/extrap_models.py."""
    value = model["coefficients"][0]
    for coefficient, product in zip(model["coefficients"][1:], model["products"]):
        for _, power, log in product:
            coefficient *= x ** power * math.log2(x) ** log  # all parameters have the value x
        value += coefficient
    return value


def errors_text(errors):
    errors = sorted(errors)
    return f"{errors[len(errors) // 2]:7.1%} {errors[int(len(errors) * 0.9)]:7.1%}"


def run_json(command):
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout), time.monotonic() - began


def measure(options, name, terms, noise, folder):
    chance = random.Random(options.seed)
    make = make_set_of_two if name == "two" else make_set
    sets = [make(chance, terms, noise / 100) for _ in range(options.sets // 5 if name == "two" else options.sets)]
    path = os.path.join(folder, "sets.jsonl")
    write_sets(path, sets)
    models, seconds = run_json([options.headrace, "model", path, "--at", ",".join(f"{n}={TARGET}" for n in NAMES[:len(sets[0][0][0][0])]), "--format", "json"])
    ours = {int(m["region"]): m["prediction"] for m in models["models"]}
    held = sum(ours[i]["low"] <= truth <= ours[i]["high"] for i, (_, truth) in enumerate(sets))
    line = (f"{name:6} {noise:4g} %  {held / len(sets):8.1%}  "
            f"{errors_text(abs(ours[i]['value'] - truth) / truth for i, (_, truth) in enumerate(sets))}"
            f"  {1000 * seconds / len(sets):5.2f} ms")
    python = os.environ.get("HEADRACE_EXTRAP")
    if python:
        theirs, seconds = run_json([python, os.path.join(MODEL_TESTS, "extrap_models.py"), "default", path])
        line += (f"    {errors_text(abs(evaluate(theirs[str(i)], TARGET) - truth) / truth for i, (_, truth) in enumerate(sets))}"
                 f"  {1000 * seconds / len(sets):5.2f} ms")
    print(line, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--headrace", required=True)
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--noise", default="1,3,10")
    options = parser.parse_args()
    print("terms   noise  in range   median     p90   a model      median     p90   a model (Extra-P)")
    with tempfile.TemporaryDirectory(prefix="headrace-model-") as folder:
        for name, terms in (("usual", USUAL), ("all", model_sets.LOGS + model_sets.PLAIN), ("two", USUAL)):
            for noise in map(float, options.noise.split(",")):
                measure(options, name, terms, noise, folder)


if __name__ == "__main__":
    main()
