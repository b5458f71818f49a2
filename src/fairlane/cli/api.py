"""`fairlane api`: the HTTP service, in the foreground."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Final

import rich_click as click

from fairlane.client import Client
from fairlane.errors import StoreError
from fairlane.ids import new_worker_id
from fairlane.services.announcer import Announcer
from fairlane.services.service import run_forever
from fairlane.settings import Settings

_LEAVE_S: Final = 2.0


@click.command(short_help="Run the HTTP service.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8000,
    show_default=True,
    help="The port to listen on; 0 takes a free one.",
)
@click.option("--fd", type=click.IntRange(min=0), hidden=True, help="A socket that listens.")
@click.option("--loglevel", default="WARNING", show_default=True, help="INFO tells every request.")
def api(*, host: str, port: int, fd: int | None, loglevel: str) -> None:
    """Serve the HTTP API until Ctrl-C; its description is at /openapi.json.

    Callers need a token, as `fairlane token issue` makes it. Without a key for tokens (`fairlane
    token key`) only callers on this machine are let in, by the token of the URL that is printed.
    """
    from fairlane import logs, tracing
    from fairlane.http import create_app
    from fairlane.http.serve import check_address, listen, serve, start_url

    settings = Settings.from_env()
    logs.configure(settings, "api", loglevel)
    tracing.configure(settings, "api")
    app = create_app(settings)
    if fd is not None:
        listener = socket.socket(fileno=fd)
    else:
        try:
            listener = listen(host, port)
        except OSError as error:
            raise click.ClickException(
                f"cannot listen on {host} port {port}: {error.strerror}; name another with --port"
            ) from error
    check_address(app, listener)
    if fd is None or app.state.door.start_token:
        click.echo(f"fairlane: {start_url(app, listener)}", err=True)
    with Client(settings) as client, _announced(client):
        serve(app, listener, log_level=loglevel)


@contextlib.contextmanager
def _announced(client: Client) -> Iterator[None]:
    """Tell the others that this process runs, while it does; the store may be away.

    Raises ConfigMismatch when the store was set up otherwise.
    """
    # It puts nothing into a broker and takes nothing out, so it names none.
    announcer, stopped = Announcer(client, new_worker_id(), "api", {}), threading.Event()
    with contextlib.suppress(StoreError):
        announcer.enter()
    thread = threading.Thread(target=run_forever, args=(announcer, stopped), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(timeout=_LEAVE_S)
        with contextlib.suppress(StoreError):
            announcer.leave()
