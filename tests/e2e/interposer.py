# SPDX-License-Identifier: Apache-2.0
"""Writes and compiles libraries that replace every function of proto/calls.def, as allocators and tracers replace some.

    raw       a function that is a system call makes it through syscall(); others call the next definition
    sibling   a function calls another function of the table where one can do its work (open calls openat)

A library is preloaded before or after the shim; the program must see what it sees without the shim, and the shim must record
each call of the program once.
"""

import re
import subprocess

import harness

# C's parameters are the words of the system call of that name.
SAME_WORDS = """
    open openat creat close read pread64 readv preadv2 write pwrite64 writev pwritev2 sendfile copy_file_range splice lseek
    fcntl ioctl dup dup2 dup3 flock stat lstat fstat statx statfs fstatfs access fsync fdatasync syncfs sync_file_range
    ftruncate truncate fallocate readahead getdents64 mkdir mkdirat rmdir unlink unlinkat symlink symlinkat readlink
    readlinkat chmod fchmod chown lchown fchown fchownat utimensat rename renameat renameat2 link linkat chdir fchdir mmap
    munmap mremap madvise msync close_range io_submit io_getevents chroot prctl setuid setgid unshare setns
    """.split()
# Other names of the same call.
RAW_NAMES = {
    "open64": "open", "openat64": "openat", "creat64": "creat", "pread": "pread64", "pwrite": "pwrite64",
    "preadv64v2": "preadv2", "pwritev64v2": "pwritev2", "sendfile64": "sendfile", "lseek64": "lseek", "fcntl64": "fcntl",
    "stat64": "stat", "lstat64": "lstat", "fstat64": "fstat", "fstatat": "newfstatat", "fstatat64": "newfstatat",
    "statfs64": "statfs", "fstatfs64": "fstatfs", "ftruncate64": "ftruncate", "truncate64": "truncate",
    "fallocate64": "fallocate", "mmap64": "mmap",
}
RAW = {
    "preadv": "syscall(SYS_preadv, fd, iov, count, offset, 0L)",
    "preadv64": "syscall(SYS_preadv, fd, iov, count, offset, 0L)",
    "pwritev": "syscall(SYS_pwritev, fd, iov, count, offset, 0L)",
    "pwritev64": "syscall(SYS_pwritev, fd, iov, count, offset, 0L)",
    "preadv2": "syscall(SYS_preadv2, fd, iov, count, offset, 0L, flags)",
    "preadv64v2": "syscall(SYS_preadv2, fd, iov, count, offset, 0L, flags)",
    "pwritev2": "syscall(SYS_pwritev2, fd, iov, count, offset, 0L, flags)",
    "pwritev64v2": "syscall(SYS_pwritev2, fd, iov, count, offset, 0L, flags)",
}
SIBLING = {
    "open64": "open(path, flags, (mode_t)mode)", "open": "openat(AT_FDCWD, path, flags, (mode_t)mode)",
    "openat": "openat64(dirfd, path, flags, (mode_t)mode)", "creat64": "creat(path, mode)",
    "creat": "open(path, O_CREAT | O_WRONLY | O_TRUNC, mode)", "mkstemp": "mkostemp(path, 0)",
    "mkostemp": "mkostemps(path, 0, flags)", "fopen": "fopen64(path, mode)", "freopen": "freopen64(path, mode, fp)",
    "tmpfile": "tmpfile64()", "read": "__read_chk(fd, buf, n, n)", "__pread_chk": "pread(fd, buf, n, offset)",
    "pread": "pread64(fd, buf, n, offset)", "readv": "preadv2(fd, iov, count, -1, 0)",
    "preadv": "preadv64(fd, iov, count, offset)", "preadv2": "preadv64v2(fd, iov, count, offset, flags)",
    "pwrite": "pwrite64(fd, buf, n, offset)", "writev": "pwritev2(fd, iov, count, -1, 0)",
    "pwritev": "pwritev64(fd, iov, count, offset)", "pwritev2": "pwritev64v2(fd, iov, count, offset, flags)",
    "sendfile": "sendfile64(out, in, (off64_t *)offset, n)", "fread": "fread_unlocked(buf, size, n, fp)",
    "fgets": "fgets_unlocked(buf, n, fp)", "getline": "getdelim(line, room, 10, fp)",
    "getdelim": "__getdelim(line, room, delim, fp)", "getc": "fgetc(fp)", "fgetc": "getc_unlocked(fp)",
    "fwrite": "fwrite_unlocked(buf, size, n, fp)", "fputs": "fputs_unlocked(s, fp)", "putc": "fputc(c, fp)",
    "fputc": "putc_unlocked(c, fp)", "lseek": "lseek64(fd, offset, whence)", "fseek": "fseeko(fp, offset, whence)",
    "fseeko": "fseeko64(fp, offset, whence)", "ftell": "ftello(fp)", "ftello": "ftello64(fp)",
    "stat": "stat64(path, (struct stat64 *)st)", "lstat": "lstat64(path, (struct stat64 *)st)",
    "fstat": "fstat64(fd, (struct stat64 *)st)", "stat64": "fstatat64(AT_FDCWD, path, st, 0)",
    "lstat64": "fstatat64(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW)",
    "fstatat": "fstatat64(dirfd, path, (struct stat64 *)st, flags)", "statfs": "statfs64(path, (struct statfs64 *)st)",
    "fstatfs": "fstatfs64(fd, (struct statfs64 *)st)", "access": "faccessat(AT_FDCWD, path, mode, 0)",
    "fflush": "fflush_unlocked(fp)", "mkdir": "mkdirat(AT_FDCWD, path, mode)", "rmdir": "unlinkat(AT_FDCWD, path, AT_REMOVEDIR)",
    "unlink": "unlinkat(AT_FDCWD, path, 0)", "rename": "renameat(AT_FDCWD, from, AT_FDCWD, to)",
    "renameat": "renameat2(fromfd, from, tofd, to, 0)", "link": "linkat(AT_FDCWD, from, AT_FDCWD, to, 0)",
    "symlink": "symlinkat(target, AT_FDCWD, path)", "readlink": "readlinkat(AT_FDCWD, path, buf, n)",
    "chmod": "fchmodat(AT_FDCWD, path, mode, 0)", "chown": "fchownat(AT_FDCWD, path, uid, gid, 0)",
    "truncate": "truncate64(path, length)", "ftruncate": "ftruncate64(fd, length)",
    "fallocate": "fallocate64(fd, mode, offset, n)", "posix_fallocate": "posix_fallocate64(fd, offset, n)",
    "posix_fadvise": "posix_fadvise64(fd, offset, n, advice)", "mmap": "mmap64(addr, n, prot, flags, fd, offset)",
    "aio_read": "aio_read64((struct aiocb64 *)cb)", "aio_write": "aio_write64((struct aiocb64 *)cb)",
    "aio_return": "aio_return64((struct aiocb64 *)cb)", "fork": "_Fork()",
}
# vfork's caller and its child share a stack: no C function can be in between. Jumps do not come back, clone's child does not either.
# The results of dlopen and its siblings depend on their caller.
# The list of execl has no va_list function.
LEFT_OUT = {"execl", "execlp", "execle", "vfork", "clone", "longjmp", "_longjmp", "siglongjmp", "__longjmp_chk", "syscall", "fileno", "dirfd",
            "dlopen", "dlmopen", "dlsym", "dlvsym"}

HEAD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>
#include "shim/wrap/wrap.h"

static void *next(void **place, const char *name)
{
	if (*place == NULL)
		*place = dlsym(RTLD_NEXT, name);
	return *place;
}
"""


def v_name(name):
    """The function with a va_list that does the same: vfprintf for fprintf."""
    return re.sub(r"([fd]?(printf|scanf))", r"v\1", name)


def call_of(row, flavour):
    """The expression that a function of the library returns."""
    name, args = row["name"], row["args"][1:-1]
    if "..." in row["params"] and re.search(r"\bap\b", args):
        return f"hr_wrap_{v_name(name)}({args})"
    if flavour == "sibling" and name in SIBLING:
        return "hr_wrap_" + SIBLING[name]
    if flavour == "raw":
        number = RAW_NAMES.get(name, name)
        if name in RAW:
            return f"({row['ret']}){RAW[name]}"
        if number in SAME_WORDS or number == "newfstatat":
            return f"({row['ret']})syscall(SYS_{number}{', ' if args else ''}{args})"
    return f'((hr_fn_{name} *)next(&place, "{name}"))({args})'


def function_of(row, flavour):
    name, params, args = row["name"], row["params"], row["args"][1:-1]
    body = ["\tstatic void *place __attribute__((unused));"]
    if "..." in params:
        named = [re.search(r"(\w+)(\[\w*\])?$", p.strip())[1] for p in params[1:-1].split(",")[:-1]]
        body += ["\tva_list ap;", f"\tva_start(ap, {named[-1]});"]
        extra = [a.strip() for a in args.split(",") if a.strip() not in named + ["ap"]]
        body += [f"\tlong {a} = va_arg(ap, long);" for a in extra]
    ret = "" if row["ret"] == "void" else "return "
    body += [f"\t{ret}{call_of(row, flavour)};"]
    return f"{row['ret']} hr_wrap_{name}{params}\n{{\n" + "\n".join(body) + "\n}\n"


def build(folder, flavour, rows, root):
    """Compiles the library; returns its path and how many functions of it do not simply call the next one."""
    kept = [row for row in rows if row["name"] not in LEFT_OUT]
    if flavour == "raw":  # no system call does what printf does
        kept = [row for row in kept if not re.search(r"printf|scanf", row["name"])]
    source, library = f"{folder}/{flavour}.c", f"{folder}/lib{flavour}.so"
    with open(source, "w", encoding="ascii") as out:
        out.write(HEAD + "\n".join(function_of(row, flavour) for row in kept))
    subprocess.run(
        ["cc", "-w", "-O1", "-shared", "-fPIC", "-fno-builtin", "-I", root, "-o", library, source, "-ldl"], check=True
    )
    return library, sum("next(&place" not in call_of(row, flavour) for row in kept)
