/* SPDX-License-Identifier: Apache-2.0 */
/* payload.c - writes a number as JSON, without printf, which may use the locale */
#include <string.h>

#include "shim/regions/region.h"

/* The values are those of NVTX. */
enum { TYPE_UINT64 = 1, TYPE_INT64, TYPE_DOUBLE, TYPE_UINT32, TYPE_INT32, TYPE_FLOAT };

#define DIGITS_DOUBLE 15
#define DIGITS_FLOAT  7
#define WHOLE	      1e15 /* smaller whole numbers are written without an exponent */

static char *put_signed(char *to, int64_t n)
{
	if (n < 0)
		*to++ = '-';
	return hr_put_digits(to, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

/* Writes a number like 12 or 1.25e-3, with as many digits as its type has. */
static char *put_real(char *to, double d, int digits)
{
	uint64_t unit = 1, n;
	int exponent = 0;

	if (d < 0) {
		*to++ = '-';
		d = -d;
	}
	if (d < WHOLE && d == (double)(uint64_t)d)
		return hr_put_digits(to, (uint64_t)d);
	for (int i = 1; i < digits; i++)
		unit *= 10;
	for (; d >= 10; exponent++)
		d /= 10;
	for (; d < 1; exponent--)
		d *= 10;
	n = (uint64_t)(d * (double)unit + 0.5);
	if (n >= 10 * unit) { /* rounding has added a digit */
		n /= 10;
		exponent++;
	}
	for (; unit > 1 && n % 10 == 0; n /= 10)
		unit /= 10; /* drops final zeros: 2.5, not 2.50000 */
	to = hr_put_digits(to, n / unit);
	if (unit > 1) {
		*to++ = '.';
		n %= unit;
		for (unit /= 10; unit > 0; unit /= 10)
			*to++ = (char)('0' + n / unit % 10);
	}
	if (exponent != 0) {
		*to++ = 'e';
		to = put_signed(to, exponent);
	}
	return to;
}

static double real_of(const struct hr__payload *p)
{
	double d;
	float f;

	if (p->type == TYPE_DOUBLE) {
		memcpy(&d, &p->bits, sizeof(d));
		return d;
	}
	memcpy(&f, &p->bits, sizeof(f));
	return (double)f;
}

bool hr__payload_text(const struct hr__payload *p, char out[HR__PAYLOAD_TEXT])
{
	static const char key[] = "{\"payload\":";
	char *to = out + sizeof(key) - 1;
	double d;

	memcpy(out, key, sizeof(key) - 1);
	switch (p->type) {
	case TYPE_UINT64:
		to = hr_put_digits(to, p->bits);
		break;
	case TYPE_INT64:
		to = put_signed(to, (int64_t)p->bits);
		break;
	case TYPE_UINT32:
		to = hr_put_digits(to, (uint32_t)p->bits);
		break;
	case TYPE_INT32:
		to = put_signed(to, (int32_t)p->bits);
		break;
	case TYPE_DOUBLE:
	case TYPE_FLOAT:
		d = real_of(p);
		if (d - d != 0) /* infinite, or not a number */
			return false;
		to = put_real(to, d, p->type == TYPE_DOUBLE ? DIGITS_DOUBLE : DIGITS_FLOAT);
		break;
	default:
		return false;
	}
	*to++ = '}';
	*to = '\0';
	return true;
}
