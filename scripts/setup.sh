#!/usr/bin/env bash
# Installs what a build and the tests need and the machine lacks; does nothing where all of it is there.
# Debian and Ubuntu, as root or with sudo. Elsewhere, or without either, says what is missing and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

# Debian's packages by what shows that they are there. The reasons are in CONTRIBUTING.md, "What a machine needs".
packages=()
need() { # need PACKAGE CHECK...: the package is needed unless the check succeeds
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || packages+=("$package")
}
need gcc cc --version
need libc6-dev test -e /usr/include/stdio.h
need cmake cmake --version
need libsimde-dev test -e /usr/include/simde/simde-common.h
need python3 python3 --version
need python3-venv python3 -c 'import ensurepip, venv'
need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt

install() {
    local as_root=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || return 1
        as_root=(sudo)
        # Nobody can type a password where there is no terminal.
        [ -t 0 ] || as_root=(sudo -n)
    fi
    local get=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends)
    # A fresh machine has no package lists yet, an old one has lists of packages that are gone.
    "${get[@]}" "${packages[@]}" 2>/dev/null || { "${as_root[@]}" apt-get update -qq && "${get[@]}" "${packages[@]}"; }
}

if [ ${#packages[@]} -gt 0 ]; then
    echo "setup: installing ${packages[*]}"
    if ! command -v apt-get >/dev/null; then
        echo "setup: this is no Debian or Ubuntu; please install what they call: ${packages[*]}" >&2
        exit 1
    fi
    if ! install; then
        echo "setup: could not install; please run as root: apt-get update && apt-get install -y ${packages[*]}" >&2
        exit 1
    fi
fi

if ! command -v cargo >/dev/null; then
    echo "setup: no cargo; please install rustup, which brings the toolchain of rust-toolchain.toml" >&2
    exit 1
fi
if ! cargo --version >/dev/null 2>&1; then
    # A rustup that was told not to install toolchains by itself.
    version=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
    echo "setup: installing Rust $version"
    rustup toolchain install "$version" --profile minimal --component clippy --component rustfmt
fi
