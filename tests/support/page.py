"""What pages tell people to type, and a shell that types it.

The rule: a page's words are run as they stand; a test fills in only what the page leaves open.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import fairlane

ROOT: Final = Path(__file__).parents[2]


def blocks(text: str, language: str = "sh") -> list[str]:
    """Return the code of a text that is in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def environ(home: Path) -> dict[str, str]:
    """Return the variables of a shell that has the command, and no settings of anybody's."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    source = str(Path(fairlane.__file__).parents[1])
    return {"PATH": path, "PYTHONPATH": source, "HOME": str(home), "PYTHONUTF8": "1"}


def shell(commands: str, folder: Path, variables: Mapping[str, str]) -> str:
    """Run commands as a person would; return what they print."""
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", commands],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
