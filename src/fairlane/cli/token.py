"""`fairlane token`: tokens issued, listed and revoked, and the keys that sign them."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import rich_click as click
from rich.table import Table

from fairlane.cli.duration import Duration
from fairlane.cli.opened import opened
from fairlane.cli.table import show
from fairlane.client import Client
from fairlane.errors import InvalidSettings
from fairlane.grant import ROLES, Grant, IssuedToken
from fairlane.settings import Settings
from fairlane.verbs import IssueToken, RevokeToken, Tokens
from fairlane.verbs.bounds import MOST

if TYPE_CHECKING:
    from fairlane.grant import Role
    from fairlane.keyring import Keyring


@click.group(short_help="Issue, list and revoke tokens; make and rotate their keys.")
def token() -> None:
    """Issue, list and revoke the tokens that the HTTP service asks for, and rotate their keys."""


@token.command(short_help="Issue a token.")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What it may do.")
@click.option("--mac", default="", help="The device, for the role `device`.")
@click.option("--site", default="", help="The site that a device or producer is held to.")
@click.option("--name", default="", help="Who has it, for people.")
@click.option("--ttl", type=Duration(), default="30d", show_default=True, help="How long it holds.")
@click.option("--json", "as_json", is_flag=True, help="The token, its id and times as JSON.")
def issue(*, role: Role, mac: str, site: str, name: str, ttl: int, as_json: bool) -> None:
    """Issue a token and print it; whoever has it may do what its role may.

    device: send, see and cancel the tasks of its own MAC. producer: send tasks of any device, or of
    one site. viewer: see everything. operator: everything.
    """
    from fairlane.keyring import Keyring
    from fairlane.tokens import Claims, sign

    settings = Settings.from_env()
    grant = Grant(role, mac, site, name)
    key = Keyring(settings).signer
    if key is None:
        raise InvalidSettings(
            f"{settings.token_keys_folder}: there is no key that signs tokens; "
            "make one by `fairlane token key`"
        )
    with Client(settings) as client:
        issued = client.run(IssueToken(grant, ttl))
    begin_s, end_s = issued.issued_at_ms // 1000, issued.expires_at_ms // 1000
    text = sign(Claims(issued.token_id, grant, begin_s, end_s), key, settings.token_audience)
    click.echo(json.dumps({"token": text, **_row(issued)}, indent=2) if as_json else text)


@token.command("list", short_help="The tokens that have not expired.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def list_(*, as_json: bool) -> None:
    """List the tokens that have not expired, those that end first before the others."""
    rows: list[dict[str, Any]] = []
    with opened() as client:
        while page := client.run(Tokens(len(rows), MOST)):
            rows += map(_row, page)
            if len(page) < MOST:
                break
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    table = Table("id", "role", "mac", "site", "name", "expires", "revoked")
    for row in rows:
        table.add_row(row["token_id"], row["role"], row["mac"], row["site"], row["name"],
                      row["expires_at"], row["revoked_at"] or "")  # fmt: skip
    show(table)


@token.command(short_help="Revoke a token.")
@click.argument("token_id", metavar="ID|TOKEN")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def revoke(*, token_id: str, as_json: bool) -> None:
    """Revoke a token by its id or itself; within two seconds no service takes it any more.

    The token itself is needed for one of another issuer, whose end the store does not know.
    """
    settings, ends_ms = Settings.from_env(), 0
    if token_id.count(".") == 2:
        from fairlane.keyring import Keyring
        from fairlane.tokens import verify

        claims = verify(token_id, Keyring(settings), settings.token_audience)
        token_id, ends_ms = claims.token_id, claims.expires_s * 1000
    with Client(settings) as client:
        now_revoked = client.run(RevokeToken(token_id, ends_ms))
    if as_json:
        click.echo(json.dumps({"token_id": token_id, "revoked_now": now_revoked}))
    else:
        click.echo(f"{token_id} {'is revoked' if now_revoked else 'was revoked before'}")


@token.command(short_help="Make a key, or show and retire keys.")
@click.option("--list", "is_list", is_flag=True, help="Show the keys; the newest signs.")
@click.option("--retire", metavar="KID", help="Delete a key: its tokens hold no more.")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def key(*, is_list: bool, retire: str | None, as_json: bool) -> None:
    """Make a key, which signs from now on; the keys before it still verify.

    To rotate: make a key, issue new tokens, and when the old ones are not used any more, retire the
    old key. Running services see all of it by themselves.
    """
    from fairlane.keyring import Keyring, key_files, new_key

    settings = Settings.from_env()
    folder = settings.token_keys_folder
    if retire is not None:
        files = {path.stem: path for path in key_files(folder)}
        if retire not in files:
            known = ", ".join(files) or "none"
            raise click.UsageError(f"--retire {ascii(retire)[:80]}: the keys here are: {known}")
        files[retire].unlink()
        click.echo(json.dumps({"retired": retire}) if as_json else f"{retire} is retired")
    elif is_list:
        _show_keys(Keyring(settings), as_json=as_json)
    else:
        kid = new_key(folder)
        click.echo(json.dumps({"kid": kid}) if as_json else kid)
        click.echo(
            f"made a key in {folder.absolute()}, which signs from now on; "
            "`fairlane token issue --role ROLE` makes a token by it",
            err=True,
        )


def _show_keys(keyring: Keyring, *, as_json: bool) -> None:
    rows = [
        {"kid": one.kid, "algorithm": one.algorithm, "signs": one is keyring.signer}
        for one in keyring
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    table = Table("kid", "algorithm", "signs")
    for row in rows:
        table.add_row(str(row["kid"]), str(row["algorithm"]), "yes" if row["signs"] else "")
    show(table)


def _row(issued: IssuedToken) -> dict[str, Any]:
    grant = asdict(issued.grant) if issued.grant else dict.fromkeys(("mac", "site", "name"), "")
    return {
        "token_id": issued.token_id,
        "role": "",
        **grant,
        "issued_at": _when(issued.issued_at_ms),
        "expires_at": _when(issued.expires_at_ms),
        "revoked_at": _when(issued.revoked_at_ms),
    }


def _when(ms: int) -> str | None:
    if not ms:
        return None
    return datetime.fromtimestamp(ms // 1000, UTC).isoformat().replace("+00:00", "Z")
