/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - asks the kernel about the peer of a connection */
#include "net/conn_internal.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

/* Selects the peer's socket, if it is on this machine. Its local address is our peer address. */
struct diag_request {
	struct nlmsghdr header;
	struct inet_diag_req_v2 body;
};

static int diag_side(const struct sockaddr_storage *s, __be32 *ret_address, __be16 *ret_port)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (s->ss_family == AF_INET) {
		memcpy(&v4, s, sizeof(v4));
		ret_address[0] = v4.sin_addr.s_addr;
		*ret_port = v4.sin_port;
		return AF_INET;
	}
	memcpy(&v6, s, sizeof(v6));
	*ret_port = v6.sin6_port;
	if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
		memcpy(ret_address, &v6.sin6_addr.s6_addr[12], 4);
		return AF_INET;
	}
	memcpy(ret_address, &v6.sin6_addr, 16);
	return AF_INET6;
}

/*
 * Reads the owner from an answer. If a process has closed its socket, the kernel reports root as
 * owner, but a user who sends and closes at once must not become root. A closed socket has no
 * inode, and the kernel reads the owner before the inode. So if the answer has an inode, its owner
 * is right. If no connection exists, the kernel returns a listener, which is rejected.
 */
static int read_answer(const uint8_t *buf, size_t bytes, uint32_t *ret_uid)
{
	struct nlmsghdr header;
	struct inet_diag_msg body;

	if (bytes < NLMSG_HDRLEN + sizeof(body))
		return -ENOENT;
	memcpy(&header, buf, sizeof(header));
	memcpy(&body, buf + NLMSG_HDRLEN, sizeof(body));
	if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || body.idiag_state != TCP_ESTABLISHED ||
	    body.idiag_inode == 0)
		return -ENOENT;
	*ret_uid = body.idiag_uid;
	return 0;
}

static int query_owner(const struct diag_request *q, uint32_t *ret_uid)
{
	const struct timeval patience = {.tv_sec = 1};
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	uint8_t answer[1024];
	ssize_t n = -1;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (sendto(fd, q, sizeof(*q), 0, (const struct sockaddr *)&kernel, sizeof(kernel)) > 0)
		n = recv(fd, answer, sizeof(answer), 0);
	close(fd);
	return n < 0 ? -ENOENT : read_answer(answer, (size_t)n, ret_uid);
}

static int tcp_uid(const struct sockaddr_storage *ours, const struct sockaddr_storage *peers,
		   uint32_t *ret_uid)
{
	struct diag_request q = {
	    .header = {.nlmsg_len = sizeof(q),
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST},
	    .body = {.sdiag_protocol = IPPROTO_TCP, .idiag_states = 1u << TCP_ESTABLISHED},
	};
	struct inet_diag_sockid *id = &q.body.id;
	int family = diag_side(peers, id->idiag_src, &id->idiag_sport);

	if (diag_side(ours, id->idiag_dst, &id->idiag_dport) != family)
		return -ENOENT;
	q.body.sdiag_family = (uint8_t)family;
	id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	return query_owner(&q, ret_uid);
}

/* Whether both are on this machine, as equal addresses are: no other machine sends from ours. */
static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	__be32 x[4] = {0}, y[4] = {0};
	__be16 port;

	return diag_side(a, x, &port) == diag_side(b, y, &port) && memcmp(x, y, sizeof(x)) == 0;
}

void hr_conn_peer(struct hr_conn *c, struct hr_conn_peer *ret)
{
	struct sockaddr_storage ours = {0};
	socklen_t ours_bytes = sizeof(ours), peer_bytes = sizeof(ret->address);
	struct ucred cred;
	socklen_t cred_bytes = sizeof(cred);
	uv_os_fd_t fd;

	*ret = (struct hr_conn_peer){0};
	if (c->tls && hr_tls_ready(c->tls)) {
		ret->tls = true;
		hr_tls_peer(c->tls, ret->cn, sizeof(ret->cn), ret->ou, sizeof(ret->ou),
			    &ret->until);
	}
	if (uv_fileno(&c->io.handle, &fd) < 0 ||
	    getpeername(fd, (struct sockaddr *)&ret->address, &peer_bytes) < 0 ||
	    getsockname(fd, (struct sockaddr *)&ours, &ours_bytes) < 0)
		return;
	ret->loopback = hr_sockaddr_loopback(&ret->address);
	if (ret->address.ss_family == AF_UNIX) {
		ret->uid_known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_bytes) == 0;
		ret->uid = ret->uid_known ? cred.uid : 0;
	} else if (ret->address.ss_family == AF_INET || ret->address.ss_family == AF_INET6) {
		ret->loopback = ret->loopback || same_host(&ret->address, &ours);
		ret->uid_known = ret->loopback && tcp_uid(&ours, &ret->address, &ret->uid) == 0;
	}
}
