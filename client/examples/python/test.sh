#!/bin/sh
# Runs the example against a running executor, in a virtual environment under target/.
#   client/examples/python/test.sh ADDRESS
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/../../../target/python-example/.venv
address=${1:?usage: test.sh ADDRESS}

if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$venv/installed.txt"
fi
exec "$venv/bin/python" "$here/example.py" "$address"
