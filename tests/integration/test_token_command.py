"""`fairlane token`: keys made, rotated and retired, tokens issued, listed and revoked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from click.testing import CliRunner, Result

from fairlane.cli import cli
from fairlane.errors import InvalidMac, InvalidSettings, InvalidToken, TokenNotFound
from support.processes import COMMAND, Program

MAC = "02:00:00:00:00:01"


class Shell:
    """The command line in an environment of its own."""

    def __init__(self, store_url: str, folder: Path) -> None:
        self.environ = {"FAIRLANE_STORE_URL": store_url, "FAIRLANE_DATA_DIR": str(folder)}

    def run(self, *arguments: str, **environ: str) -> Result:
        """Run a command; an error of fairlane is raised."""
        runner = CliRunner(env=self.environ | environ)
        return runner.invoke(cli, arguments, catch_exceptions=False)

    def told(self, *arguments: str, **environ: str) -> Any:
        """Return what a command answers with --json."""
        done = self.run(*arguments, "--json", **environ)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)


@pytest.fixture
def shell(store_url: str, tmp_path: Path) -> Shell:
    """Give a shell without a key."""
    return Shell(store_url, tmp_path)


def test_a_token_from_key_to_revocation(shell: Shell) -> None:
    assert shell.told("token", "key") == {"kid": "k0001"}
    plain = shell.run("token", "issue", "--role=device", f"--mac={MAC.upper()}", "--name=gate")
    token = plain.stdout.strip()
    said = jwt.decode(token, options={"verify_signature": False})
    assert said | {"jti": "", "iat": 0, "nbf": 0, "exp": 0} == {
        "aud": "fairlane", "role": "device", "mac": MAC, "sub": "gate",
        "jti": "", "iat": 0, "nbf": 0, "exp": 0,
    }  # fmt: skip
    assert said["exp"] - said["iat"] == 30 * 24 * 3_600
    other = shell.told("token", "issue", "--role=viewer", "--ttl=90s")
    rows = shell.told("token", "list")
    assert [row["token_id"] for row in rows] == [other["token_id"], said["jti"]]
    assert rows[1]["mac"] == MAC
    assert token not in shell.run("token", "list").output
    assert shell.told("token", "revoke", token) == {"token_id": said["jti"], "revoked_now": True}
    assert shell.told("token", "revoke", said["jti"])["revoked_now"] is False
    assert shell.told("token", "list")[1]["revoked_at"]


def test_a_key_is_a_file_that_only_its_owner_reads(shell: Shell, tmp_path: Path) -> None:
    shell.told("token", "key")
    (file,) = (tmp_path / "keys").iterdir()
    assert (file.name, oct(file.stat().st_mode & 0o777)) == ("k0001.key", "0o600")
    assert oct(file.parent.stat().st_mode & 0o777) == "0o700"


def test_the_newest_key_signs_also_past_nine(shell: Shell) -> None:
    kids = [shell.told("token", "key")["kid"] for _ in range(11)]
    assert kids[-1] == "k0011"
    rows = shell.told("token", "key", "--list")
    assert [row["kid"] for row in rows if row["signs"]] == ["k0011"]
    assert shell.told("token", "key", "--retire", "k0011") == {"retired": "k0011"}
    rows = shell.told("token", "key", "--list")
    assert [row["kid"] for row in rows if row["signs"]] == ["k0010"]


def test_a_secret_of_the_environment_signs_and_is_told_to_nobody(shell: Shell) -> None:
    secret = "a-secret-of-more-than-32-characters"
    environ = {"FAIRLANE_TOKEN_SECRET": secret}
    token = shell.told("token", "issue", "--role=operator", **environ)["token"]
    assert jwt.get_unverified_header(token)["kid"] == "settings"
    jwt.decode(token, secret, algorithms=["HS256"], audience="fairlane")
    for arguments in (("settings",), ("settings", "--json"), ("token", "key", "--list")):
        assert secret not in shell.run(*arguments, **environ).output
    (row,) = [row for row in shell.told("settings", **environ) if row["setting"] == "token_secret"]
    assert row["value"] == "***"


def test_what_goes_wrong_says_what_would_be_right(shell: Shell) -> None:
    with pytest.raises(InvalidSettings, match="make one by `fairlane token key`"):
        shell.run("token", "issue", "--role=viewer")
    shell.told("token", "key")
    with pytest.raises(InvalidToken, match="give its MAC"):
        shell.run("token", "issue", "--role=device")
    with pytest.raises(InvalidMac):
        shell.run("token", "issue", "--role=device", "--mac=nobody")
    with pytest.raises(InvalidToken, match="only a device's token"):
        shell.run("token", "issue", "--role=viewer", f"--mac={MAC}")
    with pytest.raises(TokenNotFound):
        shell.run("token", "revoke", "unknown")
    with pytest.raises(InvalidToken):
        shell.run("token", "revoke", "not.a.token")
    assert shell.run("token", "issue", "--role=root").exit_code == 2
    for ttl in ("0s", "1", "d", "-1d", "1w", "9999999999d"):
        assert shell.run("token", "issue", "--role=viewer", f"--ttl={ttl}").exit_code == 2
    for kid in ("k0009", "../k0001", "", "k0001.key"):
        assert shell.run("token", "key", "--retire", kid).exit_code == 2
    assert shell.told("token", "list") == []


def test_without_a_key_no_other_machine_is_served(shell: Shell, tmp_path: Path) -> None:
    command = ["api", "--host=0.0.0.0", "--port=0"]
    with Program([*COMMAND, *command], tmp_path / "log", shell.environ, watched=False) as api:
        assert api.wait(60.0) == 2
        assert "there is no key for tokens; make one by `fairlane token key`" in api.output()
