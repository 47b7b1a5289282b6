#!/usr/bin/env bash
# All checks and tests, each to its end even if an earlier one failed. Expects what `make build` makes.
#
# The output of each step is kept under target/test/. Of cargo's tests, what passing tests print is not shown, except
# their lines `skipped: REASON`, which are counted. The last line sums up: each test of cargo, each other step, and each
# conformance case on each engine counts as one.
set -uo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
logs=$target/test
rm -rf "$logs"
mkdir -p "$logs"

passed=0 failed=0 skipped=0
table=()

# step NAME COMMAND...: runs it; a step counts as one test, unless it is one that counts its own.
step() {
    local name=$1 begun=$SECONDS result=ok before=$failed
    shift
    printf '\n=== %s: %s\n' "$name" "$*"
    "$@" 2>&1 | tee "$logs/$name.log" | shown || result=FAILED
    counts "$name" || { [ $result = FAILED ] || passed=$((passed + 1)); }
    # What failed without a test that did: a build, a check.
    [ $result = ok ] || [ "$failed" -gt "$before" ] || failed=$((failed + 1))
    skipped=$((skipped + $(grep -c '^skipped: ' "$logs/$name.log")))
    table+=("$(printf '%-14s %-6s %4d s' "$name" "$result" $((SECONDS - begun)))")
}

# What is for people: not what passing tests print, but for what they skipped. Python and not awk, since an awk may
# read ahead and show a line minutes later.
shown() {
    PYTHONIOENCODING=utf-8:surrogateescape python3 -uc '
import re, sys
hidden = False
for line in sys.stdin:
    hidden = (hidden or line == "successes:\n") and not re.match(r"failures:$|test result: ", line)
    if not hidden or re.match(r"skipped: |(v8|quickjs): \d+ passed, ", line):
        print(line, end="")
'
}

# Adds what the lines of cargo and of the conformance harness say; false if there are none.
counts() {
    local sums
    sums=$(awk '
        /^test result: / || /^(v8|quickjs): [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ {
            found = 1
            for (i = 2; i <= NF; i++) {
                if ($i ~ /^passed/) p += $(i - 1)
                if ($i ~ /^failed/) f += $(i - 1)
                if ($i ~ /^ignored/) s += $(i - 1) # Cases that are skipped have their line.
            }
        }
        END { if (!found) exit 1; print p + 0, f + 0, s + 0 }
    ' "$logs/$1.log") || return 1
    local p f s
    read -r p f s <<<"$sums"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

step format make fmt-check
step lint make lint
step tests cargo test --release --no-fail-fast -- --show-output
step surroundings scripts/surroundings.sh
step runner cargo test --release -p codemode-runner --lib -- --show-output
step generated make gen-check
step python scripts/python-example.sh

printf '\n'
printf '%s\n' "${table[@]}"
grep -h '^skipped: ' "$logs"/*.log | sort | uniq -c
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
