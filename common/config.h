/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - configuration of a daemon: a file of `key = value` lines, and flags of the same names
 *
 * The parser, --help, the man page and the check for unknown keys use one table of keys.
 *
 * Owner     The caller's table and structure. Texts are copied into the structure; only these
 *           functions write to them, and hr_config_done() frees them.
 * Threads   One.
 *
 *      # comment
 *      listen = tcp://0.0.0.0:4747        same as --listen tcp://0.0.0.0:4747
 *      retention_age = 30d                same as --retention-age 30d
 *
 * Flags override the file, so read the file first. An HR_CONFIG_LIST key may be repeated: its
 * values are joined with commas. A list in the file replaces the default, and a list of flags
 * replaces the list of the file. A file may contain any other key once. A blank and # begin a
 * comment, but between double quotes they are part of the value. An empty value (`spill =`) is "".
 */
#ifndef HEADRACE_COMMON_CONFIG_H
#define HEADRACE_COMMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum hr_config_type {
	HR_CONFIG_TEXT,	    /* char *; NULL: no value and no default */
	HR_CONFIG_LIST,	    /* char *, joined with commas */
	HR_CONFIG_BYTES,    /* uint64_t: 10GiB, 512MB, 4096 */
	HR_CONFIG_DURATION, /* uint64_t, in ms: 500ms, 30s, 5m, 12h, 30d, or 0; needs a unit */
	HR_CONFIG_NUMBER,   /* uint64_t */
	HR_CONFIG_FLAG,	    /* bool: yes, no */
	HR_CONFIG_CHOICE,   /* unsigned: index in `choices` */
};

struct hr_config_key {
	const char *name; /* "retention_age"; the flag is --retention-age */
	enum hr_config_type type;
	bool fixed; /* a reload does not change it */
	size_t offset;
	const char *value_name; /* name of the value in --help: "TIME" */
	const char *otherwise;	/* the default, as text; NULL: none */
	const char *help;	/* one sentence */
	const char *choices;	/* words for HR_CONFIG_CHOICE: "no loopback yes" */
};

/* The first members of the row of a key whose value is `field` of the structure `of`. */
#define HR_CONFIG_KEY(of, key_name, key_type, field)                                               \
	.name = (key_name), .type = HR_CONFIG_##key_type, .offset = offsetof(of, field)

/* Sets all defaults. Returns 0, -ENOMEM, or -EINVAL for an error in the table. */
int hr_config_init(const struct hr_config_key *keys, size_t n, void *config);
void hr_config_done(const struct hr_config_key *keys, size_t n, void *config);

/*
 * Reads a file of at most 256 KiB. -EINVAL: *ret_error has a line for each mistake
 * ("/etc/headrace/collector.conf:12: ..."). Other errors: -errno. Passes unknown keys to `warn`,
 * because another version may know them. If `warn` is NULL, they are mistakes.
 */
int hr_config_file(const struct hr_config_key *keys, size_t n, void *config, const char *path,
		   void (*warn)(const char *text), char **ret_error);

/* Takes the flag at argv[*i], and advances *i. -ENOENT: unknown key. -EINVAL: see *ret_error. */
int hr_config_flag(const struct hr_config_key *keys, size_t n, void *config, int argc, char **argv,
		   int *i, char **ret_error);

/* ---- configuration of one daemon ------------------------------------------------------------- */

/* Where the configuration of a daemon comes from: first a file, then flags. */
struct hr_config_source {
	const struct hr_config_key *keys;
	size_t n;
	const char *file; /* default file, which may be missing; --config FILE names another */
	int argc;
	char **argv;			  /* flags: those of keys, --config FILE, --check-config */
	const char *help;		  /* command that shows the flags, for messages */
	void (*report)(const char *text); /* called with each line about a mistake or a warning */
};

/* Whether --check-config is set. Then unknown keys are mistakes, and the daemon does not start. */
bool hr_config_asks_check(const struct hr_config_source *from);

/*
 * Sets the defaults, reads file and flags, and reports all mistakes. -EINVAL: mistakes; -ENOMEM.
 * Call hr_config_done() in all cases. At SIGHUP, a daemon calls this again with the same flags.
 */
int hr_config_load(const struct hr_config_source *from, void *config);

/*
 * For keys that cannot change while a daemon runs (key.fixed): `fresh` and `old` exchange their
 * values. Reports each of these keys whose values differ.
 */
void hr_config_keep_fixed(const struct hr_config_key *keys, size_t n, void *old, void *fresh,
			  void (*report)(const char *text));

/* A condition on a configuration, and the message if it is false. */
struct hr_config_rule {
	bool broken;
	const char *text;
};

/* Reports all rules whose condition is false. Returns true if there is none. */
bool hr_config_rules(const struct hr_config_rule *rules, size_t n,
		     void (*report)(const char *text));

/* Write --help or options for a man page. `file`: with the names of keys in the file. */
void hr_config_help(const struct hr_config_key *keys, size_t n, FILE *to);
void hr_config_man(const struct hr_config_key *keys, size_t n, bool file, FILE *to);
/* Escapes text for troff: no line begins a request, and backslashes and hyphens are literal. */
void hr_config_roff(const char *text, FILE *to);

/* Internal: the size of a key's member; the flag of a key, and its length. */
size_t hr__config_size(enum hr_config_type type);
size_t hr__config_flag(const struct hr_config_key *key, char *ret, size_t bytes);

#endif
