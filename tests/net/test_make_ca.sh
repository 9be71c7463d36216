#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_make_ca.sh MAKE-CA: what the script makes, keeps, makes anew and refuses.
set -eu
make_ca=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ca=$work/ca

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# expect WORDS...: the last output's lines
expect() {
	printf '%s\n' "$@" | sed "s|@|$ca|" >"$work/want"
	cmp -s "$work/want" "$work/out" || fail "wanted '$*', got: $(cat "$work/out")"
}

run() {
	"$make_ca" "$@" >"$work/out" 2>"$work/err" || fail "make-ca $*: $(cat "$work/err")"
}

# refused STATUS WORDS ARGUMENT...
refused() {
	want=$1 says=$2 status=0
	shift 2
	"$make_ca" "$@" >"$work/out" 2>"$work/err" || status=$?
	[ "$status" -eq "$want" ] || fail "make-ca $* ended with $status"
	grep -q -e "$says" "$work/err" || fail "make-ca $* says $(cat "$work/err")"
}

field() {
	openssl x509 -in "$1" -noout "-$2"
}

run "$ca" --collector c1,c1.example,10.0.0.1,fd00::1 --node n1 --user alice
expect 'made @/ca.pem' 'made @/collector/c1.pem' 'made @/node/n1.pem' 'made @/user/alice.pem'
[ "$(field "$ca/collector/c1.pem" subject)" = 'subject=O = headrace, OU = headrace-collector, CN = c1' ] || fail subject
[ "$(field "$ca/node/n1.pem" subject)" = 'subject=O = headrace, OU = headrace-node, CN = n1' ] || fail subject
[ "$(field "$ca/user/alice.pem" subject)" = 'subject=O = headrace, OU = headrace-user, CN = alice' ] || fail subject
for name in c1 c1.example; do
	openssl x509 -in "$ca/collector/c1.pem" -noout -checkhost $name | grep -q ' does match ' || fail "not for $name"
done
for address in 10.0.0.1 fd00::1; do
	openssl x509 -in "$ca/collector/c1.pem" -noout -checkip $address | grep -q ' does match ' || fail "not for $address"
done
openssl verify -purpose sslserver -CAfile "$ca/ca.pem" "$ca/collector/c1.pem" >/dev/null || fail 'c1 is no server'
openssl verify -purpose sslclient -CAfile "$ca/ca.pem" "$ca/node/n1.pem" >/dev/null || fail 'n1 is no client'
! openssl verify -purpose sslserver -CAfile "$ca/ca.pem" "$ca/node/n1.pem" >/dev/null 2>&1 || fail 'n1 is a server'
for key in ca collector/c1 node/n1 user/alice; do
	[ "$(stat -c %a "$ca/$key.key")" = 600 ] || fail "mode of $key.key"
	openssl pkey -in "$ca/$key.key" -noout -text | grep -q P-256 || fail "kind of $key.key"
done

# The same again changes nothing; another name, or too short a life, makes one certificate anew, for the same key.
before=$(cat "$ca"/*/*)
run "$ca" --collector c1,10.0.0.1 --node n1 --user alice
expect 'kept @/collector/c1.pem' 'kept @/node/n1.pem' 'kept @/user/alice.pem'
[ "$before" = "$(cat "$ca"/*/*)" ] || fail 'kept, and changed'
key=$(cat "$ca/collector/c1.key")
run "$ca" --collector c1,second --node n2
expect 'made @/collector/c1.pem' 'made @/node/n2.pem'
[ "$key" = "$(cat "$ca/collector/c1.key")" ] || fail 'another key'
run "$ca" --node short --days 10
run "$ca" --node short
expect 'made @/node/short.pem'

# Of another authority, though under the same name.
run "$work/ca2" --node n1
cp "$work/ca2/node/n1.pem" "$ca/node/n1.pem"
run "$ca" --node n1
expect 'made @/node/n1.pem'

refused 2 'which folder'
refused 2 'no option --nodes' "$ca" --nodes n1
refused 2 'needs a value' "$ca" --node
refused 2 'no name of a host' "$ca" --node ../n1
refused 2 'no name of a host' "$ca" --node 'n1 OU=headrace-user'
refused 2 'no name of a user' "$ca" --user 'root/CN=x'
refused 2 'longer than 64' "$ca" --user aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
refused 2 'no list of names' "$ca" --collector c1,,c2
refused 2 'no list of names' "$ca" --collector 'c1,DNS=*'
refused 2 'number of days' "$ca" --days 0
refused 2 'number of days' "$ca" --days 1y
refused 1 'begin with a new folder' "$ca" --node n9 --days 9999
rm "$ca/ca.key"
refused 1 'cannot sign any more' "$ca" --node n9
[ ! -e "$ca/node/n9.pem" ] || fail 'made one all the same'
echo "1 passed, 0 failed"
