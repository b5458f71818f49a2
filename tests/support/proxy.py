"""A proxy before a store or a broker: what a broken network does, on demand.

The rule: TCP loses nothing in the middle of a connection. What a network drops is held here, and
arrives late or never; what is lost for good goes with its connection.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self
from urllib.parse import urlsplit

from support.eventually import eventually

Way = Literal["requests", "replies"]
WAYS: Final[tuple[Way, Way]] = ("requests", "replies")


class Proxy:
    """Carries bytes between its own socket and a server's; one connection, one thread a way.

    Before a `unix://` it is a socket in `folder`, before a `redis://` a free port of the loopback.
    """

    def __init__(self, url: str, folder: Path) -> None:
        parts = urlsplit(url)
        self._family = socket.AF_UNIX if parts.scheme == "unix" else socket.AF_INET
        self._target: str | tuple[str, int]
        self._listener = socket.socket(self._family)
        if parts.scheme == "unix":
            self._target = parts.path
            path = folder / "proxy.sock"
            self._listener.bind(str(path))
            self.url = f"unix://{path}?db=0"
        else:
            self._target = (parts.hostname or "127.0.0.1", parts.port or 6379)
            self._listener.bind(("127.0.0.1", 0))
            self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}{parts.path}"
        self._listener.listen(64)
        self._pairs: list[_Pair] = []
        self._to_lose = 0
        self._delay_s = 0.0
        self._held: set[Way] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_replies(self, count: int = 1) -> None:
        """Cut the connection in place of the next `count` replies: the store did the work."""
        self._to_lose = count

    def has_lost_all(self, timeout_s: float = 60.0) -> None:
        """Wait until the replies that were to be lost are lost."""
        eventually(lambda: self._to_lose <= 0, timeout_s)

    def cut(self) -> None:
        """Cut every open connection."""
        for pair in self._pairs:
            pair.close()
        self._pairs.clear()

    def abandon(self) -> None:
        """Leave every open connection half open: to its client it is there, and nothing comes."""
        for pair in self._pairs:
            pair.abandon()

    @contextmanager
    def drops(self, *ways: Way) -> Iterator[None]:
        """Carry nothing in these ways; what TCP would send again arrives when the block is left."""
        self._held.update(ways)
        for pair in self._pairs:
            pair.hold(*ways)
        try:
            yield
        finally:
            self._held.clear()
            for pair in self._pairs:
                pair.release()

    @contextmanager
    def slow(self, delay_s: float) -> Iterator[None]:
        """Carry everything late."""
        self._delay_s = delay_s
        try:
            yield
        finally:
            self._delay_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _close(self._listener)
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(self._family)
            try:
                server.connect(self._target)
            except OSError:
                _close(client)
                continue
            pair = _Pair(client, server)
            pair.hold(*self._held)
            self._pairs = [*(each for each in self._pairs if each.is_open), pair]
            for way in WAYS:
                threading.Thread(target=self._carry, args=(pair, way), daemon=True).start()

    def _carry(self, pair: _Pair, way: Way) -> None:
        """Carry bytes until an end closes, or they are lost."""
        source, target = pair.ends(way)
        try:
            while some := source.recv(65_536):
                if self._delay_s:
                    time.sleep(self._delay_s)
                pair.waits(way)
                if way == "replies" and self._loses():
                    break
                target.sendall(some)
        except OSError:
            pass
        finally:
            pair.ends_by_itself()

    def _loses(self) -> bool:
        self._to_lose -= 1
        return self._to_lose >= 0


class _Pair:
    """A client's connection and the one to the server that belongs to it."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self._client, self._server = client, server
        self._goes = {way: threading.Event() for way in WAYS}
        self._is_abandoned = False
        self.is_open = True
        self.release()

    def ends(self, way: Way) -> tuple[socket.socket, socket.socket]:
        """Return where bytes of a way come from and where they go."""
        if way == "requests":
            return self._client, self._server
        return self._server, self._client

    def hold(self, *ways: Way) -> None:
        """Let nothing through in these ways."""
        for way in ways:
            self._goes[way].clear()

    def release(self) -> None:
        """Let everything through that was held, unless the connection is half open."""
        if not self._is_abandoned:
            for event in self._goes.values():
                event.set()

    def waits(self, way: Way) -> None:
        """Wait until bytes of a way may go on."""
        self._goes[way].wait()

    def abandon(self) -> None:
        """Close the server's end, and never tell the client."""
        self._is_abandoned = True
        self.hold(*WAYS)
        _close(self._server)

    def ends_by_itself(self) -> None:
        """Close both ends, unless the connection is half open."""
        if not self._is_abandoned:
            self.close()

    def close(self) -> None:
        """Close both ends, whatever waits."""
        self.is_open = False
        _close(self._client)
        _close(self._server)
        for event in self._goes.values():
            event.set()


def _close(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    finally:
        end.close()
