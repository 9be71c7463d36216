/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_kinds DIR - one or a few of every kind of call that is not plain open, read, write
 *
 * Vectors, stdio, copies between files, sizes and syncs, names and folders, mappings. Each is counted under its libc name
 * without `64` and fortification; bytes by the rule of the SQL tables (what was transferred, once).
 */
#include "tally.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define TIMES(n) for (int times_ = 0; times_ < (n); times_++)

static char path[TALLY_PATH_BYTES], second[TALLY_PATH_BYTES];

static const char *in_folder(char *room, const char *folder, const char *name)
{
	CHECK(snprintf(room, TALLY_PATH_BYTES, "%s/%s", folder, name) < TALLY_PATH_BYTES);
	return room;
}

static void vectors(const char *folder)
{
	char a[100], b[28];
	struct iovec iov[2] = {{a, sizeof(a)}, {b, sizeof(b)}};
	int fd = t_open(in_folder(path, folder, "vectors"), O_RDWR | O_CREAT);

	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	CHECK(writev(fd, iov, 2) == 128);
	tally_add("writev", path, 128);
	CHECK(pwritev(fd, iov, 2, 1000) == 128);
	tally_add("pwritev", path, 128);
	CHECK(pwrite(fd, a, 60, 10) == 60);
	tally_add("pwrite", path, 60);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	tally_add("lseek", path, 0);
	CHECK(readv(fd, iov, 2) == 128);
	tally_add("readv", path, 128);
	CHECK(preadv(fd, iov, 1, 1100) == 28);
	tally_add("preadv", path, 28);
	CHECK(preadv2(fd, iov, 2, 0, 0) == 128);
	tally_add("preadv2", path, 128);
	t_close(fd);
}

static void streams(const char *folder)
{
	char buf[512], *line = NULL;
	size_t room = 0;
	FILE *fp = fopen(in_folder(path, folder, "streams"), "w+");

	CHECK(fp != NULL);
	tally_add("fopen", path, 0);
	memset(buf, 'x', sizeof(buf));
	CHECK(fwrite(buf, 16, 20, fp) == 20);
	tally_add("fwrite", path, 320);
	CHECK(fputs("\nfour\n", fp) >= 0);
	tally_add("fputs", path, 6);
	CHECK(fprintf(fp, "%d and %s\n", 12, "text") == 12);
	tally_add("fprintf", path, 12);
	CHECK(fflush(fp) == 0);
	tally_add("fflush", path, 0);
	CHECK(fseek(fp, 0, SEEK_SET) == 0);
	tally_add("fseek", path, 0);
	CHECK(fread(buf, 10, 32, fp) == 32);
	tally_add("fread", path, 320);
	CHECK(fgets(buf, sizeof(buf), fp) == buf && strlen(buf) == 1);
	tally_add("fgets", path, 1);
	CHECK(getline(&line, &room, fp) == 5);
	tally_add("getline", path, 5);
	CHECK(fclose(fp) == 0);
	tally_add("fclose", path, 0);
	free(line);
}

static void copies(const char *folder)
{
	const char *source = data_file(folder, 3);
	int in = t_open(source, O_RDONLY),
	    out = t_open(in_folder(path, folder, "copy"), O_RDWR | O_CREAT);
	off_t at = 5;

	CHECK(copy_file_range(in, NULL, out, NULL, 300, 0) == 300);
	tally_add("copy_file_range", source, 300);
	CHECK(sendfile(out, in, &at, 200) == 200);
	tally_add("sendfile", source, 200);
	t_close(in);
	t_close(out);
}

static void sizes_and_syncs(const char *folder)
{
	int fd = t_open(in_folder(path, folder, "sizes"), O_RDWR | O_CREAT);

	CHECK(ftruncate(fd, 10000) == 0);
	tally_add("ftruncate", path, 0);
	CHECK(fallocate(fd, 0, 0, 20000) == 0);
	tally_add("fallocate", path, 0);
	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED) == 0);
	tally_add("posix_fadvise", path, 0);
	TIMES(2) CHECK(fsync(fd) == 0);
	tally_add_many("fsync", path, 2, 0);
	CHECK(fdatasync(fd) == 0);
	tally_add("fdatasync", path, 0);
	t_close(fd);
	CHECK(truncate(path, 5) == 0);
	tally_add("truncate", path, 0);
}

static void names(const char *folder)
{
	struct stat st;
	struct statx stx;

	CHECK(mkdir(in_folder(path, folder, "made"), 0700) == 0);
	tally_add("mkdir", path, 0);
	CHECK(rmdir(path) == 0);
	tally_add("rmdir", path, 0);
	CHECK(symlink("f001", in_folder(path, folder, "sym")) == 0);
	CHECK(readlink(path, second, sizeof(second)) == 4);
	tally_add("readlink", path, 0);
	CHECK(lstat(path, &st) == 0 && S_ISLNK(st.st_mode));
	tally_add("lstat", path, 0);
	TIMES(3) CHECK(stat(path, &st) == 0 && S_ISREG(st.st_mode));
	tally_add_many("stat", path, 3, 0);
	CHECK(statx(AT_FDCWD, path, 0, STATX_SIZE, &stx) == 0);
	tally_add("statx", path, 0);
	CHECK(access(path, R_OK) == 0);
	tally_add("access", path, 0);
	CHECK(unlink(path) == 0);
	tally_add("unlink", path, 0);
	CHECK(stat(path, &st) < 0);
	tally_add("stat", path, 0);
}

static void folders(const char *folder)
{
	DIR *dir = opendir(folder);
	uint64_t entries = 0;

	CHECK(dir != NULL);
	tally_add("opendir", folder, 0);
	while (readdir(dir) != NULL)
		entries++;
	tally_add_many("readdir", folder, entries + 1, 0);
	CHECK(closedir(dir) == 0);
	tally_add("closedir", folder, 0);
}

static void mappings(const char *folder)
{
	const char *name = data_file(folder, 5);
	int fd = t_open(name, O_RDWR);
	char *map = mmap(NULL, 600, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(map != MAP_FAILED);
	tally_add("mmap", name, 0);
	t_close(fd);
	map[0] = 'm';
	CHECK(msync(map, 600, MS_SYNC) == 0);
	tally_add("msync", name, 0);
	CHECK(madvise(map, 600, MADV_SEQUENTIAL) == 0);
	tally_add("madvise", name, 0);
	CHECK(munmap(map, 600) == 0);
	tally_add("munmap", name, 0);
}

/* One character at a time: too many for events, counted in the file's record. */
static void characters(const char *folder)
{
	FILE *fp = fopen(in_folder(path, folder, "characters"), "w+");

	CHECK(fp != NULL);
	tally_add("fopen", path, 0);
	TIMES(1000) CHECK(putc('c', fp) == 'c');
	rewind(fp);
	tally_add("rewind", path, 0);
	TIMES(700) CHECK(getc(fp) == 'c');
	CHECK(fclose(fp) == 0);
	tally_add("fclose", path, 0);
}

/* getc_unlocked is a macro: it calls libc only when the buffer is empty. */
static void inlined(const char *folder)
{
	FILE *fp = fopen(in_folder(path, folder, "inlined"), "w+");

	CHECK(fp != NULL);
	tally_add("fopen", path, 0);
	TIMES(1000) CHECK(fputs("0123456789", fp) >= 0);
	tally_add_many("fputs", path, 1000, 10000);
	rewind(fp);
	tally_add("rewind", path, 0);
	TIMES(10000) CHECK(getc_unlocked(fp) >= '0');
	CHECK(getc_unlocked(fp) == EOF);
	CHECK(fclose(fp) == 0);
	tally_add("fclose", path, 0);
}

static void scanned(const char *folder)
{
	FILE *fp = fopen(in_folder(path, folder, "scanned"), "w+");
	char word[8192];
	int number;

	CHECK(fp != NULL);
	tally_add("fopen", path, 0);
	memset(word, 'w', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	CHECK(fprintf(fp, "%d %s\n", 42, word) == 8195);
	tally_add("fprintf", path, 8195);
	rewind(fp);
	tally_add("rewind", path, 0);
	CHECK(fscanf(fp, "%d", &number) == 1 && number == 42);
	tally_add("fscanf", path, 2);
	CHECK(fscanf(fp, "%8191s", word) == 1);
	tally_add("fscanf", path, 8192);
	CHECK(fscanf(fp, "%d", &number) == EOF);
	tally_add("fscanf", path, 1);
	CHECK(fclose(fp) == 0);
	tally_add("fclose", path, 0);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	vectors(argv[1]);
	streams(argv[1]);
	copies(argv[1]);
	sizes_and_syncs(argv[1]);
	names(argv[1]);
	folders(argv[1]);
	mappings(argv[1]);
	characters(argv[1]);
	inlined(argv[1]);
	scanned(argv[1]);
	tally_flush();
	return 0;
}
