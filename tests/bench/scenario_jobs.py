# SPDX-License-Identifier: Apache-2.0
"""Training jobs with a planted bottleneck, for scenarios.py: sizes and rates come from a random generator."""

import dataclasses


@dataclasses.dataclass
class Job:
    """A job of workloads/training.py, and what a diagnosis of it must name first."""

    cause: str
    options: dict
    also: tuple = ()  # other names of the same cause that are right, too
    files: int = None  # None: as many as items
    bytes: int = 200_000  # of each file
    mount: dict = None  # settings of blockfs; its files replace the last `mounted` ones
    mounted: int = None  # None: all
    ranks: int = 1
    cpus: int = 2
    quota: float = 0  # cores
    memory: bool = False  # the files lie in memory
    spinners: int = 0  # programs that compute at the same time
    where: str = None  # the finding's object contains this; "mount": the path of the mount
    rank: int = None
    worker: int = None
    remedies: dict = dataclasses.field(default_factory=dict)  # by words of the action: changed fields or options

    def __post_init__(self):
        self.files = self.files or self.options["items"]

    def changed(self, change):
        """The job with other fields or, for a name that is no field, other options."""
        names = {f.name for f in dataclasses.fields(self)}
        fields = {name: value for name, value in change.items() if name in names}
        options = self.options | {name: value for name, value in change.items() if name not in names}
        return dataclasses.replace(self, options=options, **fields)


def base(r, **more):
    batch = r.choice([2, 4, 8])
    o = {"batch": batch, "items": batch * r.randint(14, 24), "epochs": r.randint(1, 3), "workers": r.randint(1, 3), "compute-ms": r.randint(1, 4),
         "device-ms": r.randint(4, 12)}
    return o | more


def steps(o):
    return o["items"] // o["batch"] * o["epochs"]


def per_item(o, ms):
    """Time of an item so that a batch takes `ms`."""
    return ms / o["batch"]


def no_workers(r):
    o = base(r, workers=0)
    return Job("no_workers", o | {"decode-ms": per_item(o, r.uniform(40, 90))})


def few_workers(r):
    o = base(r, workers=1)
    return Job("few_workers", o | {"compute-ms": 1, "device-ms": r.randint(3, 8), "decode-ms": per_item(o, r.uniform(50, 100))})


def few_cores(r):
    o = base(r, workers=r.randint(2, 4))
    return Job("few_cores", o | {"decode-ms": per_item(o, r.uniform(50, 90))}, cpus=1, remedies={"request": {"cpus": 2}})


def quota(r):
    o = base(r, workers=r.randint(2, 4))
    return Job("few_cores", o | {"decode-ms": per_item(o, r.uniform(40, 70))}, quota=r.choice([0.5, 0.8, 1.0]), remedies={"quota": {"quota": 0}})


def disturbed(r):
    o = base(r, workers=r.randint(1, 2))
    return Job("disturbed", o | {"decode-ms": per_item(o, r.uniform(30, 50))}, spinners=r.randint(4, 6), remedies={"other programs": {"spinners": 0}})


def prefetch(r):
    o = base(r, workers=2, batch=1, items=r.randint(100, 140), epochs=1)
    every = r.randint(12, 16)
    return Job("prefetch", o | {"device-ms": r.randint(18, 25), "slow-every": every, "slow-ms": every * r.randint(14, 18)}, cpus=r.randint(1, 2))


def slow_reads(r):
    o = base(r, workers=r.randint(1, 2))
    return Job("slow_reads", o, mount={"read": round(per_item(o, r.uniform(40, 90)) / 2, 1), "parallel": 1, "bytes": 65536}, where="mount", cpus=r.randint(1, 2), ranks=r.randint(1, 2))


def saturated(r):
    o = base(r, workers=r.randint(3, 4))
    return Job("saturated", o, mount={"read": round(per_item(o, r.uniform(40, 70)) / 2, 1), "bytes": 65536}, where="mount",
               remedies={"faster storage": {"mount": None}})


def small_reads(r):
    o = base(r, workers=1, **{"device-ms": 4})
    size = r.choice([16, 32, 64])
    return Job("small_reads", o | {"read-bytes": size}, bytes=round(per_item(o, r.uniform(60, 120)) * 2500) * size,  # 2,500 reads take about 1 ms
               remedies={"larger blocks": {"read-bytes": 1 << 20}})


def small_files(r):
    o = base(r, workers=r.randint(1, 2), items=r.randint(80, 120))
    ms = per_item(o, r.uniform(40, 80))
    return Job("small_files", o, also=("metadata",), files=o["items"], mount={"open": round(ms * 0.6, 1), "read": round(ms * 0.2, 1), "parallel": 1,
               "bytes": r.choice([2048, 8192, 16384])}, where="mount", remedies={"larger files": {"mount": None}}, ranks=r.randint(1, 2))


def metadata(r):
    o = base(r, workers=r.randint(1, 2))
    n = r.randint(6, 20)
    return Job("metadata", o | {"stats": n}, files=32, mount={"stat": round(per_item(o, r.uniform(50, 90)) / n, 2), "parallel": 1, "bytes": 65536},
               remedies={"examine": {"stats": 0}, "larger files": {"stats": 0}}, ranks=r.randint(1, 2))


def reopens(r):
    o = base(r, workers=r.randint(1, 2))
    n = r.randint(8, 24)
    return Job("reopens", o | {"opens": n}, mount={"open": round(per_item(o, r.uniform(50, 90)) / n, 2), "parallel": 1, "bytes": 262144}, where="mount",
               remedies={"open each file once": {"opens": 1}}, ranks=r.randint(1, 2))


def rereads(r):
    o = base(r, workers=r.randint(1, 2))
    return Job("rereads", o, files=r.randint(2, 5), bytes=round(per_item(o, r.uniform(40, 80)) * 8_000_000), remedies={"once": {"take": 64}})


def slow_file(r):
    o = base(r, workers=r.randint(2, 3), batch=r.choice([1, 2]), items=48, epochs=2)
    return Job("slow_file", o, files=24, mount={"read": r.randint(100, 250), "bytes": 65536, "parallel": 1}, mounted=1, where="f0023",
               remedies={"copy": {"mount": None}})


def slow_file_of_mount(r):
    o = base(r, workers=r.randint(2, 3), batch=r.choice([1, 2]), items=48, epochs=2)
    return Job("slow_file", o, files=24, mount={"read": r.randint(100, 250), "bytes": 65536, "parallel": 1, "only": 7}, where="f0007",
               remedies={"copy": {"mount": None}})


def slow_mount(r):
    o = base(r, workers=r.randint(1, 2))
    return Job("slow_mount", o, mount={"read": round(per_item(o, r.uniform(60, 120)), 1), "parallel": 1, "bytes": 65536}, mounted=16, where="mount",
               cpus=r.randint(1, 2), remedies={"copy": {"mount": None}}, ranks=r.randint(1, 2))


def cold_cache(r):
    o = base(r, workers=r.randint(1, 2), epochs=r.randint(3, 4))
    return Job("cold_cache", o, files=o["items"], mount={"read": round(per_item(o, r.uniform(80, 140)), 1), "cached": 1, "bytes": 65536}, where="mount",
               remedies={"cache": {"mount": None}}, ranks=r.randint(1, 2))


def mapped(r):
    """Each page is read from the mount by itself."""
    o = base(r, workers=r.randint(1, 2))
    pages = r.choice([8, 16, 32])
    return Job("mapped_files", o | {"mapped": True}, mount={"read": round(per_item(o, r.uniform(60, 120)) / pages, 2), "parallel": 1, "cached": 1, "bytes": 4096 * pages}, where="mount",
               cpus=r.randint(1, 2), remedies={"instead of mapping": {"mapped": False}}, ranks=r.randint(1, 2))


def sleep(r):
    o = base(r, workers=r.randint(0, 2))
    return Job("sleep", o | {"sleep-ms": per_item(o, r.uniform(50, 110))}, also=("asleep",), cpus=r.randint(1, 2), ranks=r.randint(1, 2))


def lock(r):
    o = base(r, workers=r.randint(2, 4))
    return Job("lock", o | {"lock-ms": round(per_item(o, r.uniform(30, 50)), 1)}, also=("asleep", "sleep"), remedies={"hold the lock": {"lock-ms": 0}}, ranks=r.randint(1, 2))


def network(r):
    o = base(r, workers=r.randint(0, 2))
    return Job("network", o | {"network-ms": max(2, round(per_item(o, r.uniform(50, 110))))}, also=("asleep",), cpus=r.randint(1, 2), ranks=r.randint(1, 2))


def slow_worker(r):
    o = base(r, workers=r.randint(2, 3), batch=r.choice([2, 4]))
    which = r.randrange(o["workers"])
    return Job("slow_worker", o | {"slow-worker": which, "slow-ms": per_item(o, r.uniform(120, 200))}, worker=which, remedies={"why only worker": {"slow-ms": 0}})


def worker_start(r):
    o = base(r, workers=r.randint(1, 3), epochs=r.randint(3, 5))
    return Job("worker_start", o | {"init-ms": r.randint(300, 800), "items": o["batch"] * 10}, ranks=r.randint(1, 2))


def worker_spawn(r):
    o = base(r, workers=1, epochs=3)
    return Job("worker_start", o | {"start": "spawn", "items": o["batch"] * 10})


def handover(r):
    o = base(r, workers=r.randint(1, 2), epochs=1)
    return Job("handover", o | {"tensors": r.randint(400, 900) // o["batch"] * 2, "batch": 2, "items": 60, "compute-ms": 1, "device-ms": 1},
               remedies={"few large": {"tensors": 1}})


def checkpoint(r):
    o = base(r)
    return Job("checkpoint", o | {"checkpoint-every": r.randint(3, 6), "checkpoint-mb": r.randint(96, 192)},
               remedies={"save": {"checkpoint-every": 0}})


def restore(r):
    o = base(r, epochs=1, items=60)
    return Job("restore", o | {"restore": True, "checkpoint-mb": r.randint(1200, 1800)})


def sync(r):
    o = base(r)
    return Job("sync", o | {"log-fsync": r.randint(60, 120)}, remedies={"fsync": {"log-fsync": 0}}, ranks=r.randint(1, 2))


def logging(r):
    o = base(r)
    return Job("own_io", o | {"log-lines": r.randint(8000, 14000)}, where="lines.txt", remedies={"": {"log-lines": 0}})


def listing(r):
    o = base(r)
    return Job("listing", o | {"list": r.randint(8000, 16000)}, remedies={"list of the files": {"list": 0}})


def validation(r):
    o = base(r)
    return Job("validation", o | {"validate": o["batch"] * r.randint(40, 80), "compute-ms": 20, "items": o["batch"] * 10}, remedies={"validate": {"validate": o["batch"] * 10}})


def main_thread(r):
    o = base(r, workers=1)
    return Job("heavy_main", o | {"main-ms": r.uniform(40, 80), "compute-ms": r.uniform(6, 10)}, remedies={"": {"main-ms": 0}})


def dense_embedding(r):
    o = base(r, workers=1)
    return Job("optimizer", o | {"rows": r.randint(150_000, 300_000)}, remedies={"sparse=True": {"sparse": True}})


def slow_rank(r):
    n = r.randint(2, 3)
    which = r.randrange(n)
    o = base(r, workers=1)
    return Job("slow_rank", o | {"slow-rank": which, "rank-ms": r.randint(30, 70)}, ranks=n, rank=which, remedies={"why this rank": {"rank-ms": 0}})


def rank_reads(r):
    n = r.randint(2, 3)
    which = r.randrange(n)
    o = base(r, workers=1)
    return Job("slow_reads", o | {"slow-rank": which}, also=("slow_mount",), mount={"read": round(per_item(o, r.uniform(60, 100)) / 2, 1), "parallel": 1, "bytes": 65536}, ranks=n,
               rank=which, remedies={"copy": {"mount": None}})


def rank_sleeps(r):
    n = r.randint(2, 4)
    which = r.randrange(n)
    o = base(r, workers=1)
    return Job("sleep", o | {"slow-rank": which, "sleep-ms": per_item(o, r.uniform(60, 100))}, also=("asleep",), ranks=n, rank=which)


def rank_saves(r):
    n = r.randint(2, 3)
    o = base(r, workers=1)
    return Job("checkpoint", o | {"slow-rank": 0, "checkpoint-every": r.randint(3, 6), "checkpoint-mb": r.randint(96, 192)}, ranks=n, rank=0,
               remedies={"save": {"checkpoint-every": 0}})


def ranks_few_workers(r):
    o = base(r, workers=1)
    return Job("sleep", o | {"sleep-ms": per_item(o, r.uniform(60, 100))}, also=("asleep",), ranks=2)


def ranks_saturated(r):
    o = base(r, workers=2)
    return Job("saturated", o, mount={"read": round(per_item(o, r.uniform(20, 35)), 1), "bytes": 65536}, ranks=2, where="mount",
               remedies={"faster storage": {"mount": None}})


def nothing(r):
    o = base(r, workers=2)
    return Job("nothing", o | {"device-ms": r.randint(40, 90), "decode-ms": per_item(o, r.uniform(0, 10))})


def nothing_ranks(r):
    o = base(r, workers=1)
    return Job("nothing", o | {"device-ms": r.randint(60, 100), "decode-ms": per_item(o, r.uniform(0, 5))}, ranks=2)


def nothing_cpu(r):
    o = base(r, workers=1)
    return Job("nothing", o | {"compute-ms": r.randint(40, 80), "decode-ms": per_item(o, r.uniform(0, 5))})


CLEAN = {f.__name__: f for f in (nothing, nothing_ranks, nothing_cpu)}
PLANTED = {f.__name__: f for f in (
    no_workers, few_workers, few_cores, quota, disturbed, prefetch, slow_reads, saturated, small_reads, small_files, metadata, reopens, rereads, slow_file,
    slow_file_of_mount, slow_mount, cold_cache, mapped, sleep, lock, network, slow_worker, worker_start, worker_spawn, handover, checkpoint, restore, sync,
    logging, listing, validation, main_thread, dense_embedding, slow_rank, rank_reads, rank_sleeps, rank_saves, ranks_few_workers, ranks_saturated)}
# Jobs that wait for batches, which other settings change.
LOADED = ["no_workers", "few_workers", "few_cores", "prefetch", "slow_reads", "saturated", "small_files", "slow_mount", "sleep", "network", "worker_start",
          "nothing", "nothing_cpu"]


def other_setting(job, r):
    """The job (which the kind of setting may change), a setting for `headrace what-if`, and the job with this setting."""
    o = job.options
    kinds = ["workers", "prefetch", "batch"]
    if job.cause == "slow_mount":
        kinds = ["mount"]
    elif job.mount and o["epochs"] > 1:
        kinds.append("cached")
    elif job.cause == "worker_start":
        kinds.append("persistent")
    kind = r.choice(kinds)
    if kind == "workers" or (o["workers"] == 0 and kind in ("prefetch", "cached")):
        n = r.choice([n for n in (1, 2, 3, 4, 6) if n != o["workers"]])
        return job, {"workers": n}, job.changed({"workers": n})
    if kind == "prefetch":
        n = r.choice([1, 3, 4, 8])
        return job, {"prefetch": n}, job.changed({"prefetch": n})
    if kind == "batch":
        n = o["batch"] * 2 if r.random() < 0.5 or o["batch"] < 2 else o["batch"] // 2
        return job, {"batch": n}, job.changed({"batch": n})
    if kind == "persistent":
        return job, {"persistent": "true"}, job.changed({"persistent": True})
    if kind == "cached":
        job = job.changed({"mount": job.mount | {"cached": 1}, "forget": True})
        return job, {"cached": "1GiB"}, job.changed({"forget": False})
    return job, {"mount": "MOUNT=/"}, job.changed({"mount": None})
