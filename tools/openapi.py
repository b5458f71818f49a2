"""Write the description of the HTTP API that the dashboard's client is generated from, or check it.

    python tools/openapi.py           write web/openapi.json
    python tools/openapi.py --check   exit with 1 if it is stale

The rule: it comes from the routes, with the default settings, and nobody edits it by hand. After
it, `npm run types` in web/ makes src/api.gen.ts; `make web` does both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FILE: Final = ROOT / "web" / "openapi.json"
sys.path.insert(0, str(ROOT / "src"))

from fairlane import Settings  # noqa: E402 - the tool runs without an installation
from fairlane.http import create_app  # noqa: E402


def current() -> str:
    """Return the description as it should be."""
    described = create_app(Settings()).openapi()
    # A release changes the version and nothing that a client sees.
    described["info"]["version"] = "0"
    return json.dumps(described, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def is_stale() -> bool:
    """Whether what is written is not what the routes say."""
    return not FILE.exists() or FILE.read_text(encoding="utf-8") != current()


def main(arguments: Sequence[str]) -> int:
    """Write the description, or check it; return the exit status."""
    if arguments == ["--check"]:
        if is_stale():
            sys.stderr.write(f"{FILE.relative_to(ROOT)} is stale; run `make web`\n")
            return 1
        return 0
    if arguments:
        sys.stderr.write(f"usage: {Path(__file__).name} [--check]\n")
        return 2
    if is_stale():
        FILE.write_text(current(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
