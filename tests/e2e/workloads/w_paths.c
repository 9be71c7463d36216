/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_paths SCENARIO DIR - names as programs give them
 *
 *   chdir    relative paths after chdir and fchdir
 *   dirfd    openat below a directory's descriptor, `//` and `/./` inside
 *   tmpfile  O_TMPFILE
 *   rename   a file renamed while it is open keeps the name that it was opened under
 *   names    newline, quotes, backslash, control bytes, bytes that are not UTF-8
 *   long     a path of 4,095 bytes
 */
#include "tally.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *join(char *room, const char *folder, const char *name)
{
	CHECK(snprintf(room, TALLY_PATH_BYTES, "%s/%s", folder, name) < TALLY_PATH_BYTES);
	return room;
}

static void read_at(int dirfd, const char *given, const char *name)
{
	int fd = t_openat(dirfd, given, O_RDONLY | O_CLOEXEC, name);

	t_read(fd, 128);
	t_close(fd);
}

static void relative(const char *folder)
{
	char sub[TALLY_PATH_BYTES], name[TALLY_PATH_BYTES];

	join(sub, folder, "sub");
	CHECK(chdir(folder) == 0);
	read_at(AT_FDCWD, "f001", join(name, folder, "f001"));
	CHECK(mkdir("sub", 0700) == 0 && chdir("sub") == 0);
	int fd = t_openat(AT_FDCWD, "new", O_WRONLY | O_CREAT, join(name, sub, "new"));
	t_write(fd, 77);
	t_close(fd);
	CHECK(chdir("..") == 0);
	read_at(AT_FDCWD, "./sub//new", join(name, sub, "new"));
	int dir = open(sub, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(dir >= 0 && fchdir(dir) == 0 && close(dir) == 0);
	read_at(AT_FDCWD, "new", join(name, sub, "new"));
}

static void below(const char *folder)
{
	char name[TALLY_PATH_BYTES];
	int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(dir >= 0 && mkdirat(dir, "deep", 0700) == 0);
	read_at(dir, "f002", join(name, folder, "f002"));
	int fd = t_openat(dir, "deep/./made", O_WRONLY | O_CREAT, join(name, folder, "deep/made"));
	t_write(fd, 300);
	t_close(fd);
	int sub = openat(dir, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(sub >= 0);
	read_at(sub, "made", name);
	CHECK(close(sub) == 0 && close(dir) == 0);
}

static void nameless(const char *folder)
{
	char name[TALLY_PATH_BYTES];
	int fd = t_openat(AT_FDCWD, folder, O_TMPFILE | O_RDWR, join(name, folder, "#tmpfile"));

	t_write(fd, 5000);
	t_lseek(fd, 0);
	t_read(fd, 6000);
	t_close(fd);
}

static void renamed(const char *folder)
{
	char old[TALLY_PATH_BYTES], new[TALLY_PATH_BYTES];
	int fd = t_open(join(old, folder, "ckpt.tmp"), O_RDWR | O_CREAT);

	t_write(fd, 900);
	CHECK(rename(old, join(new, folder, "ckpt.pt")) == 0);
	tally_add("rename", old, 0);
	t_write(fd, 100);
	t_close(fd);
	t_slurp(new);
}

static void names(const char *folder)
{
	static const char *const list[] = {
	    "new\nline",
	    "tab\there",
	    "quote\"and'other",
	    "back\\slash",
	    "\\x41",
	    "bell\a\x01\x1f\x7f",
	    "not-utf8-\xff\xfe",
	    "half-\xc3",
	    "\xf0\x9f\x90\xb3 whale",
	    "%s%n$(x)`y`",
	    " lead and trail ",
	    "{\"a\":1},",
	};
	char path[TALLY_PATH_BYTES];

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		int fd = t_open(join(path, folder, list[i]), O_RDWR | O_CREAT);
		t_write(fd, i + 1);
		t_close(fd);
		t_slurp(path);
	}
}

/* Folders of 200 bytes are made one by one from inside, the last name fills the path to 4,095 bytes
 * exactly. */
static void longest(const char *folder)
{
	char path[TALLY_PATH_BYTES], part[256];
	size_t n = strlen(folder);

	CHECK(n < 1024 && chdir(folder) == 0);
	memcpy(path, folder, n + 1);
	while (TALLY_PATH_BYTES - 1 - n > 254) {
		memset(part, 'd', 200);
		part[200] = '\0';
		CHECK(mkdir(part, 0700) == 0 && chdir(part) == 0);
		n += (size_t)snprintf(path + n, sizeof(path) - n, "/%s", part);
	}
	size_t left = TALLY_PATH_BYTES - 1 - n;
	path[n] = '/';
	memset(path + n + 1, 'f', left - 1);
	path[TALLY_PATH_BYTES - 1] = '\0';
	CHECK(strlen(path) == 4095);
	int fd = t_open(path, O_RDWR | O_CREAT);
	t_write(fd, 4095);
	t_close(fd);
	t_slurp(path);
	read_at(AT_FDCWD, path + n + 1, path); /* the same by its short name */
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const char *folder);
	} scenarios[] = {
	    {"chdir", relative}, {"dirfd", below}, {"tmpfile", nameless},
	    {"rename", renamed}, {"names", names}, {"long", longest},
	};

	CHECK(argc == 3);
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (strcmp(argv[1], scenarios[i].name) == 0) {
			scenarios[i].run(argv[2]);
			tally_flush();
			return 0;
		}
	die("%s: no such scenario", argv[1]);
}
