#!/usr/bin/env bash
# Make sure that a program which no Python package brings is there, by the system's own packages.
#
# The rule: what cannot be installed is skipped with a word on a developer's machine, and fails in
# CI, where a check that silently did not run would count as passed.
#
# chromium         chromium in Debian and Homebrew; the tests of the dashboard open pages in it
# luacheck         lua-check in Debian and Ubuntu, luacheck in Homebrew
# redis-check-rdb  redis-tools there, redis in Homebrew. It is redis-server under another name (the
#                  name that it is called by decides), and its package starts no service.
# promtool         prometheus in both. Debian's package starts a service, so only the program is taken
#                  out of it, into /usr/local/bin.
set -euo pipefail
program=${1:?usage: tools/need.sh PROGRAM DEBIAN_PACKAGE HOMEBREW_FORMULA}
debian_package=$2
homebrew_formula=$3

say() { echo "fairlane: $*" >&2; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo --non-interactive "$@"; fi
}

may_be_root() {
    [ "$(id -u)" -eq 0 ] || sudo --non-interactive true 2>/dev/null
}

apt_get() {
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get --quiet --quiet --option DPkg::Lock::Timeout=120 "$@" >/dev/null </dev/null
}

# The program alone, without its package.
take_program() {
    local folder
    folder=$(mktemp -d)
    (cd "$folder" && apt-get --quiet --quiet download "$debian_package" >/dev/null &&
        dpkg-deb --fsys-tarfile ./*.deb | tar -x "./usr/bin/$program" &&
        as_root install -m 0755 "usr/bin/$program" "/usr/local/bin/$program")
    rm -rf "$folder"
}

if command -v "$program" >/dev/null; then exit 0; fi

if command -v apt-get >/dev/null && may_be_root; then
    say "installing $debian_package (for $program)"
    if [ "$program" = promtool ]; then
        apt_get update && take_program || true
    else
        apt_get update && apt_get install --yes --no-install-recommends "$debian_package" || true
    fi
elif command -v brew >/dev/null; then
    say "installing $homebrew_formula (for $program)"
    brew install --quiet "$homebrew_formula" || true
fi

if command -v "$program" >/dev/null; then exit 0; fi
if [ -n "${CI:-}" ]; then
    say "$program is missing and could not be installed; CI does not skip what needs it."
    exit 1
fi
say "$program is missing, so what needs it is SKIPPED. To have it:" \
    "apt install $debian_package, or brew install $homebrew_formula"
