/* SPDX-License-Identifier: Apache-2.0 */
#include "net/munge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "net/munge_api.h"

/* Payload of headrace's credentials. Credentials for other services are refused. */
static const char purpose[] = "headrace";

static int context(const char *socket, struct munge_ctx **ret, char **ret_error)
{
	int r = hr_munge_load(HR_MUNGE_LIBRARY, ret_error);

	if (r < 0)
		return r;
	*ret = NULL;
	if (!socket)
		return 0;
	*ret = hr_munge.ctx_create();
	if (*ret && hr_munge.ctx_set(*ret, HR_MUNGE_OPT_SOCKET, socket) == HR_EMUNGE_SUCCESS)
		return 0;
	hr_munge.ctx_destroy(*ret);
	return hr_text_fail(-ENOMEM, ret_error, "out of memory");
}

/* Converts libmunge's error `e`. Returns `r` if the credential is the problem. */
static int convert(unsigned e, struct munge_ctx *ctx, int r, char **ret_error)
{
	const char *text = ctx ? hr_munge.ctx_strerror(ctx) : NULL;

	text = text ? text : hr_munge.strerror(e);
	if (e == HR_EMUNGE_SOCKET)
		return hr_text_fail(-ECONNREFUSED, ret_error, "munged does not answer: %s", text);
	return hr_text_fail(e == HR_EMUNGE_NO_MEMORY ? -ENOMEM : r, ret_error, "MUNGE: %s", text);
}

int hr_munge_encode(const char *socket, char **ret, char **ret_error)
{
	struct munge_ctx *ctx;
	char *credential = NULL;
	unsigned e;
	int r = context(socket, &ctx, ret_error);

	if (r < 0)
		return r;
	e = hr_munge.encode(&credential, ctx, purpose, sizeof(purpose) - 1);
	if (e == HR_EMUNGE_SUCCESS)
		*ret = credential;
	else
		r = convert(e, ctx, -EIO, ret_error);
	hr_munge.ctx_destroy(ctx);
	return r;
}

int hr_munge_decode(const char *socket, const char *credential, uint32_t *ret_uid,
		    uint32_t *ret_gid, char **ret_error)
{
	struct munge_ctx *ctx;
	void *payload = NULL;
	uid_t uid;
	gid_t gid;
	int bytes = 0, r = context(socket, &ctx, ret_error);
	unsigned e;

	if (r < 0)
		return r;
	e = hr_munge.decode(credential, ctx, &payload, &bytes, &uid, &gid);
	if (e != HR_EMUNGE_SUCCESS) {
		r = convert(e, ctx, -EACCES, ret_error);
	} else if (bytes != sizeof(purpose) - 1 ||
		   memcmp(payload, purpose, sizeof(purpose) - 1) != 0) {
		r = hr_text_fail(-EACCES, ret_error,
				 "MUNGE: the credential is for another service");
	} else {
		*ret_uid = uid;
		*ret_gid = gid;
	}
	free(payload);
	hr_munge.ctx_destroy(ctx);
	return r;
}
