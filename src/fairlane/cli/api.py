"""`fairlane api`: the HTTP service, in the foreground."""

from __future__ import annotations

import socket

import rich_click as click

from fairlane.settings import Settings


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
@click.option("--loglevel", default="WARNING", show_default=True)
def api(*, host: str, port: int, fd: int | None, loglevel: str) -> None:
    """Serve the HTTP API until Ctrl-C; its description is at /openapi.json.

    Callers need a token, as `fairlane token issue` makes it. Without a key for tokens (`fairlane
    token key`) only callers on this machine are let in, by the token of the URL that is printed.
    """
    from fairlane.http import create_app
    from fairlane.http.serve import check_address, listen, serve, start_url

    app = create_app(Settings.from_env())
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
    serve(app, listener, log_level=loglevel)
