/* SPDX-License-Identifier: Apache-2.0 */
#include "net/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/text.h"
#include "net/wire.h"

#define TCP   "tcp://"
#define LOCAL "unix://"

static const char *after(const char *text, const char *scheme)
{
	size_t n = strlen(scheme);

	return strncmp(text, scheme, n) == 0 ? text + n : NULL;
}

bool hr_address_is(const char *text)
{
	return after(text, TCP) || after(text, LOCAL);
}

bool hr_address_meant(const char *text)
{
	return strstr(text, "://") || after(text, "tcp:") || after(text, "unix:");
}

static int parse_local(const char *path, size_t n, struct hr_address *a)
{
	if (n < 2 || path[0] != '/' || n >= sizeof(a->host))
		return -EINVAL;
	a->local = true;
	memcpy(a->host, path, n);
	return 0;
}

/* Accepts names, addresses with dots, and the text in brackets: hex digits, colons, "%eth0". */
static bool is_host(const char *host, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)host[i]) && !strchr(".-_:%", host[i]))
			return false;
	return n > 0;
}

static int parse_port(const char *text, size_t n, uint16_t *ret)
{
	char digits[8];
	uint64_t port;

	if (n >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, n);
	digits[n] = '\0';
	if (hr_text_parse_uint(digits, UINT16_MAX, &port) < 0)
		return -EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

static int parse_tcp(const char *text, size_t n, struct hr_address *a)
{
	const char *host = text, *end = text + n, *host_end, *port;

	if (n > 0 && text[0] == '[') {
		host = text + 1;
		host_end = memchr(host, ']', n - 1);
		if (!host_end)
			return -EINVAL;
		port = host_end + 1;
	} else {
		host_end = memchr(text, ':', n);
		port = host_end ? host_end : end;
		host_end = port;
	}
	if ((size_t)(host_end - host) >= sizeof(a->host) ||
	    !is_host(host, (size_t)(host_end - host)))
		return -EINVAL;
	memcpy(a->host, host, (size_t)(host_end - host));
	a->port = HR_WIRE_PORT;
	if (port == end)
		return 0;
	return *port == ':' ? parse_port(port + 1, (size_t)(end - port - 1), &a->port) : -EINVAL;
}

static int address_parse(const char *text, size_t n, struct hr_address *ret)
{
	struct hr_address a = {0};
	const char *rest;
	int r;

	if ((rest = after(text, TCP)) && rest <= text + n)
		r = parse_tcp(rest, (size_t)(text + n - rest), &a);
	else if ((rest = after(text, LOCAL)) && rest <= text + n)
		r = parse_local(rest, (size_t)(text + n - rest), &a);
	else
		r = -EINVAL;
	if (r == 0)
		*ret = a;
	return r;
}

int hr_address_parse(const char *text, struct hr_address *ret)
{
	return address_parse(text, strlen(text), ret);
}

int hr_address_parse_list(const char *text, struct hr_address *ret, size_t max, size_t *ret_n)
{
	size_t n = 0;

	for (;;) {
		const char *comma = strchrnul(text, ','), *end = comma;
		int r;

		while (text < end && isspace((unsigned char)*text))
			text++;
		while (end > text && isspace((unsigned char)end[-1]))
			end--;
		if (n == max)
			return -E2BIG;
		r = address_parse(text, (size_t)(end - text), &ret[n]);
		if (r < 0)
			return r;
		n++;
		if (*comma == '\0')
			break;
		text = comma + 1;
	}
	*ret_n = n;
	return 0;
}

int hr_address_parse_targets(const char *text, struct hr_address *ret, size_t max, size_t *ret_n,
			     char **ret_error)
{
	size_t n;
	int r = hr_address_parse_list(text, ret, max, &n);

	if (r == -E2BIG)
		return hr_text_fail(r, ret_error, "'%s': at most %zu collector%s", text, max,
				    max == 1 ? "" : "s");
	if (r < 0)
		return hr_text_fail(
		    r, ret_error,
		    "'%s' is not an address of a collector: tcp://HOST[:PORT] or unix:///PATH",
		    text);
	for (size_t i = 0; i < n; i++)
		if (!ret[i].local && ret[i].port == 0)
			return hr_text_fail(
			    -EINVAL, ret_error,
			    "'%s': port 0 is not valid; the default port of collectors is %d", text,
			    HR_WIRE_PORT);
	*ret_n = n;
	return 0;
}

void hr_address_text(const struct hr_address *a, char *ret, size_t bytes)
{
	if (a->local)
		snprintf(ret, bytes, LOCAL "%s", a->host);
	else
		snprintf(ret, bytes, strchr(a->host, ':') ? TCP "[%s]:%u" : TCP "%s:%u", a->host,
			 a->port);
}

static int resolve_local(const struct hr_address *a, struct sockaddr_storage *ret, size_t max,
			 size_t *ret_n)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	size_t n = strlen(a->host);

	if (n >= sizeof(un.sun_path))
		return -ENAMETOOLONG;
	memcpy(un.sun_path, a->host, n);
	if (max > 0)
		memcpy(ret, &un, sizeof(un));
	*ret_n = max > 0;
	return 0;
}

int hr_address_resolve(const struct hr_address *a, bool passive, struct sockaddr_storage *ret,
		       size_t max, size_t *ret_n)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC,
				 .ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0)};
	struct addrinfo *found;
	char port[8];
	size_t n = 0;
	int r;

	if (a->local)
		return resolve_local(a, ret, max, ret_n);
	snprintf(port, sizeof(port), "%u", a->port);
	r = getaddrinfo(a->host, port, &hints, &found);
	if (r == EAI_MEMORY)
		return -ENOMEM;
	if (r == EAI_SYSTEM)
		return -errno;
	if (r != 0)
		return -ENOENT;
	for (struct addrinfo *i = found; i && n < max; i = i->ai_next)
		memcpy(&ret[n++], i->ai_addr, i->ai_addrlen);
	freeaddrinfo(found);
	*ret_n = n;
	return 0;
}

bool hr_address_stale(const char *path)
{
	struct sockaddr_un s = {.sun_family = AF_UNIX};
	struct stat st;
	bool refused;
	int fd;

	if (strlen(path) >= sizeof(s.sun_path) || lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return false;
	memcpy(s.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	refused = connect(fd, (struct sockaddr *)&s, sizeof(s)) < 0 && errno == ECONNREFUSED;
	close(fd);
	return refused;
}

uint16_t hr_sockaddr_port(const struct sockaddr_storage *s)
{
	return ntohs(s->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)s)->sin6_port
					      : ((const struct sockaddr_in *)s)->sin_port);
}

bool hr_sockaddr_loopback(const struct sockaddr_storage *s)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)s;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)s;

	switch (s->ss_family) {
	case AF_UNIX:
		return true;
	case AF_INET:
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	case AF_INET6:
		return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
		       (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) &&
			v6->sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
	default:
		return false;
	}
}

void hr_sockaddr_text(const struct sockaddr_storage *s, char *ret, size_t bytes)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)s;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)s;
	char host[INET6_ADDRSTRLEN] = "";

	switch (s->ss_family) {
	case AF_UNIX:
		snprintf(ret, bytes, "local");
		break;
	case AF_INET:
		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
		snprintf(ret, bytes, "%s:%u", host, ntohs(v4->sin_port));
		break;
	case AF_INET6:
		if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
			inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], host, sizeof(host));
			snprintf(ret, bytes, "%s:%u", host, ntohs(v6->sin6_port));
		} else {
			inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
			snprintf(ret, bytes, "[%s]:%u", host, ntohs(v6->sin6_port));
		}
		break;
	default:
		snprintf(ret, bytes, "unknown");
	}
}
