"""What is committed of the dashboard is what its sources make, and small."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fairlane.http import pages

ROOT = Path(__file__).parents[2]
#: What issue 6 promises of all scripts together.
MOST_GZIP_BYTES = 150 * 1024


def test_what_is_committed_is_current(web: ModuleType) -> None:
    assert web.stale() == [], "run `make web`, and commit what it made"


def test_the_scripts_are_small() -> None:
    scripts = [asset for name, asset in pages.assets().items() if name.endswith(".js")]
    assert scripts
    assert sum(len(script.zipped) for script in scripts) <= MOST_GZIP_BYTES


@pytest.mark.timeout(600)
def test_a_build_gives_what_is_committed(tmp_path: Path) -> None:
    """The bundle is reproducible, so nobody has to believe it."""
    if "CI" not in os.environ and not (ROOT / "web" / "node_modules").exists():
        pytest.skip("the packages of web/ are not here; `make web` brings them")
    built = tmp_path / "static"
    subprocess.run(
        [sys.executable, str(ROOT / "tools" / "web.py"), "--into", str(built)], check=True
    )
    committed = ROOT / "src" / "fairlane" / "http" / "static"
    names = {path.relative_to(built) for path in built.rglob("*") if path.is_file()}
    assert names
    for name in names:
        assert (committed / name).read_bytes() == (built / name).read_bytes(), name
    shutil.rmtree(built)
