/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/alert_command.h"
#include "clickhouse/sink.h"
#include "store/store.h"
#include "common/host.h"
#include "common/log.h"
#include "common/text.h"
#include "common/users.h"
#include "net/address.h"
#include "net/curl_api.h"
#include "net/munge.h"
#include "net/tls.h"

struct store_check {
	const struct hr_collector_config *c;
	void (*report)(const char *text);
	bool bad;
};

__attribute__((format(printf, 2, 3))) static void mistake(struct store_check *k, const char *format,
							  ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	k->bad = true;
	k->report(n < 0 ? "out of memory" : text);
	if (n >= 0)
		free(text);
}

static bool readable(struct store_check *k, const char *key, const char *path)
{
	if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0)
		return true;
	mistake(k, "%s: cannot read %s: %s", key, path, strerrordesc_np(errno));
	return false;
}

static void check_tls(struct store_check *k)
{
	const struct hr_tls_files files = {
	    .cert = k->c->tls_cert, .key = k->c->tls_key, .ca = k->c->tls_ca};
	bool all = hr_text_given(files.cert) && readable(k, "tls_cert", files.cert);
	struct hr_tls *tls = NULL;
	char *error = NULL;

	all = hr_text_given(files.key) && readable(k, "tls_key", files.key) && all;
	all = hr_text_given(files.ca) && readable(k, "tls_ca", files.ca) && all;
	if (all && hr_tls_new(&files, true, &tls, &error) < 0)
		mistake(k, "%s", error ? error : "cannot load the certificates");
	free(error);
	hr_tls_unref(tls);
}

/* Binds any free port of the address, because a running collector may use the configured port. */
static int bind_any_port(struct sockaddr_storage *s)
{
	bool six = s->ss_family == AF_INET6;
	int fd = socket(s->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	if (fd < 0)
		return -errno;
	if (six)
		((struct sockaddr_in6 *)s)->sin6_port = 0;
	else
		((struct sockaddr_in *)s)->sin_port = 0;
	r = bind(fd, (const struct sockaddr *)s,
		 six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)) < 0
		? -errno
		: 0;
	close(fd);
	return r;
}

static int check_tcp(const struct hr_address *a)
{
	struct sockaddr_storage found[HR_ADDRESSES_MAX];
	size_t n = 0;
	int r = hr_address_resolve(a, true, found, HR_ADDRESSES_MAX, &n);

	for (size_t i = 0; i < n && r == 0; i++)
		r = bind_any_port(&found[i]);
	return r;
}

static int check_local(const struct hr_address *a)
{
	const char *name = strrchr(a->host, '/');
	char folder[HR_ADDRESS_HOST_BYTES];

	snprintf(folder, sizeof(folder), "%.*s", name ? (int)(name - a->host) + 1 : 0, a->host);
	return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

static void check_address(struct store_check *k, const char *key, const struct hr_address *a)
{
	char text[HR_ADDRESS_HOST_BYTES + 32];
	int r = a->local ? check_local(a) : check_tcp(a);

	hr_address_text(a, text, sizeof(text));
	if (r == -ENOENT && !a->local)
		mistake(k, "%s: %s: no such host", key, text);
	else if (r == -EADDRNOTAVAIL)
		mistake(k, "%s: %s is not an address of this machine", key, text);
	else if (r < 0)
		mistake(k, "%s: %s: %s", key, text, strerrordesc_np(-r));
}

/* Ignores addresses with a wrong syntax, which hr_collector_config_check reports. */
static void check_addresses(struct store_check *k)
{
	struct hr_address addresses[HR_ADDRESSES_MAX];
	size_t n = 0;

	if (hr_text_given(k->c->listen) &&
	    hr_address_parse_list(k->c->listen, addresses, HR_ADDRESSES_MAX, &n) == 0)
		for (size_t i = 0; i < n; i++)
			check_address(k, "listen", &addresses[i]);
	if (hr_text_given(k->c->metrics) && hr_address_parse(k->c->metrics, addresses) == 0)
		check_address(k, "metrics", addresses);
}

/* Checks that a folder is usable or can be created. Removes the folder that it creates. */
static int check_folder(const char *path)
{
	int fd, r;

	if (mkdir(path, 0700) == 0)
		return rmdir(path) < 0 ? -errno : 0;
	if (errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = fd < 0 || faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return r;
}

static void check_folders(struct store_check *k)
{
	const char *spill = k->c->query_spill;
	int r = hr_text_given(k->c->store) ? hr_store_check(k->c->store) : 0;

	if (r == -ENOTEMPTY)
		mistake(k, "store: %s is not a headrace store, and not empty", k->c->store);
	else if (r == -EPROTONOSUPPORT)
		mistake(k, "store: a newer headrace wrote %s", k->c->store);
	/* -EBUSY: a running collector has locked the store, which is no mistake */
	else if (r < 0 && r != -EBUSY)
		mistake(k, "store: cannot create or use %s: %s", k->c->store, strerrordesc_np(-r));
	r = hr_text_given(spill) && strcmp(spill, "none") != 0 ? check_folder(spill) : 0;
	if (r < 0)
		mistake(k, "query_spill: cannot create or use %s: %s", spill, strerrordesc_np(-r));
}

static int ask_sink(const struct hr_ch_target *target, char **ret_error)
{
	struct hr_ch_sink *sink = NULL;
	int r = hr_ch_sink_new(target, &sink, ret_error);

	if (r == 0)
		r = hr_ch_sink_check(sink, ret_error);
	hr_ch_sink_free(sink);
	return r;
}

int hr_collector_take_sink(const char *sink, struct hr_ch_target *ret)
{
	char *error = NULL;
	int r = hr_ch_target_parse(sink, ret, &error);
	bool fatal = r < 0;

	if (r == 0) {
		r = ask_sink(ret, &error);
		fatal = r == -ENOENT || r == -ELIBACC || r == -EREMOTEIO || r == -EPROTO;
	}
	if (r < 0)
		hr_log(fatal ? HR_LOG_ERROR : HR_LOG_WARNING, "sink: %s",
		       error ? error : strerrordesc_np(-r));
	free(error);
	return fatal ? r : 0;
}

/* Ignores a wrong address, which hr_collector_config_check reports. */
static void check_sink(struct store_check *k)
{
	struct hr_ch_target target;
	char *error = NULL;
	int r = hr_ch_target_parse(k->c->sink, &target, &error);

	if (r == 0) {
		r = ask_sink(&target, &error);
		if (r < 0)
			mistake(k, "sink: %s", error ? error : strerrordesc_np(-r));
	}
	hr_ch_target_done(&target);
	free(error);
}

static void check_people(struct store_check *k)
{
	const char *socket = hr_text_given(k->c->munge_socket) ? k->c->munge_socket : NULL;
	char *credential = NULL, *error = NULL;
	gid_t group;

	if (hr_text_given(k->c->operators) && !hr_group_by_name(k->c->operators, &group))
		mistake(k, "operators: no such group: %s", k->c->operators);
	if (k->c->munge && hr_munge_encode(socket, &credential, &error) < 0)
		mistake(k, "munge: %s", error ? error : "cannot reach munged");
	free(credential);
	free(error);
}

static void check_receivers(struct store_check *k)
{
	char program[PATH_MAX], *error = NULL;
	int r = 0;

	if (hr_text_given(k->c->alert_command)) {
		hr_alert_command_program(k->c->alert_command, program, sizeof(program));
		r = hr_host_find_program(program);
		if (r < 0)
			mistake(k, "alert_command: cannot run %s: %s", program,
				strerrordesc_np(-r));
	}
	if (hr_text_given(k->c->alert_url) && hr_curl_load(&error) < 0)
		mistake(k, "alert_url: %s", error ? error : "cannot load libcurl");
	free(error);
}

bool hr_collector_check(const struct hr_collector_config *c, void (*report)(const char *text))
{
	struct store_check k = {.c = c, .report = report};

	check_tls(&k);
	check_addresses(&k);
	if (hr_text_given(c->sink))
		check_sink(&k);
	else
		check_folders(&k);
	check_people(&k);
	check_receivers(&k);
	return !k.bad;
}
