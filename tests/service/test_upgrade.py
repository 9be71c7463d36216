#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""headraced upgraded to a build with the next ABI version while jobs run, and what another version is told.

The builds are those of tests/service/CMakeLists.txt. Counts are the generator's own.
"""

import glob
import os
import signal
import struct

from service import LIBRARY, Service, harness

NEXT_HEADRACED = os.environ["HR_NEXT_HEADRACED"]
NEXT_LIBRARY = os.environ["HR_NEXT_LIBRARY"]


class Upgrade(Service):
    def generator(self, name, library=LIBRARY, size=("1000", "60")):
        data = os.path.join(self.data, name)
        os.mkdir(data)
        return self.preloaded(harness.GENERATOR, data, *size, job="1", env={"HEADRACE_ON_FULL": "wait:5000"}, library=library)

    def restart(self, program):
        self.assertEqual(self.manager.stop(), 0)
        self.manager.program = program
        self.manager.start()

    def test_old_sessions_drain_and_new_ones_attach(self):
        self.manage("--level", "trace")
        self.begin("1")
        running = [self.generator(name) for name in ("first", "second")]
        self.wait_for("both", lambda: all(len(os.listdir(f"{self.data}/{name}")) > 3 for name in ("first", "second")))
        running[1].send_signal(signal.SIGSTOP)  # the first one may end during a slow restart
        self.restart(NEXT_HEADRACED)
        running[1].send_signal(signal.SIGCONT)
        running.append(self.generator("third", library=NEXT_LIBRARY))
        # The old library in new processes, too: a job's environment names the file that there was, and packages may keep it.
        running.append(self.generator("fourth"))
        done = [self.generated(p) for p in running]
        self.end("1", "--linger", "300s")
        self.assert_recorded("1", done)

    def test_a_newer_library_is_told(self):
        """It runs on unrecorded, is counted, and said once; the old one beside it is whole. After the upgrade it is let in."""
        self.manage("--level", "trace")
        self.begin("1")
        old = self.generated(self.generator("old", size=("5", "5")))
        for i in range(3):
            self.generated(self.generator(f"new{i}", library=NEXT_LIBRARY, size=("5", "5")))
        status = self.status()
        self.assertEqual((status["status"], status["refused"]), ("degraded", 3))
        said = [line for line in self.manager.said().splitlines() if "ABI version 2" in line]
        self.assertEqual(len(said), 1)
        self.assertIn("is not recorded: its libheadrace.so has ABI version 2, which this headraced (version 1) does not support", said[0])
        self.restart(NEXT_HEADRACED)
        new = self.generated(self.generator("new", library=NEXT_LIBRARY, size=("5", "5")))
        self.end("1", "--linger", "300s")
        self.assert_recorded("1", [old, new])

    def test_a_journal_of_another_version(self):
        """The job goes on in another stream; what cannot be gone on with is said, and the journal kept for who can read it."""
        self.manage("--level", "trace")
        self.begin("1")
        held = self.preloaded("/usr/bin/python3", "-c", f"import time; open('{self.data}/x', 'w').write('x'); time.sleep(3000)", job="1")
        self.addCleanup(held.communicate)
        self.addCleanup(held.kill)
        self.wait_for("it", lambda: (self.job("1") or {}).get("processes"))
        self.assertEqual(self.manager.stop(), 0)
        journal, = glob.glob(f"{self.manager.spool}/jobs/1/*/journal")
        with open(journal, "r+b") as f:
            f.seek(8)
            f.write(struct.pack("<I", 999))
        self.manager.start()
        self.manager.kill()  # the one after that finds where it went on
        self.manager.start()
        done = self.generated(self.generator("after", size=("5", "5")))
        self.end("1", "--linger", "300s")
        rows, _ = self.query(f"SELECT count(*) FILTER (class = 'read') AS n FROM events WHERE starts_with(path, '{self.data}/after/')")
        self.assertEqual(rows, [{"n": done["reads"]}])
        losses, _ = self.query("SELECT reason, count FROM losses ORDER BY reason")
        self.assertEqual(losses, [{"reason": "journal_damaged", "count": 0}, {"reason": "restart", "count": 1}])
        self.assertTrue(os.path.exists(journal))


if __name__ == "__main__":
    harness.main()
