/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - configuration of a daemon: a file of `key = value` lines, and flags of the same names
 *
 * Purpose   One table of keys drives parsing, --help, the man page and the check for unknown keys, so that none drifts.
 * Owner     The caller's table and structure; texts are copied into the structure and freed by hr_config_done().
 * Threads   One.
 *
 *      # comment
 *      listen = tcp://0.0.0.0:4747        same as --listen tcp://0.0.0.0:4747
 *      retention_age = 30d                same as --retention-age 30d
 *
 * Flags win over the file: read the file first. A key that may be given several times (HR_CONFIG_LIST) is joined with commas; the
 * file's list takes the place of the default, and a list of flags that of the file. Any other key is in a file once. What stands
 * behind a blank and # is a comment; a value between double quotes is taken as it is, blanks and # included. A text that is given
 * as nothing (`spill =`) is "". Nobody but these functions writes to the structure's texts.
 */
#ifndef HEADRACE_COMMON_CONFIG_H
#define HEADRACE_COMMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum hr_config_type {
	HR_CONFIG_TEXT,	 /* char *, NULL when there is neither a value nor a default */
	HR_CONFIG_LIST,	 /* char *, joined with commas */
	HR_CONFIG_BYTES, /* uint64_t: 10GiB, 512MB, 4096 */
	HR_CONFIG_DURATION, /* uint64_t, in milliseconds: 500ms, 30s, 5m, 12h, 30d, never without unit; 0: none */
	HR_CONFIG_NUMBER, /* uint64_t */
	HR_CONFIG_FLAG,	  /* bool: yes, no */
	HR_CONFIG_CHOICE, /* unsigned: index in `choices` */
};

struct hr_config_key {
	const char *name; /* "retention_age"; the flag is --retention-age */
	enum hr_config_type type;
	bool fixed;		/* taken at a start only, not by a reload */
	size_t offset;		/* of its field in the structure */
	const char *value_name; /* for --help: "TIME" */
	const char *otherwise;	/* the default, as it would be written; NULL: none */
	const char *help;	/* one sentence */
	const char *choices;	/* "no loopback yes" */
};

/* Sets all to their defaults. -ENOMEM; -EINVAL is a mistake in the table. */
int hr_config_init(const struct hr_config_key *keys, size_t n, void *config);
void hr_config_done(const struct hr_config_key *keys, size_t n, void *config);

/*
 * Reads a file of at most 256 KiB, to its end. Each mistake is a line of *ret_error, with its place: "/etc/headrace/collector.conf:12: ...". Unknown
 * keys go to `warn` when it is not NULL (a newer or older daemon's), else they are mistakes. -EINVAL when there are any, or -errno.
 */
int hr_config_file(const struct hr_config_key *keys, size_t n, void *config, const char *path,
		   void (*warn)(const char *text), char **ret_error);

/* Takes `--key value`, `--key=value`, `--flag` at argv[*i], moves *i behind. -ENOENT: none of the keys; -EINVAL with *ret_error. */
int hr_config_flag(const struct hr_config_key *keys, size_t n, void *config, int argc, char **argv,
		   int *i, char **ret_error);

/* ---- a daemon's own ------------------------------------------------------------------------------ */

/* Its file, then its flags. */
struct hr_config_source {
	const struct hr_config_key *keys;
	size_t n;
	const char *file; /* read where it is there; --config FILE names another, which has to be */
	int argc;
	char **argv;	  /* flags alone: those of the keys, --config FILE, --check-config */
	const char *help; /* the command that lists them */
	void (*say)(const char *text); /* a line for each mistake and warning */
};

/* Is --check-config among the flags? Then unknown keys are mistakes, and nothing is to be started. */
bool hr_config_asks_check(const struct hr_config_source *from);

/*
 * Sets all of it, defaults first. Says all mistakes: -EINVAL when there were any; -ENOMEM. hr_config_done() in either case. Can be
 * called again: on SIGHUP the same flags meet a file that may have changed.
 */
int hr_config_load(const struct hr_config_source *from, void *config);

/*
 * What cannot change while a daemon runs (key.fixed) stays as it is in `old`, and it is said which keys of `fresh` differ there. The
 * structures swap these fields.
 */
void hr_config_keep_fixed(const struct hr_config_key *keys, size_t n, void *old, void *fresh,
			  void (*say)(const char *text));

/* What must hold of a configuration, and what is said when it does not. */
struct hr_config_rule {
	bool broken;
	const char *text;
};

/* Says all that are broken; false when any is. */
bool hr_config_rules(const struct hr_config_rule *rules, size_t n, void (*say)(const char *text));

/* One key by name. */
int hr_config_set(const struct hr_config_key *keys, size_t n, void *config, const char *name,
		  const char *value, char **ret_error);

/* The lines of --help; the same as the options of a man page, with and without what they are called in a file. */
void hr_config_help(const struct hr_config_key *keys, size_t n, FILE *to);
void hr_config_man(const struct hr_config_key *keys, size_t n, FILE *to);
void hr_config_man_flags(const struct hr_config_key *keys, size_t n, FILE *to);

#endif
