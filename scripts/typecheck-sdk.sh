#!/usr/bin/env bash
# Shows the SDK's declarations to real type checkers: `deno check` and `mypy --strict`, from PyPI, in a virtual
# environment under target/. Every schema file and some hundred generated schemas, with calls that must be accepted
# and calls that must be refused: a refusal that does not come is an error, so the check can fail.
#
# PROFILE=dev builds the example that writes the programs in that profile instead of release.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${PROFILE:-release}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
requirements=scripts/typecheck-sdk.txt
venv=$target/typecheck-sdk/.venv
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT

if ! cmp -s $requirements "$venv/installed.txt"; then
    if ! { python3 -m venv "$venv" &&
        "$venv/bin/pip" install --quiet --disable-pip-version-check -r $requirements; }; then
        echo "skipped: type checks of the SDK, since deno and mypy cannot be installed from PyPI"
        exit 0
    fi
    cp $requirements "$venv/installed.txt"
fi

counts=$(cargo run --quiet --profile "$profile" -p codemode-sdk --example typecheck -- \
    registry/sdk/tests/schemas "$programs")
read -r typescript python refusals <<<"$counts"

cd "$programs"
failed=0
NO_COLOR=1 DENO_NO_UPDATE_CHECK=1 "$venv/bin/deno" check --quiet --no-remote -- *.ts || failed=1
# Mypy's new parser has no integers beyond 64 bits, its old one no `type` statement on an old Python.
mapfile -t large < <(grep -lE 'Literal\[.*[0-9]{19}' -- *.py)
mapfile -t other < <(grep -LE 'Literal\[.*[0-9]{19}' -- *.py)
mypy() { "$venv/bin/mypy" --strict --no-error-summary --python-version 3.12 --cache-dir .mypy "$@" || failed=1; }
mypy -- "${other[@]}"
[ ${#large[@]} = 0 ] || mypy --no-native-parser -- "${large[@]}"

[ $failed = 0 ] || { echo "type checks of the SDK failed" >&2; exit 1; }
echo "typecheck: $typescript TypeScript files, $python Python files, $refusals expected refusals"
