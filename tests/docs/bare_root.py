# SPDX-License-Identifier: Apache-2.0
"""A bare Debian 12 root with the source tree in it: a fresh machine on which a person cloned headrace.

Nothing is installed in it but what mmdebstrap's smallest variant installs. Downloaded packages are kept in the cache folder of
debian_root.py, so that only the first run needs a mirror. DuckDB comes from this checkout.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "service"))
import debian_root  # pylint: disable=wrong-import-position

SUITE = "bookworm"
CHECKOUT = SOURCE  # the same path, so that objects of the build of this machine fit
DUCKDB_CACHE = "/root/duckdb"
ENVIRONMENT = {"HOME": "/root", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
               "HEADRACE_DUCKDB_CACHE": DUCKDB_CACHE, "HEADRACE_BARE_ROOT": "1"}
# In a mount, a pid and a host name space of its own: everything that a command leaves running ends with it.
ENTER = """
set -e
hostname bare
mount --make-rprivate /
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
mount --rbind /sys "$0/sys"
mount --bind "$1/archives" "$0/var/cache/apt/archives"
mount --bind "$1/lists" "$0/var/lib/apt/lists"
shift
exec chroot "$0" "$@"
"""


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


class BareRoot:
    """The root in `folder`; holds the cached packages until close().

    With `build`, the checkout also has the objects of this build folder: commands that build only compile what differs."""

    def __init__(self, folder, build=None):
        bare = debian_root.cached(f"root-bare-{SUITE}", SUITE, "--variant=minbase")
        self.path = os.path.join(folder, "root")
        self.cache = os.path.join(os.path.dirname(bare), f"apt-{SUITE}")
        for name in ("archives", "lists"):
            os.makedirs(os.path.join(self.cache, name, "partial"), exist_ok=True)
        self.lock = os.open(self.cache, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        subprocess.run(["cp", "-a", "--reflink=auto", bare, self.path], check=True)
        shutil.copy("/etc/resolv.conf", f"{self.path}/etc/resolv.conf")
        write(f"{self.path}/etc/hosts", "127.0.0.1 localhost collector-1\n127.0.1.1 bare\n")
        write(f"{self.path}/etc/dpkg/dpkg.cfg.d/no-sync", "force-unsafe-io\n")
        self.copy_proxies()
        self.copy_sources()
        self.copy_duckdb()
        if build:
            self.copy_build(build)

    def close(self):
        os.close(self.lock)

    def has_packages(self):
        return any(name.endswith(".deb") for name in os.listdir(f"{self.cache}/archives"))

    def copy_proxies(self):
        dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
        lines = [line + "\n" for line in dump.splitlines() if line.startswith("Acquire::") and "Proxy" in line]
        write(f"{self.path}/etc/apt/apt.conf.d/proxy", "".join(lines))

    def copy_sources(self):
        """A clone, and what the working tree has changed since."""
        to = self.path + CHECKOUT
        subprocess.run(["git", "clone", "--quiet", SOURCE, to], check=True)
        changed = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z", "--modified", "--others", "--exclude-standard"],
                                 capture_output=True, text=True, check=True).stdout
        for name in filter(None, changed.split("\0")):
            if os.path.exists(f"{SOURCE}/{name}"):
                os.makedirs(os.path.dirname(f"{to}/{name}"), exist_ok=True)
                shutil.copy2(f"{SOURCE}/{name}", f"{to}/{name}")
            else:
                os.unlink(f"{to}/{name}")
        for name in ("duckdb", "page", "wheels"):
            if os.path.isdir(f"{SOURCE}/third_party/{name}"):
                shutil.copytree(f"{SOURCE}/third_party/{name}", f"{to}/third_party/{name}", symlinks=True)

    def copy_build(self, build):
        """The build folder without tests, and the sources as old as here."""
        to = self.path + CHECKOUT
        for name in subprocess.run(["git", "-C", to, "ls-files", "-z"], capture_output=True, text=True, check=True).stdout.split("\0"):
            if name and os.path.exists(f"{SOURCE}/{name}"):
                shutil.copystat(f"{SOURCE}/{name}", f"{to}/{name}", follow_symlinks=False)
        shutil.copytree(build, f"{self.path}{build}", symlinks=True, ignore=shutil.ignore_patterns("tests", "demo", "Testing", "*.log", "*.xml", "CMakeCache.txt"))
        shutil.copy2(f"{build}/.ninja_log", f"{self.path}{build}/.ninja_log")

    def copy_duckdb(self):
        """The packages that install-duckdb would fetch, made of what this checkout has fetched; it compares the SHA-256."""
        os.makedirs(self.path + DUCKDB_CACHE)
        for name, tgz, member in (
            ("duckdb.h", "duckdb-1.4.4.tgz", "package/src/duckdb/src/include/duckdb.h"),
            ("libduckdb.so", "duckdb-node-bindings-linux-x64-1.4.4-r.3.tgz", "package/libduckdb.so"),
        ):
            if os.path.exists(f"{SOURCE}/third_party/duckdb/{name}"):
                with tarfile.open(f"{self.path}{DUCKDB_CACHE}/{tgz}", "w:gz", compresslevel=1) as archive:
                    archive.add(f"{SOURCE}/third_party/duckdb/{name}", arcname=member)

    def run(self, script, log, timeout):
        """Runs a bash script in the root, its output appended to `log`. Its exit status."""
        write(f"{self.path}/root/script", script)
        environment = {**{k: v for k, v in os.environ.items() if k.lower().endswith("_proxy")}, **ENVIRONMENT}
        with open(log, "ab") as to:
            return subprocess.run(
                ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, self.path, self.cache,
                 "bash", "/root/script"],
                env=environment, stdin=subprocess.DEVNULL, stdout=to, stderr=to, timeout=timeout, check=False).returncode
