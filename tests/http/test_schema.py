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
from fairlane.grant import Grant
from support.issuer import SECRET, issue
from support.servers import Server
from support.service import served

CONFIG = Path(__file__).with_name("schemathesis.toml")
CASES = os.environ.get("CASES", "5")


MAC = "02:00:00:00:00:01"
GRANTS = (
    Grant("operator", "", "", ""),
    Grant("viewer", "", "", ""),
    Grant("producer", "", "lab", ""),
    Grant("device", MAC, "", ""),
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("grant", GRANTS, ids=lambda grant: grant.role)
def test_schemathesis_finds_nothing(tmp_path: Path, grant: Grant) -> None:
    # What is answered does not depend on the kind of server: once is what a test may take.
    server = Server.start("valkey9")
    try:
        _run(server.url, tmp_path, grant)
    finally:
        server.stop()


def _run(store_url: str, tmp_path: Path, grant: Grant) -> None:
    with Client(Settings(store_url=store_url, token_secret=SECRET)) as client:
        client.run(verbs.Watermark())
        token = issue(client, grant)
    with served(store_url, tmp_path, token_secret=SECRET, device_requests_per_s=0) as http:
        base = str(http.base_url).rstrip("/")
        command = [
            sys.executable,
            "-m",
            "schemathesis.cli",
            "--config-file",
            _config(tmp_path, grant),
        ]
        command += ["run", f"{base}/openapi.json", "--url", base, "--no-color"]
        command += ["-n", CASES, "-H", f"Authorization: Bearer {token}"]
        command += ["--seed", "1", "--continue-on-failure"]
        command += ["--generation-database", ":memory:"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        told = done.stdout.rpartition("= FAILURES =")[2][:20_000]
        print(done.stdout.partition("= SUMMARY =")[2])  # shown by -s
        assert done.returncode == 0, told + done.stderr[-2_000:]
        log = (tmp_path / "api.log").read_text()
        assert "Traceback" not in log, log


def _config(folder: Path, grant: Grant) -> str:
    """Return the file of what a schema cannot say; but an operator, a role is refused much."""
    text = CONFIG.read_text("utf-8")
    if grant.role != "operator":
        text = text.replace('["2xx", ', '["2xx", 403, ')
    path = folder / CONFIG.name
    path.write_text(text, "utf-8")
    return str(path)
