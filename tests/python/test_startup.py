#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The start-up module: programs run as without it, what it hides runs, and modules are marked whoever imports them."""

import glob
import os
import subprocess
import sys
import textwrap

import harness
from harness import MODULES, PYTHON, STARTUP, Case

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from precise import agree  # pylint: disable=wrong-import-position

# Others that this machine happens to have: the module is run by whatever Python a job starts.
PYTHONS = sorted(p for p in glob.glob("/usr/bin/python[23]*.*[0-9]") + glob.glob("/root/.pyenv/versions/*/bin/python")
                 if os.access(p, os.X_OK))

# A stand-in for torch, so that what is marked, and when, can be seen in any Python.
SERIALIZATION = """
import sys
LOADER = type(__loader__).__name__, type(getattr(__spec__, "loader", None)).__name__
def save(obj, f):
    "doc"
    return f
"""

SHOW = """
import sys
print({"path": sys.path[1:], "modules": sorted(sys.modules), "flags": list(sys.flags)})
"""


class Startup(Case):
    def torch(self):
        """A folder with something called torch."""
        os.makedirs(os.path.join(self.dir, "lib/torch"))
        for name, text in (("__init__", "from .serialization import save\n"), ("serialization", SERIALIZATION)):
            with open(f"{self.dir}/lib/torch/{name}.py", "w", encoding="utf-8") as out:
                out.write(text)
        return os.path.join(self.dir, "lib")

    def site(self, text):
        """A folder with a sitecustomize of somebody else's."""
        folder = os.path.join(self.dir, "site")
        os.makedirs(folder)
        with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as out:
            out.write(text)
        return folder

    def run_all(self, *command, env):
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False, cwd=self.dir)
        return done.returncode, done.stdout, done.stderr

    def test_the_program_sees_its_own_path_and_modules(self):
        for more in ("", ":" + self.dir):
            env = self.environment(PYTHONPATH=STARTUP + more)
            alone = self.environment(startup=False, fake=False, **({"PYTHONPATH": self.dir} if more else {}))
            mine = eval(self.run_python(SHOW, env=env))
            theirs = eval(self.run_python(SHOW, env=alone))
            mine["modules"] = [m for m in mine["modules"] if m != "sitecustomize"]
            theirs["modules"] = [m for m in theirs["modules"] if m != "sitecustomize"]
            self.assertEqual(mine, theirs)

    def test_flags_that_leave_site_or_the_environment_out(self):
        for flags in (["-I"], ["-E"], ["-S"], ["-s"], ["-B", "-O"]):
            out = self.run_python("import sys; print(any(type(f).__name__ == 'HeadraceFinder' for f in sys.meta_path))", *flags)
            self.assertEqual(out.strip(), str(flags in (["-s"], ["-B", "-O"])), flags)

    def test_the_hidden_module_runs_and_is_the_one_that_is_imported(self):
        folder = self.site("import sys; FOLDER = __file__; sys.hidden = getattr(sys, 'hidden', 0) + 1\n")
        env = self.environment(PYTHONPATH=f"{STARTUP}:{folder}")
        out = self.run_python("import sitecustomize, sys; print(sitecustomize.FOLDER, sys.hidden)", env=env)
        self.assertEqual(out.split(), [os.path.join(folder, "sitecustomize.py"), "1"])

    def test_off_and_what_it_hides_runs_all_the_same(self):
        folder = self.site("import sys; sys.hidden = 1\n")
        env = self.environment(PYTHONPATH=f"{STARTUP}:{folder}", HEADRACE_PYTHON="off")
        out = self.run_python("import sys; print(sys.hidden, [type(f).__name__ for f in sys.meta_path])", env=env)
        self.assertTrue(out.startswith("1 "), out)
        self.assertNotIn("Headrace", out)

    def test_a_hidden_module_that_fails_says_what_it_would_have_said(self):
        for text in ("raise ValueError('mine')", "import nothing_like_this", "raise ImportError('x', name='sitecustomize')",
                     "syntax error"):
            folder = self.site(text)
            said = [self.run_all(PYTHON, "-c", "print(1)", env=self.environment(PYTHONPATH=path, fake=False))
                    for path in (f"{STARTUP}:{folder}", folder)]
            self.assertEqual(said[0], said[1], text)
            os.remove(os.path.join(folder, "sitecustomize.py"))
            os.rmdir(folder)

    def test_whatever_python_a_job_starts(self):
        folder = self.site("import sys; sys.hidden = 1\n")
        for python in PYTHONS:
            for program in ("import sys; print(sys.hidden)", "import json, subprocess, sys; print(sys.hidden)"):
                env = self.environment(PYTHONPATH=f"{STARTUP}:{folder}")
                self.assertEqual(self.run_all(python, "-c", program, env=env), (0, "1\n", ""), python)

    def test_a_module_is_marked_in_whatever_python(self):
        lib = self.torch()
        program = ("import torch, torch.serialization as s, inspect; "
                   "print(torch.save(1, 'p'), torch.save is s.save, s.LOADER, type(s.__loader__).__name__,"
                   " type(s.__spec__.loader).__name__, torch.save.__doc__, inspect.signature(torch.save))")
        for python in (p for p in PYTHONS if "2.7" not in p):
            if os.path.exists(self.told_at):
                os.remove(self.told_at)
            said = [self.run_all(python, "-c", program, env=env) for env in
                    (self.environment(PYTHONPATH=f"{STARTUP}:{lib}"), self.environment(PYTHONPATH=lib, fake=False))]
            self.assertEqual(said[0], said[1], python)
            self.assertEqual([(r["name"], r["kind"], r["args"]) for r in self.told().regions],
                             [("torch.save", harness.CHECKPOINT, {"path": "p"})], python)

    def test_without_the_library_nothing_is_marked_nor_imported(self):
        lib = self.torch()
        env = self.environment(PYTHONPATH=f"{STARTUP}:{lib}", fake=False)
        out = self.run_python("""
            import sys, torch
            print(hasattr(torch.save, "__wrapped__"), "ctypes" in sys.modules, type(sys.meta_path[0]).__name__)
        """, env=env)
        self.assertEqual(out.split()[:2], ["False", "False"])
        self.assertNotIn("Headrace", out)

    def test_a_program_with_modules_that_are_called_like_ours(self):
        lib = self.torch()
        with open(os.path.join(self.dir, "lib/headrace.py"), "w", encoding="utf-8") as out:
            out.write("print('mine')\n")
        env = self.environment(PYTHONPATH=f"{STARTUP}:{lib}")
        out = self.run_python("import torch; torch.save(1, 'p'); import headrace; print(headrace.__file__)", env=env)
        self.assertEqual(out.split(), ["mine", os.path.join(lib, "headrace.py")])
        self.assertEqual(len(self.told().regions), 1)

    def test_the_package_is_there(self):
        out = self.run_python("import headrace, sys; print(headrace.present, any('headrace' in p for p in sys.path))")
        self.assertEqual(out.split(), ["True", "False"])

    def test_other_finders_in_front_and_behind(self):
        lib = self.torch()
        program = """
            import importlib.util, sys

            class Other:
                busy = False
                def find_spec(self, name, path=None, target=None):
                    if self.busy or not name.startswith("torch"):
                        return None
                    self.busy = True
                    try:
                        spec = importlib.util.find_spec(name)
                    finally:
                        self.busy = False
                    seen.append(name)
                    return spec

            seen = []
            sys.meta_path.insert(0, Other())
            import torch
            print(seen, torch.save(1, "p"), type(torch.serialization.__loader__).__name__)
        """
        out = self.run_python(program, env=self.environment(PYTHONPATH=f"{STARTUP}:{lib}"))
        self.assertEqual(out, "['torch', 'torch.serialization'] p SourceFileLoader\n")
        self.assertEqual(len(self.told().regions), 1)

    def test_finders_that_change_what_others_found(self):
        """As patching libraries do, in front of headrace's finder and behind it, and with loaders of any class."""
        program = textwrap.dedent("""
            import importlib.machinery, importlib.util, sys

            def attribute(spec):
                real = spec.loader.exec_module
                def exec_module(module):
                    real(module)
                    print("ran", module.__name__, module.LOADER)
                spec.loader.exec_module = exec_module
                return spec

            class Chained:
                def __init__(self, loader): self.loader = loader
                def __getattr__(self, name): return getattr(self.loader, name)
                def create_module(self, spec): return self.loader.create_module(spec)
                def exec_module(self, module): self.loader.exec_module(module)

            def chained(spec):
                spec.loader = Chained(spec.loader)
                return spec

            def respec(spec):
                return importlib.util.spec_from_loader(spec.name, Chained(spec.loader), origin=spec.origin)

            class Slots:
                __slots__ = ("loader", "create_module")
                name = "of the class"
                def __init_subclass__(cls): raise TypeError("final")
                def exec_module(self, module): self.loader.exec_module(module)

            def slots(spec):
                loader = Slots()
                loader.loader, loader.create_module = spec.loader, lambda spec: None
                spec.loader = loader
                return spec

            def static(spec):
                class Static:
                    create_module = staticmethod(spec.loader.create_module)
                    exec_module = staticmethod(spec.loader.exec_module)
                spec.loader = Static
                return spec

            def others(name, path):
                return importlib.util.find_spec(name)

            def alone(name, path):
                return importlib.machinery.PathFinder.find_spec(name, path)

            class Finder:
                busy = False
                def find_spec(self, name, path=None, target=None):
                    if self.busy or name != "torch.serialization":
                        return None
                    self.busy = True
                    try:
                        return change(find(name, path))
                    finally:
                        self.busy = False

            change, find, at = eval(sys.argv[1]), eval(sys.argv[2]), int(sys.argv[3])
            sys.meta_path.insert(at, Finder())
            import torch.serialization
            import json.tool
            print(torch.serialization.save(1, "p"), type(torch.serialization.__loader__).__name__)
        """)
        lib = self.torch()
        self.write("finders.py", program)
        envs = self.environment(PYTHONPATH=f"{STARTUP}:{lib}"), self.environment(PYTHONPATH=lib, fake=False)
        for change in ("attribute", "chained", "respec", "slots", "static", "(lambda spec: spec)"):
            for find in ("others", "alone"):
                for at in ("0", "1"):
                    with self.subTest(change=change, find=find, at=at):
                        if os.path.exists(self.told_at):
                            os.remove(self.told_at)
                        said = [self.run_all(PYTHON, "finders.py", change, find, at, env=env) for env in envs]
                        self.assertEqual(said[0], said[1])
                        self.assertEqual(said[0][0], 0, said[0])
                        self.assertEqual([call["call"] for call in self.told().calls], ["begin", "end"])

    def test_marks_that_cannot_be_made_are_told(self):
        lib = self.torch()
        behind = "import importlib.util as u; u.find_spec('torch'); sys.meta_path.insert(0, m.PathFinder)"
        late = "no import followed that of the module, which another finder had found"
        os.makedirs(f"{lib}/torch/utils/data")
        self.write("lib/torch/utils/data/dataloader.py", "")
        lacks = "torch.utils.data.dataloader: AttributeError: .* has no attribute '_BaseDataLoaderIter'"
        for text, expected in ((behind, [f"torch.serialization: {late}", f"torch: {late}"]), ("import torch.utils.data.dataloader", [lacks])):
            program = f"import importlib.machinery as m, sys; {text}; import torch.serialization"
            self.run_python(program, env=self.environment(PYTHONPATH=f"{STARTUP}:{lib}"))
            told = sorted(self.told().calls, key=lambda call: call["args"]["reason"])
            self.assertEqual([(call["call"], call["name"], call["domain"]) for call in told], [("mark", "marks", "headrace")] * len(expected))
            for call, reason in zip(told, expected):
                self.assertRegex(call["args"]["reason"], f"^{reason}")
            os.remove(self.told_at)

    def test_a_module_that_fails_and_one_that_is_not_there(self):
        lib = self.torch()
        with open(f"{lib}/torch/serialization.py", "w", encoding="utf-8") as out:
            out.write("raise OSError('mine')\n")
        program = """
            for i in range(2):
                try:
                    import torch
                except OSError as error:
                    print(error)
            try:
                import keras.callbacks
            except ImportError as error:
                print(error.name)
        """
        out = self.run_python(program, env=self.environment(PYTHONPATH=f"{STARTUP}:{lib}"))
        self.assertEqual(out.split(), ["mine", "mine", "keras"])

    def test_a_module_that_is_reloaded_is_marked_once(self):
        lib = self.torch()
        program = "import importlib, torch.serialization as s; importlib.reload(s); s.save(1, 'p'); print(s.LOADER)"
        env = self.environment(PYTHONPATH=f"{STARTUP}:{lib}")
        self.assertIn("SourceFileLoader", self.run_python(program, env=env))
        self.assertEqual(len(self.told().regions), 1)

    def test_finders_that_are_wrapped_or_replaced_and_files_that_may_not_be_read(self):
        """Whatever a program does to imports, what it imports is there; how many regions one torch.save then makes."""
        lib = self.torch()
        says = "print(torch.save(1, 'p'))"
        hermetic = ("import sys, importlib.machinery as m, inspect, json\n"
                    "class Only:\n"
                    "    @staticmethod\n"
                    "    def find_spec(name, path=None, target=None):\n"
                    "        if name.startswith('torch'):\n"
                    f"            return m.PathFinder.find_spec(name, path or [{lib!r}])\n"
                    "sys.meta_path[:] = [f for f in sys.meta_path if f is not m.PathFinder] + [Only]\n"
                    "import torch; print(torch.save(1, 'p'))\n")
        wrapped = ("import sys\n"
                   "class Wrapper:\n"
                   "    def __init__(self, finder): self.finder = finder\n"
                   "    def find_spec(self, *args): return self.finder.find_spec(*args)\n"
                   "    def __getattr__(self, name): return getattr(self.finder, name)\n"
                   "sys.meta_path = [Wrapper(f) for f in sys.meta_path]\n"
                   "import torch; print(torch.save(1, 'p'))\n")
        denied = ("import sys\n"
                  "def hook(event, args):\n"
                  f"    if event == 'open' and str(args[0]).startswith({MODULES!r}): raise PermissionError(event)\n"
                  "sys.addaudithook(hook)\n"
                  "import torch; " + says + "\n")
        guarded = ("import builtins, sys\n"
                   "real = builtins.__import__\n"
                   "def guard(name, *args, **kwargs):\n"
                   "    if 'headrace' in name: raise ImportError(name)\n"
                   "    return real(name, *args, **kwargs)\n"
                   "builtins.__import__ = guard\n"
                   "import torch; " + says + "\n")
        failing = ("import sys\n"
                   "class Fails:\n"
                   "    def find_spec(self, name, path=None, target=None):\n"
                   "        if name == 'torch': raise KeyError('mine')\n"
                   "sys.meta_path.insert(1, Fails())\n"
                   "try:\n    import torch\nexcept KeyError as error:\n    print(error)\n")
        for program, regions in ((hermetic, 1), (wrapped, 0), (denied, 0), (guarded, 0), (failing, 0)):
            with self.subTest(program):
                if os.path.exists(self.told_at):
                    os.remove(self.told_at)
                said = [self.run_all(PYTHON, "-c", program, env=env) for env in
                        (self.environment(PYTHONPATH=f"{STARTUP}:{lib}"), self.environment(PYTHONPATH=lib, fake=False))]
                self.assertEqual(said[0], said[1])
                self.assertEqual(said[0][0], 0, said[0])
                self.assertEqual(len(self.told().regions) if os.path.exists(self.told_at) else 0, regions)

    def test_another_module_that_is_called_as_our_inner_one(self):
        """The program's own, or what is left of another one that was installed by itself."""
        lib = self.torch()
        os.makedirs(f"{lib}/_headrace")
        for text in ("x = 1", "x = 1\nSTARTUP = -1"):
            with open(f"{lib}/_headrace/__init__.py", "w", encoding="utf-8") as out:
                out.write(text)
            env = self.environment(PYTHONPATH=f"{STARTUP}:{lib}")
            out = self.run_python("import _headrace, torch; print(_headrace.x, torch.save(1, 'p'))", env=env)
            self.assertEqual(out, "1 p\n")
            self.assertFalse(os.path.exists(self.told_at))

    def test_a_loader_that_is_looked_at_before_the_module_runs(self):
        lib = self.torch()
        program = """
            import copy, importlib.abc, importlib.machinery, importlib.util, pickle, sys, torch, types
            del sys.modules["torch.serialization"]
            spec = importlib.util.find_spec("torch.serialization")
            loader = spec.loader
            other = importlib.machinery.SourceFileLoader("torch.serialization", loader.path)
            print(type(loader).__name__, isinstance(loader, importlib.machinery.SourceFileLoader), loader == other,
                  isinstance(loader, importlib.abc.InspectLoader), sorted(vars(loader)) == sorted(vars(other)))
            print(copy.copy(loader) == copy.deepcopy(loader) == pickle.loads(pickle.dumps(loader)) == other)
            print("def save" in loader.get_source(spec.name), loader.is_package(spec.name), copy.deepcopy(spec) == spec)
            bare = types.ModuleType("torch.serialization")
            loader.exec_module(bare)
            print(bare.save(1, "bare"), bare.LOADER, importlib.util.find_spec("torch.serialization") == spec)
            module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
            importlib.util.LazyLoader(loader).exec_module(module)
            print(module.save(1, "lazy"), module.LOADER)
        """
        out = [self.run_python(program, env=env) for env in
               (self.environment(PYTHONPATH=f"{STARTUP}:{lib}"), self.environment(PYTHONPATH=lib, fake=False))]
        self.assertEqual(out[0], out[1])
        self.assertEqual([r["args"] for r in self.told().regions], [{"path": "bare"}, {"path": "lazy"}])

    def test_two_of_them_on_the_path(self):
        other = os.path.join(self.dir, "other")
        os.makedirs(other)
        os.symlink(os.path.join(STARTUP, "sitecustomize.py"), os.path.join(other, "sitecustomize.py"))
        lib = self.torch()
        env = self.environment(PYTHONPATH=f"{STARTUP}:{other}:{STARTUP}:{lib}")
        program = "import sys, torch; torch.save(1, 'p'); print([p for p in sys.path if 'lib' not in p][1:])"
        out = self.run_python(program, env=env)
        self.assertEqual(out.strip(), "[]")
        self.assertEqual(len(self.told().regions), 1)


class Cost(Case):
    """hr_precise: the start-up module adds at most 3 ms to the 12 ms of a program that does nothing."""

    def least(self, runs=5, **more):
        """The least CPU time of some runs: other work on the machine can only add to it."""
        env, took = self.environment(PYTHONPYCACHEPREFIX=f"{self.dir}/cache", **more), []
        for _ in range(runs):
            pid = os.posix_spawn(PYTHON, [PYTHON, "-c", "pass"], env)
            _, status, used = os.wait4(pid, 0)
            self.assertEqual(status, 0)
            took.append(used.ru_utime + used.ru_stime)
        return min(took)

    def test_a_program_that_does_nothing(self):
        with_it = {"PYTHONDONTWRITEBYTECODE": ""}  # the folder holds bytecode after the first run
        self.least(runs=1, **with_it)
        agree(self, lambda: (self.least(**with_it), self.least(startup=False)), 0.25)


if __name__ == "__main__":
    harness.main()
