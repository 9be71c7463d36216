/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/privacy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "common/text.h"

#define DIGITS	       8u /* hexadecimal digits of the pseudonym of a path component */
#define EXTENSION_MOST 9u /* maximum bytes of a file name's extension, with the dot */
#define DIGEST_BYTES   32u
#define KEY_FILE_BYTES 4096u

struct hr_privacy {
	struct hr_privacy_rules rules;
	EVP_MAC_CTX *mac; /* contains the key */
};

/* ---- the key --------------------------------------------------------------------------------- */

static int read_key(const char *path, uint8_t ret[DIGEST_BYTES], char **ret_error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t text[KEY_FILE_BYTES];
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;
	int r = n < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	if (r < 0)
		return hr_text_fail(r, ret_error, "privacy_key: cannot read %s: %s", path,
				    strerrordesc_np(-r));
	if (n < (ssize_t)HR_PRIVACY_KEY_LEAST)
		r = hr_text_fail(-EINVAL, ret_error,
				 "privacy_key: %s: the key must have at least %u bytes", path,
				 HR_PRIVACY_KEY_LEAST);
	else if (EVP_Digest(text, (size_t)n, ret, NULL, EVP_sha256(), NULL) != 1)
		r = -ENOMEM;
	explicit_bzero(text, sizeof(text));
	return r;
}

int hr_privacy_key(const char *path, uint8_t ret[32], char **ret_error)
{
	_Static_assert(DIGEST_BYTES == 32, "of SHA-256");
	if (read_key(path, ret, ret_error) == 0)
		return 0;
	return getrandom(ret, DIGEST_BYTES, 0) == DIGEST_BYTES ? 0 : -errno;
}

struct hr_privacy *hr_privacy_new(const struct hr_privacy_rules *rules)
{
	OSSL_PARAM params[] = {
	    OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char[]){"SHA256"}, 0),
	    OSSL_PARAM_construct_end(),
	};
	struct hr_privacy *p = calloc(1, sizeof(*p));
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);

	if (p && mac) {
		p->rules = *rules;
		p->mac = EVP_MAC_CTX_new(mac);
	}
	EVP_MAC_free(mac);
	if (p && p->mac && EVP_MAC_init(p->mac, rules->key, sizeof(rules->key), params) == 1)
		return p;
	hr_privacy_free(p);
	return NULL;
}

void hr_privacy_free(struct hr_privacy *p)
{
	if (!p)
		return;
	EVP_MAC_CTX_free(p->mac);
	explicit_bzero(p, sizeof(*p));
	free(p);
}

/* Computes a digest with the key. Without memory, it is all zeros, which reveals nothing. */
static void digest(struct hr_privacy *p, const void *bytes, size_t n, uint8_t ret[DIGEST_BYTES])
{
	size_t length;

	if (EVP_MAC_init(p->mac, NULL, 0, NULL) != 1 || EVP_MAC_update(p->mac, bytes, n) != 1 ||
	    EVP_MAC_final(p->mac, ret, &length, DIGEST_BYTES) != 1)
		memset(ret, 0, DIGEST_BYTES);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static bool is_letter(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns the size of a file name's extension, with the dot (".tar"); 0: the name has none. */
static size_t extension(const uint8_t *name, size_t bytes)
{
	for (size_t n = 1; n < bytes && n <= EXTENSION_MOST; n++) {
		const uint8_t *at = name + bytes - n;

		if (*at == '.')
			return n > 1 && is_letter(at[1]) ? n : 0;
		if (!is_letter(*at) && (*at < '0' || *at > '9'))
			return 0;
	}
	return 0;
}

static size_t put_pseudonym(struct hr_privacy *p, const uint8_t *name, size_t bytes, uint8_t *out)
{
	static const char hex[] = "0123456789abcdef";
	size_t dot = extension(name, bytes);
	uint8_t sum[DIGEST_BYTES];

	digest(p, name, bytes, sum);
	for (size_t i = 0; i < DIGITS; i++)
		out[i] = (uint8_t)hex[sum[i / 2] >> (i % 2 ? 0 : 4) & 15];
	memcpy(out + DIGITS, name + bytes - dot, dot);
	return DIGITS + dot;
}

/* Returns the maximum size of the result: a component of one byte becomes DIGITS bytes. */
size_t hr_privacy_room(size_t bytes)
{
	return bytes * (DIGITS + 1) / 2 + DIGITS + EXTENSION_MOST + 2;
}

size_t hr_privacy_path(struct hr_privacy *p, const uint8_t *path, size_t bytes, uint8_t *out)
{
	unsigned keep = p->rules.keep;
	size_t at = 0, n = 0;

	if (p->rules.paths == HR_PATHS_FULL) {
		memcpy(out, path, bytes);
		return bytes;
	}
	/* Relative paths, and names like "memfd:name", have no folders of the site. */
	if (bytes == 0 || path[0] != '/')
		keep = 0;
	for (unsigned component = 0; at < bytes; component++) {
		const uint8_t *slash = memchr(path + at, '/', bytes - at);
		size_t name = slash ? (size_t)(slash - (path + at)) : bytes - at;

		if (name == 0) {
			component--;
		} else if (component < keep) {
			memcpy(out + n, path + at, name);
			n += name;
		} else if (p->rules.paths == HR_PATHS_HASH) {
			n += put_pseudonym(p, path + at, name, out + n);
		} else {
			const uint8_t *last = memrchr(path + at, '/', bytes - at);
			size_t from = last ? (size_t)(last + 1 - path) : at;
			size_t dot = extension(path + from, bytes - from);

			out[n++] = '+';
			memcpy(out + n, path + bytes - dot, dot);
			return n + dot;
		}
		at += name;
		if (slash) {
			out[n++] = '/';
			at++;
		}
	}
	return n;
}

uint64_t hr_privacy_hash(struct hr_privacy *p, uint64_t hash)
{
	uint8_t sum[DIGEST_BYTES];
	uint64_t hidden;

	if (p->rules.paths == HR_PATHS_FULL)
		return hash;
	digest(p, &hash, sizeof(hash), sum);
	memcpy(&hidden, sum, sizeof(hidden));
	return hidden;
}

/* ---- command lines --------------------------------------------------------------------------- */

size_t hr_privacy_command(const struct hr_privacy *p, const uint8_t *command, size_t bytes)
{
	const uint8_t *blank;

	if (p->rules.commands == HR_COMMANDS_NONE)
		return 0;
	blank = p->rules.commands == HR_COMMANDS_PROGRAM ? memchr(command, ' ', bytes) : NULL;
	return blank ? (size_t)(blank - command) : bytes;
}
