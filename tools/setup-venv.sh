#!/usr/bin/env bash
# Make the virtual environment: fairlane, editable, with every extra and the development tools.
#
# The rule: it holds exactly the releases of requirements.lock, and VENV/.ready is newer than
# everything that it was made from. Two makes at a time wait for each other.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:?usage: tools/setup-venv.sh VENV}
ready=$venv/.ready
lock=$venv.lock

say() { echo "fairlane: $*" >&2; }

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    local name
    for name in python3.13 python3.12 python3.11 python3; do
        # Asked, not only looked up: a version switcher's stub can be on PATH and run nothing.
        if is_new_enough "$name"; then
            command -v "$name"
            return
        fi
    done
    say "no Python 3.11 or newer on PATH (tried python3.13, python3.12, python3.11, python3)."
    say "Install one (Debian 12, Ubuntu 24.04: apt install python3; macOS: brew install python3)."
    return 1
}

is_fresh() {
    [ "$ready" -nt pyproject.toml ] && [ "$ready" -nt requirements.lock ] &&
        [ "$ready" -nt tools/setup-venv.sh ]
}

# A link is made in one step or not at all, and carries the holder's process id.
until ln -s "$$" "$lock" 2>/dev/null; do
    holder=$(readlink "$lock" || true)
    if [ -n "$holder" ] && ! kill -0 "$holder" 2>/dev/null; then
        rm -f "$lock"
    else
        sleep 1
    fi
done
trap 'rm -f "$lock"' EXIT
if is_fresh; then exit 0; fi

# One that was interrupted while it was made has a Python, and no pip.
if ! is_new_enough "$venv/bin/python" || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    say "making $venv with $("$python" --version)"
    rm -rf "$venv"
    if ! "$python" -m venv "$venv"; then
        rm -rf "$venv"
        say "this Python cannot make a virtual environment."
        say "On Debian and Ubuntu its venv module is a package of its own: apt install python3-venv"
        exit 1
    fi
fi

say "installing what requirements.lock names (once; about a minute)"
pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet)
"${pip[@]}" install 'pip>=25.1' # the first that knows dependency groups
"${pip[@]}" install --constraint requirements.lock --editable '.[all]' --group dev
touch "$ready"
