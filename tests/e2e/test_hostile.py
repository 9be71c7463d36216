#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A client that writes random bytes over its whole session, next to an honest one: the daemon
lives, the honest counts are exact.
"""

import os
import subprocess

import harness
from test_host import Daemon


class Hostile(harness.Case):
    SECONDS = 60 if harness.LONG else 3
    CLIENTS = 3

    def test_random_bytes_next_to_an_honest_job(self):
        hostile, honest = (os.path.join(harness.PROGRAMS, n) for n in ("w_hostile", "w_threads"))
        harness.need(hostile, "w_hostile")
        self.folder.fill(16)
        daemon = Daemon(self.folder)
        env = {**daemon.environment(), "HEADRACE_EXCLUDE": self.folder.log}
        before = sorted(self.folder.processes("headraced"))
        self.assertTrue(before)
        bare = {k: v for k, v in env.items() if k != "LD_PRELOAD"}
        clients = [
            subprocess.Popen(
                [hostile, env["HEADRACE_SOCKET"], str(self.SECONDS), str(seed)],
                env=bare,
                stdout=subprocess.PIPE,
            )
            for seed in range(self.CLIENTS)
        ]
        tallies, number = [], 0
        while any(client.poll() is None for client in clients):
            tallies.append(f"{self.folder.log}/tally{number}")
            number += 1
            done = harness.run(
                [honest, self.folder.data, "4", "3000"], {**env, "E2E_TALLY": tallies[-1]}
            )
            self.assertEqual(done.returncode, 0, done.stderr)
        for client in clients:
            out, _ = client.communicate()
            self.assertEqual((client.returncode, out), (0, b"seals held\n"))
        self.assertEqual(
            sorted(self.folder.processes("headraced")), before, "the daemon is the one that it was"
        )
        self.assertEqual(daemon.close(), 0)
        self.assert_honest(harness.Traced(self.folder, daemon.store), tallies)

    def assert_honest(self, traced, tallies):
        total = {}
        for tally in tallies:
            for cls, count in harness.tally_by_class(harness.read_tally(tally)).items():
                mine = total.setdefault(cls, harness.witness.Count())
                mine.calls, mine.bytes = mine.calls + count.calls, mine.bytes + count.bytes
        honest = "proc IN (SELECT proc FROM processes WHERE exe LIKE '%/w_threads')"
        mine = traced.counts(honest)
        for cls, count in total.items():
            self.assertEqual(mine[cls], count, cls)
        lost = traced.sql(f"SELECT * FROM losses WHERE {honest}")
        self.assertEqual(lost, [])
        hostile = traced.value(
            "SELECT coalesce(sum(count), 0) AS n FROM losses WHERE reason = 'hostile'"
        )
        self.assertGreater(hostile, 0, "what was thrown away is counted")


if __name__ == "__main__":
    harness.main()
