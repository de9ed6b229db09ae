#!/bin/sh
# Pay once, with curl alone. The key is made with the intent and kept: every try sends it, also after a restart.
#
#     AUTHORIZATION="Token …" pay.sh <address> <file of the key> <body>
set -eu

address=$1 file=$2 body=$3
# Written whole before it has the name: nobody reads half a key, and whoever was first has made it.
od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$file.$$"
ln "$file.$$" "$file" 2>/dev/null || true
rm "$file.$$"
key=$(cat "$file")
# Of an empty one curl sends no header at all, and every try would be an operation of its own.
: "${key:?no key in $file}"

# curl tries again after a failure, waits as Retry-After says, and sends the same key each time. That --retry-all-errors
# also repeats what was refused for good does no harm: it is answered from the ledger.
curl --silent --show-error --fail-with-body --max-time 15 \
    --retry 10 --retry-all-errors --retry-max-time 60 \
    --header 'Content-Type: application/json' \
    --header "Authorization: ${AUTHORIZATION:-}" \
    --header "Idempotency-Key: $key" \
    --data "$body" "$address"
