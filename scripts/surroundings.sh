#!/usr/bin/env bash
# The cases that attack, as other users and in other surroundings than a bare machine's root: an unprivileged user, and
# each of the two under what Docker's default profile refuses. Expects what `make build` makes.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${CARGO_TARGET_DIR:-target}/release

# Whoever runs the cases must be able to read them, wherever the clone is.
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"
cp "$bin"/{codemode-executor,conformance,lockdown-hostile} "$bin"/codemode-runner-* "$stage"
cp -r tests/conformance "$stage/cases"

users=(self)
if [ "$(id -u)" = 0 ]; then
    users+=(nobody)
else
    echo "skipped: surroundings as another user: only root can become one"
fi

status=0
for user in "${users[@]}"; do
    as=()
    [ "$user" = self ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    for outer in none docker; do
        [ "$user/$outer" != self/none ] || continue # That is the step before this one.
        echo "--- $user under $outer"
        report=$stage/report-$user-$outer
        mkdir "$report" && chmod 777 "$report"
        (cd / && CODEMODE_BIN_DIR=$stage "${as[@]}" "$stage/lockdown-hostile" run "$outer" \
            "$stage/conformance" --cases "$stage/cases" --report "$report" attacks hostile budgets) || status=1
    done
done
exit "$status"
