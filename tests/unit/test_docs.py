"""The documentation says what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from fairlane.settings import Settings

ROOT = Path(__file__).parents[2]


def test_the_generated_tables_are_current() -> None:
    check = [sys.executable, str(ROOT / "tools" / "docs.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_setting_of_ours_that_the_mapping_names_exists() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    mapping = page.split("## The document's names")[1].split("\n## ")[0]
    ours = re.findall(r"^\|[^|]*\| `([a-z_]+)`", mapping, re.MULTILINE)
    assert len(ours) > 12
    assert set(ours) <= {item.name for item in fields(Settings)}
