/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.h - the address of a collector
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
	bool local;			  /* the address is unix:///PATH */
	char host[HR_ADDRESS_HOST_BYTES]; /* without brackets; if local: the path */
	uint16_t port;
};

bool hr_address_is(const char *text); /* whether the text begins with "tcp://" or "unix://" */

/*
 * Whether a text is meant as an address and not as a path: it contains "://", or begins
 * with "tcp:" or "unix:".
 */
bool hr_address_meant(const char *text);

int hr_address_parse(const char *text, struct hr_address *ret);

/* Parses a list with commas, in order of preference. -EINVAL. -E2BIG: more than `max` addresses. */
int hr_address_parse_list(const char *text, struct hr_address *ret, size_t max, size_t *ret_n);

/* Like hr_address_parse_list, but refuses port 0. *ret_error (malloc'ed) is a text for the user. */
int hr_address_parse_targets(const char *text, struct hr_address *ret, size_t max, size_t *ret_n,
			     char **ret_error);

/* Formats an address as users write it. At most HR_ADDRESS_HOST_BYTES + 32 bytes, with the NUL. */
void hr_address_text(const struct hr_address *a, char *ret, size_t bytes);

/* Finds up to `max` addresses, in resolver order. -ENOENT: unknown host; -EINVAL; -ENAMETOOLONG. */
int hr_address_resolve(const struct hr_address *a, bool passive, struct sockaddr_storage *ret,
		       size_t max, size_t *ret_n);

/* Whether the path is a socket on which no process listens now. */
bool hr_address_stale(const char *path);

uint16_t hr_sockaddr_port(const struct sockaddr_storage *s);

/* Whether the address is a unix socket or in the loopback range. */
bool hr_sockaddr_loopback(const struct sockaddr_storage *s);

/* Writes "10.0.0.1:4747", "[::1]:4747" or "local". */
void hr_sockaddr_text(const struct sockaddr_storage *s, char *ret, size_t bytes);

#endif
