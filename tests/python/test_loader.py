#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real DataLoaders: every wait, fetch and step that there is, by loader and worker, and programs that go on as without."""

import os

import harness
from harness import FETCH, INPUT_WAIT, OPTIMIZER, commented
from loops import PRELUDE, Loops


def setUpModule():
    harness.need("torch")


class Loader(Loops):
    def test_no_workers(self):
        told, _ = self.program("""
loader = DataLoader(Data(12), 4)
for epoch in range(2):
    for batch in loader:
        train(batch)
""")
        self.assertEqual(self.waits(told, 0), [0, 1, 2, "end"] * 2)
        self.assertEqual({w["args"]["workers"] for w in told.of(INPUT_WAIT)}, {0})
        self.assertEqual(told.of(FETCH), [])  # a wait is the fetch
        self.assertEqual(len(told.of(OPTIMIZER)), 6)
        self.assertEqual(told.steps(), [0, 1, 2, 3, 4, 5])
        self.assertEqual(told.numbers("epoch"), [0, None, 1, None])
        waits = [(w["ns"], w["end_ns"]) for w in told.of(INPUT_WAIT)]
        for region in told.of(OPTIMIZER):
            self.assertFalse(any(begin < region["end_ns"] and region["ns"] < end for begin, end in waits))

    def test_a_step_for_each_batch(self):
        """Of whatever sampler, of a loader that nobody keeps, where an optimizer steps now and then, and one batch ahead."""
        loops = {
            "for b in DataLoader(Data(12), 4, sampler=DistributedSampler(Data(12), 1, 0)): train(b)": 3,
            "for b in DataLoader(Data(12), 4, sampler=WeightedRandomSampler([1.0] * 12, 12)): train(b)": 3,
            "for b in DataLoader(Data(12), batch_sampler=BatchSampler(SequentialSampler(Data(12)), 5, False)): train(b)": 3,
            "for b in DataLoader(Stream(12), 4): train(b)": 3,
            "for i, b in enumerate(DataLoader(Data(12), 2)): (i + 1) % 3 == 0 and train(b)": 6,
            "ahead(iter(DataLoader(Data(12), 4)))": 3,
        }
        for loop, batches in list(loops.items())[:: 1 if harness.LONG else 3]:
            told, _ = self.program(f"""
from torch.utils.data import BatchSampler, DistributedSampler, SequentialSampler, WeightedRandomSampler
def ahead(batches):
    b = next(batches)
    while b is not None:
        further = next(batches, None)
        train(b)
        b = further
for epoch in range(2):
    {loop}
""")
            with self.subTest(loop):
                self.assertEqual(told.steps(), list(range(2 * batches)))
                # The first one began with the first wait, and its epoch with iter().
                begin = min(w["ns"] for w in told.of(INPUT_WAIT))
                first = [c["at"] for c in told.calls if c["call"] == "step" and c["number"] == 0]
                self.assertLessEqual(first[0], begin)
                began = min(r["ns"] for r in told.of(name="DataLoader.__iter__"))
                self.assertLessEqual([c["at"] for c in told.calls if c["call"] == "epoch"][0], began)
            self.folder.cleanup()
            os.mkdir(self.dir)

    @harness.only_all
    def test_a_loader_that_keeps_one_iterator(self):
        """Ultralytics' InfiniteDataLoader, timm's MultiEpochsDataLoader: an epoch is a generator, whose end the loop may keep alive."""
        for opening in ("self.iterator = super().__iter__()", "self.iterator = None"):
            told, _ = self.program(f"""
class Repeat:
    def __init__(self, sampler):
        self.sampler = sampler
    def __iter__(self):
        while True:
            yield from iter(self.sampler)
class Infinite(DataLoader):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        object.__setattr__(self, "batch_sampler", Repeat(self.batch_sampler))
        {opening}
    def __len__(self):
        return len(self.batch_sampler.sampler)
    def __iter__(self):
        if self.iterator is None:
            self.iterator = self._get_iterator()
        for _ in range(len(self)):
            yield next(self.iterator)
loader, look = Infinite(Data(6), 2), Infinite(Data(4), 2)
for epoch in range(3):
    batches = enumerate(loader)
    for _, batch in batches:
        train(batch)
    with torch.no_grad():
        for batch in look:
            model(batch)
import inspect
print(inspect.isgeneratorfunction(Infinite.__iter__), inspect.isgenerator(iter(loader)))
""")
            with self.subTest(opening):
                self.assertEqual(self.waits(told, 0), [0, 1, 2] * 3)
                self.assertEqual(self.waits(told, 1), [0, 1] * 3)
                self.assertEqual(told.steps(), list(range(9)))
                self.assertEqual(told.numbers("epoch"), [0, None, 1, None, 2, None])
                # Between an epoch's end and the next one's begin lies the other loader, and no step.
                ends = [c["ns"] for c in told.calls if c["call"] == "epoch" and c["number"] == -(2**63)]
                looks = sorted(w["ns"] for w in told.of(INPUT_WAIT) if w["args"]["loader"] == 1)
                self.assertLess(ends[0], looks[0])
            self.folder.cleanup()
            os.mkdir(self.dir)

    def test_the_line_that_made_a_loader(self):
        """The innermost one of the program: a class or a library that makes loaders is further inside."""
        os.makedirs(f"{self.dir}/site-packages")
        self.write("site-packages/lib.py", "def make(cls, *args): return cls(*args)\n")
        told, _ = self.program("""
class Own(DataLoader):
    def __init__(self, *args):
        super().__init__(*args)    # OWN
sys.path.insert(0, os.path.abspath("site-packages"))
import lib
for loader in [
    DataLoader(Data(2)),           # PLAIN
    Own(Data(2)),
    lib.make(DataLoader, Data(2)), # LIB
]:
    for _ in range(2): list(loader)
""", env=self.environment(HEADRACE_STACKS=self.dir))
        line = commented(self.read("program.py"))
        made = [r["args"]["made"] for r in sorted(told.of(name="DataLoader.__iter__"), key=lambda r: r["ns"])]
        expected = [f"program.py:{line[name]}" for name in ("PLAIN", "OWN", "LIB") for _ in range(2)]
        self.assertEqual([one.split(" ")[0] for one in made], expected)
        self.assertEqual({one.split(" ")[1].split(".")[-1] for one in made}, {"main", "__init__"})

    def test_loops_without_a_loader(self):
        told, _ = self.program("""
for _ in range(4):
    train(torch.ones(1, 2))
""")
        self.assertEqual(told.steps(), [0, 1, 2, 3])
        self.assertEqual(told.numbers("epoch"), [])
        self.assertEqual(len(told.of(OPTIMIZER)), 4)

    def test_page_faults_of_steps_without_a_loader(self):
        """Each step touches pages that the page cache does not have; getrusage counts them, too."""
        told, out = self.program("""
import mmap, resource, time
with open("pages", "wb") as f:
    f.write(b"x" * (64 << 20))
    os.fsync(f.fileno())
fd = os.open("pages", os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
pages = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
pages.madvise(mmap.MADV_RANDOM)
def faults():
    return resource.getrusage(resource.RUSAGE_THREAD).ru_majflt
began = time.monotonic_ns()
train(torch.ones(1, 2))
time.sleep(0.006)
train(torch.ones(1, 2))
before, before_ns = faults(), time.monotonic_ns()
for step in range(3):
    for i in range(10):
        pages[(step * 10 + i) << 20]
    time.sleep(0.02)
    train(torch.ones(1, 2))
with open("counted", "w") as f:
    f.write(f"{faults() - before} {before_ns} {time.monotonic_ns() - began}")
""")
        with open(os.path.join(self.dir, "counted"), encoding="ascii") as f:
            counted, before_ns, lasted_ns = map(int, f.read().split())
        if counted == 0:
            self.skipTest("the page cache keeps the file")
        # The first steps may wait for pages of torch.
        spent = [step["args"] for step in told.of(OPTIMIZER) if step["args"] and step["ns"] > before_ns]
        self.assertEqual((out, len(spent)), ("", 3))
        self.assertEqual(sum(args["major_faults"] for args in spent), counted)
        for args in spent:
            self.assertTrue(0 < args["cpu_ns"] < args["since_ns"], args)
        self.assertLessEqual(sum(args["since_ns"] for args in spent), lasted_ns)

    @harness.only_all
    def test_fastais_optimizer(self):
        """A class of its own, which does not come from torch's."""
        os.makedirs(os.path.join(self.dir, "lib/fastai"))
        for name, text in (("__init__", ""), ("optimizer", "class Optimizer:\n    def step(self, closure=None):\n        pass\n")):
            with open(f"{self.dir}/lib/fastai/{name}.py", "w", encoding="utf-8") as out:
                out.write(text)
        told, _ = self.program("""
from fastai.optimizer import Optimizer
own = Optimizer()
for batch in DataLoader(Data(6), 2):
    own.step()
""", env=self.environment(PYTHONPATH=f"{harness.STARTUP}:{self.dir}/lib"))
        self.assertEqual(told.steps(), [0, 1, 2])
        self.assertEqual(len(told.of(OPTIMIZER)), 3)

    @harness.only_all
    def test_without_the_module_in_c(self):
        told, _ = self.program("""
for epoch in range(2):
    for batch in loader if epoch else (loader := DataLoader(Data(6), 2)):
        train(batch)
""", env=self.environment(FAKE_CTYPES="1"))
        self.assertEqual(told.steps(), [0, 1, 2, 3, 4, 5])
        self.assertEqual(told.numbers("epoch"), [0, None, 1, None])

    @harness.only_all
    def test_pickles_names_and_what_a_loader_looks_like(self):
        told, out = self.program("""
import copy, inspect
loader = DataLoader(Data(4), 2)
again = pickle.loads(pickle.dumps(loader))
print(sorted(vars(loader)) == sorted(vars(again)), "_headrace" in str(vars(loader)))
print(len(list(again)), len(list(copy.copy(loader))))
print(inspect.signature(DataLoader), inspect.signature(DataLoader.__iter__), inspect.signature(torch.optim.SGD.step))
print(inspect.signature(torch.save), torch.save.__module__, pickle.loads(pickle.dumps(torch.save)) is torch.save)
state = pickle.loads(pickle.dumps(optimizer))
state.step()
print(type(iter(loader)).__name__, len(loader), DataLoader.__init__.__qualname__, hash(loader) == hash(loader))
try:
    pickle.dumps(iter(loader))
except NotImplementedError as error:
    print("not pickled")
class Mine(DataLoader):
    def __iter__(self):
        for batch in super().__iter__():
            yield batch, 1
print(len(list(Mine(Data(4), 2))))
""")
        self.assertIn("not pickled", out)
        self.assertEqual(self.waits(told, 1), [0, 1, "end"])  # `again` is the second that was there

    @harness.only_all
    def test_an_iterators_state_that_is_pickled(self):
        """Of a class of one's own: nothing of ours is needed to read it, and a copy goes on."""
        told, out = self.program("""
import copy
from torch.utils.data import dataloader as d
class Own(d._SingleProcessDataLoaderIter):
    def __getstate__(self):
        return dict(self.__dict__)
class Owns(DataLoader):
    def _get_iterator(self):
        return Own(self)
iterator = iter(Owns(Data(8), 2))
print(next(iterator), next(copy.copy(iterator)))
state = {k: v for k, v in vars(iterator).items() if k not in ("_sampler_iter", "_profile_name") and not k.startswith("_pg")}
text = pickle.dumps(state)
print(b"headrace.steps" in text or b"headrace.loader" in text)
again = copy.copy(iterator)
again.__dict__.update(pickle.loads(text))
print(next(again))
""")
        self.assertEqual(out.count("tensor"), 3)
        self.assertIn("False", out)
        self.assertEqual(len(told.of(INPUT_WAIT)), 3)

    @harness.only_all
    def test_what_torch_compiles(self):
        """As without marks: no graph breaks, warnings (errors here) or exceptions of ours."""
        harness.need("torch.compiler")
        told, out = self.program("""
warnings.filterwarnings("error", message=".*headrace.*")
import logging
logging.disable(logging.WARNING)  # torch's own
try:
    import headrace
    region = headrace.region
except ImportError:  # the run without
    import contextlib
    region = lambda name: contextlib.nullcontext()
def loop(x):
    total = 0
    for batch in DataLoader(Data(6), 2):
        total = total + batch.sum() + x
    return total
def within(x):
    with region("within"):
        return x * 2
print(torch.compile(loop, backend="eager")(torch.ones(1)))
print(torch.compile(within, backend="eager", fullgraph=True)(torch.ones(1)))
model(torch.ones(1, 2)).sum().backward()
print(torch._dynamo.explain(lambda: optimizer.step())().graph_break_count)
for batch in DataLoader(Data(4), 2):
    train(batch)
""")
        self.assertEqual(told.steps(), [0, 1])

    @harness.only_all
    def test_what_a_signals_handler_raises(self):
        """Wherever it comes, it goes on to the program, and no wait or optimizer's step is left open: what is begun next is as deep as ever."""
        told, out = self.program("""
import signal, time
class Plain(torch.optim.Optimizer):
    def step(self):
        pass
def late(*_):
    raise TimeoutError
signal.signal(signal.SIGALRM, late)
loader, plain = DataLoader([1.0] * 40, None), Plain(model.parameters(), {})
came = 0
for times in range(600):
    try:
        signal.setitimer(signal.ITIMER_REAL, 5e-4 + 1e-5 * (times % 300))
        until = time.monotonic() + 300
        while time.monotonic() < until:
            for batch in loader:
                plain.step()
    except TimeoutError:
        came += 1
for batch in loader:
    plain.step()
print(came)
""")
        self.assertEqual(out, "600\n")
        deepest = {}
        for call in told.calls:
            if call["call"] == "begin":
                deepest[call["name"]] = max(call["depth"], deepest.get(call["name"], 0))
        self.assertEqual(deepest, {"DataLoader.__iter__": 1, "DataLoader.__next__": 1, "Optimizer.step": 1})

    @harness.only_all
    def test_loops_in_threads(self):
        """The steps and epochs are those of one of them at a time."""
        told, _ = self.program("""
import threading
def work():
    loader, own = DataLoader(Data(40), 2), torch.nn.Linear(2, 1)
    sgd = torch.optim.SGD(own.parameters(), lr=0.1)
    for epoch in range(3):
        for batch in loader:
            own(batch).sum().backward()
            sgd.step()
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""")
        self.assertEqual(len(told.of(OPTIMIZER)), 6 * 3 * 20)
        epochs = len(told.numbers("epoch")) // 2
        self.assertGreaterEqual(epochs, 3)
        self.assertEqual(told.steps(), list(range(20 * epochs)))

    def test_optimizers_of_ones_own(self):
        told, _ = self.program("""
class Outer(torch.optim.SGD):
    def step(self, closure=None):
        self.inner.step()
        return super().step(closure)
outer = Outer(model.parameters(), lr=0.1)
outer.inner = torch.optim.Adam(model.parameters())
model(torch.ones(1, 2)).sum().backward()
print(outer.step(), outer.step(lambda: 3.0))
try:
    outer.step(lambda: 1 / 0)
except ZeroDivisionError:
    print("zero")
schedule = torch.optim.lr_scheduler.StepLR(outer, 1)
outer.step()
schedule.step()
""")
        self.assertEqual(len(told.of(OPTIMIZER)), 3)  # not of the closure that failed
        self.assertEqual({r["depth"] for r in told.of(OPTIMIZER)}, {1})

    def test_what_optimizers_update(self):
        """An embedding of which a batch uses 3 of 5,000 rows, in one optimizer; a dense and a sparse parameter in others."""
        recorded, _ = self.program("""
words = torch.nn.Embedding(5000, 8)
adam = torch.optim.Adam([{"params": words.parameters()}, {"params": model.parameters()}])
few = torch.nn.Embedding(5000, 8, sparse=True)
lazy = torch.optim.SparseAdam(few.parameters())
for _ in range(3):
    (words(torch.tensor([0, 7, 4999])).sum() + few(torch.tensor([1])).sum() + model(torch.ones(1, 2)).sum()).backward()
    for each in adam, lazy, optimizer:
        each.step()
""")
        marks = [call["args"] for call in recorded.calls if call["call"] == "mark" and call["name"] == "optimizer"]
        self.assertEqual([m["type"] for m in marks], ["Adam", "SparseAdam", "SGD"])
        self.assertEqual([m["elements"] for m in marks], [40003, 40000, 3])
        # Each fifth row is looked at: 0, but neither 7 nor 4999.
        self.assertEqual([m["idle"] for m in marks], [40000 * 999 // 1000, 0, 0])
        self.assertEqual([(m.get("rows"), m.get("columns")) for m in marks], [(5000, 8), (None, None), (None, None)])

    def test_padding(self):
        """Of batches as Hugging Face's tokenizers make them, in the loop that trains: 3 rows, padded to 10, with 2, 3 and 6 tokens."""
        recorded, _ = self.program("""
class Texts(Dataset):
    def __len__(self):
        return 90
    def __getitem__(self, i):
        return {"input_ids": torch.ones(10), "attention_mask": torch.tensor([1] * (2, 3, 6)[i % 3] + [0] * (10 - (2, 3, 6)[i % 3]))}
for _ in DataLoader(Texts(), 3):
    pass
for batch in DataLoader(Texts(), 3):
    train(batch["input_ids"][:, :2])
""")
        marks = [call["args"] for call in recorded.calls if call["call"] == "mark" and call["name"] == "padding"]
        self.assertEqual(marks, [{"tokens": 30, "padded": 19, "beyond": 12}] * 19)  # the first of 20 batches came before the first step

    def test_no_descriptor_stays_open(self):
        """Of the files in /proc that a fetch reads."""
        _, out = self.program("""
import os, time
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 20
    def __getitem__(self, i): time.sleep(0.03); return float(i)
def passes():
    for batch in DataLoader(Slow(), 1): pass
    return len(os.listdir("/proc/self/fd"))
print(passes() - passes())
""")
        self.assertEqual(out, "0\n")

    def test_closures(self):
        """What a closure computes is no part of the step (Lightning computes all in it). LBFGS calls it several times."""
        told, out = self.program("""
def closure(x=1.0):
    optimizer.zero_grad()
    loss = (model(torch.ones(1, 2)) - x).square().sum()
    loss.backward()
    return loss
closure.note = 7
class Notes(torch.optim.SGD):
    def step(self, closure):
        print(closure.note)
        return super().step(closure=closure)
for optimizer in torch.optim.SGD(model.parameters(), lr=0.1), Notes(model.parameters(), lr=0.1), torch.optim.LBFGS(model.parameters(), max_iter=3):
    print(optimizer.step(closure).item() >= 0)
""")
        self.assertEqual(out.split(), ["True", "7", "True", "True"])
        steps, passes = told.of(OPTIMIZER), [r for r in told.regions if r["name"] == "backward"]
        self.assertEqual(len(steps), len(passes))
        self.assertGreaterEqual(len(steps), 4)
        for step, backward in zip(steps, passes):  # each continues after its closure
            self.assertEqual((step["depth"], backward["depth"]), (1, 1))
            self.assertGreaterEqual(step["ns"], backward["end_ns"])

    def test_children_that_train(self):
        told, _ = self.program("""
loader = DataLoader(Data(4), 2)
for batch in loader:
    train(batch)
sys.stdout.flush()
for batch in loader:
    train(batch)
    pid = os.fork()
    if pid == 0:
        for batch in loader:
            train(batch)
        os._exit(0)
    os.waitpid(pid, 0)
    break
import torch.multiprocessing
""")
        parent, child = sorted({c["pid"] for c in told.calls})
        numbers = {pid: told.steps(pid) for pid in (parent, child)}
        if told.calls[0]["pid"] != parent:  # pids have wrapped around
            parent, child = child, parent
        self.assertEqual(numbers, {parent: [0, 1, 2], child: [0, 1]})

    def test_threads(self):
        told, _ = self.program("""
import threading
def work():
    loader = DataLoader(Data(40), 2)
    for batch in loader:
        model(batch)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""")
        self.assertEqual(len(told.of(INPUT_WAIT)), 4 * 21)
        self.assertEqual({len([w for w in told.of(INPUT_WAIT) if w["args"]["loader"] == n]) for n in range(4)}, {21})

    def test_steps_of_the_programs_own(self):
        told, _ = self.program("""
try:
    import headrace
except ImportError:  # the run without
    headrace = None
loader = DataLoader(Data(6), 2)
for epoch in range(2):
    if headrace:
        headrace.epoch(10 + epoch)
    for i, batch in enumerate(loader):
        if headrace:
            headrace.step(100 * epoch + i)
        train(batch)
if headrace:
    headrace.step(None)
    headrace.epoch(None)
""")
        self.assertEqual(told.numbers("step"), [0, 1, 2, 100, 101, 102, None])
        self.assertEqual(told.numbers("epoch"), [10, 11, None])

    def test_off(self):
        text = PRELUDE + "    for batch in DataLoader(Data(4), 2):\n        train(batch)\nmain()\n"
        self.run_python(text, env=self.environment(HEADRACE_PYTHON="off"))
        self.assertFalse(os.path.exists(self.told_at))


if __name__ == "__main__":
    harness.main()
