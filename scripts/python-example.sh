#!/usr/bin/env bash
# Runs the Python example against an executor of its own, on each engine that was built.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${CARGO_TARGET_DIR:-target}/release
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for engine in quickjs v8; do
    if [ ! -x "$bin/codemode-runner-$engine" ]; then
        echo "skipped: the Python example on $engine, which is not built"
        continue
    fi
    echo "-- $engine"
    # The executor ends when its standard input does: when this script is gone, however that happens.
    coproc executor { exec "$bin/codemode-executor" --listen "unix:$folder/$engine.sock" --engines "$engine" \
        --parent-watch --log-filter warn; }
    pid=$executor_PID stdin=${executor[1]}
    read -r -t 30 -u "${executor[0]}" listening || { echo "the executor does not come up" >&2; exit 1; }
    client/examples/python/test.sh "${listening#listening on }"
    exec {stdin}>&-
    wait "$pid"
done
