"""Whatever the description of the service allows, and what it forbids, is answered as it says.

The rule: every check of schemathesis, on as many cases as a test may take. For the whole of it:
`CASES=110 pytest tests/http/test_schema.py --timeout 0 -s`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import Client, Settings, verbs
from support.servers import Server
from support.service import served

CONFIG = Path(__file__).with_name("schemathesis.toml")
CASES = os.environ.get("CASES", "5")


@pytest.mark.timeout(600)
def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    # What is answered does not depend on the kind of server: once is what a test may take.
    server = Server.start("valkey9")
    try:
        _run(server.url, tmp_path)
    finally:
        server.stop()


def _run(store_url: str, tmp_path: Path) -> None:
    with Client(Settings(store_url=store_url)) as client:
        client.run(verbs.Watermark())
    with served(store_url, tmp_path) as http:
        base = str(http.base_url).rstrip("/")
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG)]
        command += ["run", f"{base}/openapi.json", "--url", base, "--no-color", "-n", CASES]
        command += ["-H", f"Authorization: {http.headers['authorization']}"]
        # The feed has no end.
        command += ["--exclude-path", "/v1/events", "--seed", "1", "--continue-on-failure"]
        command += ["--generation-database", ":memory:"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        told = done.stdout.rpartition("= FAILURES =")[2][:20_000]
        print(done.stdout.partition("= SUMMARY =")[2])  # shown by -s
        assert done.returncode == 0, told + done.stderr[-2_000:]
        log = (tmp_path / "api.log").read_text()
        assert "Traceback" not in log, log
