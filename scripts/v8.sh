#!/usr/bin/env bash
# The runner on the v8 engine, where V8's library can be had; quickjs serves without it, so its absence fails nothing.
#
#   v8.sh build        builds codemode-runner-v8 and its start-up snapshot, or says in one line why not
#   v8.sh do CMD...    runs a cargo command with what the build was made with; says so and succeeds where there is none
#
# The library comes from RUSTY_V8_ARCHIVE (a file or an address), else from the file it named last time, else from the
# v8 crate's own download. That is tried once: a failure is remembered under the target folder until `make v8` asks anew
# (CODEMODE_V8=retry). CODEMODE_V8=no leaves v8 out. The build script of the v8 crate runs anew whenever the variable
# changes, hence the memory.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
memory=$target/v8
mkdir -p "$memory"

without() {
    echo "v8: not built: $1. quickjs serves; \`make v8\` tries again, with RUSTY_V8_ARCHIVE=FILE if there is one"
    exit 0
}

# Sets RUSTY_V8_ARCHIVE to what is to be used; empty means the crate's download.
choose() {
    [ "${CODEMODE_V8:-}" != no ] || without "CODEMODE_V8=no"
    if [ -n "${RUSTY_V8_ARCHIVE:-}" ]; then
        case $RUSTY_V8_ARCHIVE in
        http://* | https://*) ;;
        *)
            # What was asked for by name and is not there is a mistake, not an absence.
            [ -f "$RUSTY_V8_ARCHIVE" ] || { echo "v8: RUSTY_V8_ARCHIVE names no file: $RUSTY_V8_ARCHIVE" >&2; exit 1; }
            RUSTY_V8_ARCHIVE=$(realpath "$RUSTY_V8_ARCHIVE")
            ;;
        esac
    elif [ -s "$memory/archive" ] && [ -f "$(cat "$memory/archive")" ]; then
        RUSTY_V8_ARCHIVE=$(cat "$memory/archive")
    fi
    if [ -n "${RUSTY_V8_ARCHIVE:-}" ]; then
        export RUSTY_V8_ARCHIVE
    else
        unset RUSTY_V8_ARCHIVE
        [ "${CODEMODE_V8:-}" != retry ] || rm -f "$memory/unavailable"
        [ ! -s "$memory/unavailable" ] || without "$(cat "$memory/unavailable")"
    fi
}

remember() {
    if [ -n "${RUSTY_V8_ARCHIVE:-}" ]; then
        printf '%s\n' "$RUSTY_V8_ARCHIVE" >"$memory/archive"
    fi
    rm -f "$memory/unavailable"
}

give_up() {
    printf '%s\n' "$1" >"$memory/unavailable"
    without "$1"
}

# Whether the place of the crate's download answers at all. The crate itself would wait for minutes for one that does not.
reachable() {
    local source base host
    host=$(rustc -vV | sed -n 's/^host: //p')
    source=$(cargo metadata --format-version 1 --filter-platform "$host" --no-default-features --features codemode-runner/v8 | python3 -c '
import json, sys
print(next(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "v8"))')
    base=${RUSTY_V8_MIRROR:-$(sed -n 's/.*default_base = "\(.*\)";.*/\1/p' "${source%Cargo.toml}build.rs")}
    timeout 20 python3 - "$base" <<'PY'
import sys, urllib.error, urllib.parse, urllib.request
address = urllib.parse.urlsplit(sys.argv[1])
if not address.scheme.startswith("http"):
    sys.exit(0)
try:
    request = urllib.request.Request(f"{address.scheme}://{address.netloc}/", method="HEAD")
    urllib.request.urlopen(request, timeout=10).close()
except urllib.error.HTTPError:
    pass  # Somebody answers.
except OSError as error:
    sys.exit(str(error))
PY
}

runner=(cargo build --release -p codemode-runner --no-default-features --features v8)

# What `spawn = "exec"` boots from. It fits only the binary that made it.
make_snapshot() {
    local binary=$target/release/codemode-runner-v8
    "$binary" snapshot >"$binary.snapshot.new"
    mv "$binary.snapshot.new" "$binary.snapshot"
}

build() {
    choose
    if [ -n "${RUSTY_V8_ARCHIVE:-}" ] || [ -e "$memory/downloaded" ]; then
        "${runner[@]}"
    else
        echo "v8: trying the download of the crate \`v8\`"
        reachable 2>"$memory/build.log" || give_up "the place of its library cannot be reached"
        if ! "${runner[@]}" 2>&1 | tee "$memory/build.log"; then
            if grep -q "Failed to download V8" "$memory/build.log"; then
                give_up "its library cannot be downloaded"
            fi
            exit 1
        fi
        touch "$memory/downloaded"
    fi
    remember
    make_snapshot
}

case ${1:-} in
build) build ;;
do)
    shift
    choose
    if [ -z "${RUSTY_V8_ARCHIVE:-}" ] && [ ! -e "$memory/downloaded" ]; then
        without "\`make build\` has not looked for its library yet"
    fi
    "$@"
    ;;
*)
    sed -n '2,6p' "$0" >&2
    exit 64
    ;;
esac
