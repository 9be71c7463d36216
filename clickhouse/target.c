/* SPDX-License-Identifier: Apache-2.0 */
#include "clickhouse/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#define SCHEME	   "clickhouse://"
#define FORM	   "clickhouse://[USER@]HOST[:PORT]/DATABASE"
#define PORT	   8123u
#define PORT_TLS   8443u
#define NAME_BYTES 256u

bool hr_ch_target_is(const char *text)
{
	return strncmp(text, SCHEME, strlen(SCHEME)) == 0;
}

/* Whether a text has only the given bytes, and is not empty. */
static bool only(const char *text, const char *bytes)
{
	return text[0] != '\0' && strspn(text, bytes) == strlen(text);
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS	"0123456789"

bool hr_ch_is_name(const char *text)
{
	return only(text, LETTERS DIGITS "_");
}

/* Adds a host. `host` is HOST[:PORT], with an IPv6 address in brackets. */
static int add_host(struct hr_ch_target *t, char *host, bool tls, char **ret_error)
{
	char *port = host[0] == '[' ? strchr(host, ']') : host;
	char url[NAME_BYTES + 32];
	uint64_t number = tls ? PORT_TLS : PORT;

	port = port ? strchr(port, ':') : NULL;
	if (port)
		*port++ = '\0';
	if ((port && (hr_text_parse_uint(port, 65535, &number) < 0 || number == 0)) ||
	    strlen(host) >= NAME_BYTES || !only(host, LETTERS DIGITS ".-_[]:%"))
		return hr_text_fail(-EINVAL, ret_error,
				    "\"%s\" is not the address of a server: " FORM, host);
	if (t->n_hosts == HR_CH_HOSTS_MAX)
		return hr_text_fail(-EINVAL, ret_error, "at most %u servers", HR_CH_HOSTS_MAX);
	snprintf(url, sizeof(url), "%s://%s:%u", tls ? "https" : "http", host, (unsigned)number);
	t->hosts[t->n_hosts] = (struct hr_ch_host){hr_arena_text(&t->memory, url), t->n_shards};
	return t->hosts[t->n_hosts++].url ? 0 : -ENOMEM;
}

static int add_hosts(struct hr_ch_target *t, char *hosts, bool tls, char **ret_error)
{
	int r = 0;

	for (char *shard; r == 0 && (shard = strsep(&hosts, ",")); t->n_shards++)
		for (char *host; r == 0 && (host = strsep(&shard, "+"));)
			r = add_host(t, host, tls, ret_error);
	return r;
}

static int read_password(struct hr_ch_target *t, const char *path, char **ret_error)
{
	FILE *from = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	ssize_t n = from ? getline(&line, &room, from) : -1;
	int error = from ? 0 : -errno;

	if (n > 0) {
		line[strcspn(line, "\r\n")] = '\0';
		t->password = hr_arena_text(&t->memory, line);
	}
	if (from)
		fclose(from);
	free(line);
	if (n > 0)
		return t->password ? 0 : -ENOMEM;
	return hr_text_fail(error < 0 ? error : -EINVAL, ret_error,
			    "cannot read a password from %s: %s", path,
			    error < 0 ? strerrordesc_np(-error) : "it is empty");
}

/* Takes the options after `?`. The file of the password is read last. */
static int take_options(struct hr_ch_target *t, char *options, bool *tls, char **ret_error)
{
	const char *file = NULL;

	for (char *option; options && (option = strsep(&options, "&"));) {
		char *value = strchr(option, '=');

		if (value)
			*value++ = '\0';
		if (value && strcmp(option, "tls") == 0 &&
		    (strcmp(value, "yes") == 0 || strcmp(value, "no") == 0))
			*tls = value[0] == 'y';
		else if (value && strcmp(option, "ca") == 0)
			t->ca = value;
		else if (value && strcmp(option, "cert") == 0)
			t->cert = value;
		else if (value && strcmp(option, "key") == 0)
			t->key = value;
		else if (value && strcmp(option, "password_file") == 0)
			file = value;
		else
			return hr_text_fail(-EINVAL, ret_error,
					    "\"%s\" is not an option of %s...: valid are tls=yes, "
					    "ca=FILE, cert=FILE, key=FILE, password_file=FILE",
					    option, SCHEME);
	}
	if (file && !t->user)
		return hr_text_fail(-EINVAL, ret_error,
				    "password_file needs a user: " SCHEME
				    "USER@HOST/DATABASE?password_file=FILE");
	return file ? read_password(t, file, ret_error) : 0;
}

int hr_ch_target_parse(const char *text, struct hr_ch_target *ret, char **ret_error)
{
	char *hosts, *options, *database, *at;
	bool tls = false;
	int r;

	*ret = (struct hr_ch_target){0};
	if (!hr_ch_target_is(text))
		return hr_text_fail(-EINVAL, ret_error, "must be %s", FORM);
	hosts = hr_arena_text(&ret->memory, text + strlen(SCHEME));
	if (!hosts)
		return -ENOMEM;
	options = strchr(hosts, '?');
	if (options)
		*options++ = '\0';
	database = strchr(hosts, '/');
	if (database)
		*database++ = '\0';
	at = strrchr(hosts, '@');
	if (at) {
		*at = '\0';
		ret->user = hosts;
		hosts = at + 1;
	}
	if (ret->user && strchr(ret->user, ':'))
		return hr_text_fail(-EINVAL, ret_error,
				    "a password must not be in the address, which others can see: "
				    "use ?password_file=FILE");
	if (!database || !hr_ch_is_name(database))
		return hr_text_fail(-EINVAL, ret_error,
				    "the name of the database must have letters, digits and _: %s",
				    FORM);
	ret->database = database;
	r = take_options(ret, options, &tls, ret_error);
	return r < 0 ? r : add_hosts(ret, hosts, tls, ret_error);
}

void hr_ch_target_done(struct hr_ch_target *t)
{
	hr_arena_free(&t->memory);
}
