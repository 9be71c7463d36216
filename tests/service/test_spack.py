#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The recipe for Spack, read by a stand-in for it: Spack itself is in no registry of packages that tests may use."""

import os
import re
import runpy
import sys
import types
import unittest

SOURCE = os.environ["HR_SOURCE"]
# What configuring asks for, by Spack's names.
SPACK = {"PkgConfig": "pkgconfig", "PROTOC_C": "protobuf-c", "libuv": "libuv", "libzstd": "zstd", "libisal": "isa-l",
         "libprotobuf-c": "protobuf-c", "openssl": "openssl", "libcurl": "curl", "sqlite3": "sqlite", "Threads": None}


class Recipe(unittest.TestCase):
    def test_dependencies(self):
        wanted = []
        spack = types.ModuleType("spack.package")
        spack.CMakePackage = type("CMakePackage", (), {"define": staticmethod(lambda name, value: f"-D{name}={value}")})
        spack.depends_on = lambda spec, type=None: wanted.append(spec)
        spack.version = spack.license = spack.generator = lambda *words, **more: None
        sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": spack})
        recipe = runpy.run_path(f"{SOURCE}/packaging/spack/packages/headrace/package.py")["Headrace"]
        self.assertEqual(recipe.git, f"file://{os.path.abspath(SOURCE)}")
        self.assertEqual(recipe().cmake_args(), ["-DBUILD_TESTING=False"])
        with open(f"{SOURCE}/CMakeLists.txt", encoding="utf-8") as f:
            text = f.read()
        asked = re.findall(r"^(?:find_package|find_program)\((\w+)|^pkg_check_modules\(.* ([\w.-]+)(?:>=[\d.]+)?\)", text, re.M)
        needs = {SPACK[one or other] for one, other in asked} - {None}
        minimum = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", text)[1]
        self.assertEqual({spec.split("@")[0] for spec in wanted} - {"c", "cmake", "xxhash"}, needs)
        self.assertIn(f"cmake@{minimum}:", wanted)


if __name__ == "__main__":
    unittest.main()
