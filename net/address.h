/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.h - where a collector is
 *
 *      tcp://HOST[:PORT]      HOST: a name, 10.0.0.1, [::1]; PORT defaults to HR_WIRE_PORT
 *      unix:///PATH           on the same machine
 *
 * Plain data; any thread. Only hr_address_resolve waits (for the resolver).
 */
#ifndef HEADRACE_NET_ADDRESS_H
#define HEADRACE_NET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define HR_ADDRESS_HOST_BYTES 256u
#define HR_ADDRESSES_MAX      16u

struct hr_address {
	bool local;			  /* unix:// */
	char host[HR_ADDRESS_HOST_BYTES]; /* without brackets; the path of a local one */
	uint16_t port;
};

/* Is it one, by its scheme? "tcp://..." or "unix://..." */
bool hr_address_is(const char *text);

/* 0 or -EINVAL. */
int hr_address_parse(const char *text, struct hr_address *ret);

/* A list with commas, in order of preference. -EINVAL, -E2BIG over `max`. */
int hr_address_parse_list(const char *text, struct hr_address *ret, size_t max, size_t *ret_n);

/*
 * The same for who connects: with port 0, which only a listener may have, it is a mistake. *ret_error, malloc'ed, says for people
 * what is wrong.
 */
int hr_address_parse_targets(const char *text, struct hr_address *ret, size_t max, size_t *ret_n,
			     char **ret_error);

/* As it is typed; at most HR_ADDRESS_HOST_BYTES + 32 bytes with its NUL. */
void hr_address_text(const struct hr_address *a, char *ret, size_t bytes);

/* Socket addresses of it, at most `max`, in the resolver's order. -ENOENT: no such host, -EINVAL, -ENAMETOOLONG. */
int hr_address_resolve(const struct hr_address *a, bool passive, struct sockaddr_storage *ret,
		       size_t max, size_t *ret_n);

/* A socket in the file system that nobody listens at any more. */
bool hr_address_stale(const char *path);

/* The port of a TCP address. */
uint16_t hr_sockaddr_port(const struct sockaddr_storage *s);

/* Is it of this machine's loopback range, or local? */
bool hr_sockaddr_loopback(const struct sockaddr_storage *s);

/* "10.0.0.1:4747", "[::1]:4747", "local" */
void hr_sockaddr_text(const struct sockaddr_storage *s, char *ret, size_t bytes);

#endif
