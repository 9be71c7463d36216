# SPDX-License-Identifier: Apache-2.0
"""Comparisons of two measurements of time, for tests that hr_precise() registers.

A single comparison says little on a busy machine: anything between the two readings of a clock is an error. `agree` repeats the
measurement, and decides by a sign test. If the two really differed by more than the bound, each round would be within it with a
probability of less than one half, so MOST rounds of ROUNDS would be with a probability of less than 2 %.
"""

ROUNDS, MOST = 9, 8  # sum(comb(9, k) for k in (8, 9)) / 2**9 = 0.0195


def agree(case, measure, bound):
    """Calls measure(), which returns two measurements of the same thing in seconds, up to ROUNDS times.

    Fails `case` (a unittest.TestCase) unless at least MOST of the rounds have measurements that differ by at most
    `bound` (a share of the second, such as 0.05).
    """
    rounds, within = [], 0
    while len(rounds) < ROUNDS and within < MOST and len(rounds) - within <= ROUNDS - MOST:
        one, other = measure()
        rounds.append((one, other))
        within += abs(one - other) <= bound * other
    case.assertGreaterEqual(within, MOST, f"{within} of {len(rounds)} rounds are within {100 * bound:g} %: {rounds}")
