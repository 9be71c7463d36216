# SPDX-License-Identifier: Apache-2.0
"""The table of host programs: what is run natively and under the shim, and must not differ.

A row is a shell script run by /bin/bash in a work folder that is new each time, at the same path.
`needs` are the programs that it cannot do without; `clean` are (pattern, replacement) pairs for
what differs from run to run anyway (times, speeds). What stays in the work folder afterwards is
compared too, unless `tree` is False.
"""

from dataclasses import dataclass

PREPARE = r"""
set -e
mkdir -p in/deep
for i in 1 2 3 4 5 6 7 8; do
    seq $((i * 1000)) > in/n$i
    touch -d "2024-01-0$i 10:00:00 UTC" in/n$i
done
cp in/n1 in/deep/'a name with blanks'
ln -s n1 in/link
touch -h -d "2024-02-01 10:00:00 UTC" in/link in/deep/* in/deep in
"""


@dataclass(frozen=True)
class Host:
    name: str
    script: str
    needs: tuple = ()
    clean: tuple = ()
    tree: bool = True
    stdin: bytes = b""


HOSTS = (
    Host(
        "bash",
        r"""
        while read -r line; do total=$((total + line)); done < in/n1; echo "$total"
        exec 9> out; echo to nine >&9; exec 9>&-
        cat <<< "here string"; cat << END
here document $(< in/deep/"a name with blanks" tail -1)
END
        for i in in/n*; do (wc -l < "$i") & done > counts; wait; sort -n counts -o counts; cat counts
        mapfile -t lines < in/n2; echo "${#lines[@]}"
        diff <(sort in/n1) <(sort -r in/n1) | wc -l
        trap 'echo bye' EXIT; echo oops >&2; kill -l TERM; false | true; echo "${PIPESTATUS[@]}"
        coproc cat; echo hello >&"${COPROC[1]}"; read -r answer <&"${COPROC[0]}"; echo "$answer"
        [ -f in/n1 ] && [ ! -e none ] && cat none; exit 42
    """,
    ),
    Host(
        "sh",
        r"""sh -c 'x=$(cat in/n3 | tail -1); echo $x; for f in in/*; do test -r "$f" && echo "$f"; done; exit 3'""",
    ),
    Host(
        "coreutils",
        r"""
        cp -a in copy && cp --reflink=never in/n2 c2 && cp --sparse=always in/n8 sparse && mv c2 moved && ln moved hard
        cat in/n1 in/n2 | head -c 2000 | md5sum; tac in/n1 | tail -n 3; sort -rn in/n3 | head -2; wc in/n*
        dd if=in/n4 of=part bs=512 count=3 skip=1 status=none conv=fsync; od -A d -t x1 part | tail -2
        split -n 3 in/n5 piece.; cksum piece.*; truncate -s 100 part; stat -c '%s %a %F' part in/link in
        tee t1 t2 < in/deep/* | wc -c; install -m 640 in/n1 inst; shuf -i 1-3 | wc -l; uniq -c in/n1 | tail -1
        ls -lR --time-style=+%s in | sed 's/^total.*//'; du -b in/n1; readlink -f in/link | xargs basename; comm -12 in/n1 in/n2 | wc -l
        rm -r copy; rmdir in 2>&1; cat nothing; mkdir d; chmod 700 d; touch -d @0 d/t; find . -name 'n*' -size +10k -print | sort
        tail -f in/n1 > tailed & until [ -s tailed ]; do sleep 0.02; done; kill $!; wait $! ; echo $?
    """,
    ),
    Host(
        "tar",
        r"""
        tar --sort=name --owner=0 --group=0 --numeric-owner -czf a.tgz in && tar tvzf a.tgz && mkdir x && tar xzf a.tgz -C x
        tar cf - in | tar xf - -C x && diff -r in x/in && gzip -kc in/n1 | gunzip | cmp - in/n1 && tar cf b.tar missing in/n1
    """,
        tree=False,
    ),
    Host(
        "git",
        r"""
        export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z' HOME=$PWD
        git config --global user.email a@b; git config --global user.name n; git config --global init.defaultBranch main
        git init -q r && cp -r in r && cd r && git add . && git commit -qm one && seq 5 > in/n1 && git commit -qam two
        git log --stat --format=%H; git diff HEAD~1 --stat; git gc -q; git fsck; git clone -q . ../c; git -C ../c rev-parse HEAD
        git grep -c 999 | sort; git stash list; git status --short; git show HEAD:none
    """,
        needs=("git",),
        tree=False,
    ),
    Host(
        "gcc and make",
        r"""
        cat > m.c <<< '#include <stdio.h>
        int part(void); int main(void) { printf("%d\n", part()); return part() == 7 ? 5 : 1; }'
        echo 'int part(void) { return 7; }' > p.c; echo 'int bad(void) { retrun 1; }' > bad.c
        printf 'prog: m.o p.o\n\tgcc -o prog m.o p.o\n%%.o: %%.c\n\tgcc -O1 -c $<\n' > Makefile
        make -j2 -O | sort; ./prog; echo $?; gcc -c bad.c; make; make none
    """,
        needs=("gcc", "make"),
        tree=False,
    ),
    Host(
        "perl",
        r"""
        perl -e 'open F, "<", "in/n6" or die; my $s = 0; $s += $_ while <F>; print "$s\n"; close F;
                 opendir D, "in"; print join(",", sort grep !/^\./, readdir D), "\n"; sysopen(G, "g", 0x41) or die; syswrite G, "x" x 9;
                 if (my $p = fork) { waitpid $p, 0; print $? >> 8, "\n" } else { print STDERR "child\n"; exit 4 }
                 print `cat g`, "\n"; rename "g", "h"; unlink "nothing" or warn "no: $!\n"; exit 6'
    """,
        needs=("perl",),
    ),
    Host(
        "python",
        r"""
        python3 -S - << 'END'
import json, os, subprocess, tempfile, threading
with open("in/n7") as f: print(sum(map(int, f)))
threads = [threading.Thread(target=lambda: open("in/n8").read()) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(subprocess.run(["wc", "-l", "in/n1"], capture_output=True, close_fds=True).stdout)
print(subprocess.run("cat in/n2 | tail -1; exit 9", shell=True, pass_fds=(0,)))
with tempfile.TemporaryFile() as t: t.write(b"x" * 70000); t.seek(0); print(len(t.read()))
with open("a.json", "w") as f: json.dump({"k": [1, 2]}, f)
pid = os.fork()
if pid == 0: open("child", "w").write("c"); os._exit(11)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), sorted(os.listdir("in")), os.stat("child").st_size)
print(sorted(os.listdir("/proc/self/fd"), key=int)); raise SystemExit(13)
END
    """,
        needs=("python3",),
    ),
    Host(
        "node",
        r"""
        cat > s.js << 'END'
const fs = require('fs'), cp = require('child_process'), { Worker } = require('worker_threads');
console.log(fs.readFileSync('in/n1').length, fs.readdirSync('in').sort().join());
fs.promises.readFile('in/n2').then(async b => {
  console.log(b.length); await fs.promises.writeFile('w', b); console.log(cp.execSync('wc -c < w').toString());
  fs.createReadStream('in/n8').on('data', () => {}).on('close', () => {
    new Worker("require('fs').writeFileSync('v', 'x')", { eval: true }).on('exit', () => { console.error('err'); process.exit(7); });
  });
});
END
        node s.js
    """,
        needs=("node",),
    ),
    Host(
        "java",
        r"""
        cat > Main.java << 'END'
import java.io.*; import java.nio.file.*; import java.util.stream.*;
class Main { public static void main(String[] a) throws Exception {
  System.out.println(Files.lines(Path.of("in/n1")).count());
  try (RandomAccessFile f = new RandomAccessFile("raf", "rw")) { f.setLength(100); f.seek(50); f.write(new byte[10]);
    f.getChannel().map(java.nio.channels.FileChannel.MapMode.READ_WRITE, 0, 100).put(0, (byte) 'x'); }
  Files.copy(Path.of("in/n2"), Path.of("copied"));
  System.out.println(Files.list(Path.of("in")).map(Path::toString).sorted().collect(Collectors.joining(",")));
  Process p = new ProcessBuilder("wc", "-l", "in/n3").start(); System.out.print(new String(p.getInputStream().readAllBytes()));
  System.exit(8); } }
END
        java -XX:TieredStopAtLevel=1 Main.java
    """,
        needs=("java",),
    ),
    Host(
        "sqlite3",
        r"""
        sqlite3 db 'pragma journal_mode=wal; create table t(a integer primary key, b); with recursive c(x) as (select 1 union all
            select x + 1 from c where x < 2000) insert into t select x, hex(x) from c; pragma integrity_check; select sum(a), max(b) from t;'
        sqlite3 db 'pragma mmap_size=1000000; select count(*) from t; vacuum; pragma wal_checkpoint(truncate); select * from none;'
    """,
        needs=("sqlite3",),
        tree=False,
    ),
    Host(
        "rsync",
        r"""
        rsync -a in/ copy && echo more >> in/n1 && rsync -avi --checksum in/ copy && rsync -an --delete in/ copy; rsync none x; diff -r in copy
    """,
        needs=("rsync",),
        tree=False,
        clean=(
            (r"sent .* bytes/sec", "sent"),
            (r"speedup is .*", "speedup"),
            (r"\(code 23\) at .*", "(code 23)"),
        ),
    ),
    Host(
        "apt-get",
        r"""apt-get -s -o Debug::NoLocking=1 install coreutils bash 2>&1 | tail -5; apt-cache policy bash | head -2""",
        needs=("apt-get",),
    ),
    Host(
        "ssh-keygen",
        r"""
        ssh-keygen -q -t ed25519 -N '' -C c -f key && ssh-keygen -y -f key | cmp - <(cut -d' ' -f1,2 key.pub; :) | wc -l
        ssh-keygen -lf key.pub | cut -d' ' -f1,3,4; stat -c %a key; ssh-keygen -lf none
    """,
        needs=("ssh-keygen",),
        tree=False,
    ),
    Host(
        "static binary",
        r"""
        busybox sh -c 'cat in/n1 | wc -l; cp in/n2 c; md5sum c; ls in; dd if=in/n3 of=d bs=1k 2>/dev/null; cat none; exit 12'
    """,
        needs=("busybox",),
    ),
    Host(
        "setuid program",
        r"""
        setpriv --reuid=65534 --clear-groups ./suid-id -u; setpriv --reuid=65534 --clear-groups ./suid-cat secret; echo $?
    """,
        needs=("setpriv",),
        tree=False,
    ),
    Host(
        "xargs and find",
        r"""find in -type f -print0 | sort -z | xargs -0 -P4 -n1 sha256sum | sort; find in -newer in/n4 -exec echo {} + | tr ' ' '\n' | sort""",
    ),
    Host(
        "seccomp",
        r"""
        "$PROGRAMS"/w_seccomp after in/n8 20000; echo $?; "$PROGRAMS"/w_seccomp before in/n8 20000; echo $?
        for how in strict no-clock; do "$PROGRAMS"/w_seccomp $how in/n8 20000; echo $?; done
    """,
    ),
    Host(
        "descriptors",
        r"""
        mkdir fds; for i in 0 1 2 3 4 5 6 7 8 9 10 11; do cp in/n1 fds/f0$(printf %02d $i); done; "$PROGRAMS"/w_fdcheck fds
    """,
        tree=False,
    ),
    Host(
        "musl, dynamic",
        r"""
        cat > m.c << 'END'
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static void *reader(void *name) { char b[64]; FILE *f = fopen(name, "r"); long n = 0; while (fgets(b, 64, f)) n++; fclose(f); return (void *)n; }
int main(void) { struct stat st; pthread_t t; void *n; stat("in/n2", &st); pthread_create(&t, 0, reader, "in/n1"); pthread_join(t, &n);
  printf("%ld %ld\n", (long)st.st_size, (long)n); fflush(stdout); if (!fork()) { FILE *f = fopen("w", "w"); fprintf(f, "%d", 5); fclose(f); _exit(0); }
  wait(0); DIR *d = opendir("in"); int c = 0; while (readdir(d)) c++; closedir(d); printf("%d\n", c); return c; }
END
        [ -x ../musl ] || env -u LD_PRELOAD musl-gcc -w -o ../musl m.c; ../musl
    """,
        needs=("musl-gcc",),
    ),
    Host(
        "musl, static",
        r"""
        echo '#include <stdio.h>
        int main(void) { char b[9]; FILE *f = fopen("in/n1", "r"); fgets(b, 9, f); puts(b); return 3; }' > m.c
        [ -x ../musl-static ] || env -u LD_PRELOAD musl-gcc -w -static -o ../musl-static m.c; ../musl-static
    """,
        needs=("musl-gcc",),
    ),
    Host(
        "a preload that is there already",
        r"""LD_PRELOAD="$LD_PRELOAD:/nonexistent.so" cat in/n1 2>&1 | grep -v nonexistent | md5sum""",
    ),
    Host(
        "closed standard descriptors",
        r"""cat in/n1 >&-; cat in/n1 <&- | wc -l; "$PROGRAMS"/w_fdcheck none 2>&-; echo $?""",
        tree=False,
    ),
    Host(
        "limits",
        r"""(ulimit -n 16; cat in/n* | wc -c); (ulimit -v 400000; sort in/n8 | tail -1); (ulimit -f 1; seq 9999 > big) 2>&1; echo $?""",
        tree=False,
        clean=((r"line \d+: +\d+", "line"),),
    ),
)
