# SPDX-License-Identifier: Apache-2.0
"""Spack recipe for the headrace of the checkout that contains this file; docs/sites.md describes its use."""

import os

from spack.package import *

try:  # from Spack 1.0 on build systems are in the repository of packages
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:
    pass

CHECKOUT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..", ".."))


class Headrace(CMakePackage):
    """Records every I/O operation of training jobs, and answers questions about them."""

    homepage = git = f"file://{CHECKOUT}"

    license("Apache-2.0")

    version("main", branch="main")

    generator("ninja")

    depends_on("c", type="build")
    depends_on("cmake@3.21:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("protobuf-c", type=("build", "link"))  # includes its compiler
    depends_on("isa-l")
    depends_on("libuv")
    depends_on("openssl@3:")
    depends_on("curl@7.66:")
    depends_on("xxhash")  # header only
    depends_on("zstd")
    depends_on("sqlite@3.40:")

    def cmake_args(self):
        return [self.define("BUILD_TESTING", False)]
